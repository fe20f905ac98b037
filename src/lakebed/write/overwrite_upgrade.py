"""Files of an overwrite go straight to the highest level: nothing else is there that they would have to be merged with.

Readers that see nothing of level 0 see them at once, and no compaction has to move them. Where compactions tell what
changed, the commit itself tells of such files (`told_replacements`).

Keys that may be in any partition are the exception: one of them may have left a partition that is not replaced, and
nobody knows yet. It would be there twice, or be told to come before it is told to leave. So it comes with what waits.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace

from lakebed.changes.splits import lowest_level_told
from lakebed.commit.message import CommitMessage
from lakebed.definition.context import TableContext, num_levels
from lakebed.lsm.sections import cut_sections
from lakebed.metadata.data_file import DataFile
from lakebed.metadata.manifest import ManifestEntry
from lakebed.options import OVERWRITE_UPGRADE


def upgraded(
    context: TableContext, messages: Sequence[CommitMessage], kept: Sequence[ManifestEntry]
) -> list[CommitMessage]:
    """The messages of an overwrite, with files on the highest level in buckets where they share no key.

    `kept` are the live entries that it does not replace.
    """
    if not context.has_key or not context.options[OVERWRITE_UPGRADE] or _may_have_left(context, kept):
        return list(messages)
    buckets: dict[tuple[bytes, int], list[DataFile]] = defaultdict(list)
    for message in messages:
        buckets[message.partition, message.bucket] += message.new_files
    ready = {bucket for bucket, files in buckets.items() if bucket[1] >= 0 and _may_rise(context, files)}
    level = num_levels(context.options) - 1
    return [
        replace(message, new_files=tuple(file.at_level(level) for file in message.new_files))
        if (message.partition, message.bucket) in ready
        else message
        for message in messages
    ]


def _may_have_left(context: TableContext, kept: Sequence[ManifestEntry]) -> bool:
    """Whether rows wait to be shown or told that may take a key out of a partition. First rows stay where they are."""
    if not context.bucket_mode.crosses_partitions or context.is_first_row:
        return False
    lowest = max(lowest_level_told(context), context.lowest_visible_level)
    return any(entry.file.level < lowest for entry in kept)


def _may_rise(context: TableContext, files: Sequence[DataFile]) -> bool:
    if any(file.delete_row_count != 0 for file in files):
        return False
    return all(len(section.files) == 1 for section in cut_sections(files, context.key_types))


__all__ = ["upgraded"]
