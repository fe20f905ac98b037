"""Whether a set of file changes still fits the state it is to be applied to. Pure: entries in, error or nothing out."""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence

from lakebed.errors import CommitConflict
from lakebed.metadata.data_file import DataFile
from lakebed.metadata.manifest import EntryKind, ManifestEntry

KeyBounds = Callable[[Sequence[DataFile]], tuple[list[int], list[int]]]
"""Min and max keys of files as comparable integers."""

_REDO = "another job changed these files in the meantime: read the table again and redo the work"


def check_conflicts(
    live: Iterable[ManifestEntry],
    delta: Sequence[ManifestEntry],
    *,
    table: str,
    key_bounds: KeyBounds | None,
    may_change_bucket_count: bool,
) -> None:
    """Raises `CommitConflict` when `delta` can not be applied to the live files.

    `key_bounds` is given for primary-key tables, whose files above level 0 must not overlap within a level.
    """
    after = {entry.identity: entry for entry in live}
    # INVARIANT: what a commit replaces is still there. If somebody else has replaced it, its rows live on in other
    # files: adding ours as well would show them twice, or put old versions beside new ones.
    for entry in delta:
        if entry.kind == EntryKind.DELETE and after.pop(entry.identity, None) is None:
            raise CommitConflict(
                f"table `{table}`: file {entry.file.file_name} that this commit replaces is no longer there",
                hint=_REDO,
            )
    for entry in delta:
        if entry.kind == EntryKind.ADD:
            if entry.identity in after:
                raise CommitConflict(f"table `{table}`: file {entry.file.file_name} is committed already", hint=_REDO)
            after[entry.identity] = entry
    if not may_change_bucket_count:
        _check_bucket_counts(after.values(), table=table)
    if key_bounds is not None:
        _check_levels(after.values(), table, key_bounds)


def _check_bucket_counts(entries: Iterable[ManifestEntry], *, table: str) -> None:
    """All files of a partition must have been hashed into the same number of buckets.

    INVARIANT: a key has one bucket. Rows of a key in two buckets are never merged, and both would be shown.
    """
    counts: dict[bytes, int] = {}
    for entry in entries:
        if entry.total_buckets > 0 and counts.setdefault(entry.partition, entry.total_buckets) != entry.total_buckets:
            raise CommitConflict(
                f"table `{table}`: a partition holds files of {counts[entry.partition]} buckets, "
                f"this commit brings files of {entry.total_buckets}",
                hint="rewrite the partition with an overwrite before writing with the new bucket number",
            )


def _check_levels(entries: Iterable[ManifestEntry], table: str, key_bounds: KeyBounds) -> None:
    by_level: dict[tuple[bytes, int, int], list[DataFile]] = defaultdict(list)
    for entry in entries:
        if entry.file.level >= 1:
            by_level[entry.partition, entry.bucket, entry.file.level].append(entry.file)
    # INVARIANT: files of one level above 0 share no key. Readers take a level for one sorted run: of two rows of a key
    # in it, either may win.
    for (_, bucket, level), files in by_level.items():
        if len(files) < 2:
            continue
        low, high = key_bounds(files)
        by_key = sorted(range(len(files)), key=low.__getitem__)
        for before, after in itertools.pairwise(by_key):
            if low[after] <= high[before]:
                raise CommitConflict(
                    f"table `{table}`: level {level} of bucket {bucket} would hold overlapping files "
                    f"{files[before].file_name} and {files[after].file_name}",
                    hint="another job compacted this bucket: read the table again and redo the compaction",
                )
