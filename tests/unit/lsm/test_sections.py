"""Sections and sorted runs of a bucket's files."""

from __future__ import annotations

from lakebed.lsm.sections import Section, cut_sections
from lakebed.metadata.data_file import EMPTY_STATS, DataFile
from lakebed.types.binary_row import encode_row
from lakebed.types.logical import INT


def file(name: str, low: int | None, high: int | None, sequence: int = 0) -> DataFile:
    """A file with a key range."""
    keys = [encode_row([key], [INT]) for key in (low, high)]
    return DataFile(name, 10, 1, *keys, EMPTY_STATS, EMPTY_STATS, sequence, sequence, 0, 0)


def names(sections: list[Section]) -> list[list[list[str]]]:
    """File names by section and run."""
    return [[[made.file_name for made in run.files] for run in section.runs] for section in sections]


def test_no_files_make_no_sections() -> None:
    """An empty bucket has nothing to merge."""
    assert cut_sections([], [INT]) == []


def test_files_that_share_no_key_are_sections_of_their_own() -> None:
    """In key order, whatever the order given."""
    assert names(cut_sections([file("b", 4, 6), file("a", 1, 3)], [INT])) == [[["a"]], [["b"]]]


def test_one_shared_key_is_enough_to_overlap() -> None:
    """Ranges that touch belong together: both files may hold the key in between."""
    assert names(cut_sections([file("a", 1, 3, 0), file("b", 3, 6, 1)], [INT])) == [[["a"], ["b"]]]


def test_files_bridged_by_another_share_a_section_and_a_run() -> None:
    """a and c do not overlap each other: together they are one run beside b."""
    files = [file("a", 1, 3, 0), file("b", 2, 8, 5), file("c", 7, 9, 1)]
    assert names(cut_sections(files, [INT])) == [[["a", "c"], ["b"]]]


def test_runs_come_oldest_first() -> None:
    """The run with the smaller newest row stands first."""
    files = [file("new", 1, 9, 8), file("old", 2, 5, 1)]
    assert names(cut_sections(files, [INT])) == [[["old"], ["new"]]]


def test_a_null_key_lies_below_all_others() -> None:
    """A file whose smallest key is null starts before every other file."""
    assert names(cut_sections([file("b", -5, 0), file("a", None, None)], [INT])) == [[["a"]], [["b"]]]


def test_files_of_a_section_are_all_of_its_runs() -> None:
    """`files` lists every file once, run by run."""
    section = cut_sections([file("a", 1, 3, 0), file("b", 3, 6, 1)], [INT])[0]
    assert [made.file_name for made in section.files] == ["a", "b"]
