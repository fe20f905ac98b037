"""Keys that tasks keep on disk from one large batch to the next: found again, followed, or made anew."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any
from uuid import uuid4

import pyarrow as pa
import pytest
from tests.properties.shared_writer import SharedWriter

import lakebed
from lakebed.bucket.key_store import KeyStore
from lakebed.clock import FixedClock
from lakebed.definition.bucket_mode import WritePart
from lakebed.errors import StorageError
from lakebed.table.plans import plan_write
from lakebed.write.placement import kept_keys
from lakebed.write.placement.kept_keys import KeptKeys, KeptPlace
from lakebed.write.placement.table_keys import TableKeys

Rows = Sequence[tuple[int, int, int]]


class Story:
    """A table with the key `k` in partitions by `p`, written in large batches of two tasks."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, engine: str = "deduplicate", **options: str) -> None:
        self.url, self.scope = f"memory://{uuid4()}", "q"
        lake = lakebed.connect(self.url)
        stored = {"merge-engine": engine, "write-only": "true", **options}
        if engine == "aggregation":
            stored["fields.v.aggregate-function"] = "sum"
        columns = {"p": "INT", "k": "INT", "v": "INT"}
        self.table = lake.create_table("t", columns, primary_key=["k"], partition_by=["p"], options=stored)
        self.readings = 0
        stored_keys = TableKeys.stored

        def noted(keys: TableKeys, *arguments: Any, **how: Any) -> Iterator[Any]:
            self.readings += 1
            return stored_keys(keys, *arguments, **how)

        monkeypatch.setattr(TableKeys, "stored", noted)

    def large(self, rows: Rows, kinds: Sequence[str] | None = None, **how: Any) -> int:
        """One large batch; how many of its two tasks read all keys of the table."""
        before = self.readings
        writer = SharedWriter(self.table, "op" if kinds else None, **{"parts": 2, "scope": self.scope, **how})
        writer.write(self._rows(rows, kinds))
        writer.commit()
        return self.readings - before

    def small(self, rows: Rows, kinds: Sequence[str] | None = None, **how: Any) -> None:
        """A batch of somebody else."""
        other = lakebed.connect(self.url).table("t")
        other.write(self._rows(rows, kinds), row_kind="op" if kinds else None, **how)

    def shown(self) -> list[tuple[int, ...]]:
        """All rows by key."""
        return [tuple(row.values()) for row in self.table.to_arrow().sort_by("k").to_pylist()]

    @property
    def files(self) -> list[Path]:
        """What is kept."""
        return sorted(Path(KeptPlace(self.scope).directory(self.table._opened.context)).glob("*/*.keys"))

    @staticmethod
    def _rows(rows: Rows, kinds: Sequence[str] | None) -> pa.Table:
        data = {name: pa.array([row[i] for row in rows], pa.int32()) for i, name in enumerate("pkv")}
        return pa.table(data if kinds is None else {**data, "op": pa.array(kinds)})


@pytest.fixture(autouse=True)
def _own_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kept_keys.tempfile, "gettempdir", lambda: str(tmp_path))


FIRST = [(1, key, 0) for key in range(10)]


def test_later_batches_read_what_is_new(monkeypatch: pytest.MonkeyPatch) -> None:
    """All keys are read once; own commits, those of others and compactions are followed."""
    story = Story(monkeypatch)
    assert story.large(FIRST) == 2
    assert story.large([(2, key, 1) for key in range(5)]) == 0
    story.small([(3, 0, 2), (3, 9, 2)])
    story.small([(1, 8, 2)], ["-D"])
    story.table.compact(full=True)
    assert story.large([(4, 0, 3), (4, 8, 3), (4, 20, 3)]) == 0
    moved = [(2, key, 1) for key in range(1, 5)] + [(1, key, 0) for key in (5, 6, 7)]
    assert story.shown() == sorted([*moved, (3, 9, 2), (4, 0, 3), (4, 8, 3), (4, 20, 3)], key=lambda row: row[1])


def test_keys_that_are_brought_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """The batch that brings all keys to the tasks spares the later ones to read them."""
    story = Story(monkeypatch)
    story.small(FIRST)
    assert story.large([(2, 1, 1)], is_taught=True) == 0
    assert story.large([(3, 1, 2), (3, 2, 2)]) == 0
    assert story.shown()[:3] == [(1, 0, 0), (3, 1, 2), (3, 2, 2)]


def test_attempts_that_fail_leave_no_trace(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where a failed attempt would have put its keys is nowhere noted."""
    story = Story(monkeypatch)
    story.large(FIRST)
    lost = SharedWriter(story.table, None, 2, story.scope, is_repeated=True)
    lost.write(story._rows([(7, key, 7) for key in range(20)], None))
    with monkeypatch.context() as broken:
        broken.setattr("lakebed.commit.committer.Committer.commit", _fail)
        with pytest.raises(StorageError):
            lost.commit()
    story.large([(2, 1, 1), (2, 15, 1)])
    assert story.shown() == [(1, 0, 0), (2, 1, 1), *[(1, key, 0) for key in range(2, 10)], (2, 15, 1)]


def _fail(*_: Any, **__: Any) -> None:
    raise StorageError("no", hint="none")


@pytest.mark.parametrize("damage", ["gone", "cut", "inside", "empty"])
def test_damaged_copies_are_made_anew(monkeypatch: pytest.MonkeyPatch, damage: str) -> None:
    """Whatever the disk did, the answer is right."""
    story = Story(monkeypatch)
    story.large(FIRST)
    for path in story.files:
        body = path.read_bytes()
        if damage == "gone":
            path.unlink()
        else:
            broken = {"cut": body[:4000], "inside": body[:12288] + b"\xa5" * (len(body) - 12288), "empty": b""}
            path.write_bytes(broken[damage])
    assert story.large([(2, key, 1) for key in range(10)]) == 2
    assert story.shown() == [(2, key, 1) for key in range(10)]
    assert story.large([(3, key, 2) for key in range(10)]) == 0
    assert story.shown() == [(3, key, 2) for key in range(10)]


def test_a_copy_in_use_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """A task whose copy another process changes makes its own."""
    story = Story(monkeypatch)
    story.large(FIRST)
    opened = KeyStore.open

    def locked(path: str, description: str, *, is_read_only: bool) -> KeyStore:
        if path == old and not is_read_only:
            raise StorageError("in use", hint="none")
        return opened(path, description, is_read_only=is_read_only)

    old = str(story.files[0])
    monkeypatch.setattr(KeyStore, "open", locked)
    assert story.large([(2, key, 1) for key in range(10)]) == 1
    assert story.large([(3, key, 2) for key in range(10)]) == 0
    assert story.shown() == [(3, key, 2) for key in range(10)]


@pytest.mark.parametrize("what", ["overwrite", "rollback", "expiry", "another number of tasks", "another query"])
def test_what_can_not_be_followed_is_read_anew(monkeypatch: pytest.MonkeyPatch, what: str) -> None:
    """Copies of another past, or of other shares, are not used."""
    story = Story(monkeypatch)
    story.large(FIRST)
    story.large([(2, key, 1) for key in range(10)])
    parts = 2
    if what == "overwrite":
        story.small([(5, key, 2) for key in range(10)], overwrite={})
    elif what == "rollback":
        story.large([(3, key, 1) for key in range(10)])
        story.table.rollback_to(1)
        story.small([(5, key, 2) for key in range(10)])
    elif what == "expiry":
        story.small([(5, key, 2) for key in range(10)])
        story.table.expire_snapshots(retain_max=1, retain_min=1)
    elif what == "another query":
        story.scope = "other"
    else:
        parts = 3
    assert story.large([(7, 0, 3), (7, 11, 3)], parts=parts) > 0
    rest = 2 if what.startswith("another") else 5
    assert story.shown()[:2] == [(7, 0, 3), (rest, 1, 1 if rest == 2 else 2)]
    assert len(story.shown()) == 11


def test_files_of_other_shares_are_not_opened(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a task wrote says of which share it is: only the others' tasks need not look at it."""
    story = Story(monkeypatch)
    story.large(FIRST)
    story.large([(2, key, 1) for key in range(10)])
    context = plan_write(story.table)[0]
    snapshot = context.stores.snapshots.get(2)
    keys, seen = TableKeys(context), []
    for part in (WritePart(0, 2), WritePart(1, 2)):
        (written,) = keys.written([snapshot], part)
        seen.append(sum(len(each.known.keys) for each in written))
        files = [file for split in keys.splits(snapshot) for file in split.files]
        assert 0 < sum(keys._may_hold(file, part) for file in files) < len(files)
    assert sum(seen) == 20  # each key left one partition and came to another


def test_keys_are_forgotten_after_their_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """A key that was written long ago is taken for a new one, on disk and when all are read."""
    clock = FixedClock(1_700_000_000_000)
    story = Story(monkeypatch, **{"cross-partition-upsert.index-ttl": "1 h"})
    object.__setattr__(story.table._opened.context, "clock", clock)
    story.large([(1, 1, 0), (1, 2, 0)])
    clock.sleep_ms(40 * 60_000)
    assert story.large([(1, 1, 1)]) == 0
    clock.sleep_ms(40 * 60_000)
    assert story.large([(2, 1, 2), (2, 2, 2)]) == 0
    assert sorted(story.shown()) == [(1, 2, 0), (2, 1, 2), (2, 2, 2)]


def test_merged_rows_stay_where_their_key_is(monkeypatch: pytest.MonkeyPatch) -> None:
    """A retract of an aggregate is no end of its key."""
    story = Story(monkeypatch, "aggregation")
    story.large([(1, key, 5) for key in range(10)])
    story.large([(2, key, 3) for key in range(10)], ["-D"] * 10)
    assert story.large([(3, key, 10) for key in range(11)]) == 0
    assert story.shown() == [*[(1, key, 12) for key in range(10)], (3, 10, 10)]


def test_what_nobody_uses_is_removed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Copies of a query that was last seen days ago go when the next one keeps something; others stay."""
    story = Story(monkeypatch)
    story.large(FIRST)
    old = story.files
    for path in old[:1]:
        os.utime(path, (1_700_000_000, 1_700_000_000))
    other = Story(monkeypatch)
    other.large(FIRST)
    assert [path.exists() for path in old] == [False, True]
    KeptPlace(other.scope).remove(other.table._opened.context)
    assert not other.files


def test_a_directory_of_somebody_else_is_not_used(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """What others could have written is not believed."""
    story = Story(monkeypatch)
    story.large(FIRST)
    next(tmp_path.glob("lakebed-kept-keys-*")).chmod(0o777)
    with pytest.raises(StorageError, match="not this user's own"):
        KeptKeys(story.table._opened.context, KeptPlace("q"), WritePart(0, 1), None, is_taught=False)


def test_on_a_cluster_copies_lie_where_they_go_with_the_application(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A worker names that place to executors, and clears it even if the driver was killed."""
    own = tmp_path / "executor"
    own.mkdir()
    monkeypatch.setenv("SPARK_EXECUTOR_DIRS", f"{own}{os.pathsep}{tmp_path / 'other'}")
    assert Path(kept_keys._root()).parent == own
    monkeypatch.setenv("SPARK_EXECUTOR_DIRS", str(tmp_path / "gone"))
    assert Path(kept_keys._root()).parent == Path(kept_keys.tempfile.gettempdir())
