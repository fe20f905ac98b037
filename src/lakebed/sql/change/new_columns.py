"""What a statement may change of the columns of the table that it writes to: `write.merge-schema` and its siblings."""

from __future__ import annotations

from collections.abc import Sequence

from lakebed.options import WRITE_MERGE_SCHEMA, WRITE_MERGE_SCHEMA_EXPLICIT_CAST, WRITE_MERGE_SCHEMA_TYPE_WIDENING
from lakebed.records import dataclass
from lakebed.schema.changes import SchemaChange
from lakebed.sql.session import SqlLake
from lakebed.sql.settings import write_settings
from lakebed.sql.statements import Target
from lakebed.table.table import Table
from lakebed.types.logical import DataField
from lakebed.write import make_room as schema_merge
from lakebed.write.make_room import is_wider

_MERGE = WRITE_MERGE_SCHEMA.key
_WIDEN = WRITE_MERGE_SCHEMA_TYPE_WIDENING.key
_CAST = WRITE_MERGE_SCHEMA_EXPLICIT_CAST.key


@dataclass(frozen=True, slots=True)
class SchemaMerge(schema_merge.SchemaMerge):
    """What a statement may change of a table's columns."""

    @staticmethod
    def of(lake: SqlLake, target: Target) -> SchemaMerge:
        """From SET, and from the hint at the table's name."""
        found = write_settings(lake, target.name)
        found |= {
            key: target.options[key].lower() == "true" for key in (_MERGE, _WIDEN, _CAST) if key in target.options
        }
        if not found.get(_MERGE):
            return SchemaMerge()
        return SchemaMerge(True, found.get(_WIDEN, False), found.get(_CAST, False))

    def apply(self, table: Table, incoming: Sequence[DataField]) -> bool:
        """Changes the table so that it takes the columns; whether it had to be changed."""
        changes = self.changes(table, incoming)
        if changes:
            table.alter(*changes)
        return bool(changes)

    def changes(self, table: Table, incoming: Sequence[DataField]) -> list[SchemaChange]:
        """The changes that it takes."""
        return self.changes_of(table.schema, incoming)


__all__ = ["SchemaMerge", "is_wider"]
