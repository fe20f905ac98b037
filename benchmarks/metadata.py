"""What metadata costs as it grows: planning, commits, expiry, cleaning and checking, as curves against their size.

    python -m benchmarks.metadata [--small] [--json] [--peers]

The tables are made of metadata alone: a real commit is the pattern, and its entries are repeated under other names, in
other partitions and buckets, through the writers that commits use. So a table of 100,000 files is there in seconds, and
nothing that is measured here reads a data file. Times are CPU seconds of this process. With `--peers` pypaimon plans
the same table in a process of its own.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import cast

import pyarrow as pa

import lakebed
from benchmarks.peers import peer_python
from lakebed import Table
from lakebed.definition.context import TableContext
from lakebed.fileio.base import FileIO
from lakebed.fileio.sync_later import SyncLater
from lakebed.metadata.entries import live_files
from lakebed.metadata.manifest import EntryKind, ManifestEntry
from lakebed.metadata.manifest_list import ManifestMeta
from lakebed.metadata.snapshot import Snapshot
from lakebed.metadata.stores import MetadataStores
from lakebed.table.opened import opened_of
from lakebed.table.plans import plan_read
from lakebed.types.binary_row import encode_rows

SCHEMA = pa.schema([pa.field("p", pa.int32(), nullable=False), pa.field("id", pa.int64(), nullable=False)])

PEER = """
import json, sys, time
from pypaimon import CatalogFactory
table = CatalogFactory.create({"warehouse": sys.argv[1]}).get_table("default." + sys.argv[2])
def plan():
    builder = table.new_read_builder()
    builder = builder.with_filter(builder.new_predicate_builder().equal("p", 1))
    return len(builder.new_scan().plan().splits())
plan()
started = time.process_time()
splits = plan()
print(json.dumps([splits, time.process_time() - started]))
"""


def rows(number: int) -> pa.Table:
    """One row of a partition."""
    return pa.table({"p": [number], "id": [number]}, schema=SCHEMA)


def context_of(table: Table) -> TableContext:
    """What the table's parts are reached by."""
    return opened_of(table).current()


def cpu_seconds(act: Callable[[], object], repeats: int = 1) -> float:
    """The least CPU time of a few turns."""
    taken = []
    for _ in range(repeats):
        started = time.process_time()
        act()
        taken.append(time.process_time() - started)
    return min(taken)


def memory_mb() -> int:
    """The most memory that this process ever had."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024


# --- A table of so many files -------------------------------------------------------------------------------------


def grown(table: Table, files: int, partitions: int, buckets: int) -> None:
    """Adds files to the newest snapshot of a table with one: evenly to partitions and buckets, in the next one."""
    context = context_of(table)
    latest = context.stores.snapshots.latest()
    assert latest is not None
    pattern = live_files(context.stores, latest)[0]
    types = [context.schema.field(name).type for name in context.schema.partition_keys]
    names = [pattern.partition]
    if types:
        names = encode_rows([pa.array(range(partitions), pa.int32())], types).to_pylist()
    entries = [
        replace(
            pattern,
            partition=names[number % len(names)],
            bucket=number // len(names) % buckets,
            file=replace(pattern.file, file_name=f"data-{number:08}-0.parquet"),
        )
        for number in range(files)
    ]
    published(context, latest, entries)


def published(context: TableContext, latest: Snapshot, entries: Sequence[ManifestEntry]) -> None:
    """Makes the next snapshot, which has these files as well."""
    stores = context.stores
    types = [context.schema.field(name).type for name in context.schema.partition_keys]
    base = [*_metas(context, latest), *stores.manifests.write(entries, types)]
    base_name, base_size = stores.manifest_lists.write(base)
    delta_name, delta_size = stores.manifest_lists.write([])
    added = sum(entry.file.row_count for entry in entries)
    snapshot = replace(
        latest,
        id=latest.id + 1,
        base_manifest_list=base_name,
        base_manifest_list_size=base_size,
        delta_manifest_list=delta_name,
        delta_manifest_list_size=delta_size,
        total_record_count=latest.total_record_count + added,
        delta_record_count=0,
        uuid=f"grown-{latest.id}",
    )
    assert stores.snapshots.publish(snapshot)
    stores.snapshots.write_latest_hint(snapshot.id)


def _metas(context: TableContext, snapshot: Snapshot) -> list[ManifestMeta]:
    lists = context.stores.manifest_lists
    return [*lists.read(snapshot.base_manifest_list), *lists.read(snapshot.delta_manifest_list)]


# --- A table of so many snapshots ---------------------------------------------------------------------------------

LIVE_FILES = 20
"""Each commit of a busy small table adds a file, and takes away the oldest of these."""
MERGED_AFTER = 30


def aged(table: Table, snapshots: int) -> None:
    """Adds snapshots as a stream would, with all their files, each of which is a few bytes."""
    context = context_of(table)
    paths = context.paths
    # Not made durable: nobody waits for a disk that is to be measured later.
    stores = MetadataStores.open(cast(FileIO, SyncLater(context.fileio)), paths)
    latest = stores.snapshots.latest()
    assert latest is not None
    pattern = live_files(stores, latest)[0]
    metas = _metas(context, latest)
    live: list[ManifestEntry] = []
    directory = Path(context.data_file_path(pattern.partition, pattern.bucket, "x")).parent
    for number in range(snapshots):
        name = f"data-{number:08}-0.parquet"
        (directory / name).write_bytes(b"rows")
        live.append(replace(pattern, file=replace(pattern.file, file_name=name)))
        gone = [replace(live.pop(0), kind=EntryKind.DELETE)] if len(live) > LIVE_FILES else []
        if len(metas) >= MERGED_AFTER:
            metas = stores.manifests.write(live[:-1] + [replace(entry, kind=EntryKind.ADD) for entry in gone], [])
        base_name, base_size = stores.manifest_lists.write(metas)
        delta = stores.manifests.write([live[-1], *gone], [])
        delta_name, delta_size = stores.manifest_lists.write(delta)
        metas = [*metas, *delta]
        latest = replace(
            latest,
            id=latest.id + 1,
            base_manifest_list=base_name,
            base_manifest_list_size=base_size,
            delta_manifest_list=delta_name,
            delta_manifest_list_size=delta_size,
            uuid=f"aged-{number}",
        )
        Path(paths.snapshot_file(latest.id)).write_bytes(latest.to_file())
    stores.snapshots.write_latest_hint(latest.id)


# --- What is measured ---------------------------------------------------------------------------------------------


def planning(lake: lakebed.Lake, files: int, partitions: int) -> dict[str, float]:
    """Plans one partition among many, for the first time and once more."""
    table = lake.create_table(f"plan_{files}", SCHEMA, partition_by=["p"])
    table.write(rows(0))
    grown(table, files, partitions, 1)
    fresh = lake.table(f"plan_{files}")
    found: list[int] = []
    cold = cpu_seconds(lambda: found.append(len(plan_read(fresh, filter="p = 1")[1].files)))  # type: ignore[index]
    assert found == [files // partitions]
    warm = cpu_seconds(lambda: plan_read(fresh, filter="p = 1"), 3)
    return {"files": files, "partitions": partitions, "plan_cold": cold, "plan_warm": warm}


def commits(lake: lakebed.Lake, buckets: int) -> dict[str, float]:
    """Commits of one row to a table with a file in each of many buckets, and of a row for each of them."""
    options = {"bucket": str(buckets), "write-only": "true"}
    table = lake.create_table(f"commit_{buckets}", SCHEMA.remove(0), primary_key=["id"], options=options)
    table.write(rows(1).drop_columns(["p"]))
    grown(table, buckets, 1, buckets)
    table.write(rows(2).drop_columns(["p"]))
    one = cpu_seconds(lambda: table.write(rows(3).drop_columns(["p"])), 5)
    return {"buckets": buckets, "commit_one_row": one}


def upkeep(lake: lakebed.Lake, snapshots: int) -> dict[str, float]:
    """Checks, cleans and expires a table with a long history."""
    table = lake.create_table(f"age_{snapshots}", SCHEMA.remove(0), options={"write-only": "true"})
    table.write(rows(1).drop_columns(["p"]))
    aged(table, snapshots)
    orphans = cpu_seconds(lambda: table.remove_orphan_files(dry_run=True))
    check = cpu_seconds(table.check)
    gone: list[int] = []
    expiry = cpu_seconds(
        lambda: gone.append(len(table.expire_snapshots(retain_max=10, retain_min=1, max_deletes=10**9).snapshots))
    )
    assert gone == [snapshots - 9], gone
    assert len(table.snapshots()) == 10
    return {
        "snapshots": snapshots,
        "orphans": orphans,
        "check": check,
        "expiry": expiry,
        "expiry_us_each": expiry / snapshots * 1e6,
        "memory_mb": memory_mb(),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--small", action="store_true")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--peers", action="store_true")
    parser.add_argument("--snapshots", type=int, default=50_000, help="the longest history")
    given = parser.parse_args()
    least = 20 if given.small else 1
    results: dict[str, list[dict[str, float]]] = {"planning": [], "commits": [], "upkeep": []}
    with tempfile.TemporaryDirectory() as directory:
        lake = lakebed.connect(directory)
        for files in (1_000, 10_000, 100_000):
            measured = planning(lake, files // least, files // 20 // least)
            if given.peers:
                told = subprocess.run(
                    [peer_python("pypaimon"), "-c", PEER, directory, f"plan_{files // least}"],
                    check=True,
                    capture_output=True,
                    text=True,
                ).stdout
                measured["pypaimon_plan_warm"] = json.loads(told.splitlines()[-1])[1]
            results["planning"].append(measured)
        for buckets in (100, 1_000, 10_000):
            results["commits"].append(commits(lake, buckets // least))
        longest = 300 if given.small else given.snapshots
        for snapshots in (longest // 10, longest // 3, longest):
            results["upkeep"].append(upkeep(lake, snapshots))
    if given.json:
        print(json.dumps({"benchmark": "metadata", **results}))
        return
    for part, lines in results.items():
        print(f"{part}: " + "  ".join(lines[0]))
        for line in lines:
            print("  ".join(f"{value:12.4g}" for value in line.values()))


if __name__ == "__main__":
    main()
