"""Landing: what comes from a source is first kept in an ordinary table of the lake, `landed__<name>`, beside it.

Queries over the source read that table, with the declared columns and types and the computed columns beside them. So
what follows changes of tables follows changes of sources, and a source is read once however many queries use it.
"""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from lakebed.catalog.names import check_name
from lakebed.cdc.envelope import SourceTable
from lakebed.connectors import databases, kafka
from lakebed.errors import InvalidArgument, InvalidSchema
from lakebed.options import CHANGELOG_PRODUCER
from lakebed.sql.connectors.reading import reading_text
from lakebed.sql.connectors.table import ConnectorTable
from lakebed.sql.words.names import quoted
from lakebed.types.logical import AtomicType, DataField, DataType, TypeRoot, with_nullable

if TYPE_CHECKING:
    from lakebed.cdc import SyncRun
    from lakebed.lake import Lake

_LANDED: Final = "landed__"
_METADATA: Final = "meta__"
"""How columns of metadata begin in a landed table: no source has such a column."""
_OPTIONS: Final = "landing."


def landed_name(table: ConnectorTable) -> str:
    """The full name of the table of the lake in which a source lands."""
    return f"{table.database}.{_LANDED}{table.name}"


def metadata_name(key: str) -> str:
    """What a column of metadata is called in a landed table."""
    return f"{_METADATA}{key.replace('-', '_')}"


def reading_query(lake: Lake, table: ConnectorTable, computed: Collection[str] | None = None) -> str:
    """The SELECT over the landed table that shows what the source was defined to show.

    Columns come in the order of the definition, cast where the landed table has another type, computed ones in SQL: all
    of them, or those in `computed`. Who leaves out what a query does not use leaves out PROCTIME(), which no query that
    follows changes can have.
    """
    stored: Mapping[str, DataType] = {}
    if lake.has_table(landed_name(table)):
        stored = {field.name: field.type for field in lake.table(landed_name(table)).schema.fields}
    source = f"{quoted(table.database)}.{quoted(_LANDED + table.name)}"
    return reading_text(table, source, stored, metadata_name, computed)


def _landing_options(table: ConnectorTable) -> dict[str, str]:
    """Options of the landed table: `landing.*`; one with a key tells its changes in full."""
    given = table.below(_OPTIONS)
    if table.primary_key or table.connector in databases.SOURCES:
        given.setdefault(CHANGELOG_PRODUCER.key, "lookup")
    return given


def create_landing(lake: Lake, table: ConnectorTable) -> None:
    """Makes the landed table of a source that can not say its columns itself, with those that are declared."""
    fields = [
        DataField(number, name, _landed_type(table, name, data_type))
        for number, (name, data_type) in enumerate(landed_columns(table).items())
    ]
    lake.create_table(
        landed_name(table),
        tuple(fields),
        primary_key=table.primary_key,
        options=_landing_options(table) if table.primary_key else table.below(_OPTIONS),
        if_not_exists=True,
    )


def landed_columns(table: ConnectorTable) -> dict[str, DataType]:
    """The columns of the landed table that the definition tells: those of the source, then those of metadata."""
    found = {field.name: field.type for field in table.columns}
    return found | {metadata_name(column.key): column.type for column in table.metadata.values()}


def _landed_type(table: ConnectorTable, name: str, data_type: DataType) -> DataType:
    if isinstance(data_type, AtomicType) and data_type.root is TypeRoot.CHAR:
        # Queries in this process do not compare texts of fixed length.
        data_type = AtomicType(TypeRoot.VARCHAR, data_type.nullable, length=data_type.length)
    return with_nullable(data_type, name not in table.primary_key)


# --- databases and message logs of changes ---------------------------------------------------------------------------


def is_synced(table: ConnectorTable) -> bool:
    """Whether a sync of changes lands the table; else its rows are read by position."""
    return table.connector in databases.SOURCES or kafka.is_synced(table)


def landing_groups(tables: Sequence[ConnectorTable]) -> list[tuple[ConnectorTable, ...]]:
    """Tables that one sync lands together: all of one server and slot; each topic of changes by itself."""
    groups: dict[tuple[str, ...], list[ConnectorTable]] = {}
    for table in tables:
        if is_synced(table):
            is_database = table.connector in databases.SOURCES
            key = databases.server_of(table) if is_database else (table.connector, table.full_name)
            groups.setdefault(key, []).append(table)
    return [tuple(group) for group in groups.values()]


def land(
    lake: Lake,
    tables: Sequence[ConnectorTable],
    checkpoint: str | os.PathLike[str],
    *,
    trigger: str | Mapping[str, Any] | None = None,
    query_name: str | None = None,
) -> SyncRun:
    """Starts the one sync that lands all these tables, which are of one server and slot (see `landing_groups`).

    Everything is checked before anything is made: that the source has the declared tables and columns, too. `trigger`
    is that of `lakebed.cdc.sync`.
    """
    import lakebed.cdc  # loads Spark

    if not tables:
        raise InvalidArgument("no table is to land", hint="pass those of one group of landing_groups(tables)")
    for table in tables:
        check_name(f"{_LANDED}{table.name}", "table")
    how = _kafka_sync(lake, tables) if kafka.is_synced(tables[0]) else _database_sync(tables)
    name, rules = how
    return lakebed.cdc.sync(
        lake, name, tables[0].database, checkpoint=checkpoint, trigger=trigger, query_name=query_name, **rules
    )


def _database_sync(tables: Sequence[ConnectorTable]) -> tuple[str, dict[str, Any]]:
    databases.check_together(tables)
    found = databases.followed(tables)
    members = [(table, source) for table in tables for source in found[table.name]]
    including = "|".join(re.escape(str(source.name)) for _, source in members)
    rules: dict[str, Any] = {
        "source_options": databases.source_options(tables, including),
        "including": including,
        "mapping": {str(source.name): f"{_LANDED}{table.name}" for table, source in members},
        "merge_shards": True,  # a pattern for the name of a table means all that fit
        "table_conf": {re.escape(str(source.name)): _landing_options(table) for table, source in members},
        **_metadata_rules(tables),
    }
    key = _key(members)
    return databases.SOURCES[tables[0].connector], rules | ({} if key is None else {"primary_keys": key})


def _key(members: Sequence[tuple[ConnectorTable, SourceTable]]) -> tuple[str, ...] | None:
    """The primary key that a sync is told; None if the keys of the source are those that are declared."""
    other = [
        (table, source)
        for table, source in members
        if table.primary_key and set(table.primary_key) != set(source.description.primary_key)
    ]
    if not other:
        return None
    keys = {table.primary_key for table, _ in members}
    if len(keys) > 1:
        table, source = other[0]
        raise InvalidSchema(
            f"table `{table.full_name}` has the primary key ({', '.join(table.primary_key)}), {source.name} has "
            f"({', '.join(source.description.primary_key)})",
            hint="declare the key of the source, or give the table a slot of its own",
        )
    return keys.pop()


def _kafka_sync(lake: Lake, tables: Sequence[ConnectorTable]) -> tuple[str, dict[str, Any]]:
    if len(tables) > 1:
        raise InvalidArgument(
            f"`{tables[0].full_name}` and `{tables[1].full_name}` are topics of their own",
            hint="land each by itself: see landing_groups(tables)",
        )
    (table,) = tables
    # Messages may tell no types, or come late: what is declared is there before.
    create_landing(lake, table)
    rules: dict[str, Any] = {
        "table": f"{_LANDED}{table.name}",
        "source_options": kafka.change_source_options(table),
        "primary_keys": table.primary_key,
        "table_conf": _landing_options(table),
        **_metadata_rules(tables),
    }
    return "kafka", rules


def _metadata_rules(tables: Sequence[ConnectorTable]) -> dict[str, Any]:
    keys = {column.key.replace("-", "_") for table in tables for column in table.metadata.values()}
    return {"metadata_columns": sorted(keys), "metadata_column_prefix": _METADATA} if keys else {}
