"""What every file system must do alike: the same tests over local disk, memory and object stores."""

from __future__ import annotations

import contextlib
import threading
from concurrent.futures import ThreadPoolExecutor

import pyarrow as pa
import pyarrow.orc as orc
import pyarrow.parquet as pq
import pytest

from lakebed.errors import AlreadyExists, FileMissing, InvalidArgument, LakebedError
from lakebed.fileio import FileIO

Place = tuple[FileIO, str]

# Names that occur in tables: escaped partition values, blanks, text beyond ASCII, hidden files.
ODD_NAMES = ["dt=2024-01-02T03%3A04", "a b", "Straße~(1)", ".snapshot-1.x.tmp", "a+b&c", "100%25", "x#y"]


def names(io: FileIO, path: str) -> list[str]:
    return [status.name for status in io.list_directory(path)]


def test_satisfies_the_protocol(place: Place) -> None:
    """Each implementation has every method of FileIO."""
    assert isinstance(place[0], FileIO)


def test_written_bytes_are_read_back(place: Place) -> None:
    """write_bytes makes a file, parents included, that reads back with its size."""
    io, root = place
    io.write_bytes(f"{root}/manifest/deep/m-1", b"content")
    assert io.read_bytes(f"{root}/manifest/deep/m-1") == b"content"
    assert io.size(f"{root}/manifest/deep/m-1") == 7
    assert io.exists(f"{root}/manifest/deep/m-1")


def test_write_bytes_refuses_a_taken_name(place: Place) -> None:
    """A new immutable file never replaces another one."""
    io, root = place
    io.write_bytes(f"{root}/m-1", b"first")
    with pytest.raises(AlreadyExists, match="m-1"):
        io.write_bytes(f"{root}/m-1", b"second")
    assert io.read_bytes(f"{root}/m-1") == b"first"


def test_empty_files(place: Place) -> None:
    """Files of no bytes exist and read back empty, however they were written."""
    io, root = place
    io.write_bytes(f"{root}/a", b"")
    with io.open_output(f"{root}/b"):
        pass
    assert io.create_exclusive(f"{root}/c", b"")
    for name in "abc":
        assert io.read_bytes(f"{root}/{name}") == b""
    assert [status.name for status in io.list_recursive(root)] == ["a", "b", "c"]
    assert names(io, root) == ["a", "b", "c"]


def test_absent_files_are_missing(place: Place) -> None:
    """Everything that reads says FileMissing, naming the path; lookups say no."""
    io, root = place
    io.write_bytes(f"{root}/directory/file", b"x")
    for path in (f"{root}/nothing", f"{root}/directory", f"{root}/directory/file/below"):
        for read in (io.read_bytes, io.open_input, io.size):
            with pytest.raises(FileMissing) as raised:
                read(path)
            assert path in str(raised.value)
        assert io.delete(path) is False
    assert not io.exists(f"{root}/nothing")
    assert not io.exists(f"{root}/directory/file/below")
    assert io.list_directory(f"{root}/nothing") == []
    assert list(io.list_recursive(f"{root}/nothing")) == []


def test_overwrite_creates_and_replaces(place: Place) -> None:
    """overwrite works on absent and on present files and leaves no temporary file."""
    io, root = place
    io.overwrite(f"{root}/snapshot/LATEST", b"1")
    io.overwrite(f"{root}/snapshot/LATEST", b"12")
    assert io.read_bytes(f"{root}/snapshot/LATEST") == b"12"
    assert names(io, f"{root}/snapshot") == ["LATEST"]


def test_create_exclusive_once(place: Place) -> None:
    """The first creation succeeds, the second is refused and changes nothing, and no temporary file stays."""
    io, root = place
    assert io.create_exclusive(f"{root}/snapshot/snapshot-1", b"first") is True
    assert io.create_exclusive(f"{root}/snapshot/snapshot-1", b"second") is False
    assert io.read_bytes(f"{root}/snapshot/snapshot-1") == b"first"
    assert names(io, f"{root}/snapshot") == ["snapshot-1"]


def test_create_exclusive_has_one_winner_among_threads(place: Place) -> None:
    """Of eight threads that race for a name exactly one wins, and the file holds exactly its bytes."""
    io, root = place
    start = threading.Barrier(8)

    def race(writer: int, round_number: int) -> bool:
        start.wait()
        return io.create_exclusive(f"{root}/snapshot-{round_number}", str(writer).encode() * 5000)

    with ThreadPoolExecutor(8) as pool:
        for round_number in range(10):
            won = list(pool.map(race, range(8), [round_number] * 8))
            assert won.count(True) == 1
            assert io.read_bytes(f"{root}/snapshot-{round_number}") == str(won.index(True)).encode() * 5000


def test_output_file(place: Place) -> None:
    """Bytes written in pieces arrive in order; tell and size_bytes agree with the file."""
    io, root = place
    with io.open_output(f"{root}/bucket-0/data-1.bin") as output:
        assert output.write(b"abc") == 3
        assert output.tell() == 3
        output.write(memoryview(b"defg"))
        output.write(pa.py_buffer(b"hi"))
        output.flush()
    assert output.closed
    assert output.size_bytes == 9 == io.size(f"{root}/bucket-0/data-1.bin")
    assert io.read_bytes(f"{root}/bucket-0/data-1.bin") == b"abcdefghi"
    output.close()
    output.abort()
    assert io.exists(f"{root}/bucket-0/data-1.bin")


def test_output_file_is_removed_on_error(place: Place) -> None:
    """An exception in the with block leaves no file, also when a pyarrow writer was used and dropped."""
    io, root = place

    def write_and_fail() -> None:
        with io.open_output(f"{root}/data") as output:
            output.stream.write(b"half")
            output.stream.close()
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        write_and_fail()
    assert not io.exists(f"{root}/data")
    assert list(io.list_recursive(root)) == []


def test_output_file_can_be_aborted(place: Place) -> None:
    """abort removes the file without an exception, and closing afterwards does not bring it back."""
    io, root = place
    output = io.open_output(f"{root}/data")
    output.write(b"half")
    output.abort()
    output.close()
    assert not io.exists(f"{root}/data")
    with pytest.raises(InvalidArgument, match="after close"):
        output.write(b"more")


def test_large_output(place: Place) -> None:
    """A file larger than any buffer arrives whole."""
    io, root = place
    piece = bytes(range(256)) * 4096
    with io.open_output(f"{root}/large") as output:
        for _ in range(20):
            output.write(piece)
    assert output.size_bytes == 20 * len(piece)
    assert io.read_bytes(f"{root}/large") == piece * 20


def test_parquet_round_trip(place: Place) -> None:
    """pyarrow writes Parquet through `stream` and reads it through open_input, row group by row group, with threads."""
    io, root = place
    table = pa.table({"k": pa.array(range(50_000)), "v": [str(i % 97) * 5 for i in range(50_000)]})
    with io.open_output(f"{root}/data.parquet") as output:
        pq.write_table(table, output.stream, row_group_size=5_000)
    assert output.size_bytes == io.size(f"{root}/data.parquet")
    file = pq.ParquetFile(io.open_input(f"{root}/data.parquet"), pre_buffer=True)
    assert file.num_row_groups == 10
    assert file.read(use_threads=True).equals(table)
    assert file.read_row_group(3, columns=["v"]).equals(table.select(["v"]).slice(15_000, 5_000))


def test_orc_round_trip(place: Place) -> None:
    """pyarrow's ORC writer, which closes its stream, still yields a complete file."""
    io, root = place
    table = pa.table({"k": pa.array(range(1000)), "v": [str(i) for i in range(1000)]})
    with io.open_output(f"{root}/data.orc") as output:
        orc.write_table(table, output.stream)
    assert orc.ORCFile(io.open_input(f"{root}/data.orc")).read().equals(table)


def test_input_is_random_access(place: Place) -> None:
    """The reader knows its size, seeks from both ends, and reads from many threads without mixing positions up."""
    io, root = place
    data = bytes(i * 7 % 251 for i in range(400_000))
    io.write_bytes(f"{root}/f", data)
    with io.open_input(f"{root}/f") as file:
        assert file.size() == len(data)
        file.seek(-10, 2)
        assert file.read() == data[-10:]
        assert file.read() == b""
        file.seek(100)
        assert (file.read(5), file.tell()) == (data[100:105], 105)
        with ThreadPoolExecutor(4) as pool:
            offsets = list(range(0, 390_000, 9_000))
            assert list(pool.map(lambda at: file.read_at(1000, at), offsets)) == [
                data[at : at + 1000] for at in offsets
            ]


def test_listing(place: Place) -> None:
    """Direct children come ordered by name with sizes and kinds; the recursive listing has files only."""
    io, root = place
    for path in ("b/2", "b/1", "a", "b-c", "b/d/3"):
        io.write_bytes(f"{root}/{path}", b"12345"[: len(path)])
    children = io.list_directory(root)
    assert [(status.name, status.is_directory, status.size_bytes) for status in children] == [
        ("a", False, 1),
        ("b", True, 0),
        ("b-c", False, 3),
    ]
    assert all(status.path == f"{root}/{status.name}" for status in children)
    assert children[0].modified_ms > 1_000_000_000_000
    found = {status.path: status.size_bytes for status in io.list_recursive(f"{root}/b")}
    assert found == {f"{root}/b/1": 3, f"{root}/b/2": 3, f"{root}/b/d/3": 5}


@pytest.mark.parametrize("name", ODD_NAMES)
def test_odd_names(place: Place, name: str) -> None:
    """Names are taken literally: nothing is escaped, unescaped or refused on the way there and back."""
    io, root = place
    io.write_bytes(f"{root}/{name}/{name}", b"x")
    assert names(io, root) == [name]
    assert [status.path for status in io.list_recursive(root)] == [f"{root}/{name}/{name}"]
    assert io.read_bytes(f"{root}/{name}/{name}") == b"x"
    assert io.delete(f"{root}/{name}/{name}") is True


def test_delete(place: Place) -> None:
    """delete says whether there was a file."""
    io, root = place
    io.write_bytes(f"{root}/f", b"x")
    assert io.delete(f"{root}/f") is True
    assert io.delete(f"{root}/f") is False
    assert not io.exists(f"{root}/f")


def test_delete_directory(place: Place) -> None:
    """A directory goes with all it holds, its neighbours of similar names stay, and a second time is no error."""
    io, root = place
    for path in ("t/a", "t/b/c", "t2/a", "t.x"):
        io.write_bytes(f"{root}/{path}", b"x")
    io.delete_directory(f"{root}/t")
    io.delete_directory(f"{root}/t")
    assert not io.exists(f"{root}/t")
    assert sorted(status.path for status in io.list_recursive(root)) == [f"{root}/t.x", f"{root}/t2/a"]


def test_rename_directory(place: Place) -> None:
    """A directory moves with all it holds, to a place whose parents need not exist."""
    io, root = place
    io.write_bytes(f"{root}/db/old/schema/schema-0", b"s")
    io.write_bytes(f"{root}/db/old/data", b"d")
    io.rename_directory(f"{root}/db/old", f"{root}/other/new")
    assert io.read_bytes(f"{root}/other/new/schema/schema-0") == b"s"
    assert io.read_bytes(f"{root}/other/new/data") == b"d"
    assert not io.exists(f"{root}/db/old")


def test_rename_directory_refuses(place: Place) -> None:
    """An occupied target or an absent source is an error that moves nothing."""
    io, root = place
    io.write_bytes(f"{root}/a/f", b"a")
    io.write_bytes(f"{root}/b/f", b"b")
    with pytest.raises(AlreadyExists, match="b is there"):
        io.rename_directory(f"{root}/a", f"{root}/b")
    with pytest.raises(FileMissing, match="nothing-here"):
        io.rename_directory(f"{root}/nothing-here", f"{root}/c")
    assert (io.read_bytes(f"{root}/a/f"), io.read_bytes(f"{root}/b/f")) == (b"a", b"b")


def test_make_directory_twice(place: Place) -> None:
    """Making a directory that is there is no error."""
    io, root = place
    io.make_directory(f"{root}/x/y")
    io.make_directory(f"{root}/x/y")
    io.write_bytes(f"{root}/x/y/f", b"1")
    assert io.exists(f"{root}/x")


def test_only_our_own_errors(place: Place) -> None:
    """Paths a file system can not hold are refused with an error of lakebed; no other error escapes."""
    io, root = place
    for path in (f"{root}/" + "n" * 5000, f"{root}/nul\0byte"):
        for act in (io.read_bytes, io.exists, io.list_directory, lambda path: io.write_bytes(path, b"x")):
            with contextlib.suppress(LakebedError):
                act(path)
