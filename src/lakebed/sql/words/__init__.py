"""The words of statements: names, literals, conversions, and the walk over them. Knows no table."""
