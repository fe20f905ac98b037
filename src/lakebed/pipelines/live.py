"""What a SELECT in streaming mode returns: changes of its result, batch by batch, for as long as somebody asks."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from types import TracebackType
from typing import Any, Protocol, Self

import pyarrow as pa

from lakebed.cleanup import on_failure
from lakebed.clock import SystemClock
from lakebed.errors import InvalidArgument
from lakebed.sql.result import drawn
from lakebed.table.compact_follow import Stop
from lakebed.views.live import ROW_KIND


class Feed(Protocol):
    """Where the changes of a query come from."""

    schema: pa.Schema
    """`rowkind`, then the columns of the query."""

    @property
    def only_grows(self) -> bool:
        """Whether rows are only added."""
        ...

    @property
    def is_over(self) -> bool:
        """Whether nothing can come any more."""
        ...

    @property
    def has_more(self) -> bool:
        """Whether it is worth the while to ask again at once after something has come."""
        ...

    def step(self) -> pa.Table | None:
        """What has come since the last step; None if nothing."""
        ...

    def close(self) -> None:
        """Lets go of what runs for it."""
        ...


class LiveResult(Iterator[pa.Table]):
    """The changelog of a query: iterate over it for Arrow tables whose first column, `rowkind`, is `+I`, `-U`, `+U` or
    `-D`. It begins with all rows, and waits for changes; `stop()` ends it, from any thread, and so does `with`."""

    def __init__(self, feed: Feed, interval_ms: int, limit: int | None = None) -> None:
        self._feed = feed
        self._pause_s = interval_ms / 1000
        self._left = limit
        self._stop = threading.Event()
        self._is_closed = False
        self._due_s = 0.0
        """Not before then the next look."""

    def __repr__(self) -> str:
        return f"<streaming SELECT: {', '.join(self.columns)}>"

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        raise AttributeError(
            f"a SELECT in streaming mode has no `{name}`: it does not end\n  -> iterate over it, or call show(); "
            "lake.sql(\"SET 'execution.runtime-mode' = 'batch'\") for rows as they are now",
            name=name,
            obj=self,
        )

    # --- what it is ----------------------------------------------------------------------------------------------

    @property
    def schema(self) -> pa.Schema:
        """Schema of what comes: `rowkind`, then the columns of the query."""
        return self._feed.schema

    @property
    def columns(self) -> list[str]:
        """Names of the columns, `rowkind` first."""
        return list(self.schema.names)

    @property
    def only_grows(self) -> bool:
        """Whether all rows are `+I`: nothing that was told is ever taken back."""
        return self._feed.only_grows

    @property
    def is_active(self) -> bool:
        """Whether something may still come."""
        return not self._is_closed and not self._stop.is_set() and self._left != 0

    # --- what comes ----------------------------------------------------------------------------------------------

    def __next__(self) -> pa.Table:
        found = self.poll(None)
        if found is None:
            raise StopIteration
        return found

    def poll(self, timeout: float | None = 0) -> pa.Table | None:
        """What has come; None if nothing does within so many seconds (None: waits for ever), or nothing ever will."""
        if timeout is not None and (isinstance(timeout, bool) or not isinstance(timeout, int | float)):
            raise InvalidArgument(f"timeout is {timeout!r}", hint="pass seconds, or None to wait")
        end = None if timeout is None else time.monotonic() + timeout
        while self.is_active:
            if time.monotonic() >= self._due_s:
                found = self._look()
                if found is not None:
                    return found
            if self._feed.is_over:
                self.close()
            elif end is not None and time.monotonic() >= end:
                return None
            else:
                self._wait(end)
        self.close()
        return None

    def _look(self) -> pa.Table | None:
        self._due_s = time.monotonic() + self._pause_s
        with on_failure(self.close):
            rows = self._feed.step()
        if rows is None or not rows.num_rows:
            return None
        if self._left is not None:
            rows = rows.slice(0, self._left)
            self._left -= rows.num_rows
        if self._feed.has_more:
            self._due_s = 0.0
        return rows

    def _wait(self, end: float | None) -> None:
        """Until it is time for the next look."""
        due = self._due_s if end is None else min(self._due_s, end)
        Stop.of(self._stop).wait(max(1, int((due - time.monotonic()) * 1000)), SystemClock())

    def show(self, n: int | None = None, truncate: bool | int = True) -> None:
        """Prints rows as they come, a table for each batch, until it ends or has printed so many rows."""
        width = 20 if truncate is True else int(truncate)
        while n is None or n > 0:
            rows = self.poll(None)
            if rows is None:
                return
            rows = rows if n is None else rows.slice(0, n)
            n = None if n is None else n - rows.num_rows
            values = list(zip(*(column.to_pylist() for column in rows.columns), strict=True))
            print(drawn(self.columns, values, width), flush=True)  # noqa: T201 - that is its task

    # --- the end -------------------------------------------------------------------------------------------------

    def stop(self) -> None:
        """Ends it: whoever waits for rows gets no more."""
        self._stop.set()

    def close(self) -> None:
        """Ends it, and what runs for it."""
        self._stop.set()
        if not self._is_closed:
            self._is_closed = True
            self._feed.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()


__all__ = ["ROW_KIND", "Feed", "LiveResult"]
