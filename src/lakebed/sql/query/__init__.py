"""Queries: which tables they mean, what is pushed down to each, and how they are handed to Spark."""
