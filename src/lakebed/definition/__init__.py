"""What a table is: its place, its columns, and what its options mean. Reads no data file."""
