"""What `t.why(keys)` answers with: small records of plain values, and texts and tables of them for people."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from html import escape
from typing import Any

from lakebed.explain.texts import aligned, html_of, shown
from lakebed.merge.trace import Role
from lakebed.records import dataclass


@dataclass(frozen=True)
class Version:
    """One stored version of a row."""

    number: int
    """Its place in the order in which versions are merged, from 1."""
    kind: str
    """`+I`, `-U`, `+U` or `-D`."""
    state: str
    """`merged`, `deleted` (by a deletion vector), `hidden` (until compaction), `waiting` (for a bucket), `gone`."""
    values: Mapping[str, Any]
    roles: Mapping[str, Role]
    """The part that it plays in each column."""
    sequence_number: int
    level: int
    bucket: int
    partition: str
    file: str
    row: int
    """Its position in the file."""
    file_source: str
    """`write` or `compaction`: what made the file."""
    snapshot_id: int | None
    """The snapshot that brought the file; None if it has expired."""
    commit_user: str | None
    commit_kind: str | None
    commit_time: dt.datetime | None
    source_position: str | None
    """The place in the source up to which a sync had read when it wrote it."""
    replaced_in: int | None
    """For what is gone: the snapshot in which its file went."""
    note: str

    @property
    def gives(self) -> tuple[str, ...]:
        """The columns of the result that have this version's value."""
        return tuple(name for name, role in self.roles.items() if role is Role.VALUE)

    def to_dict(self) -> dict[str, Any]:
        """Plain data."""
        members = {name: getattr(self, name) for name in self.__dataclass_fields__}
        return members | {"values": dict(self.values), "roles": {k: v.name.lower() for k, v in self.roles.items()}}


@dataclass(frozen=True)
class ColumnWhy:
    """Where the value of one column comes from."""

    column: str
    value: Any
    version: int | None
    """The version whose value it is; None if it is made of several, or of none."""
    versions: tuple[int, ...]
    """All versions that the value is made of."""
    rule: str
    note: str

    def to_dict(self) -> dict[str, Any]:
        """Plain data."""
        return {name: getattr(self, name) for name in self.__dataclass_fields__} | {"versions": list(self.versions)}


@dataclass(frozen=True)
class KeyWhy:
    """One key: what reads show of it, and why."""

    key: Mapping[str, Any]
    row: Mapping[str, Any] | None
    """What reads show; None if they show nothing."""
    outcome: str
    """In a sentence."""
    columns: tuple[ColumnWhy, ...]
    versions: tuple[Version, ...]
    """Stored versions in the order in which they are merged, those that take no part among them."""
    gone: tuple[Version, ...]
    """What snapshots that are kept held of the key, and the state does not any more, oldest first."""

    def to_dict(self) -> dict[str, Any]:
        """Plain data."""
        return {
            "key": dict(self.key),
            "row": None if self.row is None else dict(self.row),
            "outcome": self.outcome,
            "columns": [each.to_dict() for each in self.columns],
            "versions": [each.to_dict() for each in self.versions],
            "gone": [each.to_dict() for each in self.gone],
        }

    def __repr__(self) -> str:
        parts = [f"{_pairs(self.key)}: {self.outcome}"]
        if self.columns:
            header = ("column", "value", "from", "rule", "")
            parts.append(aligned(header, [_column_cells(each) for each in self.columns]))
        for title, versions in (("stored versions", self.versions), ("earlier versions", self.gone)):
            if versions:
                parts.append(f"{title}, oldest first:\n" + aligned(_VERSION_HEADER, map(_version_cells, versions)))
        return "\n\n".join(parts)

    def _repr_html_(self) -> str:
        parts = [f"<p><b>{escape(_pairs(self.key))}</b>: {escape(self.outcome)}</p>"]
        if self.columns:
            header = ("column", "value", "from", "rule", "")
            parts.append(html_of("columns", header, [_column_cells(each) for each in self.columns]))
        for title, versions in (("stored versions", self.versions), ("earlier versions", self.gone)):
            if versions:
                parts.append(html_of(title, _VERSION_HEADER, [_version_cells(each) for each in versions]))
        return f"<div>{''.join(parts)}</div>"


_VERSION_HEADER = ("", "kind", "state", "values", "sequence", "snapshot", "by", "level", "file", "")


def _column_cells(column: ColumnWhy) -> tuple[str, ...]:
    if column.version is not None:
        source = f"#{column.version}"
    else:
        source = ", ".join(f"#{number}" for number in column.versions)
    return (column.column, shown(column.value), source, column.rule, column.note)


def _version_cells(version: Version) -> tuple[str, ...]:
    snapshot = "expired" if version.snapshot_id is None else str(version.snapshot_id)
    who = version.commit_user or ""
    return (
        f"#{version.number}",
        version.kind,
        version.state,
        _pairs(version.values),
        str(version.sequence_number),
        snapshot,
        version.file_source if version.file_source == "compaction" else who[:12],
        str(version.level),
        version.file,
        version.note,
    )


def _pairs(values: Mapping[str, Any]) -> str:
    return ", ".join(f"{name}={shown(value)}" for name, value in values.items())


__all__ = ["ColumnWhy", "KeyWhy", "Version"]
