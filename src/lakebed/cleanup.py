"""What is done when a block fails: the one handler for every kind of exception, Ctrl-C included."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import Self


@contextmanager
def on_failure(undo: Callable[[], object]) -> Iterator[None]:
    """Calls `undo` if the block is left by an exception, which goes on."""
    try:
        yield
    except BaseException:
        undo()
        raise


class AbortedOnFailure(ABC):
    """Something in the making: a `with` block that is left by an exception gives it up, and otherwise does nothing."""

    @abstractmethod
    def abort(self) -> None:
        """Gives up what is not finished."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if error is not None:
            self.abort()


__all__ = ["AbortedOnFailure", "on_failure"]
