"""Cases that Paimon's own tests establish, run through the table API: one test for each case.

The statements are carried out by `flink_sql`; a step is a statement with the rows it must give, a commit of rows with
kinds, or the changes that a reader must see. Cases whose feature this version refuses are named below, with the option
it refuses; a test makes sure that it still does, so that a case comes back when its feature does.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from tests.conformance.expected import assert_same, assert_same_changes, from_json
from tests.conformance.flink_sql import FlinkSession, to_arrow

import lakebed
from lakebed.errors import InvalidOption, LakebedError

CASES = {
    case["id"]: case
    for file in sorted((Path(__file__).parent / "cases").glob("*.jsonl"))
    for case in map(json.loads, file.read_text(encoding="utf-8").splitlines())
}
REFUSED = {
    "sequence.snapshot-ordering": (
        "rows are numbered in order of arrival only",
        [
            "sequence-rowkind/snapshot-ordering-later-delete-wins",
            "sequence-rowkind/snapshot-ordering-later-snapshot-wins",
            "sequence-rowkind/snapshot-ordering-needs-write-only",
        ],
    ),
}
"""Options that this version refuses, why, and the cases that set them."""

OTHERS = {
    "changelog/key-only-delete-deduplicate-full-compaction": "it sets `partial-update.remove-record-on-delete` for "
    "another merge engine, which has no effect in Paimon and is refused here",
    "changelog/postpone-bucket-lookup-after-compact": "postponed buckets can not be written in this version",
}
"""Cases left out for another reason."""

REFUSED_CASES = [(case_id, option) for option, (_, ids) in REFUSED.items() for case_id in ids]
LEFT_OUT = {case_id for case_id, _ in REFUSED_CASES} | set(OTHERS)

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
"""What our error says where a case asks for one: failing is not enough, it must fail for that reason."""


def run(case: dict[str, Any], *, compacts: bool) -> None:
    lake = lakebed.connect(f"memory://{uuid4()}")
    session = FlinkSession(lake)
    for step in case["steps"]:
        if "error" in step:
            with pytest.raises(LakebedError) as caught:
                run_step(lake, session, step)
            assert re.search(MESSAGES[step["error"]], caught.value.message), str(caught.value)
        else:
            run_step(lake, session, step)
            for table in map(lake.table, lake.tables() if compacts else ()):
                if table.primary_key:
                    table.compact(full=True)


def run_step(lake: lakebed.Lake, session: FlinkSession, step: dict[str, Any]) -> None:
    unordered_arrays = step.get("unordered_arrays", False)
    if "sql" in step:
        got = session.run(step["sql"])
        if "rows" in step:
            assert got is not None
            assert_same(got, step["rows"], ordered=step.get("ordered", False), unordered_arrays=unordered_arrays)
    elif "write" in step:
        table = lake.table(step["write"])
        rows = to_arrow([[from_json(value) for value in row[1:]] for row in step["rows"]], table)
        kinds = [[row[0] for row in step["rows"]]]
        table.write(rows.append_column("_kind", kinds), row_kind="_kind")
    else:
        table = lake.table(step["changes"])
        got = [tuple(row.values()) for row in table.changes(since=step.get("since", 0)).to_pylist()]
        width = step.get("key_columns", 1)
        assert_same_changes(got, step["rows"], key_columns=width, unordered_arrays=unordered_arrays)


def runs() -> Iterator[Any]:
    """Every case as written and with compactions, unless it counts snapshots."""
    for case_id in CASES.keys() - LEFT_OUT:
        counts = any(step.get("since", 0) > 0 for step in CASES[case_id]["steps"])
        for compacts in (False,) if counts else (False, True):
            yield pytest.param(case_id, compacts, id=f"{case_id}-{'compacted' if compacts else 'as-written'}")


@pytest.mark.parametrize(("case_id", "compacts"), sorted(runs(), key=lambda run: str(run.id)))
def test_case(case_id: str, compacts: bool) -> None:
    """Every step of the case gives what it must, also with a full compaction after each of them."""
    run(CASES[case_id], compacts=compacts)


@pytest.mark.parametrize(("case_id", "option"), REFUSED_CASES)
def test_case_left_out_sets_an_option_that_is_refused(case_id: str, option: str) -> None:
    """A case is left out only as long as its option is refused."""
    lake = lakebed.connect(f"memory://{uuid4()}")
    settings = [step["sql"] for step in CASES[case_id]["steps"] if f"'{option}' = " in step.get("sql", "")]
    with pytest.raises(InvalidOption, match=f"honour option `{option}`|`{option}`: lakebed does not honour"):
        FlinkSession(lake).run(settings[0])


@pytest.mark.parametrize("case_id", [case_id for case_id, _ in REFUSED_CASES])
def test_case_left_out_shows_the_same_rows_without_the_option(case_id: str) -> None:
    """The options in question change files and events, not rows: queries of those cases hold without them."""
    lake = lakebed.connect(f"memory://{uuid4()}")
    session = FlinkSession(lake, leave_out=frozenset(REFUSED))
    for step in CASES[case_id]["steps"]:
        if "changes" not in step and "error" not in step and "$snapshots" not in step.get("sql", ""):
            run_step(lake, session, step)


def test_lists_of_cases_are_up_to_date() -> None:
    """Every case that is left out exists, and is left out once; no message is kept for nothing."""
    named = [*(case_id for case_id, _ in REFUSED_CASES), *OTHERS]
    assert sorted(named) == sorted(LEFT_OUT)
    assert set(named) <= set(CASES)
    errors = {step.get("error") for case_id, case in CASES.items() if case_id not in named for step in case["steps"]}
    assert errors - {None} == set(MESSAGES)
