"""From the syntax tree of a query to relations and expressions with types, or the reason why that is not proven."""
