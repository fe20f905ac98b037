"""How far a sync is, for a person who watches it: phase, rates and lags, of the whole and of each table."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

from lakebed.errors import LakebedError
from lakebed.units import format_size

if TYPE_CHECKING:
    from lakebed.cdc.progress import ProgressFile, SyncProgress
    from lakebed.cdc.start import SyncRun

_MOST_TABLES = 20
_LOOK_S = 2.0
_LINE_S = 10.0
_MOST_LINE_S = 300.0


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


def say(text: str) -> None:
    """One line for who reads along or keeps a log: on the error stream, with the time of day."""
    print(f"{time.strftime('%H:%M:%S')} {text}", file=sys.stderr, flush=True)  # noqa: T201


class ProgressLines:
    """Plain lines where there is no terminal: one when the state changes, and one for each interval in which something
    happened; a sync that has nothing to do says so every few minutes. What it sees is kept beside the checkpoint, for
    `lakebed cdc status`."""

    def __init__(self, kept: ProgressFile | None = None, clock: Callable[[], float] = time.monotonic) -> None:
        self._kept = kept
        self._clock = clock
        self._state: tuple[str, bool] | None = None
        self._parked: set[str] = set()
        self._batches = -1
        self._told_at = clock()
        self._looked_at = -_LOOK_S
        self.has_looked = False
        """Whether it has looked just now."""

    def tell(self, run: SyncRun, *, is_silent: bool = False) -> None:
        """Looks now and then, and says what there is to say."""
        now = self._clock()
        self.has_looked = now >= self._looked_at + _LOOK_S
        if not self.has_looked:
            return
        progress, self._looked_at = run.progress, now
        if self._kept is not None:
            with suppress(LakebedError):  # it is there for those who watch
                self._kept.write(progress)
        if not is_silent:
            for line in self._lines(progress, now):
                say(line)

    def _lines(self, progress: SyncProgress, now: float) -> Iterator[str]:
        before, self._state = self._state, (progress.phase, bool(progress.trouble))
        for name, why in progress.parked.items():
            if name not in self._parked:
                yield f"parked: {name}: {why}; after the cure: lakebed cdc resume {name}"
        for name in self._parked - progress.parked.keys():
            yield f"{name} follows again"
        self._parked = set(progress.parked)
        is_new_state = before != self._state
        has_moved = progress.batches != self._batches and now >= self._told_at + _LINE_S
        if not is_new_state and not has_moved and now < self._told_at + _MOST_LINE_S:
            return
        self._batches, self._told_at = progress.batches, now
        is_back = before is not None and before[1] and not progress.trouble
        yield f"going on: {headline(progress)}" if is_back else headline(progress)


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
    if progress.trouble:
        return f"waiting: {progress.trouble}"
    parts = [progress.phase, f"{progress.rows:,} changes", f"{progress.rows_per_second:,.0f}/s"]
    if progress.lag_bytes is not None:
        parts.append(f"{size_text(progress.lag_bytes)} behind")
    if progress.lag_seconds is not None:
        parts.append(f"{progress.lag_seconds:.1f} s behind")
    return " · ".join(parts)


def summary(progress: SyncProgress) -> str:
    """What was done, in one sentence for each thing."""
    lines = [f"{progress.rows:,} changes in {progress.batches:,} batches into {len(progress.tables):,} tables"]
    if progress.dead_letters:
        lines.append(f"{progress.dead_letters:,} rows put aside")
    lines += [f"parked: {table}: {why}" for table, why in progress.parked.items()]
    lines += [f"not followed: {table}: {why}" for table, why in progress.skipped.items()]
    return "\n".join(lines)


def size_text(size_bytes: int) -> str:
    """A size in the largest unit that leaves a number before the point."""
    for unit, factor in (("GB", 1 << 30), ("MB", 1 << 20), ("KB", 1 << 10)):
        if size_bytes >= factor:
            return f"{size_bytes / factor:.1f} {unit}"
    return format_size(size_bytes)


__all__ = ["ProgressLines", "drawn", "headline", "say", "shown_progress", "size_text", "summary"]
