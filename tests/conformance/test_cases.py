"""Cases that Paimon's own tests establish, run as users run them: statements by `lake.sql`, commits by tables.

A step is a statement with the rows it must give, a commit of rows with kinds, the changes that a reader must see, or
the micro-batches of a stream. Cases that fail are named below, with the reason; they are run all the same, so that one
that begins to pass is noticed.
"""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Iterator, Mapping
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from tests.conformance.expected import assert_same, assert_same_changes, from_json

import lakebed
from lakebed.errors import LakebedError

FILES = sorted((Path(__file__).parent / "cases").glob("*/*.jsonl"))
CASES = {
    f"{file.parent.name}/{case['id']}": case
    for file in FILES
    for case in map(json.loads, file.read_text(encoding="utf-8").splitlines())
}
MORE = {
    f"{file.parent.name}/{json.loads(line)['id']}"
    for file in FILES
    if file.stem.endswith("-more")
    for line in file.read_text(encoding="utf-8").splitlines()
}
"""Cases that were added later; the default run takes one in four of them."""

_PLACED = (
    "a batch that goes to the buckets places first what waits there, or older rows would win once they are placed. "
    "Numbers left free for them would do for deduplicate without deletes only: a compaction merges the batch with rows "
    "from before those that wait, and then partial-update and functions that go by order can not put them in between, "
    "first-row and changelogs have told the wrong row, and a -D on the highest level is gone before the row it deletes"
)
FAILING: dict[str, str] = {
    "spark/postpone-bucket/postponed-then-fixed-then-overwrite": _PLACED,
    "spark/postpone-bucket/merge-on-read-sequence-field": _PLACED,
}
"""Cases that do not pass, and why."""

COMPACTED = ("aggregation", "first-row", "nullable-pk", "partial-update", "sequence-rowkind")
"""Files whose cases are also run with a full compaction after each step: it must change nothing.

The default run takes one such case in three.
"""

MESSAGES = {
    "aggregation needs a changelog producer for streaming read": "merge engine `aggregation` and no changelog producer",
    "aggregation on sequence field": "`ver` of `sequence.field` has an aggregate function",
    "arithmetic overflow": "column `v`: the sum of a key's values does not fit into (TINY)?INT",
    "b is not a sequence group field": "`b`, which orders no sequence group",
    "bool_and does not support retraction": "`bool_and` can not take back a value",
    "f9 not in schema": "names column `f9`, which does not exist",
    "field p9 not in schema": "names column `p9`, which does not exist",
    "field v expected not null": "column `v` contains null",
    "first_value does not support retraction": "`first_value` can not take back a value",
    "immutable option": "`primary-key.nullable` can not change",
    "listagg does not support retraction": "`listagg` can not take back a value",
    "max column must be comparable": "`max` does not take column `label` of type (ARRAY|MAP|ROW)",
    "min column must be comparable": "`min` does not take column `label` of type (ARRAY|MAP|ROW)",
    "nested-sequence-field needs nested-key": "`fields.xs.nested-key` is not",
    "no sequence field on first-row": "`first-row` does not go with `sequence.field`",
    "only for primary key tables": "table without primary key",
    "p defined by several groups": "column `p` is in two sequence groups",
    "primary key in sequence-group": "primary-key column `f[02]` is in a sequence group",
    "sequence field defined repeatedly": "names a column twice",
    "sequence field not in schema": "names column `nope`, which does not exist",
    "would read duplicated changes": "a stream would read duplicated changes",
    "unknown aggregate function": "aggregate function `not_exist` is not known",
}
"""What our error says where a case asks for one: failing is not enough, it must fail for that reason.

Where nothing stands here, any error of ours will do.
"""


def run(lake: lakebed.Lake, home: Path, case: dict[str, Any], *, compacts: bool) -> None:
    for number, step in enumerate(case["steps"]):
        if "error" in step:
            with pytest.raises(LakebedError) as caught:
                run_step(lake, home / str(number), step)
            message = MESSAGES.get(step["error"])
            assert message is None or re.search(message, caught.value.message), str(caught.value)
        else:
            run_step(lake, home / str(number), step)
            for table in map(lake.table, lake.tables() if compacts else ()):
                if table.primary_key:
                    table.compact(full=True)


def run_step(lake: lakebed.Lake, home: Path, step: dict[str, Any]) -> None:
    unordered_arrays = step.get("unordered_arrays", False)
    if "sql" in step:
        got = lake.sql(step["sql"]).collect()
        if "rows" in step:
            rows = [[plain(value) for value in row] for row in got]
            assert_same(rows, step["rows"], ordered=step.get("ordered", False), unordered_arrays=unordered_arrays)
    elif "write" in step:
        table = lake.table(step["write"])
        rows = to_arrow([[from_json(value) for value in row[1:]] for row in step["rows"]], table)
        kinds = [[row[0] for row in step["rows"]]]
        table.write(rows.append_column("_kind", kinds), row_kind="_kind")
    elif "changes" in step:
        table = lake.table(step["changes"])
        got = [tuple(row.values()) for row in table.changes(since=step.get("since", 0)).to_pylist()]
        width = step.get("key_columns", 1)
        assert_same_changes(got, step["rows"], key_columns=width, unordered_arrays=unordered_arrays)
    else:
        stream(lake, home, step)


def stream(lake: lakebed.Lake, home: Path, step: dict[str, Any]) -> None:
    """Delivers micro-batches, one file each, through a query that is started anew for each of them."""
    table = lake.table(step["stream_write"])
    source = home / "in"
    source.mkdir(parents=True)
    schema = lake.sql(f"SELECT * FROM {step['stream_write']} WHERE 1 = 0").schema
    for number, batch in enumerate(step["batches"]):
        names = table.arrow_schema.names
        lines = [json.dumps(dict(zip(names, row, strict=True))) for row in batch]
        (source / f"{number:04}.json").write_text("\n".join(lines))
        frame = lake.spark.readStream.schema(schema).json(str(source))
        mode = step.get("mode", "append")
        query = table.write_stream(
            frame, checkpoint=home / "checkpoint", trigger={"availableNow": True}, output_mode=mode
        )
        query.awaitTermination()


def plain(value: Any) -> Any:
    """A value of a Spark row in the shape that Arrow gives it."""
    if hasattr(value, "asDict"):
        return {str(index): plain(item) for index, item in enumerate(value)}
    if isinstance(value, Mapping):
        return [(plain(key), plain(item)) for key, item in value.items()]
    if isinstance(value, list):
        return [plain(item) for item in value]
    return bytes(value) if isinstance(value, bytearray) else value


def to_arrow(rows: list[list[Any]], table: lakebed.Table) -> pa.Table:
    """Rows of plain values as the table takes them."""
    schema = table.arrow_schema
    columns = [pa.array([shaped(row[i], field.type) for row in rows], field.type) for i, field in enumerate(schema)]
    return pa.Table.from_arrays(columns, schema=pa.schema([field.with_nullable(True) for field in schema]))


def shaped(value: Any, kind: pa.DataType) -> Any:
    """The value as pyarrow wants it for the type."""
    if value is None:
        return None
    if pa.types.is_floating(kind):
        return float(value)
    if pa.types.is_decimal(kind):
        return Decimal(value).quantize(Decimal(1).scaleb(-kind.scale))
    if pa.types.is_struct(kind):
        return {part.name: shaped(item, part.type) for part, item in zip(kind, value, strict=True)}
    if pa.types.is_map(kind):
        return [(shaped(key, kind.key_type), shaped(item, kind.item_type)) for key, item in value]
    if pa.types.is_list(kind):
        return [shaped(item, kind.value_type) for item in value]
    return value


def runs() -> Iterator[Any]:
    """Every case as written, and some with compactions, unless they count snapshots."""
    for number, (case_id, case) in enumerate(CASES.items()):
        reason = FAILING.get(case_id)
        marks = [pytest.mark.xfail(strict=True, reason=reason)] if reason else []
        if case_id in MORE and number % 4:
            marks.append(pytest.mark.nightly)
        yield pytest.param(case_id, False, id=case_id, marks=marks)
        counts = any(step.get("since", 0) > 0 or "$" in step.get("sql", "") for step in case["steps"])
        if case_id.split("/")[1] in COMPACTED and not counts and not reason:
            marks = [] if number % 3 == 0 and case_id not in MORE else [pytest.mark.nightly]
            yield pytest.param(case_id, True, id=f"{case_id}-compacted", marks=marks)


@contextlib.contextmanager
def settings_kept(spark: Any) -> Iterator[None]:
    """Cases may SET what they like: afterwards the session is as it was."""
    before = {row[0]: row[1] for row in spark.sql("SET").collect()}
    try:
        yield
    finally:
        for key, value in {row[0]: row[1] for row in spark.sql("SET").collect()}.items():
            if key not in before:
                spark.conf.unset(key)
            elif before[key] != value:
                spark.conf.set(key, before[key])


@pytest.mark.parametrize(("case_id", "compacts"), list(runs()))
def test_case(lake: lakebed.Lake, tmp_path: Path, case_id: str, compacts: bool) -> None:
    """Every step of the case gives what it must."""
    case = CASES[case_id]
    sets = any(step.get("sql", "").lstrip().upper().startswith(("SET ", "RESET")) for step in case["steps"])
    with settings_kept(lake.spark) if sets else contextlib.nullcontext():
        run(lake, tmp_path / "steps", case, compacts=compacts)


def test_what_is_left_out_exists() -> None:
    """Names of failing cases are names of cases, and messages belong to errors that cases ask for."""
    assert set(FAILING) <= set(CASES)
    assert set(MESSAGES) <= {step.get("error") for case in CASES.values() for step in case["steps"]}
