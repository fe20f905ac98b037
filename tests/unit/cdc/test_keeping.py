"""What is kept of the past: examples of each rule, and everything that is refused."""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from tests.unit.cdc.batches import SOURCE, ChunkMaker, LocalBatch, description

import lakebed
from lakebed.cdc.arguments import keeping_of
from lakebed.cdc.envelope import (
    CHANGED_AT,
    COPY,
    LOG_POSITION,
    NUMBER,
    TRANSACTION,
    Chunk,
    SourceName,
    SourceTable,
    cut_payload,
    moments,
)
from lakebed.cdc.parked import read_parked
from lakebed.cdc.pipeline import Pipeline
from lakebed.cdc.routing import PatternValue, Routing
from lakebed.cdc.rows.keeping import CHANGES, HISTORY, MARK, STATE, Keeping
from lakebed.cdc.rules import PARK, SyncRules
from lakebed.cdc.sources import open_source
from lakebed.errors import InvalidArgument, InvalidData, Unsupported
from lakebed.options import LAKEBED_CDC_KEEPS

PLAIN = description({"id": "INT NOT NULL", "v": "STRING"})
ALL = Keeping(MARK, audit=".*", history=".*")


class Lab:
    """A lake, and pipelines that keep the past."""

    def __init__(self, place: Path) -> None:
        self.place = place
        self.lake = lakebed.connect(place / "warehouse")
        self.makes = ChunkMaker()
        self.identifier = 0

    def pipeline(self, keeping: Keeping = ALL, conf: dict[str, Any] | None = None, **rules: Any) -> Pipeline:
        table_conf = tuple(PatternValue(pattern, values) for pattern, values in (conf or {}).items())
        made = SyncRules(Routing("lk"), table_conf=table_conf, keeping=keeping, **rules)
        (self.place / "checkpoint").mkdir(exist_ok=True)
        return Pipeline(self.lake, made, str(self.place / "checkpoint"), source="test")

    def apply(self, pipeline: Pipeline, *chunks: Chunk) -> None:
        self.identifier += 1
        pipeline.apply(LocalBatch(chunks), "user", self.identifier, None)
        pipeline.close()

    def at(self, second: int, transaction: int, *rows: tuple[Any, ...], source: SourceName = SOURCE) -> Chunk:
        """Changes that a transaction committed at a second."""
        return self.makes.rows(PLAIN, *rows, source=source, about=told(second, transaction, len(rows)))

    def copied(self, second: int, *rows: tuple[Any, ...]) -> Chunk:
        about = {CHANGED_AT: moments(np.full(len(rows), second * 1_000_000))}
        return self.makes.rows(PLAIN, *rows, phase=COPY, about=about, op_ts_ms=0)

    def anew(self, second: int) -> Chunk:
        """The beginning of a new copy."""
        payload = cut_payload(None, {CHANGED_AT: moments(np.array([second * 1_000_000]))})
        return self.makes.truncate(PLAIN, payload=payload, phase=COPY)

    def emptied(self, second: int, transaction: int) -> Chunk:
        time = pa.array([second * 1000], pa.int64()).cast(pa.timestamp("ms", tz="UTC"))
        return self.makes.truncate(PLAIN, payload=cut_payload(time, told(second, transaction, 1)))

    def versions(self, *names: str) -> list[tuple[Any, ...]]:
        wanted = names or ("id", "v", "row_version", "valid_from", "valid_to", "is_current")
        rows = self.lake.table("lk.orders_history").to_arrow().to_pylist()
        rows.sort(key=lambda row: (row["id"], row["row_version"]))
        return [tuple(_seconds(row[name]) for name in wanted) for row in rows]

    def changes(self) -> list[tuple[Any, ...]]:
        rows = self.lake.table("lk.orders_changes").to_arrow().to_pylist()
        rows.sort(key=lambda row: (row["position"], row["change_number"], row["op"] in ("+I", "+U")))
        return [(row["op"], row["id"], row["v"], row["transaction_id"]) for row in rows]

    def marks(self) -> list[tuple[Any, ...]]:
        rows = self.lake.table("lk.orders").to_arrow().to_pylist()
        return sorted((row["id"], row["v"], _seconds(row["deleted_at"])) for row in rows)


def told(second: int, transaction: int, count: int) -> dict[str, pa.Array]:
    """What a source tells of rows of one transaction."""
    return {
        CHANGED_AT: moments(np.full(count, second * 1_000_000)),
        TRANSACTION: pa.array([str(transaction)] * count),
        LOG_POSITION: pa.array([f"0/{transaction:04X}"] * count),
        NUMBER: pa.array(range(1, count + 1), pa.int64()),
    }


def _seconds(value: Any) -> Any:
    return int(value.timestamp()) if isinstance(value, dt.datetime) else value


@pytest.fixture
def lab(tmp_path: Path) -> Lab:
    return Lab(tmp_path)


def test_the_life_of_a_row(lab: Lab) -> None:
    """Copied, updated, deleted, inserted again: four versions' ends meet, the mark comes and goes, changes are told."""
    pipeline = lab.pipeline()
    lab.apply(pipeline, lab.copied(100, ("+I", 1, "a")))
    lab.apply(pipeline, lab.at(110, 1, ("+U", 1, "b")))
    lab.apply(pipeline, lab.at(120, 2, ("-D", 1, None)))
    assert lab.marks() == [(1, "b", 120)]
    lab.apply(pipeline, lab.at(130, 3, ("+I", 1, "c")))
    assert lab.marks() == [(1, "c", None)]
    assert lab.versions() == [(1, "a", 1, 100, 110, False), (1, "b", 2, 110, 120, False), (1, "c", 3, 130, None, True)]
    assert lab.versions("transaction_id") == [(None,), ("1",), ("3",)]
    assert lab.changes() == [("-U", 1, "a", "1"), ("+U", 1, "b", "1"), ("-D", 1, "b", "2"), ("+I", 1, "c", "3")]


def test_of_a_transaction_the_last_change_counts(lab: Lab) -> None:
    """Nobody has seen the others: not even a row that came and went."""
    changes = [("+I", 1, "a"), ("+U", 1, "b"), ("+I", 2, "x"), ("-D", 2, None), ("+U", 1, "c")]
    lab.apply(lab.pipeline(), lab.at(100, 1, *changes))
    assert lab.versions() == [(1, "c", 1, 100, None, True)]
    assert [row[0] for row in lab.changes()] == ["+I", "-U", "+U", "+I", "-D", "-U", "+U"]


def test_transactions_at_one_moment_and_clocks_that_go_back(lab: Lab) -> None:
    """No two versions collide, and none begins before the one in front of it, within a batch and across batches."""
    pipeline = lab.pipeline()
    lab.apply(pipeline, lab.at(100, 1, ("+I", 1, "a")), lab.at(100, 2, ("+U", 1, "b")), lab.at(90, 3, ("+U", 1, "c")))
    lab.apply(pipeline, lab.at(80, 4, ("+U", 1, "d")))
    lab.apply(pipeline, lab.at(70, 5, ("-D", 1, None)))
    lab.apply(pipeline, lab.at(60, 6, ("+I", 1, "e")))
    assert lab.versions("v", "row_version", "valid_from", "valid_to") == [
        ("a", 1, 100, 100),
        ("b", 2, 100, 100),
        ("c", 3, 100, 100),
        ("d", 4, 100, 100),
        ("e", 5, 100, None),
    ]


def test_an_update_of_the_key_ends_one_row_and_begins_another(lab: Lab) -> None:
    """Whatever the source calls it, and although it does not send the old row."""
    pipeline = lab.pipeline()
    lab.apply(pipeline, lab.copied(100, ("+I", 1, "a"), ("+I", 2, "b")))
    lab.apply(pipeline, lab.at(110, 1, ("-U", 1, "a"), ("+U", 3, "a")), lab.at(120, 2, ("-D", 2, None), ("+I", 4, "b")))
    assert lab.versions("id", "valid_from", "valid_to") == [
        (1, 100, 110),
        (2, 100, 120),
        (3, 110, None),
        (4, 120, None),
    ]
    assert lab.marks() == [(1, "a", 110), (2, "b", 120), (3, "a", None), (4, "b", None)]
    assert [row[:3] for row in lab.changes()] == [("-D", 1, "a"), ("+I", 3, "a"), ("-D", 2, "b"), ("+I", 4, "b")]


def test_truncate_ends_everything_that_is_there(lab: Lab) -> None:
    """Rows of the lake and of the same batch, each once; rows that were deleted keep their time."""
    pipeline = lab.pipeline()
    lab.apply(pipeline, lab.copied(100, ("+I", 1, "a"), ("+I", 2, "b")), lab.at(110, 1, ("-D", 2, None)))
    lab.apply(pipeline, lab.at(120, 2, ("+I", 3, "c")), lab.emptied(130, 3), lab.at(140, 4, ("+I", 1, "z")))
    assert lab.versions("id", "v", "valid_to") == [(1, "a", 130), (1, "z", None), (2, "b", 110), (3, "c", 130)]
    assert lab.marks() == [(1, "z", None), (2, "b", 110), (3, "c", 130)]
    deleted = [row for row in lab.changes() if row[3] == "3"]
    assert sorted(deleted) == [("-D", 1, "a", "3"), ("-D", 3, "c", "3")]


def test_a_new_copy_ends_versions_and_is_no_change(lab: Lab) -> None:
    """At the time at which it was read: what the source has no more is ended and marked, the rest begins anew."""
    pipeline = lab.pipeline()
    lab.apply(pipeline, lab.copied(100, ("+I", 1, "a"), ("+I", 2, "b")))
    lab.apply(pipeline, lab.anew(200), lab.copied(200, ("+I", 1, "a")))
    lab.apply(pipeline, lab.at(210, 1, ("+U", 1, "c")))
    assert lab.versions("id", "v", "valid_from", "valid_to") == [
        (1, "a", 100, 200),
        (1, "a", 200, 210),
        (1, "c", 210, None),
        (2, "b", 100, 200),
    ]
    assert lab.marks() == [(1, "c", None), (2, "b", 200)]
    assert lab.changes() == [("-U", 1, "a", "1"), ("+U", 1, "c", "1")]


def test_deletes_of_what_is_not_there_leave_nothing(lab: Lab) -> None:
    """Neither a mark nor a version; the audit says what the source said."""
    pipeline = lab.pipeline()
    lab.apply(pipeline, lab.copied(100, ("+I", 1, "a")))
    gone = [lab.at(second, second, ("-D", key, None)) for second, key in ((110, 7), (120, 1), (130, 1))]
    lab.apply(pipeline, *gone)
    lab.apply(pipeline, lab.at(140, 140, ("-D", 1, None)))
    assert lab.marks() == [(1, "a", 120)]
    assert lab.versions("id", "valid_to") == [(1, 120)]


def test_messages_without_transactions_have_a_version_for_each_change(lab: Lab) -> None:
    """The time of the message is enough."""
    pipeline = lab.pipeline(Keeping(MARK, history=".*"))
    lab.apply(pipeline, lab.makes.rows(PLAIN, ("+I", 1, "a"), ("+U", 1, "b"), ("-D", 1, None), op_ts_ms=5_000))
    assert lab.versions("v", "row_version", "valid_from", "valid_to") == [("a", 1, 5, 5), ("b", 2, 5, 5)]
    assert lab.marks() == [(1, "b", 5)]
    with pytest.raises(InvalidData, match="without the time at which they were made"):
        lab.apply(pipeline, lab.makes.rows(PLAIN, ("+I", 2, "a"), op_ts_ms=0))
    with pytest.raises(InvalidData, match="does not tell when"):
        lab.apply(pipeline, lab.makes.truncate(PLAIN))


def test_a_history_that_would_begin_late_is_refused(lab: Lab) -> None:
    """Rows that do not change would never be in it; a new copy brings it, and an audit may begin at any time."""
    lab.apply(lab.pipeline(Keeping()), lab.copied(100, ("+I", 1, "a")))
    late = lab.pipeline(Keeping(audit=".*", history=".*"))
    with pytest.raises(InvalidArgument, match="can not begin now") as caught:
        lab.apply(late, lab.at(110, 1, ("+U", 1, "b")))
    assert "resync lk.orders" in (caught.value.hint or "")
    assert not lab.lake.has_table("lk.orders_history")
    parking = lab.pipeline(Keeping(audit=".*", history=".*"), on_error=PARK)
    parking.prepare([SourceTable(SOURCE, PLAIN)], "user")
    assert list(read_parked(str(lab.place / "checkpoint"))) == ["lk.orders_history"]
    lab.apply(parking, lab.at(120, 2, ("+U", 1, "c")))
    assert lab.changes() == [("-U", 1, "a", "2"), ("+U", 1, "c", "2")]
    lab.apply(parking, lab.anew(200), lab.copied(200, ("+I", 1, "c")))
    assert read_parked(str(lab.place / "checkpoint")) == {}
    lab.apply(parking, lab.at(210, 3, ("+U", 1, "d")))
    assert lab.versions("v", "valid_from", "valid_to") == [("c", 200, 210), ("d", 210, None)]


def test_an_audit_asked_for_while_a_batch_is_repeated_begins_with_the_next(lab: Lab) -> None:
    """What rows were before a batch that the newest rows have already is not to be had any more."""
    lab.apply(lab.pipeline(Keeping()), lab.copied(100, ("+I", 1, "a")))
    batch = lab.at(110, 1, ("+U", 1, "b"))
    lab.apply(lab.pipeline(Keeping()), batch)
    late = lab.pipeline(Keeping(audit=".*"))
    late.apply(LocalBatch([batch]), "user", lab.identifier, None)
    lab.apply(late, lab.at(120, 2, ("+U", 1, "c")))
    assert lab.changes() == [("-U", 1, "b", "2"), ("+U", 1, "c", "2")]


def test_a_parked_table_parks_its_audit_and_a_new_copy_brings_both_back(lab: Lab) -> None:
    """An audit that asked a table that stands still would tell what rows were long ago."""
    pipeline = lab.pipeline(Keeping(audit=".*"), on_error=PARK)
    lab.apply(pipeline, lab.copied(100, ("+I", 1, "a")))
    pipeline.park(SOURCE, InvalidData("a trouble", hint="cure it"))
    lab.apply(pipeline, lab.at(110, 1, ("+U", 1, "b")))
    assert sorted(read_parked(str(lab.place / "checkpoint"))) == ["lk.orders", "lk.orders_changes"]
    lab.apply(pipeline, lab.anew(200), lab.copied(200, ("+I", 1, "b")))
    lab.apply(pipeline, lab.at(210, 2, ("+U", 1, "c")))
    assert read_parked(str(lab.place / "checkpoint")) == {}
    assert lab.changes() == [("-U", 1, "b", "2"), ("+U", 1, "c", "2")]


def test_two_tables_for_one_name_are_refused(lab: Lab) -> None:
    """A table of the source that is called like the history of another; one that comes later is left out."""
    other = SourceName("shop", "public", "orders_history")
    with pytest.raises(InvalidArgument, match="would hold both"):
        lab.pipeline().prepare([SourceTable(SOURCE, PLAIN), SourceTable(other, PLAIN)])
    pipeline = lab.pipeline(on_error=PARK)
    lab.apply(pipeline, lab.at(100, 1, ("+I", 1, "a")))
    lab.apply(pipeline, lab.at(110, 2, ("+I", 9, "x"), source=other), lab.at(110, 2, ("+U", 1, "b")))
    assert lab.versions("id", "v") == [(1, "a"), (1, "b")]
    assert list(pipeline.board.now.skipped) == [str(other)]


@pytest.mark.parametrize(
    ("conf", "what"),
    [
        ({"orders": {"changelog-producer": "input"}}, "`changelog-producer` = `input`"),
        ({"orders_history": {"merge-engine": "first-row"}}, "`merge-engine` = `first-row`"),
        ({"orders_history": {"bucket": "-1"}}, "all versions of a row lie in one bucket"),
    ],
)
def test_options_that_do_not_go_with_it(lab: Lab, conf: dict[str, Any], what: str) -> None:
    """Each is refused by name, for the table that it is meant for."""
    with pytest.raises(InvalidArgument, match=what):
        lab.pipeline(conf=conf).prepare([SourceTable(SOURCE, PLAIN)])


def test_options_reach_the_table_they_name(lab: Lab) -> None:
    """Those for all tables the history too, and an audit as far as it has a use for them."""
    conf = {".*": {"bucket": "3", "file.format": "orc"}, "orders_history": {"bucket": "5"}}
    lab.pipeline(Keeping(audit=".*", audit_by_day=True, history=".*"), conf).prepare([SourceTable(SOURCE, PLAIN)])
    found = {form: lab.lake.table(f"lk.orders{form}") for form in ("", "_changes", "_history")}
    assert {form: table.schema.options.get("bucket") for form, table in found.items()} == {
        "": "3",
        "_changes": None,
        "_history": "5",
    }
    assert {table.schema.options["file.format"] for table in found.values()} == {"orc"}
    assert list(found["_history"].primary_key) == ["id", "row_version"]
    assert list(found["_changes"].partition_by) == ["changed_on"]


def test_a_table_keeps_what_it_is_for(lab: Lab) -> None:
    """Deleted rows do not come back to life under other rules, and a history is no table for newest rows."""
    lab.apply(lab.pipeline(), lab.copied(100, ("+I", 1, "a")), lab.at(110, 1, ("-D", 1, None)))
    for keeping in (Keeping(), Keeping(MARK, "gone_at")):
        with pytest.raises(InvalidArgument, match="has deleted rows, which its column `deleted_at`"):
            lab.pipeline(keeping).prepare([SourceTable(SOURCE, PLAIN)], "user")
    other = SourceName("shop", "public", "orders_history")
    with pytest.raises(InvalidArgument, match="holds the history of a table"):
        lab.pipeline(Keeping()).prepare([SourceTable(other, PLAIN)], "user")
    assert lab.lake.table("lk.orders").schema.options[LAKEBED_CDC_KEEPS.key] == "marks:deleted_at"


def test_a_column_of_the_source_that_is_called_like_ours(lab: Lab) -> None:
    """The table is not followed, and the sync says why, until ours have a prefix."""
    clash = description({"id": "INT NOT NULL", "valid_to": "STRING"})
    pipeline = lab.pipeline(Keeping(history=".*"))
    pipeline.prepare([SourceTable(SOURCE, clash)])
    assert "column `valid_to`" in pipeline.board.now.skipped["lk.orders_history"]
    lab.pipeline(Keeping(history=".*", prefix="h_")).prepare([SourceTable(SOURCE, clash)])
    assert "h_valid_to" in lab.lake.table("lk.orders_history").schema.field_names


def test_what_is_asked_for() -> None:
    """True is every table, a pattern is some; slips are refused, and so is what a source can not tell."""
    assert keeping_of({}) == Keeping()
    assert keeping_of({"history": True, "audit": "orders|lines"}) == Keeping(audit="orders|lines", history=".*")
    assert keeping_of({"history": False, "audit": None}) == Keeping()
    some = Keeping(audit="lines", history="shop.public.orders")
    assert some.forms_of(SOURCE) == (STATE, HISTORY)
    assert some.forms_of(SourceName("shop", "public", "lines")) == (STATE, CHANGES)
    for wrong in ({"deletes": "marks"}, {"deleted_column": ""}, {"history": "("}, {"audit_by_day": True}):
        with pytest.raises(InvalidArgument):
            keeping_of(wrong)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("name", "place"), [("files", {"path": "/tmp"}), ("kafka", {"bootstrap_servers": "x", "topics": "a"})]
)
def test_messages_can_not_be_audited(name: str, place: dict[str, str]) -> None:
    """They are refused by name; versions and marks need no more than the time."""
    source = open_source(name, **place)
    source.tell_times(changes=False)
    with pytest.raises(Unsupported, match=f"a sync of {name} can not keep an audit"):
        source.tell_times(changes=True)
