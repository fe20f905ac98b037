"""The versions of a table's schema on disk: one immutable file each, the highest number is the current one.

A version becomes visible by exclusive creation of its file, so of two processes that alter a table at the same time one
goes first and the other applies its changes again on top. Nothing here deletes: old files are read with old schemas.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace

from lakebed.errors import AlreadyExists, CommitConflict, CorruptFile, FileMissing, NotFound, OutcomeUnknown
from lakebed.fileio.base import FileIO
from lakebed.schema.changes import SchemaChange, apply_changes
from lakebed.schema.table_schema import TableSchema

_FILE_NAME = re.compile(r"schema-([0-9]+)")
_MAX_ATTEMPTS = 100
"""Losing a race this often means that something is wrong: each loss is another writer's success."""


class SchemaStore:
    """Reads, publishes and alters the schemas in one directory. Thread-safe as far as its file system is."""

    def __init__(self, fileio: FileIO, schema_directory: str) -> None:
        self._fileio = fileio
        self._directory = schema_directory.rstrip("/")
        self._cache: dict[int, TableSchema] = {}
        self._contents: dict[int, bytes] = {}
        self._listed: dict[int, tuple[int, int, str]] = {}
        """Size, time and version of the files when they were last listed."""

    def path_of(self, schema_id: int) -> str:
        """Where a version lies."""
        return f"{self._directory}/schema-{schema_id}"

    def ids(self) -> list[int]:
        """The versions there are, in order.

        INVARIANT: files never change once written, but a fast-forward puts others in their place. One that does not
        look as it did is read anew: under the old schema rows of the table would be read, and written, as another's.
        """
        found = []
        for status in self._fileio.list_directory(self._directory):
            match = _FILE_NAME.fullmatch(status.name)
            if match is None:
                continue
            number, looks = int(match[1]), (status.size_bytes, status.modified_ms, status.version)
            if self._listed.setdefault(number, looks) != looks:
                self._cache.pop(number, None)
                self._contents.pop(number, None)
                self._listed[number] = looks
            found.append(number)
        return sorted(found)

    def latest(self) -> TableSchema | None:
        """The current schema; None when there is no table."""
        ids = self.ids()
        return self.get(ids[-1]) if ids else None

    def get(self, schema_id: int) -> TableSchema:
        """One version. Read from disk once."""
        cached = self._cache.get(schema_id)
        if cached is not None:
            return cached
        path = self.path_of(schema_id)
        try:
            content = self._fileio.read_bytes(path)
            text = content.decode("utf-8")
        except FileMissing as error:
            raise NotFound(
                f"schema {schema_id} is missing: there is no file {path}",
                hint="schema files are never deleted; check the table's path, or restore the file",
            ) from error
        except UnicodeDecodeError as error:
            raise CorruptFile(f"schema file {path} is not UTF-8 text", hint="restore the file from a backup") from error
        schema = TableSchema.from_json(text, path)
        if schema.id != schema_id:  # some writers copy files; the file's number is what others refer to
            schema = replace(schema, id=schema_id)
        self._contents[schema_id] = content
        return self._cache.setdefault(schema_id, schema)

    def still_says(self, schema: TableSchema) -> bool:
        """Whether the file of this version says the same as ever, read afresh: a table may have been made anew."""
        try:
            content = self._fileio.read_bytes(self.path_of(schema.id))
        except FileMissing:
            return False
        if self._cache.get(schema.id) is schema and self._contents.get(schema.id) == content:
            return True
        return SchemaStore(self._fileio, self._directory).get(schema.id) == schema

    def forget(self) -> None:
        """Read everything anew from now on: a fast-forward has put other schemas in place of those that were read."""
        self._cache.clear()
        self._contents.clear()
        self._listed.clear()

    def publish(self, schema: TableSchema) -> bool:
        """Make a version visible. False when somebody else's version of that number is there."""
        path = self.path_of(schema.id)
        data = schema.to_file()
        try:
            is_ours = self._fileio.create_exclusive(path, data)
        except OutcomeUnknown:
            if not self._fileio.exists(path):
                raise  # it may still appear
            is_ours = self._fileio.read_bytes(path) == data
        if is_ours:
            self._cache[schema.id] = schema
            self._contents[schema.id] = data
        return is_ours

    def create(self, schema: TableSchema) -> None:
        """Publish the first schema of a table."""
        if self.ids() or not self.publish(schema):
            raise AlreadyExists(
                f"there is a table already: {self._directory} holds schemas",
                hint="choose another name or alter that table",
            )

    def commit_changes(
        self,
        changes: Sequence[SchemaChange],
        has_snapshots: bool,
        now_ms: int,
        check: Callable[[TableSchema, TableSchema], None] | None = None,
    ) -> TableSchema:
        """Apply changes to the current schema and publish the result, again on top of whoever was faster.

        `check` sees the schema before and after, and raises what its caller has against the change.
        """
        for _ in range(_MAX_ATTEMPTS):
            current = self.latest()
            if current is None:
                raise NotFound(f"there is no table: {self._directory} holds no schema", hint="create the table first")
            if not changes:
                return current
            changed = apply_changes(current, changes, has_snapshots=has_snapshots, time_millis=now_ms)
            if check is not None:
                check(current, changed)
            if self.publish(changed):
                return changed
        raise CommitConflict(
            f"{_MAX_ATTEMPTS} other schema changes came in between in {self._directory}", hint="try again later"
        )
