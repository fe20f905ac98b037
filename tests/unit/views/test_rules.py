"""The statements of rules as text, the hash of rows, and the rule of cost."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pyarrow as pa
import pytest

import lakebed
from lakebed.embedded.program import running
from lakebed.expressions import kinds
from lakebed.lake import Lake
from lakebed.views.cost import Estimate, Measure, Past
from lakebed.views.lake_in import read_sql
from lakebed.views.plan.build import key_columns, planned
from lakebed.views.row_hashes import BITS, hashed
from lakebed.views.rules.compile import compiled
from lakebed.views.rules.program import SourceRules
from lakebed.views.sources import bound_query


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    """Two tables with keys."""
    found = lakebed.connect(str(tmp_path))
    found.create_table("a", {"i": "INT NOT NULL", "k": "INT", "x": "INT"}, primary_key=["i"])
    found.create_table("b", {"k": "INT NOT NULL", "y": "INT"}, primary_key=["k"])
    return found


def _statements(lake: Lake, query: str) -> list[str]:
    plan = planned(bound_query(lake, read_sql(query), {}))
    rules = {scan.view: SourceRules(key_columns(scan)) for scan in plan.scans}
    adding = plan.linear
    added = None if adding is None else (adding.states, adding.changes)
    return [f"{each.name}: {each.relation.spelled()}" for each in compiled(plan.root, rules, None, added).statements]


def test_a_filter_is_asked_of_changes(lake: Lake) -> None:
    """One statement over the changes; the table itself is not read."""
    (text,) = _statements(lake, "SELECT i, x FROM a WHERE x > 1")
    assert text.count("changes_source_4") == 1
    assert "FROM source_4" not in text


def test_a_join_reads_only_partners(lake: Lake) -> None:
    """Changes of one side meet rows of the other that have their keys."""
    texts = _statements(lake, "SELECT a.i, b.y FROM a JOIN b ON a.k = b.k")
    names = [text.split(":")[0] for text in texts]
    assert names == ["keys_1", "found_2", "joined_3", "keys_4", "joined_5", "result_6"]
    assert "SEMI JOIN" in texts[1]  # rows of b by their key
    assert "ANTI JOIN" not in texts[2]  # the new right side
    assert "SEMI JOIN" in texts[4]  # rows of a, of which that column is no key
    assert "ANTI JOIN" in texts[4]  # the old left side


def test_sums_are_of_changes_alone(lake: Lake) -> None:
    """Where values add up, no table is read."""
    texts = _statements(lake, "SELECT k, sum(x) AS s, count(*) AS n FROM a GROUP BY k")
    assert not any("FROM source_" in text for text in texts)
    assert "* w" in texts[-1]


def test_groups_that_do_not_add_up_are_computed_anew(lake: Lake) -> None:
    """From the rows of the groups that changed."""
    texts = _statements(lake, "SELECT k, max(x) AS m FROM a GROUP BY k")
    assert [text.split("_")[0] for text in texts] == ["keys", "result"]
    assert "SEMI JOIN" in texts[1]


_VALUES = [
    ("7", kinds.INT, "8f14e45fceea167a5a36dedd4bea2543"),
    ("'a,b'", kinds.STRING, "dd61c2972414883f12dd7279b194ea83"),
    ("DATE '2024-05-14'", kinds.DATE, "35e253435fd1f1506bc5b96e27aedf3e"),
    ("TIMESTAMP '2024-05-14 13:45:00'", kinds.TIMESTAMP_NTZ, "62967a067e8a3e58d45f0357e541ba2e"),
    ("CAST(0.1 AS DOUBLE)", kinds.DOUBLE, "fe18d1f3e0cfddf4de4e97fc968cbc3c"),
    ("[1, NULL]", kinds.array_of(kinds.INT), "a2ce24812b28f4f98b84a0dbb6e1bc57"),
]


def test_hashes_are_the_same_everywhere() -> None:
    """They are stored: a version that made others would not find its rows again."""
    for zone in ("Asia/Tokyo", "America/New_York"):
        with running([], zone, (BITS,)) as run:
            texts = [f"SELECT {hashed([(text, kind)])} AS h" for text, kind, _ in _VALUES]
            found = [run.table(text).column("h")[0].as_py() for text in texts]
        assert found == [expected for _, _, expected in _VALUES]


def test_hashes_tell_values_apart() -> None:
    """Texts with commas, nulls, empty texts, zeros of two signs, the same values elsewhere: each has its own."""
    schema = [kinds.STRING, kinds.STRING, kinds.DOUBLE, kinds.array_of(kinds.STRING)]
    rows = [
        ("'a'", "'b'", "0.0", "['a', 'b']"),
        ("'a,b'", "''", "0.0", "['a,b']"),
        ("'a'", "NULL", "0.0", "['a', 'b']"),
        ("NULL", "'a'", "0.0", "['a', 'b']"),
        ("'a'", "''", "0.0", "['a', 'b']"),
        ("'a'", "'b'", "'-0.0'", "['a', 'b']"),
        ("'a'", "'b'", "NULL", "['a', 'b']"),
        ("'a'", "'b'", "0.0", "['a', NULL]"),
        ("'a'", "'b'", "0.0", "[]"),
        ("'a'", "'b'", "0.0", "NULL"),
        ("'n'", "'b'", "0.0", "NULL"),
    ]
    with running([], None, (BITS,)) as run:
        found = set()
        for row in rows:
            typed = [f"CAST({text} AS {kinds.duckdb_name(kind)})" for text, kind in zip(row, schema, strict=True)]
            found.add(run.table(f"SELECT {hashed(list(zip(typed, schema, strict=True)))} AS h").column("h")[0].as_py())
    assert len(found) == len(rows)


def test_the_rule_of_cost() -> None:
    """Changes are followed up to a twentieth of all rows."""
    assert Estimate(5, 100).follows_changes
    assert not Estimate(6, 100).follows_changes
    assert Estimate(0, 0).follows_changes
    assert Estimate(6, 100).reason == "6 changed of 100 rows are many"


def test_changes_of_few_rows_are_followed_and_of_many_are_not(lake: Lake) -> None:
    """What `auto` does is what the rule says."""
    lake["a"].write(
        pa.table(
            {
                "i": pa.array(range(200), pa.int32()),
                "k": pa.array([1] * 200, pa.int32()),
                "x": pa.nulls(200, pa.int32()),
            }
        )
    )
    lake.materialize("v", "SELECT i, k FROM a")
    lake["a"].write([{"i": 3, "k": 2, "x": None}])
    assert lake.refresh("v").way == "incremental"
    lake["a"].write(
        pa.table(
            {"i": pa.array(range(50), pa.int32()), "k": pa.array([7] * 50, pa.int32()), "x": pa.nulls(50, pa.int32())}
        )
    )
    done = lake.refresh("v")
    assert (done.way, done.updated) == ("full", 50)
    assert "are many" in done.reason


def test_times_of_past_refreshes_correct_the_rule() -> None:
    """Once everything takes long enough to be measured, times decide, and what is not known is in proportion."""
    past = Past(full=Measure(1_000_000, 2.0), incremental=(Measure(1_000, 0.3), Measure(10_000, 1.2)))
    assert Estimate(500, 1_000_000, past=past).follows_changes
    assert Estimate(9_000, 1_000_000, past=past).follows_changes
    assert not Estimate(30_000, 1_000_000, past=past).follows_changes
    assert "take about 3.4 s, everything 2.0 s" in Estimate(30_000, 1_000_000, past=past).reason
    quick = Past(full=Measure(1_000, 0.1), incremental=(Measure(10, 0.2),))
    assert Estimate(10, 1_000, past=quick).follows_changes, "what takes no time is noise"


def test_what_changes_touch_counts() -> None:
    """One changed row that belongs to half of all rows is not followed, nor is one that a look at too many finds."""
    assert not Estimate(1, 1_000, touched=500).follows_changes
    assert Estimate(1, 1_000, touched=500).reason == "1 changed, which touch 500, of 1,000 rows are many"
    assert not Estimate(1, 1_000, past=Past(fan_out=200.0)).follows_changes
    assert not Estimate(1, 1_000, scanned=3_000).follows_changes
    assert Estimate(1, 1_000, scanned=3_000).reason == "1 changed rows need 3,000 others to be read, of 1,000"


def test_what_is_known_of_the_past_is_kept_in_snapshots(lake: Lake) -> None:
    """Each refresh writes what it took beside what others took, and what can not be read counts for nothing."""
    past = Past().with_full(Measure(100, 1.5)).with_changes(2, Measure(6, 0.25))
    told = dict(past.to_properties())
    assert Past.of(SimpleNamespace(properties=told)) == past  # type: ignore[arg-type]
    assert past.fan_out == 3.0
    assert past.with_full(Measure(100, 1.0)).incremental == (Measure(6, 0.2),)
    assert Past.of(SimpleNamespace(properties=dict.fromkeys(told, "{"))) == Past()  # type: ignore[arg-type]
    lake["a"].write([{"i": n, "k": n, "x": None} for n in range(40)])
    lake.materialize("v", "SELECT i, k FROM a")
    lake["a"].write([{"i": 3, "k": 2, "x": None}])
    lake.refresh("v")
    known = Past.of(lake["v"].latest_snapshot())
    assert known.full is not None
    assert [each.rows for each in known.incremental] == [2]


def test_a_row_to_which_all_others_belong_is_not_followed(lake: Lake) -> None:
    """Few changes that touch many rows are told on the way, the rest is computed, and the next one knows."""
    numbers = pa.array(range(1, 2001), pa.int32())
    lake["a"].write(pa.table({"i": numbers, "k": pa.array([1] * 2000, pa.int32()), "x": numbers}))
    lake.create_table("d", {"k": "INT NOT NULL", "name": "STRING"}, primary_key=["k"], options={"bucket": "1"})
    lake["d"].write([{"k": 1, "name": "one"}, {"k": 2, "name": "two"}])
    query = "SELECT i, name FROM a JOIN d ON a.k = d.k"
    lake.materialize("v", query)
    lake["d"].write([{"k": 2, "name": "zwei"}])
    assert lake.refresh("v").way == "incremental", "no row belongs to it"
    lake["d"].write([{"k": 1, "name": "eins"}])
    done = lake.refresh("v")
    assert (done.way, done.updated) == ("full", 2000)
    assert done.reason.startswith("2 changed, which touch 4,000, of "), done.reason
    assert sorted(lake.query("SELECT DISTINCT name FROM v").fetchall()) == [("eins",)]
