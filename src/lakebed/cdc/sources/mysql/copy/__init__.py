"""The first copy of tables: cut into ranges, read, and taken back to the stream's position."""
