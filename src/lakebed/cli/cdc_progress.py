"""How far a sync is, for a person who watches it: phase, rates and lags, of the whole and of each table."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from lakebed.units import format_size

if TYPE_CHECKING:
    from lakebed.cdc.progress import SyncProgress

_MOST_TABLES = 20


@contextmanager
def shown_progress(*, is_shown: bool) -> Iterator[Callable[[SyncProgress], None] | None]:
    """What progress is to be told to; None if nobody looks."""
    if not is_shown:
        yield None
        return
    from rich.console import Console  # takes as long to load as a short command takes to run
    from rich.live import Live

    # On the error stream: what the command has to say at the end stays alone on the other one.
    with Live(console=Console(stderr=True), transient=True, refresh_per_second=4) as live:
        yield lambda progress: live.update(drawn(progress))


def drawn(progress: SyncProgress) -> Any:
    """The progress as a table, busiest tables first."""
    from rich import box
    from rich.table import Table
    from rich.text import Text

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, title=Text(headline(progress)), title_justify="left")
    for name in ("table", "phase", "changes", "commits", "schema changes", "lag"):
        table.add_column(name, justify="left" if name in ("table", "phase") else "right")
    busiest = sorted(progress.tables, key=lambda each: -each.rows)
    for each in busiest[:_MOST_TABLES]:
        lag = "" if each.lag_seconds is None else f"{each.lag_seconds:.1f} s"
        cells = (each.table, each.phase, f"{each.rows:,}", f"{each.commits:,}", str(each.schema_changes or ""), lag)
        table.add_row(*(Text(cell) for cell in cells))
    if len(busiest) > _MOST_TABLES:
        table.add_row(Text(f"and {len(busiest) - _MOST_TABLES} more"))
    return table


def headline(progress: SyncProgress) -> str:
    """The whole in one line."""
    parts = [progress.phase, f"{progress.rows:,} changes", f"{progress.rows_per_second:,.0f}/s"]
    if progress.lag_bytes is not None:
        parts.append(f"{size_text(progress.lag_bytes)} behind")
    if progress.lag_seconds is not None:
        parts.append(f"{progress.lag_seconds:.1f} s behind")
    return " · ".join(parts)


def summary(progress: SyncProgress) -> str:
    """What was done, in one sentence for each thing."""
    lines = [f"{progress.rows:,} changes in {progress.batches:,} batches into {len(progress.tables):,} tables"]
    lines += [f"not followed: {table}: {why}" for table, why in progress.skipped.items()]
    return "\n".join(lines)


def size_text(size_bytes: int) -> str:
    """A size in the largest unit that leaves a number before the point."""
    for unit, factor in (("GB", 1 << 30), ("MB", 1 << 20), ("KB", 1 << 10)):
        if size_bytes >= factor:
            return f"{size_bytes / factor:.1f} {unit}"
    return format_size(size_bytes)


__all__ = ["drawn", "headline", "shown_progress", "size_text", "summary"]
