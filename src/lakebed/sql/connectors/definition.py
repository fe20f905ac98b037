"""What a connector is to SQL: its options, what it can be used for, and what else it asks of a table."""

from __future__ import annotations

from collections.abc import Callable

from lakebed.records import dataclass
from lakebed.sql.connectors.options import ConnectorOption
from lakebed.sql.connectors.table import ConnectorTable


def _nothing_more(table: ConnectorTable) -> None:
    return None


def _never(table: ConnectorTable) -> bool:
    return False


@dataclass(frozen=True)
class ConnectorDefinition:
    """One connector of the registry. A table of it can be read, or written, or both."""

    name: str
    says: str
    options: tuple[ConnectorOption, ...]
    is_source: bool = False
    is_sink: bool = False
    metadata: tuple[str, ...] = ()
    """Keys of METADATA columns that there are."""
    check: Callable[[ConnectorTable], None] = _nothing_more
    """What else has to be right, beyond names and kinds of options."""
    is_bounded: Callable[[ConnectorTable], bool] = _never
    """Whether its rows have an end, so that a plain SELECT can read them."""
