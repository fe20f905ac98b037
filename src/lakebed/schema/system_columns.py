"""Columns that the engine adds to data files next to the table's own, with the field ids other engines expect.

A table column must not use one of these names. Ids lie far above those of table columns, so neither the highest field
id of a schema nor an evolution by id can mix them up.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from lakebed.types.logical import BIGINT, INT, STRING, TINYINT, DataField, RowType, with_nullable

KEY_PREFIX = "_KEY_"
"""Key columns of a primary-key file are copies of table columns under this prefix."""

KEY_ID_OFFSET = 1073741823
"""Added to a column's id for the id of its key copy. Ids of table columns stay below."""

SEQUENCE_NUMBER = DataField(2147483646, "_SEQUENCE_NUMBER", with_nullable(BIGINT, False))
VALUE_KIND = DataField(2147483645, "_VALUE_KIND", with_nullable(TINYINT, False))
LEVEL = DataField(2147483644, "_LEVEL", with_nullable(TINYINT, False))
ROW_KIND = DataField(2147483643, "rowkind", with_nullable(STRING, False))
ROW_ID = DataField(2147483642, "_ROW_ID", BIGINT)

TRACKED_SEQUENCE_NUMBER = replace(SEQUENCE_NUMBER, type=BIGINT)
"""The same column where rows have ids: the snapshot that last wrote the row. Null in a file: the file's own."""
TRACKING_FIELDS = (ROW_ID, TRACKED_SEQUENCE_NUMBER)

FILE_PATH = DataField(2147483641, "__paimon_file_path", with_nullable(STRING, False))
ROW_INDEX = DataField(2147483640, "__paimon_row_index", with_nullable(BIGINT, False))
"""Where a row lies: its file and its position in it. Not stored; readers add them for who wants to change rows."""
PLACE_FIELDS = (FILE_PATH, ROW_INDEX)

BUCKET = DataField(2147483639, "__paimon_bucket", with_nullable(INT, False))
PARTITION = "__paimon_partition"
"""Which part of the table a row is in. Not stored either: everything that is read together has the same."""

SYSTEM_FIELDS = (SEQUENCE_NUMBER, VALUE_KIND, LEVEL, ROW_KIND, ROW_ID)
SYSTEM_NAMES = frozenset(member.name for member in SYSTEM_FIELDS)
SYSTEM_IDS = frozenset(member.id for member in SYSTEM_FIELDS)


def key_field(column: DataField) -> DataField:
    """The key copy of a table column, as stored in primary-key files."""
    return replace(column, id=KEY_ID_OFFSET + column.id, name=KEY_PREFIX + column.name)


def partition_field(partition_fields: Sequence[DataField]) -> DataField:
    """The partition columns of a table as one column; without any a row of nothing."""
    return DataField(2147483638, PARTITION, RowType(tuple(partition_fields), nullable=False))


def is_reserved(name: str) -> bool:
    """Whether a table column must not have this name."""
    return name.startswith(KEY_PREFIX) or name in SYSTEM_NAMES
