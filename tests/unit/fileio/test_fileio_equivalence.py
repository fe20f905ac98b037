"""Random operations give the same answers and the same files on every file system."""

from __future__ import annotations

import tempfile
import uuid

from hypothesis import given, settings
from hypothesis import strategies as st
from obstore.store import MemoryStore

from lakebed.errors import LakebedError
from lakebed.fileio import FileIO, LocalFileIO, MemoryFileIO
from lakebed.fileio.object_store import ObjectStoreFileIO

# Few names at fixed depths, so that operations meet: d* are only ever directories and f* only ever files, because what
# happens when a name is used for both differs between disks and object stores, and never happens in a table.
DIRECTORIES = st.sampled_from(["d1", "d2", "d1/d3", "d1/d3/d4", "d2/d3"])
FILES = st.builds(lambda directory, name: f"{directory}/{name}", DIRECTORIES, st.sampled_from(["f1", "f2", "f.x"]))
DATA = st.binary(max_size=3)

OPERATIONS = st.one_of(
    st.tuples(st.sampled_from(["write_bytes", "overwrite", "create_exclusive"]), FILES, DATA),
    st.tuples(st.sampled_from(["read_bytes", "size", "exists", "delete"]), FILES),
    st.tuples(st.sampled_from(["delete_directory", "files_in"]), DIRECTORIES),
    st.tuples(st.just("rename_directory"), DIRECTORIES, DIRECTORIES),
)


def run(io: FileIO, root: str, operation: tuple[object, ...]) -> object:
    """The answer of an operation, or the name of its error."""
    name, path, *rest = operation
    if name == "files_in":
        return [s.name for s in io.list_directory(f"{root}/{path}") if not s.is_directory]
    if name == "rename_directory":
        rest = [f"{root}/{rest[0]}"]
    try:
        return getattr(io, str(name))(f"{root}/{path}", *rest)
    except LakebedError as error:
        return type(error).__name__


def is_comparable(io: FileIO, root: str, operation: tuple[object, ...]) -> bool:
    """Whether a disk and an object store must agree: not on empty directories, nor on a move into itself."""
    if operation[0] != "rename_directory":
        return True
    source, target = str(operation[1]), str(operation[2])
    is_nested = f"{target}/".startswith(f"{source}/") or f"{source}/".startswith(f"{target}/")
    is_empty = any(
        io.exists(f"{root}/{path}") and not any(io.list_recursive(f"{root}/{path}")) for path in (source, target)
    )
    return not is_nested and not is_empty


@settings(max_examples=60, deadline=None)
@given(st.lists(OPERATIONS, max_size=25))
def test_same_operations_same_files(operations: list[tuple[object, ...]]) -> None:
    """Local disk, memory and an object store agree on every answer and on all files at the end."""
    with tempfile.TemporaryDirectory() as directory:
        places: list[tuple[FileIO, str]] = [
            (LocalFileIO(), directory),
            (MemoryFileIO(str(uuid.uuid4())), "root"),
            (ObjectStoreFileIO(MemoryStore()), "root"),
        ]
        for number, operation in enumerate(operations):
            if isinstance(operation[-1], bytes):
                # No two writes of equal bytes: an object store takes such a file for its own write with a lost answer.
                operation = (*operation[:-1], operation[-1] + str(number).encode())
            if is_comparable(*places[0], operation):
                answers = [run(io, root, operation) for io, root in places]
                assert answers[0] == answers[1] == answers[2], operation
        files = [
            {s.path.removeprefix(root): (s.size_bytes, io.read_bytes(s.path)) for s in io.list_recursive(root)}
            for io, root in places
        ]
        assert files[0] == files[1] == files[2]
