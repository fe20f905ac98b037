"""Texts of a PostgreSQL as values of the lake's types, whole columns at once."""
