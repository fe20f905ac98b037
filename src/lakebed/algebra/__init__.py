"""Queries as relations: what is read, joined, grouped and ordered, with a type for every column.

A query of SQL becomes a tree of these, and the tree becomes text for DuckDB. Columns have names that are unique in the
whole query, so nothing in the tree depends on scopes: parts of it can be looked at, moved and computed by themselves.
"""
