"""What both kinds of expiry share: the ids that follow on one another, and the careful end of one of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from lakebed.errors import CommitConflict, NotFound
from lakebed.fileio.base import FileIO
from lakebed.maintenance.plan import Step
from lakebed.metadata.snapshot import Snapshot


@dataclass(frozen=True, slots=True)
class Expired:
    """What an expiry removed: ids of snapshots and of long-lived changelogs, and how many files went with them."""

    snapshots: tuple[int, ...] = ()
    changelogs: tuple[int, ...] = ()
    file_count: int = 0
    remaining: int = 0
    """How many more are due, which the most that may go at once left for the next time."""

    def __bool__(self) -> bool:
        return bool(self.snapshots or self.changelogs)

    def __add__(self, other: Expired) -> Expired:
        return Expired(
            self.snapshots + other.snapshots,
            self.changelogs + other.changelogs,
            self.file_count + other.file_count,
            self.remaining + other.remaining,
        )


class Overtaken(CommitConflict):
    """Something came in between that the plan does not know of: plan again. `done` is what went before that."""

    done = Expired()


def end_all(
    steps: Iterable[Step], end: Callable[[Step], int], told: Callable[[tuple[int, ...], int], Expired]
) -> Expired:
    """Ends one snapshot or changelog after another; what has gone is told also when something comes in between."""
    ids: list[int] = []
    file_count = 0
    for step in steps:
        try:
            file_count += end(step)
        except Overtaken as overtaken:
            overtaken.done = told(tuple(ids), file_count)
            raise
        ids.append(step.snapshot.id)
    return told(tuple(ids), file_count)


def line_of(ids: Sequence[int]) -> range:
    """The ids up to the newest without a gap. One below a gap is no predecessor of anything: it is left alone."""
    if not ids:
        return range(0)
    start = len(ids) - 1
    while start > 0 and ids[start - 1] == ids[start] - 1:
        start -= 1
    return range(ids[start], ids[-1] + 1)


def is_still_there(get: Callable[[int], Snapshot], planned: Snapshot) -> bool:
    """Whether the snapshot has not gone since the plan was made: nobody but another expiry may have touched it."""
    try:
        found = get(planned.id)
    except NotFound:
        return False
    if found != planned:
        raise Overtaken(
            f"snapshot {planned.id} is another one than when the expiry was planned",
            hint="the table was rolled back or made anew: expire again",
        )
    return True


def remove_empty_directories(fileio: FileIO, root: str, steps: Iterable[Step]) -> None:
    """Removes the buckets and partitions below the root that lost their last file."""
    buckets = {path.rpartition("/")[0] for step in steps for path in step.paths}
    for directory in sorted(name for name in buckets if "/bucket-" in name and name.startswith(f"{root}/")):
        while directory != root and fileio.delete_empty_directory(directory):
            directory = directory.rpartition("/")[0]


def delete_files(fileio: FileIO, step: Step) -> int:
    """Deletes a step's files in their order; how many were there."""
    return sum(fileio.delete(path) for path in step.paths)
