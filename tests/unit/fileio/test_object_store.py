"""Object stores: lost answers, stores that ignore conditions, directory markers, pages, credentials."""

from __future__ import annotations

import pickle

import pyarrow.parquet as pq
import pytest
from obstore.store import MemoryStore

from lakebed.errors import (
    AlreadyExists,
    FileMissing,
    InvalidArgument,
    InvalidOption,
    OutcomeUnknown,
    StorageError,
    Unsupported,
)
from lakebed.fileio import open_fileio
from lakebed.fileio.object_store import ObjectStoreFileIO
from lakebed.fileio.patience import Patience

NO_RETRY = {"s3.max-retries": "0"}


def test_lost_answer_that_the_client_repeats(s3) -> None:
    """The first put takes effect but its answer is lost, the repeated one finds our own object: we have won."""
    io, root = s3.open("t")
    assert io.create_exclusive(f"{root}/warm-up", b"x")
    s3.answers_lost = 1
    assert io.create_exclusive(f"{root}/snapshot-1", b"ours") is True
    assert s3.requests.count("PUT t/snapshot-1") == 2
    s3.answers_lost = 1
    io.write_bytes(f"{root}/manifest-1", b"m")
    assert s3.objects["t/manifest-1"] == b"m"


def test_lost_answer_that_nobody_repeats(s3) -> None:
    """With the answer lost for good, reading back shows whether the object is ours or somebody else's."""
    io, root = s3.open("t", **NO_RETRY)
    assert io.create_exclusive(f"{root}/warm-up", b"x")
    s3.answers_lost = 1
    assert io.create_exclusive(f"{root}/snapshot-1", b"ours") is True
    s3.puts_failing, s3.objects["t/snapshot-2"] = 1, b"theirs"
    assert io.create_exclusive(f"{root}/snapshot-2", b"ours") is False
    assert s3.objects["t/snapshot-2"] == b"theirs"


def test_unknown_outcome(s3) -> None:
    """A failed put and nothing, or nothing readable, in its place: it can not be told, and nothing is deleted."""
    io, root = s3.open("t", **NO_RETRY)
    assert io.create_exclusive(f"{root}/warm-up", b"x")
    s3.puts_failing = 1
    with pytest.raises(OutcomeUnknown, match="snapshot-1"):
        io.create_exclusive(f"{root}/snapshot-1", b"ours")
    s3.answers_lost, s3.gets_failing = 1, 1
    with pytest.raises(OutcomeUnknown, match="snapshot-1"):
        io.create_exclusive(f"{root}/snapshot-1", b"ours")
    assert s3.objects["t/snapshot-1"] == b"ours"


def test_store_that_ignores_conditions(s3) -> None:
    """A store that would let commits overwrite each other is found out before the first commit."""
    s3.honours_conditions = False
    io, root = s3.open("t")
    with pytest.raises(Unsupported, match="conditional puts"):
        io.create_exclusive(f"{root}/snapshot/snapshot-1", b"x")
    assert s3.objects == {}


def test_proof_is_given_once(s3) -> None:
    """The proof costs its requests once per connection."""
    io, root = s3.open("t")
    for number in range(3):
        assert io.create_exclusive(f"{root}/snapshot-{number}", b"x")
    probes = [request for request in s3.requests if "probe" in request]
    assert [request.split()[0] for request in probes] == ["PUT", "PUT"]
    assert sorted(s3.objects) == ["t/snapshot-0", "t/snapshot-1", "t/snapshot-2"]


def test_refused_credentials(s3) -> None:
    """A refusal is no unknown outcome; the hint points at the credentials, and no secret is shown anywhere."""
    io, root = s3.open("t")
    s3.denies_everything = True
    for act in (io.read_bytes, io.exists, io.list_directory, lambda path: io.create_exclusive(path, b"x")):
        with pytest.raises(StorageError, match="credentials") as raised:
            act(f"{root}/f")
        assert not isinstance(raised.value, OutcomeUnknown | FileMissing)
        assert "very-secret" not in str(raised.value) + repr(raised.value) + repr(io)


def test_missing_bucket(s3) -> None:
    """An absent bucket is an error, not an empty store and not an unknown outcome."""
    io, root = open_fileio("s3://no-such-bucket/t", {"s3.endpoint": s3.url, "s3.skip-signature": "true"})
    for act in (io.read_bytes, io.list_directory, lambda path: io.write_bytes(path, b"x")):
        with pytest.raises(StorageError, match="create the bucket") as raised:
            act(f"{root}/f")
        assert not isinstance(raised.value, OutcomeUnknown)


def test_unreachable_store() -> None:
    """A store that can not be reached says so; a publication attempt has an unknown outcome."""
    options = {"s3.endpoint": "http://127.0.0.1:9", "s3.skip-signature": "true", "s3.max-retries": "0"}
    io, root = open_fileio("s3://bucket/t", options)
    with pytest.raises(StorageError, match="can be reached"):
        io.read_bytes(f"{root}/f")
    with pytest.raises(OutcomeUnknown):
        io.write_bytes(f"{root}/f", b"x")


def test_listing_over_many_pages(s3) -> None:
    """Listings and deletions go on past the first page."""
    s3.page_size = 3
    io, root = s3.open("t")
    for number in range(10):
        io.write_bytes(f"{root}/d/f{number}", b"x")
    assert len(io.list_directory(f"{root}/d")) == 10
    assert len(list(io.list_recursive(root))) == 10
    io.rename_directory(f"{root}/d", f"{root}/e")
    assert len(io.list_directory(f"{root}/e")) == 10
    io.delete_directory(root)
    assert s3.objects == {}


def test_directory_markers_are_no_files(s3) -> None:
    """Empty objects that other tools leave as directory markers are not listed; empty files are."""
    io, root = s3.open("t")
    s3.objects |= {"t/": b"", "t/d/": b"", "t/d/f": b"x", "t/empty": b"", "t/z/": b"", "t/z/g": b"x"}
    assert [(s.name, s.is_directory) for s in io.list_directory(root)] == [("d", True), ("empty", False), ("z", True)]
    assert [s.name for s in io.list_directory(f"{root}/d")] == ["f"]
    assert [s.path for s in io.list_recursive(root)] == ["t/d/f", "t/empty", "t/z/g"]
    assert io.exists(f"{root}/d")


def test_large_upload_is_invisible_until_closed(s3) -> None:
    """A multipart upload appears when complete, and not at all when aborted."""
    io, root = s3.open("t")
    piece = b"x" * (9 << 20)
    with io.open_output(f"{root}/data-1") as output:
        output.write(piece)
        output.write(piece)
        assert s3.objects == {}
    assert len(s3.objects["t/data-1"]) == 2 * len(piece)
    output = io.open_output(f"{root}/data-2")
    output.write(piece)
    output.abort()
    assert sorted(s3.objects) == ["t/data-1"]


def test_failing_upload(s3) -> None:
    """An upload that fails on close is an error of ours and leaves no object."""
    io, root = s3.open("t", **NO_RETRY)
    output = io.open_output(f"{root}/data-1")
    output.write(b"x")
    s3.puts_failing = 1
    with pytest.raises(StorageError, match="data-1"):
        output.close()
    assert s3.objects == {}


def test_failing_read_under_parquet(s3) -> None:
    """A failing range request comes out of pyarrow's reader as an error of ours."""
    io, root = s3.open("t", **NO_RETRY)
    io.write_bytes(f"{root}/data.parquet", b"x" * 1000)
    file = io.open_input(f"{root}/data.parquet")
    s3.gets_failing = 1
    with pytest.raises(StorageError, match=r"data\.parquet"):
        pq.ParquetFile(file)


def test_pickle_reconnects(s3) -> None:
    """A pickled connection works on, with its settings."""
    io, root = s3.open("t")
    io.write_bytes(f"{root}/f", b"x")
    again = pickle.loads(pickle.dumps(io))
    assert again == io
    assert again.read_bytes(f"{root}/f") == b"x"


def test_paths_the_client_refuses() -> None:
    """Empty and relative segments are refused as an argument error."""
    io = ObjectStoreFileIO(MemoryStore())
    for path in ("a//b", "a/../b"):
        with pytest.raises(InvalidArgument, match="segments"):
            io.write_bytes(path, b"x")


def test_ill_typed_settings() -> None:
    """What the client itself refuses comes out as an option error."""
    with pytest.raises(InvalidOption, match="s3://bucket"):
        open_fileio("s3://bucket/x", {"s3.skip-signature": "perhaps"})


@pytest.mark.parametrize(
    ("url", "options", "root"),
    [
        ("s3a://bucket/a/b/", {"s3.skip-signature": "true"}, "a/b"),
        ("gs://bucket/a", {"gs.skip-signature": "true"}, "a"),
        ("az://container/a", {"az.account-name": "me", "az.skip-signature": "true"}, "a"),
        ("abfss://container@me.dfs.core.windows.net/a", {"az.skip-signature": "true"}, "a"),
        ("s3://bucket", {"s3.skip-signature": "true"}, ""),
    ],
)
def test_schemes(url: str, options: dict[str, str], root: str) -> None:
    """All schemes build a client without connecting, and yield the key below the bucket."""
    io, key = open_fileio(url, options)
    assert isinstance(io, ObjectStoreFileIO)
    assert key == root


def test_endpoint_from_the_environment_needs_proof(s3, monkeypatch: pytest.MonkeyPatch) -> None:
    """A store named by an environment variable has to prove itself too."""
    s3.honours_conditions = False
    monkeypatch.setenv("AWS_ENDPOINT_URL", s3.url)
    io, root = open_fileio("s3://lakebed-test/t", {"s3.skip-signature": "true", "s3.allow-http": "true"})
    with pytest.raises(Unsupported):
        io.create_exclusive(f"{root}/f", b"x")


def test_rename_reports_an_incomplete_copy(s3, monkeypatch: pytest.MonkeyPatch) -> None:
    """A rename that fails while copying leaves the source complete and says so."""
    store = MemoryStore()
    io = ObjectStoreFileIO(store, patience=Patience(most_repeats=0))
    for name in "ab":
        io.write_bytes(f"old/{name}", b"x")
    real = MemoryStore.copy

    def copy(self: MemoryStore, source: str, target: str) -> None:
        if source == "old/b":
            raise OSError("the line went dead")
        real(self, source, target)

    monkeypatch.setattr(MemoryStore, "copy", copy)
    with pytest.raises(StorageError, match="old is still complete; delete new"):
        io.rename_directory("old", "new")
    assert [status.name for status in io.list_directory("old")] == ["a", "b"]
    with pytest.raises(AlreadyExists):
        io.rename_directory("old", "new")
