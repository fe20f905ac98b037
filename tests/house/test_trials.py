"""What is said to take one file and one line does: each is added here, and works without a change anywhere else."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from tests.cdc.pipeline.local_sync import LocalSync
from tests.house.trial_catalog import open_numbered
from tests.house.trial_source import TAPES
from tests.unit.cdc.batches import ChunkMaker, description

import lakebed
from lakebed.catalog.registry import CATALOGS
from lakebed.cdc.sources import CHANGE_SOURCES, source_class
from lakebed.changes.position import StreamPosition
from lakebed.changes.scan_modes import SCAN_MODES, ScanMode
from lakebed.cli.cdc import CDC, source_options
from lakebed.cli.command import Parser
from lakebed.definition.bucket_mode import BUCKET_MODES, BucketMode, TaskNeeds
from lakebed.errors import NotFound
from lakebed.merge.aggregates import AGGREGATES, Aggregate
from lakebed.merge.segments import Segments
from lakebed.options import SCAN_MODE
from lakebed.types.logical import DataType, TypeRoot, is_root
from lakebed.write.placement import PLACEMENTS, PlacedRows, Placement

EVEN_AND_ODD = BucketMode(
    "even-and-odd", lambda schema, _: "parity_of" in schema.field_names, TaskNeeds.WHOLE_BUCKETS, hashes_keys=False
)


class EvenAndOdd(Placement):
    """Even keys in one bucket, odd ones in the other."""

    mode = EVEN_AND_ODD

    def place(self, rows: pa.RecordBatch, kinds: pa.Array) -> PlacedRows:
        keys = np.asarray(rows.column("parity_of"))
        return PlacedRows(rows, kinds, (keys % 2).astype(np.int64))


@pytest.fixture
def registered() -> Iterator[None]:
    """The one line."""
    BUCKET_MODES.insert(0, EVEN_AND_ODD)
    PLACEMENTS[EVEN_AND_ODD] = EvenAndOdd
    yield
    BUCKET_MODES.remove(EVEN_AND_ODD)
    del PLACEMENTS[EVEN_AND_ODD]


@pytest.mark.usefixtures("registered")
def test_a_bucket_mode() -> None:
    """Rows are written, merged, compacted and read through it, and the table is in order."""
    lake = lakebed.connect("memory://trial-mode")
    table = lake.create_table("t", {"parity_of": "INT NOT NULL", "v": "INT"}, primary_key=["parity_of"])
    for round_number in range(3):
        keys = list(range(round_number, round_number + 4))
        table.write(pa.table({"parity_of": pa.array(keys, pa.int32()), "v": pa.array([round_number] * 4, pa.int32())}))
    assert {split.bucket for split in table.scan().splits} == {0, 1}
    table.compact(full=True)
    rows = sorted(table.to_arrow().to_pylist(), key=lambda row: row["parity_of"])
    assert [row["v"] for row in rows] == [0, 1, 2, 2, 2, 2]
    assert not table.check()


OLDEST = "oldest"


@pytest.fixture
def oldest() -> Iterator[None]:
    """The entry, and its word among the choices of the option."""
    words = SCAN_MODE.choices
    SCAN_MODES[OLDEST] = ScanMode(
        lambda context, history: StreamPosition(history.earliest_id() or 1),
        snapshot=lambda context: context.stores.snapshots.get(context.stores.snapshots.earliest_id() or 1),
    )
    object.__setattr__(SCAN_MODE, "choices", (*words, OLDEST))
    yield
    object.__setattr__(SCAN_MODE, "choices", words)
    del SCAN_MODES[OLDEST]


@pytest.mark.usefixtures("oldest")
def test_a_scan_mode() -> None:
    """Reads that end, lookups and streams begin where it says."""
    lake = lakebed.connect("memory://trial-scan-mode")
    table = lake.create_table("t", {"k": "INT NOT NULL", "v": "INT"}, primary_key=["k"])
    for value in (1, 2, 3):
        table.write(pa.table({"k": pa.array([1], pa.int32()), "v": pa.array([value], pa.int32())}))
    opened = table.with_options({"scan.mode": "Oldest"})
    assert opened.to_arrow()["v"].to_pylist() == [1]
    assert opened.lookup([1])["v"].to_pylist() == [1]
    assert [rows["v"].to_pylist() for rows in opened.follow()] == [[1], [2], [3]]
    assert [rows["v"].to_pylist() for rows in table.follow(options={"scan.mode": OLDEST})] == [[1], [2], [3]]
    assert table.to_arrow()["v"].to_pylist() == [3]


class Longest(Aggregate):
    """The longest of a key's texts."""

    name = "longest"
    takes = "texts"

    @classmethod
    def accepts(cls, data_type: DataType) -> bool:
        return is_root(data_type, TypeRoot.VARCHAR)

    def fold(self, column: pa.Array, segments: Segments) -> pa.Array:
        lengths = np.asarray(pc.binary_length(segments.sorted(column)).fill_null(0)).astype(np.int64)
        return segments.pick(column, segments.greatest(lengths, segments.valid(column)))


def test_an_aggregate_function(monkeypatch: pytest.MonkeyPatch) -> None:
    """It folds rows of one write, of several, and of a compaction, beside a function of ours."""
    monkeypatch.setitem(AGGREGATES, Longest.name, Longest)
    options = {
        "merge-engine": "aggregation",
        "fields.t.aggregate-function": "longest",
        "fields.n.aggregate-function": "sum",
    }
    lake = lakebed.connect("memory://trial-aggregate")
    columns = {"id": "INT NOT NULL", "t": "STRING", "n": "INT"}
    table = lake.create_table("t", columns, primary_key=["id"], options={"bucket": "1", **options})
    for texts in (["a", "bbb", None], ["cc", None, None], [None, "dddd", "e"]):
        rows = {"id": pa.array([1, 1, 2], pa.int32()), "t": pa.array(texts), "n": pa.array([1, 1, 1], pa.int32())}
        table.write(pa.table(rows))
        expected = {row["id"]: (row["t"], row["n"]) for row in table.to_arrow().to_pylist()}
    assert expected == {1: ("dddd", 6), 2: ("e", 3)}
    table.compact(full=True)
    assert {row["id"]: (row["t"], row["n"]) for row in table.to_arrow().to_pylist()} == expected


def test_a_catalog(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Tables are made, written, read, shown by SQL, renamed and dropped through it."""
    monkeypatch.setitem(CATALOGS, "trial", open_numbered)
    lake = lakebed.connect(tmp_path, options={"metastore": "trial"})
    lake.create_database("db")
    table = lake.create_table("db.t", {"id": "INT NOT NULL", "v": "STRING"}, primary_key=["id"])
    table.write(pa.table({"id": pa.array([1, 2], pa.int32()), "v": ["a", "b"]}))
    lake.table("db.t").write(pa.table({"id": pa.array([2], pa.int32()), "v": ["c"]}))
    assert sorted(row["v"] for row in lake.table("db.t").to_arrow().to_pylist()) == ["a", "c"]
    assert (tmp_path / "1" / "schema" / "schema-0").exists()
    lake.sql("CREATE TABLE db.u (id INT)")
    shown = lake.sql("SHOW TABLES IN db").toArrow().to_pylist()
    assert [row["tableName"] for row in shown] == ["t", "u"]
    lake.rename_table("db.t", "db.w")
    lake.sql("DROP TABLE db.u")
    assert lake.tables("db") == ["w"]
    lake.drop_table("db.w")
    assert not lake.has_table("db.w")
    with pytest.raises(NotFound):
        lake.table("db.w")


@pytest.fixture
def tape(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The one line, and something to replay."""
    monkeypatch.setitem(CHANGE_SOURCES, "tape", ("tests.house.trial_source", "TapeSource"))
    makes, described = ChunkMaker(), description({"id": "INT NOT NULL", "v": "STRING"})
    wider = description({"id": "INT NOT NULL", "v": "STRING", "w": "INT"})
    TAPES["orders"] = [
        [makes.rows(described, ("+I", 1, "a"), ("+I", 2, "b"))],
        [makes.rows(described, ("-D", 1, "a")), makes.rows(wider, ("+I", 3, "c", 7))],
    ]
    yield "orders"
    del TAPES["orders"]


def test_a_source_of_changes(tape: str, tmp_path: Path) -> None:
    """Its rows, deletes and new columns come into the lake, named like any source that we ship."""
    lake = lakebed.connect(tmp_path / "lake")
    run = LocalSync(lake, "tape", tmp_path / "checkpoint", source_options={"title": tape}, including="orders")
    while run.step():
        pass
    run.stop()
    rows = sorted(lake.table("lk.orders").to_arrow().to_pylist(), key=lambda row: row["id"])
    assert rows == [{"id": 2, "v": "b", "w": None}, {"id": 3, "v": "c", "w": 7}]


def test_a_source_of_changes_on_the_command_line(tape: str) -> None:
    """`lakebed cdc` takes its name, and knows from it what its place and its lists are called."""
    parser = Parser("lakebed cdc", "")
    CDC.arguments(parser)
    given = parser.parse_args(["tape", tape, "--option", "pieces=a,b"])
    options = source_options(given)
    assert options == {"title": "orders", "pieces": ["a", "b"]}
    assert vars(source_class("tape")(**options)) == {
        "title": "orders",
        "pieces": ("a", "b"),
        "patterns": (".*", "fail"),
    }
