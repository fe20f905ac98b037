"""What columns are: logical types, their Arrow form, row kinds, the BinaryRow codec and predicates."""
