"""What a process that works on tables sets once: memory that stays warm, and garbage that is not looked through again.

Spark's Python workers are processes of their own, which know nothing of what the driver has set. They live on from
task to task, so that each of our tasks begins by asking for this, and all but the first find it done. Knows nothing of
tables, and imports no Spark unless a task asks.
"""

from __future__ import annotations

import gc
import os

import pyarrow as pa

_is_ready = False


def keep_memory_warm() -> None:
    """Lets Arrow reuse freed memory, unless the user chose an allocator.

    Arrow's default hands large blocks back to the system at once, which then clears new ones for the next batch: up to
    two thirds of the CPU time of a full read, and the reason why two runs of it differ so much.
    """
    is_chosen = "ARROW_DEFAULT_MEMORY_POOL" in os.environ or pa.default_memory_pool().backend_name != "mimalloc"
    if not is_chosen and "jemalloc" in pa.supported_memory_backends():
        pa.set_memory_pool(pa.jemalloc_memory_pool())


def prepare_worker() -> None:
    """Makes one of Spark's Python workers ready for our tasks. Does nothing anywhere else.

    Spark has a worker collect garbage after every task. That goes through all that its modules consist of: 40 ms, more
    than many a task takes, so what is there by now is put aside for good.
    """
    global _is_ready  # noqa: PLW0603 (of this process, like what it stands for)
    if _is_ready or not _is_worker():
        return
    keep_memory_warm()
    gc.collect()
    gc.freeze()
    _is_ready = True


def _is_worker() -> bool:
    from pyspark import TaskContext  # tasks run where Spark is

    return TaskContext.get() is not None
