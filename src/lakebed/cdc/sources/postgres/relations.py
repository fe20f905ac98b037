"""What the stream's tables are to the lake: descriptions for the relations that messages name.

A Relation message holds names and types as they were when the row changed. Key, nullability, comments and defaults come
from the catalogue of today, where the column is still there. Remembered by relation, so that a table is looked up once
for each shape it has in the stream.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from lakebed.cdc.envelope import Description, SourceColumn, SourceName
from lakebed.cdc.sources.postgres.catalog import (
    Catalog,
    CatalogColumn,
    CatalogTable,
    Publication,
    describe,
    unsupported_column,
)
from lakebed.cdc.sources.postgres.forms import Form
from lakebed.cdc.sources.postgres.messages import Relation
from lakebed.cdc.sources.postgres.settings import PostgresSettings
from lakebed.types.logical import with_nullable


@dataclass(frozen=True, slots=True)
class FollowedTable:
    """A table in one shape: how it is described, how its columns are read, and the places of its key."""

    name: SourceName
    description: Description
    forms: tuple[Form, ...]
    key: tuple[int, ...]

    @property
    def full_name(self) -> str:
        """`schema.table`, for errors."""
        return f"{self.name.schema}.{self.name.table}"


class RelationBook:
    """Tables by the relations that the stream names."""

    def __init__(self, catalog: Catalog, settings: PostgresSettings, publication: Publication | None) -> None:
        self._catalog = catalog
        self._settings = settings
        self._publication = publication
        self._known: dict[Relation, FollowedTable | None] = {}

    def table(self, relation: Relation) -> FollowedTable | None:
        """The table of a relation; None if it is not one of those to follow."""
        if relation not in self._known:
            self._known[relation] = self._look_up(relation)
        return self._known[relation]

    def key(self, relation: Relation) -> Sequence[int]:
        """Places of the columns that identify a row."""
        table = self.table(relation)
        return () if table is None else table.key

    def _look_up(self, relation: Relation) -> FollowedTable | None:
        if not self._settings.matches(relation.schema, relation.name):
            return None
        current = self._catalog.table(relation.oid, self._publication)
        if current is None and self._catalog.has_table(relation.schema, relation.name):
            return None  # dropped, and another has its name: that one was copied and takes its place
        today = _matched(relation, current)
        key = (
            current.key
            if current is not None and set(current.key) <= {column.name for column in relation.columns}
            else None
        )
        if key is None:
            # Dropped or renamed meanwhile: the stream marks the columns of the identity.
            key = tuple(column.name for column in relation.columns if column.is_key and relation.identity != "f")
        columns, forms = [], []
        keep_nullable = "to-nullable" in self._settings.type_mapping
        for column, known in zip(relation.columns, today, strict=True):
            form = self._catalog.form(column.type_oid, column.type_modifier)
            if form is None:
                type_text = known.type_text if known is not None else f"with id {column.type_oid}"
                raise unsupported_column(f"{relation.schema}.{relation.name}", column.name, type_text)
            is_required = column.name in key or (known is not None and known.is_not_null and not keep_nullable)
            columns.append(
                SourceColumn(
                    column.name,
                    with_nullable(form.type, not is_required),
                    known.comment if known is not None else None,
                    known.default if known is not None else None,
                    known.number if known is not None else None,
                )
            )
            forms.append(form)
        places = tuple(place for place, column in enumerate(relation.columns) if column.name in key)
        name = SourceName(self._settings.database, relation.schema, relation.name)
        description = Description(tuple(columns), key, current.comment if current is not None else None)
        return FollowedTable(name, description, tuple(forms), places)


def followed_table(table: CatalogTable, settings: PostgresSettings) -> FollowedTable:
    """A table as the catalogue has it now, for the copy."""
    names = [column.name for column in table.columns]
    return FollowedTable(
        SourceName(settings.database, table.schema, table.name),
        describe(table, settings),
        tuple(column.form for column in table.columns if column.form is not None),
        tuple(names.index(name) for name in table.key),
    )


def _matched(relation: Relation, table: CatalogTable | None) -> list[CatalogColumn | None]:
    """Today's columns for those of a relation: by place if all types are the same (names may change), else by name."""
    if table is None:
        return [None] * len(relation.columns)
    if [column.type_oid for column in relation.columns] == [column.type_oid for column in table.columns]:
        return list(table.columns)
    return [table.column(column.name) for column in relation.columns]


__all__ = ["FollowedTable", "RelationBook", "followed_table"]
