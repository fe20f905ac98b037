"""What a handle remembers of its table from one call to the next, so that the next need not read it again. Only hints.

A part that remembers something has a slot for it, beside the code that uses it:

    BUCKET_STATES: Slot[BucketStates] = Slot("bucket states", of_history=True)
    context.memory[BUCKET_STATES]                      # None before it was set

INVARIANT: whatever is remembered is checked against the snapshot it is used for, or is `of_history` and forgotten when
the table goes on from another snapshot than its last. Sequence numbers that went on from a forgotten history would let
older rows win.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from lakebed.metadata.stores import ManifestCache

_T = TypeVar("_T")


class Slot(Generic[_T]):
    """A place in a table's memory for one thing of one type."""

    def __init__(self, name: str, *, of_history: bool = False, is_shared: bool = False) -> None:
        self.name = name
        self.of_history = of_history
        """Whether it follows from what was committed last, and is wrong after a rollback."""
        self.is_shared = is_shared
        """Whether other handles of the table may have it at the same time."""

    def __repr__(self) -> str:
        return f"Slot({self.name!r})"


class TableMemory(dict[Slot[Any], Any]):
    """The memory of one handle, or of all handles of a table in one worker."""

    def __init__(self) -> None:
        super().__init__()
        self.manifests = ManifestCache()
        self.lock = threading.Lock()

    if TYPE_CHECKING:

        def __getitem__(self, slot: Slot[_T]) -> _T | None: ...

        def __setitem__(self, slot: Slot[_T], value: _T | None) -> None: ...

    def __missing__(self, slot: Slot[_T]) -> None:
        return None

    def __bool__(self) -> bool:
        return True

    def take(self, slot: Slot[_T]) -> _T | None:
        """What is in the slot, which is empty from then on: for what one user changes while it uses it."""
        found: _T | None = self.pop(slot, None)
        return found

    def handed_on(self) -> TableMemory:
        """A memory for another handle of the table, with what several may have."""
        made = TableMemory()
        made.manifests = self.manifests
        for slot in [slot for slot in self if slot.is_shared]:
            made[slot] = self[slot]
        return made

    def for_upkeep(self) -> TableMemory:
        """A memory for those who decide what goes, or whether all is well: see `ManifestCache.for_upkeep`."""
        made = TableMemory()
        made.manifests = self.manifests.for_upkeep()
        return made

    def forget_history(self) -> None:
        """The table goes on from another snapshot than the last one of this handle."""
        for slot in [slot for slot in self if slot.of_history]:
            del self[slot]


__all__ = ["Slot", "TableMemory"]
