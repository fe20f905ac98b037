"""Moments finer than a microsecond, which no engine of SQL carries: a statement that would cut them is refused.

Rows that a statement changes pass through an engine whole. What is cut there would be stored cut, in columns that the
statement does not name, and a key that is cut is another key: its row would stay, and come a second time.
"""

from __future__ import annotations

from collections.abc import Iterable

import pyarrow as pa
import pyarrow.compute as pc

from lakebed.definition.statement_rules import Statement
from lakebed.errors import Unsupported
from lakebed.table.table import Table
from lakebed.types.logical import TIMESTAMPS, AtomicType, DataField, is_root

_CARRIED_DIGITS = 6


def check_nothing_is_cut(table: Table, statement: Statement) -> None:
    """Raises if the table holds moments that the statement would store with fewer digits than they have.

    `table` shows all that is stored. Only columns that may hold such moments are read, and few tables have any.
    """
    names = [field.name for field in _carried(table, statement) if _may_be_finer(field)]
    if not names or table.fixed_to is None:
        return
    for batch in table.to_batches(names):
        for name, column in zip(names, batch.columns, strict=True):
            if _is_finer(column):
                raise Unsupported(
                    f"{statement} of table `{table.name}`: column `{name}` holds moments finer than a microsecond, "
                    "which would be cut",
                    hint="read the rows as Arrow in Python, change them there, and write them back",
                )


def _carried(table: Table, statement: Statement) -> Iterable[DataField]:
    """Columns whose values are stored as they come out of an engine."""
    if statement is not Statement.DELETE:
        return table.schema.fields
    return table.schema.fields_of(table.primary_key)


def _may_be_finer(field: DataField) -> bool:
    return is_root(field.type, TIMESTAMPS) and isinstance(field.type, AtomicType) and _digits(field) > _CARRIED_DIGITS


def _digits(field: DataField) -> int:
    assert isinstance(field.type, AtomicType)
    return field.type.precision


def _is_finer(column: pa.Array) -> bool:
    is_whole = pc.equal(pc.floor_temporal(column, unit="microsecond"), column)
    return not pc.all(is_whole, min_count=0).as_py()


__all__ = ["check_nothing_is_cut"]
