"""`t$tags`: one row for each tag, by name."""

from __future__ import annotations

from datetime import datetime, timedelta

from lakebed.metadata.tag import Tag
from lakebed.table.system.base import SystemTable, TableState, each
from lakebed.table.system.texts import duration_text, local_time_ms

_EPOCH = datetime(1970, 1, 1)


def _tags(state: TableState) -> list[Tag]:
    return sorted(state.context.stores.tags.list(), key=lambda tag: tag.name)


def _create_time_ms(tag: Tag) -> int | None:
    return None if tag.create_time is None else (tag.create_time - _EPOCH) // timedelta(milliseconds=1)


TAGS = SystemTable[TableState, Tag](
    "tags",
    _tags,
    (
        each("tag_name", "STRING NOT NULL", lambda tag: tag.name),
        each("snapshot_id", "BIGINT NOT NULL", lambda tag: tag.snapshot.id),
        each("schema_id", "BIGINT NOT NULL", lambda tag: tag.snapshot.schema_id),
        each("commit_time", "TIMESTAMP(3) NOT NULL", lambda tag: local_time_ms(tag.snapshot.time_millis)),
        each("record_count", "BIGINT", lambda tag: tag.snapshot.total_record_count),
        each("create_time", "TIMESTAMP(3)", _create_time_ms),
        each("time_retained", "STRING", lambda tag: None if tag.retained is None else duration_text(tag.retained)),
    ),
)

__all__ = ["TAGS"]
