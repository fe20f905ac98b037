"""Statements that change rows: INSERT, UPDATE, DELETE, MERGE."""
