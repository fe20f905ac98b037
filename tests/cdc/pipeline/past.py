"""Holds what a sync keeps of the past against the database, and its parts against one another by a plain fold."""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.cdc.pipeline.comparing import SYNC, different_rows, live
from tests.cdc.pipeline.local_sync import LocalSync
from tests.cdc.pipeline.workload import ODD_TABLE, Table, Workload

import lakebed
from lakebed.errors import LakebedError

PAST: dict[str, Any] = {
    **SYNC,
    "table_conf": {"bucket": "2", "snapshot.num-retained.min": "10000", "keyed.*": {"changelog-producer": "lookup"}},
    "deletes": "mark",
    "history": True,
    "history_column_prefix": "h_",
}
"""Arguments of a sync that keeps everything but an audit, which not every source can."""

Row = dict[str, Any]


def past_differences(lake: lakebed.Lake, workload: Workload, position: Callable[[str], Any] | None) -> list[str]:
    """What differs, table by table. `position` makes positions of an audit comparable; None without an audit."""
    found = []
    for table in workload.tables:
        names, rows = workload.expected(table)
        name = "odd" if table.name == ODD_TABLE else table.name
        try:
            state = lake.table(f"`lk`.`{name}`").to_arrow().to_pylist()
            history = lake.table(f"`lk`.`{name}_history`").to_arrow().to_pylist()
            changes = lake.table(f"`lk`.`{name}_changes`").to_arrow().to_pylist() if position is not None else []
        except LakebedError as error:
            found.append(f"{table.name}: {error.message}")
            continue
        if any(missing := {*names} - {*row} for row in [*state, *history]):
            found.append(f"{table.name}: without {missing}")
            continue
        live = [tuple(row[each] for each in names) for row in state if row["deleted_at"] is None]
        current = [tuple(row[each] for each in names) for row in history if row["h_is_current"]]
        found += [f"state of {each}" for each in different_rows(table, live, rows)]
        found += [f"history of {each}" for each in different_rows(table, current, rows)]
        found += [f"{table.name}: {each}" for each in _broken_chains(table, history, state)]
        if position is not None:
            found += [f"{table.name}: {each}" for each in _unlike_audit(table, names, history, changes, position)]
    return found


def _by_key(table: Table, rows: list[Row]) -> dict[Any, list[Row]]:
    found = defaultdict(list)
    for row in rows:
        found[tuple(row[each] for each in table.key)].append(row)
    return found


def _broken_chains(table: Table, history: list[Row], state: list[Row]) -> list[str]:
    """Versions of a key are numbered from 1, follow one another in time, and only the last one may be current."""
    wrong = []
    chains = _by_key(table, history)
    for key, chain in chains.items():
        chain.sort(key=lambda row: row["h_row_version"])
        if [row["h_row_version"] for row in chain] != list(range(1, len(chain) + 1)):
            wrong.append(f"{key}: versions {[row['h_row_version'] for row in chain]}")
        for row, later in zip(chain, [*chain[1:], None], strict=True):
            if row["h_is_current"] != (row["h_valid_to"] is None) or (row["h_is_current"] and later is not None):
                wrong.append(f"{key}: version {row['h_row_version']} is current, and should not be")
            elif row["h_valid_to"] is not None and row["h_valid_to"] < row["h_valid_from"]:
                wrong.append(f"{key}: version {row['h_row_version']} ends before it begins")
            elif later is not None and later["h_valid_from"] < row["h_valid_to"]:
                wrong.append(f"{key}: version {later['h_row_version']} begins before the one in front of it ends")
    for row in state:
        chain = chains.get(tuple(row[each] for each in table.key), [])
        if row["deleted_at"] is not None and (not chain or chain[-1]["h_valid_to"] is None):
            wrong.append(f"{row} is deleted, and has a current version")
    return wrong


def _unlike_audit(
    table: Table, names: list[str], history: list[Row], changes: list[Row], position: Callable[[str], Any]
) -> list[str]:
    """A fold over the audit gives the versions: of each transaction the last change of a key, if it is no delete."""
    wrong = []
    audit, versions = _by_key(table, changes), _by_key(table, history)
    for key in audit.keys() | versions.keys():
        last: dict[Any, Row] = {}
        order = {"-U": 0, "-D": 0, "+I": 1, "+U": 1}
        told = [row for row in audit.get(key, []) if row["h_op"] != "-U"]
        told.sort(key=lambda row: (position(row["h_position"]), row["h_change_number"], order[row["h_op"]]))
        for row in told:
            last.pop(row["h_transaction_id"], None)
            last[row["h_transaction_id"]] = row
        expected = [row for row in last.values() if row["h_op"] != "-D"]
        mine = [row for row in versions.get(key, []) if row["h_transaction_id"] is not None]
        mine.sort(key=lambda row: row["h_row_version"])
        if [row["h_transaction_id"] for row in mine] != [row["h_transaction_id"] for row in expected]:
            wrong.append(f"{key}: versions of {mine} instead of {expected}")
            continue
        for row, change in zip(mine, expected, strict=True):
            # A column that came later has a value in the version that was current then, and none in the change.
            if any(row[each] != change[each] and change[each] is not None for each in names):
                wrong.append(f"{key}: version {row} instead of {change}")
            if row["h_valid_from"] < change["h_changed_at"]:
                wrong.append(f"{key}: valid from {row['h_valid_from']} instead of {change['h_changed_at']}")
    return wrong


def keep_locally(
    workload: Workload,
    place: Path,
    seed: int,
    rounds: int,
    steps: int,
    source: str,
    position: Callable[[str], Any] | None,
    **arguments: Any,
) -> None:
    """A sync without Spark that keeps everything, with batches between the steps, of which some die."""
    lake = lakebed.connect(place / "warehouse")
    rng = random.Random(seed)
    audit = {"audit": True, "audit_by_day": seed % 2 == 0} if position is not None else {}
    sync = LocalSync(lake, source, place / "checkpoint", seed=seed, dies=0.02, **PAST, **audit, **arguments)

    def assert_equal() -> None:
        wrong = sync.catch_up(lambda: past_differences(lake, workload, position))
        assert not wrong, (wrong[:5], workload.done[-40:])

    try:
        live(sync, workload, rng, rounds, steps, assert_equal)
    finally:
        sync.stop()


__all__ = ["PAST", "keep_locally", "past_differences"]
