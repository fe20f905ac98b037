"""What one micro-batch of a streaming query reads: pieces of one snapshot or of many, the same ones whenever it asks.

Planned on the driver from metadata alone. A batch takes all there is, or as much as the table's options allow; then it
may end inside a snapshot. Knows nothing of Spark, so that all of it can be tried without.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from typing import Any

from lakebed.changes.position import StreamPosition
from lakebed.changes.splits import ChangeSplit, Telling
from lakebed.changes.stream import StreamLimits, StreamPlan, StreamScan, row_count
from lakebed.definition.context import TableContext
from lakebed.errors import InvalidArgument
from lakebed.records import dataclass
from lakebed.spark.read import parts_of

_TASK_BYTES = 16 << 20
"""Files of one task, about. Rows of one bucket that have an order stay together, however many they are."""


@dataclass(frozen=True, slots=True)
class Piece:
    """Some rows of a snapshot: of its whole state, or of its changes."""

    snapshot_id: int
    time_ms: int
    is_full: bool
    split: ChangeSplit

    @property
    def position(self) -> StreamPosition:
        """Where its snapshot stands in the stream."""
        return StreamPosition(self.snapshot_id, self.is_full)


@dataclass(frozen=True, slots=True)
class StreamBatch:
    """The pieces between two offsets. `is_cut` tells that more was there than the limits allow."""

    end: StreamOffset
    pieces: tuple[Piece, ...]
    is_cut: bool = False

    def is_enough(self, limits: StreamLimits, now_ms: int) -> bool:
        """Whether as many rows wait as the limits ask for, or the first of them has waited as long as they allow."""
        if limits.min_rows is None or limits.max_delay_ms is None or self.is_cut:
            return True
        changes = [piece for piece in self.pieces if not piece.is_full]
        if len(changes) < len(self.pieces) or not changes:
            return True
        rows = sum(row_count(piece.split.split) for piece in changes)
        return rows >= limits.min_rows or now_ms >= changes[0].time_ms + limits.max_delay_ms


@dataclass(slots=True)
class _Allowance:
    """What a batch may still take."""

    limits: StreamLimits
    is_fresh: bool = True
    files: int = field(default=0)
    size_bytes: int = field(default=0)
    rows: int = field(default=0)

    def take(self, piece: ChangeSplit) -> bool:
        """Whether the piece is taken; the first one always is."""
        files = self.files + len(piece.split.files)
        size_bytes = self.size_bytes + piece.split.size_bytes
        rows = self.rows + row_count(piece.split)
        used = ((self.limits.max_files, files), (self.limits.max_bytes, size_bytes), (self.limits.max_rows, rows))
        if not self.is_fresh and any(most is not None and total > most for most, total in used):
            return False
        self.is_fresh, self.files, self.size_bytes, self.rows = False, files, size_bytes, rows
        return True


def next_batch(
    scan: StreamScan, start: StreamOffset, limits: StreamLimits | None = None, until: int | None = None
) -> StreamBatch:
    """What is there after an offset, within the limits, and of snapshots before `until`."""
    allowance = _Allowance(limits or StreamLimits())
    began = start.position if start.is_first else None
    end, pieces = replace(start, is_first=False, began=began), list[Piece]()
    for plan, behind in _plans(scan, start):
        if until is not None and not plan.position.is_full and plan.snapshot.id >= until:
            break
        waiting = plan.splits[behind:]
        taken = next((at for at, item in enumerate(waiting) if not allowance.take(item)), len(waiting))
        pieces += _pieces(plan, waiting[:taken])
        if taken < len(waiting):
            if taken:
                passed = behind + taken
                end = StreamOffset(plan.after(passed), _fingerprint(plan.splits[:passed]), began=began)
            return StreamBatch(end, tuple(pieces), is_cut=True)
        end = StreamOffset(plan.end, began=began)
    return StreamBatch(end, tuple(pieces))


def batch_between(scan: StreamScan, start: StreamOffset, end: StreamOffset) -> StreamBatch:
    """The same pieces again, from the offsets alone."""
    start = start.begins(end)
    pieces: list[Piece] = []
    if start.position == end.position:
        return StreamBatch(end, ())
    for plan, behind in _plans(scan, start):
        if plan.position == replace(end.position, index=0):
            _check_cut(scan, plan, end)
            pieces += _pieces(plan, plan.splits[behind : end.position.index])
            return StreamBatch(end, tuple(pieces))
        if plan.snapshot.id > end.position.snapshot:
            break
        pieces += _pieces(plan, plan.splits[behind:])
        if plan.end == end.position:
            return StreamBatch(end, tuple(pieces))
    raise InvalidArgument(
        f"table `{scan.context.name}`: a batch from {start.position.to_members()} to {end.position.to_members()} can "
        "not be read again",
        hint="the table's options were changed, or the checkpoint is of another query; start with a new checkpoint "
        "directory",
    )


def _plans(scan: StreamScan, start: StreamOffset) -> Iterator[tuple[StreamPlan, int]]:
    """Plans of whole snapshots from the one at the offset on, each with how many of its pieces are behind."""
    plan = scan.whole_plan(replace(start.position, index=0))
    if plan is None:
        return
    _check_cut(scan, plan, start)
    yield plan, start.position.index
    while (plan := scan.whole_plan(plan.end)) is not None:
        yield plan, 0


def _check_cut(scan: StreamScan, plan: StreamPlan, offset: StreamOffset) -> None:
    """Raises if what lies behind the offset in its snapshot is not what was read when the offset was made."""
    if offset.position.index and _fingerprint(plan.splits[: offset.position.index]) != offset.behind:
        raise InvalidArgument(
            f"table `{scan.context.name}`: the query stopped inside snapshot {plan.snapshot.id}, which is cut into "
            "other pieces now",
            hint="options that say how a table is read were changed, such as `source.split.target-size` or "
            "`scan.partitions`: set them as they were until the snapshot is through, or start with a new checkpoint "
            "directory",
        )


def _pieces(plan: StreamPlan, splits: Sequence[ChangeSplit]) -> list[Piece]:
    snapshot = plan.snapshot
    return [Piece(snapshot.id, snapshot.time_millis, plan.position.is_full, split) for split in splits]


def task_pieces(context: TableContext, pieces: Sequence[Piece]) -> list[list[Piece]]:
    """The pieces of each task, about the same amount of work for each, in their order."""
    chains = _chains(context, pieces)
    sizes = [sum(piece.split.split.size_bytes for piece in chain) for chain in chains]
    total_bytes = max(1, sum(sizes))
    tasks = max(1, -(-total_bytes // _TASK_BYTES))
    groups: list[list[Piece]] = [[] for _ in range(tasks)]
    before_bytes = 0
    for chain, size_bytes in zip(chains, sizes, strict=True):
        middle = before_bytes + size_bytes // 2
        groups[min(middle * tasks // total_bytes, tasks - 1)] += chain
        before_bytes += size_bytes
    return [group for group in groups if group]


def _parts(piece: Piece) -> Iterator[Piece]:
    """A piece whose rows have no order, as several that are each one task's work. Offsets go on counting whole ones."""
    for part in parts_of([piece.split.split], most_bytes=_TASK_BYTES):
        yield replace(piece, split=replace(piece.split, split=part))


def _chains(context: TableContext, pieces: Sequence[Piece]) -> list[list[Piece]]:
    """Pieces that must be read one after the other by the same task: rows of one bucket, where these have an order.

    Without buckets they have none. In the state of a table with a key no row of one piece is in another, but newer rows
    of its keys may wait for their bucket outside of it. What is overwritten may have been in other buckets before.
    """
    mode = context.bucket_mode
    if not mode.has_buckets:
        return [[part] for piece in pieces for part in _parts(piece)]
    moves = mode.postpones or any(piece.split.telling is Telling.AS_DELETES for piece in pieces)
    buckets: dict[tuple[bytes, int], list[Piece]] = {}
    for piece in pieces:
        split = piece.split.split
        place = (split.partition, 0 if moves else split.bucket)
        buckets.setdefault(place, []).append(piece)
    chains: list[list[Piece]] = []
    for chain in buckets.values():
        is_state = all(piece.is_full and piece.split.telling is Telling.AS_INSERTS for piece in chain)
        chains += [[piece] for piece in chain] if context.has_key and is_state else [chain]
    return chains


# ------------------------------------------------------------------------------------------------------------------
# Where a streaming query stands, as Spark keeps it in the query's checkpoint: a stream position, and what proves it.
#
# A position inside a snapshot counts pieces, so it holds only while the snapshot is cut into the same pieces: the
# offset names what lies behind it. And Spark forgets where a query began: if the first batch fails and the query is
# started again, it asks for the beginning once more, which may be elsewhere by then. So the end of the first batch
# knows it.


@dataclass(frozen=True, slots=True)
class StreamOffset:
    """`behind` is the fingerprint of the pieces of the snapshot that are read already, 0 if there are none."""

    position: StreamPosition
    behind: int = 0
    is_first: bool = False
    """Whether the query begins here."""
    began: StreamPosition | None = None
    """Where the query began, if this is the end of its first batch."""

    def to_members(self) -> dict[str, Any]:
        """As JSON takes it."""
        members = self.position.to_members()
        if self.behind:
            members["behind"] = self.behind
        if self.is_first:
            members["first"] = True
        if self.began is not None:
            members["began"] = self.began.to_members()
        return members

    @staticmethod
    def from_members(members: Any) -> StreamOffset:
        """The offset that `to_members` gave."""
        if not isinstance(members, Mapping):
            raise InvalidArgument(f"{members!r} is no offset of a stream", hint="start with a new checkpoint directory")
        rest = dict(members)
        behind, is_first, began = rest.pop("behind", 0), rest.pop("first", False), rest.pop("began", None)
        return StreamOffset(
            StreamPosition.from_members(rest),
            int(behind),
            bool(is_first),
            None if began is None else StreamPosition.from_members(began),
        )

    def begins(self, end: StreamOffset) -> StreamOffset:
        """Where the batch that ends there begins: here, unless this is only where the query would begin by now."""
        return StreamOffset(end.began, is_first=True) if self.is_first and end.began is not None else self


def _fingerprint(pieces: Iterable[ChangeSplit]) -> int:
    """A number that tells these pieces from others, and from none."""
    number = 0
    for piece in pieces:
        number = zlib.crc32(" ".join(file.file_name for file in piece.split.files).encode() + b"\n", number)
    return number


__all__ = ["Piece", "StreamBatch", "StreamOffset", "batch_between", "next_batch", "task_pieces"]
