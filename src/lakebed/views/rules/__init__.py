"""What a change of the tables does to each operator of a query: one file for each, pure, giving statements."""
