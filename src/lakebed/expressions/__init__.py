"""What expressions of SQL mean: Spark's types and results, and how DuckDB is told to give the same.

An expression is on the list (`functions`, `aggregates`, `casts`) only if a test has shown that both engines give equal
values of equal types for it. What is not on the list is not guessed: it is `NotProven`, and whoever asked hands the
query to Spark, or refuses it by name. Nothing here runs anything; no part of it imports an engine.
"""
