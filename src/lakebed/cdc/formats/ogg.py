"""Oracle GoldenGate's messages of operations: rows before and after, the table with its schema, its key. No types.

Rows are to be written in full. What only one of the two rows of an update has is taken for both; a column that neither
has is NULL, as a column is that was added later.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lakebed.cdc.envelope import Chunk, Description, SourceColumn, SourceName
from lakebed.cdc.formats.base import (
    PLACE,
    Group,
    MessageFormat,
    column_texts,
    exact_numbers,
    groups_of,
    member_marks,
    member_names,
    placed,
    transformed,
)
from lakebed.cdc.formats.messages import (
    DELETE,
    INSERT,
    UPDATE,
    TableChanges,
    action_numbers,
    check_present,
    overlaid,
    whole_column,
)
from lakebed.cdc.formats.texts import moments_ms, names_in
from lakebed.types.logical import STRING

_SHAPE: Final = {
    "table": "VARCHAR",
    "op_type": "VARCHAR",
    "op_ts": "VARCHAR",
    "before": "JSON",
    "after": "JSON",
    "primary_keys": "JSON",
}
_ACTIONS: Final = {"I": INSERT, "U": UPDATE, "D": DELETE}
_IN_FULL: Final = "(GoldenGate: GETUPDATEBEFORES, and LOGALLSUPCOLS in the Extract)"


class OggJson(MessageFormat):
    """`ogg-json`."""

    name = "ogg-json"

    def chunks(self, bodies: pa.Array, ordinal: int, about: pa.RecordBatch | None = None) -> list[Chunk]:
        """The changes."""
        members = placed(transformed(exact_numbers(pc.drop_null(bodies)), _SHAPE), bodies)
        found: list[Chunk] = []
        for group in groups_of(members, ("table",), ("primary_keys",)):
            found += self._changes(members, group).chunks(ordinal + len(found), about)
        return found

    def _changes(self, members: pa.Table, group: Group) -> TableChanges:
        table, key = group.common
        rows = members.take(pa.array(group.rows))
        kinds, before, after = (whole_column(rows, name) for name in ("op_type", "before", "after"))
        actions = action_numbers(kinds, _ACTIONS, self.name)
        check_present(after, actions != DELETE, "after", self.name, _IN_FULL)
        check_present(before, actions != INSERT, "before", self.name, _IN_FULL)
        names = member_names([after, before])
        new, old = column_texts(after, names), column_texts(before, names)
        is_new, is_old = member_marks(after, names), member_marks(before, names)
        no_update = pa.array(actions != UPDATE)
        return TableChanges(
            _named(table or ""),
            Description(tuple(SourceColumn(name, STRING) for name in names), names_in(key), typed=False),
            actions,
            moments_ms(whole_column(rows, "op_ts")),
            {name: overlaid(old[name], new[name], pc.or_(is_old[name], no_update)) for name in names},
            {name: overlaid(new[name], old[name], pc.or_(is_new[name], no_update)) for name in names},
            {},
            np.zeros(len(actions), np.bool_),
            whole_column(rows, PLACE),
        )


def _named(text: str) -> SourceName:
    """`SCHEMA.TABLE`, or `CONTAINER.SCHEMA.TABLE`; the schema is what other systems call the database."""
    head, _, table = text.rpartition(".")
    first, _, second = head.partition(".")
    return SourceName(first, second, table)


__all__ = ["OggJson"]
