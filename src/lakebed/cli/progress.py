"""How far a compaction has come, for a person who waits for it; nobody else is told."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

Progress = Callable[[int, int], None]
"""Takes how many buckets are done, and how many there are to do."""


@contextmanager
def compaction_progress(table: str, *, is_shown: bool) -> Iterator[Progress | None]:
    """What a compaction is to tell its progress to; None if nobody looks."""
    if not is_shown:
        yield None
        return
    from rich.console import Console  # takes as long to load as a short command takes to run
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    columns = (
        SpinnerColumn(),
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("buckets"),
        TimeElapsedColumn(),
    )
    # On the error stream: what the command has to say at the end stays alone on the other one.
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(table, total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)


__all__ = ["compaction_progress"]
