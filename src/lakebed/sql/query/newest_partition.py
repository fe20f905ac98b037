"""`sys.max_pt('t')`: the largest value of a table's first partition column, put into the text before it is read.

So statements, and whichever engine carries them out, see a literal, and a filter by it chooses partitions.
"""

from __future__ import annotations

import pyarrow as pa
from sqlglot.tokens import Token, TokenType

from lakebed.errors import InvalidArgument, NotFound
from lakebed.schema.casts import cast_array
from lakebed.sql.partition_specs import existing_partitions
from lakebed.sql.session import SqlLake
from lakebed.sql.words.cursor import tokens_of
from lakebed.sql.words.names import CATALOGS
from lakebed.table.table import Table
from lakebed.types import ordering
from lakebed.types.logical import STRING, with_nullable

_NAME = "max_pt"
_DATABASE = "sys"


def with_newest_partitions(lake: SqlLake, text: str) -> str:
    """The text with values for its calls of `sys.max_pt`."""
    if _NAME not in text.lower():
        return text
    tokens = tokens_of(text)
    parts, done = [], 0
    for index in range(len(tokens)):
        if not _is_call(tokens, index):
            continue
        start, end = _beginning(tokens, index), index + 3
        argument = tokens[index + 2]
        if end >= len(tokens) or argument.token_type != TokenType.STRING or tokens[end].text != ")":
            raise InvalidArgument(
                f"{_DATABASE}.{_NAME} takes the name of a table", hint=f"write {_DATABASE}.{_NAME}('db.t')"
            )
        value = _newest(lake.table(_table_name(argument.text))).replace("'", "''")
        parts += [text[done : tokens[start].start], f"'{value}'"]
        done = tokens[end].end + 1
    return "".join([*parts, text[done:]])


def _is_call(tokens: list[Token], index: int) -> bool:
    following = tokens[index + 1 : index + 3]
    is_named = tokens[index].text.lower() == _NAME and tokens[index].token_type != TokenType.STRING
    return is_named and len(following) == 2 and following[0].text == "(" and _beginning(tokens, index) < index


def _beginning(tokens: list[Token], index: int) -> int:
    """Where the whole name begins: at `sys`, or at the catalog before it."""
    if index < 2 or tokens[index - 1].text != "." or tokens[index - 2].text.lower() != _DATABASE:
        return index
    has_catalog = index >= 4 and tokens[index - 3].text == "." and tokens[index - 4].text.lower() in CATALOGS
    return index - 4 if has_catalog else index - 2


def _table_name(text: str) -> str:
    parts = text.replace("`", "").split(".")
    return ".".join(parts[1:] if len(parts) == 3 and parts[0].lower() in CATALOGS else parts)


def _newest(table: Table) -> str:
    found = [item.values[table.partition_by[0]] for item in existing_partitions(table)]
    texts = sorted({text for text in found if text is not None})
    if not texts:
        raise NotFound(f"table `{table.name}` has no partition", hint="write rows first")
    column = next(field for field in table.schema.fields if field.name == table.partition_by[0])
    values = cast_array(pa.array(texts), STRING, with_nullable(column.type, True))
    return texts[max(range(len(texts)), key=lambda index: ordering.sort_value(values, index))]


__all__ = ["with_newest_partitions"]
