"""Makes `tests/fixtures/version-before`: what a version of Lakebed left behind, for later ones to read and go on with.

    cd <clone of that version> && .venv/bin/python <this file> <directory for the archives>

Only the public interface is used, so that any version can run it. Nothing in the archives names a place of the machine
that made them: in the logs of Spark, `@HOME@` stands for the directory that they are unpacked to.
"""

from __future__ import annotations

import io
import json
import lzma
import os
import shutil
import sys
import tarfile
import tempfile
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

import lakebed
import lakebed.cdc

HOME = "@HOME@"
BEGIN_S = 1_790_000_000
"""Times of source files: Spark takes them in this order, and forgets those that are long before the latest."""

COLUMNS = {"part": "INT NOT NULL", "id": "BIGINT NOT NULL", "v": "STRING", "n": "INT"}


def rows(ids: range, word: str, shift: int = 0) -> pa.Table:
    """Rows of `COLUMNS`; a key stays in its partition unless it is shifted to another."""
    return pa.table(
        {
            "part": pa.array([(number + shift) % 2 for number in ids], pa.int32()),
            "id": pa.array(list(ids), pa.int64()),
            "v": pa.array([f"{word} {number}" for number in ids]),
            "n": pa.array([number * 10 for number in ids], pa.int32()),
        }
    )


def deletes(ids: range, word: str) -> pa.Table:
    """The same as deletions."""
    found = rows(ids, word)
    return found.append_column("op", pa.array(["-D"] * found.num_rows))


# --- tables ----------------------------------------------------------------------------------------------------------


def _keyed(
    lake: lakebed.Lake, name: str, options: dict[str, str] | None = None, key: tuple[str, ...] = ("part", "id")
) -> lakebed.Table:
    stored = {"bucket": "2", **(options or {})}
    return lake.create_table(f"kinds.{name}", COLUMNS, primary_key=key, partition_by=["part"], options=stored)


def _plain(lake: lakebed.Lake, name: str, options: dict[str, str] | None = None) -> lakebed.Table:
    return lake.create_table(f"kinds.{name}", COLUMNS, partition_by=["part"], options=options)


def _upserts(table: lakebed.Table) -> None:
    table.write(rows(range(12), "first"))
    table.write(rows(range(3, 8), "second"))
    table.write(deletes(range(1, 3), "first"), row_kind="op")


def tables(lake: lakebed.Lake) -> None:
    """Small tables of every kind, each left between two things that one does with tables."""
    lake.create_database("kinds")

    append = _plain(lake, "append")
    append.write(rows(range(8), "first"))
    append.write(rows(range(8, 12), "second"))
    append.delete_where([("id", "==", 3)])

    tracked = _plain(lake, "row_tracking", {"row-tracking.enabled": "true", "data-evolution.enabled": "true"})
    tracked.write(rows(range(8), "first"))
    tracked.write(rows(range(8, 12), "second"))

    bucketed = _plain(lake, "append_in_buckets", {"bucket": "2", "bucket-key": "id"})
    bucketed.write(rows(range(12), "first"))
    bucketed.write(rows(range(4), "second"))

    marked = _plain(lake, "append_deletion_vectors", {"deletion-vectors.enabled": "true"})
    marked.write(rows(range(12), "first"))
    marked.delete_where([("id", "<", 3)])

    _upserts(_keyed(lake, "fixed"))
    _upserts(_keyed(lake, "dynamic", {"bucket": "-1", "dynamic-bucket.target-row-num": "3"}))
    crossing = _keyed(lake, "cross_partition", {"bucket": "-1", "dynamic-bucket.target-row-num": "3"}, ("id",))
    crossing.write(rows(range(12), "first"))
    crossing.write(rows(range(3, 8), "moved", shift=1))

    postponed = _keyed(lake, "postponed", {"bucket": "-2"})
    postponed.write(rows(range(12), "first"))
    postponed.compact()
    with postponed.writer(commit_user="job", commit_identifier=1) as writer:
        writer.write(rows(range(3, 8), "waiting"))
        writer.commit()

    _upserts(_keyed(lake, "deletion_vectors", {"deletion-vectors.enabled": "true"}))
    _upserts(_keyed(lake, "orc", {"file.format": "orc"}))
    _upserts(_keyed(lake, "avro", {"file.format": "avro"}))
    _upserts(_keyed(lake, "indexed", {"file-index.bloom-filter.columns": "v"}))

    first = _keyed(lake, "first_row", {"merge-engine": "first-row"})
    first.write(rows(range(12), "first"))
    first.write(rows(range(3, 16), "second"))
    first.compact(full=True)

    partial = _keyed(lake, "partial_update", {"merge-engine": "partial-update"})
    partial.write(rows(range(12), "first"))
    second = rows(range(3, 8), "second")
    partial.write(second.set_column(3, "n", pa.nulls(second.num_rows, pa.int32())))

    sums = _keyed(
        lake,
        "aggregation",
        {
            "merge-engine": "aggregation",
            "fields.n.aggregate-function": "sum",
            "fields.v.aggregate-function": "last_value",
        },
    )
    sums.write(rows(range(12), "first"))
    sums.write(rows(range(3, 8), "second"))
    counts = _keyed(lake, "counts", {"merge-engine": "aggregation", "fields.n.aggregate-function": "count"})
    counts.write(rows(range(12), "first"))
    counts.write(rows(range(3, 8), "second"))

    for producer in ("input", "lookup", "full-compaction"):
        told = _keyed(lake, f"changelog_{producer.replace('-', '_')}", {"changelog-producer": producer})
        _upserts(told)
        told.compact(full=True)
        told.write(rows(range(6, 9), "third"))

    upkept = _keyed(lake, "tags_branches")
    upkept.write(rows(range(12), "first"))
    upkept.create_tag("one")
    upkept.write(rows(range(3, 8), "second"))
    upkept.create_branch("side", "one")
    upkept.on_branch("side").write(rows(range(20, 22), "side"))
    upkept.analyze(True)
    stream = upkept.follow(options={"consumer-id": "reader"})
    next(stream)
    upkept.write(rows(range(30, 32), "third"))
    next(stream)  # which says that the one before is done with

    changed = _keyed(lake, "schema_changes")
    changed.write(rows(range(12), "first"))
    changed.alter(lakebed.AddColumn("extra", "DECIMAL(10, 2)"), lakebed.UpdateColumnType("n", "BIGINT"))
    changed.alter(lakebed.RenameColumn("v", "w"))
    changed.write(
        rows(range(3, 6), "second")
        .rename_columns(["part", "id", "w", "n"])
        .append_column("extra", pa.array([Decimal("1.50")] * 3, pa.decimal128(10, 2)))
    )

    snapshots = {"snapshot.num-retained.min": "1", "snapshot.num-retained.max": "1"}
    changelogs = {"changelog.num-retained.min": "1", "changelog.num-retained.max": "20", "changelog-producer": "input"}
    expired = _keyed(lake, "expired", snapshots | changelogs)
    for identifier in range(1, 5):
        with expired.writer(commit_user="job", commit_identifier=identifier) as writer:
            writer.write(rows(range(identifier, identifier + 3), f"commit {identifier}"))
            writer.commit()
    expired.expire_snapshots()


def as_text(found: pa.Table) -> list[list[str]]:
    """Rows as text, sorted: enough to tell any two states of these tables apart."""
    return sorted([[repr(value) for value in row.values()] for row in found.to_pylist()])


def shown(table: lakebed.Table) -> list[list[str]]:
    """What a table holds."""
    return as_text(table.to_arrow())


def told(table: lakebed.Table) -> dict[str, Any]:
    """What is read from a table: every snapshot, tag and branch, the changes, and who reads them."""
    found: dict[str, Any] = {
        "rows": shown(table),
        "snapshots": {str(each.id): shown(table.at(snapshot=each.id)) for each in table.snapshots()},
        "tags": {tag: shown(table.at(tag=tag)) for tag in table.tags()},
        "branches": {branch: shown(table.on_branch(branch)) for branch in table.branches()},
        "consumers": [[each.id, each.next_snapshot] for each in table.consumers()],
        "statistics": None if (known := table.statistics()) is None else repr(known),
        "options": table.options,
    }
    if table.primary_key:
        found["with waiting rows"] = shown(table.with_options({"postpone.merge-on-read": "true"}))
        found["looked up"] = as_text(table.lookup(table.to_arrow(columns=list(table.primary_key)).slice(2, 3)))
    if tells_changes(table):
        found["changes"] = as_text(table.changes())
    return found


def tells_changes(table: lakebed.Table) -> bool:
    """Whether the table has changes to follow that say which rows were there before."""
    return "changelog-producer" in table.options


def followed(table: lakebed.Table, position: dict[str, Any] | None = None) -> tuple[list[list[str]], dict[str, Any]]:
    """Changes of the table since a position, and the position after them."""
    stream = table.follow(position=position)
    found = [row for changes in stream for row in as_text(changes)]
    return sorted(found), dict(stream.position)


def go_on(table: lakebed.Table) -> None:
    """What one does with a table next: write, delete and compact."""
    incoming = rows(range(6, 14), "later")
    if "extra" in table.arrow_schema.names:
        more = pa.array([Decimal("2.50")] * incoming.num_rows, pa.decimal128(10, 2))
        incoming = incoming.rename_columns(["part", "id", "w", "n"]).append_column("extra", more)
    table.write(incoming)
    if not table.primary_key:
        if "data-evolution.enabled" not in table.options:
            table.delete_where([("id", "==", 7)])
    elif "merge-engine" not in table.options:
        gone = incoming.filter(pc.field("id") == 7)
        table.write(gone.append_column("op", pa.array(["-D"] * gone.num_rows)), row_kind="op")
    if table.options.get("bucket") == "-2":
        with table.writer(commit_user="job", commit_identifier=2) as writer:
            writer.write(rows(range(8, 10), "waiting too"))
            writer.commit()
    for name in table.branches():
        table.on_branch(name).write(rows(range(21, 24), "later"))
    table.compact(full=True)


def told_later(table: lakebed.Table) -> dict[str, Any]:
    """What is read after `go_on`. Numbers of snapshots are left out: a version may need more or fewer of them."""
    found: dict[str, Any] = {
        "rows": shown(table),
        "tags": {tag: shown(table.at(tag=tag)) for tag in table.tags()},
        "branches": {branch: shown(table.on_branch(branch)) for branch in table.branches()},
        "columns": str(table.arrow_schema),
    }
    if table.consumers():
        stream = table.follow(options={"consumer-id": "reader"})
        found["consumed"] = sorted(row for changes in stream for row in as_text(changes))
    return found


# --- streams ---------------------------------------------------------------------------------------------------------


def put(folder: Path, number: int, messages: list[dict[str, Any]]) -> None:
    """One file of a source, which is one micro-batch."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"b{number:03}.json"
    path.write_text("\n".join(json.dumps(message) for message in messages))
    os.utime(path, (BEGIN_S + number, BEGIN_S + number))


def events(number: int) -> list[dict[str, Any]]:
    """Rows of one micro-batch: some keys come in each, so that a batch that is left out or comes twice is seen."""
    return [{"id": key, "n": 10**number} for key in (0, number, number + 1)]


def start_streams(lake: lakebed.Lake, home: Path) -> list[Any]:
    """Files into a table that sums them up, and that table's changes into another one."""
    source = lake.spark.readStream.schema("id long, n long").option("maxFilesPerTrigger", 1).json(str(home / "events"))
    now = {"availableNow": True}
    sums, copy = lake.table("default.sums"), lake.table("default.copy")
    written = sums.write_stream(source, checkpoint=home / "checkpoints" / "sums", trigger=now)
    written.awaitTermination()
    copied = copy.write_stream(sums.read_stream(), checkpoint=home / "checkpoints" / "copy", trigger=now)
    copied.awaitTermination()
    return [written, copied]


def streams(home: Path) -> None:
    """Three micro-batches, of which the log of Spark has lost the last: as if the driver had died after our commit."""
    lake = lakebed.connect(home / "warehouse")
    options = {"bucket": "1", "merge-engine": "aggregation", "fields.n.aggregate-function": "sum"}
    columns = {"id": "BIGINT NOT NULL", "n": "BIGINT"}
    lake.create_table("default.sums", columns, primary_key=["id"], options={**options, "changelog-producer": "lookup"})
    lake.create_table("default.copy", columns, primary_key=["id"], options={"bucket": "1"})
    for number in range(1, 4):
        put(home / "events", number, events(number))
        start_streams(lake, home)
    for name in ("sums", "copy"):
        forget_last_batch(home / "checkpoints" / name)


def change(op: str, table: str, before: dict[str, Any] | None, after: dict[str, Any] | None) -> dict[str, Any]:
    """A message of Debezium."""
    about = {"db": "shop", "table": table, "ts_ms": 5}
    return {"op": op, "source": about, "before": before, "after": after, "pkNames": ["id"]}


def changes(number: int) -> list[dict[str, Any]]:
    """Messages of one micro-batch: a row that each changes, one that it adds, one of the last batch that it deletes."""
    count = {"id": "0", "v": f"count {number}"}
    new = {"id": str(number), "v": f"new {number}"}
    if number >= 2:
        count["w"] = new["w"] = f"column {number}"
    found = [change("c" if number == 1 else "u", "orders", None if number == 1 else {"id": "0"}, count)]
    found.append(change("c", "orders", None, new))
    if number > 1:
        found.append(change("d", "orders", {"id": str(number - 1), "v": f"new {number - 1}"}, None))
    return [*found, change("c", "lines", None, {"id": str(number), "of": "0"})]


def start_sync(lake: lakebed.Lake, home: Path, on_step: Callable[[str], None] | None = None) -> Any:
    """The messages into tables of the lake."""
    source = {"path": str(home / "changes"), "format": "debezium-json", "files_per_batch": 1}
    return lakebed.cdc.sync(
        lake,
        "files",
        "shop",
        source_options=source,
        checkpoint=home / "checkpoints" / "sync",
        trigger={"availableNow": True},
        table_conf={"bucket": "1", "changelog-producer": "input"},
        on_step=on_step,
    )


class Died(RuntimeError):
    """What stands for the end of a process."""


def sync(home: Path) -> None:
    """Three micro-batches, the last of them in one of its two tables only."""
    lake = lakebed.connect(home / "warehouse")
    lake.create_database("shop")
    for number in range(1, 3):
        put(home / "changes", number, changes(number))
        start_sync(lake, home).wait(600)
    put(home / "changes", 3, changes(3))

    def die(step: str) -> None:
        if step == "committed":
            raise Died(step)

    try:
        start_sync(lake, home, die).wait(600)
    except Died:
        return
    raise AssertionError("it went through")


def forget_last_batch(checkpoint: Path) -> None:
    """Spark's log of finished batches loses its last entry."""
    last = max(int(entry.name) for entry in (checkpoint / "commits").iterdir() if entry.name.isdigit())
    (checkpoint / "commits" / str(last)).unlink()


# --- archives --------------------------------------------------------------------------------------------------------


def pack(home: Path, archive: Path) -> None:
    """All files below, with nothing of this machine in them: no owners, and places only in logs of Spark."""
    found = io.BytesIO()
    with tarfile.open(fileobj=found, mode="w") as files:
        for path in sorted(home.rglob("*")):
            if path.is_dir() or path.name.endswith(".crc"):  # sums that Spark does without, of logs that are changed
                continue
            content = path.read_bytes()
            if "checkpoints" in path.relative_to(home).parts:
                content = content.replace(str(home).encode(), HOME.encode())
            about = tarfile.TarInfo(str(path.relative_to(home)))
            about.size, about.mtime = len(content), int(path.stat().st_mtime)
            files.addfile(about, io.BytesIO(content))
    archive.write_bytes(lzma.compress(found.getvalue(), preset=9 | lzma.PRESET_EXTREME))


def unpack(archive: Path, home: Path) -> None:
    """The inverse of `pack`."""
    with tarfile.open(archive, mode="r:xz") as files:
        files.extractall(home, filter="data")
    for path in (home / "checkpoints").rglob("*"):
        if path.is_file():
            path.write_bytes(path.read_bytes().replace(HOME.encode(), str(home).encode()))


def tables_told(home: Path) -> None:
    """The tables, what this version reads from them, and what it reads after it went on with a copy of them."""
    lake = lakebed.connect(home / "warehouse")
    tables(lake)
    names = lake.tables("kinds")
    before = {name: told(lake.table(f"kinds.{name}")) for name in names}
    shutil.copytree(home / "warehouse", home / "copy")
    copy = lakebed.connect(home / "copy")
    later: dict[str, Any] = {}
    for name in names:
        table = copy.table(f"kinds.{name}")
        position = followed(table)[1] if tells_changes(table) else None
        go_on(table)
        later[name] = told_later(table)
        if position is not None:
            before[name]["position"], later[name]["followed"] = position, followed(table, position)[0]
    shutil.rmtree(home / "copy")
    (home / "told.json").write_text(json.dumps({"before": before, "later": later}))


def main(place: Path) -> None:
    """All archives."""
    with tempfile.TemporaryDirectory(prefix="lakebed-version-") as folder:
        for name, make in (("tables", tables_told), ("streams", streams), ("sync", sync)):
            home = Path(folder) / name
            home.mkdir()
            make(home)
            pack(home, place / f"{name}.tar.xz")


if __name__ == "__main__":
    main(Path(sys.argv[1]).resolve())
