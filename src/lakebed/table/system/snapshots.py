"""`t$snapshots`: one row for each snapshot that has not expired."""

from __future__ import annotations

from collections.abc import Iterator

from lakebed.errors import NotFound
from lakebed.metadata.snapshot import Snapshot
from lakebed.table.system.base import SystemTable, TableState, each
from lakebed.table.system.texts import local_time_ms


def _snapshots(state: TableState) -> Iterator[Snapshot]:
    store = state.context.stores.snapshots
    for snapshot_id in store.ids():
        try:
            yield store.get(snapshot_id)
        except NotFound:
            continue  # it expired since we looked


SNAPSHOTS = SystemTable(
    "snapshots",
    _snapshots,
    (
        each("snapshot_id", "BIGINT NOT NULL", lambda snapshot: snapshot.id),
        each("schema_id", "BIGINT NOT NULL", lambda snapshot: snapshot.schema_id),
        each("commit_user", "STRING NOT NULL", lambda snapshot: snapshot.commit_user),
        each("commit_identifier", "BIGINT NOT NULL", lambda snapshot: snapshot.commit_identifier),
        each("commit_kind", "STRING NOT NULL", lambda snapshot: str(snapshot.commit_kind)),
        each("commit_time", "TIMESTAMP(3) NOT NULL", lambda snapshot: local_time_ms(snapshot.time_millis)),
        each("base_manifest_list", "STRING NOT NULL", lambda snapshot: snapshot.base_manifest_list),
        each("delta_manifest_list", "STRING NOT NULL", lambda snapshot: snapshot.delta_manifest_list),
        each("changelog_manifest_list", "STRING", lambda snapshot: snapshot.changelog_manifest_list),
        each("total_record_count", "BIGINT", lambda snapshot: snapshot.total_record_count),
        each("delta_record_count", "BIGINT", lambda snapshot: snapshot.delta_record_count),
        each("changelog_record_count", "BIGINT", lambda snapshot: snapshot.changelog_record_count),
        each("watermark", "BIGINT", lambda snapshot: snapshot.watermark),
        each("next_row_id", "BIGINT", lambda snapshot: snapshot.next_row_id),
        each("operation", "STRING", lambda snapshot: snapshot.operation),
        each("writer_version", "STRING", lambda snapshot: snapshot.writer_version),
    ),
)

__all__ = ["SNAPSHOTS"]
