"""Very many files that are deleted by others: the same ones go, and what names them goes last."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import lakebed
from lakebed.definition import elsewhere
from lakebed.errors import StorageError

LONG_AGO = "2100-01-01"


class _Tasks:
    """Stands for a cluster: runs the work of tasks here, and remembers how much it was."""

    def __init__(self, root: Path) -> None:
        self.parts = 0
        self.fails = False
        self._root = root

    def __call__(self, context: Any, pieces: Sequence[Any], size_bytes: int, work: Callable[..., Any]) -> list[Any]:
        assert size_bytes > 0
        manifests = set(self._root.rglob("manifest/*"))
        for piece in pieces:
            self.parts += 1
            assert list(work(context, piece, context.fileio)) == []
            if self.fails:
                raise StorageError("a task failed", hint="again")
        assert set(self._root.rglob("manifest/*")) == manifests
        return []


def _table(root: Path) -> lakebed.Table:
    """Twelve partitions whose files were replaced twice, with a changelog, and files that are nobody's."""
    options = {"bucket": "1", "changelog-producer": "input", "deletion-vectors.enabled": "false", "write-only": "true"}
    columns = {"id": "BIGINT NOT NULL", "p": "INT NOT NULL"}
    lake = lakebed.connect(root)
    table = lake.create_table("t", columns, primary_key=["id", "p"], partition_by=["p"], options=options)
    rows = pa.table({"id": range(24), "p": [number % 12 for number in range(24)]}, schema=table.arrow_schema)
    for _ in range(3):
        table.write(rows)
        table.compact(full=True)
    for number in range(12):
        nobodys = Path(table.location) / f"p={number}" / "bucket-0" / "data-nobody"
        nobodys.write_bytes(b"x")
        os.utime(nobodys, (1, 1))
    return table


def _left(root: Path) -> set[str]:
    return {path.relative_to(root).as_posix() for path in root.rglob("*") if path.is_file()}


@pytest.mark.parametrize("what", ["expiry", "orphans"])
def test_the_same_files_go(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, what: str) -> None:
    """Here, in tasks, and in tasks after some that failed half way."""
    _table(tmp_path / "here")
    for name in ("there", "failing"):
        shutil.copytree(tmp_path / "here", tmp_path / name)

    def clean(name: str) -> lakebed.Table:
        table = lakebed.connect(tmp_path / name).table("t")
        if what == "expiry":
            table.expire_snapshots(retain_max=1, retain_min=1, older_than=LONG_AGO)
        else:
            table.remove_orphan_files()
        return table

    clean("here")
    monkeypatch.setattr(elsewhere, "MANY_FILES", 10)
    monkeypatch.setattr(elsewhere, "_FILES_OF_TASK", 4)
    for name in ("there", "failing"):
        tasks = _Tasks(tmp_path / name)
        monkeypatch.setattr(elsewhere, "place_of_work", lambda context, tasks=tasks: tasks)
        if name == "failing":
            tasks.fails = True
            with pytest.raises(StorageError, match="a task failed"):
                clean(name)
            tasks.fails = False
        assert clean(name).check() == []
        assert tasks.parts >= (1 if name == "failing" else 3)
        assert _left(tmp_path / name) == _left(tmp_path / "here")


def test_few_files_start_no_job(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = _table(tmp_path)
    monkeypatch.setattr(elsewhere, "place_of_work", lambda context: pytest.fail("asked for a session"))
    assert table.expire_snapshots(retain_max=1, retain_min=1, older_than=LONG_AGO).file_count > 20
