"""Requests beside each other: answers in their order, errors when all have ended, files that are on their way."""

from __future__ import annotations

import threading

import pytest

from lakebed.errors import AlreadyExists, StorageError
from lakebed.fileio.together import PutLater, ReadAhead, ask_together, delete_all
from lakebed.testing.s3_server import S3State


def test_answers_in_their_order(s3: S3State, tmp_path: object) -> None:
    """All at once on a store, one after the other elsewhere, and within threads of the store's own."""
    io, _ = s3.open("t")
    meet = threading.Barrier(3)
    assert ask_together(io, [lambda number=number: (meet.wait(10), number)[1] for number in range(3)]) == [0, 1, 2]
    nested = ask_together(io, [lambda: ask_together(io, [lambda: threading.current_thread().name] * 2)] * 2)
    assert len(set(nested[1])) == 1


def test_errors_come_when_all_have_ended(s3: S3State) -> None:
    """Nothing goes on behind the back of whoever was told of the error."""
    io, root = s3.open("t")
    ended = []

    def write() -> None:
        io.write_bytes(f"{root}/f", b"x")
        ended.append(True)

    def fail() -> None:
        raise StorageError("no", hint="none")

    for questions in ([fail, write], [write, fail]):
        ended.clear()
        s3.objects.clear()
        s3.delay_seconds = 0.05
        with pytest.raises(StorageError, match="no"):
            ask_together(io, questions)
        s3.delay_seconds = 0.0
        assert ended == [True]


def test_files_that_are_on_their_way(s3: S3State) -> None:
    """They are there when somebody reads, deletes or waits; a name that others have is not taken for ours."""
    io, root = s3.open("t")
    io.write_bytes(f"{root}/theirs", b"theirs")
    later = PutLater(io)
    s3.delay_seconds = 0.05
    for name in ("a", "b", "c"):
        later.write_bytes(f"{root}/{name}", name.encode())
    assert later.read_bytes(f"{root}/a") == b"a"
    assert later.delete(f"{root}/b") is True
    later.sync()
    assert sorted(s3.objects) == ["t/a", "t/c", "t/theirs"]
    later.write_bytes(f"{root}/theirs", b"ours")
    with pytest.raises(AlreadyExists):
        later.sync()
    assert later.taken == {"t/theirs"}
    assert s3.objects["t/theirs"] == b"theirs"


def test_reading_ahead(s3: S3State) -> None:
    """Each file is asked for once, in whatever order it is read, and others than those that were named as well."""
    io, root = s3.open("t")
    names = [f"{root}/{number:02}" for number in range(40)]
    s3.objects |= {name: name.encode() for name in names}
    s3.objects["t/other"] = b"other"
    ahead = ReadAhead(io, names)
    with s3.counted() as log:
        for name in [names[3], *names[:3], "t/other", *reversed(names[4:])]:
            assert ahead.read_bytes(name) == s3.objects[name]
    assert len(log) == 41


def test_deleting_many(s3: S3State) -> None:
    """A thousand to a request; what is gone already does not count."""
    io, root = s3.open("t")
    s3.objects |= {f"t/{number}": b"x" for number in range(2100)}
    with s3.counted() as log:
        delete_all(io, [f"{root}/{number}" for number in range(2200)])
    assert dict(log.kinds) == {"POST": 3}
    assert s3.objects == {}
