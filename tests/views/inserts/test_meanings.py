"""Streaming INSERTs into tables that put rows of a key together: the table has the meaning that its options give it."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import Any

import pytest
from tests.thinning import by_day
from tests.views.histories import PRODUCERS, History
from tests.views.inserts.targets import insert, other_rows

import lakebed
from lakebed.errors import Unsupported
from lakebed.lake import Lake

_ADDED = {
    "rows": "SELECT note, coalesce(amount, 0), 1 FROM orders WHERE note IS NOT NULL",
    "join": "SELECT c.name, coalesce(o.amount, 0), 1 FROM orders o JOIN customers c ON o.cust = c.cid WHERE name <> ''",
    "left join": "SELECT c.name, coalesce(o.amount, 0), 1 FROM customers c LEFT JOIN orders o ON o.cust = c.cid "
    "WHERE c.name IS NOT NULL",
    "groups": "SELECT c.region, t.total, 1 FROM customers c JOIN (SELECT cust, sum(coalesce(amount, 0)) AS total "
    "FROM orders GROUP BY cust) t ON t.cust = c.cid WHERE c.region IS NOT NULL",
    "two tables": "SELECT note, coalesce(amount, 0), 1 FROM orders WHERE note IS NOT NULL "
    "UNION ALL SELECT b, coalesce(v, 0), 1 FROM stock UNION ALL SELECT kind, qty, 1 FROM events WHERE kind <> '' "
    "AND qty >= 0",
}
"""Queries whose second column is added up by the first."""


@pytest.mark.parametrize("producer", by_day(PRODUCERS, "none", "lookup"))
def test_sums_of_a_table_are_those_of_the_query(tmp_path: Path, producer: str) -> None:
    """A table that adds up has the sums of the query's rows: what changes is taken back and sent anew."""
    history = History(str(tmp_path), producer, seed=11)
    history.fill()
    lake, made = history.lake, {}
    for number, query in enumerate(_ADDED.values()):
        columns = {"k": "STRING NOT NULL", "total": "BIGINT", "n": "BIGINT"}
        options = {"merge-engine": "aggregation", "fields.default-aggregate-function": "sum", "bucket": "1"}
        lake.create_table(f"t{number}", columns, primary_key=["k"], options=options)
        made[insert(lake, f"t{number}", query)] = (f"t{number}", query)
    for turn in range(4):
        for each, (name, query) in made.items():
            done = each.step()
            sums = f"SELECT k, sum(v) AS v, sum(n) AS n FROM ({query}) AS q(k, v, n) GROUP BY k"
            wrong = other_rows(lake, f"(SELECT * FROM {name} WHERE n <> 0)", sums)
            assert wrong is None, f"round {turn}, {done}\n{query}\n{wrong}"
        history.happen()


class _TwoTables:
    """Two tables with a version in each row, and what happened to them."""

    def __init__(self, path: Path, producer: str, seed: int) -> None:
        self.lake: Lake = lakebed.connect(str(path))
        self.random = Random(seed)
        self.version = 0
        self.rows: dict[str, dict[int, dict[str, Any]]] = {"o": {}, "c": {}}
        self.seen: set[int] = set()
        for name in self.rows:
            columns = {"id": "INT NOT NULL", "v": "INT", "word": "STRING"}
            options = {"bucket": "1", **PRODUCERS[producer]}
            self.lake.create_table(name, columns, primary_key=["id"], options=options)

    def happen(self) -> None:
        """Rows come, change and go, in some commits."""
        for _ in range(self.random.randrange(2, 7)):
            name, number = self.random.choice("oc"), self.random.randrange(3)
            rows = self.rows[name]
            self.version += 1
            if number in rows and self.random.random() < 0.4:
                gone = {**rows.pop(number), "v": self.version, "kind": "-D"}
                self.lake[name].write([gone], row_kind="kind")
                continue
            rows[number] = {"id": number, "v": self.version, "word": self.random.choice(["a", "b", "c"])}
            self.lake[name].write([rows[number]])


@pytest.mark.parametrize("producer", by_day(PRODUCERS, "normalised", "full-compaction"))
def test_a_wide_table_of_two_tables(tmp_path: Path, producer: str) -> None:
    """With sequence groups each part of UNION ALL fills its columns, and takes back its own alone."""
    both = _TwoTables(tmp_path, producer, seed=list(PRODUCERS).index(producer))
    lake = both.lake
    columns = {"id": "INT NOT NULL", "ov": "INT", "oword": "STRING", "cv": "INT", "cword": "STRING"}
    groups = {"fields.ov.sequence-group": "oword", "fields.cv.sequence-group": "cword"}
    options = {"merge-engine": "partial-update", "bucket": "1", **groups}
    lake.create_table("wide", columns, primary_key=["id"], options=options)
    query = "SELECT id, v, word, NULL, NULL FROM o UNION ALL SELECT id, NULL, NULL, v, word FROM c"
    each, seen = insert(lake, "wide", query), set[int]()
    for turn in range(10):
        both.happen()
        each.step()
        seen |= {*both.rows["o"], *both.rows["c"]}
        words = {row["id"]: (row["oword"], row["cword"]) for row in lake["wide"].to_arrow().to_pylist()}
        expected = {
            number: tuple(both.rows[name].get(number, {}).get("word") for name in "oc") for number in sorted(seen)
        }
        assert words == expected, f"round {turn}"


def test_a_wide_table_that_keeps_what_goes(tmp_path: Path) -> None:
    """With `ignore-delete` a row has the last value of each column that was not null."""
    both = _TwoTables(tmp_path, "lookup", seed=4)
    lake = both.lake
    columns = {"id": "INT NOT NULL", "oword": "STRING", "cword": "STRING"}
    options = {"merge-engine": "partial-update", "bucket": "1", "ignore-delete": "true"}
    lake.create_table("wide", columns, primary_key=["id"], options=options)
    parts = [insert(lake, "wide", f"SELECT id, word FROM {n}", "id", f"{n}word", name=n) for n in "oc"]
    words: dict[int, list[Any]] = {}
    for turn in range(8):
        both.happen()
        for place, part in enumerate(parts):
            part.step()
            for number, row in both.rows["oc"[place]].items():
                words.setdefault(number, [None, None])[place] = row["word"]
        found = {row["id"]: [row["oword"], row["cword"]] for row in lake["wide"].to_arrow().to_pylist()}
        assert found == words, f"round {turn}"


def test_lines_nested_in_their_order(tmp_path: Path) -> None:
    """`nested_update` makes one row of an order and its lines: lines come and change inside of it, and none is lost."""
    lake = lakebed.connect(str(tmp_path))
    keyed = {"bucket": "1", "changelog-producer": "lookup"}
    lake.create_table("orders", {"id": "INT NOT NULL", "name": "STRING"}, primary_key=["id"], options=keyed)
    columns = {"id": "INT NOT NULL", "line": "INT NOT NULL", "item": "STRING"}
    lake.create_table("lines", columns, primary_key=["id", "line"], options=keyed)
    lake.sql(
        "CREATE TABLE wide (id INT NOT NULL, name STRING, lines ARRAY<ROW<line INT, item STRING>>, "
        "PRIMARY KEY (id) NOT ENFORCED) WITH ('bucket' = '1', 'merge-engine' = 'aggregation', "
        "'fields.lines.aggregate-function' = 'nested_update', 'fields.lines.nested-key' = 'line')"
    )
    query = (
        "SELECT id, name, CAST(NULL AS ARRAY<STRUCT<line: INT, item: STRING>>) FROM orders "
        "UNION ALL SELECT id, CAST(NULL AS STRING), array(named_struct('line', line, 'item', item)) FROM lines"
    )
    with pytest.raises(Unsupported, match="`nested_update` of column `lines` can not take a value back") as said:
        insert(lake, "wide", query).check()
    assert "fields.lines.ignore-retract" in str(said.value.hint)
    lake.sql("ALTER TABLE wide SET TBLPROPERTIES ('fields.lines.ignore-retract' = 'true')")
    each = insert(lake, "wide", query)
    lake["orders"].write([{"id": 1, "name": "ann"}, {"id": 2, "name": "bob"}])
    lake["lines"].write([{"id": 1, "line": n, "item": f"i{n}"} for n in (1, 2, 3)])
    each.step()
    lake.sql("UPDATE lines SET item = 'other' WHERE line = 2")
    lake.sql("UPDATE orders SET name = 'bert' WHERE id = 2")
    lake.sql("INSERT INTO lines VALUES (1, 4, 'i4'), (2, 1, 'x')")
    each.step()
    rows = {row["id"]: (row["name"], row["lines"]) for row in lake["wide"].to_arrow().to_pylist()}
    assert {number: (name, sorted(each["item"] for each in lines)) for number, (name, lines) in rows.items()} == {
        1: ("ann", ["i1", "i3", "i4", "other"]),
        2: ("bert", ["x"]),
    }


def test_first_rows_stay(tmp_path: Path) -> None:
    """A table that keeps the first row of a key takes later ones and forgets them."""
    history = History(str(tmp_path), "lookup", seed=1)
    history.fill()
    lake = history.lake
    options = {"merge-engine": "first-row", "bucket": "1", "changelog-producer": "lookup", "ignore-delete": "true"}
    lake.create_table("t", {"id": "BIGINT NOT NULL", "note": "STRING"}, primary_key=["id"], options=options)
    each, first = insert(lake, "t", "SELECT id, note FROM orders"), dict[int, Any]()
    for _ in range(5):
        each.step()
        for row in lake["orders"].to_arrow(["id", "note"]).to_pylist():
            first.setdefault(row["id"], row["note"])
        assert {row["id"]: row["note"] for row in lake["t"].to_arrow().to_pylist()} == first
        history.happen()


def test_appended_rows(tmp_path: Path) -> None:
    """A table without a key gets every row of the query once, equal ones as often as there are."""
    history = History(str(tmp_path), "none", seed=2)
    history.fill()
    lake = history.lake
    lake.create_table("t", {"oid": "BIGINT", "word": "STRING", "qty": "BIGINT"})
    query = "SELECT e.oid, f.kind, e.qty FROM events e JOIN events f ON e.oid = f.oid UNION ALL SELECT 7, kind, qty "
    query += "FROM events WHERE qty > 1"
    each = insert(lake, "t", query)
    for _ in range(6):
        each.step()
        assert other_rows(lake, "t", query) is None
        history.happen()


def test_the_last_row_of_a_key_by_a_column(tmp_path: Path) -> None:
    """Appended rows of one key are fine where `sequence.field` says which is the last."""
    lake = lakebed.connect(str(tmp_path))
    lake.create_table("log", {"id": "INT", "v": "INT"})
    options = {"bucket": "1", "sequence.field": "v"}
    lake.create_table("t", {"id": "INT NOT NULL", "v": "INT"}, primary_key=["id"], options=options)
    each = insert(lake, "t", "SELECT id, v FROM log")
    lake["log"].write([{"id": 1, "v": 3}, {"id": 1, "v": 2}, {"id": 2, "v": 1}])
    each.step()
    lake["log"].write([{"id": 1, "v": 1}, {"id": 2, "v": 5}])
    each.step()
    assert sorted(lake.query("SELECT * FROM t").fetchall()) == [(1, 3), (2, 5)]


def test_a_changelog_of_what_comes_in_has_old_values(tmp_path: Path) -> None:
    """A table with `changelog-producer` = `input` is sent old rows too, so that its changelog tells everything."""
    lake = lakebed.connect(str(tmp_path))
    keyed = {"bucket": "1", "changelog-producer": "lookup"}
    lake.create_table("o", {"id": "INT NOT NULL", "v": "INT"}, primary_key=["id"], options=keyed)
    for name, options in {"told": {"changelog-producer": "input"}, "plain": {"changelog-producer": "lookup"}}.items():
        lake.create_table(
            name, {"id": "INT NOT NULL", "v": "INT"}, primary_key=["id"], options={"bucket": "1", **options}
        )
    made = [insert(lake, name, "SELECT id, v FROM o", name=name) for name in ("told", "plain")]
    lake["o"].write([{"id": 1, "v": 1}, {"id": 2, "v": 2}])
    for each in made:
        each.step()
    lake.sql("UPDATE o SET v = 3 WHERE id = 1")
    lake.sql("DELETE FROM o WHERE id = 2")
    done = [each.step() for each in made]
    assert [(each.inserted, each.updated, each.deleted) for each in done] == [(0, 1, 1), (0, 1, 1)]
    for name in ("told", "plain"):
        changes = lake[name].changes().to_pylist()
        assert sorted((c["rowkind"], c["id"], c["v"]) for c in changes) == [
            ("+I", 1, 1),
            ("+I", 2, 2),
            ("+U", 1, 3),
            ("-D", 2, 2),
            ("-U", 1, 1),
        ]
