"""Files of an overwrite go straight to the highest level: nothing else is there that they would have to be merged with.

Readers that see nothing of level 0 see them at once, and no compaction has to move them. Where compactions tell what
changed, the commit itself tells of such files (`told_replacements`).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace

from lakebed.commit.message import CommitMessage
from lakebed.definition.context import TableContext, num_levels
from lakebed.lsm.sections import cut_sections
from lakebed.metadata.data_file import DataFile
from lakebed.options import OVERWRITE_UPGRADE


def upgraded(context: TableContext, messages: Sequence[CommitMessage]) -> list[CommitMessage]:
    """The messages of an overwrite, with files on the highest level in buckets where they share no key."""
    if not context.has_key or not context.options[OVERWRITE_UPGRADE]:
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


def _may_rise(context: TableContext, files: Sequence[DataFile]) -> bool:
    if any(file.delete_row_count != 0 for file in files):
        return False
    return all(len(section.files) == 1 for section in cut_sections(files, context.key_types))


__all__ = ["upgraded"]
