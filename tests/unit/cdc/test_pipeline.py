"""Batches of chunks become commits: examples of each rule, and a crash after each step."""

from __future__ import annotations

import datetime as dt
import time
from pathlib import Path
from typing import Any

import pytest
from tests.unit.cdc.batches import SOURCE, ChunkMaker, LocalBatch, description

import lakebed
from lakebed.cdc import pipeline as pipelines
from lakebed.cdc.batch.batch import POSITION
from lakebed.cdc.envelope import COPY, SKIPPED, STREAM, Chunk, Description, SourceColumn, SourceName, SourceTable
from lakebed.cdc.pipeline import Pipeline
from lakebed.cdc.progress import ProgressBoard
from lakebed.cdc.routing import PatternValue, Routing
from lakebed.cdc.rows.computed import ComputedColumn
from lakebed.cdc.rows.metadata import metadata_columns
from lakebed.cdc.rules import SyncRules
from lakebed.cdc.schema.sync import Policies
from lakebed.errors import InvalidArgument, InvalidData, InvalidSchema
from lakebed.schema.changes import RemoveOption
from lakebed.types.logical import INT, STRING, parse_type

PLAIN = description({"id": "INT NOT NULL", "v": "STRING"})


class Lab:
    """A lake, and pipelines into it."""

    def __init__(self, place: Path) -> None:
        self.lake = lakebed.connect(place)
        self.makes = ChunkMaker()
        self.identifier = 0
        self.board = ProgressBoard()
        self.crash_at = ""

    def pipeline(self, here_bytes: int = 1 << 30, **rules: Any) -> Pipeline:
        routing = rules.pop("routing", Routing("lk"))
        conf = rules.pop("conf", {"bucket": "2", "changelog-producer": "input"})
        made = SyncRules(routing, table_conf=(PatternValue(".*", conf),), **rules)
        return Pipeline(self.lake, made, "", source="test", board=self.board, here_bytes=here_bytes, on_step=self._step)

    def _step(self, name: str) -> None:
        if name == self.crash_at:
            self.crash_at = ""
            raise RuntimeError(name)

    def apply(self, pipeline: Pipeline, *chunks: Chunk, again: bool = False) -> None:
        self.identifier += not again
        pipeline.apply(LocalBatch(chunks), "user", self.identifier, f"at {self.identifier}")
        pipeline.close()

    def rows(self, name: str = "orders", *columns: str) -> list[tuple[Any, ...]]:
        table = self.lake.table(f"lk.{name}")
        found = table.to_arrow(list(columns) or None).to_pylist()
        return sorted((tuple(row.values()) for row in found), key=str)

    def changes(self, name: str = "orders") -> list[tuple[Any, ...]]:
        return [tuple(row.values()) for row in self.lake.table(f"lk.{name}").changes().to_pylist()]


@pytest.fixture
def lab(tmp_path: Path) -> Lab:
    return Lab(tmp_path / "warehouse")


def test_i_01_an_update_is_a_delete_and_an_insert(lab: Lab) -> None:
    """I-01: by default the changelog shows `-D`, `+I`."""
    pipeline = lab.pipeline()
    lab.apply(pipeline, lab.makes.rows(PLAIN, ("+I", 1, "a")))
    lab.apply(pipeline, lab.makes.rows(PLAIN, ("-U", 1, "a"), ("+U", 1, "b")))
    assert lab.changes() == [("+I", 1, "a"), ("-D", 1, "a"), ("+I", 1, "b")]
    assert lab.rows() == [(1, "b")]


def test_n_05_an_update_may_keep_its_kinds(lab: Lab) -> None:
    """N-05: with `cdc.update-as` = `update` the pair is `-U`, `+U`."""
    conf = {"bucket": "1", "changelog-producer": "input", "cdc.update-as": "update"}
    pipeline = lab.pipeline(conf=conf)
    lab.apply(pipeline, lab.makes.rows(PLAIN, ("-U", 1, "a"), ("+U", 1, "b")))
    assert [row[0] for row in lab.changes()] == ["-U", "+U"]


@pytest.mark.parametrize("here_bytes", [1 << 30, -1])
def test_i_03_a_changed_key_works_across_partitions(lab: Lab, here_bytes: int) -> None:
    """I-03: the old key goes from its partition, the new one comes into another."""
    described = description({"id": "INT NOT NULL", "p": "STRING NOT NULL"}, ("id", "p"))
    pipeline = lab.pipeline(here_bytes, partition_keys=("p",))
    lab.apply(pipeline, lab.makes.rows(described, ("+I", 1, "x"), ("+I", 9, "x")))
    lab.apply(pipeline, lab.makes.rows(described, ("-U", 1, "x"), ("+U", 2, "y")))
    assert lab.rows() == [(2, "y"), (9, "x")]


def test_i_04_a_new_column_is_there_before_its_rows(lab: Lab) -> None:
    """I-04: one new schema version, then the row; earlier rows show NULL."""
    pipeline = lab.pipeline()
    lab.apply(pipeline, lab.makes.rows(PLAIN, ("+I", 1, "a")))
    version = lab.lake.table("lk.orders").schema.id
    wider = description({"id": "INT NOT NULL", "v": "STRING", "w": "INT"})
    lab.apply(pipeline, lab.makes.rows(wider, ("+I", 2, "b", 5)))
    assert lab.rows() == [(1, "a", None), (2, "b", 5)]
    assert lab.lake.table("lk.orders").schema.id == version + 1


def test_i_05_values_of_a_narrower_type_still_fit(lab: Lab) -> None:
    """I-05: INT to BIGINT widens the column; back to INT leaves it, and rows are written all the same."""
    pipeline = lab.pipeline()
    for number, type_text in enumerate(("INT", "BIGINT", "INT")):
        described = description({"id": "INT NOT NULL", "v": type_text})
        lab.apply(pipeline, lab.makes.rows(described, ("+I", number, 10 ** (12 if number == 1 else 3))))
    assert lab.rows() == [(0, 1000), (1, 10**12), (2, 1000)]
    assert str(lab.lake.table("lk.orders").schema.field("v").type) == "BIGINT"


@pytest.mark.parametrize("here_bytes", [1 << 30, -1])
def test_i_06_both_halves_of_an_update_have_their_own_partition(lab: Lab, here_bytes: int) -> None:
    """I-06: a computed partition column is computed for the old and for the new row."""
    described = description({"id": "INT NOT NULL", "ts": "TIMESTAMP(3)"})
    dt_column = ComputedColumn.parse("dt=date_format(ts, yyyy-MM-dd)")
    pipeline = lab.pipeline(here_bytes, computed=(dt_column,), partition_keys=("dt",), primary_keys=("id", "dt"))
    first, second = dt.datetime(2024, 1, 1, 5), dt.datetime(2024, 1, 2, 5)
    lab.apply(pipeline, lab.makes.rows(described, ("+I", 1, first)))
    lab.apply(pipeline, lab.makes.rows(described, ("-U", 1, first), ("+U", 1, second)))
    assert lab.rows() == [(1, second, "2024-01-02")]


def test_a_computed_key_needs_old_rows(lab: Lab) -> None:
    """Without its old row an update could leave that behind in another partition: the sync stops and says so."""
    described = description({"id": "INT NOT NULL", "ts": "TIMESTAMP(3)"})
    dt_column = ComputedColumn.parse("dt=date_format(ts, yyyy-MM-dd)")
    pipeline = lab.pipeline(computed=(dt_column,), partition_keys=("dt",), primary_keys=("id", "dt"))
    with pytest.raises(InvalidData) as caught:
        lab.apply(pipeline, lab.makes.rows(described, ("+U", 1, dt.datetime(2024, 1, 1))))
    assert "REPLICA IDENTITY FULL" in caught.value.hint
    with pytest.raises(InvalidData):
        lab.apply(pipeline, lab.makes.rows(described, ("-D", 1, None)))


def test_added_columns_are_filled_with_their_default(lab: Lab) -> None:
    """Rows that are there, and rows of the same batch from before the change, get the value; later NULLs stay."""
    pipeline = lab.pipeline()
    lab.apply(pipeline, lab.makes.rows(PLAIN, ("+I", 1, "a")))
    wider = description({"id": "INT NOT NULL", "v": "STRING", "w": "INT"}, defaults={"w": "7"})
    chunks = lab.makes.rows(PLAIN, ("+I", 2, "b")), lab.makes.rows(wider, ("+I", 3, "c", None), ("+I", 4, "d", 1))
    lab.apply(pipeline, *chunks)
    assert lab.rows() == [(1, "a", 7), (2, "b", 7), (3, "c", None), (4, "d", 1)]
    assert "lakebed.cdc.backfill" not in lab.lake.table("lk.orders").options


@pytest.mark.parametrize("step", ["read", "check", "schema", "backfill", "write", "commit", "committed", "note"])
@pytest.mark.parametrize("here_bytes", [1 << 30, -1])
def test_a_crash_after_any_step_loses_and_doubles_nothing(lab: Lab, step: str, here_bytes: int) -> None:
    """A batch that is repeated after a crash leaves what it leaves without one, in one commit for each table."""
    pipeline = lab.pipeline(here_bytes)
    other = SourceName("shop", "public", "lines")
    lab.apply(pipeline, lab.makes.rows(PLAIN, ("+I", 1, "a")), lab.makes.rows(PLAIN, ("+I", 1, "l"), source=other))
    wider = description({"id": "INT NOT NULL", "v": "STRING", "w": "INT"}, defaults={"w": "7"})
    chunks = (
        lab.makes.rows(PLAIN, ("+I", 2, "b")),
        lab.makes.rows(wider, ("+I", 3, "c", 1), ("-D", 1, "a", 7)),
        lab.makes.rows(PLAIN, ("+I", 2, "m"), source=other),
    )
    lab.crash_at = step
    with pytest.raises(RuntimeError):
        lab.apply(pipeline, *chunks)
    lab.apply(lab.pipeline(here_bytes), *chunks, again=True)
    lab.apply(lab.pipeline(here_bytes), *chunks, again=True)
    assert lab.rows() == [(2, "b", 7), (3, "c", 1)]
    assert lab.rows("lines") == [(1, "l"), (2, "m")]
    for name in ("orders", "lines"):
        own = [each for each in lab.lake.table(f"lk.{name}").snapshots() if each.commit_user == "user"]
        assert [each.commit_identifier for each in own if each.commit_kind == "APPEND"] == [1, 2]


@pytest.mark.parametrize("told_again", [True, False])
def test_a_batch_that_is_repeated_begins_with_the_columns_it_began_with(lab: Lab, told_again: bool) -> None:
    """A column was dropped and another added under its name, and the batch died: its old rows are still understood.

    What a look at the catalogue has told may be missing the second time; rows from before still get the default.
    """
    old = Description((SourceColumn("id", parse_type("INT NOT NULL"), id=1), SourceColumn("v", INT, id=2)), ("id",))
    added = SourceColumn("v", STRING, None, "new", 3)
    new = Description((old.columns[0], added), ("id",))
    pipeline = lab.pipeline(policies=Policies(drop="follow"))
    lab.apply(pipeline, lab.makes.rows(old, ("+I", 1, 10)))
    rows, notice = lab.makes.rows(old, ("+I", 2, 20)), lab.makes.schema(new)
    lab.crash_at = "write"
    with pytest.raises(RuntimeError):
        lab.apply(pipeline, rows, notice)
    lab.apply(pipeline, *([rows, notice] if told_again else [rows]), again=True)
    assert lab.rows() == [(1, "new"), (2, "new")]
    lab.apply(pipeline, lab.makes.rows(new, ("+I", 3, None)))
    assert lab.rows() == [(1, "new"), (2, "new"), (3, None)]


def test_messages_that_were_left_out_are_counted(lab: Lab) -> None:
    """A chunk that tells of them makes no table and shows in the progress."""
    why = '{"count": 2, "why": "broken"}'
    skipped = Chunk(100, SourceName("", "", ""), SKIPPED, why, STREAM)
    lab.apply(lab.pipeline(), lab.makes.rows(PLAIN, ("+I", 1, "a")), skipped)
    assert (lab.board.now.skipped_records, lab.board.now.skipped_why) == (2, "broken")
    assert lab.lake.tables("lk") == ["orders"]


@pytest.mark.parametrize("here_bytes", [1 << 30, -1], ids=["here", "in tasks"])
def test_metrics_of_a_batch(lab: Lab, here_bytes: int) -> None:
    """Rows and bytes of each table, how old the last change was, what was left out, and how long it took; a batch that
    fails is counted as such."""
    lakebed.metrics.start()
    try:
        pipeline = lab.pipeline(here_bytes)
        chunk = lab.makes.rows(PLAIN, ("+I", 1, "a"), ("+I", 2, "b"), op_ts_ms=int(time.time() * 1000) - 5_000)
        skipped = Chunk(100, SourceName("", "", ""), SKIPPED, '{"count": 3, "why": "broken"}', STREAM)
        lab.apply(pipeline, chunk, skipped)
        lab.crash_at = "write"
        with pytest.raises(RuntimeError):
            lab.apply(pipeline, lab.makes.rows(PLAIN, ("+I", 3, "c")))
        now = lakebed.metrics.snapshot()
    finally:
        lakebed.metrics.stop()
    assert chunk.payload is not None
    sync = {"source": "test", "database": "lk"}
    assert now["lakebed_cdc_rows_total"] == [{"table": "lk.orders", "value": 2}]
    assert now["lakebed_cdc_size_bytes_total"] == [{"table": "lk.orders", "value": len(chunk.payload)}]
    assert 5 <= now["lakebed_cdc_lag_seconds"][0]["value"] < 300
    assert now["lakebed_cdc_skipped_records_total"] == [{**sync, "value": 3}]
    ended = {each["outcome"]: each["count"] for each in now["lakebed_cdc_batch_duration_seconds"]}
    assert ended == {"done": 1, "failed": 1}
    assert now["lakebed_write_rows_total"][0]["value"] >= 2


def test_the_position_stands_in_the_snapshot(lab: Lab) -> None:
    """Data and position are one commit."""
    lab.apply(lab.pipeline(), lab.makes.rows(PLAIN, ("+I", 1, "a")))
    snapshot = lab.lake.table("lk.orders").latest_snapshot()
    assert snapshot is not None
    assert (snapshot.properties or {})[POSITION] == "at 1"


@pytest.mark.parametrize("here_bytes", [1 << 30, -1])
def test_truncate_deletes_every_row_in_its_turn(lab: Lab, here_bytes: int) -> None:
    """Rows of the table and of the batch before it are gone, each with an event of its own; later rows stay."""
    pipeline = lab.pipeline(here_bytes)
    lab.apply(pipeline, lab.makes.rows(PLAIN, ("+I", 1, "a"), ("+I", 2, "b")))
    before = lab.makes.rows(PLAIN, ("-D", 2, "b"), ("+I", 3, "c"))
    lab.apply(pipeline, before, lab.makes.truncate(PLAIN), lab.makes.rows(PLAIN, ("+I", 1, "new")))
    assert lab.rows() == [(1, "new")]
    deleted = [row for row in lab.changes() if row[0] == "-D"]
    assert sorted(deleted) == [("-D", 1, "a"), ("-D", 2, "b"), ("-D", 3, "c")]


def test_truncate_by_policy(lab: Lab) -> None:
    """It can be ignored, or stop the sync; in a table of several sources it must."""
    lab.apply(lab.pipeline(), lab.makes.rows(PLAIN, ("+I", 1, "a")))
    lab.apply(lab.pipeline(truncate="ignore"), lab.makes.truncate(PLAIN))
    assert lab.rows() == [(1, "a")]
    with pytest.raises(InvalidData, match="truncated"):
        lab.apply(lab.pipeline(truncate="fail"), lab.makes.truncate(PLAIN))
    shared = lab.pipeline(merge_shards=True)
    with pytest.raises(InvalidData, match="other sources"):
        lab.apply(
            shared,
            lab.makes.rows(PLAIN, ("+I", 5, "z"), source=SourceName("shop2", "", "orders")),
            lab.makes.truncate(PLAIN),
        )


@pytest.mark.parametrize("here_bytes", [1 << 30, -1])
def test_values_that_were_not_sent_keep_what_the_row_has(lab: Lab, here_bytes: int) -> None:
    """From the table, from the batch, and from the old key of an update that changes the key; never NULL."""
    described = description({"id": "INT NOT NULL", "n": "INT", "big": "STRING"})
    pipeline = lab.pipeline(here_bytes, conf={"bucket": "3"})
    lab.apply(pipeline, lab.makes.rows(described, ("+I", 1, 1, "one"), ("+I", 2, 2, "two"), ("+I", 5, 5, None)))
    rows = [
        ("+U", 1, 10, None),  # from the table
        ("+I", 3, 3, "three"),
        ("+U", 3, 30, None),  # from the batch
        ("+U", 3, 31, None),  # from a row that was filled itself
        ("-D", 2, None, None),
        ("+I", 7, 70, None),  # from the old key
        ("+U", 7, 71, None),
        ("+U", 5, 50, None),  # really NULL
    ]
    marks = {place: ["big"] for place in (0, 2, 3, 5, 6, 7)}
    lab.apply(pipeline, lab.makes.rows(described, *rows, unchanged=marks))
    assert lab.rows() == [(1, 10, "one"), (3, 31, "three"), (5, 50, None), (7, 71, "two")]


def test_what_is_computed_from_a_value_that_was_not_sent_stays(lab: Lab) -> None:
    """A computed column keeps its value together with the column that it comes from."""
    pipeline = lab.pipeline(computed=(ComputedColumn.parse("up=upper(v)"),))
    lab.apply(pipeline, lab.makes.rows(PLAIN, ("+I", 1, "a")))
    lab.apply(pipeline, lab.makes.rows(PLAIN, ("+U", 1, None), unchanged={0: ["v"]}))
    assert lab.rows() == [(1, "a", "A")]


def test_a_value_that_is_nowhere_stops_the_sync(lab: Lab) -> None:
    """A part of a row that nobody has is an error that names the key, not a NULL."""
    with pytest.raises(InvalidData, match="'id': 9"):
        lab.apply(lab.pipeline(), lab.makes.rows(PLAIN, ("+U", 9, None), unchanged={0: ["v"]}))


def test_old_rows_are_completed_where_somebody_reads_them(lab: Lab) -> None:
    """With `input`, a delete that comes with its key alone tells the row that went."""
    strict = description({"id": "INT NOT NULL", "v": "STRING NOT NULL"})
    pipeline = lab.pipeline()
    lab.apply(pipeline, lab.makes.rows(strict, ("+I", 1, "a"), ("+I", 2, "b")))
    lab.apply(pipeline, lab.makes.rows(strict, ("-D", 1, None)))
    assert lab.changes()[-1] == ("-D", 1, "a")


def test_metadata_columns_tell_where_rows_come_from(lab: Lab) -> None:
    """Names and times are in every row, with the prefix that was asked for."""
    kinds = ("database_name", "schema_name", "table_name", "op_ts")
    pipeline = lab.pipeline(metadata=metadata_columns(kinds, "_src_", kinds))
    lab.apply(pipeline, lab.makes.rows(PLAIN, ("+I", 1, "a"), op_ts_ms=5000))
    moment = dt.datetime(1970, 1, 1, 0, 0, 5, tzinfo=dt.UTC)
    assert lab.rows() == [(1, "a", "shop", "public", "orders", moment)]
    with pytest.raises(InvalidArgument, match="topic"):
        metadata_columns(["topic"], "", kinds)


def test_many_tables_into_one(lab: Lab) -> None:
    """Shards share a table if that is asked for; their columns are merged; without a word it is refused."""
    second = SourceName("shop2", "public", "orders")
    wider = description({"id": "INT NOT NULL", "v": "STRING", "w": "INT"})
    chunks = lab.makes.rows(PLAIN, ("+I", 1, "a")), lab.makes.rows(wider, ("+I", 2, "b", 5), source=second)
    with pytest.raises(InvalidArgument, match=r"shop\.public\.orders and shop2\.public\.orders"):
        lab.apply(lab.pipeline(), *chunks)
    lab.apply(lab.pipeline(merge_shards=True), *chunks)
    assert lab.rows() == [(1, "a", None), (2, "b", 5)]


def test_tables_without_a_key_are_left_out_of_a_database(lab: Lab) -> None:
    """A whole database goes on without them, and says so; for one table it is an error."""
    keyless = description({"id": "INT", "v": "STRING"}, ())
    other = SourceName("shop", "public", "log")
    pipeline = lab.pipeline()
    lab.apply(pipeline, lab.makes.rows(keyless, ("+I", 1, "x"), source=other), lab.makes.rows(PLAIN, ("+I", 1, "a")))
    assert (lab.rows(), lab.lake.tables("lk")) == ([(1, "a")], ["orders"])
    assert list(lab.board.now.skipped) == ["lk.log"]
    one = lab.pipeline(routing=Routing("lk", "log", including="log"), is_for_one_table=True)
    with pytest.raises(InvalidSchema, match="no primary key"):
        lab.apply(one, lab.makes.rows(keyless, ("+I", 1, "x"), source=other))


def test_a_new_table_is_picked_up_while_running(lab: Lab) -> None:
    """A table that shows for the first time in a later batch is created then."""
    pipeline = lab.pipeline()
    lab.apply(pipeline, lab.makes.rows(PLAIN, ("+I", 1, "a")))
    new = SourceName("shop", "public", "new")
    lab.apply(pipeline, lab.makes.rows(PLAIN, ("+I", 7, "n"), source=new, phase=COPY))
    assert lab.rows("new") == [(7, "n")]


def test_incompatible_types_by_policy_lose_no_rows(lab: Lab) -> None:
    """`string` keeps all values as text; `ignore` keeps the rows, with NULL for what does not fit; `fail` stops."""
    numbers, words = (description({"id": "INT NOT NULL", "v": text}) for text in ("INT", "STRING"))
    lab.apply(lab.pipeline(), lab.makes.rows(numbers, ("+I", 1, 5)))
    rows = lab.makes.rows(words, ("+I", 2, "6"), ("+I", 3, "x"), ("+I", 4, None))
    with pytest.raises(InvalidSchema, match="`v`"):
        lab.apply(lab.pipeline(), rows)
    lab.apply(lab.pipeline(policies=Policies(incompatible="ignore")), rows)
    assert lab.rows() == [(1, 5), (2, 6), (3, None), (4, None)]
    lab.apply(lab.pipeline(policies=Policies(incompatible="string")), lab.makes.rows(words, ("+I", 3, "x")))
    assert lab.rows() == [(1, "5"), (2, "6"), (3, "x"), (4, None)]


def test_incompatible_tables_can_be_left_out(lab: Lab) -> None:
    """With `ignore_incompatible` other tables go on."""
    numbers, words = (description({"id": "INT NOT NULL", "v": text}) for text in ("INT", "STRING"))
    lab.apply(lab.pipeline(), lab.makes.rows(numbers, ("+I", 1, 5)))
    other = SourceName("shop", "public", "other")
    pipeline = lab.pipeline(skips_incompatible=True)
    lab.apply(pipeline, lab.makes.rows(words, ("+I", 2, "x")), lab.makes.rows(PLAIN, ("+I", 1, "o"), source=other))
    assert (lab.rows(), lab.rows("other")) == ([(1, 5)], [(1, "o")])


def test_a_table_that_is_there_keeps_its_types_under_untyped_messages(lab: Lab) -> None:
    """Messages without types fill columns of any type that the user has made."""
    table = lab.lake
    table.create_database("lk")
    table.create_table("lk.orders", {"id": "BIGINT NOT NULL", "v": "DECIMAL(10, 2)"}, primary_key=["id"])
    untyped = Description(
        (SourceColumn("id", "STRING"), SourceColumn("v", "STRING"), SourceColumn("w", "STRING")),  # type: ignore[arg-type]
        ("id",),
        typed=False,
    )
    lab.apply(lab.pipeline(conf={}), lab.makes.rows(untyped, ("+I", "1", "2.5", "x")))
    (row,) = lab.rows()
    assert (row[0], str(row[1]), row[2]) == (1, "2.50", "x")


def test_an_append_table_is_refused(lab: Lab) -> None:
    """Changes need a key."""
    lab.lake.create_database("lk")
    lab.lake.create_table("lk.orders", {"id": "INT", "v": "STRING"})
    with pytest.raises(InvalidSchema, match="no primary key"):
        lab.apply(lab.pipeline(), lab.makes.rows(PLAIN, ("+I", 1, "a")))


def test_names_are_lowered_for_tables_and_columns(lab: Lab) -> None:
    """With `case` = `lower` both follow."""
    described = description({"ID": "INT NOT NULL", "Val": "STRING"}, ("ID",))
    pipeline = lab.pipeline(routing=Routing("lk", case="lower"))
    lab.apply(pipeline, lab.makes.rows(described, ("+I", 1, "a"), source=SourceName("Shop", "", "ORDERS")))
    assert lab.lake.table("lk.orders").schema.field_names == ("id", "val")
    assert lab.rows() == [(1, "a")]


def test_hostile_names_of_columns_are_columns(lab: Lab) -> None:
    """Names with quotes, dots, blanks, or our own words are kept as they are."""
    names = {
        "id": "INT NOT NULL",
        "_kind": "INT",
        "_op_ts": "INT",
        "_unchanged.x": "BOOLEAN",
        "a`b'c\"": "INT",
        "ü.": "INT",
    }
    described = description(names)
    lab.apply(lab.pipeline(), lab.makes.rows(described, ("+I", 1, 2, 3, True, 4, 5)))
    assert lab.lake.table("lk.orders").schema.field_names == tuple(names)
    assert lab.rows() == [(1, 2, 3, True, 4, 5)]


def test_progress_counts_rows_phases_and_lags(lab: Lab) -> None:
    """The board knows what was written where, and how long ago it happened."""
    pipeline = lab.pipeline()
    lab.apply(pipeline, lab.makes.rows(PLAIN, ("+I", 1, "a"), phase=COPY, op_ts_ms=0))
    assert (lab.board.now.phase, lab.board.now.lag_seconds) == ("copy", None)
    lab.apply(pipeline, lab.makes.rows(PLAIN, ("+I", 2, "b")))
    now = lab.board.now
    assert (now.phase, now.rows, now.batches, now.position) == ("stream", 2, 2, "at 2")
    assert (now.tables[0].table, now.tables[0].rows, now.tables[0].commits) == ("lk.orders", 2, 2)
    assert now.tables[0].lag_seconds is not None
    assert str(SOURCE) == "shop.public.orders"


def test_columns_that_are_told_late_do_not_come_back(lab: Lab) -> None:
    """A description without rows that is older than the rows of its batch changes nothing."""
    wider = description({"id": "INT NOT NULL", "v": "STRING", "w": "INT"})
    pipeline = lab.pipeline(policies=Policies("follow", "follow"))
    lab.apply(pipeline, lab.makes.rows(PLAIN, ("+I", 1, "a")))
    lab.apply(pipeline, lab.makes.rows(wider, ("+I", 2, "b", 5)), lab.makes.schema(PLAIN), lab.makes.schema(wider))
    assert lab.rows() == [(1, "a", None), (2, "b", 5)]
    lab.apply(pipeline, lab.makes.schema(PLAIN))
    assert lab.rows() == [(1, "a"), (2, "b")]


def test_another_sync_of_the_same_source_is_refused(lab: Lab) -> None:
    """A copy into a table that another sync has filled would keep rows that the source has deleted meanwhile."""
    lab.apply(lab.pipeline(), lab.makes.rows(PLAIN, ("+I", 1, "a")))
    again = LocalBatch([lab.makes.rows(PLAIN, ("+I", 2, "b"), phase=COPY)])
    with pytest.raises(InvalidArgument, match="another checkpoint"):
        lab.pipeline().apply(again, "somebody else", 1, None)
    with pytest.raises(InvalidArgument, match="another checkpoint"):
        lab.pipeline().prepare([SourceTable(SOURCE, PLAIN)])
    lab.lake.table("lk.orders").alter(RemoveOption("lakebed.cdc.columns"))
    lab.pipeline().apply(again, "somebody else", 1, None)
    assert lab.rows() == [(1, "a"), (2, "b")]


@pytest.mark.parametrize(("is_old", "most", "compacted"), [(True, "20", 0), (True, "4", 1), (False, "20", 1)])
def test_a_sync_that_is_behind_compacts_later(lab: Lab, is_old: bool, most: str, compacted: int) -> None:
    """Unless changes are new, or there are as many runs as there may be; at the end nothing is left to do."""
    trigger = {"num-sorted-run.compaction-trigger": "3", "num-sorted-run.stop-trigger": most}
    pipeline = lab.pipeline(conf={"bucket": "1", **trigger})
    moment = 1_000 if is_old else time.time_ns() // 1_000_000

    def compactions() -> int:
        pipeline._follow_ups.wait()
        return [snapshot.commit_kind for snapshot in lab.lake.table("lk.orders").snapshots()].count("COMPACT")

    for number in range(4):
        chunk = lab.makes.rows(PLAIN, ("+I", number, "a"), op_ts_ms=moment)
        pipeline.apply(LocalBatch([chunk]), "user", number + 1, "there")
    pipeline.close(in_haste=True)
    assert compactions() == compacted
    pipeline.close()
    assert compactions() == 1
    assert lab.rows() == [(number, "a") for number in range(4)]


def test_commits_to_new_buckets_are_followed_up_too(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    """Their runs never become many: no more than so many commits wait for what follows them."""
    monkeypatch.setattr(pipelines, "_MOST_WAITING", 3)
    described = description({"id": "INT NOT NULL", "p": "INT NOT NULL"}, ("id", "p"))
    pipeline = lab.pipeline(conf={"bucket": "1"}, partition_keys=("p",))
    waiting = []
    for number in range(5):
        chunk = lab.makes.rows(described, ("+I", number, number))
        pipeline.apply(LocalBatch([chunk]), "user", number + 1, "there")
        waiting.append(len(pipeline._waiting))
    assert waiting == [1, 2, 3, 0, 1]
    pipeline.close()
