"""A stream for pyarrow's writers that never fails in their hands.

pyarrow's writers write once more while they are destroyed. When the stream underneath was closed by then, because the
file was given up, or is broken, the ORC writer ends the whole process and the Parquet writer complains on standard
error. So failures are kept here until the format's own code asks for them. They also write many small pieces: those
are gathered here before they go through Python's file objects.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa

_GATHERED_BYTES = 1 << 16


class CarefulSink:
    """Forwards bytes until the first failure, then takes them without storing."""

    def __init__(self, stream: pa.NativeFile, watch: Callable[[bytes], None] | None = None) -> None:
        """`watch` sees the bytes on their way to the stream."""
        self._stream = stream
        self._watch = watch
        self._gathered: list[bytes] = []
        self._gathered_bytes = 0
        self._failure: BaseException | None = None
        self._held: list[bytes] | None = None
        self.closed = False
        self.file = pa.PythonFile(self, mode="w")
        """What pyarrow writes to."""

    def check(self) -> None:
        """Hands on all that was written so far. Raises what the first failed write raised."""
        if self._failure is not None:
            raise self._failure
        self._hand_on()

    def write(self, data: Any) -> int:
        """Never raises."""
        if self._held is not None:
            self._held.append(bytes(data))
        elif self._failure is None:
            try:
                if self._watch is not None:
                    self._watch(data)
                if len(data) >= _GATHERED_BYTES:
                    self._hand_on()
                    self._stream.write(data)  # not copied once more
                else:
                    self._gather(bytes(data))  # the writer's own buffer may be gone by the time it goes on
            except BaseException as failure:  # noqa: BLE001 - nothing may pass through the libraries
                self._failure = failure
        return len(data)

    def _gather(self, data: bytes) -> None:
        self._gathered.append(data)
        self._gathered_bytes += len(data)
        if self._gathered_bytes >= _GATHERED_BYTES:
            self._hand_on()

    def _hand_on(self) -> None:
        gathered, self._gathered, self._gathered_bytes = self._gathered, [], 0
        if gathered:
            self._stream.write(gathered[0] if len(gathered) == 1 else b"".join(gathered))

    def hold(self) -> None:
        """From now on keeps what is written."""
        self._held = []

    def release(self) -> bytes:
        """What was written since `hold`; forwards again from now on."""
        held, self._held = self._held or [], None
        return b"".join(held)

    def tell(self) -> int:
        """The position in the stream."""
        return int(self._stream.tell()) + self._gathered_bytes

    def flush(self) -> None:
        """Does nothing: the stream's owner makes promises."""

    def close(self) -> None:
        """Leaves the stream open: it belongs to the caller."""
        self.closed = True

    def readable(self) -> bool:
        """Asked by pyarrow."""
        return False

    def writable(self) -> bool:
        """Asked by pyarrow."""
        return True

    def seekable(self) -> bool:
        """Asked by pyarrow."""
        return False
