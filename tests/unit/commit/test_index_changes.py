"""Index files of a snapshot and what a commit makes of them."""

from __future__ import annotations

import pytest

from lakebed.commit.index_changes import replace_entries, without_partitions, without_vectors
from lakebed.errors import CommitConflict
from lakebed.metadata.index_manifest import (
    DELETION_VECTORS_INDEX,
    HASH_INDEX,
    DeletionVectorRange,
    GlobalIndex,
    IndexEntry,
)


def _hashes(name: str, bucket: int = 0, partition: bytes = b"") -> IndexEntry:
    return IndexEntry(partition, bucket, HASH_INDEX, name, 4, 1)


def _vectors(name: str, *data_files: str, partition: bytes = b"") -> IndexEntry:
    ranges = tuple(DeletionVectorRange(file, 1 + 32 * n, 24, 2) for n, file in enumerate(data_files))
    return IndexEntry(partition, 0, DELETION_VECTORS_INDEX, name, 100, len(ranges), ranges)


def test_new_hashes_take_the_place_of_old_ones() -> None:
    """Of each bucket there is one file of hashes; others stay."""
    current = [_hashes("a", 0), _hashes("b", 1), _vectors("v", "d"), _hashes("c", 0, b"p")]
    assert replace_entries(current, [], [_hashes("new", 0)], table="t") == [*current[1:], _hashes("new", 0)]


def test_vectors_come_and_go_by_name() -> None:
    """An index file is replaced only if it is as the commit saw it."""
    current = [_vectors("v", "d"), _vectors("w", "e")]
    after = replace_entries(current, [current[0]], [_vectors("x", "d")], table="t")
    assert after == [_vectors("w", "e"), _vectors("x", "d")]
    for stale in (_vectors("v", "d", "f"), _vectors("gone", "d")):
        with pytest.raises(CommitConflict, match=stale.file_name):
            replace_entries(current, [stale], [], table="t")


def test_a_data_file_has_one_vector() -> None:
    """Two commits that mark rows of one file without knowing of each other are told apart."""
    with pytest.raises(CommitConflict, match="d1"):
        replace_entries([_vectors("v", "d0", "d1")], [], [_vectors("x", "d1")], table="t")


def test_vectors_go_with_their_data_files() -> None:
    """What is left of an index file stays; one of which nothing is left goes."""
    other = IndexEntry(b"", 0, "btree", "g", 1, 1, None, None, GlobalIndex(0, 9, 1))
    current = [_vectors("v", "d0", "d1"), _vectors("w", "d2"), _hashes("h"), other]
    (kept, hashes, rest) = without_vectors(current, {"d0", "d2", "x"})
    assert kept.file_name == "v"
    assert kept.row_count == 1
    assert kept.deletion_vector_ranges == (DeletionVectorRange("d1", 33, 24, 2),)
    assert (hashes, rest) == (_hashes("h"), other)
    assert without_vectors(current, ()) == current


def test_indexes_of_replaced_partitions_go() -> None:
    """An overwrite takes hashes and vectors of its partitions along, and nothing else."""
    other = IndexEntry(b"p", 0, "btree", "g", 1, 1, None, None, GlobalIndex(0, 9, 1))
    current = [_hashes("h", 0, b"p"), _vectors("v", "d", partition=b"p"), _hashes("i", 0, b"q"), other]
    assert without_partitions(current, {b"p"}) == [_hashes("i", 0, b"q"), other]
