"""Maxwell's messages: `data` is the row after, `old` has the former values of what an update changed. No types."""

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
    milliseconds,
    overlaid,
    whole_column,
)
from lakebed.types.logical import STRING

_SHAPE: Final = {
    "database": "VARCHAR",
    "table": "VARCHAR",
    "type": "VARCHAR",
    "ts": "BIGINT",
    "data": "JSON",
    "old": "JSON",
    "primary_key_columns": "JSON",
}
_ACTIONS: Final = {"insert": INSERT, "bootstrap-insert": INSERT, "update": UPDATE, "delete": DELETE}
_NO_ROWS: Final = (
    "bootstrap-start", "bootstrap-complete", "table-create", "table-alter", "table-drop",
    "database-create", "database-alter", "database-drop", "heartbeat",
)  # fmt: skip


class MaxwellJson(MessageFormat):
    """`maxwell-json`."""

    name = "maxwell-json"

    def chunks(self, bodies: pa.Array, ordinal: int, about: pa.RecordBatch | None = None) -> list[Chunk]:
        """The changes; messages about tables instead of rows are left out."""
        members = placed(transformed(exact_numbers(pc.drop_null(bodies)), _SHAPE), bodies)
        kinds = members.column("type")
        members = members.filter(pc.invert(pc.is_in(kinds, pa.array(_NO_ROWS)))).combine_chunks()
        found: list[Chunk] = []
        for group in groups_of(members, ("database", "table"), ("primary_key_columns",)):
            found += self._changes(members, group).chunks(ordinal + len(found), about)
        return found

    def _changes(self, members: pa.Table, group: Group) -> TableChanges:
        database, table, key = group.common
        rows = members.take(pa.array(group.rows))
        kinds, data, old = (whole_column(rows, name) for name in ("type", "data", "old"))
        actions = action_numbers(kinds, _ACTIONS, self.name)
        check_present(data, np.ones(len(actions), np.bool_), "data", self.name)
        check_present(old, actions == UPDATE, "old", self.name)
        names = member_names([data])
        after = column_texts(data, names)
        given = member_marks(old, names)
        former = column_texts(old, names)
        is_update = pa.array(actions == UPDATE)
        before = {name: overlaid(former[name], after[name], pc.and_(given[name], is_update)) for name in names}
        keys = tuple(column_texts(pa.array([f'{{"k":{key}}}']), ["k"], ["VARCHAR[]"])["k"][0].as_py()) if key else ()
        return TableChanges(
            SourceName(database or "", "", table or ""),
            Description(tuple(SourceColumn(name, STRING) for name in names), keys, typed=False),
            actions,
            milliseconds(whole_column(rows, "ts")) * 1000,
            before,
            after,
            {},
            pc.equal(kinds, "bootstrap-insert").to_numpy(zero_copy_only=False),
            whole_column(rows, PLACE),
        )


__all__ = ["MaxwellJson"]
