"""What documents, docstrings and comments say by path is there, and a path that leads nowhere is found."""

from pathlib import Path

import pytest
from tests.house.paths import stale_in_documents, stale_in_source

PROJECT = Path(__file__).parents[2]
DOCUMENTS = [*sorted(PROJECT.glob("*.md")), *sorted((PROJECT / "docs").rglob("*.md"))]
ABOUT_THE_SOURCE = [PROJECT / "ARCHITECTURE.md", PROJECT / "docs" / "internals.md"]


def test_documents_name_what_exists() -> None:
    """Every path in backticks is a module, a file or a folder; classes behind a module are defined in it."""
    assert stale_in_documents(PROJECT, DOCUMENTS) == []


def test_documents_about_the_source_know_its_words() -> None:
    """Words with an underscore, such as `merge_runs`, are names of something in the source."""
    assert stale_in_documents(PROJECT, ABOUT_THE_SOURCE, words_too=True) == []


def test_docstrings_and_comments_name_what_exists() -> None:
    """Both, in the source itself."""
    assert stale_in_source(PROJECT) == []


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project with two modules and a class."""
    for place, text in {
        "write/files.py": '"""Makes files."""\nclass FileMaker:\n    pass\n',
        "write/placement/fixed.py": '"""See `fixed`, `placement/fixed`, `write/files.FileMaker`."""\nrow_count = 0\n',
    }.items():
        path = tmp_path / "src" / "lakebed" / place
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return tmp_path


STALE = [
    "write/gone",
    "write/gone.py",
    "write/files.Gone",
    "gone/<name>.py",
    "src/lakebed/gone",
    "write/gone/",
    "gone/*",
]
FINE = [
    "write/files",
    "write/placement",
    "write/placement/fixed.py",
    "write/files.FileMaker",
    "write/placement/<mode>.py",
    "src/lakebed/write/",
    "write/*",
    "file:/path",
    "a / b",
]


@pytest.mark.parametrize(("path", "is_stale"), [*((path, True) for path in STALE), *((path, False) for path in FINE)])
def test_a_path_in_a_document(path: str, is_stale: bool, project: Path) -> None:
    """One that leads nowhere is found with its line; what is no path is left alone."""
    (project / "PAGE.md").write_text(f"A line.\nHere is `{path}`.\n")
    expected = [f"PAGE.md:2 names `{path}`"] if is_stale else []
    assert stale_in_documents(project, [project / "PAGE.md"]) == expected


def test_a_drawing(project: Path) -> None:
    """Paths in drawings are looked at without backticks."""
    (project / "PAGE.md").write_text("```text\n rows | write/files, then write/gone: <- a / b\n```\n")
    assert stale_in_documents(project, [project / "PAGE.md"]) == ["PAGE.md:2 names `write/gone`"]


def test_a_registry_in_a_document(project: Path) -> None:
    """A name that is said to stand in a module must stand there."""
    page = project / "PAGE.md"
    page.write_text("`row_count` in `write/placement/fixed.py`\n`ROWS` in `write/files.py`\n")
    assert stale_in_documents(project, [page]) == ["PAGE.md:2 looks for `ROWS` in `write/files.py`"]


@pytest.mark.parametrize(
    ("text", "stale"),
    [
        ('"""As in `table/compact`."""\n', "table/compact"),
        ('"""Why."""\n\nx = 1  # see `write/gone`\n', "write/gone"),
        ('"""Why."""\n\n\ndef f():\n    """As `stream_start` says."""\n', "stream_start"),
        ('"""Counts in `row_count`, as `files` and `write/files` do."""\n', None),
    ],
)
def test_a_name_in_the_source(text: str, stale: str | None, project: Path) -> None:
    """In docstrings of modules and functions and in comments; a name that code elsewhere has is one."""
    (project / "src" / "lakebed" / "write" / "x.py").write_text(text)
    assert [found.partition(" names ")[2] for found in stale_in_source(project)] == ([f"`{stale}`"] if stale else [])
