"""Tables read at one moment of their source: what `lake.consistent` and `lake.at` give.

The snapshots are chosen as for a refresh (`cut`), once; all that is read through the object is read from them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from sqlglot import exp

from lakebed.catalog.names import parse_table_name
from lakebed.commit.replay import SYNC_POSITION
from lakebed.errors import InvalidArgument, NotFound, Unsupported, did_you_mean
from lakebed.metadata.snapshot import Snapshot
from lakebed.metadata.source_position import is_reached, own_words
from lakebed.records import dataclass
from lakebed.sql.parse import parse
from lakebed.sql.query.references import is_common_expression, references
from lakebed.sql.query.run import answer, run_query
from lakebed.sql.session import SqlLake
from lakebed.sql.statements import Query, Sql
from lakebed.sql.words.parameters import Arguments, bound
from lakebed.table.table import Table
from lakebed.views.batches import Notes, NothingYet, Sync, TableBatches
from lakebed.views.cut import ChosenCut, chosen_cut
from lakebed.views.sources import pinned_at
from lakebed.views.store import Definition, cut_of

if TYPE_CHECKING:
    from lakebed.sql.query.answer import QueryResult


@dataclass(frozen=True, slots=True)
class PinnedTable:
    """A table of a cut: its snapshot (None: before its first one), the source's position then, and why this one."""

    table: Table
    snapshot: int | None
    position: str | None
    why: str
    keeps_transactions: bool


class ConsistentTables:
    """Tables at one cut: no transaction of a source is in some of them and not in others."""

    def __init__(self, lake: SqlLake, pinned: Mapping[str, PinnedTable]) -> None:
        self._lake = lake
        self._pinned = dict(pinned)

    def __repr__(self) -> str:
        where = f" as of {self.position}" if self.position is not None else ""
        return f"<{len(self._pinned)} tables{where}: {', '.join(sorted(self._pinned))}>"

    @property
    def position(self) -> str | None:
        """The source's own position (LSN, transaction ids, offsets) as of which the tables are.

        None if they are of no sync, or of several: see `positions`.
        """
        found = {each.position for each in self._pinned.values() if each.position is not None}
        return found.pop() if len(found) == 1 else None

    @property
    def positions(self) -> dict[str, str | None]:
        """The position of each table; None for those of no sync."""
        return {name: each.position for name, each in self._pinned.items()}

    @property
    def snapshots(self) -> dict[str, int | None]:
        """The snapshot of each table; None for one that had none yet."""
        return {name: each.snapshot for name, each in self._pinned.items()}

    @property
    def why(self) -> dict[str, str]:
        """Of each table, how its snapshot was chosen: by which batch of which sync, or for itself."""
        return {name: each.why for name, each in self._pinned.items()}

    @property
    def keeps_transactions(self) -> bool:
        """Whether no transaction of a source is seen in part. Messages do not tell where transactions end."""
        return all(each.keeps_transactions for each in self._pinned.values())

    def table(self, name: str) -> Table:
        """A table at its snapshot; read only."""
        full = self._full(name)
        if full not in self._pinned:
            raise NotFound(
                f"`{full}` is not among the tables that were chosen together", hint=did_you_mean(full, self._pinned)
            )
        return self._pinned[full].table

    def __getitem__(self, name: str) -> Table:
        return self.table(name)

    def __iter__(self) -> Iterator[str]:
        return iter(self._pinned)

    def query(self, sql: str, args: Arguments = None, *, engine: str = "auto") -> QueryResult:
        """The rows of a SELECT over these tables, as `lake.query` gives them."""
        inside, statement = self._read(sql, args)
        return answer(inside, statement.sql, engine)

    def sql(self, sql: str, args: Arguments = None) -> Any:
        """A SELECT over these tables, as `lake.sql` gives it."""
        inside, statement = self._read(sql, args)
        return run_query(inside, statement)

    def _full(self, name: str) -> str:
        return str(parse_table_name(name, self._lake.current_database))

    def _read(self, text: str, args: Arguments) -> tuple[Any, Query]:
        statements = parse(bound(text, args))
        if len(statements) != 1 or not isinstance(statements[0], Query):
            raise InvalidArgument("the text is not one query", hint="pass one SELECT; tables of a cut are read only")
        inside = _LakeAt(self._lake, self)
        _refuse_others(inside, statements[0].sql)
        return inside, statements[0]


class _LakeAt:
    """The lake as queries over a cut see it: its tables at their snapshots, and no others."""

    def __init__(self, lake: SqlLake, tables: ConsistentTables) -> None:
        self._lake = lake
        self._tables = tables
        self.settings: dict[str, str] = {}

    def __getattr__(self, name: str) -> Any:
        return getattr(self._lake, name)

    def table(self, name: str) -> Table:
        """The table of that name, at its snapshot."""
        return self._tables.table(name)


def _refuse_others(lake: Any, sql: Sql) -> None:
    """Raises for what a query reads that is not at the cut: views of a session, other states of a table."""
    found = references(lake, sql)
    for reference in found:
        if reference.node.meta.keys() & {"options", "version"} or isinstance(reference.node.this, exp.Func):
            raise Unsupported(
                f"`{reference.name}` is read at another state, and all tables here are as of one",
                hint="leave VERSION AS OF, TIMESTAMP AS OF and OPTIONS out, or ask the lake itself",
            )
    ours = {id(reference.node) for reference in found}
    for node in sql.tables():
        if id(node) not in ours and not is_common_expression(node) and not isinstance(node.this, exp.Func):
            raise Unsupported(
                f"`{node.sql('spark')}` is no table of the lake, and so not as of the same moment",
                hint="read the tables that were chosen together, or ask the lake itself",
            )


# --- which tables, at which cut --------------------------------------------------------------------------------------


def consistent_tables(lake: SqlLake, names: Sequence[str], position: str | None = None) -> ConsistentTables:
    """Tables of these names, all of the current database without any, at one cut: the newest, or that of a position."""
    tables = _opened(lake, names)
    try:
        most = None if position is None else _most_at(lake, tables, position)
        chosen = chosen_cut(lake, "of the query", tables, None, most)
    except NothingYet as waits:
        raise NotFound(
            f"there is no state of all tables together yet: {waits.reason}",
            hint="wait for the sync, whose progress says in which phase it is; or read a table by itself",
        ) from waits
    return ConsistentTables(lake, {name: _pinned(chosen, name, table) for name, table in tables.items()})


def _opened(lake: SqlLake, names: Sequence[str]) -> dict[str, Table]:
    if any(not isinstance(name, str) for name in names):
        raise InvalidArgument("a name of a table is no text", hint='write consistent("db.a", "db.b")')
    chosen = list(names) or [f"`{lake.current_database}`.`{name}`" for name in lake.tables()]
    if not chosen:
        raise NotFound(f"database `{lake.current_database}` has no tables", hint="name tables of another one")
    found = [lake.table(name) for name in chosen]
    for table in found:
        if "$" in table.name:
            raise Unsupported(f"`{table.name}` is a view or a branch of a table", hint="name the table itself")
    return {table.name: table for table in found}


def _pinned(chosen: ChosenCut, name: str, table: Table) -> PinnedTable:
    snapshot = chosen.snapshots[name]
    number = None if snapshot is None else snapshot.id
    below = cut_of(snapshot) if Definition.of(table) is not None else None
    mine = {name} if below is None else {each for seen in below.syncs.values() for each in seen.tables}
    batches = {user: seen.batch for user, seen in chosen.cut.syncs.items() if mine & set(seen.tables)}
    position, keeps, why = None, True, []
    for user, batch in batches.items():
        sync = chosen.syncs.get(user)
        if sync is not None:
            position, keeps = _position(chosen, sync, batch), keeps and sync.note.keeps_transactions
            why.append(f"batch {batch} of the sync from {sync.note.source}")
    if Definition.of(table) is not None:
        why = [f"its own cut, {each}" for each in why] or ["its own cut"]
    elif not why:
        why = ["of no sync: its newest snapshot whose changes are told"]
    return PinnedTable(pinned_at(table, snapshot), number, position, "; ".join(why), keeps)


def _position(chosen: ChosenCut, sync: Sync, batch: int) -> str | None:
    """The source's position at a batch: that of the note, or of the last batch up to it that has rows for a table."""
    if batch == sync.note.cut_at():
        return sync.note.position
    return _newest_of([_position_of(chosen.snapshots.get(name)) for name in sync.tables])


def _newest_of(positions: Sequence[str | None]) -> str | None:
    known = [each for each in positions if each is not None]
    return next((each for each in known if all(is_reached(other, each) for other in known)), None)


def _position_of(snapshot: Snapshot | None) -> str | None:
    offset = (snapshot.properties or {}).get(SYNC_POSITION) if snapshot is not None else None
    return None if offset is None else own_words(offset)


def _most_at(lake: SqlLake, tables: Mapping[str, Table], position: str) -> dict[str, int]:
    """The newest batch of the sync of some tables at or before a position of its source."""
    notes = Notes()
    syncs: dict[str, Sync] = {}
    for name, table in tables.items():
        for note, mine in notes.of(table):
            syncs.setdefault(note.user, Sync(note)).tables[name] = mine
    if len(syncs) > 1:
        raise InvalidArgument(
            f"the tables are of {len(syncs)} syncs, whose positions are not the same thing",
            hint="name the tables of one of them",
        )
    if not syncs:
        raise NotFound(f"no table is of a sync, so there is no position `{position}`", hint="leave it out")
    (sync,) = syncs.values()
    sync.newest()
    newest = sync.note.position or ""
    if not is_reached(position, newest):
        raise NotFound(f"position `{position}` is not in the lake yet", hint=f"the newest there is is `{newest}`")
    most = sync.newest()
    for name in sync.tables:
        most = min(most, _last_before(TableBatches(tables[name]), sync.user, position, most))
    if sync.note.cut_at(most) is None:
        first = sync.note.stretches[0][0]
        states = [TableBatches(tables[name]).newest_within({sync.user: first}) for name in sync.tables]
        raise NotFound(
            f"position `{position}` is before the first at which all tables were there",
            hint=f"the oldest there is is `{_newest_of(list(map(_position_of, states)))}`",
        )
    return {sync.user: most}


def _last_before(known: TableBatches, user: str, position: str, most: int) -> int:
    """The newest batch as of which a table is at or before a position."""

    def is_before(snapshot: Snapshot) -> bool:
        there = _position_of(snapshot)
        return there is None or is_reached(there, position)

    try:
        last = known.until(known.newest_where(is_before), user)
    except NotFound as expired:
        oldest = known.oldest()
        raise NotFound(
            f"position `{position}` has expired in `{known.name}`",
            hint=f"the oldest there is is `{_position_of(oldest)}`; keep snapshots longer (`snapshot.time-retained`)",
        ) from expired
    return most if last is None else last


__all__ = ["ConsistentTables", "PinnedTable", "consistent_tables"]
