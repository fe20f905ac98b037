"""The SELECT through which a query sees a table of another system: declared columns in their order and types."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping

from lakebed.sql.connectors.table import ConnectorTable
from lakebed.sql.words.names import quoted
from lakebed.types.logical import ArrayType, AtomicType, DataType, MapType, MultisetType, RowType, TypeRoot

_TYPES = {
    TypeRoot.VARCHAR: "STRING",
    TypeRoot.CHAR: "STRING",
    TypeRoot.BINARY: "BINARY",
    TypeRoot.VARBINARY: "BINARY",
    TypeRoot.TIMESTAMP: "TIMESTAMP_NTZ",
    TypeRoot.TIMESTAMP_LTZ: "TIMESTAMP_LTZ",
}


def type_text(data_type: DataType) -> str:
    """The type as CAST takes it."""
    match data_type:
        case ArrayType(element):
            return f"ARRAY<{type_text(element)}>"
        case MultisetType(element):
            return f"MAP<{type_text(element)}, INT>"
        case MapType(key, value):
            return f"MAP<{type_text(key)}, {type_text(value)}>"
        case RowType(fields):
            return f"STRUCT<{', '.join(f'{quoted(part.name)}: {type_text(part.type)}' for part in fields)}>"
        case AtomicType(root=TypeRoot.DECIMAL, precision=precision, scale=scale):
            return f"DECIMAL({precision}, {scale})"
        case AtomicType(root=root):
            return _TYPES.get(root, root.value)


def reading_text(
    table: ConnectorTable,
    source: str,
    stored: Mapping[str, DataType] | None = None,
    metadata_name: Callable[[str], str] | None = None,
    computed: Collection[str] | None = None,
) -> str:
    """The SELECT over what holds the columns of the source and of its metadata. `stored` are the types that they have
    there, if others than declared; `metadata_name` says what the columns of metadata are called there. Of computed
    columns only those in `computed` come, if it is given.
    """
    shown = []
    for name, declared, origin in _origins(table, metadata_name):
        found = None if stored is None else stored.get(origin)
        value = quoted(origin)
        if found is not None and type_text(found) != type_text(declared):
            value = f"CAST({value} AS {type_text(declared)})"
        shown.append(value if value == quoted(name) else f"{value} AS {quoted(name)}")
    inner = f"SELECT {', '.join(shown)} FROM {source}"
    values = {name: text for name, text in table.computed.items() if computed is None or name in computed}
    if not values:  # columns that are not computed come in their order
        return inner
    listed = [
        f"{values[name]} AS {quoted(name)}" if name in values else quoted(name)
        for name in table.order
        if name in values or name not in table.computed
    ]
    return f"SELECT {', '.join(listed)} FROM ({inner})"


def _origins(table: ConnectorTable, metadata_name: Callable[[str], str] | None) -> list[tuple[str, DataType, str]]:
    """Name, type, and name where it is stored, of each column that is not computed; in their order."""
    types = {field.name: field.type for field in table.columns}
    found: list[tuple[str, DataType, str]] = []
    for name in table.order:
        if name in types:
            found.append((name, types[name], name))
        elif name in table.metadata:
            column = table.metadata[name]
            found.append((name, column.type, name if metadata_name is None else metadata_name(column.key)))
    return found
