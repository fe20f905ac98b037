"""What lineage tells of a statement: which tables it reads, and which one it writes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager
from typing import Any

from lakebed.lineage import Dataset, Job, table_dataset, told
from lakebed.sql import statements as st
from lakebed.sql.query.references import references
from lakebed.sql.session import SqlLake


def traced(lake: SqlLake, statement: Any) -> AbstractContextManager[object]:
    """Tells of the block as a run of the statement, if that writes rows and somebody wants to know."""
    return told(lambda: _job(lake, statement))


def _job(lake: SqlLake, statement: Any) -> Job | None:
    """None for statements that write no rows."""
    if isinstance(statement, st.CreateTable):
        if statement.query is None:
            return None
        kind, name = "CREATE TABLE AS SELECT", statement.name
    elif isinstance(statement, st.Insert | st.Update | st.Delete | st.Merge):
        kind, name = type(statement).__name__.upper(), statement.target.name
    else:
        return None
    full = name if "." in name else f"{lake.current_database}.{name}"
    texts = list(_texts(statement))

    def inputs() -> Iterator[Dataset]:
        for text in texts:
            for reference in references(lake, text):
                yield table_dataset(reference.table)

    def outputs() -> Iterator[Dataset]:
        if lake.has_table(name):
            yield table_dataset(lake.table(name))

    query = texts[0].tree if texts and isinstance(statement, st.CreateTable | st.Insert) else None
    return Job(f"{kind.lower().replace(' ', '_')}.{full}", kind, inputs, outputs, query)


def _texts(statement: Any) -> Iterator[st.Sql]:
    """All parts of a statement in which tables are read."""
    if isinstance(statement, st.CreateTable):
        found = [statement.query]
    elif isinstance(statement, st.Insert):
        found = [statement.source if isinstance(statement.source, st.Sql) else None]
    elif isinstance(statement, st.Merge):
        conditions = [clause.condition for clause in statement.clauses]
        found = [statement.source, statement.on, *conditions]
    elif isinstance(statement, st.Update):
        found = [*(each.value for each in statement.assignments), statement.where]
    else:
        found = [statement.where]
    yield from (each for each in found if each is not None)


__all__ = ["traced"]
