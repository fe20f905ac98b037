"""Tools for testing tables and what is built on them: shipped, so that users and plug-ins can test theirs alike.

Nothing in lakebed imports this package.
"""
