"""Answers in this process: DuckDB over our own scans. It knows no SQL of users, only relations that are bound."""
