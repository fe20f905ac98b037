"""A table's files as those see them who decide what goes: by path."""

from __future__ import annotations

from lakebed.maintenance.table_files import TableFiles
from lakebed.table.context import TableContext


def table_files(context: TableContext) -> TableFiles:
    """The files of the table, on the branch that is open."""
    return TableFiles(context.stores, context.data_file_path)
