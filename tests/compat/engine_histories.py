"""Tables of every merge engine, and random histories of commits for them: what the judges are asked about."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass, field

from .judges import Row

Commit = tuple[list[Row], list[str] | None]
"""Rows and their kinds; no kinds for a table that takes them from a column."""

ADDS, DELETES = ["+I"] * 3 + ["+U"], ["-D"]
RETRACTS = ["-D", "-U"]


@dataclass(frozen=True)
class EngineTable:
    """A table to try an engine with. `values` says what the non-key columns may hold besides null."""

    options: dict[str, str]
    values: dict[str, str]
    key: dict[str, str] = field(default_factory=lambda: {"k": "BIGINT"})
    partition_by: tuple[str, ...] = ()
    kinds: tuple[str, ...] = ("+I",)
    deletes_are_final: bool = False
    """Whether a deleted key stays away, where engines differ about what comes after."""
    unordered: tuple[str, ...] = ()
    """Columns of arrays whose order is left to the implementation."""

    @property
    def schema(self) -> dict[str, str]:
        return {name: f"{kind} NOT NULL" for name, kind in self.key.items()} | self.values

    def history(self, seed: str, commits: int) -> Iterator[Commit]:
        """Commits of a dozen rows over a few keys, so that most rows meet others, in their own commit too."""
        chance = random.Random(seed)
        gone: set[tuple[object, ...]] = set()
        for _ in range(commits):
            rows, kinds = [], []
            for _ in range(chance.randrange(6, 14)):
                row = {name: _value(kind, chance, small=True) for name, kind in self.key.items()}
                key = tuple(row.values())
                if key in gone:
                    continue
                row |= {name: _value(kind, chance) for name, kind in self.values.items()}
                kind = chance.choice(self.kinds)
                if kind == "-D" and self.deletes_are_final:
                    gone.add(key)
                rows.append(row | ({"op": kind} if "op" in self.values else {}))
                kinds.append(kind)
            yield rows, None if "op" in self.values else kinds

    def settled(self, rows: list[Row]) -> list[Row]:
        """Rows with the arrays sorted whose order means nothing."""
        return [
            {
                name: sorted(value, key=repr) if value and name in self.unordered else value
                for name, value in row.items()
            }
            for row in rows
        ]


WORDS = ["", "a", "b", "ab", "ü", "zz"]


def _value(kind: str, chance: random.Random, *, small: bool = False) -> object:
    if not small and chance.random() < 0.3:
        return None
    if kind.startswith("ARRAY<ROW"):
        # Java keeps both of two rows with one id if they are the first to come, and only then: see the test of it.
        return [{"id": number, "v": chance.choice(WORDS)} for number in chance.sample(range(3), chance.randrange(3))]
    if kind.startswith("ARRAY"):
        return [chance.choice(WORDS) for _ in range(chance.randrange(3))]
    if kind.startswith("MAP"):
        return sorted([[number, chance.choice(WORDS)] for number in chance.sample(range(4), chance.randrange(3))])
    if kind.startswith("DECIMAL"):
        return f"{chance.randrange(-500, 500) / 100:.2f}"
    return {
        "BIGINT": chance.randrange(8),
        "INT": chance.randrange(4) if small else chance.randrange(-9, 9),
        "STRING": chance.choice(WORDS[1:5]),
        "DATE": f"2024-01-0{chance.randrange(1, 4)}",
        "DOUBLE": chance.randrange(-8, 8) / 4,
        "BOOLEAN": chance.random() < 0.5,
    }[kind]


def _functions(**functions: str) -> dict[str, str]:
    return {f"fields.{name}.aggregate-function": function for name, function in functions.items()}


def _no_retract(*columns: str) -> dict[str, str]:
    return {f"fields.{name}.ignore-retract": "true" for name in columns}


PARTIAL = {"merge-engine": "partial-update"}
AGGREGATION = {"merge-engine": "aggregation"}
FIRST_ROW = {"merge-engine": "first-row"}
STRING_KEY = {"k": "STRING"}
TWO_KEYS = {"k": "STRING", "n": "INT"}
GROUPS = {"fields.s.sequence-group": "a,b", "fields.t,u.sequence-group": "c,d"}
GROUP_VALUES = {"a": "STRING", "b": "INT", "s": "INT", "c": "INT", "d": "STRING", "t": "DATE", "u": "INT", "e": "INT"}
DATED = {"day": "DATE", **TWO_KEYS}

TABLES = {
    "deduplicate": EngineTable({}, {"v": "STRING", "d": "DECIMAL(10, 2)"}, kinds=(*ADDS, *RETRACTS)),
    "deduplicate-partitioned": EngineTable({}, {"v": "STRING"}, DATED, partition_by=("day",), kinds=(*ADDS, *RETRACTS)),
    "deduplicate-ignore-delete": EngineTable(
        {"ignore-delete": "true"}, {"v": "STRING"}, STRING_KEY, kinds=(*ADDS, *RETRACTS)
    ),
    "sequence-field": EngineTable(
        {"sequence.field": "s,t"}, {"s": "INT", "v": "STRING", "t": "DATE"}, TWO_KEYS, kinds=(*ADDS, *RETRACTS)
    ),
    "sequence-descending": EngineTable(
        {"sequence.field": "s", "sequence.field.sort-order": "descending"},
        {"v": "STRING", "s": "INT"},
        STRING_KEY,
        kinds=(*ADDS, *RETRACTS),
    ),
    "row-kind-field": EngineTable(
        {"rowkind.field": "op"}, {"v": "STRING", "op": "STRING"}, STRING_KEY, kinds=(*ADDS, *RETRACTS)
    ),
    "partial-update": EngineTable(PARTIAL, {"a": "STRING", "b": "INT", "c": "DECIMAL(10, 2)"}, TWO_KEYS),
    "partial-update-partitioned": EngineTable(
        PARTIAL | {"ignore-delete": "true"},
        {"a": "STRING", "b": "DOUBLE"},
        DATED,
        partition_by=("day",),
        kinds=(*ADDS, *RETRACTS),
    ),
    "partial-update-sequence-field": EngineTable(
        PARTIAL | {"sequence.field": "s"}, {"a": "STRING", "b": "INT", "s": "INT"}, STRING_KEY
    ),
    "partial-update-deletes": EngineTable(
        PARTIAL | {"partial-update.remove-record-on-delete": "true"},
        {"a": "STRING", "b": "INT"},
        TWO_KEYS,
        kinds=(*ADDS * 3, *RETRACTS),
        deletes_are_final=True,
    ),
    "sequence-groups": EngineTable(PARTIAL | GROUPS, GROUP_VALUES, kinds=(*ADDS, *RETRACTS)),
    "sequence-groups-deletes": EngineTable(
        PARTIAL | GROUPS | {"partial-update.remove-record-on-sequence-group": "t"},
        GROUP_VALUES,
        STRING_KEY,
        kinds=(*ADDS * 3, *RETRACTS),
        deletes_are_final=True,
    ),
    "sequence-groups-aggregate": EngineTable(
        PARTIAL | GROUPS | _functions(a="listagg", b="sum", c="max", d="first_value"),
        GROUP_VALUES,
        TWO_KEYS,
    ),
    "aggregation": EngineTable(
        AGGREGATION
        | _functions(
            su="sum",
            de="sum",
            pr="product",
            mx="max",
            mi="min",
            lv="last_value",
            fv="first_value",
            fn="first_non_null_value",
            ba="bool_and",
            bo="bool_or",
            li="listagg",
            ld="listagg",
            co="collect",
            mm="merge_map",
            nu="nested_update",
            na="nested_update",
        )
        | {"fields.ld.distinct": "true", "fields.ld.list-agg-delimiter": ";", "fields.nu.nested-key": "id"}
        | _no_retract("mx", "mi", "fv", "fn", "ba", "bo", "li", "ld"),
        {
            "su": "INT",
            "de": "DECIMAL(20, 2)",
            "pr": "DOUBLE",
            "mx": "DATE",
            "mi": "STRING",
            "lv": "STRING",
            "ln": "INT",
            "fv": "INT",
            "fn": "STRING",
            "ba": "BOOLEAN",
            "bo": "BOOLEAN",
            "li": "STRING",
            "ld": "STRING",
            "co": "ARRAY<STRING>",
            "mm": "MAP<INT, STRING>",
            "nu": "ARRAY<ROW<id INT, v STRING>>",
            "na": "ARRAY<ROW<id INT, v STRING>>",
        },
        TWO_KEYS,
        kinds=(*ADDS, *RETRACTS),
        unordered=("co", "nu", "na"),
    ),
    "aggregation-sequence-field": EngineTable(
        AGGREGATION | {"sequence.field": "s"} | _functions(a="first_value", b="listagg", c="last_value", d="sum"),
        {"a": "INT", "b": "STRING", "c": "INT", "d": "DOUBLE", "s": "INT"},
        DATED,
        partition_by=("day",),
    ),
    "aggregation-descending": EngineTable(
        AGGREGATION
        | {"sequence.field": "s", "sequence.field.sort-order": "descending", "file.format": "orc"}
        | _functions(a="collect", c="last_value", d="sum"),
        {"a": "ARRAY<STRING>", "c": "INT", "d": "DOUBLE", "s": "INT"},
        TWO_KEYS,
        kinds=(*ADDS, *RETRACTS),
        unordered=("a",),
    ),
    "aggregation-deletes": EngineTable(
        AGGREGATION | {"aggregation.remove-record-on-delete": "true"} | _functions(a="sum"),
        {"a": "INT", "b": "STRING"},
        STRING_KEY,
        kinds=(*ADDS * 3, *RETRACTS),
        deletes_are_final=True,
    ),
    "first-row": EngineTable(FIRST_ROW | {"file.format": "avro"}, {"v": "STRING"}, TWO_KEYS),
    "first-row-partitioned": EngineTable(
        FIRST_ROW | {"ignore-delete": "true"}, {"v": "STRING"}, DATED, partition_by=("day",), kinds=(*ADDS, *RETRACTS)
    ),
}
