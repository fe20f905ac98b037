"""Joins the small files of one commit before it is made (`precommit-compact`): many tasks leave a few rows each.

Only for tables without a primary key and without buckets, where the order of rows means nothing. The small files are
nobody's then, and go with what else the commit leaves behind.
"""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace

from lakebed.commit.message import CommitMessage
from lakebed.datafiles.rolling_writer import RollingWriter
from lakebed.definition.context import TableContext
from lakebed.definition.file_rules import write_rules
from lakebed.fileio.base import FileIO
from lakebed.lsm.compaction.small_files import SmallFileRules
from lakebed.lsm.sections import Section, SortedRun
from lakebed.metadata.data_file import DataFile
from lakebed.metadata.entries import Bucket
from lakebed.options import BUCKET, COMPACTION_SMALL_FILE_RATIO
from lakebed.read.reader import SplitReader
from lakebed.read.splits import Split
from lakebed.write.files import file_layout
from lakebed.write.pieces import PieceWork


def joined_before_commit(work: PieceWork, messages: Sequence[CommitMessage]) -> list[CommitMessage]:
    """The messages with fewer, larger files."""
    context = work.context
    rules = SmallFileRules(write_rules(context).target_size_bytes, context.options[COMPACTION_SMALL_FILE_RATIO])
    small: dict[Bucket, list[DataFile]] = defaultdict(list)
    for message in messages:
        # Files whose rows carry ids stay by themselves: other rows get theirs from the commit.
        small[message.partition, message.bucket] += [
            file for file in message.new_files if rules.is_small(file) and file.write_cols is None
        ]
    pieces = [(place, files) for place, files in small.items() if len(files) > 1]
    made = work.run(pieces, sum(file.size_bytes for _, files in pieces for file in files), _joined)
    joined = {(message.partition, message.bucket): message.new_files for message in made}
    gone = {file.file_name for _, files in pieces for file in files}
    result: list[CommitMessage] = []
    for message in messages:
        kept = [file for file in message.new_files if file.file_name not in gone]
        files = (*kept, *joined.pop((message.partition, message.bucket), ()))
        if files or message.deleted_files:
            result.append(replace(message, new_files=files))
    return result


def _joined(context: TableContext, piece: tuple[Bucket, list[DataFile]], fileio: FileIO) -> list[CommitMessage]:
    place, files = piece
    rules, names = write_rules(context), itertools.count()
    prefix = context.new_data_file_prefix()
    writer = RollingWriter(
        fileio,
        lambda name: context.data_file_path(*place, name),
        lambda: f"{prefix}-{next(names)}.{rules.format.name}",
        file_layout(context),
        rules,
        context.clock,
        first_sequence_number=min(file.min_sequence_number for file in files),
    )
    split = Split(*place, tuple(Section((SortedRun((file,)),)) for file in files))
    for batch in SplitReader(context, context.schema.fields).read_stored(split):
        writer.write(batch)
    return [CommitMessage(*place, context.options[BUCKET], 0, tuple(writer.close()))]


__all__ = ["joined_before_commit"]
