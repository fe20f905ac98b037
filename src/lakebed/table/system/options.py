"""`t$options`: the options that the table's latest schema holds."""

from __future__ import annotations

from collections.abc import Iterable

from lakebed.table.system.base import SystemTable, TableState, each


def _options(state: TableState) -> Iterable[tuple[str, str]]:
    return state.latest_schema.options.items()


OPTIONS = SystemTable(
    "options",
    _options,
    (
        each("key", "STRING NOT NULL", lambda pair: pair[0]),
        each("value", "STRING NOT NULL", lambda pair: pair[1]),
    ),
)

__all__ = ["OPTIONS"]
