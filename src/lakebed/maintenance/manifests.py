"""Rewrites the manifests of a table as few as possible, so that reads plan faster. Rows stay as they are."""

from __future__ import annotations

from lakebed.commit.committer import Changes, CommitIdentity
from lakebed.definition.context import TableContext
from lakebed.definition.file_rules import committer_for, latest_schema_id
from lakebed.metadata.entries import all_metas
from lakebed.metadata.snapshot import CommitKind, Snapshot
from lakebed.options import MANIFEST_TARGET_FILE_SIZE


def compact_manifests(context: TableContext, identity: CommitIdentity) -> Snapshot | None:
    """One commit that only writes manifests anew; None when there is nothing to gain."""
    target_bytes = context.options[MANIFEST_TARGET_FILE_SIZE]

    def prepare(latest: Snapshot | None) -> Changes | None:
        metas = all_metas(context.stores, latest)
        small = [meta for meta in metas if meta.size_bytes < target_bytes]
        if len(small) < 2 and not any(meta.num_deleted_files for meta in metas):
            return None
        return Changes([], rewrites_manifests=True)

    return committer_for(context).commit(
        CommitKind.COMPACT, identity, lambda: latest_schema_id(context), prepare, operation="COMPACT"
    )
