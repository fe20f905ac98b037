"""The questions: what must hold of a table after every step, and what must hold at the end of its history.

None of them changes the table. What an answer is compared with is the meaning, or what the table itself showed before.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from random import Random
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from tests.properties.combinations.findings import Finding
from tests.properties.ways_of_diff import WAYS, differences_by

import lakebed
from lakebed.embedded import overlay, tables
from lakebed.errors import LakebedError, Unsupported
from lakebed.metadata.snapshot import CommitKind
from lakebed.testing.conditions import comparison, membership, null_test
from lakebed.testing.model import Change, Row, Value, order_of
from lakebed.testing.model_arrow import changes_from_arrow, from_arrow, tally, tally_changes
from lakebed.types.logical import is_nested

if TYPE_CHECKING:
    from tests.properties.combinations.machine import Machine

Key = tuple[object, ...]


@dataclass
class Stream:
    """A reader that stopped here; another one goes on from its position."""

    position: Mapping[str, Any]
    snapshot: int
    """The newest snapshot that it has seen."""


def _asked(oracle: str, ask: Any) -> Any:
    """The answer; an error where none may be is a finding."""
    try:
        return ask()
    except Finding:
        raise
    except LakebedError as error:
        raise Finding(f"{oracle} fails", f"{type(error).__name__}: {error}") from error
    except Exception as error:
        raise Finding(f"{oracle} raises {type(error).__name__}", str(error)) from error


REARRANGING = {
    *("rollback_to", "rollback_to_as_latest", "fast_forward", "expire", "orphans", "crash", "rescale"),
    *("compact_manifest", "delete_tag"),
}
"""Operations after which files and their metadata are looked at at once, not with one of the next ones."""


def after_step(machine: Machine) -> None:
    """Asked after every step."""
    table = machine.handles[0]
    turn = len(machine.done)
    state = (machine.line, table.schema.id, _asked("a list of snapshots", table.snapshots))
    if state == machine.looked_at and turn % 4 and not machine.resyncs:
        return  # nothing was published; whether handles remember something wrong is asked now and then
    machine.looked_at = state
    shown = _asked("a read", machine.handles[turn % 2].to_arrow)
    note_snapshots(machine, table, from_arrow(shown))
    if machine.resyncs:
        resync(machine)
    check_shown(machine, shown)
    _check_told(machine)
    if turn % 4 == 0 or machine.done[-1].name in REARRANGING:
        _check_files(machine, table)
    if turn % 3 == 0:
        _check_stream(machine)
    if turn % 4 == 1:
        _check_pushed_down(machine, table, from_arrow(shown), Random(turn))
    if turn % 6 == 2:
        _check_queried(machine, shown, Random(turn))
    if turn % 4 == 3:
        _check_difference(machine, table, Random(turn))
    if turn % 6 == 5 and len(machine.line.rows) > 1:
        _check_past(machine, Random(turn).choice(sorted(machine.line.rows)))


def at_the_end(machine: Machine) -> None:
    """Asked once."""
    _check_files(machine, machine.open())
    for snapshot in sorted(machine.line.rows):
        _check_past(machine, snapshot)
    for tag, (_, rows) in machine.tag_states.items():
        found = from_arrow(_asked(f"a read of tag {tag}", lambda tag=tag: machine.open().at(tag=tag).to_arrow()))
        _same(found, rows, "a tag reads otherwise than when it was new")
    _check_everything_is_stored(machine)


# --- what is shown ----------------------------------------------------------------------------------------------------


def check_visible(machine: Machine, table: lakebed.Table) -> None:
    """The table shows its rows."""
    check_shown(machine, _asked("a read", table.to_arrow))


def check_shown(machine: Machine, data: pa.Table) -> None:
    """What a read has given is what the table has to show."""
    meaning = machine.meaning
    if data.column_names != meaning.model.schema.names:
        raise Finding("columns", f"{data.column_names}, expected {meaning.model.schema.names}")
    rows = from_arrow(data)
    if not meaning.has_key:
        _same(rows, meaning.rows(), "rows")
        return
    meaning.check_rows(rows, meaning.visible, "rows")


def note_snapshots(machine: Machine, table: lakebed.Table, shown: list[Row] | None = None) -> None:
    """Keeps what each new snapshot shows, and forgets those that are gone. `shown`: by the newest one."""
    line, meaning = machine.line, machine.meaning
    present = _asked("a list of snapshots", table.snapshots)
    ids = {snapshot.id for snapshot in present}
    for gone in [each for each in line.saved if each not in ids]:
        del line.saved[gone], line.rows[gone]
    new = [snapshot for snapshot in present if snapshot.id not in line.saved and snapshot.id not in line.forgotten]
    settled = meaning.save()
    before = line.saved[max(line.saved)] if line.saved else settled
    is_compaction = [snapshot.commit_kind == CommitKind.COMPACT for snapshot in new]
    prepared = 0 if all(is_compaction) else is_compaction.index(False)
    for number, snapshot in enumerate(new):
        is_shown = snapshot is present[-1] and snapshot.schema_id == table.schema.id
        if shown is not None and is_shown:
            rows = shown
        else:
            rows = from_arrow(_asked(f"a read of snapshot {snapshot.id}", table.at(snapshot=snapshot.id).to_arrow))
        line.rows[snapshot.id] = rows
        if meaning.tells_all and meaning.told_rows is not None:
            _apply(machine, changes_from_arrow(_asked("changes", lambda s=snapshot: table.changes(s.id - 1, s.id))))
        state = settled if snapshot is new[-1] else machine.unsettled
        if number < prepared:
            state = before  # compactions that a statement made before it read
        is_known = meaning.tells_all and meaning.told_rows is not None  # under other producers nobody replays
        told = {key: dict(row) for key, row in (meaning.told_rows or {}).items()} if is_known else None
        line.saved[snapshot.id] = replace(
            state, told_rows=told, schema_id=snapshot.schema_id, identifiers=dict(machine.identifiers)
        )


def _check_past(machine: Machine, snapshot: int) -> None:
    """A retained snapshot reads as it did when it was new."""
    found = from_arrow(_asked("a read of a retained snapshot", lambda: machine.open().at(snapshot=snapshot).to_arrow()))
    _same(found, machine.line.rows[snapshot], "a retained snapshot reads otherwise than when it was new")


def _check_everything_is_stored(machine: Machine) -> None:
    """Nothing that was written is lost: in a copy of the lake a full compaction shows all of it."""
    if machine.is_out_of_step:
        return
    directory = tempfile.mkdtemp(prefix="lakebed-copy-", dir=str(machine.directory))
    try:
        shutil.copytree(machine.url, f"{directory}/lake")
        table = lakebed.connect(f"{directory}/lake").table("t")
        _asked("a full compaction at the end", lambda: table.compact(full=True))
        meaning = machine.meaning
        found = from_arrow(_asked("a read after a full compaction", table.to_arrow))
        if meaning.has_key:
            settled = {key: (record,) for key, record in meaning.current().items()}
            meaning.check_rows(found, settled, "rows after a full compaction")
        else:
            _same(found, meaning.rows(), "rows after a full compaction")
        problems = _asked("a check", lambda: table.check(deep=True))
        if problems:
            raise Finding("check after a full compaction", "; ".join(problems[:3]))
    finally:
        shutil.rmtree(directory, ignore_errors=True)


# --- what is told -----------------------------------------------------------------------------------------------------


def _apply(machine: Machine, changes: Sequence[Change]) -> None:
    """Events fit what was told before them, to the value."""
    meaning = machine.meaning
    schema, told = meaning.model.schema, meaning.told_rows
    assert told is not None
    ids = {column.name: column.id for column in schema.columns}
    awaited: Key | None = None
    for kind, row in changes:
        key = tuple(order_of(row[name]) for name in meaning.key_names)
        stored = {ids[name]: value for name, value in row.items()}
        before = told.pop(key, None)
        if kind == "+U":
            if awaited != key:
                raise Finding("changelog: a +U without its -U", str(row))
            told[key], awaited = stored, None
            continue
        if awaited is not None:
            raise Finding("changelog: a -U without its +U", str(row))
        if kind == "+I":
            if before is not None:
                raise Finding("changelog: a +I of a key that is there", f"{row}, before {before}")
            told[key] = stored
            continue
        if before is None:
            raise Finding(f"changelog: a {kind} of a key that is not there", str(row))
        if tally([_named(before, ids)]) != tally([_named(stored, ids)]):
            raise Finding(f"changelog: a {kind} with a row that nobody saw", f"{row}, told was {before}")
        awaited = key if kind == "-U" else None
    if awaited is not None:
        raise Finding("changelog: a -U at the end", str(awaited))


def _named(row: Mapping[int, Value], ids: Mapping[str, int]) -> Row:
    return {name: row.get(each) for name, each in ids.items()}


def _check_told(machine: Machine) -> None:
    """Whoever replays the changes has the table."""
    meaning = machine.meaning
    if not meaning.tells_all or meaning.told_rows is None:
        return
    ids = {column.name: column.id for column in meaning.model.schema.columns}
    rows = [_named(row, ids) for row in meaning.told_rows.values()]
    meaning.check_rows(rows, meaning.told, "the sum of the changelog")


def _check_stream(machine: Machine) -> None:
    """A stream that goes on where another one stopped brings what `changes` tells of the snapshots since, once each."""
    table = machine.open()
    latest = table.latest_snapshot()
    if latest is None or not machine.meaning.tells_all:
        machine.stream = None
        return
    old = machine.stream
    if old is not None and old.snapshot in machine.line.saved and old.snapshot <= latest.id:
        follower = _asked("a stream that goes on", lambda: table.follow(position=old.position))
        pieces = _asked("a stream that goes on", lambda: list(follower))
        found = [change for piece in pieces for change in changes_from_arrow(piece)]
        wanted = changes_from_arrow(_asked("changes", lambda: table.changes(old.snapshot, latest.id)))
        if tally_changes(found) != tally_changes(wanted):
            raise Finding("a stream that goes on", f"after {old.snapshot}: {found}, changes tell {wanted}")
    else:
        follower = _asked("a stream", lambda: table.follow(options={"scan.mode": "latest"}))
        _asked("a stream", lambda: list(follower))
    machine.stream = Stream(follower.position, latest.id)


def resync(machine: Machine) -> None:
    """Begins to replay anew, from a state in which everything is told and shown."""
    meaning = machine.meaning
    schema = meaning.model.schema
    meaning.told_rows = {
        key: {column.id: schema.cell(record, column.id) for column in schema.columns}
        for key, record in meaning.current().items()
    }
    machine.resyncs = False
    latest = max(machine.line.saved, default=None)
    if latest is not None:
        told = {key: dict(row) for key, row in meaning.told_rows.items()}
        machine.line.saved[latest] = replace(machine.line.saved[latest], told_rows=told)


# --- how it is stored -------------------------------------------------------------------------------------------------


def _check_files(machine: Machine, table: lakebed.Table) -> None:
    """The table's own check finds nothing."""
    problems = _asked("a check", table.check)
    if problems:
        raise Finding("check", "; ".join(problems[:3]))


def _check_pushed_down(machine: Machine, table: lakebed.Table, rows: list[Row], random: Random) -> None:
    """Filters and projections of a read give what they give afterwards; so does a search by key."""
    meaning = machine.meaning
    columns = meaning.model.schema.columns
    column = random.choice(columns)
    known = [row[column.name] for row in rows if row[column.name] is not None]
    if known:
        value = random.choice(known)
        condition = random.choice(
            [
                comparison(column.name, column.type, random.choice(["==", "<", ">=", "!="]), value),
                membership(column.name, column.type, [value, None]),
                null_test(column.name, random.random() < 0.5),
            ]
        )
    else:
        condition = null_test(column.name, False)
    if (count := _asked("a count", table.count)) != len(rows):
        raise Finding("a count", f"{count}, not {len(rows)}")
    names = random.sample([each.name for each in columns], random.randint(1, len(columns)))
    found = from_arrow(_asked("a filtered read", lambda: table.to_arrow(names, condition.expression)))
    expected = [{name: row[name] for name in names} for row in rows if condition.holds(row) is True]
    _same(found, expected, "a filter that is pushed down")
    if meaning.has_key and rows:
        wanted = random.sample(rows, min(3, len(rows)))
        keys = machine.arrow(wanted).select(meaning.key_names)
        _same(from_arrow(_asked("a lookup", lambda: table.lookup(keys))), wanted, "a lookup")
    plain = [each.name for each in columns if not is_nested(each.type)]
    if plain and rows:
        by = random.sample(plain, min(len(plain), random.randint(1, 2)))
        asked, null_safe = random.sample(rows, min(2, len(rows))), random.random() < 0.5
        found = _asked("a lookup by", lambda: table.lookup(machine.arrow(asked).select(by), by=by, null_safe=null_safe))
        alike = [row for row in rows if any(_is_alike(row, other, by, null_safe) for other in asked)]
        _same(from_arrow(found), alike, f"a lookup by {by}")


def _is_alike(row: Row, other: Row, by: Sequence[str], null_safe: bool) -> bool:
    """Whether two rows are equal in these columns as SQL has it."""
    return all(
        null_safe if row[name] is None and other[name] is None else _is_equal(row[name], other[name]) for name in by
    )


def _is_equal(value: Value, other: Value) -> bool:
    return value is not None and (value == other or (value != value and other != other))


def _check_queried(machine: Machine, shown: pa.Table, random: Random) -> None:
    """A query in this process shows what the table shows, whichever way DuckDB gets its rows; so do some columns."""
    few, streamed = tables._SMALL_ROWS, overlay._KEPT_BYTES
    tables._SMALL_ROWS = -1  # else all of them would be read at once
    overlay._KEPT_BYTES = random.choice([streamed, -1])
    try:
        found = _asked("a query", lambda: _answer(machine, "SELECT * FROM t"))
        if found is None:
            return  # left to Spark
        if found.column_names != shown.column_names:
            raise Finding("columns of a query", f"{found.column_names}, not {shown.column_names}")
        _same(from_arrow(found.cast(shown.schema)), from_arrow(shown), "a query")
        name = random.choice(shown.column_names)
        part = _asked("a query of a column", lambda: _answer(machine, f"SELECT `{name}` FROM t WHERE `{name}` IS NULL"))
        if part is not None and part.num_rows != shown.column(name).null_count:
            raise Finding(
                "a query of a column", f"{part.num_rows} of {name} are null, not {shown.column(name).null_count}"
            )
        # Both are asked: what metadata tell, and what rows do.
        if not pa.types.is_integer(shown.schema.field(name).type):
            return
        text = f"SELECT count(*), min(`{name}`), max(`{name}`), count(`{name}`) FROM t"
        for told in ("", f" WHERE `{name}` IS NULL OR `{name}` IS NOT NULL"):
            totals = _asked("totals", lambda told=told: _answer(machine, text + told))
            if totals is not None:
                expected = _totals(shown, name)
                if repr(list(totals.to_pylist()[0].values())) != repr(expected):
                    raise Finding("totals of a query", f"{totals.to_pylist()} of {name}, not {expected}")
    finally:
        tables._SMALL_ROWS, overlay._KEPT_BYTES = few, streamed


def _totals(shown: pa.Table, name: str) -> list[object]:
    """How many rows, the least and greatest value of a column, how many are not null."""
    values = [value for value in shown.column(name).to_pylist() if value is not None]
    return [shown.num_rows, min(values, default=None), max(values, default=None), len(values)]


def _answer(machine: Machine, text: str) -> pa.Table | None:
    try:
        return machine.lake.query(text, engine="duckdb").arrow()
    except Unsupported:
        return None


def _check_difference(machine: Machine, table: lakebed.Table, random: Random) -> None:
    """What `diff` tells makes one state another."""
    meaning, line = machine.meaning, machine.line
    same = [each for each, saved in line.saved.items() if saved.schema_id == table.schema.id]
    if len(same) < 2:
        return
    before, after = sorted(random.sample(same, 2))
    if random.random() < 0.3:
        before, after = after, before
    for way in WAYS if meaning.has_key else ("as it is",):
        _check_one_difference(machine, table, before, after, way)


def _check_one_difference(machine: Machine, table: lakebed.Table, before: int, after: int, way: str) -> None:
    line = machine.line
    with differences_by(way):
        told = changes_from_arrow(_asked("a diff", lambda: table.diff(before, after)))
    plus = [row for kind, row in told if kind in ("+I", "+U")]
    minus = [row for kind, row in told if kind in ("-D", "-U")]
    state = tally(line.rows[before])
    state.subtract(tally(minus))
    state.update(tally(plus))
    state = +state if all(count >= 0 for count in state.values()) else state
    wanted = tally(line.rows[after])
    if state != wanted:
        raise Finding("a diff does not apply", f"{before} to {after}, {way}: {tally_changes(told)}")


def _same(found: Sequence[Row], expected: Sequence[Row], what: str) -> None:
    missing, extra = tally(expected) - tally(found), tally(found) - tally(expected)
    if missing or extra:
        raise Finding(what, f"missing {dict(missing)}, instead {dict(extra)}")


__all__ = ["Stream", "after_step", "at_the_end", "check_shown", "check_visible", "note_snapshots", "resync"]
