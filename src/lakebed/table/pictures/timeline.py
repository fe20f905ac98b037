"""Snapshots over time: what each commit did, how many rows came or went, which have a name."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from lakebed.errors import InvalidArgument, NotFound
from lakebed.metadata.snapshot import CommitKind, Snapshot
from lakebed.notebook import moment
from lakebed.records import dataclass
from lakebed.table.pictures import svg
from lakebed.table.system.base import TableState

_MOST_SNAPSHOTS = 200
"""How many of the newest are drawn, unless somebody asks for more."""
_WIDTH, _LEFT, _MIDDLE, _HALF, _HEIGHT = 960, 8, 84, 56, 188
_COLOURS = {
    CommitKind.APPEND: "#0969da",
    CommitKind.COMPACT: "#8250df",
    CommitKind.OVERWRITE: "#bc4c00",
    CommitKind.ANALYZE: "#57606a",
}


@dataclass(frozen=True)
class TimelinePoint:
    """A snapshot: `rows` is how many records it has more than the one before."""

    id: int
    kind: str
    operation: str | None
    time_ms: int
    rows: int
    total_rows: int
    user: str
    tags: tuple[str, ...] = ()


@dataclass(frozen=True)
class Timeline:
    """The newest snapshots of a table, oldest first."""

    table: str
    points: tuple[TimelinePoint, ...]
    count: int
    """How many snapshots the table has."""

    def to_dict(self) -> dict[str, Any]:
        """Plain values only."""
        return {"table": self.table, "count": self.count, "points": [asdict(point) for point in self.points]}

    def to_svg(self) -> str:
        """The picture."""
        return _drawn(self)

    def _repr_svg_(self) -> str:
        return self.to_svg()

    def __repr__(self) -> str:
        return f"<timeline of {self.table}: {len(self.points)} of {self.count} snapshots; to_svg() draws them>"


def timeline(state: TableState, limit: int = _MOST_SNAPSHOTS) -> Timeline:
    """The newest `limit` snapshots of a table."""
    if limit < 1:
        raise InvalidArgument(f"there is no timeline of {limit} snapshots", hint="pass limit >= 1")
    stores = state.context.stores
    numbers = stores.snapshots.ids()
    points = []
    tags: dict[int, tuple[str, ...]] = {}
    for tag in stores.tags.list():
        tags[tag.snapshot.id] = (*tags.get(tag.snapshot.id, ()), tag.name)
    for number in numbers[-limit:]:
        try:
            points.append(_point(stores.snapshots.get(number), tags.get(number, ())))
        except NotFound:
            continue  # it expired since we looked
    return Timeline(state.context.name, tuple(points), len(numbers))


def _point(snapshot: Snapshot, tags: tuple[str, ...]) -> TimelinePoint:
    return TimelinePoint(
        id=snapshot.id,
        kind=str(snapshot.commit_kind),
        operation=snapshot.operation,
        time_ms=snapshot.time_millis,
        rows=snapshot.delta_record_count or 0,
        total_rows=snapshot.total_record_count or 0,
        user=snapshot.commit_user,
        tags=tags,
    )


def _drawn(given: Timeline) -> str:
    shapes: list[str] = []
    step = (_WIDTH - 2 * _LEFT) / max(1, len(given.points))
    most = max((abs(point.rows) for point in given.points), default=0) or 1
    shapes.append(svg.line(_LEFT, _MIDDLE, _WIDTH - _LEFT, _MIDDLE))
    for n, point in enumerate(given.points):
        x = _LEFT + n * step
        # The root keeps small commits visible beside large ones.
        tall = max(2.0, _HALF * (abs(point.rows) / most) ** 0.5)
        shapes.append(
            svg.bar(
                x,
                _MIDDLE - tall if point.rows >= 0 else _MIDDLE,
                max(1.5, min(step - 1, 28)),
                tall,
                fill=_COLOURS.get(CommitKind(point.kind), svg.FAINT),
                title=described(point),
                class_=f"snapshot {point.kind.lower()}",
                data_snapshot=point.id,
            )
        )
        for tag in point.tags[:1]:
            shapes.append(svg.text(x, 14, f"⚑ {tag}"))
            shapes.append(svg.line(x + 1, 18, x + 1, _MIDDLE, dashes="2 2"))
    if given.points:
        first, last = given.points[0], given.points[-1]
        shapes.append(svg.text(_LEFT, _HEIGHT - 24, f"{first.id} · {moment(first.time_ms)}"))
        shapes.append(svg.text(_WIDTH - _LEFT, _HEIGHT - 24, f"{moment(last.time_ms)} · {last.id}", anchor="end"))
    else:
        shapes.append(svg.text(_LEFT, _MIDDLE - 8, "no snapshots yet"))
    x = _LEFT
    for kind in CommitKind:
        shapes.append(svg.bar(x, _HEIGHT - 14, 10, 10, fill=_COLOURS[kind], title=str(kind), class_=kind.lower()))
        shapes.append(svg.text(x + 14, _HEIGHT - 5, str(kind).capitalize(), fill=svg.FAINT))
        x += 90
    return svg.picture(_WIDTH, _HEIGHT, f"Snapshots of {given.table}, {len(given.points)} of {given.count}", shapes)


def described(point: TimelinePoint) -> str:
    """All that is known of a snapshot, in lines."""
    named = f"\ntags {', '.join(point.tags)}" if point.tags else ""
    return (
        f"snapshot {point.id}\n{point.operation or point.kind}\n{moment(point.time_ms)}\n"
        f"{point.rows:+,} records, {point.total_rows:,} in all\nby {point.user}{named}"
    )


__all__ = ["Timeline", "TimelinePoint", "described", "timeline"]
