"""Dynamic buckets written by Spark: several assigners in each commit, one job at a time in each partition."""

from __future__ import annotations

import json
import random
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import functions as sf

import lakebed
from lakebed.errors import CommitConflict
from lakebed.testing.key_layout import KeyLayout

COLUMNS = {"p": "INT NOT NULL", "k": "BIGINT NOT NULL", "v": "INT"}


def _create(lake: lakebed.Lake, **options: str) -> lakebed.Table:
    return lake.create_table(
        "t", COLUMNS, primary_key=["p", "k"], partition_by=["p"], options={"bucket": "-1", **options}
    )


def _frame(spark: Any, keys: list[int], value: int, partition: int = 0) -> Any:
    """Rows of these keys, spread over three partitions of the frame."""
    rows = pa.table(
        {"p": pa.array([partition] * len(keys), pa.int32()), "k": keys, "v": pa.array([value] * len(keys), pa.int32())}
    )
    return spark.createDataFrame(rows).repartition(3)


def _key_counts(table: lakebed.Table) -> dict[int, int]:
    """How many keys each bucket has, by the index of the one partition."""
    return {bucket: len(hashes) for (_, bucket), hashes in KeyLayout.of(table).index.items()}


def test_every_key_stays_in_one_bucket(spark: Any, lake: lakebed.Lake) -> None:
    """Six commits of new and known keys in random order: no key is in two buckets, and all but the last are full."""
    table = _create(lake, **{"dynamic-bucket.target-row-num": "300", "num-sorted-run.compaction-trigger": "3"})
    chance, wanted = random.Random(7), dict[int, int]()
    unused = chance.sample(range(100_000), 3000)
    for turn in range(6):
        new, unused = unused[:500], unused[500:]
        keys = new + chance.sample(sorted(wanted), 200 if wanted else 0)
        chance.shuffle(keys)
        table.write_spark(_frame(spark, keys, turn))
        wanted |= dict.fromkeys(keys, turn)
    shown = table.to_arrow()
    assert len(shown) == len(wanted)
    assert dict(zip(shown["k"].to_pylist(), shown["v"].to_pylist(), strict=True)) == wanted
    KeyLayout.of(table).check()
    counts = _key_counts(table)
    assert max(counts.values()) <= 300
    assigners = int(spark.conf.get("spark.sql.shuffle.partitions"))
    assert sum(count < 300 for count in counts.values()) <= assigners, f"buckets of {sorted(counts.values())} keys"


@pytest.mark.parametrize(
    ("options", "buckets"),
    [
        ({"dynamic-bucket.assigner-parallelism": "3"}, {0, 1, 2}),
        ({"dynamic-bucket.assigner-parallelism": "1"}, {0}),
        ({"dynamic-bucket.assigner-parallelism": "4", "dynamic-bucket.initial-buckets": "2"}, {0, 1}),
        ({"dynamic-bucket.assigner-parallelism": "5", "dynamic-bucket.max-buckets": "2"}, {0, 1}),
    ],
    ids=str,
)
def test_as_many_assigners_as_the_table_says(
    spark: Any, lake: lakebed.Lake, options: dict[str, str], buckets: set[int]
) -> None:
    """`dynamic-bucket.assigner-parallelism` is how many tasks assign, and how many buckets there are at first."""
    table = _create(lake, **options)
    table.write_spark(_frame(spark, list(range(200)), 1))
    assert set(_key_counts(table)) == buckets
    table.write_spark(_frame(spark, list(range(100, 300)), 2))
    assert set(_key_counts(table)) == buckets
    KeyLayout.of(table).check()
    assert sum(table.to_arrow(["v"])["v"].to_pylist()) == 100 + 2 * 200


def test_the_number_of_assigners_may_change(spark: Any, lake: lakebed.Lake) -> None:
    """Keys that one number of assigners placed are found by another number of them, and by a writer without Spark."""
    table = _create(lake, **{"dynamic-bucket.target-row-num": "40"})
    keys = list(range(300))
    for turn, assigners in enumerate((3, 2, 5, 1)):
        chosen = keys[turn * 20 : turn * 20 + 200]
        with_assigners = table.with_options({"dynamic-bucket.assigner-parallelism": str(assigners)})
        with_assigners.write_spark(_frame(spark, chosen, turn))
        KeyLayout.of(table).check()
    table.write(pa.table({"p": pa.array([0] * 300, pa.int32()), "k": keys, "v": pa.array([9] * 300, pa.int32())}))
    KeyLayout.of(table).check()
    assert table.to_arrow(["v"])["v"].to_pylist() == [9] * 300


# --- N-34: one job at a time in each partition -----------------------------------------------------------------------


def _held_back(frame: Any, gate: Path) -> Any:
    """The same rows, once a file is there. One task waits, so that others can work meanwhile."""
    path, begun = str(gate), str(gate.with_suffix(".begun"))

    def wait(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        # Whole in itself: Spark's workers can not import this file.
        for batch in batches:
            Path(begun).touch()
            deadline = time.monotonic() + 600
            while not Path(path).exists() and time.monotonic() < deadline:
                time.sleep(0.02)
            yield batch

    return frame.coalesce(1).mapInArrow(wait, frame.schema)


def _while_held(slow: Callable[[], Any], gate: Path, quick: Callable[[], Any]) -> Future[Any]:
    """Runs the one while the other has begun and waits for the gate; what became of the slow one."""
    with ThreadPoolExecutor(1) as pool:
        outcome = pool.submit(slow)
        while not gate.with_suffix(".begun").exists() and not outcome.done():
            time.sleep(0.02)
        try:
            quick()
        finally:
            gate.touch()
    return outcome


def test_n_34_a_second_job_is_refused(spark: Any, lake: lakebed.Lake, tmp_path: Path) -> None:
    """A job that began before another one gave keys of the partition their buckets must be run again."""
    table = _create(lake, **{"dynamic-bucket.assigner-parallelism": "2"})
    table.write_spark(_frame(spark, list(range(50)), 1))
    held = _held_back(_frame(spark, list(range(40, 90)), 2), tmp_path / "gate")
    before = len(list(tmp_path.rglob("data-*")))
    outcome = _while_held(
        lambda: table.write_spark(held),
        tmp_path / "gate",
        lambda: table.write_spark(_frame(spark, list(range(45, 80)), 3)),
    )
    refused = outcome.exception()
    assert isinstance(refused, CommitConflict), refused
    assert "another job gave keys their buckets" in refused.message
    assert "one writer at a time" in refused.hint
    KeyLayout.of(table).check()
    assert sum(table.to_arrow(["v"])["v"].to_pylist()) == 45 + 3 * 35
    added = len(list(tmp_path.rglob("data-*"))) - before
    assert added == sum(snapshot.id > 1 for snapshot in table.snapshots()) * len(_key_counts(table)), "files are left"
    table.write_spark(held)
    KeyLayout.of(table).check()
    assert len(table.to_arrow()) == 90


def test_n_34_jobs_of_two_partitions_both_commit(spark: Any, lake: lakebed.Lake, tmp_path: Path) -> None:
    """Keys of another partition are no matter of this one."""
    table = _create(lake)
    held = _held_back(_frame(spark, list(range(50)), 1, partition=1), tmp_path / "gate")
    outcome = _while_held(
        lambda: table.write_spark(held),
        tmp_path / "gate",
        lambda: table.write_spark(_frame(spark, list(range(50)), 2, partition=2)),
    )
    assert outcome.result().id == 2
    KeyLayout.of(table).check()
    assert len(table.to_arrow()) == 100


def test_n_34_a_second_stream_is_refused_and_goes_on(spark: Any, lake: lakebed.Lake, tmp_path: Path) -> None:
    """Of two streams into one partition the later one stops with the reason; started again it loses nothing."""
    table = _create(lake)
    sources = {name: tmp_path / name for name in ("slow", "quick")}
    for number, source in enumerate(sources.values()):
        source.mkdir()
        rows = [{"p": 0, "k": key, "v": number} for key in range(40 * number, 40 * number + 60)]
        (source / "b0.json").write_text("\n".join(map(json.dumps, rows)))

    def drain(name: str) -> None:
        frame = spark.readStream.schema("p int, k long, v int").json(str(sources[name]))
        if name == "slow":
            frame = _held_back(frame, tmp_path / "gate")
        query = table.write_stream(frame, checkpoint=tmp_path / f"c-{name}", trigger={"availableNow": True})
        query.awaitTermination()

    outcome = _while_held(lambda: drain("slow"), tmp_path / "gate", lambda: drain("quick"))
    assert "another job gave keys their buckets" in str(outcome.exception())
    assert len(table.to_arrow()) == 60
    drain("slow")
    KeyLayout.of(table).check()
    shown = table.to_arrow()
    assert sorted(shown["k"].to_pylist()) == list(range(100))
    assert len({snapshot.commit_user for snapshot in table.snapshots()}) == 2


def test_known_keys_of_two_jobs_do_not_collide(spark: Any, lake: lakebed.Lake, tmp_path: Path) -> None:
    """Jobs that only update give no key a bucket: both commit, and the later one wins."""
    table = _create(lake)
    table.write_spark(_frame(spark, list(range(50)), 1))
    held = _held_back(_frame(spark, list(range(50)), 3), tmp_path / "gate")
    outcome = _while_held(
        lambda: table.write_spark(held),
        tmp_path / "gate",
        lambda: table.write_spark(_frame(spark, list(range(50)), 2)),
    )
    assert outcome.result() is not None
    assert set(table.to_arrow(["v"])["v"].to_pylist()) == {3}
    totals = table.to_spark().agg(sf.count("*"), sf.sum("v")).collect()[0]
    assert tuple(totals) == (50, 150)
