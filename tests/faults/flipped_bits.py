"""The machine that turns bits over: tables of every kind, and all that can be read of one, as texts to compare.

A flip is made in one file of a table, then everything is read anew: states at every snapshot and tag, changes, lookups,
system tables, branches, the check; and then the table is written to and compacted. Each reading is either what it was
before, or an error of `lakebed.errors`. A write or a compaction either gives the rows that it gives on the sound table,
or fails and leaves every file as it was. Other outcomes have names here, and tests count them.

The program at the end is a worker: it takes flips from standard input and answers on standard output, so that a library
that ends the process, or never comes back, is an outcome as well.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import sys
import traceback
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa

import lakebed
from lakebed import Table
from lakebed.errors import CorruptFile, LakebedError
from lakebed.schema.changes import AddColumn
from lakebed.table.system import SYSTEM_TABLES

FORMATS = ("parquet", "orc", "avro")
COLUMNS = {
    "id": "BIGINT NOT NULL",
    "p": "INT NOT NULL",
    "s": "STRING",
    "d": "DECIMAL(10, 2)",
    "a": "ARRAY<INT>",
    "r": "ROW<x INT, y STRING>",
    "b": "BOOLEAN",
    "t": "TIMESTAMP(3)",
}


def rows(table: Table, start: int, count: int = 40) -> pa.Table:
    """Rows of the ids from `start` on."""
    ids = range(start, start + count)
    columns: dict[str, Any] = {
        "id": pa.array(ids, pa.int64()),
        "p": pa.array([number % 2 for number in ids], pa.int32()),
        "s": [f"text {number * 37 % 23} ü" if number % 5 else None for number in ids],
        "d": pa.array([Decimal(number) / 4 for number in ids], pa.decimal128(10, 2)),
        "a": [[number, None] if number % 3 else None for number in ids],
        "r": [{"x": number, "y": str(number)} for number in ids],
        "b": [number % 3 == 0 for number in ids],
        "t": pa.array([number * 1_000_003 for number in ids], pa.int64()).cast(pa.timestamp("ms")),
        "late": [f"late {number}" for number in ids],
    }
    schema = table.arrow_schema
    return pa.table({name: columns[name] for name in schema.names}, schema=schema)


def _create(lake: lakebed.Lake, options: dict[str, str], *, keyed: bool, partitioned: bool = False) -> Table:
    key = (["p", "id"] if partitioned else ["id"]) if keyed else []
    return lake.create_table("t", COLUMNS, primary_key=key, partition_by=["p"] if partitioned else [], options=options)


def _references(table: Table) -> None:
    """What a table has besides rows: tags, a branch with a commit of its own, a consumer, statistics."""
    table.create_tag("first", snapshot=table.snapshots()[0].id)
    table.create_tag("kept", time_retained="30 d")
    table.analyze(columns=True)
    table.create_branch("b", tag="first")
    table.on_branch("b").write(rows(table.on_branch("b"), 500, 10))
    table.reset_consumer("reader", 2)


def _append(lake: lakebed.Lake, options: dict[str, str]) -> Table:
    table = _create(lake, {"bucket": "-1", **options}, keyed=False, partitioned=True)
    table.write(rows(table, 0))
    table.write(rows(table, 100))
    table.alter(AddColumn("late", "STRING"))
    table = lake.table("t")
    table.write(rows(table, 200))
    return table


def _keyed(lake: lakebed.Lake, options: dict[str, str], *, partitioned: bool = False) -> Table:
    table = _create(lake, {"bucket": "1", "write-only": "true", **options}, keyed=True, partitioned=partitioned)
    table.write(rows(table, 0))
    table.write(rows(table, 20))
    table.compact(full=True)
    table.write(rows(table, 10))
    return table


def _marked(lake: lakebed.Lake, options: dict[str, str]) -> Table:
    """A compaction of few files marks rows of the others."""
    table = _keyed(lake, {"deletion-vectors.enabled": "true", **options})
    table.compact()
    table.write(rows(table, 30, 5))
    return table


def _deleted(lake: lakebed.Lake, options: dict[str, str]) -> Table:
    table = _append(lake, {**options, "deletion-vectors.enabled": "true"})
    table.delete_where([("id", ">=", 110), ("id", "<", 115)])
    return table


def _streamed(lake: lakebed.Lake, options: dict[str, str]) -> Table:
    """Changelogs outlive snapshots."""
    table = _create(
        lake,
        {
            "bucket": "1",
            "changelog-producer": "input",
            "snapshot.num-retained.min": "2",
            "snapshot.num-retained.max": "2",
            "changelog.num-retained.min": "10",
            "changelog.num-retained.max": "10",
            "snapshot.time-retained": "1 ms",
            "changelog.time-retained": "1 d",
            **options,
        },
        keyed=True,
    )
    for start in (0, 10, 20, 30):
        table.write(rows(table, start))
    table.expire_snapshots()
    return table


Build = Callable[[lakebed.Lake, dict[str, str]], Table]

_INDEXED = {"file-index.bloom-filter.columns": "s,id", "file-index.bitmap.columns": "b"}
KINDS: dict[str, tuple[Build, dict[str, str]]] = {
    "append": (_append, {}),
    "append-indexed": (_append, {**_INDEXED, "file-index.in-manifest-threshold": "1 b"}),
    "append-embedded": (_append, _INDEXED),
    "append-deleted": (_deleted, {}),
    "append-tracked": (_append, {"row-tracking.enabled": "true"}),
    "keyed": (_keyed, {}),
    "keyed-plain-manifests": (_keyed, {"manifest.compression": "null"}),
    "keyed-deflated-manifests": (_keyed, {"manifest.compression": "deflate"}),
    "keyed-snappy-manifests": (_keyed, {"manifest.compression": "snappy"}),
    "keyed-snappy": (_keyed, {"file.compression": "snappy"}),
    "keyed-deflated": (_keyed, {"file.compression": "deflate"}),
    "keyed-plain": (_keyed, {"file.compression": "none"}),
    "keyed-dynamic": (_keyed, {"bucket": "-1"}),
    "keyed-lookup": (_keyed, {"changelog-producer": "lookup"}),
    "keyed-full-compaction": (_keyed, {"changelog-producer": "full-compaction"}),
    "keyed-deleted": (_marked, {}),
    "keyed-deleted-wide": (_marked, {"deletion-vectors.bitmap64": "true"}),
    "keyed-postponed": (_keyed, {"bucket": "-2"}),
    "keyed-folding": (_keyed, {"merge-engine": "partial-update"}),
    "keyed-first-row": (_keyed, {"merge-engine": "first-row", "changelog-producer": "lookup"}),
    "keyed-streamed": (_streamed, {}),
}


NOT_GUARDED = {("keyed-plain", "avro")}
"""What a warning names when the table is created: Avro blocks that are not compressed have no place for a checksum."""
NOT_WRITTEN = {("keyed-deflated", "parquet"), ("keyed-deflated", "orc")}
"""Compressions that a format does not know."""


def combinations() -> list[tuple[str, str]]:
    """Kinds of tables and formats in which every bit is guarded."""
    return [(kind, form) for kind in KINDS for form in FORMATS if (kind, form) not in NOT_GUARDED | NOT_WRITTEN]


def build(warehouse: Path, kind: str, file_format: str) -> Table:
    """A new table of this kind with several of each of its files."""
    make, options = KINDS[kind]
    table = make(lakebed.connect(str(warehouse)), {"file.format": file_format, **options})
    _references(table)
    return table


def files_of(warehouse: Path) -> list[Path]:
    """Every file of a table, branches included."""
    return sorted(path for path in (warehouse / "default.db" / "t").rglob("*") if path.is_file())


def kind_of_file(path: Path) -> str:
    """What a file is for, by its place and name."""
    name = path.name
    folder = path.parent.name
    if folder in ("snapshot", "changelog") and name.isupper():
        return f"{folder} hint"
    if name.startswith(("manifest-list", "index-manifest", "manifest", "changelog-", "snapshot", "schema", "tag")):
        prefix = re.match(r"manifest-list|index-manifest|[a-z]+", name)
        assert prefix
        return prefix[0] + path.suffix
    return folder + " file" if folder in ("index", "statistics", "consumer") else f"data{path.suffix}"


_REFUSED = {("branch changes", "refused")}
"""Readings that a table may refuse: its branch may begin after its first changes."""

# Readings ------------------------------------------------------------------------------------------------------------


def _text_of(table: pa.Table) -> str:
    return hashlib.sha256(repr(sorted(map(repr, table.to_pylist()))).encode()).hexdigest()


def _ordered(table: pa.Table) -> str:
    return hashlib.sha256(repr(table.to_pylist()).encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class Reading:
    """One way to look at a table."""

    name: str
    look: Callable[[lakebed.Lake], str]


def readings(warehouse: Path) -> list[Reading]:
    """All ways to look at the table as it is now: its snapshots, tags and branches are known by heart afterwards."""
    lake = lakebed.connect(str(warehouse))
    table = lake.table("t")
    found = [
        Reading("rows", lambda lake: _text_of(lake.table("t").to_arrow())),
        Reading("one column", lambda lake: _text_of(lake.table("t").to_arrow(columns=["s"]))),
        Reading("partition column", lambda lake: _text_of(lake.table("t").to_arrow(columns=["p"]))),
        Reading("filter", lambda lake: _text_of(lake.table("t").to_arrow(filter=[("id", "in", [25, 105])]))),
        Reading("text filter", lambda lake: _text_of(lake.table("t").to_arrow(filter=[("s", "=", "text 14 ü")]))),
        Reading("absent", lambda lake: _text_of(lake.table("t").to_arrow(filter=[("s", "=", "nothing")]))),
        Reading("truth filter", lambda lake: _text_of(lake.table("t").to_arrow(filter=[("b", "=", True)]))),
        Reading("branch", lambda lake: _text_of(lake.table("t$branch_b").to_arrow())),
        Reading("branch changes", lambda lake: _text_of(lake.table("t$branch_b").changes())),
        Reading("check", _checked),
        Reading("schema", lambda lake: repr(lake.table("t").schema)),
        Reading("audit", lambda lake: _text_of(lake.table("t$audit_log").to_arrow())),
        Reading("consumers", lambda lake: repr([(c.id, c.next_snapshot) for c in lake.table("t").consumers()])),
    ]
    ids = [snapshot.id for snapshot in table.snapshots()]
    found.append(Reading("changes", lambda lake: _ordered(lake.table("t").changes())))
    if table.primary_key:
        keys = [{"id": number, "p": number % 2} for number in (5, 15, 45, 9999)]
        found.append(Reading("lookup", lambda lake: _text_of(lake.table("t").lookup(keys))))
    found += [Reading(f"at {snapshot}", _at(snapshot=snapshot)) for snapshot in ids]
    found += [Reading(f"tag {name}", _at(tag=name)) for name in ("first", "kept")]
    if len(ids) > 1:
        before, after = ids[0], ids[-1]
        found.append(Reading("diff", lambda lake: _text_of(lake.table("t").diff(before, after))))
    for name in (*(name for name in SYSTEM_TABLES if name != "why"), "ro", "binlog"):  # `why` asks for keys
        found.append(Reading(f"${name}", _system(name)))
    return found


def _checked(lake: lakebed.Lake) -> str:
    """A finding is as good as a refusal: the damage is told."""
    findings = lake.table("t").check()
    if findings:
        raise CorruptFile("; ".join(findings), hint="see the findings")
    return "clean"


def _at(**place: Any) -> Callable[[lakebed.Lake], str]:
    return lambda lake: _text_of(lake.table("t").at(**place).to_arrow())


def _system(name: str) -> Callable[[lakebed.Lake], str]:
    return lambda lake: _text_of(lake.table(f"t${name}").to_arrow())


# Deeds ---------------------------------------------------------------------------------------------------------------


def _compact(table: Table) -> None:
    table.compact(full=True)


def _write(table: Table) -> None:
    table.write(rows(table, 15))


DEEDS: dict[str, Callable[[Table], None]] = {"compact": _compact, "write": _write}


def _contents(warehouse: Path) -> dict[str, bytes]:
    return {str(path.relative_to(warehouse)): path.read_bytes() for path in files_of(warehouse)}


def _rows_after(warehouse: Path, deed: Callable[[Table], None]) -> str:
    deed(lakebed.connect(str(warehouse)).table("t"))
    return _text_of(lakebed.connect(str(warehouse)).table("t").to_arrow())


# One flip ------------------------------------------------------------------------------------------------------------


class Patient:
    """A table in a folder of its own, what it looks like when nothing is wrong with it, and which files that takes."""

    def __init__(self, sound: Path, scratch: Path) -> None:
        self._sound = sound
        self._sick = scratch
        shutil.rmtree(scratch, ignore_errors=True)
        shutil.copytree(sound, scratch)
        self._right: dict[str, str] = {}
        self._needed: dict[str, set[str]] = {}
        self._readings = []
        for reading in readings(scratch):
            self._forget_reads()
            right = _outcome(lambda r=reading: r.look(self._lake()))  # type: ignore[misc]
            # A view that this kind of table refuses is no reading of it.
            assert not right.startswith("!") or (reading.name, right[1:8]) in _REFUSED, (reading.name, right)
            if not right.startswith("!"):
                self._readings.append(reading)
                self._right[reading.name] = right
                self._needed[reading.name] = self._read_files()
        self._right_after: dict[str, str] = {}
        for name, deed in DEEDS.items():
            self._right_after[name] = _rows_after(self._sick, deed)
            self._restore()

    def _forget_reads(self) -> None:
        for path in files_of(self._sick):
            os.utime(path, ns=(0, path.stat().st_mtime_ns))

    def _read_files(self) -> set[str]:
        """Files that were read since; all, where the file system does not keep the times."""
        files = files_of(self._sick)
        read = {path for path in files if path.stat().st_atime_ns}
        return {str(path.relative_to(self._sick)) for path in read or files}

    def _lake(self) -> lakebed.Lake:
        return lakebed.connect(str(self._sick))

    def _restore(self) -> None:
        shutil.rmtree(self._sick)
        shutil.copytree(self._sound, self._sick)

    def flip(self, name: str, bit: int, *, deeds: bool) -> Iterator[tuple[str, str]]:
        """(reading or deed, outcome) of one bit turned over; the table is sound again afterwards."""
        path = self._sick / name
        content = path.read_bytes()
        damaged = bytearray(content)
        damaged[bit // 8] ^= 1 << bit % 8
        path.write_bytes(damaged)
        for reading in self._readings:
            if name not in self._needed[reading.name]:
                continue
            outcome = _outcome(lambda r=reading: r.look(self._lake()))  # type: ignore[misc]
            yield reading.name, _judged(outcome, self._right[reading.name])
        path.write_bytes(content)
        if not deeds:
            return
        for deed_name, deed in DEEDS.items():
            path.write_bytes(damaged)
            before = _contents(self._sick)
            outcome = _outcome(lambda d=deed: _deed(self._sick, d))  # type: ignore[misc]
            if outcome.startswith("!refused"):
                changed = "" if _without_hints(_contents(self._sick)) == _without_hints(before) else "changed"
                yield deed_name, f"silent: refused, but files have {changed}" if changed else "refused"
            elif outcome.startswith("!"):
                yield deed_name, outcome[1:]
            else:
                # Done: the rows must be right, or their damage must still be seen.
                after = _outcome(lambda: _text_of(self._lake().table("t").to_arrow()))
                yield deed_name, _judged(after, self._right_after[deed_name])
            self._restore()


def _deed(warehouse: Path, deed: Callable[[Table], None]) -> str:
    deed(lakebed.connect(str(warehouse)).table("t"))
    return "done"


def _without_hints(contents: dict[str, bytes]) -> dict[str, bytes]:
    return {name: data for name, data in contents.items() if not name.rpartition("/")[2].isupper()}


def _outcome(look: Callable[[], str]) -> str:
    try:
        return look()
    except LakebedError as error:
        return f"!refused: {type(error).__name__}: {error.message}"
    except UnicodeDecodeError as error:
        return f"!silent: damaged text: {error}"
    except Exception as error:  # noqa: BLE001 - every kind of them is an outcome
        places = [f"{Path(frame.filename).name}:{frame.lineno}" for frame in traceback.extract_tb(error.__traceback__)]
        return f"!stranger: {type(error).__name__}: {error} at {' '.join(places[-4:])}"


def _judged(outcome: str, right: str) -> str:
    if outcome.startswith("!"):
        return outcome[1:] if not outcome.startswith("!refused") else "refused"
    return "right" if outcome == right else "silent: other rows"


def main() -> None:
    """A worker: lines of [sound folder, file, bit, deeds] in, lines of lists of bad outcomes and counts out."""
    warnings.simplefilter("ignore")
    scratch = Path(sys.argv[1])
    patient: Patient | None = None
    at = None
    for line in sys.stdin:
        sound, name, bit, deeds = json.loads(line)
        if patient is None or at != sound:
            patient, at = Patient(Path(sound), scratch / Path(sound).name), sound
        outcomes = list(patient.flip(name, bit, deeds=deeds))
        sys.stdout.write(json.dumps(outcomes) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
