"""Messages of AWS DMS: `data` is the row, `metadata` says what was done to it. No types, and no key.

Old values come as `before-image`, or as columns whose names begin with `BI_`, if the task was told so. Without them an
update says the new row alone, which takes the place of the one with its key.
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
    UPSERT,
    TableChanges,
    action_numbers,
    check_present,
    overlaid,
    whole_column,
)
from lakebed.cdc.formats.texts import moments_ms
from lakebed.types.logical import STRING

_METADATA: Final = {
    "record-type": "VARCHAR",
    "operation": "VARCHAR",
    "schema-name": "VARCHAR",
    "table-name": "VARCHAR",
    "timestamp": "VARCHAR",
    "commit-timestamp": "VARCHAR",
}
_SHAPE: Final = {"data": "JSON", "before-image": "JSON", "metadata": _METADATA}
_ACTIONS: Final = {"load": INSERT, "insert": INSERT, "update": UPDATE, "delete": DELETE}
_OLD: Final = "BI_"
_IN_FULL: Final = "(DMS: a message of record-type `data` always has it)"


class AwsDmsJson(MessageFormat):
    """`aws-dms-json`."""

    name = "aws-dms-json"

    def chunks(self, bodies: pa.Array, ordinal: int, about: pa.RecordBatch | None = None) -> list[Chunk]:
        """The changes; records of control (tables that are made, changed, dropped) are left out."""
        members = _flat(placed(transformed(exact_numbers(pc.drop_null(bodies)), _SHAPE), bodies))
        is_control = pc.not_equal(members.column("record-type"), "data").fill_null(False)
        members = members.filter(pc.invert(is_control)).combine_chunks()
        found: list[Chunk] = []
        for group in groups_of(members, ("schema-name", "table-name"), ()):
            found += self._changes(members, group).chunks(ordinal + len(found), about)
        return found

    def _changes(self, members: pa.Table, group: Group) -> TableChanges:
        schema, table = group.common
        rows = members.take(pa.array(group.rows))
        kinds, data, image = (whole_column(rows, name) for name in ("operation", "data", "before-image"))
        actions = action_numbers(kinds, _ACTIONS, self.name)
        check_present(data, np.ones(len(actions), np.bool_), "data", self.name, _IN_FULL)
        told = member_names([data, image])
        own = [name for name in told if not (name.startswith(_OLD) and name.removeprefix(_OLD) in told)]
        prefixed = [_OLD + name for name in own if _OLD + name in told]
        read, marks = column_texts(data, own + prefixed), member_marks(data, prefixed)
        old, is_old = column_texts(image, own), member_marks(image, own)
        for name in prefixed:
            plain, mark = name.removeprefix(_OLD), marks[name]
            old[plain] = overlaid(old[plain], read[name], pc.invert(mark))
            is_old[plain] = pc.or_(is_old[plain], mark)
        says_old = np.any([mark.to_numpy(zero_copy_only=False) for mark in is_old.values()], axis=0)
        is_update = actions == UPDATE
        takes_old = pa.array(is_update & says_old)
        before = {name: overlaid(old[name], read[name], pc.and_(is_old[name], takes_old)) for name in own}
        return TableChanges(
            SourceName(schema or "", "", table or ""),
            Description(tuple(SourceColumn(name, STRING) for name in own), (), typed=False),
            np.where(is_update & ~says_old, UPSERT, actions).astype(np.int8),
            moments_ms(pc.coalesce(whole_column(rows, "commit-timestamp"), whole_column(rows, "timestamp"))),
            before,
            {name: read[name] for name in own},
            {},
            pc.equal(kinds, "load").to_numpy(zero_copy_only=False),
            whole_column(rows, PLACE),
        )


def _flat(members: pa.Table) -> pa.Table:
    """Members of `metadata` as columns beside the others."""
    metadata = whole_column(members, "metadata")
    for name in _METADATA:
        members = members.append_column(name, pc.struct_field(metadata, [name]))
    return members.drop_columns(["metadata"])


__all__ = ["AwsDmsJson"]
