"""Compatibility tier: other implementations judge the tables, in both directions."""
