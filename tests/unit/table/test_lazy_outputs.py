"""Every way to read gives the same rows, of every kind of table and view of one."""

from __future__ import annotations

import pickle
from collections import Counter
from collections.abc import Callable
from typing import Any

import duckdb
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from tests.unit.warehouse_under_test import Warehouse, ints

import lakebed
from lakebed import AddColumn, RenameColumn, Table, UpdateColumnType

COLUMNS = {"id": "INT NOT NULL", "p": "STRING NOT NULL", "v": "INT", "s": "STRING"}


def _rows(start: int, stop: int, add: int = 0) -> pa.Table:
    ids = range(start, stop)
    return pa.table(
        {
            "id": ints(*ids),
            "p": [f"p{i % 3}" for i in ids],
            "v": ints(*(None if i % 7 == 0 else i + add for i in ids)),
            "s": [None if i % 5 == 0 else f"s{i + add}" for i in ids],
        }
    )


def _keyed(house: Warehouse, name: str, options: dict[str, str], **more: Any) -> Table:
    """A table with runs that overlap, and, where its engine takes them, deletions."""
    table = house.table(name, COLUMNS, _rows(0, 60), primary_key=["id"], options={"bucket": "2", **options}, **more)
    table.write(_rows(20, 40, 100))
    if options.get("merge-engine", "deduplicate") == "deduplicate":
        gone = _rows(25, 30).append_column("kind", pa.array(["-D"] * 5))
        table.write(gone, row_kind="kind")
    return table


def _appended(house: Warehouse, name: str, options: dict[str, str], **more: Any) -> Table:
    table = house.table(name, COLUMNS, _rows(0, 60), options=options, **more)
    table.write(_rows(60, 80))
    return table


def _vectors(house: Warehouse, name: str) -> Table:
    table = _appended(house, name, {"deletion-vectors.enabled": "true"})
    table.delete_where("id BETWEEN 10 AND 19 OR id = 70")
    return table


def _evolved(house: Warehouse, name: str) -> Table:
    table = _keyed(house, name, {})
    table.alter(AddColumn("n", "STRING"), RenameColumn("s", "text"), UpdateColumnType("v", "BIGINT"))
    table.write(
        pa.table({"id": ints(1, 100), "p": ["p1", "p1"], "v": [1, 2], "text": ["x", "y"], "n": ["new", "newer"]})
    )
    return table


def _compacted(house: Warehouse, name: str) -> Table:
    table = _keyed(house, name, {})
    table.compact(full=True)
    table.write(_rows(200, 210))
    return table


def _travelling(house: Warehouse, name: str) -> Table:
    table = _keyed(house, name, {})
    return table.at(snapshot=1)


def _tagged(house: Warehouse, name: str) -> Table:
    table = _keyed(house, name, {})
    table.create_tag("then", snapshot=2)
    table.write(_rows(500, 600))
    return table.at(tag="then")


def _branched(house: Warehouse, name: str) -> Table:
    table = _appended(house, name, {})
    table.create_branch("side")
    side = table.on_branch("side")
    side.write(_rows(900, 950))
    return side


def _system(suffix: str) -> Callable[[Warehouse, str], Table]:
    def make(house: Warehouse, name: str) -> Table:
        _keyed(house, name, {"changelog-producer": "input"})
        return house.lake.table(f"{name}${suffix}")

    return make


def _postponed(house: Warehouse, name: str) -> Table:
    options = {"bucket": "-2", "postpone.merge-on-read": "true"}
    table = house.table(name, COLUMNS, _rows(0, 60), primary_key=["id"], options=options)
    table.write(_rows(20, 40, 100))
    return table


def _tracked(house: Warehouse, name: str) -> Table:
    _appended(house, name, {"row-tracking.enabled": "true"})
    return house.lake.table(f"{name}$row_tracking")


KINDS: dict[str, Callable[[Warehouse, str], Table]] = {
    "deduplicate": lambda house, name: _keyed(house, name, {}),
    "partial_update": lambda house, name: _keyed(house, name, {"merge-engine": "partial-update"}),
    "aggregation": lambda house, name: _keyed(
        house, name, {"merge-engine": "aggregation", "fields.v.aggregate-function": "sum"}
    ),
    "first_row": lambda house, name: _keyed(house, name, {"merge-engine": "first-row"}),
    "keyed_partitions": lambda house, name: house.table(
        name, COLUMNS, _rows(0, 60), primary_key=["id", "p"], partition_by=["p"], options={"bucket": "2"}
    ),
    "appended": lambda house, name: _appended(house, name, {}),
    "appended_partitions": lambda house, name: _appended(house, name, {}, partition_by=["p"]),
    "hashed": lambda house, name: _appended(house, name, {"bucket": "3", "bucket-key": "id"}),
    "vectors": _vectors,
    "keyed_vectors": lambda house, name: _keyed(house, name, {"deletion-vectors.enabled": "true"}),
    "evolved": _evolved,
    "compacted": _compacted,
    "travelling": _travelling,
    "tagged": _tagged,
    "branched": _branched,
    "dynamic": lambda house, name: _keyed(house, name, {"bucket": "-1"}),
    "postponed": _postponed,
    "empty": lambda house, name: house.table(name, COLUMNS),
    "incremental": lambda house, name: _appended(house, name, {}).with_options({"incremental-between": "1,2"}),
    "latest_delta": lambda house, name: _appended(house, name, {}).with_options({"scan.mode": "latest-delta"}),
    "defaults": lambda house, name: _appended(house, name, {"fields.v.default-value": "7"}),
    "audit_log": _system("audit_log"),
    "binlog": _system("binlog"),
    "read_optimized": _system("ro"),
    "snapshots": _system("snapshots"),
    "files": _system("files"),
    "options": _system("options"),
    "row_tracking": _tracked,
}


@pytest.fixture(scope="module")
def tables(lasting: Warehouse) -> dict[str, Table]:
    return {}


@pytest.fixture(params=KINDS)
def table(request: pytest.FixtureRequest, lasting: Warehouse, tables: dict[str, Table]) -> Table:
    if request.param not in tables:
        tables[request.param] = KINDS[request.param](lasting, request.param)
    return tables[request.param]


def _bag(rows: pa.Table) -> Counter[str]:
    return Counter(map(repr, rows.to_pylist()))


def test_streams_give_all_rows(table: Table) -> None:
    """Readers, Arrow streams and batches give what to_arrow gives, in the same order and under the same schema."""
    everything = table.to_arrow()
    reader = table.to_reader()
    assert reader.schema == everything.schema == table.arrow_schema
    assert reader.read_all() == everything
    assert pa.table(table) == everything
    assert pa.schema(table) == everything.schema
    assert pa.Table.from_batches(table.to_batches(), schema=everything.schema) == everything
    assert table.columns == everything.column_names
    two = everything.column_names[1:3][::-1]
    assert table.to_reader(two).read_all() == everything.select(two)


def test_duckdb_and_polars_give_all_rows(table: Table) -> None:
    """A DuckDB relation and a lazy frame of polars have the rows of the table, and any of its columns."""
    everything = table.to_arrow()
    with duckdb.connect() as connection:
        relation = table.to_duckdb(connection=connection)
        assert relation.columns == table.columns
        assert relation.aggregate("count(*)").fetchall() == [(everything.num_rows,)]
        wanted = connection.from_arrow(everything)
        assert sorted(map(repr, relation.fetchall())) == sorted(map(repr, wanted.fetchall()))
    frame = table.to_polars()
    lazy = table.to_polars(lazy=True)
    assert lazy.collect_schema() == frame.schema
    assert lazy.collect().equals(frame)
    assert lazy.collect(engine="streaming").equals(frame)
    last = table.columns[-1]
    assert lazy.select(last).collect().equals(frame.select(last))
    assert lazy.select(pl.len()).collect().item() == frame.height
    assert lazy.head(3).collect().equals(frame.head(3))
    assert lazy.filter(pl.col(last).is_null()).collect().equals(frame.filter(pl.col(last).is_null()))


def test_a_little_of_it(table: Table) -> None:
    """Heads and samples are rows of the table, as many as asked for, and counts are right."""
    everything = table.to_arrow()
    assert table.count() == everything.num_rows
    for n in (0, 1, 5, 1000):
        assert table.head(n) == everything.slice(0, n)
        drawn = table.sample(n, seed=n)
        assert drawn.num_rows == min(n, everything.num_rows)
        assert drawn.schema == everything.schema
        assert not _bag(drawn) - _bag(everything)
        assert table.sample(n, seed=n) == drawn
    assert table.head(2, columns=[table.columns[0]]) == everything.slice(0, 2).select([0])


def test_parts_read_elsewhere(table: Table) -> None:
    """Splits and plan survive a pickle, and the splits together hold every row once."""
    if table.name.endswith("postponed"):
        with pytest.raises(lakebed.errors.Unsupported, match="this machine only"):
            pickle.dumps(table.plan())  # its rows wait for their buckets in files that were made for this read
        return
    everything = table.to_arrow()
    plan = table.plan()
    reader, splits = pickle.loads(pickle.dumps((plan.alone, plan.splits)))
    assert plan.schema == reader.schema == everything.schema
    found = pa.Table.from_batches([batch for split in splits for batch in reader.read(split)], schema=reader.schema)
    assert found == everything


def test_filters_in_every_form(table: Table) -> None:
    """SQL text, expressions of pyarrow and polars, and lists choose the same rows, in every way to read."""
    if "id" not in table.columns or pa.types.is_list(table.arrow_schema.field("id").type):
        pytest.skip("no such column")
    everything = table.to_arrow()
    wanted = everything.filter((pc.field("id") > 22) & (pc.field("p") == "p1"))
    forms: list[Any] = [
        "id > 22 AND p = 'p1'",
        (pc.field("id") > 22) & (pc.field("p") == "p1"),
        (pl.col("id") > 22) & (pl.col("p") == "p1"),
        [("id", ">", 22), ("p", "=", "p1")],
    ]
    for form in forms:
        assert table.to_arrow(filter=form) == wanted
        assert table.to_reader(["id"], form).read_all() == wanted.select(["id"])
        assert table.count(form) == wanted.num_rows
        assert table.where(form).to_arrow() == wanted
        assert table.where("id > 22").where("p = 'p1'").count() == wanted.num_rows
        assert table.where("id > 22").to_polars(filter="p = 'p1'").height == wanted.num_rows
        assert table.where(form).to_duckdb(["id"]).aggregate("count(*)").fetchall() == [(wanted.num_rows,)]
        assert table.scan_polars(["id"], form).collect().height == wanted.num_rows
        assert table.where(form).scan_polars().filter(pl.col("id") > 30).collect().height == sum(
            1 for each in wanted["id"].to_pylist() if each > 30
        )
    some = table.where("p = 'p1'")
    assert some.count() == sum(1 for each in everything["p"].to_pylist() if each == "p1")
    assert some.sample(3, seed=1).num_rows == min(3, some.count())
    assert some.head(2).num_rows == min(2, some.count())
    assert sum(batch.num_rows for split in some.plan().splits for batch in some.plan().read(split)) == some.count()


def test_views_only_read(lasting: Warehouse) -> None:
    """What `where` gives has no way to write, tells its filter, and refuses a wrong one at once."""
    table = lasting.lake.table("bystander")
    view = table.where("id > 1")
    assert "id > 1" in repr(view)
    assert not hasattr(view, "write")
    with lasting.refuses(lakebed.errors.NotFound, "`idd`"):
        table.where("idd > 1")


def test_counts_come_from_metadata(warehouse: Warehouse, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where nothing is merged or filtered within a file, counting opens no data file; where it is, it does."""
    from lakebed.read.reader import SplitReader

    opened: list[object] = []
    read = SplitReader.read

    def noted(self: SplitReader, split: Any) -> Any:
        opened.append(split)
        return read(self, split)

    monkeypatch.setattr(SplitReader, "read", noted)
    parts = _appended(warehouse, "parts", {}, partition_by=["p"])
    vectors = _vectors(warehouse, "vectors")
    full = _compacted(warehouse, "full")
    opened.clear()
    assert (parts.count(), parts.count("p = 'p1'"), parts.count("p IN ('p0', 'p2') AND p > 'p0'")) == (80, 27, 26)
    assert vectors.count() == 69
    assert full.count() == 65
    assert opened == []
    assert parts.count("p = 'p1' AND id < 10") == 3
    assert opened != []


def test_a_head_opens_one_file(warehouse: Warehouse) -> None:
    """A head of a table of many files reads the first of them."""
    table = warehouse.table("t", {"k": "BIGINT"}, options={"source.split.target-size": "1 b"})
    for start in range(0, 50, 10):
        table.write(pa.table({"k": range(start, start + 10)}))
    for file in table.scan().files[1:]:
        context = table._opened.context
        context.fileio.delete(context.data_file_path(table.scan().splits[0].partition, 0, file.file_name))
    assert table.head(10)["k"].to_pylist() == list(range(10))


@pytest.mark.parametrize("n", [-1, "3", 2.5, True, None])
def test_numbers_of_rows(lasting: Warehouse, n: Any) -> None:
    """Heads and samples take whole numbers from 0."""
    table = lasting.lake.table("bystander")
    for read in (table.head, table.sample):
        with lasting.refuses(lakebed.errors.InvalidArgument, f"n is {n!r}"):
            read(n)
