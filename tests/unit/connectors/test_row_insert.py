"""INSERT of rows of a source, one by one: each row counts once, whoever dies when, whoever else writes."""

from __future__ import annotations

import datetime as dt
import random
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from tests.unit.warehouse_under_test import Warehouse

import lakebed
from lakebed.connectors import RowInsert, is_row_by_row, landed_name, landing_insert, reader, reading_query, sink
from lakebed.errors import InvalidArgument, InvalidData, LakebedError, NotFound, Unsupported
from lakebed.sql.connectors.table import ConnectorTable
from lakebed.sql.session import connector_tables
from lakebed.table.writer import TableWriter

_ROWS = 500
_OPTIONS = {
    "connector": "datagen",
    "rows-per-second": "0",
    "number-of-rows": str(_ROWS),
    "fields.id.kind": "sequence",
    "fields.id.start": "1",
    "fields.id.end": str(_ROWS),
    "fields.v.min": "0",
    "fields.v.max": "9",
}


def defined(lake: lakebed.Lake, name: str, columns: str, **options: str) -> ConnectorTable:
    """A table of another system."""
    given = ", ".join(f"'{key}' = '{value}'" for key, value in options.items())
    lake.sql(f"CREATE OR REPLACE TABLE {name} ({columns}) WITH ({given})")
    return connector_tables(lake)["default", name]


def numbers(lake: lakebed.Lake) -> ConnectorTable:
    """Rows with ids from 1 on."""
    return defined(lake, "g", "id BIGINT, v INT, w AS v + 1", **_OPTIONS)


def insert(lake: lakebed.Lake, query: str = "SELECT id, w FROM g", **more: Any) -> RowInsert:
    """An INSERT into table `t`, as a new process would make it."""
    given = {"name": "job-1", "database": "default", **more}
    return RowInsert(lake, numbers(lake), "t", query, **given)


def run(lake: lakebed.Lake, limit: int = 70, **more: Any) -> None:
    """Steps until the source has ended, each by a new INSERT."""
    while True:
        each = insert(lake, **more)
        each.step(limit)
        if each.has_ended:
            return


def ids(lake: lakebed.Lake) -> list[int]:
    """The ids in the target, sorted."""
    return sorted(lake.table("t").to_arrow()["id"].to_pylist())


_TARGETS = {
    "append": "id BIGINT, w INT",
    "fixed": "id BIGINT, w INT, PRIMARY KEY (id) NOT ENFORCED",
    "dynamic": "id BIGINT, w INT, PRIMARY KEY (id) NOT ENFORCED",
    "partitioned": "id BIGINT, w INT",
}
_CLAUSES = {"fixed": "WITH ('bucket' = '2')", "partitioned": "PARTITIONED BY (w)"}


@pytest.mark.parametrize("kind", list(_TARGETS))
def test_each_row_counts_once_wherever_it_is_stopped(
    warehouse: Warehouse, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Steps die before the commit, and behind it without a word; others write and compact between; nothing is twice."""
    lake = warehouse.lake
    lake.sql(f"CREATE TABLE t ({_TARGETS[kind]}) {_CLAUSES.get(kind, '')}")
    real, chance = TableWriter.commit, random.Random(kind)

    def commit(self: TableWriter) -> Any:
        fate = chance.random()
        if fate < 0.3:
            raise KeyboardInterrupt
        found = real(self)
        if fate < 0.6:
            raise KeyboardInterrupt
        return found

    for _ in range(200):
        one = insert(lake)
        with monkeypatch.context() as patch:
            patch.setattr(TableWriter, "commit", commit)
            try:
                one.step(chance.randint(1, 90))
            except KeyboardInterrupt:
                continue
        if chance.random() < 0.3:
            lake.table("t").compact()
        if chance.random() < 0.3:
            lake.sql("INSERT INTO t VALUES (-1, 0)")
        if one.has_ended:
            break
    assert one.has_ended
    found = ids(lake)
    assert [each for each in found if each > 0] == list(range(1, _ROWS + 1))
    rows = lake.query("SELECT id, w FROM g ORDER BY id").fetchall()
    assert lake.query("SELECT id, w FROM t WHERE id > 0 ORDER BY id").fetchall() == rows


def test_of_two_runners_one_counts(warehouse: Warehouse, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both read the same rows and write them; the second commit is a replay of the first."""
    lake = warehouse.lake
    lake.sql("CREATE TABLE t (id BIGINT, w INT)")
    real = TableWriter.commit
    answers = []

    def commit(self: TableWriter) -> Any:
        monkeypatch.setattr(TableWriter, "commit", real)
        answers.append(insert(lake).step(100))
        return real(self)

    monkeypatch.setattr(TableWriter, "commit", commit)
    answers.append(insert(lake).step(100))
    assert [each.way for each in answers] == ["incremental", "none"]
    assert "first" in answers[1].reason
    assert ids(lake) == list(range(1, 101))


def test_the_state_lives_in_the_target(warehouse: Warehouse) -> None:
    """Expiry, compaction and other writers keep it; a rollback takes it back; a new table begins anew."""
    lake = warehouse.lake
    lake.sql("CREATE TABLE t (id BIGINT, w INT, PRIMARY KEY (id) NOT ENFORCED) WITH ('bucket' = '1')")
    insert(lake).step(100)
    insert(lake).step(100)
    for number in range(3):
        lake.sql(f"INSERT INTO t VALUES ({-1 - number}, 0)")
    lake.table("t").compact()
    lake.table("t").expire_snapshots(retain_max=1, retain_min=1)
    assert insert(lake).step(100).inserted == 100
    assert [each for each in ids(lake) if each > 0] == list(range(1, 301))
    lake.table("t").create_tag("here")
    insert(lake).step(100)
    lake.table("t").rollback_to(tag="here")
    assert insert(lake).lag() == {"default.g": (300, _ROWS)}
    run(lake)
    assert [each for each in ids(lake) if each > 0] == list(range(1, _ROWS + 1))
    lake.sql("DROP TABLE t; CREATE TABLE t (id BIGINT, w INT)")
    run(lake, limit=1000)
    assert len(ids(lake)) == _ROWS


def test_two_inserts_of_one_target_do_not_know_each_other(warehouse: Warehouse) -> None:
    """Each has its own name, position and numbers."""
    lake = warehouse.lake
    lake.sql("CREATE TABLE t (id BIGINT, w INT)")
    for _ in range(5):
        insert(lake, name="a").step(100)
        insert(lake, "SELECT -id, w FROM g WHERE id % 2 = 0", name="b.c").step(100)
    assert ids(lake) == sorted([*range(1, _ROWS + 1), *range(-_ROWS, 0, 2)])


def test_a_name_belongs_to_one_source(warehouse: Warehouse) -> None:
    """A position of one source means nothing to another: the second INSERT of that name is refused."""
    lake = warehouse.lake
    lake.sql("CREATE TABLE t (id BIGINT, w INT)")
    insert(lake).step(10)
    other = defined(lake, "h", "id BIGINT, w INT", **{"connector": "datagen", "number-of-rows": "3"})
    with warehouse.refuses(InvalidArgument, "`job-1`", "default.g", "default.h"):
        RowInsert(lake, other, "t", "SELECT * FROM h", name="job-1", database="default").check()


def test_rows_that_nobody_wants_are_passed_over(warehouse: Warehouse) -> None:
    """A step without a row for the target commits nothing, and the next one goes on behind it."""
    lake = warehouse.lake
    lake.sql("CREATE TABLE t (id BIGINT, w INT)")
    one = insert(lake, "SELECT id, w FROM g WHERE id > 450")
    reasons = [one.step(100).reason for _ in range(6)]
    assert reasons[:4] == ["no row that came is wanted"] * 4
    assert reasons[5] == "the source has ended"
    assert len(lake.table("t").snapshots()) == 1
    assert ids(lake) == list(range(451, 501))


def test_columns_and_types_are_those_of_an_insert(warehouse: Warehouse) -> None:
    """By position or by a list, cast as INSERT casts; what is not listed is null; what does not fit is named."""
    lake = warehouse.lake
    lake.sql("CREATE TABLE t (id BIGINT, w STRING, x DOUBLE)")
    one = insert(lake, "SELECT v, id FROM g WHERE id <= 2", columns=("W", "id"))
    one.check()
    one.step()
    assert sorted((row["id"], type(row["w"]), row["x"]) for row in lake.table("t").to_arrow().to_pylist()) == [
        (1, str, None),
        (2, str, None),
    ]
    with warehouse.refuses(InvalidData, "2 values for 3 columns"):
        insert(lake).check()
    with warehouse.refuses(NotFound, "`nope`"):
        insert(lake, columns=("nope", "id")).check()


def test_what_can_not_run_is_refused_before(warehouse: Warehouse) -> None:
    """Groupings, joins, other tables, targets that are no tables to write to, and sources that are no rows."""
    lake = warehouse.lake
    lake.sql("CREATE TABLE t (id BIGINT, w BIGINT)")
    for query, text in (
        ("SELECT v, count(*) FROM g GROUP BY v", "group"),
        ("SELECT g.id, b.id FROM g JOIN bystander AS b ON g.id = b.id", "join"),
        ("SELECT DISTINCT id, v FROM g", "group"),
        ("SELECT id, v FROM g LIMIT 3", "limit"),
        ("SELECT id, sum(v) OVER (ORDER BY id) FROM g", "window"),
        ("SELECT id, id FROM bystander", "other tables"),
        ("SELECT id, v FROM g WHERE id IN (SELECT id FROM bystander)", "default.g"),
    ):
        with warehouse.refuses(Unsupported, text, "land"):
            insert(lake, query).check()
        assert not is_row_by_row(lake, numbers(lake), query, "default")
    assert is_row_by_row(lake, numbers(lake), "SELECT id + 1, upper('x') FROM g WHERE v > 3 ORDER BY id", "default")
    assert is_row_by_row(lake, numbers(lake), "SELECT id, v FROM g UNION ALL SELECT id, w FROM default.g", "default")
    insert(lake, "SELECT id, v FROM g UNION ALL SELECT id, w FROM g").check()
    lake.sql("CREATE MATERIALIZED TABLE m AS SELECT id FROM bystander")
    with warehouse.refuses(InvalidArgument, "materialized"):
        RowInsert(lake, numbers(lake), "m", "SELECT id FROM g", name="n", database="default").check()
    with warehouse.refuses(NotFound, "`default.nope`"):
        RowInsert(lake, numbers(lake), "nope", "SELECT id FROM g", name="n", database="default").check()
    printed = defined(lake, "p", "id INT", connector="print")
    with warehouse.refuses(Unsupported, "to write to"):
        reader(printed)
    with warehouse.refuses(Unsupported, "is read, not written", "`print`"):
        sink(numbers(lake), "n")


def test_a_source_of_rows_lands(warehouse: Warehouse, tmp_path: Path) -> None:
    """All columns but the computed ones are stored, with options of the definition; what reads it sees them all."""
    lake = warehouse.lake
    for name in ("a", "b"):
        (tmp_path / f"{name}.csv").write_text(f"1,{name}\n2,{name}\n")
    options = {"connector": "filesystem", "path": str(tmp_path), "format": "csv", "landing.bucket": "-1"}
    table = defined(lake, "f", "id INT, twice AS id * 2, name STRING", **options)
    one = landing_insert(lake, table)
    one.check()
    assert landed_name(table) == "default.landed__f"
    while not one.has_ended:
        one = landing_insert(lake, table)
        one.step(3)
    assert lake.table("landed__f").columns == ["id", "name"]
    assert lake.table("landed__f").options["bucket"] == "-1"
    found = lake.query(f"SELECT * FROM ({reading_query(lake, table)})").arrow()
    assert found.schema.names == ["id", "twice", "name"]
    assert sorted(tuple(row.values()) for row in found.to_pylist()) == [
        (1, 2, "a"),
        (1, 2, "b"),
        (2, 4, "a"),
        (2, 4, "b"),
    ]


def test_what_a_query_does_not_use_is_left_out(warehouse: Warehouse) -> None:
    """Computed columns come as they are asked for; the others always do, in their order."""
    lake = warehouse.lake
    table = defined(lake, "q", "a AS PROCTIME(), b CHAR(3), c AS 1, d INT", connector="datagen")
    landing_insert(lake, table)
    assert str(lake.table("landed__q").schema.fields[0].type) == "VARCHAR(3)"
    source = "FROM `default`.`landed__q`"
    assert reading_query(lake, table, []) == f"SELECT `b`, `d` {source}"
    assert reading_query(lake, table, ["c"]) == f"SELECT `b`, 1 AS `c`, `d` FROM (SELECT `b`, `d` {source})"
    assert reading_query(lake, table).startswith("SELECT current_timestamp() AS `a`, `b`, 1 AS `c`, `d` FROM (")


@pytest.fixture
def printed(warehouse: Warehouse) -> ConnectorTable:
    return defined(warehouse.lake, "p", "a INT, b STRING", connector="print", **{"print-identifier": "x"})


def test_rows_are_printed_with_their_kinds(
    warehouse: Warehouse, printed: ConnectorTable, capsys: pytest.CaptureFixture[str]
) -> None:
    """As Flink prints them; a black hole takes the same and says nothing; rows without kinds are refused."""
    rows = pa.table(
        {
            "_row_kind": ["+I", "-U", "+U", "-D"],
            "a": pa.array([1, 2, None, 4], pa.int32()),
            "b": [[1, None], [], None, [3]],
            "c": pa.array([dt.datetime(2024, 1, 2), dt.datetime(2024, 1, 2, 3, 4, 5, 600_000), None, None]),
            "d": [True, False, None, None],
            "e": pa.array([{"x": 1, "y": "z"}] * 4),
        }
    )
    sink(printed, "n").write(rows, {})
    assert capsys.readouterr().out.splitlines() == [
        "x> +I[1, [1, null], 2024-01-02T00:00, true, +I[1, z]]",
        "x> -U[2, [], 2024-01-02T03:04:05.600, false, +I[1, z]]",
        "x> +U[null, null, null, null, +I[1, z]]",
        "x> -D[4, [3], null, null, +I[1, z]]",
    ]
    hole = sink(defined(warehouse.lake, "h", "a INT", connector="blackhole"), "n")
    hole.write(rows, {})
    assert capsys.readouterr().out == ""
    for each in (sink(printed, "n"), hole):
        with pytest.raises(LakebedError, match="_row_kind"):
            each.write(rows.drop(["_row_kind"]), {})


def test_rows_of_a_source_are_printed(
    warehouse: Warehouse, printed: ConnectorTable, capsys: pytest.CaptureFixture[str]
) -> None:
    """An INSERT into a sink, step by step, in the types of the sink; the lake is not touched. Sources take nothing."""
    lake = warehouse.lake
    before = warehouse.contents()
    one = RowInsert(lake, numbers(lake), "p", "SELECT id, 'x' || id FROM g WHERE id > 1", name="n", database="default")
    one.check()
    assert (one.step(2).inserted, one.step(2).inserted) == (1, 2)
    assert one.lag() == {"default.g": (4, _ROWS)}
    assert capsys.readouterr().out.splitlines() == ["x> +I[2, x2]", "x> +I[3, x3]", "x> +I[4, x4]"]
    while not one.has_ended:
        one.step()
    assert len(capsys.readouterr().out.splitlines()) == _ROWS - 4
    assert warehouse.contents() == before
    with warehouse.refuses(Unsupported, "is read, not written"):
        RowInsert(lake, numbers(lake), "g", "SELECT * FROM g", name="n", database="default")
    with warehouse.refuses(InvalidData, "1 values for 2 columns"):
        RowInsert(lake, numbers(lake), "p", "SELECT id FROM g", name="n", database="default").check()
    del printed
