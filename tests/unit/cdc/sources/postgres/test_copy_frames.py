"""Messages of the protocol, cut out of what a socket gives: in any pieces, of any length."""

from __future__ import annotations

import socket
import threading
import time
from types import SimpleNamespace
from typing import Any

import numpy as np
import psycopg
import pytest

from lakebed.cdc.sources.postgres.log.frames import FRAME_BYTES, CopyFrames, CopyRefused
from lakebed.cdc.sources.postgres.log.messages import Messages, stored_pieces


def frame(kind: bytes, body: bytes = b"") -> bytes:
    """A message as the server sends it."""
    return kind + (len(body) + 4).to_bytes(4, "big") + body


class Server:
    """The other end of a connection, which plays what it is given in pieces of a size."""

    def __init__(self, *frames: bytes, piece_bytes: int = 1 << 16) -> None:
        self._mine, self._theirs = socket.socketpair()
        self._theirs.setblocking(False)
        self._data, self._piece_bytes = b"".join(frames), piece_bytes
        raw = SimpleNamespace(
            socket=self._theirs.fileno(), ssl_in_use=False, exec_=lambda _: SimpleNamespace(ntuples=0)
        )
        self.connection: Any = SimpleNamespace(pgconn=raw)
        self.asked = b""

    def __enter__(self) -> Server:
        self._thread = threading.Thread(target=self._play)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._thread.join()
        self._mine.close()
        self._theirs.close()

    def _play(self) -> None:
        self.asked = self._mine.recv(1 << 16)
        for start in range(0, len(self._data), self._piece_bytes):
            self._mine.sendall(self._data[start : start + self._piece_bytes])


def received(frames: CopyFrames, count: int) -> list[bytes]:
    """So many messages, without their frames."""
    found: list[bytes] = []
    while len(found) < count:
        some = frames.receive(1.0)
        found += [some.whole(index)[FRAME_BYTES:] for index in range(len(some))]
    return found


@pytest.mark.parametrize("piece_bytes", [1, 7, 1 << 16])
def test_messages_come_whole_and_in_order(piece_bytes: int) -> None:
    """However the bytes arrive, the messages are the same; notices among them are left out."""
    bodies = [bytes([number % 251]) * (number % 40) for number in range(120)]
    data = [frame(b"d", body) for body in bodies]
    data.insert(50, frame(b"N", b"a notice"))
    with Server(frame(b"W", b"\0\0\0"), *data, piece_bytes=piece_bytes) as server:
        frames = CopyFrames(server.connection, "START")
        assert received(frames, len(bodies)) == bodies
        frames.close()
        assert server.asked == frame(b"Q", b"START\0")


def test_a_message_may_be_longer_than_the_buffer() -> None:
    """Five megabytes in one message arrive, and so does what comes after them."""
    long = bytes(np.random.default_rng(1).integers(0, 256, 5 << 20, dtype=np.uint8))
    with Server(frame(b"W"), frame(b"d", long), frame(b"d", b"next")) as server:
        frames = CopyFrames(server.connection, "START")
        assert received(frames, 2) == [long, b"next"]
        frames.close()


def test_a_copy_ends_when_the_server_is_ready() -> None:
    """The end of a COPY is no row, and leaves nothing unread."""
    end = [frame(b"c"), frame(b"C", b"COPY 2\0"), frame(b"Z", b"T")]
    with Server(frame(b"H"), frame(b"d", b"1,a\n"), frame(b"d", b"2,b\n"), *end) as server:
        frames = CopyFrames(server.connection, "COPY")
        rows = b""
        while not frames.is_over:
            rows += frames.receive(1.0).bodies().to_pybytes()
        frames.close()
        assert rows == b"1,a\n2,b\n"


def test_the_end_of_a_copy_may_come_by_itself() -> None:
    """It is a message without a body: where the next would begin, there is nothing yet."""
    messages = Messages(frame(b"d", b"x") + frame(b"c"), np.array([6, 5]), FRAME_BYTES)
    assert messages.tags.tolist() == [ord("x"), 0]
    assert messages.bodies().to_pybytes() == b"x"


def test_what_came_with_the_answer_is_not_waited_for() -> None:
    """A short COPY is here as a whole when it begins: whoever waited for more would wait for nothing."""
    end = [frame(b"c"), frame(b"C", b"COPY 1\0"), frame(b"Z", b"T")]
    with Server(frame(b"H"), frame(b"d", b"1,a\n"), *end) as server:
        frames = CopyFrames(server.connection, "COPY")
        began = time.monotonic()
        assert frames.receive(60.0).bodies().to_pybytes() == b"1,a\n"
        assert frames.is_over
        assert time.monotonic() - began < 30
        frames.close()


def test_what_the_server_refuses_is_told() -> None:
    """An error in place of a stream comes with the server's words, and the connection is ready again."""
    error = frame(b"E", b"SERROR\0C55006\0Mslot is active for PID 7\0\0")
    with Server(error, frame(b"Z", b"I")) as server, pytest.raises(CopyRefused, match="slot is active for PID 7"):
        CopyFrames(server.connection, "START")


@pytest.mark.parametrize("last", [frame(b"E", b"SFATAL\0Mterminating\0\0"), frame(b"c")])
def test_a_stream_that_ends_is_an_error(last: bytes) -> None:
    """A replication has no end: an error or a farewell of the server means that the connection is lost."""
    with Server(frame(b"W"), last) as server:
        frames = CopyFrames(server.connection, "START")
        with pytest.raises(psycopg.OperationalError):
            received(frames, 1)
        frames.close()


def test_messages_are_stored_in_parts_and_found_again() -> None:
    """Parts that are written one behind the other are read as one, and pieces of it share its memory."""
    parts = [
        Messages.of([b"__" + bytes([65 + number]) * number for number in numbers], 2) for numbers in ((1, 2), (3,))
    ]
    stored = Messages.from_bytes(memoryview(b"".join(stored_pieces(parts))))
    assert [stored.whole(index) for index in range(3)] == [b"__B", b"__CC", b"__DDD"]
    assert [bytes(piece.tags) for piece in stored.pieces(2)] == [b"BC", b"D"]
    assert stored.taken(np.array([True, False, True])).bodies().to_pybytes() == b"BDDD"
