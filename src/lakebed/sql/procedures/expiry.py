"""Expiry of snapshots, changelogs and partitions, and removal of files that nothing needs."""

from __future__ import annotations

import logging

import pyarrow as pa

from lakebed.sql.procedures.registry import OPTIONS, TABLE, Kind, Parameter, Procedure, Rows, SqlLake, table_options

_log = logging.getLogger(__name__)
_RETAIN_MAX = Parameter("retain_max", Kind.NUMBER)
_RETAIN_MIN = Parameter("retain_min", Kind.NUMBER)
_OLDER_THAN = Parameter("older_than", Kind.MOMENT)
_MAX_DELETES = Parameter("max_deletes", Kind.NUMBER)


def _expire_snapshots(
    lake: SqlLake,
    table: str,
    retain_max: int | None = None,
    retain_min: int | None = None,
    older_than: str | int | None = None,
    max_deletes: int | None = None,
    options: str | None = None,
) -> Rows:
    handle = lake.table(table)
    if options:
        handle = handle.with_options(table_options(options))
    gone = handle.expire_snapshots(older_than, retain_max, retain_min, max_deletes)
    if gone.remaining:  # the result has no room for it: its columns are those of Paimon
        _log.warning(
            "table %s: %d more snapshots are due, and no more than option `snapshot.expire.limit` or max_deletes go at "
            "once: call it again, or with max_deletes => %d",
            handle.name,
            gone.remaining,
            gone.remaining,
        )
    return [(len(gone.snapshots),)]


def _expire_changelogs(
    lake: SqlLake,
    table: str,
    retain_max: int | None = None,
    retain_min: int | None = None,
    older_than: str | int | None = None,
    max_deletes: int | None = None,
    delete_all: bool = False,
) -> Rows:
    gone = lake.table(table).expire_changelogs(older_than, retain_max, retain_min, max_deletes, delete_all=delete_all)
    return [("Delete all separated changelogs success." if delete_all else str(len(gone.changelogs)),)]


def _purge_files(lake: SqlLake, table: str) -> Rows:
    lake.table(table).purge_files()
    return [("Success",)]


def _remove_orphan_files(
    lake: SqlLake,
    table: str,
    older_than: str | int | None = None,
    dry_run: bool = False,
    parallelism: int | None = None,
    mode: str | None = None,
) -> Rows:
    """One table, or with `db.*` all of a database; `parallelism` and `mode` are about Paimon's jobs."""
    database, dot, name = table.rpartition(".")
    if name == "*":
        names = [f"{database}{dot}{found}" for found in lake.tables(database or None)]
    else:
        names = [table]
    gone = [lake.table(each).remove_orphan_files(older_than, dry_run) for each in names]
    return [(sum(each.file_count for each in gone), sum(each.size_bytes for each in gone))]


def _remove_missing_files(lake: SqlLake, table: str, dry_run: bool = False, parallelism: int | None = None) -> Rows:
    """`parallelism` is about Paimon's jobs."""
    return [(name,) for name in lake.table(table).remove_missing_files(dry_run)]


PROCEDURES = (
    Procedure(
        "expire_snapshots",
        (TABLE, _RETAIN_MAX, _RETAIN_MIN, _OLDER_THAN, _MAX_DELETES, OPTIONS),
        _expire_snapshots,
        {"deleted_snapshots_count": pa.int32()},
    ),
    Procedure(
        "expire_changelogs",
        (TABLE, _RETAIN_MAX, _RETAIN_MIN, _OLDER_THAN, _MAX_DELETES, Parameter("delete_all", Kind.FLAG)),
        _expire_changelogs,
        {"result": pa.string()},
    ),
    Procedure("purge_files", (TABLE,), _purge_files, {"result": pa.string()}),
    Procedure(
        "remove_orphan_files",
        (
            TABLE,
            _OLDER_THAN,
            Parameter("dry_run", Kind.FLAG),
            Parameter("parallelism", Kind.NUMBER),
            Parameter("mode"),
        ),
        _remove_orphan_files,
        {"deletedFileCount": pa.int64(), "deletedFileTotalLenInBytes": pa.int64()},
    ),
    Procedure(
        "remove_unexisting_files",
        (TABLE, Parameter("dry_run", Kind.FLAG), Parameter("parallelism", Kind.NUMBER)),
        _remove_missing_files,
        {"result": pa.string()},
    ),
)
