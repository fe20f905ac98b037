"""The connectors by name, and the checks of a definition that do not depend on any of them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Final

from lakebed.errors import InvalidArgument, InvalidSchema, NotFound, Unsupported, did_you_mean
from lakebed.sql.connectors.databases import MYSQL_CDC, POSTGRES_CDC
from lakebed.sql.connectors.datagen import DATAGEN, DatagenReader
from lakebed.sql.connectors.definition import ConnectorDefinition
from lakebed.sql.connectors.filesystem import FILESYSTEM, FilesReader
from lakebed.sql.connectors.kafka import KAFKA, UPSERT_KAFKA
from lakebed.sql.connectors.options import check_options
from lakebed.sql.connectors.outputs import BLACKHOLE, PRINT
from lakebed.sql.connectors.table import ConnectorTable

DEFINITIONS: Final = {
    definition.name: definition
    for definition in (POSTGRES_CDC, MYSQL_CDC, KAFKA, UPSERT_KAFKA, DATAGEN, FILESYSTEM, PRINT, BLACKHOLE)
}
"""All connectors; `paimon` is none of them, but a table of the lake."""

_INSTEAD: Final = {
    "mariadb-cdc": "use `mysql-cdc`, which follows a MariaDB as well",
    "jdbc": "read it with Spark: CREATE TEMPORARY VIEW t USING jdbc OPTIONS (url 'jdbc:...', dbtable '...')",
    "faker": "use `datagen`, and compute what you need: `c AS expression`",
}


def definition_of(connector: str, table: str) -> ConnectorDefinition:
    """The connector of that name."""
    found = DEFINITIONS.get(connector)
    if found is None:
        guess = _INSTEAD.get(connector.lower()) or did_you_mean(connector, DEFINITIONS)
        listed = ", ".join(f"`{name}`" for name in DEFINITIONS)
        raise Unsupported(
            f"table `{table}`: there is no connector `{connector}`", hint=f"{guess}; there are `paimon`, {listed}"
        )
    return found


def checked(table: ConnectorTable) -> ConnectorTable:
    """The table, with what its connector declares; raises if something about it is wrong."""
    definition = definition_of(table.connector, table.full_name)
    _check_columns(table)
    check_options(
        table.full_name,
        definition.name,
        definition.options,
        table.options,
        [field.name for field in table.columns],
    )
    for name, column in table.metadata.items():
        if column.key not in definition.metadata:
            raise InvalidSchema(
                f"table `{table.full_name}`: connector `{definition.name}` has no metadata `{column.key}` "
                f"for column `{name}`",
                hint=_metadata_hint(column.key, definition.metadata),
            )
    known = replace(table, declared=definition.options)
    definition.check(known)
    return known


def _metadata_hint(key: str, offered: Iterable[str]) -> str:
    names = tuple(offered)
    return did_you_mean(key, names) if names else "leave the column out: this connector has no metadata"


def _check_columns(table: ConnectorTable) -> None:
    if not table.columns:
        raise InvalidSchema(f"table `{table.full_name}` has no columns of its source", hint="list the columns it has")
    lowered = [name.lower() for name in table.order]
    twice = next((name for name in table.order if lowered.count(name.lower()) > 1), None)
    if twice is not None:
        raise InvalidSchema(f"table `{table.full_name}` has column `{twice}` twice", hint="name each column once")
    own = [field.name for field in table.columns]
    for name in table.primary_key:
        if name not in own:
            raise NotFound(
                f"table `{table.full_name}` has no column `{name}` for its primary key", hint=did_you_mean(name, own)
            )
    if table.watermark is not None and table.watermark[0] not in table.order:
        raise NotFound(
            f"table `{table.full_name}` has no column `{table.watermark[0]}` for its watermark",
            hint=did_you_mean(table.watermark[0], table.order),
        )


def is_bounded(table: ConnectorTable) -> bool:
    """Whether its rows have an end, so that a plain SELECT can read them."""
    return definition_of(table.connector, table.full_name).is_bounded(table)


def local_reader(table: ConnectorTable, *, paced: bool = True) -> DatagenReader | FilesReader:
    """Who reads a table whose rows this process makes or finds by itself. Unpaced, made rows come at once."""
    if table.connector == DATAGEN.name:
        return DatagenReader(table, paced=paced)
    if table.connector == FILESYSTEM.name:
        return FilesReader(table)
    raise InvalidArgument(
        f"rows of table `{table.full_name}` are not read by position",
        hint="write the INSERT into a file, and type: lakebed run FILE",
    )
