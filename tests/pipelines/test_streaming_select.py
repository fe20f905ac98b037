"""A SELECT in streaming mode: what it tells, added up, is what the query gives at rest."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from tests.patience import PATIENCE_S
from tests.thinning import by_day

import lakebed
from lakebed import Lake
from lakebed.errors import InvalidArgument, InvalidSchema, LakebedError, NotFound, Unsupported

STREAMING = "SET 'execution.runtime-mode' = 'streaming'; SET 'execution.checkpointing.interval' = '20 ms'"
BATCH = "SET 'execution.runtime-mode' = 'batch'"

TABLES = {
    "none": "'changelog-producer' = 'none'",
    "input": "'changelog-producer' = 'input'",
    "lookup": "'changelog-producer' = 'lookup'",
    "full-compaction": "'changelog-producer' = 'full-compaction', 'full-compaction.delta-commits' = '1'",
}
QUERIES = (
    "SELECT * FROM t",
    "SELECT upper(city) AS place, v + 1 FROM t WHERE v > 1",
    "SELECT city, count(*), sum(v) FROM t GROUP BY city",
    "SELECT count(*), sum(weight) FROM t",
    "SELECT x.id, y.id FROM t x JOIN t y ON x.city = y.city AND x.id < y.id",
    "SELECT city FROM t UNION ALL SELECT name FROM cities",
    "SELECT c.name, t.v FROM cities c LEFT JOIN t ON c.name = t.city",
    "SELECT id, v FROM t ORDER BY v DESC, id LIMIT 2",
    "WITH big AS (SELECT * FROM t WHERE v > 1) SELECT DISTINCT city FROM big",
)


@pytest.fixture
def lake(tmp_path: Path) -> Iterator[Lake]:
    """A lake in streaming mode, with a table of rows that change, and one beside it."""
    lake = lakebed.connect(tmp_path / "lake")
    lake.sql(STREAMING)
    _define(lake, TABLES["lookup"])
    yield lake
    for job in lake.jobs():
        job.stop()
    assert not lake.is_spark_started


def _define(lake: Lake, options: str) -> None:
    lake.sql(
        "CREATE OR REPLACE TABLE t (id BIGINT, city STRING, v INT, weight DOUBLE, PRIMARY KEY (id) NOT ENFORCED) "
        f"WITH ('bucket' = '1', {options}); CREATE TABLE IF NOT EXISTS cities (name STRING)"
    )


def _in_batch(lake: Lake, text: str) -> None:
    """What others do meanwhile."""
    lakebed.connect(lake.location).sql(text)


def _rows(table: pa.Table) -> list[tuple[Any, ...]]:
    return list(zip(*(column.to_pylist() for column in table.columns), strict=True))


def _add_up(shown: Counter[tuple[Any, ...]], changes: pa.Table) -> None:
    """Applies changes; what goes must have come."""
    for kind, *row in _rows(changes):
        shown[tuple(row)] += 1 if kind in ("+I", "+U") else -1
        assert kind in ("+I", "-U", "+U", "-D")
    assert min(shown.values(), default=0) >= 0


def _until_equal(lake: Lake, live: Any, query: str, shown: Counter[tuple[Any, ...]]) -> None:
    end = time.monotonic() + PATIENCE_S
    while +shown != (wanted := Counter(tuple(row) for row in lake.query(query).fetchall())):
        assert time.monotonic() < end, (query, shown, wanted)
        found = live.poll(0.5)
        if found is not None:
            _add_up(shown, found)


@pytest.mark.parametrize("kind", by_day(TABLES, "lookup"))
def test_changes_add_up_to_the_query(lake: Lake, kind: str) -> None:
    """For each maker of a changelog and each kind of query: rows that come, change and go."""
    _define(lake, TABLES[kind])
    queries = QUERIES if kind in ("none", "lookup") else QUERIES[:3]
    lives = {query: (lake.sql(query), Counter[tuple[Any, ...]]()) for query in queries}
    for text in (
        "INSERT INTO t VALUES (1, 'a', 1, 0.5), (2, 'b', 2, 0.25); INSERT INTO cities VALUES ('a'), ('a'), ('z')",
        "INSERT INTO t VALUES (1, 'b', 5, 1.5), (3, 'a', 3, NULL), (4, NULL, 4, 2)",
        "DELETE FROM t WHERE id = 2; UPDATE t SET v = v + 1",
        "DELETE FROM t WHERE v > 0; INSERT INTO cities VALUES ('q')",
    ):
        _in_batch(lake, text)
        for query, (live, shown) in lives.items():
            _until_equal(lake, live, query, shown)


def test_below_are_other_kinds_of_tables(lake: Lake) -> None:
    """Rows that are only appended, and a materialized table, which somebody else refreshes."""
    _in_batch(
        lake, "CREATE TABLE log (a INT); CREATE MATERIALIZED TABLE sums AS SELECT city, sum(v) s FROM t GROUP BY city"
    )
    queries = ("SELECT a * 2 FROM log WHERE a > 0", "SELECT * FROM sums", "SELECT s, count(*) FROM sums GROUP BY s")
    lives = {query: (lake.sql(query), Counter[tuple[Any, ...]]()) for query in queries}
    assert [live.only_grows for live, _ in lives.values()] == [True, False, False]
    for text in ("INSERT INTO log VALUES (0), (1), (1); INSERT INTO t VALUES (1, 'a', 1, 1)", "UPDATE t SET v = 3"):
        _in_batch(lake, f"{text}; REFRESH MATERIALIZED VIEW sums")
        for query, (live, shown) in lives.items():
            _until_equal(lake, live, query, shown)


def test_old_and_new_stand_together(lake: Lake) -> None:
    """Of a group that changes, the old row comes just before the new one, and each is told by its kind."""
    lake.sql("INSERT INTO t VALUES (1, 'a', 1, 0), (2, 'b', 2, 0), (3, 'c', 3, 0)")
    with lake.sql("SELECT city, sum(v) AS s FROM t GROUP BY city") as live:
        assert live.columns == ["rowkind", "city", "s"]
        assert sorted(_rows(next(live))) == [("+I", "a", 1), ("+I", "b", 2), ("+I", "c", 3)]
        _in_batch(lake, "INSERT INTO t VALUES (4, 'a', 9, 0), (5, 'b', 9, 0), (3, 'd', 3, 0)")
        assert _rows(next(live)) == [
            ("-D", "c", 3), ("-U", "a", 1), ("+U", "a", 10), ("-U", "b", 2), ("+U", "b", 11), ("+I", "d", 3)
        ]  # fmt: skip
    assert live.poll() is None
    assert list(live) == []


def test_two_columns_of_one_name(lake: Lake) -> None:
    """A query may show them, so its changes do."""
    lake.sql("INSERT INTO t VALUES (1, 'a', 1, 0)")
    found = next(lake.sql("SELECT x.id, y.id FROM t x JOIN t y ON x.id = y.id"))
    assert (found.column_names, _rows(found)) == (["rowkind", "id", "id"], [("+I", 1, 1)])


# --- where it begins and ends ----------------------------------------------------------------------------------------


def test_hints_say_where_to_begin(lake: Lake) -> None:
    """`scan.mode`, a snapshot, and a consumer, whose next SELECT goes on where the last one was."""
    lake.sql("INSERT INTO t VALUES (1, 'a', 1, 0)")
    _in_batch(lake, "INSERT INTO t VALUES (2, 'a', 2, 0)")
    with lake.sql("SELECT id FROM t /*+ OPTIONS('scan.mode' = 'latest') */ WHERE v < 9") as live:
        assert live.poll(0.1) is None
        lake.sql("INSERT INTO t VALUES (3, 'a', 3, 0), (4, 'a', 9, 0)")
        assert _rows(next(live)) == [("+I", 3)]
    with lake.sql("SELECT s.id FROM t /*+ OPTIONS('scan.snapshot-id' = '3') */ AS s") as live:
        assert _rows(next(live)) == [("+I", 2)]
    reading = "SELECT id FROM t /*+ OPTIONS('consumer-id' = 'me') */"
    with lake.sql(reading) as live:
        assert len(_rows(next(live))) == 4
        assert live.poll(0.1) is None
    _in_batch(lake, "DELETE FROM t WHERE id = 1")
    with lake.sql(reading) as live:
        assert _rows(next(live)) == [("-D", 1)]


def test_settings_say_it_too(lake: Lake) -> None:
    """An option of SET begins a SELECT of one table where it says, and is refused by name where it can not count."""
    lake.sql("INSERT INTO t VALUES (1, 'a', 1, 0); SET spark.paimon.scan.mode = latest")
    assert lake.sql("SELECT * FROM t").poll(0.1) is None
    lake.sql("CREATE TABLE u (id BIGINT, PRIMARY KEY (id) NOT ENFORCED)")
    for text in ("SELECT count(*) FROM t", "INSERT INTO u SELECT id FROM t"):
        with pytest.raises(Unsupported, match=r"`scan\.mode`"):
            lake.sql(text)


def test_a_limit_ends_rows_that_only_come(lake: Lake) -> None:
    """After so many rows; of rows that change, nobody knows which those would be."""
    lake.sql("CREATE TABLE log (a INT); INSERT INTO log VALUES (1), (2)")
    with lake.sql("SELECT a FROM log LIMIT 3") as live:
        assert len(next(live)) == 2
        lake.sql("INSERT INTO log VALUES (3), (4)")
        assert [len(each) for each in live] == [1]
    assert [len(each) for each in lake.sql("SELECT a FROM log FETCH FIRST 1 ROW ONLY")] == [1]
    with pytest.raises(Unsupported, match="LIMIT without ORDER BY"):
        lake.sql("SELECT * FROM t LIMIT 3")


def test_rows_of_a_source_come_as_they_are_read(lake: Lake) -> None:
    """By position, with what the query makes of them; a source that ends ends the SELECT."""
    _source(lake, "gen", 50)
    with lake.sql("SELECT id * 2 AS twice FROM gen WHERE id > 47") as live:
        assert live.only_grows
        assert [row for each in live for row in _rows(each)] == [("+I", 96), ("+I", 98), ("+I", 100)]
    assert not lake.has_table("landed__gen")


def test_groups_of_a_source_land_first(lake: Lake) -> None:
    """A source that is grouped or joined lands in the lake, by a job that ends with the SELECT."""
    _source(lake, "gen", 40)
    lake.sql("INSERT INTO t VALUES (1, 'odd', 1, 0), (2, 'even', 0, 0)")
    shown: Counter[tuple[Any, ...]] = Counter()
    with lake.sql("SELECT t.city, count(*) FROM gen JOIN t ON gen.id % 2 = t.v GROUP BY t.city") as live:
        _add_up(shown, next(live))
        assert [(job.name, job.is_active) for job in lake.jobs()] == [("SELECT FROM default.gen", True)] or shown
        for changes in live:
            _add_up(shown, changes)
    assert +shown == Counter({("odd", 20): 1, ("even", 20): 1})
    assert lake.jobs() == []
    assert lake.table("landed__gen").latest_snapshot() is not None


def test_a_view_is_what_it_stands_for(lake: Lake) -> None:
    """Temporary views may be followed, also one of another."""
    lake.sql("INSERT INTO t VALUES (1, 'a', 1, 0), (2, 'b', 2, 0)")
    lake.sql(
        "CREATE TEMPORARY VIEW big AS SELECT * FROM t WHERE v > 1; CREATE TEMPORARY VIEW cs AS SELECT city FROM big"
    )
    assert _rows(next(lake.sql("SELECT cs.city FROM cs"))) == [("+I", "b")]


# --- how it stops ----------------------------------------------------------------------------------------------------


def test_a_state_that_is_gone_is_named(lake: Lake) -> None:
    """After a rollback nobody knows what to take back, unless all of it is computed anew."""
    lake.sql("INSERT INTO t VALUES (1, 'a', 1, 0)")
    _in_batch(lake, "INSERT INTO t VALUES (2, 'b', 2, 0)")
    followed, anew = (
        lake.sql("SELECT city, count(*) FROM t GROUP BY city"),
        lake.sql("SELECT sum(weight), count(*) FROM t"),
    )
    assert [len(next(followed)), _rows(next(anew))] == [2, [("+I", 0.0, 2)]]
    _in_batch(lake, "CALL sys.rollback_to('default.t', '', 1)")
    with pytest.raises(Unsupported, match=r"the streaming SELECT can not go on.*rolled back"):
        next(followed)
    assert not followed.is_active
    assert _rows(next(anew)) == [("-U", 0.0, 2), ("+U", 0.0, 1)]


def test_rows_that_go_end_a_stream_of_new_ones(lake: Lake) -> None:
    """A table without a key tells of new rows only: that others went is said. A query of both states goes on."""
    lake.sql("CREATE TABLE log (a INT); INSERT INTO log VALUES (1), (2)")
    rows, groups = lake.sql("SELECT a FROM log"), lake.sql("SELECT a, count(*) FROM log GROUP BY a")
    assert [len(next(rows)), len(next(groups))] == [2, 2]
    assert rows.poll(0.1) is None
    _in_batch(lake, "INSERT INTO log VALUES (3); OPTIMIZE log")
    assert [_rows(next(rows)), _rows(next(groups))] == [[("+I", 3)], [("+I", 3, 1)]]
    _in_batch(lake, "DELETE FROM log WHERE a = 1")
    with pytest.raises(Unsupported, match=r"rows were deleted or replaced in `default\.log`"):
        next(rows)
    assert _rows(next(groups)) == [("-D", 1, 1)]


def test_columns_that_change_are_named(lake: Lake) -> None:
    """One that is added does not matter; one that is dropped ends it."""
    lake.sql("INSERT INTO t VALUES (1, 'a', 1, 0)")
    live = lake.sql("SELECT *, 1 AS one FROM t WHERE v > 0 ORDER BY id LIMIT 9")
    assert len(next(live)) == 1
    _in_batch(lake, "ALTER TABLE t ADD COLUMN more INT; INSERT INTO t VALUES (2, 'a', 1, 0, 7)")
    assert _rows(next(live)) == [("+I", 2, "a", 1, 0.0, 1)]
    _in_batch(lake, "ALTER TABLE t DROP COLUMN city; INSERT INTO t (id, v) VALUES (3, 1)")
    with pytest.raises(InvalidSchema, match=r"column `city` of `default\.t` was dropped"):
        next(live)


def test_another_thread_may_stop_it(lake: Lake) -> None:
    """Whoever waits for rows gets no more, at once."""
    import threading

    live = lake.sql("SELECT * FROM t")
    threading.Timer(0.2, live.stop).start()
    assert list(live) == []


@pytest.mark.parametrize(
    ("text", "kind", "said"),
    [
        ("SELECT * FROM t ORDER BY id", Unsupported, "ORDER BY has no meaning for rows that keep coming"),
        ("SELECT * FROM cities LIMIT 2 OFFSET 1", Unsupported, "LIMIT and a number"),
        ("SELECT * FROM t VERSION AS OF 1", Unsupported, "fixed state"),
        ("SELECT * FROM t$audit_log", Unsupported, "what a table is made of"),
        ("SELECT * FROM paimon_incremental_query('t', 1, 2)", Unsupported, "what a table is made of"),
        ("SELECT count(*) FROM t /*+ OPTIONS('scan.mode' = 'latest') */", Unsupported, "option `scan.mode` of `t`"),
        ("SELECT * FROM raw /*+ OPTIONS('scan.mode' = 'latest') */", Unsupported, "`changelog-producer` = `none`"),
        ("SELECT * FROM t /*+ OPTIONS('incremental-between' = '1,2') */", InvalidArgument, "not for streams"),
        ("SELECT * FROM gen /*+ OPTIONS('rows-per-second' = '1') */", Unsupported, "takes no hints"),
        ("SELECT current_timestamp(), id FROM t", Unsupported, "another value each time"),
        ("SELECT count(*), max(uuid()) FROM t", Unsupported, "another value each time"),
        ("SELECT * FROM nosuch", NotFound, "nosuch"),
    ],
)
def test_what_can_not_be_followed(lake: Lake, text: str, kind: type[LakebedError], said: str) -> None:
    """Is said at once, by name."""
    _source(lake, "gen", 5)
    lake.sql("CREATE TABLE raw (id BIGINT, PRIMARY KEY (id) NOT ENFORCED)")
    lake.sql("INSERT INTO t VALUES (1, 'a', 1, 0); INSERT INTO t VALUES (1, 'a', 2, 0)")
    with pytest.raises(kind, match=said):
        lake.sql(text)


def test_members_of_a_frame_are_missed_with_words(lake: Lake) -> None:
    """Rows that never end can not be collected: the error says what to do."""
    with pytest.raises(AttributeError, match=r"'execution\.runtime-mode' = 'batch'"):
        lake.sql("SELECT * FROM t").collect()
    with pytest.raises(InvalidArgument, match="seconds"):
        lake.sql("SELECT * FROM t").poll("1 s")  # type: ignore[attr-defined]


def test_what_has_an_end_is_answered_at_once(lake: Lake) -> None:
    """Queries without tables, and of what tables are made of."""
    lake.sql("INSERT INTO t VALUES (1, 'a', 1, 0)")
    assert [tuple(row) for row in lake.sql("SELECT 1 + 1").collect()] == [(2,)]
    assert lake.sql("SELECT snapshot_id FROM t$snapshots").count() > 0
    assert lake.sql("SHOW TABLES").count() == 2


def test_show_prints_what_comes(lake: Lake, capsys: pytest.CaptureFixture[str]) -> None:
    """A table for each batch, with the kinds in front."""
    lake.sql("INSERT INTO t VALUES (1, 'a', 1, 0), (2, 'b', 2, 0)")
    lake.sql("SELECT id, city FROM t").show(2)  # type: ignore[attr-defined]
    assert "|     +I|  2|   b|" in capsys.readouterr().out


def _source(lake: Lake, name: str, rows: int) -> None:
    lake.sql(
        f"CREATE TEMPORARY TABLE {name} (id BIGINT) WITH ('connector' = 'datagen', 'rows-per-second' = '1000', "
        f"'fields.id.kind' = 'sequence', 'fields.id.start' = '1', 'fields.id.end' = '{rows}')"
    )
