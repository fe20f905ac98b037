"""Random tables, and random UPDATE, DELETE and MERGE statements on them, written as text."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

import lakebed
from lakebed.errors import LakebedError

COLUMNS = {
    "id": "INT",
    "v": "BIGINT",
    "s": "STRING",
    "d": "DECIMAL(10, 2)",
    "x": "DOUBLE",
    "n": "TINYINT",
    "at": "TIMESTAMP(3)",
    "c": "CHAR(3)",
    "r": "STRUCT<a: INT, b: STRING>",
    "l": "ARRAY<INT>",
}
TYPES = pa.schema(
    [
        ("id", pa.int32()),
        ("p", pa.string()),
        ("v", pa.int64()),
        ("s", pa.string()),
        ("d", pa.decimal128(10, 2)),
        ("x", pa.float64()),
        ("n", pa.int8()),
        ("at", pa.timestamp("ms")),
        ("c", pa.string()),
        ("r", pa.struct([("a", pa.int32()), ("b", pa.string())])),
        ("l", pa.list_(pa.int32())),
    ]
)
_ENGINES: dict[str, dict[str, str]] = {
    "deduplicate": {},
    "partial-update": {"merge-engine": "partial-update"},
    "partial-update, removing": {
        "merge-engine": "partial-update",
        "partial-update.remove-record-on-delete": "true",
    },
    "sequence groups": {
        "merge-engine": "partial-update",
        "fields.v.sequence-group": "s,d",
        "fields.s.aggregate-function": "last_non_null_value",
    },
    "aggregation": {
        "merge-engine": "aggregation",
        "fields.v.aggregate-function": "sum",
        "fields.s.aggregate-function": "max",
    },
    "first-row": {"merge-engine": "first-row"},
}
_KEYED_MORE: list[dict[str, str]] = [
    {"deletion-vectors.enabled": "true"},
    {"write-only": "true"},
    {"sequence.field": "v"},
    {"ignore-delete": "true"},
    {"fields.d.default-value": "7.25"},
    {"delete.force-produce-changelog": "true"},
]
_APPENDED: list[dict[str, str]] = [
    {},
    {"deletion-vectors.enabled": "true"},
    {"row-tracking.enabled": "true"},
    {"row-tracking.enabled": "true", "data-evolution.enabled": "true"},
    {"row-tracking.enabled": "true", "data-evolution.enabled": "true", "deletion-vectors.enabled": "true"},
    {"bucket": "2", "bucket-key": "id"},
]


@dataclass(frozen=True)
class Made:
    """A table, as it is to be made in any lake, with batches of rows that are written one after the other."""

    text: str
    has_key: bool
    is_partitioned: bool
    batches: tuple[pa.Table, ...]
    compacts: tuple[bool, ...]

    def make(self, lake: lakebed.Lake) -> None:
        """Makes the table and its source, and fills them."""
        lake.sql(self.text)
        table = lake.table("t")
        for rows, compacts in zip(self.batches, self.compacts, strict=True):
            table.write(rows, row_kind="_kind" if self.has_key else None)
            if compacts:
                table.compact(full=True)
        lake.sql("CREATE TABLE f (k INT, v BIGINT, s STRING, d DECIMAL(6, 1), p STRING)")
        lake.sql(
            "INSERT INTO f VALUES (1, 100, 'one', 1.5, 'a'), (3, NULL, NULL, NULL, 'b'), (9, 900, 'nine', 9.5, 'a')"
        )


def random_table(draw: random.Random) -> Made:
    """A table that can be made."""
    while True:
        made = _drawn(draw)
        try:
            made.make(lakebed.connect(f"memory://{draw.randrange(1 << 60)}/lake"))
        except LakebedError:
            continue
        return made


def _drawn(draw: random.Random) -> Made:
    has_key, is_partitioned = draw.random() < 0.65, draw.random() < 0.4
    columns = dict(COLUMNS)
    kept = ["id", "v", "s", "d"] if draw.random() < 0.4 else list(columns)
    options: dict[str, str] = {}
    if has_key:
        options |= draw.choice(list(_ENGINES.values()))
        options["bucket"] = draw.choice(["-1", "1", "2", "-2"])
        options["changelog-producer"] = draw.choice(["none", "none", "input", "lookup", "full-compaction"])
        for more in _KEYED_MORE:
            options |= more if draw.random() < 0.15 else {}
    else:
        options |= draw.choice(_APPENDED)
    key = ["p", "id"] if is_partitioned and draw.random() < 0.7 else ["id"]
    lines = [f"{name} {columns[name]}" for name in kept]
    lines.insert(1, "p STRING")
    if has_key:
        lines.append(f"PRIMARY KEY ({', '.join(key)}) NOT ENFORCED")
    tail = " PARTITIONED BY (p)" if is_partitioned else ""
    said = ", ".join(f"'{name}' = '{value}'" for name, value in options.items())
    text = f"CREATE TABLE t ({', '.join(lines)}){tail}" + (f" WITH ({said})" if said else "")
    names = ["id", "p", *kept[1:]]
    batches = tuple(_rows(draw, names, has_key, options) for _ in range(draw.randrange(0, 4)))
    compacts = tuple(has_key and draw.random() < 0.25 for _ in batches)
    return Made(text, has_key, is_partitioned, batches, compacts)


def _rows(draw: random.Random, names: list[str], has_key: bool, options: dict[str, str]) -> pa.Table:
    count = draw.randrange(1, 6)
    rows = [_row(draw, names) for _ in range(count)]
    found = pa.Table.from_pylist(rows, schema=pa.schema([TYPES.field(name) for name in names]))
    if not has_key:
        return found
    takes_back = options.get("merge-engine", "deduplicate") == "deduplicate"
    kinds = [draw.choice(["+I", "+I", "+I", "+U", "-D"]) if takes_back else "+I" for _ in rows]
    return found.append_column("_kind", [kinds])


def _row(draw: random.Random, names: list[str]) -> dict[str, Any]:
    values: dict[str, Callable[[], Any]] = {
        "id": lambda: draw.randrange(1, 7),
        "p": lambda: draw.choice(["a", "b"]),
        "v": lambda: draw.choice([None, -1, 0, 5, 7, 120, 1 << 40]),
        "s": lambda: draw.choice([None, "", "x", "Y", "ß", "12"]),
        "d": lambda: draw.choice([None, "0.00", "1.50", "-3.25", "99999999.99"]),
        "x": lambda: draw.choice([None, 0.0, -0.0, 0.5, 1e300, float("nan")]),
        "n": lambda: draw.choice([None, -128, 0, 100]),
        "at": lambda: draw.choice([None, 0, 1715687100123]),
        "c": lambda: draw.choice([None, "a", "abc", "ü"]),
        "r": lambda: draw.choice([None, {"a": 1, "b": None}, {"a": None, "b": "q"}]),
        "l": lambda: draw.choice([None, [], [1, None], [3]]),
    }
    from decimal import Decimal

    row = {name: values[name]() for name in names}
    if row.get("d") is not None:
        row["d"] = Decimal(row["d"])
    return row


# --- statements ------------------------------------------------------------------------------------------------------

_CONDITIONS = [
    "t.id = {n}",
    "id < {n}",
    "v > {n}",
    "v IS NULL",
    "s = 'x' OR id >= {n}",
    "s IN ('x', 'Y')",
    "d + v > 5",
    "id IN (SELECT k FROM f)",
    "id NOT IN (SELECT k FROM f WHERE k IS NOT NULL)",
    "EXISTS (SELECT 1 FROM f WHERE f.k = t.id AND f.v IS NOT NULL)",
    "v = (SELECT max(v) FROM t)",
    "p = 'a'",
    "p <> 'a' AND id > {n}",
    "upper(s) LIKE 'X%'",
    "TRUE",
    "FALSE",
    "100 / (id - 3) > 0",
]
_VALUES: dict[str, list[str]] = {
    "v": ["v + 1", "{n}", "NULL", "'17'", "s", "d", "(SELECT max(k) FROM f)", "id * 10", "DEFAULT", "2.6"],
    "s": ["upper(s)", "'new'", "NULL", "concat(s, p)", "v", "d", "x", "cast(id AS STRING)", "coalesce(s, 'none')"],
    "d": ["d * 2", "{n}.255", "v", "NULL", "'1.005'", "id / 3", "x"],
    "x": ["x / 2", "v", "d", "0.1", "'0.5'", "NULL"],
    "n": ["n + 1", "v", "{n}", "'9'", "id"],
    "at": ["TIMESTAMP_NTZ '2024-02-29 12:00:00.123456'", "NULL", "at + INTERVAL 1 DAY", "DATE '2024-05-14'"],
    "c": ["'q'", "c", "s", "NULL", "'abcd'"],
    "r": ["named_struct('a', v, 'b', s)", "NULL", "r"],
    "r.a": ["id", "NULL", "r.a + 1"],
    "l": ["array(id, 2)", "l", "NULL"],
    "p": ["'b'", "s", "p"],
    "id": ["id + 1", "NULL"],
}


def random_statement(draw: random.Random, made: Made) -> str:
    """A statement on the table, right or wrong."""
    kind = draw.choice(["UPDATE", "UPDATE", "DELETE", "MERGE", "MERGE"])
    if kind == "UPDATE":
        where = f" WHERE {_condition(draw)}" if draw.random() < 0.9 else ""
        return f"UPDATE t SET {_assignments(draw, made)}{where}"
    if kind == "DELETE":
        where = f" WHERE {_condition(draw)}" if draw.random() < 0.95 else ""
        return f"DELETE FROM t{where}"
    return _merge(draw, made)


def _condition(draw: random.Random) -> str:
    found = draw.choice(_CONDITIONS).format(n=draw.randrange(1, 7))
    if draw.random() < 0.2:
        other = draw.choice(_CONDITIONS).format(n=draw.randrange(1, 7))
        return f"({found}) {draw.choice(['AND', 'OR'])} ({other})"
    return f"NOT ({found})" if draw.random() < 0.1 else found


def _assignments(draw: random.Random, made: Made, rate: float = 0.05) -> str:
    known = [name for name in _VALUES if name.partition(".")[0] in _names(made) and name not in ("id", "p")]
    if draw.random() < rate or not known:
        known = ["id", "p"]
    chosen = draw.sample(known, min(len(known), draw.choice([1, 1, 2, 3])))
    if "r" in chosen and "r.a" in chosen:
        chosen.remove("r.a")
    return ", ".join(f"{name} = {draw.choice(_VALUES[name]).format(n=draw.randrange(0, 300))}" for name in chosen)


def _names(made: Made) -> list[str]:
    return ["p", *(name for name in COLUMNS if f"({name} " in made.text or f", {name} " in made.text)]


def _merge(draw: random.Random, made: Made) -> str:
    source = draw.choice(
        [
            "f",
            "(SELECT * FROM f WHERE k < 5) AS f",
            "(SELECT k, v, s, d, p FROM f UNION ALL SELECT 2, 22, 'two', 2.5, 'b') AS f",
            "(SELECT id AS k, v, s, d, p FROM t) AS f",
        ]
    )
    on = draw.choice(["t.id = f.k", "t.id = f.k AND t.p = f.p", "t.id < f.k", "t.id = f.k AND t.v IS NOT NULL"])
    clauses = []
    for _ in range(draw.choice([1, 1, 2])):
        condition = draw.choice(["", "", " AND f.v > 100", " AND t.v IS NULL", " AND f.s IS NOT NULL"])
        action = draw.choice(
            [
                "DELETE",
                "UPDATE SET v = f.v",
                "UPDATE SET s = f.s, d = f.d",
                "UPDATE SET v = f.v + t.v, s = concat(t.s, f.s)",
                "UPDATE SET d = f.d * 100000000",
            ]
        )
        clauses.append(f"WHEN MATCHED{condition} THEN {action}")
    if draw.random() < 0.6:
        condition = draw.choice(["", "", " AND v IS NOT NULL"])
        values = draw.choice(["(id, p, v) VALUES (k, f.p, v)", "(id, p, s, d) VALUES (f.k, 'b', s, d * 2)"])
        clauses.append(f"WHEN NOT MATCHED{condition} THEN INSERT {values}")
    if draw.random() < 0.3:
        condition = draw.choice(["", " AND v > 5", " AND t.id = 2"])
        action = draw.choice(["DELETE", "UPDATE SET s = 'gone'", "UPDATE SET v = v * 10"])
        clauses.append(f"WHEN NOT MATCHED BY SOURCE{condition} THEN {action}")
    draw.shuffle(clauses)
    order = sorted(clauses, key=lambda text: "NOT MATCHED" in text)
    return f"MERGE INTO t USING {source} ON {on} {' '.join(order)}"


__all__ = ["Made", "random_statement", "random_table"]
