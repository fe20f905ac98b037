"""All that the pages show, as plain data: each function is one answer of the JSON interface."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

import pyarrow as pa

from lakebed.cdc.health import sync_findings
from lakebed.cdc.operate import SyncStatus, noted_status, synced_tables, syncs_of
from lakebed.cdc.storage import Storage
from lakebed.cells import plain, text
from lakebed.errors import InvalidArgument, LakebedError, NotFound
from lakebed.explain.streams import stream_readers, stream_writers
from lakebed.lake import Lake
from lakebed.metadata.snapshot import Snapshot
from lakebed.options import LAKEBED_VIEW_QUERY
from lakebed.schema.casts import cast_array
from lakebed.table.pictures.timeline import Timeline
from lakebed.table.table import Table
from lakebed.types.logical import STRING
from lakebed.views.describe import MaterializedTable

_MOST_ROWS = 500
"""Of an answer; a page that shows more helps nobody."""


def lake_facts(lake: Lake, search: str = "", offset: int = 0, limit: int = 100) -> dict[str, Any]:
    """The tables of all databases whose names contain some text, by pages; names only, which cost nothing."""
    names = [f"{database}.{name}" for database in lake.databases() for name in lake.tables(database)]
    found = [name for name in names if search.lower() in name.lower()]
    return {
        "location": lake.location,
        "databases": lake.databases(),
        "count": len(found),
        "offset": offset,
        "tables": found[offset : offset + _limited(limit)],
    }


def table_summary(lake: Lake, name: str) -> dict[str, Any]:
    """A line about a table, from its schema and its latest snapshot; what can not be opened says why."""
    try:
        table = lake.table(name)
        latest = table.latest_snapshot()
        return {
            "name": name,
            "kind": _kind_of(table),
            "key": list(table.primary_key),
            "partition_by": list(table.partition_by),
            "comment": table.comment,
            "snapshot": None if latest is None else _snapshot_facts(latest),
        }
    except LakebedError as error:
        return {"name": name, "error": error.message, "hint": error.hint}


def _kind_of(table: Table) -> str:
    """What sort of a table it is, in a word or two."""
    if LAKEBED_VIEW_QUERY.key in table.options:
        return "materialized"
    return table.options.get("merge-engine", "deduplicate") if table.primary_key else "append"


def table_facts(lake: Lake, name: str) -> dict[str, Any]:
    """A table: columns, keys, options, tags, branches, and its newest snapshot."""
    table = lake.table(name)
    schema, newest = table.schema, table.timeline(limit=1)
    return {
        **table_summary(lake, name),
        "location": table.location,
        "schema_id": schema.id,
        "columns": [
            {
                "name": field.name,
                "type": str(field.type),
                "comment": field.description,
                "in_key": field.name in schema.primary_keys,
                "in_partition": field.name in schema.partition_keys,
            }
            for field in schema.fields
        ],
        "options": dict(sorted(table.options.items())),
        "tags": _system_rows(lake, name, "tags", ["tag_name", "snapshot_id", "commit_time", "record_count"]),
        "branches": _system_rows(lake, name, "branches", None),
        "consumers": _system_rows(lake, name, "consumers", None),
        "snapshot_count": newest.count,
    }


def _snapshot_facts(snapshot: Snapshot) -> dict[str, Any]:
    """A snapshot: numbers and times."""
    return {
        "id": snapshot.id,
        "kind": str(snapshot.commit_kind),
        "operation": snapshot.operation,
        "time_ms": snapshot.time_millis,
        "rows": snapshot.delta_record_count,
        "total_rows": snapshot.total_record_count,
        "changelog_rows": snapshot.changelog_record_count,
        "user": snapshot.commit_user,
        "schema_id": snapshot.schema_id,
        "properties": dict(snapshot.properties or {}),
    }


def snapshots_of(lake: Lake, name: str, before: int | None = None, limit: int = 50) -> dict[str, Any]:
    """Snapshots of a table, the newest first, by pages: those below the number `before`."""
    table = lake.table(name)
    stores = table._opened.current().stores
    numbers = [each for each in stores.snapshots.ids() if before is None or each < before]
    chosen = []
    for number in reversed(numbers[-_limited(limit) :]):
        try:
            chosen.append(_snapshot_facts(stores.snapshots.get(number)))
        except NotFound:
            continue  # it expired since we looked
    return {"table": name, "snapshots": chosen, "more": len(numbers) > len(chosen)}


def timeline_of(lake: Lake, name: str, limit: int = 200) -> Timeline:
    """The timeline of a table."""
    return lake.table(name).timeline(limit=max(1, min(limit, 2000)))


def rows_of(lake: Lake, name: str, where: str = "", snapshot: int | None = None, limit: int = 100) -> dict[str, Any]:
    """The first rows of a table that match a condition in SQL."""
    table = lake.table(name)
    if snapshot is not None:
        table = table.at(snapshot=snapshot)
    return _cells_of(table.head(_limited(limit), filter=where.strip() or None))


def answer_of(lake: Lake, sql: str, limit: int = _MOST_ROWS) -> dict[str, Any]:
    """The rows of a SELECT, computed in this process: nothing else can be asked here, so nothing can be changed."""
    if not sql.strip():
        raise InvalidArgument("there is no statement", hint="type a SELECT")
    result = lake.query(sql, engine="duckdb")
    kept: list[pa.RecordBatch] = []
    count = 0
    for batch in result.batches():
        kept.append(batch.slice(0, limit - count))
        count += kept[-1].num_rows
        if count >= limit:
            break
    return _cells_of(pa.Table.from_batches(kept, result.schema)) | {"more": count >= limit}


def changes_of(lake: Lake, name: str, since: int | None = None, limit: int = 200) -> dict[str, Any]:
    """What changed after a snapshot, the last `limit` events of it; without one, what the newest snapshots changed."""
    table = lake.table(name)
    told = table.told_snapshot()
    if told is None:
        return {"since": 0, "until": 0, "columns": [], "types": [], "rows": []}
    known = [each for each in table._opened.current().stores.snapshots.ids() if each <= told.id]
    start = max(known[0] - 1 if known else 0, told.id - 5) if since is None else since
    if start >= told.id:
        return {"since": start, "until": told.id, "columns": [], "types": [], "rows": []}
    found = table.changes(since=start, until=told.id)
    limit = _limited(limit)
    shown = _cells_of(found.slice(max(0, found.num_rows - limit)))
    return {"since": start, "until": told.id, "count": found.num_rows, **shown}


def difference_of(lake: Lake, name: str, before: int, after: int, limit: int = 200) -> dict[str, Any]:
    """What makes the state of one snapshot that of another."""
    found = lake.table(name).diff(before, after)
    return {"before": before, "after": after, "count": found.num_rows, **_cells_of(found.slice(0, _limited(limit)))}


def why_of(lake: Lake, name: str, key: Mapping[str, str], snapshot: int | None = None) -> dict[str, Any]:
    """Why the row of a key, given as texts, is as it is."""
    table = lake.table(name)
    if snapshot is not None:
        table = table.at(snapshot=snapshot)
    missing = [column for column in table.primary_key if column not in key]
    if missing:
        raise InvalidArgument(f"the key of table `{name}` has `{missing[0]}`, too", hint="give a value for each column")
    given = {
        column: cast_array(pa.array([key[column]]), STRING, table.schema.field(column).type)
        for column in table.primary_key
    }
    return cast(dict[str, Any], plain(table.why(pa.table(given)).to_dict()))


def health_of(lake: Lake, name: str | None = None) -> list[dict[str, Any]]:
    """What is not as it should be, of a table or of all of them, each with what mends it."""
    names = [name] if name is not None else lake_facts(lake, limit=_MOST_ROWS)["tables"]
    found: list[dict[str, Any]] = []
    for each in names:
        try:
            found += lake.table(each).health().to_dict()["findings"]
        except LakebedError as error:
            if name is not None:
                raise
            told = {"severity": "critical", "check": "unreadable", "message": error.message, "cure": error.hint}
            found.append({"table": each, "figure": 0, **told})
    if name is None:
        found += [each.to_dict() for each in sync_findings(lake.location, Storage(lake.storage_options))]
    return found


def flows_of(lake: Lake) -> dict[str, Any]:
    """What feeds what: syncs and streams, tables, materialized tables, consumers; and how far each is behind."""
    nodes: dict[str, dict[str, Any]] = {}
    edges: list[dict[str, str]] = []
    storage = Storage(lake.storage_options)
    synced: set[str] = set()
    for sync in syncs_of(lake.location, storage):
        node = _sync_node(noted_status(sync, storage))
        nodes[node["name"]] = node
        written = synced_tables(lake.location, sync, storage)
        synced |= set(written)
        edges.extend({"from": node["name"], "to": table} for table in sorted(written))
    for database in lake.databases():
        for view in lake.materialized_tables(database):
            nodes[view.name] = {
                "name": view.name,
                "kind": "materialized",
                "query": view.query,
                "freshness": view.freshness,
                "suspended": view.is_suspended,
                "way": view.way,
                "reason": view.reason,
                "behind": _behind_of(lake, view),
            }
            edges.extend({"from": source, "to": view.name} for source in view.reads)
        names = [f"{database}.{table}" for table in lake.tables(database)]
        for name in names[:_MOST_FOLLOWED]:
            _add_streams(lake, name, nodes, edges, is_synced=name in synced)
    for edge in edges:
        for name in edge.values():
            nodes.setdefault(name, {"name": name, "kind": "table"})
    return {"nodes": list(nodes.values()), "edges": edges}


_MOST_FOLLOWED = 200
"""Tables of a database whose snapshots are looked at for streams: what is asked for on a page must come at once."""


def _sync_node(status: SyncStatus) -> dict[str, Any]:
    progress = status.progress
    return {
        "name": f"{status.sync.source} → {status.sync.database}",
        "kind": "sync",
        "state": status.state,
        "phase": progress.phase,
        "lag_seconds": progress.lag_seconds,
        "lag_bytes": progress.lag_bytes,
        "rows": progress.rows,
        "rate": progress.rows_per_second,
        "trouble": status.trouble,
        "parked": {name: parked.why for name, parked in status.parked.items()},
        "not_followed": progress.skipped,
        "dead_letters": progress.dead_letters,
    }


def _add_streams(
    lake: Lake, name: str, nodes: dict[str, dict[str, Any]], edges: list[dict[str, str]], *, is_synced: bool
) -> None:
    """Streams that write a table, and readers that it knows."""
    try:
        table = lake.table(name)
        context, latest = table._opened.current(), table.latest_snapshot()
        writers, readers = stream_writers(context), stream_readers(context, latest)
    except LakebedError:
        return  # what is wrong with it is told where the table is shown
    for writer in writers:
        if (writer.is_sync and is_synced) or nodes.get(name, {}).get("kind") == "materialized":
            continue  # who writes it is there already
        node = f"{'sync' if writer.is_sync else 'stream'} {writer.user}"
        known = nodes.setdefault(node, {"name": node, "kind": "stream", "tables": {}})
        known["tables"][name] = writer.to_dict()
        edges.append({"from": node, "to": name})
    for reader in readers:
        node = f"{reader.consumer} of {name}"
        nodes[node] = {"name": node, "kind": "consumer", **reader.to_dict()}
        edges.append({"from": name, "to": node})


def _behind_of(lake: Lake, view: MaterializedTable) -> dict[str, Any]:
    """How many snapshots of the tables that it reads a materialized table has not seen, and for how long."""
    snapshots, waiting_ms = 0, 0
    seen = {} if view.cut is None else view.cut.tables
    for source in view.reads:
        try:
            latest = lake.table(source).told_snapshot()
        except LakebedError:
            continue
        if latest is None:
            continue
        missing = latest.id - (seen[source].id if source in seen else 0)
        if missing > 0:
            snapshots += missing
            waiting_ms = max(waiting_ms, latest.time_millis)
    return {"snapshots": snapshots, "since_ms": waiting_ms or None}


def _cells_of(rows: pa.Table) -> dict[str, Any]:
    """Rows as texts, nulls apart: names, types, and a list for each row."""
    columns = [column.to_pylist() for column in rows.columns]
    texts: list[list[str | None]] = [[None if cell is None else text(cell) for cell in column] for column in columns]
    return {
        "columns": rows.schema.names,
        "types": [str(field.type) for field in rows.schema],
        "rows": [list(row) for row in zip(*texts, strict=True)] if texts else [[] for _ in range(rows.num_rows)],
    }


def _system_rows(lake: Lake, name: str, system: str, columns: Sequence[str] | None) -> list[dict[str, Any]]:
    found = lake.table(f"{name}${system}").to_arrow(columns=columns)
    return [{key: text(value) for key, value in row.items()} for row in found.to_pylist()]


def _limited(limit: int) -> int:
    return max(1, min(limit, _MOST_ROWS))


__all__ = [
    "answer_of",
    "changes_of",
    "difference_of",
    "flows_of",
    "health_of",
    "lake_facts",
    "rows_of",
    "snapshots_of",
    "table_facts",
    "table_summary",
    "timeline_of",
    "why_of",
]
