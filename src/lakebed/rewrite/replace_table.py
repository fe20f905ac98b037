"""REPLACE TABLE: the rows go and another schema comes, in the same place, so that old snapshots can still be read.

The rows go first, under the schema they were written with: a crash in between leaves an empty table as it was defined
before. Columns that stay what they were keep their ids; all others get new ones, so that no file of before can be read
as something that it never held. Only a table whose partitions are described as before can be replaced in this way.
"""

from __future__ import annotations

from dataclasses import replace

from lakebed.definition.context import TableContext
from lakebed.errors import CommitConflict, InvalidArgument, InvalidOption
from lakebed.metadata.snapshot import Snapshot
from lakebed.options import check_unchanged
from lakebed.schema.later import under_names_of
from lakebed.schema.store import SchemaStore
from lakebed.schema.table_schema import TableSchema
from lakebed.types.logical import DataType, renumbered, walk_fields, with_nullable

_MOST_ATTEMPTS = 10


def can_replace_in_place(old: TableSchema, new: TableSchema) -> bool:
    """Whether partitions mean the same in both: old manifests are read with the newest description of them."""
    return old.partition_keys == new.partition_keys and _partition_types(old) == _partition_types(new)


def _partition_types(schema: TableSchema) -> list[str]:
    types = {field.name: field.type for field in schema.fields}
    return [_described(types[name]) for name in schema.partition_keys]


def publish_replacement(schemas: SchemaStore, new: TableSchema, name: str) -> None:
    """Puts a schema on top of those that are there, however many others came meanwhile."""
    for _ in range(_MOST_ATTEMPTS):
        latest = schemas.latest()
        assert latest is not None, "whoever replaces a table has opened it"
        if schemas.publish(_on_top(latest, new)):
            return
    raise CommitConflict(
        f"table `{name}`: {_MOST_ATTEMPTS} other schema changes came in between",
        hint="the table is empty and has its old columns; run the statement again",
    )


def _on_top(old: TableSchema, new: TableSchema) -> TableSchema:
    known = {field.name: field for field in old.fields}
    highest = max([old.highest_field_id, *(field.id for field in walk_fields(old.fields))])

    def number() -> int:
        nonlocal highest
        highest += 1
        return highest

    fields = []
    for field in new.fields:
        before = known.get(field.name)
        if before is not None and _described(before.type) == _described(field.type):
            kept = with_nullable(before.type, field.type.nullable)
            fields.append(replace(field, id=before.id, type=kept))
        else:
            fields.append(replace(field, id=number(), type=renumbered(field.type, number)))
    return replace(new, id=old.id + 1, fields=tuple(fields), highest_field_id=highest)


def _described(data_type: DataType) -> str:
    """The type without its own nullability, and without the ids of members."""
    return str(with_nullable(data_type, True))


def refuse_replaced(context: TableContext, snapshot: Snapshot) -> None:
    """Raises if the table was replaced by another one since: its rows can be read there, but not brought back."""
    old, new = context.schemas.get(snapshot.schema_id), context.schema
    try:
        if _ids(old, old.primary_keys) != _ids(new, new.primary_keys):
            raise InvalidOption("its rows had another primary key", hint="")
        check_unchanged(under_names_of(old, new), new.options)
    except InvalidOption as error:
        raise InvalidArgument(
            f"table `{context.name}` was replaced after snapshot {snapshot.id}: {error.message}",
            hint="read the rows with VERSION AS OF, and insert them into the table as it is now",
        ) from error


def _ids(schema: TableSchema, names: tuple[str, ...]) -> list[int]:
    return [field.id for name in names for field in schema.fields if field.name == name]
