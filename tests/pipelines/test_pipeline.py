"""A pipeline as its author writes it: tried before it runs, made once, resumed, refused with its line."""

from __future__ import annotations

from pathlib import Path

import pytest

import lakebed
from lakebed import Lake
from lakebed.errors import AlreadyExists, InvalidArgument, LakebedError, NotFound, Unsupported

IN_ORDER = """
CREATE TABLE orders (id BIGINT, cust INT, amount DECIMAL(10, 2), PRIMARY KEY (id) NOT ENFORCED)
  WITH ('changelog-producer' = 'lookup', 'bucket' = '1');
CREATE TABLE customers (cid INT, name STRING, PRIMARY KEY (cid) NOT ENFORCED)
  WITH ('changelog-producer' = 'lookup', 'bucket' = '1');
CREATE MATERIALIZED TABLE wide AS SELECT o.id, o.amount, c.name FROM orders o JOIN customers c ON o.cust = c.cid;
CREATE MATERIALIZED TABLE totals AS SELECT name, sum(amount) AS total FROM wide GROUP BY name;
"""


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    """An empty one on disk."""
    return lakebed.connect(tmp_path / "lake")


def _files(lake: Lake, tmp_path: Path) -> set[str]:
    return {str(each) for each in tmp_path.rglob("*")}


def _totals(lake: Lake) -> list[tuple[object, ...]]:
    return [tuple(row) for row in lake.query("SELECT name, total FROM totals ORDER BY name").fetchall()]


def _add_rows(lake: Lake) -> None:
    lake.sql("INSERT INTO customers VALUES (1, 'ann'), (2, 'bo')")
    lake.sql("INSERT INTO orders VALUES (1, 1, 10), (2, 1, 5), (3, 2, 7)")


def test_a_check_changes_nothing(lake: Lake, tmp_path: Path) -> None:
    """All is tried, each node with what it reads and how it follows changes; no file is made."""
    lake.create_database("default", if_not_exists=True)
    before = _files(lake, tmp_path)
    planned = lakebed.pipeline(lake, IN_ORDER).check()
    assert [(each.name, each.reads, each.is_new) for each in planned] == [
        ("default.wide", ("default.orders", "default.customers"), True),
        ("default.totals", ("default.wide",), True),
    ]
    assert "inner join" in planned[0].plan
    assert _files(lake, tmp_path) == before


def test_it_catches_up_and_a_second_time_does_nothing(lake: Lake) -> None:
    """Tables are made at the first run; the second finds all as it should be, and commits nothing."""
    pipeline = lakebed.pipeline(lake, IN_ORDER)
    pipeline.run(once=True)
    _add_rows(lake)
    assert {name: state.steps for name, state in pipeline.run(once=True).states.items()} == {
        "default.wide": 1,
        "default.totals": 1,
    }
    assert [(name, int(total)) for name, total in _totals(lake)] == [("ann", 15), ("bo", 7)]  # type: ignore[call-overload]
    before = [lake.table(name).latest_snapshot() for name in ("wide", "totals")]
    again = lakebed.pipeline(lake, IN_ORDER).run(once=True)
    assert [state.steps for state in again.states.values()] == [0, 0]
    assert [lake.table(name).latest_snapshot() for name in ("wide", "totals")] == before


def test_an_insert_that_is_laid_out_otherwise_goes_on(lake: Lake) -> None:
    """Comments and spaces make no other INSERT, which would send all rows once more; a quoted text is."""
    written = "CREATE TABLE IF NOT EXISTS kept (note STRING, id INT); INSERT INTO kept SELECT {}"
    lake.create_table("log", {"id": "INT"})
    lake["log"].write([{"id": 1}])
    for text in ("'A  b', id FROM log", "'A  b',id -- it's why\n FROM log", "'A  b', /* ; */ id\r\n FROM log"):
        lakebed.pipeline(lake, written.format(text)).run(once=True)
        assert lake["kept"].count() == 1
    (planned,) = lakebed.pipeline(lake, written.format("'A b', id FROM log")).check()
    assert planned.is_new


def test_in_the_background_it_follows_writers(lake: Lake) -> None:
    """What is written shows up in the last table without anybody asking."""
    with lakebed.pipeline(lake, IN_ORDER).start(interval=0.05) as run:
        _wait_for(lambda: lake.has_table("totals"))
        _add_rows(lake)
        _wait_for(lambda: len(_totals(lake)) == 2)
        lake.sql("DELETE FROM orders WHERE id = 3")
        _wait_for(lambda: len(_totals(lake)) == 1)
        assert all(state.error is None for state in run.states.values())
    assert not run.is_active


def test_functions_of_python_are_the_same(lake: Lake) -> None:
    """Decorated functions give queries; their names are those of the tables."""
    pipeline = lakebed.pipeline(lake, IN_ORDER.partition("CREATE MATERIALIZED")[0])

    @pipeline.materialized_table
    def wide() -> str:
        """Orders with names."""
        return "SELECT o.id, o.amount, c.name FROM orders o JOIN customers c ON o.cust = c.cid"

    @pipeline.materialized_table(name="totals", freshness="1 s")
    def of_each() -> str:
        return "SELECT name, sum(amount) AS total FROM wide GROUP BY name"

    pipeline.run(once=True)
    _add_rows(lake)
    pipeline.run(once=True)
    assert len(_totals(lake)) == 2
    assert lake.table("wide").comment == "Orders with names."
    assert lake.materialized("totals").freshness == "1 s"


@pytest.mark.parametrize(
    ("text", "kind", "message"),
    [
        ("CREATE TABLE a (i INT);\nSELEC 1", InvalidArgument, "line 1: "),
        ("CREATE TABLE a (i INT);\nINSERT INTO a VALUES (1)", Unsupported, "line 2: INSERT ... VALUES"),
        ("CREATE TABLE a (i INT);\n\nDROP TABLE a", Unsupported, "line 3: DROP TABLE would be done again"),
        ("CREATE TABLE a (i INT);\nDELETE FROM a WHERE i = 1", Unsupported, "line 2: DELETE would be done again"),
        ("CREATE TABLE a AS SELECT 1 AS i", Unsupported, "line 1: a pipeline would fill or replace the table again"),
        ("CREATE MATERIALIZED TABLE v AS SELECT * FROM nowhere", NotFound, "line 1: .*nowhere"),
        ("SET 'execution.runtime-mode' = 'batch'", Unsupported, "line 1: a pipeline does not run in batch mode"),
        (
            "CREATE TABLE a (i INT);\nCREATE MATERIALIZED TABLE v AS SELECT i, rand() AS r FROM a",
            LakebedError,
            "line 2: .*rand",
        ),
    ],
)
def test_mistakes_are_found_before_anything_is_made(
    lake: Lake, tmp_path: Path, text: str, kind: type[LakebedError], message: str
) -> None:
    """Each with its line; the statements before it have not been carried out."""
    with pytest.raises(kind, match=message):
        lakebed.pipeline(lake, text).run(once=True)
    assert not any("default.db" in name for name in _files(lake, tmp_path))


def test_a_table_that_is_there_must_be_the_same(lake: Lake) -> None:
    """A pipeline that was edited does not silently write into the old table."""
    lakebed.pipeline(lake, IN_ORDER).run(once=True)
    for old, new, what in (
        ("amount DECIMAL(10, 2)", "amount DECIMAL(12, 2)", "other columns"),
        ("PRIMARY KEY (id)", "PRIMARY KEY (id, cust)", "other columns|another primary key"),
        ("'bucket' = '1'", "'bucket' = '2'", "another value of option `bucket`"),
        ("sum(amount)", "max(amount)", "another query"),
    ):
        with pytest.raises(AlreadyExists, match=what):
            lakebed.pipeline(lake, IN_ORDER.replace(old, new, 1)).check()


def test_a_view_is_replaced_where_that_is_written(lake: Lake) -> None:
    """OR REPLACE gives it the new query at the next start."""
    text = IN_ORDER.replace("CREATE MATERIALIZED TABLE totals", "CREATE OR REPLACE MATERIALIZED VIEW totals")
    lakebed.pipeline(lake, text).run(once=True)
    _add_rows(lake)
    lakebed.pipeline(lake, text.replace("sum(amount)", "max(amount)")).run(once=True)
    assert [int(total) for _, total in _totals(lake)] == [10, 7]  # type: ignore[call-overload]


def test_databases_and_settings_belong_to_the_pipeline(lake: Lake) -> None:
    """USE counts for what is written behind it, and not for the lake afterwards."""
    lakebed.pipeline(lake, f"CREATE DATABASE IF NOT EXISTS shop; USE shop; {IN_ORDER}").run(once=True)
    assert lake.tables("shop") == ["customers", "orders", "totals", "wide"]
    assert lake.current_database == "default"


def test_a_query_that_is_no_text_is_refused(lake: Lake) -> None:
    """Changes of a DataFrame can not be followed."""
    pipeline = lakebed.pipeline(lake)
    with pytest.raises(InvalidArgument, match="function `f` gives int, not a query"):
        pipeline.materialized_table(name="v")(f)


def f() -> int:
    return 1


def _wait_for(is_so: object, seconds: float = 60) -> None:
    import time

    end = time.monotonic() + seconds
    while not is_so():  # type: ignore[operator]
        assert time.monotonic() < end, "it did not come to pass"
        time.sleep(0.05)
