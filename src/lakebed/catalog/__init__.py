"""Where tables are found: databases, tables and their names."""
