"""`input_file_name()`: the file of a row, where a query reads one table of the lake without a key, and nothing else.

Spark knows it only of files that it opens itself. Ours are planned, and small ones read, before Spark sees the rows;
but each row can tell its file by a hidden column, which takes the function's place. Rows that are merged lie in no
single file: where there is a key the function stays empty, as Spark has it for rows that come from no file.
"""

from __future__ import annotations

from sqlglot import exp

from lakebed.schema.system_columns import FILE_PATH
from lakebed.sql.parse.query import read_query
from lakebed.sql.query.references import references
from lakebed.sql.session import SqlLake
from lakebed.sql.statements import Sql
from lakebed.sql.words.cursor import Cursor
from lakebed.sql.words.names import quoted
from lakebed.table.system.handle import DefinedTable

_FUNCTION = "input_file_name"


def with_file_names(lake: SqlLake, sql: Sql) -> Sql:
    """The query with the hidden column in place of each call, if it is clear which table's files are meant."""
    if _FUNCTION not in sql.text.lower() or len(sql.tables()) != 1:
        return sql
    tables = [reference.table for reference in references(lake, sql)]
    if len(tables) != 1 or isinstance(tables[0], DefinedTable) or tables[0].primary_key:
        return sql
    if FILE_PATH.name not in tables[0].hidden_schema.names:
        return sql
    projected = {id(item) for select in sql.tree.find_all(exp.Select) for item in select.expressions}
    calls = [node for node in sql.tree.find_all(exp.Func) if node.sql().lower() == f"{_FUNCTION}()"]
    tokens = Cursor(sql.text).tokens
    spans = [
        (first.start, last.end + 1)
        for first, opened, last in zip(tokens, tokens[1:], tokens[2:], strict=False)
        if (first.text.lower(), opened.text, last.text) == (_FUNCTION, "(", ")")
    ]
    if len(spans) != len(calls):
        return sql
    edits = {}
    for span, call in zip(spans, sorted(calls, key=lambda call: call.meta.get("start", 0)), strict=True):
        name = f" AS {quoted(f'{_FUNCTION}()')}" if id(call) in projected else ""
        edits[span] = f"{quoted(FILE_PATH.name)}{name}"
    return read_query(Cursor(sql.spliced(edits)))


__all__ = ["with_file_names"]
