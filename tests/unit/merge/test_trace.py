"""Engines tell which part each version plays: compared with a model that goes through the versions one by one."""

from __future__ import annotations

import random
from typing import Any

import pyarrow as pa
import pytest

from lakebed.merge import MERGE_ENGINES
from lakebed.merge.base import MergeOrder, MergeSetup
from lakebed.merge.folding import seeing_everything
from lakebed.merge.trace import Role
from lakebed.options import Options
from lakebed.types.arrow import from_arrow_schema
from lakebed.types.key_value import SEQUENCE_NUMBER, VALUE_KIND
from lakebed.types.row_kind import TEXTS, is_retract

from .trace_model import roles_of

COLUMNS = ("g", "a", "s", "x")
SCHEMA = pa.schema(
    [
        (SEQUENCE_NUMBER, pa.int64()),
        (VALUE_KIND, pa.int8()),
        ("k", pa.int64()),
        *((name, pa.int64()) for name in COLUMNS),
    ]
)
PARTIAL = {"merge-engine": "partial-update"}
GROUPED = {**PARTIAL, "fields.g.sequence-group": "a,s", "fields.s.aggregate-function": "sum"}


def aggregation(*functions: str, **more: str) -> dict[str, str]:
    """Options of a table with these functions."""
    named = {f"fields.{c}.aggregate-function": f for c, f in zip(COLUMNS, functions, strict=True)}
    return {"merge-engine": "aggregation", **named, **{key.replace("_", "-"): value for key, value in more.items()}}


RETRACTABLE = ("sum", "last_value", "last_non_null_value", "sum")
TABLES: dict[str, tuple[dict[str, str], str]] = {
    "deduplicate": ({}, "all"),
    "deduplicate, deletes ignored": ({"ignore-delete": "true"}, "all"),
    "first-row": ({"merge-engine": "first-row", "ignore-delete": "true"}, "all"),
    "partial-update": (PARTIAL, "adds"),
    "partial-update, deletes ignored": ({**PARTIAL, "ignore-delete": "true"}, "all"),
    "partial-update, -D removes": ({**PARTIAL, "partial-update.remove-record-on-delete": "true"}, "all"),
    "sequence group": (GROUPED, "all"),
    "sequence group, deletes ignored": ({**GROUPED, "ignore-delete": "true"}, "all"),
    "sequence group removes": ({**GROUPED, "partial-update.remove-record-on-sequence-group": "g"}, "all"),
    "aggregation": (aggregation("max", "first_value", "first_non_null_value", "sum"), "adds"),
    "aggregation with retracts": (aggregation(*RETRACTABLE), "all"),
    "aggregation, deletes ignored": (aggregation(*RETRACTABLE, **{"ignore-delete": "true"}), "all"),
    "aggregation, -D removes": (aggregation(*RETRACTABLE, **{"aggregation.remove-record-on-delete": "true"}), "all"),
    "aggregation, retracts ignored": (aggregation(*RETRACTABLE, **{"fields.a.ignore-retract": "true"}), "all"),
}


def history(seed: int, kinds: str) -> list[dict[str, Any]]:
    """Versions of a few keys, in the order in which they came."""
    chance = random.Random(seed)
    choices = ("+I", "+U") if kinds == "adds" else TEXTS
    return [
        {"k": chance.randrange(6), "kind": chance.choice(choices)}
        | {name: chance.choice([None, 1, 2, 3]) for name in COLUMNS}
        for _ in range(24)
    ]


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("name", TABLES)
def test_engines_tell_what_the_model_tells(name: str, seed: int) -> None:
    """Which version, in which column, by which rule; and the value is that of the version that is named."""
    options, kinds = TABLES[name]
    records = history(seed, kinds)
    rows = pa.RecordBatch.from_pylist(
        [
            {SEQUENCE_NUMBER: number, VALUE_KIND: TEXTS.index(record["kind"]), **record}
            for number, record in enumerate(records)
        ],
        schema=SCHEMA,
    )
    fields = from_arrow_schema(pa.schema([field for field in SCHEMA if not field.name.startswith("_")]))
    engine = MERGE_ENGINES[options.get("merge-engine", "deduplicate")](MergeSetup(fields, ("k",), Options(options)))
    engine = seeing_everything(engine)
    groups = MergeOrder(("k",)).group(rows)
    trace = engine.trace(rows, groups)
    merged = engine.merge(rows, groups)
    gone = is_retract(merged.column(VALUE_KIND).to_numpy())
    for group in range(len(groups)):
        members = groups.order[groups.starts[group] : groups.ends[group]].tolist()
        expected = roles_of([records[row] for row in members], COLUMNS, options)
        for column in COLUMNS:
            told = [Role(trace.roles[column][row]) for row in members]
            assert told == expected[column], (column, [records[row] for row in members])
            for row, role in zip(members, told, strict=True):
                if role is Role.VALUE:
                    assert not gone[group]
                    assert merged.column(column)[group].as_py() == records[row][column]
