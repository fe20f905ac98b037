"""Proves the rules of the LSM tree on a bucket's files, or says in plain words which one is broken and by what.

Readers and compaction rely on these rules without looking. Tests call this after everything they do, and so can
whoever suspects a table. It looks at metadata only, repairs nothing and raises nothing: a finding is a sentence.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import pairwise

from lakebed.errors import LakebedError
from lakebed.lsm.sections import key_bounds
from lakebed.metadata.data_file import DataFile, FileSource
from lakebed.types.binary_row import decode_rows
from lakebed.types.logical import DataType


def check_levels(
    files: Sequence[DataFile], key_types: Sequence[DataType], *, num_levels: int | None = None
) -> list[str]:
    """One sentence for every broken rule; none when all is well. `num_levels` also bounds the levels."""
    return [
        *_shared_names(files),
        *(finding for file in files for finding in _wrong_numbers(file, num_levels)),
        *_wrong_keys(files, key_types),
    ]


def _shared_names(files: Sequence[DataFile]) -> Iterator[str]:
    for name, count in Counter(file.file_name for file in files).items():
        if count > 1:
            yield f"{name} is listed {count} times"


def _wrong_numbers(file: DataFile, num_levels: int | None) -> Iterator[str]:
    name, deleted = file.file_name, file.delete_row_count
    if file.level < 0:
        yield f"{name} lies on level {file.level}, below level 0"
    if num_levels is not None and file.level >= num_levels:
        yield f"{name} lies on level {file.level}, but the highest level is {num_levels - 1}"
    if file.level == 0 and file.file_source == FileSource.COMPACT:
        yield f"{name} lies on level 0, but compaction made it"
    if file.row_count < 1:
        yield f"{name} has {file.row_count} rows"
    if deleted is not None and not 0 <= deleted <= max(file.row_count, 0):
        yield f"{name} has {deleted} retract rows among its {file.row_count} rows"
    if file.min_sequence_number > file.max_sequence_number:
        yield (
            f"{name} has sequence numbers from {file.min_sequence_number} to {file.max_sequence_number}: "
            "the smallest is above the largest"
        )


def _wrong_keys(files: Sequence[DataFile], key_types: Sequence[DataType]) -> Iterator[str]:
    readable = []
    for file in files:
        problem = _key_problem(file, key_types)
        if problem is None:
            readable.append(file)
        else:
            yield f"{file.file_name} has keys that can not be read: {problem}"
    if not readable:
        return
    low, high = key_bounds(readable, key_types)
    by_level: dict[int, list[int]] = {}
    for i, file in enumerate(readable):
        if low[i] > high[i]:
            yield f"{file.file_name} has a smallest key above its largest"
        elif file.level > 0:
            by_level.setdefault(file.level, []).append(i)
    for level, members in sorted(by_level.items()):
        members.sort(key=lambda i: (low[i], high[i]))
        reaching = members[0]
        for left, right in pairwise(members):
            if high[left] > high[reaching]:
                reaching = left
            if low[right] <= high[reaching]:
                names = f"{readable[reaching].file_name} and {readable[right].file_name}"
                yield f"{names} overlap on level {level}"


def _key_problem(file: DataFile, key_types: Sequence[DataType]) -> str | None:
    try:
        decode_rows([file.min_key, file.max_key], key_types)
    except LakebedError as error:
        return error.message
    return None


__all__ = ["check_levels"]
