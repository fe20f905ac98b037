"""Which changes an incremental read asks for: from which state to which, and told by what.

The options `incremental-between` (snapshots or tags), `incremental-between-timestamp` and `incremental-to-auto-tag`
each name a range whose start is left out and whose end is taken in. Changes are told by the files that were added
(`delta`), by changelog files (`changelog`), or by comparing the two states (`diff`).
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Iterator, Sequence

import pyarrow as pa

from lakebed.changes.splits import ChangeReader, ChangeSplit, change_splits, refuse_unmergeable, sieve_of
from lakebed.definition.changelog_rules import NONE, producer
from lakebed.definition.context import TableContext
from lakebed.definition.moments import History, is_moment, is_travelling, snapshot_at_time, snapshot_of_tag, to_millis
from lakebed.definition.scan_mode import DEFAULT, INCREMENTAL, POINTS
from lakebed.errors import InvalidArgument, InvalidOption, NotFound
from lakebed.metadata.entries import changelog_entries, delta_entries
from lakebed.metadata.manifest import EntryKind, ManifestEntry
from lakebed.metadata.snapshot import CommitKind, Snapshot
from lakebed.options import (
    INCREMENTAL_BETWEEN,
    INCREMENTAL_BETWEEN_SCAN_MODE,
    INCREMENTAL_BETWEEN_TAG_TO_SNAPSHOT,
    INCREMENTAL_BETWEEN_TIMESTAMP,
    INCREMENTAL_TO_AUTO_TAG,
    SCAN_MODE,
)
from lakebed.read.plan import FileSieve
from lakebed.records import dataclass

AUTO, DELTA, CHANGELOG, DIFF = "auto", "delta", "changelog", "diff"
_RANGES = POINTS[INCREMENTAL]


@dataclass(frozen=True, slots=True)
class ChangeRange:
    """Changes of the snapshots after `since` up to `until`. With `diff` the snapshots of both ends are there."""

    since: int
    until: int
    mode: str
    before: Snapshot | None = None
    after: Snapshot | None = None


def asked_range(context: TableContext, pinned: Snapshot | None = None) -> ChangeRange | None:
    """The range that the options ask for; None if they name one that holds nothing. `pinned` must not be there."""
    options, names = context.options, ", ".join(f"`{option.key}`" for option in _RANGES)
    given = [option for option in _RANGES if options.has(option)]
    travels = pinned is not None or is_travelling(options)
    if len(given) != 1 or travels:
        found = " and ".join(f"`{option.key}`" for option in given) or f"`{SCAN_MODE.key}` = `{INCREMENTAL}` alone"
        found += " together with a point in time" if travels else ""
        raise InvalidOption(
            f"table `{context.name}`: an incremental read needs one range, and there is {found}",
            hint=f"set exactly one of {names}, and nothing that chooses a single snapshot",
        )
    if options[SCAN_MODE] not in (DEFAULT, INCREMENTAL):
        raise InvalidOption(
            f"table `{context.name}`: `{SCAN_MODE.key}` = `{options[SCAN_MODE]}` does not go with `{given[0].key}`",
            hint=f"leave `{SCAN_MODE.key}` out, or set it to `{INCREMENTAL}`",
        )
    if given[0] is INCREMENTAL_BETWEEN:
        return _between(context, *_two(context, INCREMENTAL_BETWEEN.key, options[INCREMENTAL_BETWEEN]))
    if given[0] is INCREMENTAL_BETWEEN_TIMESTAMP:
        return _between_times(
            context, *_two(context, INCREMENTAL_BETWEEN_TIMESTAMP.key, options[INCREMENTAL_BETWEEN_TIMESTAMP])
        )
    return _to_auto_tag(context, str(options[INCREMENTAL_TO_AUTO_TAG]))


def _range_of_ids(context: TableContext, since: int, until: int, mode: str) -> ChangeRange:
    """The range between two snapshots. What has expired, or is not there yet, is an error."""
    history = History(context.stores)
    latest = history.latest_id()
    if since < 0 or until < since:
        raise InvalidArgument(
            f"table `{context.name}`: there is no range from snapshot {since} to snapshot {until}",
            hint="the first is left out and the last taken in: 0 and 3 are the first three snapshots",
        )
    if until > (latest or 0):
        raise NotFound(
            f"table `{context.name}` has no snapshot {until} yet: its latest is {latest or 'not written'}",
            hint=f"end the range at {latest}" if latest else "write to the table first",
        )
    mode = _resolved_mode(context, mode)
    if mode == DIFF:
        return ChangeRange(since, until, mode, _state(context, since), _state(context, until))
    # Changelogs may outlive their snapshots.
    earliest = history.earliest_id() if mode == CHANGELOG else history.earliest_snapshot_id()
    if earliest is not None and since < until and since + 1 < earliest:
        raise _expired(context, since, earliest)
    return ChangeRange(since, until, mode)


def _resolved_mode(context: TableContext, mode: str) -> str:
    """The mode itself; `auto` is the changelog if the table writes one, else what was added."""
    if mode == AUTO:
        return DELTA if producer(context.options) == NONE else CHANGELOG
    return mode


def state_named(context: TableContext, name: int | str | dt.date) -> Snapshot | None:
    """The snapshot of an id, a tag or a moment; 0 is the table before its first snapshot."""
    if isinstance(name, dt.date):  # or a datetime, which is one
        return snapshot_at_time(context.stores, to_millis(name), context.name)
    if isinstance(name, bool) or not isinstance(name, int | str) or (isinstance(name, int) and name < 0):
        raise InvalidArgument(
            f"{name!r} is neither a snapshot nor a tag",
            hint="pass a snapshot's id (0: the empty table), a tag's name, or a datetime",
        )
    if isinstance(name, str) and context.stores.tags.exists(name):
        return context.stores.tags.get(name).snapshot
    if isinstance(name, str) and not _is_id(name) and is_moment(name):
        raise NotFound(f"table `{context.name}` has no tag `{name}`", hint="for a time pass a datetime")
    if isinstance(name, str) and not _is_id(name):
        return snapshot_of_tag(context.stores, name, context.name)
    return _state(context, int(name))


def entries_of(context: TableContext, asked: ChangeRange, sieve: FileSieve) -> list[ManifestEntry]:
    """Files that tell the changes of a range, in the order of their commits.

    Compactions change no row and overwrites replace rather than change; both are passed over. Added files that reads
    do not show, because some of their rows may never count, tell nothing.
    """
    found: list[ManifestEntry] = []
    history = History(context.stores)
    for snapshot_id in range(asked.since + 1, asked.until + 1):
        snapshot = history.changes(snapshot_id) if asked.mode == CHANGELOG else history.state(snapshot_id)
        if snapshot is None:
            raise _expired(context, asked.since, snapshot_id + 1)  # meanwhile
        if asked.mode == CHANGELOG:
            found += changelog_entries(context.stores, snapshot, sieve.keep_entries)
        elif snapshot.commit_kind == CommitKind.APPEND:
            entries = delta_entries(context.stores, snapshot, sieve.keep_entries)
            lowest = context.lowest_told_level
            found += [entry for entry in entries if entry.kind == EntryKind.ADD and entry.file.level >= lowest]
    return found


def _between(context: TableContext, since: str, until: str) -> ChangeRange | None:
    """Two tags of these names, else two snapshots."""
    tags, mode = context.stores.tags, context.options[INCREMENTAL_BETWEEN_SCAN_MODE]
    has_tags = tags.exists(since) and tags.exists(until)
    if _is_id(since) and _is_id(until) and not has_tags:
        if int(since) <= int(until) and context.stores.snapshots.latest_id() is None:
            return None
        return _range_of_ids(context, int(since), int(until), mode)
    if _is_id(since) != _is_id(until) and not has_tags:
        raise InvalidOption(
            f"table `{context.name}`: `{INCREMENTAL_BETWEEN.key}` = `{since},{until}` mixes a snapshot and a tag",
            hint="give two snapshots or two tags",
        )
    before = snapshot_of_tag(context.stores, since, context.name)
    after = snapshot_of_tag(context.stores, until, context.name)
    return _between_tags(context, before, after)


def _between_tags(context: TableContext, before: Snapshot, after: Snapshot) -> ChangeRange:
    if before.id > after.id:
        raise InvalidArgument(
            f"table `{context.name}`: the first tag is of snapshot {before.id}, the second of the earlier {after.id}",
            hint="name the older tag first",
        )
    if context.options[INCREMENTAL_BETWEEN_TAG_TO_SNAPSHOT]:
        return _range_of_ids(context, before.id, after.id, context.options[INCREMENTAL_BETWEEN_SCAN_MODE])
    # The snapshots in between may have expired: that is what tags are for.
    return ChangeRange(before.id, after.id, DIFF, before, after)


def _between_times(context: TableContext, since: str, until: str) -> ChangeRange | None:
    begin, end = (int(text) if _is_id(text) else to_millis(text) for text in (since, until))
    if begin > end:
        raise InvalidArgument(
            f"table `{context.name}`: `{INCREMENTAL_BETWEEN_TIMESTAMP.key}` begins at {since}, after its end {until}",
            hint="name the earlier time first",
        )
    snapshots = context.stores.snapshots
    earliest, last = snapshots.earliest_id(), snapshots.at_or_before_time(end)
    if earliest is None or last is None:
        return None
    first = snapshots.at_or_before_time(begin)
    since_id = first.id if first else earliest - 1
    return _range_of_ids(context, since_id, last.id, context.options[INCREMENTAL_BETWEEN_SCAN_MODE])


def _to_auto_tag(context: TableContext, name: str) -> ChangeRange | None:
    """From the automatic tag before. Their names are periods of one spelling, so that texts sort as times do."""
    shape = re.sub(r"\d", "0", name)
    if re.fullmatch(r"0{4}[0 -]*", shape) is None:
        raise InvalidOption(
            f"table `{context.name}`: `{INCREMENTAL_TO_AUTO_TAG.key}` = `{name}` is no name of an automatic tag",
            hint=f"they look like 2024-05-14 or 2024-05-14 13; for other tags use `{INCREMENTAL_BETWEEN.key}`",
        )
    stores = context.stores
    earlier = [tag for tag in stores.tags.names() if tag < name and re.sub(r"\d", "0", tag) == shape]
    if not earlier or not stores.tags.exists(name):
        return None
    before, after = stores.tags.get(max(earlier)).snapshot, stores.tags.get(name).snapshot
    return ChangeRange(before.id, after.id, DIFF, before, after)


def _state(context: TableContext, snapshot_id: int) -> Snapshot | None:
    return context.stores.snapshots.get(snapshot_id) if snapshot_id else None


def _expired(context: TableContext, since: int, earliest: int) -> NotFound:
    return NotFound(
        f"table `{context.name}`: changes after snapshot {since} have expired; the earliest are those of {earliest}",
        hint=f"start at {earliest - 1} or later, and read the state before that from a tag or a snapshot that is there",
    )


def _two(context: TableContext, key: str, text: str | None) -> tuple[str, str]:
    parts = [part.strip() for part in str(text).split(",")]
    if len(parts) != 2 or not all(parts):
        raise InvalidOption(
            f"table `{context.name}`: `{key}` = `{text}` is no range", hint="give the start and the end, as in `5,10`"
        )
    return parts[0], parts[1]


def _is_id(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) < 20


# --- What changed between two snapshots, commit by commit: the rows each one added, with their kinds --------------


def read_changes(
    context: TableContext, since: int, until: int | None, columns: Sequence[str] | None = None
) -> pa.Table:
    """What the snapshots after `since` up to `until` (the latest) changed, in commit order, kind first.

    Compactions change no row. Overwrites replace rather than change: they are passed over unless the table's options
    ask for them.
    """
    reader, splits = planned_changes(context, since, until, columns)
    return reader.read_all(splits)


def planned_changes(
    context: TableContext, since: int, until: int | None, columns: Sequence[str] | None = None
) -> tuple[ChangeReader, Iterator[ChangeSplit]]:
    """The same in pieces, in order, which can be read anywhere."""
    refuse_unmergeable(context)
    shown = [field.name for field in context.schema.fields if field not in context.kept_fields]
    reader = ChangeReader(context, tuple(context.schema.fields_of(shown if columns is None else columns)))
    snapshots, sieve = _snapshots_between(context, since, until), sieve_of(context)
    return reader, (split for found in snapshots for split in change_splits(context, found, sieve=sieve))


def _snapshots_between(context: TableContext, since: int, until: int | None) -> Iterator[Snapshot]:
    history = History(context.stores)
    latest, earliest = history.latest_id(), history.earliest_id()
    if isinstance(since, bool) or not isinstance(since, int) or since < 0:
        raise InvalidArgument(f"since={since!r} is no snapshot id", hint="pass 0 for all changes, or a snapshot id")
    if until is not None and (isinstance(until, bool) or not isinstance(until, int) or until < since):
        raise InvalidArgument(
            f"until={until!r} is no snapshot id at or after since={since}",
            hint="leave it out for all changes there are",
        )
    if latest is None or earliest is None:
        return
    end = latest if until is None else until
    if since > latest or end > latest:
        raise NotFound(
            f"table `{context.name}` has no snapshot {max(since, end)} yet: its latest is {latest}",
            hint=f"choose a range that ends at {latest}, or leave `until` out",
        )
    if since < end and since + 1 < earliest:
        state = history.earliest_snapshot_id()
        raise NotFound(
            f"table `{context.name}`: changes after snapshot {since} have expired; the earliest snapshot is {state}",
            hint=f"read the whole table at snapshot {state}, then go on with changes(since={state})",
        )
    for snapshot_id in range(since + 1, end + 1):
        yield history.changes(snapshot_id) or context.stores.snapshots.get(snapshot_id)


__all__ = ["ChangeRange", "asked_range", "entries_of", "planned_changes", "state_named"]
