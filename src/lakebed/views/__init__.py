"""Materialized tables: the result of a query, kept up to date from the changes of the tables that it reads.

`plan` looks at the query, `rules` says what a change of the tables does to its result, `cut` chooses the snapshots,
`changes` reads what came between them, `apply` writes the difference. Nothing here is guessed: what is not known to be
right from changes alone is computed anew, and said so.
"""
