"""What is known of a materialized table, and where it stands: the definition among the options of the table, how far it
is among the properties of its snapshots."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, field, replace
from typing import Any

from lakebed.commit.replay import VIEW_PREFIX
from lakebed.errors import CorruptFile, InvalidArgument
from lakebed.metadata.snapshot import Snapshot
from lakebed.options import LAKEBED_VIEW_DEFINITION, LAKEBED_VIEW_QUERY
from lakebed.records import dataclass
from lakebed.table.table import Table

POLICIES = ("auto", "incremental", "incremental strict", "full")
"""What a refresh may do: choose, follow changes if that can be, follow changes or fail, compute all."""
CUT, REFRESH, WAY, REASON = (f"{VIEW_PREFIX}{word}" for word in ("cut", "refresh", "way", "reason"))


@dataclass(frozen=True, slots=True)
class SourceColumns:
    """A table that a query reads: all columns it had when the query was written, and id and type of those in use."""

    visible: tuple[str, ...]
    used: Mapping[str, tuple[int, str]]


@dataclass(frozen=True, slots=True)
class Definition:
    """A materialized table."""

    id: str
    """Who commits its refreshes."""
    query: str
    database: str
    """What plain names in the query refer to."""
    sources: Mapping[str, SourceColumns]
    shown: tuple[str, ...]
    key: tuple[str, ...] | None
    """Columns that tell rows apart; None if rows may be equal, which are numbered then."""
    has_hash: bool
    """Whether the primary key is the hash of the key, or of the whole row."""
    policy: str = "auto"
    freshness: str | None = None
    zone: str | None = None
    is_suspended: bool = False
    needs_spark: str | None = None
    """Why the query can only be answered by Spark; None if this process answers it."""
    named_key: tuple[str, ...] = ()
    """The primary key that the user has named; none if it is what the query tells."""
    replaces: str | None = None
    """The id of the one in whose place it is to come."""

    def to_options(self) -> dict[str, str]:
        """As options of the table."""
        members = {key: value for key, value in asdict(self).items() if key != "query"}
        return {LAKEBED_VIEW_QUERY.key: self.query, LAKEBED_VIEW_DEFINITION.key: json.dumps(members)}

    @staticmethod
    def of(table: Table) -> Definition | None:
        """The definition of a table; None if it is no materialized one."""
        options = table.options
        query = options.get(LAKEBED_VIEW_QUERY.key)
        if query is None:
            return None
        try:
            members: dict[str, Any] = json.loads(options.get(LAKEBED_VIEW_DEFINITION.key, ""))
            sources = {
                name: SourceColumns(tuple(each["visible"]), {c: (int(i), str(t)) for c, (i, t) in each["used"].items()})
                for name, each in members.pop("sources").items()
            }
            key = members.pop("key")
            shown = tuple(members.pop("shown"))
            members["named_key"] = tuple(members.get("named_key", ()))
            return Definition(
                query=query, sources=sources, key=None if key is None else tuple(key), shown=shown, **members
            )
        except (ValueError, TypeError, KeyError) as error:
            raise CorruptFile(
                f"table `{table.name}`: option `{LAKEBED_VIEW_DEFINITION.key}` can not be read",
                hint=f"drop the table and create it again; its query is in option `{LAKEBED_VIEW_QUERY.key}`",
            ) from error

    def changed(self, **changes: Any) -> Definition:
        """The same with something else in it."""
        return replace(self, **changes)


def definition_of(table: Table) -> Definition:
    """The definition of a materialized table; an error for any other."""
    found = Definition.of(table)
    if found is None:
        raise InvalidArgument(
            f"`{table.name}` is an ordinary table, not a materialized one",
            hint="look at SHOW MATERIALIZED TABLES, or make one with CREATE MATERIALIZED TABLE",
        )
    return found


@dataclass(frozen=True, slots=True)
class Place:
    """A snapshot of a table, told by more than its id: after a rollback another one may have the same. 0: none yet."""

    id: int
    token: str = ""
    is_told: bool = field(default=True, compare=False)
    """Whether the table's changelog has told of all its rows."""
    shown_by: str | None = field(default=None, compare=False)
    """The options of the table that decided what the snapshot showed: empty for most, None where nobody noted them."""

    def to_list(self) -> list[Any]:
        """As a part of a property."""
        return [self.id, self.token, self.is_told, self.shown_by]

    @staticmethod
    def of(snapshot: Snapshot | None) -> Place:
        """The place of a snapshot."""
        return Place(0) if snapshot is None else Place(snapshot.id, snapshot.uuid or str(snapshot.time_millis))


@dataclass(frozen=True, slots=True)
class SyncBatch:
    """A batch of a sync, as of which tables of a cut are."""

    batch: int
    tables: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Cut:
    """Which snapshot of each table a state of a query belongs to; `below` those that tables among them belong to.

    `syncs` says by their commit users which batches of syncs these are.
    """

    tables: Mapping[str, Place] = field(default_factory=dict)
    below: Mapping[str, Place] = field(default_factory=dict)
    syncs: Mapping[str, SyncBatch] = field(default_factory=dict)

    def to_text(self) -> str:
        """As a property."""
        members: dict[str, Any] = {
            part: {name: place.to_list() for name, place in sorted(places.items())}
            for part, places in (("tables", self.tables), ("below", self.below))
        }
        if self.syncs:
            members["syncs"] = {user: [each.batch, *each.tables] for user, each in sorted(self.syncs.items())}
        return json.dumps(members)

    @staticmethod
    def of_text(text: str) -> Cut:
        """From a property."""
        members = json.loads(text)
        tables, below = ({name: Place(*place) for name, place in members[p].items()} for p in ("tables", "below"))
        syncs = {user: SyncBatch(batch, tuple(names)) for user, (batch, *names) in members.get("syncs", {}).items()}
        return Cut(tables, below, syncs)

    @property
    def all(self) -> dict[str, Place]:
        """All tables, at whatever depth."""
        return {**self.below, **self.tables}


def cut_of(snapshot: Snapshot | None) -> Cut | None:
    """The cut that a snapshot of a materialized table belongs to; None if it is of none."""
    text = (snapshot.properties or {}).get(CUT) if snapshot is not None else None
    return None if text is None else Cut.of_text(text)


def refresh_number(snapshot: Snapshot | None) -> int:
    """Which refresh a snapshot comes from; 0 before the first."""
    return int((snapshot.properties or {}).get(REFRESH, 0)) if snapshot is not None else 0
