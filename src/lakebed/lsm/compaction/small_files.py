"""Which files of a table without a primary key are compacted together: small ones, and ones with many deleted rows.

Without buckets the order of files means nothing, so small files are packed by size. In a bucket rows stay in the order
they were written: only neighbours are joined. This only decides; it opens no file.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from lakebed.metadata.data_file import DataFile
from lakebed.records import dataclass

Group = tuple[DataFile, ...]
"""Files that are rewritten as one, in this order."""

_FULL_LEAST_FILES = 3
"""Fewer files of a bucket than this are not worth a full compaction, unless the table says that fewer are enough."""


@dataclass(frozen=True)
class SmallFileRules:
    """What is small, what is enough, and how many rows of a file are deleted."""

    target_size_bytes: int
    small_file_ratio: float = 0.7
    min_file_count: int = 5
    open_file_cost_bytes: int = 4 << 20
    delete_ratio_threshold: float = 0.2
    file_count_limit: int = 100_000
    deleted_rows: Callable[[DataFile], int] = lambda file: 0
    drops_deleted: bool = True
    """Whether deleted rows are left out of what is written. Where they keep their places nothing is gained by it."""

    def is_small(self, file: DataFile) -> bool:
        """Whether a file should be joined with others."""
        return file.size_bytes < int(self.target_size_bytes * self.small_file_ratio)

    def is_hollow(self, file: DataFile) -> bool:
        """Whether so many rows are deleted that the file should be rewritten."""
        return self.deleted_rows(file) > file.row_count * self.delete_ratio_threshold


def pick_unordered(files: Sequence[DataFile], rules: SmallFileRules, *, full: bool = False) -> list[Group]:
    """Groups of a partition without buckets. What is too little to be worth it waits for more, unless `full`."""
    candidates = [
        file for file in files if rules.is_small(file) or rules.is_hollow(file) or (full and _is_dirty(file, rules))
    ]
    candidates.sort(key=lambda file: (file.size_bytes, file.min_sequence_number, file.file_name))
    groups: list[list[DataFile]] = []
    group: list[DataFile] = []
    weight_bytes = 0
    for file in candidates[: rules.file_count_limit]:
        group.append(file)
        weight_bytes += file.size_bytes + rules.open_file_cost_bytes
        if len(group) > 1 and weight_bytes >= 2 * rules.target_size_bytes:
            groups.append(group)
            group, weight_bytes = [], 0
    enough = 2 if full else rules.min_file_count
    if len(group) >= enough or any(rules.is_hollow(file) or (full and _is_dirty(file, rules)) for file in group):
        groups.append(group)
    # Packed by size, but written in the order they are in: it costs nothing, and rows that came together stay so.
    places = {file.file_name: place for place, file in enumerate(files)}
    return [tuple(sorted(group, key=lambda file: places[file.file_name])) for group in groups]


def pick_ordered(files: Sequence[DataFile], rules: SmallFileRules, *, full: bool = False) -> list[Group]:
    """Groups of a bucket, whose files are neighbours in the order they were written."""
    in_order = sorted(files, key=lambda file: (file.min_sequence_number, file.file_name))
    if full:
        return _full_in_order(in_order, rules)
    return list(_automatic_in_order(in_order, rules))


def pick_ranges(files: Sequence[DataFile], rules: SmallFileRules, *, full: bool = False) -> list[Group]:
    """Groups of neighbouring ranges of row ids, where several files may hold columns of the same rows.

    All files of a range stay together, and ranges are joined up to the target size.
    """
    numbered = [(file.first_row_id, file) for file in files if file.first_row_id is not None]
    groups: list[list[DataFile]] = []
    end, first, weight_bytes = -1, -1, 0
    for begin, file in sorted(numbered, key=lambda item: (item[0], item[1].max_sequence_number)):
        is_new_range = begin != first
        if is_new_range and (begin != end or weight_bytes >= rules.target_size_bytes):
            groups.append([])
            weight_bytes = 0
        groups[-1].append(file)
        weight_bytes += file.size_bytes
        first, end = begin, begin + file.row_count
    enough = 2 if full else max(2, rules.min_file_count)
    is_worth_it = _is_dirty if full else lambda file, rules: rules.is_hollow(file)
    return [
        tuple(group)
        for group in groups
        if len(group) >= enough or (rules.drops_deleted and any(is_worth_it(file, rules) for file in group))
    ]


def _automatic_in_order(files: Sequence[DataFile], rules: SmallFileRules) -> Iterator[Group]:
    window: list[DataFile] = []
    for file in files:
        window.append(file)
        if len(window) >= max(2, rules.min_file_count) or rules.is_hollow(file):
            yield tuple(window)
            window = []
        elif sum(member.size_bytes for member in window) >= 2 * rules.target_size_bytes:
            window.pop(0)


def _full_in_order(files: Sequence[DataFile], rules: SmallFileRules) -> list[Group]:
    """Everything from the first file that is not as it should be."""
    fine = next((n for n, file in enumerate(files) if not _is_fine(file, rules)), len(files))
    group = tuple(files[fine:])
    big = sum(file.size_bytes >= rules.target_size_bytes for file in group)
    enough = max(2, min(_FULL_LEAST_FILES, rules.min_file_count))
    is_worth_it = len(group) >= enough and len(group) - big > big
    return [group] if group and (is_worth_it or any(_is_dirty(file, rules) for file in group)) else []


def _is_fine(file: DataFile, rules: SmallFileRules) -> bool:
    return file.size_bytes >= rules.target_size_bytes and not _is_dirty(file, rules)


def _is_dirty(file: DataFile, rules: SmallFileRules) -> bool:
    return rules.deleted_rows(file) > 0


__all__ = ["Group", "SmallFileRules", "pick_ordered", "pick_ranges", "pick_unordered"]
