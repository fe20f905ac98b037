"""A warehouse that can tell whether anything in it has changed, and whether an error says what it should."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import pyarrow as pa

import lakebed
from lakebed.errors import LakebedError
from lakebed.fileio import open_fileio
from lakebed.fileio.base import FileIO
from lakebed.schema.changes import SchemaChange, apply_changes
from lakebed.schema.store import SchemaStore


class Warehouse:
    """One warehouse with a bystander table, which every refusal must leave readable."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.fileio, self.root = open_fileio(path)
        self.lake = lakebed.connect(path)
        self._bystander = self.lake.create_table("bystander", {"id": "INT"})
        self._bystander.write(pa.table({"id": pa.array([1, 2, 3], pa.int32())}))

    def table(self, name: str, columns: Mapping[str, Any] | pa.Schema, rows: Any = None, **more: Any) -> lakebed.Table:
        """A new table, with rows if given."""
        table = self.lake.create_table(name, columns, **more)
        if rows is not None:
            table.write(rows)
        return table

    def reopened(self) -> lakebed.Lake:
        """The same warehouse without anything remembered."""
        return lakebed.connect(self.path)

    def contents(self) -> dict[str, str]:
        """Every directory and file below the root, with what the files hold."""
        return dict(_contents(self.fileio, self.root))

    @contextmanager
    def refuses(self, kind: type[LakebedError], *texts: str) -> Iterator[None]:
        """The block raises exactly this kind of error, which says these texts and a next step, and changes nothing."""
        before = self.contents()
        try:
            yield
        except LakebedError as error:
            raised = error
        else:
            raise AssertionError(f"nothing was raised; expected {kind.__name__}")
        assert type(raised) is kind, f"{type(raised).__name__}: {raised}"
        for text in texts:
            assert text in str(raised), f"{text!r} is not in: {raised}"
        assert raised.hint.strip(), "no next step"
        assert raised.hint in str(raised)
        assert self.contents() == before, "the refused call changed files"
        self.check_bystander()

    def check_bystander(self) -> None:
        """Another table is as readable as before."""
        assert self.reopened().table("bystander").to_arrow()["id"].to_pylist() == [1, 2, 3]


def _contents(fileio: FileIO, directory: str) -> Iterator[tuple[str, str]]:
    for status in fileio.list_directory(directory):
        if status.is_directory:
            yield status.path, "directory"
            yield from _contents(fileio, status.path)
        else:
            yield status.path, hashlib.sha256(fileio.read_bytes(status.path)).hexdigest()


def ints(*values: int | None) -> pa.Array:
    """An INT column."""
    return pa.array(values, pa.int32())


def changed_elsewhere(table: lakebed.Table, *changes: SchemaChange) -> None:
    """Publishes a schema version as another engine does: nothing is asked, nothing is done before."""
    context = table._opened.context
    store = SchemaStore(context.fileio, context.paths.schema_directory)
    latest = store.latest()
    assert latest is not None
    assert store.publish(apply_changes(latest, changes, has_snapshots=False, time_millis=1))
