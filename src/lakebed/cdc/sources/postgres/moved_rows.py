"""Values of rows that moved from one part of the copy to another between the two snapshots.

The part that a row left was copied after the move, the part that it came to before: the copy has it in neither, and a
long value that the update did not touch is nowhere in the stream. It is asked of the database. This needs a change of a
key, a value stored apart and a copy under way, all at once; rows are looked up one by one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from lakebed.cdc.sources.postgres.names import quote_name, quote_table, quote_value
from lakebed.cdc.sources.postgres.pgoutput import DecodedRows
from lakebed.cdc.sources.postgres.relations import FollowedTable
from lakebed.types.row_kind import RowKind

if TYPE_CHECKING:
    import psycopg


def with_moved_values(
    rows: DecodedRows,
    keep: np.ndarray[Any, np.dtype[np.bool_]],
    table: FollowedTable,
    connection: psycopg.Connection[Any],
) -> DecodedRows:
    """The rows, with values for new halves of moves whose old half is not kept.

    A row that is gone by now keeps its mark: whoever writes it says that the value is missing.
    """
    is_lone = np.zeros(len(keep), bool)
    is_lone[1:] = keep[1:] & ~keep[:-1] & (rows.kinds[1:] == RowKind.INSERT) & (rows.kinds[:-1] == RowKind.DELETE)
    unchanged, columns = dict(rows.unchanged), list(rows.columns)
    for place, marks in rows.unchanged.items():
        for row in np.flatnonzero(marks & is_lone).tolist():
            found = connection.execute(_query(rows, table, place, row).encode()).fetchone()
            if found is not None:
                value = pa.array([found[0]], pa.string())
                columns[place] = pa.concat_arrays([columns[place][:row], value, columns[place][row + 1 :]])
                unchanged[place] = unchanged[place].copy()
                unchanged[place][row] = False
    return DecodedRows(rows.relation, rows.kinds, rows.commit_lsns, rows.commit_us, rows.xids, columns, unchanged)


def _query(rows: DecodedRows, table: FollowedTable, place: int, row: int) -> str:
    names = table.description.names
    conditions = [f"{quote_name(names[key])} = {quote_value(rows.columns[key][row].as_py())}" for key in table.key]
    source = quote_table(table.name.schema, table.name.table)
    return f"SELECT {quote_name(names[place])}::text FROM {source} WHERE {' AND '.join(conditions)}"


__all__ = ["with_moved_values"]
