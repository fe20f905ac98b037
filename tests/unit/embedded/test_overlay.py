"""Old runs under newer ones: when DuckDB reads the old files itself, and that the rows are those of the table."""

from __future__ import annotations

from collections import Counter
from decimal import Decimal
from pathlib import Path
from random import Random

import pyarrow as pa
import pytest

import lakebed
from lakebed.embedded import overlay, tables
from lakebed.embedded.tables import TableParts, parts_of
from lakebed.table.plans import plan_read
from lakebed.table.table import Table

UNSOUND = {
    "a sequence field": {"sequence.field": "v"},
    "ignored deletes": {"ignore-delete": "true"},
    "sums": {"merge-engine": "aggregation", "fields.v.aggregate-function": "sum"},
    "partial updates": {"merge-engine": "partial-update"},
    "first rows": {"merge-engine": "first-row"},
    "marked rows": {"deletion-vectors.enabled": "true"},
    "another format": {"file.format": "orc"},
}


@pytest.fixture(autouse=True)
def nothing_is_small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tables, "_SMALL_ROWS", -1)


def _table(lake: lakebed.Lake, name: str, options: dict[str, str], key: str = "BIGINT") -> Table:
    return lake.create_table(
        name,
        {"id": f"{key} NOT NULL", "v": "INT", "s": "STRING"},
        primary_key=["id"],
        options={"bucket": "2", "write-only": "true", **options},
    )


def _write(table: Table, ids: list[int], *, gone: bool = False) -> None:
    kind = table.arrow_schema.field("id").type
    rows = pa.table(
        {
            "id": pa.array(ids).cast(kind),
            "v": pa.array(ids, pa.int32()),
            "s": [f"row {each}" for each in ids],
            "op": ["-D" if gone else "+I"] * len(ids),
        }
    )
    table.write(rows, row_kind="op")


def _parts(table: Table) -> TableParts:
    reader, plan = plan_read(table, table.columns, None)
    return parts_of(reader, plan, 2)


def _bag(rows: pa.Table) -> Counter[str]:
    return Counter(map(repr, rows.to_pylist()))


@pytest.mark.parametrize("kept_bytes", [overlay._KEPT_BYTES, -1], ids=["kept", "read twice"])
def test_newer_rows_hide_old_ones(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kept_bytes: int) -> None:
    """Replaced and deleted rows are gone, newer ones are there, whether they are kept for the query or read twice."""
    monkeypatch.setattr(overlay, "_KEPT_BYTES", kept_bytes)
    lake = lakebed.connect(tmp_path)
    table = _table(lake, "t", {})
    _write(table, list(range(100)))
    _write(table, [3, 5, 200])
    _write(table, [5, 7, 300], gone=True)
    _write(table, [7])
    parts = _parts(table)
    assert parts.newer is not None
    assert parts.old_paths
    assert not parts.merged
    found = lake.query("SELECT * FROM t", engine="duckdb").arrow()
    assert _bag(found) == _bag(table.to_arrow())
    assert sorted(found["id"].to_pylist()) == [each for each in range(100) if each != 5] + [200]
    asked = "SELECT count(*), min(s) FROM t WHERE id BETWEEN 4 AND 8"
    assert lake.query(asked, engine="duckdb").fetchall() == [(4, "row 4")]
    assert lake.query("SELECT count(*) FROM t WHERE s = 'row 5'", engine="duckdb").fetchall() == [(0,)]


@pytest.mark.parametrize("name", UNSOUND)
def test_where_the_newest_row_says_less_all_runs_are_merged(name: str, tmp_path: Path) -> None:
    """Nothing is left to an anti join where a row does not just replace the older ones of its key."""
    lake = lakebed.connect(tmp_path)
    table = _table(lake, "t", UNSOUND[name])
    _write(table, list(range(100)))
    _write(table, [3, 5, 200])
    assert _parts(table).newer is None
    assert _bag(lake.query("SELECT * FROM t", engine="duckdb").arrow()) == _bag(table.to_arrow())


def test_fractions_are_no_keys_to_compare(tmp_path: Path) -> None:
    """-0.0 and 0.0 are two keys of a table, and one value to DuckDB."""
    lake = lakebed.connect(tmp_path)
    table = _table(lake, "t", {"bucket": "1"}, key="DOUBLE")
    for value in (0.0, -0.0):
        table.write(pa.table({"id": pa.array([value, 2.0, 3.0]), "v": pa.array([1, 1, 1], pa.int32()), "s": ["a"] * 3}))
    assert _parts(table).newer is None
    found = lake.query("SELECT count(*) FROM t", engine="duckdb").fetchall()
    assert found == [(table.to_arrow().num_rows,)]


def test_a_key_of_null_is_replaced_too(tmp_path: Path) -> None:
    """Null is one key where keys may be null."""
    lake = lakebed.connect(tmp_path)
    options = {"bucket": "1", "write-only": "true", "primary-key.nullable": "true"}
    table = lake.create_table("t", {"id": "INT", "v": "INT"}, primary_key=["id"], options=options)
    table.write(pa.table({"id": pa.array([None, 1, 2], pa.int32()), "v": pa.array([1, 1, 1], pa.int32())}))
    table.write(pa.table({"id": pa.array([None], pa.int32()), "v": pa.array([2], pa.int32())}))
    assert _parts(table).newer is not None
    assert _bag(lake.query("SELECT * FROM t", engine="duckdb").arrow()) == _bag(table.to_arrow())


def test_a_key_that_left_a_partition_is_there_in_another(tmp_path: Path) -> None:
    """What takes a key away from one partition does not hide its row in the next."""
    lake = lakebed.connect(tmp_path)
    columns = {"id": "INT NOT NULL", "p": "STRING NOT NULL"}
    table = lake.create_table(
        "t", columns, primary_key=["id"], partition_by=["p"], options={"bucket": "1", "write-only": "true"}
    )
    first = pa.table({"id": pa.array([1, 2, 3, 7, 8, 9], pa.int32()), "p": ["x"] * 3 + ["y"] * 3})
    table.write(first)
    later = pa.table({"id": pa.array([2, 1, 8], pa.int32()), "p": ["x", "y", "y"], "op": ["+U", "-D", "+U"]})
    table.write(later, row_kind="op")
    assert _parts(table).newer is not None
    assert _bag(lake.query("SELECT * FROM t", engine="duckdb").arrow()) == _bag(table.to_arrow())


def test_more_new_rows_than_old_ones_are_merged(tmp_path: Path) -> None:
    """It is worth while only where most rows lie in the old run."""
    table = _table(lakebed.connect(tmp_path), "t", {"bucket": "1"})
    _write(table, [1, 2, 3])
    _write(table, [2, 3, 4, 5, 6])
    assert _parts(table).newer is None


@pytest.mark.parametrize("partitioned", [False, True])
def test_random_histories(tmp_path: Path, partitioned: bool) -> None:
    """After every write of random upserts and deletes, compactions and new columns, both ways show the same."""
    lake, random = lakebed.connect(tmp_path), Random(5)
    table = lake.create_table(
        "t",
        {"p": "STRING NOT NULL", "id": "STRING NOT NULL", "v": "DECIMAL(9, 2)"},
        primary_key=["p", "id"],
        partition_by=["p"] if partitioned else [],
        options={"bucket": "2", "write-only": "true"},
    )
    overlaid = 0
    for step in range(25):
        count = 60 if step % 8 == 0 else random.randint(1, 12)
        keys = {(random.choice("ab"), f"é{random.randint(0, 80)}") for _ in range(count)}
        rows = pa.table(
            {
                "p": [key[0] for key in keys],
                "id": [key[1] for key in keys],
                "v": pa.array([Decimal(step)] * len(keys), pa.decimal128(9, 2)),
                "op": [random.choice(["+I", "+U", "-D"] if step % 8 else ["+I"]) for _ in keys],
            }
        )
        if step > 12:
            rows = rows.append_column("w", pa.array([step] * len(keys), pa.int32()))
        table.write(rows, row_kind="op")
        if step % 8 == 0:
            table.compact(full=True)
        if step == 12:
            table.alter(lakebed.AddColumn("w", "INT"))
        overlaid += _parts(table).newer is not None
        assert _bag(lake.query("SELECT * FROM t", engine="duckdb").arrow()) == _bag(table.to_arrow())
        chosen = lake.query("SELECT id, v FROM t WHERE p = 'a' AND id < 'é5'", engine="duckdb").arrow()
        wanted = table.to_arrow(["id", "v"], (pa.compute.field("p") == "a") & (pa.compute.field("id") < "é5"))
        assert _bag(chosen) == _bag(wanted)
    assert overlaid > 5
