"""Random histories, then a change of an option or a type: what is shown is the same before and after it.

The changes come from the table of what may change later, every line of it that allows a change: free ones must not
need a compaction, the others must do theirs. Each history goes on afterwards, and is compacted.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

import pyarrow as pa
import pytest
from hypothesis import currently_in_test_context, given, note, settings
from hypothesis import strategies as st

import lakebed
from lakebed import RemoveOption, SetOption, Table, UpdateColumnType
from lakebed.errors import InvalidOption, InvalidSchema, NotFound
from lakebed.options import OPTIONS, VIEW_OPTIONS, FieldOption, Kind, Option
from lakebed.options.later import Later, rule_of
from lakebed.schema.changes import SchemaChange, apply_changes
from lakebed.schema.later import judged

COLUMNS = {"k": "INT NOT NULL", "v": "INT", "s": "INT", "t": "STRING"}

_AGGREGATION = {
    "merge-engine": "aggregation",
    "fields.v.aggregate-function": "sum",
    "fields.t.aggregate-function": "listagg",
}
_PARTIAL = {"merge-engine": "partial-update", "fields.s.sequence-group": "v", "fields.v.aggregate-function": "sum"}
ENGINES: dict[str, dict[str, str]] = {
    "deduplicate": {},
    "ordered": {"sequence.field": "s"},
    "partial-update": {"merge-engine": "partial-update", "ignore-delete": "true"},
    "partial sums": {**_PARTIAL, "ignore-delete": "true"},
    "sums": {**_AGGREGATION, "ignore-delete": "true"},
    "first-row": {"merge-engine": "first-row", "ignore-delete": "true"},
}
MODES: dict[str, dict[str, str]] = {
    "none": {},
    "input": {"changelog-producer": "input"},
    "lookup": {"changelog-producer": "lookup"},
    "full-compaction": {"changelog-producer": "full-compaction"},
    "vectors": {"deletion-vectors.enabled": "true"},
}
BUCKETS = [{"bucket": "1"}, {"bucket": "2"}, {"bucket": "-1"}, {"bucket": "-2", "postpone.default-bucket-num": "2"}]

_ANY: list[SchemaChange] = [
    *(SetOption("changelog-producer", name) for name in ("none", "input", "lookup", "full-compaction")),
    SetOption("deletion-vectors.enabled", "true"),
    SetOption("deletion-vectors.enabled", "false"),
    SetOption("bucket", "2"),
]
_ORDER: list[SchemaChange] = [
    *(SetOption("sequence.field", name) for name in ("s", "v", "s,v")),
    RemoveOption("sequence.field"),
    SetOption("sequence.field.sort-order", "descending"),
    UpdateColumnType("s", "SMALLINT"),
]
_SUMS: list[SchemaChange] = [
    *(
        SetOption("fields.v.aggregate-function", name)
        for name in ("max", "min", "last_value", "first_value", "product")
    ),
    RemoveOption("fields.v.aggregate-function"),
    SetOption("fields.v.ignore-retract", "true"),
    UpdateColumnType("v", "BIGINT"),
    UpdateColumnType("v", "DOUBLE"),
]
FOLDED: dict[str, list[SchemaChange]] = {
    "deduplicate": [*_ORDER, SetOption("ignore-delete", "true"), SetOption("ignore-update-before", "true"), *_ANY],
    "ordered": [*_ORDER, SetOption("ignore-delete", "true"), *_ANY],
    "partial-update": [SetOption("fields.s.sequence-group", "v,t"), *_ORDER, *_ANY],
    "partial sums": [RemoveOption("fields.s.sequence-group"), *_SUMS, *_ANY],
    "sums": [
        SetOption("fields.t.list-agg-delimiter", ";"),
        SetOption("fields.t.distinct", "true"),
        SetOption("fields.default-aggregate-function", "max"),
        *_SUMS,
        *_ORDER,
        *_ANY,
    ],
    "first-row": _ANY,
}
"""Changes that ask for something before they count, by the kind of table that they mean something to."""


ONLY_FOR_TEXT = ("csv", "json", "text", "bzip2")


def _values(option: Option[Any]) -> list[str]:
    """Some values that an option may have."""
    match option.kind:
        case Kind.BOOLEAN:
            return ["true", "false"]
        case Kind.CHOICE:
            # Files of text hold less than others, and nothing guards them, which is said each time.
            return [value for value in option.honoured_choices or option.choices if value not in ONLY_FOR_TEXT]
        case Kind.INTEGER:
            return ["1", "2", "7"]
        case Kind.DECIMAL:
            return ["0.5"]
        case Kind.SIZE:
            return ["1 kb", "64 mb"]
        case Kind.DURATION:
            return ["1 d"]
        case Kind.LIST:
            return ["v"]
        case Kind.TEXT:
            return ["x", "none", "zstd"]


def _is_read(option: Option[Any]) -> bool:
    """Whether the option is there to show something else, or something at another time."""
    reason = rule_of(option)[-1].reason
    return reason.startswith("chooses what a read shows") or option.key.startswith("record-level.")


FREE: list[SetOption] = [
    SetOption(option.key.replace("<field>", "v"), value)
    for option in OPTIONS
    if option.honoured and any(case.later is Later.FREE for case in rule_of(option)) and not _is_read(option)
    if not isinstance(option, FieldOption) or option.key.count("<") == option.key.count("<field>")
    if option.key not in VIEW_OPTIONS  # which statements about materialized tables set
    for value in _values(option)
]


@dataclass(frozen=True)
class Step:
    """Rows of one commit, or a compaction."""

    rows: tuple[tuple[int, int | None, int, str | None, str], ...] = ()
    full: bool | None = None


def history(rng: random.Random) -> list[Step]:
    """Some commits of one to three rows, with compactions between them; mostly commits."""

    def step() -> Step:
        if rng.random() < 0.25:
            return Step(full=rng.random() < 0.3)
        rows = (
            (rng.randint(1, 2), rng.choice([None, -9, 1, 4, 8]), rng.randint(0, 3), rng.choice([None, *"abc"]), kind)
            for kind in rng.choices(["+I", "+U", "-D"], [6, 2, 2], k=rng.randint(1, 3))
        )
        return Step(tuple(rows))

    return [step() for _ in range(rng.randint(3, 7))]


MANY = Step(tuple((key, key % 7, 1, "m", "+I") for key in range(100, 1600)))
"""So many rows of other keys that small runs are not merged with theirs: then keys lie on several levels."""


def opened(options: dict[str, str]) -> Table:
    """A new table in a lake of its own."""
    lake = lakebed.connect(f"memory://{uuid4().hex}/warehouse")
    return lake.create_table("t", COLUMNS, primary_key=["k"], options=options)


def run(table: Table, history: list[Step]) -> None:
    """Writes and compacts."""
    lifting = table.with_options({"compaction.force-up-level-0": "true", "write-only": "false"})
    for step in history:
        if step.full is not None:
            lifting.compact(full=step.full)
            continue
        types = table.schema.arrow_schema
        columns = {
            name: pa.array([row[i] for row in step.rows], types.field(name).type) for i, name in enumerate(COLUMNS)
        }
        kinds = pa.array([row[4] for row in step.rows])
        table.write(pa.table({**columns, "kind": kinds}), row_kind="kind")


def shown(table: Table) -> list[tuple[Any, ...]]:
    """All rows that histories write, by key."""
    rows = table.to_arrow(filter=[("k", "<", MANY.rows[0][0])]).sort_by("k")
    return [tuple(row.values()) for row in rows.to_pylist()]


def check(options: dict[str, str], before: list[Step], change: SchemaChange, after: list[Step]) -> bool:
    """Whether the table took the change; it must then show the same rows, and go on like one that always was so."""
    table = opened(options)
    run(table, [MANY, Step(full=True), *before])
    if options["bucket"] == "-2" or "deletion-vectors.enabled" in options or options.get("merge-engine") == "first-row":
        run(table, [Step(full=False)])  # so that nothing waits, or is hidden
    state, history = (
        shown(table),
        {snapshot.id: shown(table.at(snapshot=snapshot.id)) for snapshot in table.snapshots()},
    )
    schema = table.schema
    try:
        later = apply_changes(schema, [change], has_snapshots=True, time_millis=1)
        needed = {verdict.later for verdict in judged(schema, later)}
        latest = table.latest_snapshot()
        table.alter(change)
    except (InvalidOption, InvalidSchema, NotFound):
        assert shown(table) == state
        assert table.schema.id == schema.id
        return False
    assert shown(table) == state, "the change shows other rows"
    if not needed:
        assert table.latest_snapshot() == latest, "a free change needs no commit"
    for number, rows in history.items():
        assert shown(table.at(snapshot=number)) == rows, f"snapshot {number} shows other rows"
    if isinstance(change, SetOption) and change.key == "bucket":
        return True  # partitions refuse rows until they are rescaled
    run(table, after)
    state = shown(table) if "deletion-vectors.enabled" not in table.options else None
    table.with_options({"write-only": "false"}).compact(full=True)
    if state is not None and table.options.get("merge-engine") != "first-row" and table.options["bucket"] != "-2":
        assert shown(table) == state, "a compaction shows other rows"
    assert table.check() == []
    return True


def configuration(rng: random.Random, engine: str) -> dict[str, str]:
    """Options of a table that can be created."""
    options = {
        **rng.choice(BUCKETS),
        **ENGINES[engine],
        **rng.choice(list(MODES.values())),
        "write-only": rng.choice(["true", "false"]),
        "deletion-vectors.modifiable": "true",
        "num-sorted-run.compaction-trigger": "3",
        "compaction.max-size-amplification-percent": "9999",
    }
    if engine == "first-row":
        if options.get("changelog-producer") != "lookup":
            options.pop("changelog-producer", None)
        options.pop("deletion-vectors.enabled", None)
    return options


def _say(text: str) -> None:
    """Part of what a failure prints."""
    if currently_in_test_context():
        note(text)
    else:
        print(text)


def try_change(rng: random.Random, engine: str, change: SchemaChange) -> None:
    """One table, one history, one change."""
    options = configuration(rng, engine)
    before, after = history(rng), history(rng)
    _say(f"{options}\n{before}\n{change}\n{after}")
    check(options, before, change, after)


# Numbers are drawn, and all else follows from them: examples that differ in one part only would try little.


@settings(max_examples=40)
@given(st.integers(0, 2**32))
def test_folding_changes(seed: int) -> None:
    """A change that folds rows first shows no other rows, in any table, after any history."""
    rng = random.Random(seed)
    engine = rng.choice(list(ENGINES))
    try_change(rng, engine, rng.choice(FOLDED[engine]))


@pytest.mark.filterwarnings("ignore:.*(has no effect|has no meaning any more)")
@settings(max_examples=25)
@given(st.integers(0, 2**32))
def test_free_changes(seed: int) -> None:
    """A free change shows no other rows, and makes no commit."""
    rng = random.Random(seed)
    try_change(rng, rng.choice(list(ENGINES)), rng.choice(FREE))


@pytest.mark.nightly
@pytest.mark.parametrize(("engine", "change"), [(name, change) for name in FOLDED for change in FOLDED[name]], ids=str)
def test_every_folding_change(engine: str, change: SchemaChange) -> None:
    """The same for every change of every kind of table."""
    for seed in range(40):
        try_change(random.Random(seed), engine, change)


@pytest.mark.nightly
@pytest.mark.filterwarnings("ignore:.*(has no effect|has no meaning any more)")
@pytest.mark.parametrize("change", FREE, ids=str)
def test_every_free_change(change: SchemaChange) -> None:
    """The same for every option that changes freely."""
    for seed in range(20):
        rng = random.Random(seed)
        try_change(rng, rng.choice(list(ENGINES)), change)
