"""The local copies of a table's files in which its handle looks for rows."""

from __future__ import annotations

from lakebed.lsm.lookup.store import LookupLimits, LookupStore
from lakebed.options import LOOKUP_CACHE_FILE_RETENTION, LOOKUP_CACHE_MAX_DISK_SIZE, LOOKUP_CACHE_MAX_MEMORY_SIZE
from lakebed.table.context import TableContext
from lakebed.table.memory import Slot

LOOKUP_STORE: Slot[LookupStore] = Slot("lookup store")


def lookup_store(context: TableContext) -> LookupStore:
    """Made when first asked for. Copies outlive what they were made for: the next one will ask for the same files."""
    memory, options = context.memory, context.options
    with memory.lock:
        store = memory[LOOKUP_STORE]
        if store is None:
            limits = LookupLimits(
                options[LOOKUP_CACHE_MAX_DISK_SIZE],
                options[LOOKUP_CACHE_FILE_RETENTION],
                options[LOOKUP_CACHE_MAX_MEMORY_SIZE],
            )
            store = memory[LOOKUP_STORE] = LookupStore(limits, context.clock)
        return store


__all__ = ["lookup_store"]
