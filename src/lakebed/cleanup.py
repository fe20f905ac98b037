"""What is done when a block fails: the one handler for every kind of exception, Ctrl-C included."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def on_failure(undo: Callable[[], object]) -> Iterator[None]:
    """Calls `undo` if the block is left by an exception, which goes on."""
    try:
        yield
    except BaseException:
        undo()
        raise


__all__ = ["on_failure"]
