"""What depends on the server's version, and how large parts of a copy are."""

from __future__ import annotations

import pytest

from lakebed.cdc.sources.mysql.columns import Column, TableColumns
from lakebed.cdc.sources.mysql.copy.keys import can_be_cut
from lakebed.cdc.sources.mysql.copy.state import rows_at_once
from lakebed.cdc.sources.mysql.server.server import Server


@pytest.mark.parametrize(
    ("version", "mariadb", "orders_keys"),
    [
        ("10.5.29-MariaDB-log", True, False),
        ("10.11.19-MariaDB-0+deb12u1-log", True, True),
        ("11.4.2-MariaDB", True, True),
        ("5.7.44", False, False),
        ("8.0.40", False, True),
        ("9.1.0", False, True),
    ],
)
def test_which_servers_order_keys(version: str, mariadb: bool, orders_keys: bool) -> None:
    """Tables are cut by keys that are no whole numbers only where the server can be asked for their order."""
    assert Server(None, mariadb, version).orders_keys is orders_keys
    text = TableColumns("d", "t", (Column("k", "varchar", False, length=9, charset="utf8mb4"),), ("k",))
    assert can_be_cut(text, orders_keys=orders_keys) is orders_keys
    number = TableColumns("d", "t", (Column("k", "int", False),), ("k",))
    assert can_be_cut(number, orders_keys=orders_keys)


@pytest.mark.parametrize(("row_bytes", "rows"), [(0, 1000), (100, 1000), (1 << 20, 64), (1 << 30, 1)])
def test_parts_of_long_rows_have_fewer(row_bytes: int, rows: int) -> None:
    """A part is held in memory, so it holds fewer rows where they are long, and at least one."""
    assert rows_at_once(TableColumns("d", "t", (), row_bytes=row_bytes), 1000) == rows
