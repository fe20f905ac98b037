"""Tables of a MariaDB that SQL defines land in the lake; the password is in nothing that is shown or kept."""

from __future__ import annotations

import logging
import os
import traceback
from pathlib import Path
from typing import Any

import pytest
from tests.patience import PATIENCE_S

import lakebed
import lakebed.cdc
from lakebed.connectors import RowInsert, land, landing_groups, reading_query
from lakebed.connectors.databases import followed, source_options
from lakebed.errors import InvalidArgument, LakebedError, NotFound
from lakebed.sql.connectors.table import ConnectorTable
from lakebed.sql.parse import parse
from lakebed.sql.session import connector_tables
from lakebed.testing.sql_server import USER

from .conftest import Database

pytestmark = pytest.mark.spark

_SECRET = "Xyl0ph0ne-Pa55"


def _text(db: Database, name: str, columns: str, password: str, user: str = USER, **more: str) -> str:
    options = {
        "connector": "mysql-cdc",
        "hostname": "127.0.0.1",
        "port": str(db.server.port),
        "username": user,
        "password": password,
        "database-name": db.name,
        "table-name": name.removeprefix("cdc_"),
        **{key.replace("_", "-"): value for key, value in more.items()},
    }
    listed = ",\n".join(f"'{key}' = '{value}'" for key, value in options.items())
    return f"CREATE TEMPORARY TABLE {name} ({columns}) WITH ({listed})"


def _define(lake: lakebed.Lake, text: str) -> ConnectorTable:
    lake.sql(text)
    return list(connector_tables(lake).values())[-1]


def _catch_up(lake: lakebed.Lake, place: Path, *tables: ConnectorTable) -> None:
    run = land(lake, tables, place / "checkpoint", trigger={"availableNow": True})
    assert run.wait(PATIENCE_S)


@pytest.fixture
def keeper(db: Database) -> Any:
    """A user whose password is no word that stands anywhere else."""
    db.run(f"CREATE USER keeper IDENTIFIED BY '{_SECRET}'", "GRANT ALL ON *.* TO keeper")
    yield "keeper"
    db.run("DROP USER keeper")


def test_tables_land_and_no_password_is_kept(
    db: Database, keeper: str, spark: Any, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Tables land; definitions, errors, logs, the lake and the checkpoint hold no secret.

    Each is followed under a number of its own, so they are two syncs.
    """
    caplog.set_level(logging.DEBUG)
    db.run("CREATE TABLE orders (id bigint PRIMARY KEY, amount decimal(10, 2), at timestamp(3))")
    db.run("CREATE TABLE customers (id int PRIMARY KEY, name varchar(20))")
    db.run("INSERT INTO orders VALUES (1, 1.5, '2024-01-01 12:00:00'), (2, 2.5, NULL)")
    db.run("INSERT INTO customers VALUES (7, 'ada')")
    lake = lakebed.connect(tmp_path / "warehouse", spark=spark)
    columns = "id BIGINT, amount DECIMAL(10,2), twice AS amount * 2, PRIMARY KEY (id) NOT ENFORCED"
    texts = [_text(db, "cdc_orders", columns, _SECRET, keeper)]
    texts.append(_text(db, "cdc_customers", "id INT, name STRING", _SECRET, keeper, server_id="5400-5408"))
    tables = [_define(lake, text) for text in texts]
    assert landing_groups(tables) == [(tables[0],), (tables[1],)]
    _catch_up(lake, tmp_path / "a", tables[0])
    _catch_up(lake, tmp_path / "b", tables[1])
    db.run("DELETE FROM orders WHERE id = 2", "INSERT INTO customers VALUES (8, 'bob')")
    _catch_up(lake, tmp_path / "a", tables[0])
    _catch_up(lake, tmp_path / "b", tables[1])
    found = [lake.query(reading_query(lake, table), engine="duckdb").fetchall() for table in tables]
    assert [(row[0], float(row[2])) for row in found[0]] == [(1, 3.0)]
    assert sorted(found[1]) == [(7, "ada"), (8, "bob")]
    told = [repr(tables), str(tables), repr(parse(texts[0])), caplog.text, repr(connector_tables(lake))]
    told += [
        str(lake.sql(text).collect())
        for text in ("SHOW CREATE TABLE cdc_orders", "DESCRIBE EXTENDED cdc_orders", "SHOW TABLES")
    ]
    bad = [
        lambda: land(lake, [_define(lake, texts[0].replace("orders", "nope"))], tmp_path / "c"),
        lambda: land(lake, tables, tmp_path / "c"),
        lambda: lake.sql(texts[0]),
        lambda: lake.sql(texts[0].replace("cdc_orders", "x").replace("'port'", "'prot'")),
        lambda: lake.sql(texts[0].replace("cdc_orders", "y").replace("'port' = '", "'port' = 'x")),
        lambda: lake.sql(texts[0].replace("cdc_orders", "z").replace(f"'{_SECRET}'", f"'{_SECRET}' '{_SECRET}'")),
        lambda: lake.sql(texts[0].replace("cdc_orders", "z").replace(f"'{_SECRET}'", f"'a'{_SECRET}'b'")),
        lambda: lake.sql("SELECT * FROM cdc_orders"),
        lambda: lake.sql("INSERT INTO cdc_orders SELECT 1, 2"),
        lambda: RowInsert(lake, tables[0], "t", "SELECT * FROM cdc_orders", name="n", database="default").check(),
    ]
    for call in bad:
        with pytest.raises(LakebedError) as raised:
            call()
        told.append("".join(traceback.format_exception_only(raised.value)))
    assert [text for text in told if _SECRET in text] == []
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert [path for path in files if _SECRET.encode() in path.read_bytes()] == []
    assert files


def test_a_password_comes_from_the_environment(
    db: Database, keeper: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`${env:NAME}` is read when the sync starts, not before: until then nobody need have set it."""
    db.run("CREATE TABLE t (id int PRIMARY KEY)", "INSERT INTO t VALUES (1)")
    lake = lakebed.connect(tmp_path / "warehouse")
    table = _define(lake, _text(db, "cdc_t", "id INT", "${env:LAKEBED_TEST_PASSWORD}", keeper))
    assert "${env:LAKEBED_TEST_PASSWORD}" in str(lake.sql("SHOW CREATE TABLE cdc_t").collect())
    with pytest.raises(LakebedError, match="LAKEBED_TEST_PASSWORD"):
        land(lake, [table], tmp_path / "checkpoint")
    monkeypatch.setitem(os.environ, "LAKEBED_TEST_PASSWORD", _SECRET)
    assert [str(source.name) for source in followed([table])["cdc_t"]] == [f"{db.name}.t"]
    # Workers look it up themselves: what travels to them is its name.
    options = source_options([table], ".*")
    assert options["password_env"] == "LAKEBED_TEST_PASSWORD"
    assert _SECRET not in str(options)
    monkeypatch.setitem(os.environ, "LAKEBED_TEST_PASSWORD", "wrong-" + _SECRET)
    with pytest.raises(InvalidArgument) as raised:
        land(lake, [table], tmp_path / "checkpoint")
    assert _SECRET not in str(raised.value)
    missing = _define(lake, _text(db, "cdc_nope", "id INT", _SECRET, keeper))
    with pytest.raises(NotFound, match="`nope`"):
        land(lake, [missing], tmp_path / "other")
