"""The query of a materialized table: its shape, its key, and which parts of it can follow changes."""
