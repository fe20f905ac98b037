"""What the stream's tables are to the lake: descriptions for the relations that messages name.

A Relation message holds names and types as they were when the row changed. Key, nullability, comments and defaults come
from the catalogue of today, where the column is still there. Remembered by relation, so that a table is looked up once
for each shape it has in the stream.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from lakebed.cdc.envelope import Description, SourceColumn, SourceName
from lakebed.cdc.sources.postgres.log.messages import Relation
from lakebed.cdc.sources.postgres.server.catalog import (
    Catalog,
    CatalogTable,
    Publication,
    column_id,
    describe,
    unsupported_column,
)
from lakebed.cdc.sources.postgres.server.columns import SeenColumns, column_numbers
from lakebed.cdc.sources.postgres.settings import PostgresSettings
from lakebed.cdc.sources.postgres.values.forms import Form
from lakebed.errors import LakebedError
from lakebed.records import dataclass
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

    def __init__(
        self,
        catalog: Catalog,
        settings: PostgresSettings,
        publication: Publication | None,
        seen: Callable[[int], SeenColumns] = lambda _: SeenColumns(),
    ) -> None:
        self._catalog = catalog
        self._settings = settings
        self._publication = publication
        self._seen = seen
        self._known: dict[Relation, FollowedTable | None] = {}
        self.troubles: dict[Relation, LakebedError] = {}
        """Relations that can not be read, if that is no reason to stop."""

    def table(self, relation: Relation) -> FollowedTable | None:
        """The table of a relation; None if it is not one of those to follow."""
        if relation not in self._known:
            self._known[relation] = self._looked_up(relation)
        return self._known[relation]

    def key(self, relation: Relation) -> Sequence[int]:
        """Places of the columns that identify a row."""
        table = self.table(relation)
        return () if table is None else table.key

    def _looked_up(self, relation: Relation) -> FollowedTable | None:
        try:
            return self._look_up(relation)
        except LakebedError as error:
            if self._settings.on_error == "stop":
                raise
            self.troubles[relation] = error
            return None

    def _look_up(self, relation: Relation) -> FollowedTable | None:
        if not self._settings.matches(relation.schema, relation.name):
            return None
        current = self._catalog.table(relation.oid, self._publication)
        if current is None and self._catalog.has_table(relation.schema, relation.name):
            return None  # dropped, and another has its name: that one was copied and takes its place
        forms = self._forms(relation, current)
        numbers = self._numbers(relation, forms, current)
        today = {column.number: column for column in current.columns} if current is not None else {}
        key = _key(relation, numbers, current)
        columns = []
        keep_nullable = "to-nullable" in self._settings.type_mapping
        for column, form, number in zip(relation.columns, forms, numbers, strict=True):
            known = today.get(number) if number is not None else None
            is_required = column.name in key or (known is not None and known.is_not_null and not keep_nullable)
            columns.append(
                SourceColumn(
                    column.name,
                    with_nullable(form.type, not is_required),
                    known.comment if known is not None else None,
                    known.default if known is not None else None,
                    column_id(relation.oid, number) if number is not None else None,
                )
            )
        places = tuple(place for place, column in enumerate(relation.columns) if column.name in key)
        name = SourceName(self._settings.database, relation.schema, relation.name)
        description = Description(tuple(columns), key, current.comment if current is not None else None)
        return FollowedTable(name, description, tuple(forms), places)

    def _forms(self, relation: Relation, current: CatalogTable | None) -> list[Form]:
        found = []
        for column in relation.columns:
            form = self._catalog.form(column.type_oid, column.type_modifier)
            if form is None:
                known = current.column(column.name) if current is not None else None
                type_text = known.type_text if known is not None else f"with id {column.type_oid}"
                raise unsupported_column(f"{relation.schema}.{relation.name}", column.name, type_text)
            found.append(form)
        return found

    def _numbers(self, relation: Relation, forms: Sequence[Form], table: CatalogTable | None) -> list[int | None]:
        """The numbers of the relation's columns, by which renamed ones are recognised."""
        if table is None:
            return [None] * len(relation.columns)
        then = [(column.name, _type_text(form)) for column, form in zip(relation.columns, forms, strict=True)]
        now = {column.number: (column.name, _type_text(column.form)) for column in table.columns}
        if then == list(now.values()):
            return list(now)
        seen = self._seen(table.oid)
        for gone in ({*table.dropped} - seen.dead, table.dropped):
            found = column_numbers(then, now, gone, seen.forms)
            if found is not None:
                return list(found)
        by_name = {column.name: column.number for column in table.columns}
        return [by_name.get(column.name) for column in relation.columns]


def followed_table(table: CatalogTable, settings: PostgresSettings) -> FollowedTable:
    """A table as the catalogue has it now, for the copy."""
    names = [column.name for column in table.columns]
    return FollowedTable(
        SourceName(settings.database, table.schema, table.name),
        describe(table, settings),
        tuple(column.form for column in table.columns if column.form is not None),
        tuple(names.index(name) for name in table.key),
    )


def _key(relation: Relation, numbers: Sequence[int | None], table: CatalogTable | None) -> tuple[str, ...]:
    """The names that the columns of today's key had."""
    if table is not None:
        name_of = {number: column.name for number, column in zip(numbers, relation.columns, strict=True)}
        wanted = {column.name: column.number for column in table.columns}
        key = tuple(name_of.get(wanted[name], "") for name in table.key)
        if key and all(key):
            return key
    # The table is gone, or has another key meanwhile: the stream marks the columns of the identity.
    return tuple(column.name for column in relation.columns if column.is_key and relation.identity != "f")


def _type_text(form: Form | None) -> str:
    return "" if form is None else str(with_nullable(form.type, True))


__all__ = ["FollowedTable", "RelationBook", "followed_table"]
