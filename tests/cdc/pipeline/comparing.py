"""Runs a workload beside a sync, and compares lake and database at every quiet point."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.cdc.pipeline.local_sync import LocalSync
from tests.cdc.pipeline.workload import ODD_TABLE, Table, Workload
from tests.patience import PATIENCE_S

import lakebed
import lakebed.cdc
from lakebed.errors import LakebedError

SYNC: dict[str, Any] = {
    "mapping": {ODD_TABLE: "odd"},
    "rename": "follow",
    "drop": "follow",
    "table_conf": {
        "bucket": "2",
        "changelog-producer": "input",
        "snapshot.num-retained.min": "10000",
        "keyed.*|large": {"changelog-producer": "lookup"},
    },
}
"""Arguments of a sync after which the lake has the very columns of the database."""


def stored(lake: lakebed.Lake, table: Table) -> Any:
    """The table of the lake."""
    return lake.table(f"`lk`.`{'odd' if table.name == ODD_TABLE else table.name}`")


def differences(lake: lakebed.Lake, workload: Workload) -> list[str]:
    """What differs between lake and database, table by table."""
    found = []
    for table in workload.tables:
        names, rows = workload.expected(table)
        try:
            mine = stored(lake, table)
            have = mine.to_arrow()
        except LakebedError as error:
            found.append(f"{table.name}: {error.message}")
            continue
        if sorted(have.schema.names) != sorted(names):
            found.append(f"{table.name}: columns {have.schema.names} instead of {names}")
            continue
        columns = [have.column(name).to_pylist() for name in names]
        found += different_rows(table, list(zip(*columns, strict=True)), rows)
        found += _different_comments(table, mine)
    return found


def different_rows(table: Table, mine: list[tuple[Any, ...]], rows: list[tuple[Any, ...]]) -> list[str]:
    by_key = [{row[: len(table.key)]: row for row in each} for each in (mine, rows)]
    if len(mine) == len(rows) and by_key[0] == by_key[1]:
        return []
    wrong = [(by_key[0].get(key), row) for key, row in by_key[1].items() if by_key[0].get(key) != row][:2]
    return [f"{table.name}: {len(mine)} rows instead of {len(rows)}, {wrong}"]


def _different_comments(table: Table, mine: Any) -> list[str]:
    comments = {field.name: field.description for field in mine.schema.fields}
    return [
        f"{table.name}.{column}: comment {comments.get(column)!r} instead of {text!r}"
        for column, text in table.comments.items()
        if comments.get(column) != text
    ]


def wait_until_equal(lake: lakebed.Lake, workload: Workload, check: Callable[[], Any]) -> None:
    """Waits for a quiet point, or says what differs and after which statements."""
    deadline = time.monotonic() + PATIENCE_S
    wrong = ["nothing was looked at"]
    while wrong and time.monotonic() < deadline:
        check()
        wrong = differences(lake, workload)
        if wrong:
            time.sleep(0.5)
    assert not wrong, (wrong, workload.done[-40:])


def assert_replays(lake: lakebed.Lake, workload: Workload) -> None:
    """The changelog of each table, played back, gives its rows."""
    for table in workload.tables:
        changes = stored(lake, table).changes()
        names = [name for name in changes.schema.names if name != "rowkind"]
        keys = zip(*(changes[name].to_pylist() for name in table.key), strict=True)
        rows = zip(*(changes[name].to_pylist() for name in names), strict=True)
        state: dict[Any, Any] = {}
        for kind, key, row in zip(changes["rowkind"].to_pylist(), keys, rows, strict=True):
            if kind in ("+I", "+U"):
                state[key] = row
            else:
                state.pop(key, None)
        current = stored(lake, table).to_arrow()
        expected = list(zip(*(current[name].to_pylist() for name in names), strict=True))
        assert sorted(map(repr, state.values())) == sorted(map(repr, expected)), table.name


def follow(lake: lakebed.Lake, workload: Workload, rounds: int, steps: int, source: str, **arguments: Any) -> None:
    """A copy, every kind of schema change, random rounds: equal after each, and the changelog replays to it."""
    run = lakebed.cdc.sync(lake, source, "lk", trigger="200 milliseconds", **SYNC, **arguments)
    try:
        wait_until_equal(lake, workload, run.check)
        workload.each_change()
        wait_until_equal(lake, workload, run.check)
        for _ in range(rounds):
            workload.round(steps)
            wait_until_equal(lake, workload, run.check)
    finally:
        run.stop()
    assert_replays(lake, workload)


def follow_locally(
    workload: Workload, place: Path, seed: int, rounds: int, steps: int, source: str, **arguments: Any
) -> None:
    """`follow` without Spark, with batches between the steps, of which some die and are repeated."""
    lake = lakebed.connect(place / "warehouse")
    rng = random.Random(seed)
    sync = LocalSync(lake, source, place / "checkpoint", seed=seed, dies=0.03, **SYNC, **arguments)

    def assert_equal() -> None:
        wrong = sync.catch_up(lambda: differences(lake, workload))
        assert not wrong, (wrong, workload.done[-40:])

    try:
        live(sync, workload, rng, rounds, steps, assert_equal)
        assert_replays(lake, workload)
    finally:
        sync.stop()


def live(
    sync: LocalSync,
    workload: Workload,
    rng: random.Random,
    rounds: int,
    steps: int,
    assert_equal: Callable[[], None],
) -> None:
    """A copy, every kind of schema change and random rounds, with batches between their steps; equal after each."""
    assert_equal()
    workload.each_change()
    assert_equal()
    for _ in range(rounds):
        for _ in range(steps):
            workload.round(1)
            if rng.random() < 0.2:
                sync.step()
        assert_equal()


__all__ = [
    "PATIENCE_S",
    "SYNC",
    "assert_replays",
    "differences",
    "different_rows",
    "follow",
    "follow_locally",
    "live",
    "stored",
    "wait_until_equal",
]
