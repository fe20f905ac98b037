"""Several writers delete, append and compact at once: conflicts are told, and what was told to be done is done."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable

import pyarrow.compute as pc
import pytest
from tests.faults.fault_tables import SCHEMA, check_sound, data, fresh_disk, open_lake, rows_of

from lakebed.errors import CommitConflict
from lakebed.table.table import Table

ROUNDS = 6
WRITERS = 3


def _until_done(action: Callable[[], object]) -> None:
    """Somebody else may be faster, but not for ever."""
    for _ in range(50):
        try:
            action()
            return
        except CommitConflict:
            continue
    raise AssertionError("never got through")


def _run(workers: list[Callable[[], None]]) -> None:
    failed: list[BaseException] = []

    def guarded(worker: Callable[[], None]) -> None:
        try:
            worker()
        except BaseException as error:  # noqa: BLE001 - told by the main thread
            failed.append(error)

    threads = [threading.Thread(target=guarded, args=(worker,)) for worker in workers]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failed:
        raise failed[0]


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"deletion-vectors.enabled": "true"},
        {"deletion-vectors.enabled": "true", "bucket": "1", "bucket-key": "id"},
        {"row-tracking.enabled": "true", "deletion-vectors.enabled": "true"},
    ],
    ids=["rewriting", "marking", "buckets", "ids"],
)
def test_deletes_appends_and_compactions_at_once(options: dict[str, str]) -> None:
    """Every row that was written and not deleted is there once, whoever compacted what meanwhile."""
    disk = fresh_disk()
    fast = {"commit.min-retry-wait": "1 ms", "commit.max-retries": "100", "file.format": "avro"}
    table = open_lake(disk).create_table("t", SCHEMA, options={**fast, **options})
    table.write(data((0, key, 0) for key in range(60)))

    def worker(number: int) -> Callable[[], None]:
        def work() -> None:
            own = open_lake(disk).table("t")
            chance = random.Random(number)
            for turn in range(ROUNDS):
                own.write(data((number, 1000 * number + 10 * turn + key, turn) for key in range(5)))
                mine = [number + WRITERS * turn, 1000 * number + 10 * turn + chance.randrange(5)]
                _until_done(lambda mine=mine: own.delete_where(pc.field("id").isin(mine)))
                if chance.random() < 0.5:
                    _until_done(lambda: own.compact(full=True))

        return work

    _run([worker(number) for number in range(1, WRITERS + 1)])
    deleted = {number + WRITERS * turn for number in range(1, WRITERS + 1) for turn in range(ROUNDS)}
    wanted = {key for key in range(60) if key not in deleted}
    for number in range(1, WRITERS + 1):
        chance = random.Random(number)
        for turn in range(ROUNDS):
            gone = 1000 * number + 10 * turn + chance.randrange(5)
            chance.random()
            wanted |= {1000 * number + 10 * turn + key for key in range(5)} - {gone}
    found = [row[1] for row in rows_of(table)]
    assert sorted(found) == sorted(wanted)
    check_sound(table)
    if "row-tracking.enabled" in options:
        ids = table.to_arrow(columns=["_ROW_ID"]).column(0).to_pylist()
        assert len(set(ids)) == len(ids)


def test_upserts_and_compactions_at_once() -> None:
    """Writers of a masking table never show a key twice, and in the end each key has its last row."""
    disk = fresh_disk()
    options = {
        "deletion-vectors.enabled": "true",
        "bucket": "1",
        "file.format": "avro",
        "commit.min-retry-wait": "1 ms",
        "commit.max-retries": "100",
    }
    table = open_lake(disk).create_table("t", SCHEMA, primary_key=["p", "id"], options=options)
    table.write(data((1, key, 0) for key in range(200)))

    def worker(number: int) -> Callable[[], None]:
        def work() -> None:
            own: Table = open_lake(disk).table("t")
            for turn in range(1, ROUNDS + 1):
                own.write(data((1, key, 100 * number + turn) for key in range(number, 200, WRITERS + 1)))
                shown = [row[:2] for row in rows_of(own)]
                assert len(set(shown)) == len(shown) == 200

        return work

    _run([worker(number) for number in range(1, WRITERS + 1)])
    table.compact()
    wanted = dict.fromkeys(range(200), 0)
    for number in range(1, WRITERS + 1):
        wanted |= dict.fromkeys(range(number, 200, WRITERS + 1), 100 * number + ROUNDS)
    assert {row[1]: row[2] for row in rows_of(table)} == wanted
    check_sound(table)
