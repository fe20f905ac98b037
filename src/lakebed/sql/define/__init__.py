"""Statements that make, alter and show tables and databases."""
