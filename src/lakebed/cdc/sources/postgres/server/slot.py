"""The publication and the replication slot: made once, watched, and moved on only behind what is committed.

The slot keeps the server's log from the position that it was told last. Our own offset is the truth; the slot may lag
behind it after a crash, which does no harm. A slot that is ahead of the offset has let go of changes that nobody has:
that is a gap, and never passed over in silence.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from lakebed.cdc.sources.postgres.connect import first_line
from lakebed.cdc.sources.postgres.names import format_lsn, parse_lsn, quote_name, quote_table, quote_value
from lakebed.cdc.sources.postgres.server.catalog import GENERATED_SINCE, CatalogTable
from lakebed.cdc.sources.postgres.settings import PostgresSettings
from lakebed.errors import InvalidArgument, LakebedError, NotFound, StorageError
from lakebed.records import dataclass

if TYPE_CHECKING:
    import psycopg

_FAILOVER_SINCE = 170_000
_INVALIDATION_SINCE = 170_000
_POLL_S = 0.05


@dataclass(frozen=True, slots=True)
class SlotState:
    """A row of `pg_replication_slots`."""

    plugin: str | None
    database: str | None
    confirmed_lsn: int
    active_pid: int | None
    is_lost: bool
    reason: str


def slot_state(connection: psycopg.Connection[Any], settings: PostgresSettings) -> SlotState | None:
    """What the server says of the slot; None if there is none."""
    reason = "invalidation_reason" if connection.info.server_version >= _INVALIDATION_SINCE else "NULL"
    row = connection.execute(
        "SELECT plugin, database, confirmed_flush_lsn::text, active_pid, wal_status, "
        f"{reason} FROM pg_replication_slots WHERE slot_name = %s",
        [settings.slot],
    ).fetchone()
    if row is None:
        return None
    plugin, database, confirmed, pid, status, cause = row
    is_lost = status == "lost" or cause is not None
    return SlotState(plugin, database, parse_lsn(confirmed or "0/0"), pid, is_lost, cause or "max_slot_wal_keep_size")


def require_slot(connection: psycopg.Connection[Any], settings: PostgresSettings, offset_lsn: int) -> SlotState:
    """The slot, if it still has everything from the offset on; otherwise the cause and what repairs it."""
    state = slot_state(connection, settings)
    if state is None:
        raise _lost(settings, offset_lsn, "is missing: somebody dropped it", is_there=False)
    if state.is_lost:
        raise _lost(settings, offset_lsn, f"was invalidated by the server ({state.reason})", keeps_more=True)
    _require_ours(state, settings)
    # INVARIANT: a slot never stands ahead of what is committed. From there on the server would send later changes as if
    # nothing were missing: to stop is all that is left.
    if state.confirmed_lsn > offset_lsn:
        begins = f"begins at {format_lsn(state.confirmed_lsn)}, ahead of our position {format_lsn(offset_lsn)}: "
        raise _lost(settings, offset_lsn, begins + "it was made anew, or somebody else reads it")
    return state


def _lost(
    settings: PostgresSettings, offset_lsn: int, what: str, *, is_there: bool = True, keeps_more: bool = False
) -> NotFound:
    """The error for changes that no attempt brings back, with what to do about exactly this."""
    drop = f"SELECT pg_drop_replication_slot({quote_value(settings.slot)}), " if is_there else ""
    more = "; to keep more of the log, ALTER SYSTEM SET max_slot_wal_keep_size" if keeps_more else ""
    return NotFound(
        f"the replication slot `{settings.slot}` {what}; changes since {format_lsn(offset_lsn)} are lost",
        hint=f"{drop}empty the target tables and start with a new checkpoint, which copies the tables again{more}",
    )


def _require_ours(state: SlotState, settings: PostgresSettings) -> None:
    if state.plugin != "pgoutput" or state.database != settings.database:
        raise InvalidArgument(
            f"the replication slot `{settings.slot}` is of plugin {state.plugin} and database {state.database}",
            hint="choose another name for `slot`",
        )


def create_publication(
    connection: psycopg.Connection[Any], settings: PostgresSettings, tables: Sequence[CatalogTable]
) -> None:
    """Makes the publication of those tables. Partitions are published as their root."""
    options = "publish_via_partition_root = true"
    if connection.info.server_version >= GENERATED_SINCE:
        options += ", publish_generated_columns = stored"
    names = ", ".join(f"ONLY {quote_table(table.schema, table.name)}" for table in tables)
    connection.execute(
        f"CREATE PUBLICATION {quote_name(settings.publication)} FOR TABLE {names} WITH ({options})".encode()
    )


def publish_more(
    connection: psycopg.Connection[Any], settings: PostgresSettings, tables: Sequence[CatalogTable]
) -> None:
    """Adds tables to the publication."""
    names = ", ".join(f"ONLY {quote_table(table.schema, table.name)}" for table in tables)
    connection.execute(f"ALTER PUBLICATION {quote_name(settings.publication)} ADD TABLE {names}".encode())


def create_slot(connection: psycopg.Connection[Any], settings: PostgresSettings) -> int:
    """Makes the slot and returns its position. The server waits for transactions that write just then."""
    import psycopg

    failover = ", false, false, true" if connection.info.server_version >= _FAILOVER_SINCE else ""
    try:
        with connection.transaction():
            connection.execute(f"SET LOCAL statement_timeout = {int(settings.wait_ms)}".encode())
            row = connection.execute(
                f"SELECT lsn::text FROM pg_create_logical_replication_slot(%s, 'pgoutput'{failover})", [settings.slot]
            ).fetchone()
    except psycopg.errors.QueryCanceled:
        raise _still_open(connection, settings, "the replication slot can not be made") from None
    assert row is not None
    return parse_lsn(row[0])


def wait_for_open_transactions(connection: psycopg.Connection[Any], settings: PostgresSettings) -> None:
    """Returns once every transaction that is open now has ended.

    A transaction may stand in the log as committed and still be invisible to a snapshot. One that was committed before
    the slot began is not streamed, so no snapshot may be taken while it is in that state.
    """
    row = connection.execute("SELECT pg_snapshot_xmax(pg_current_snapshot())::text").fetchone()
    assert row is not None
    deadline = time.monotonic() + settings.wait_ms / 1000
    while True:
        seen = connection.execute("SELECT pg_snapshot_xmin(pg_current_snapshot())::text").fetchone()
        assert seen is not None
        if int(seen[0]) >= int(row[0]):
            return
        if time.monotonic() > deadline:
            raise _still_open(connection, settings, "the copy can not begin")
        time.sleep(_POLL_S)


def _still_open(connection: psycopg.Connection[Any], settings: PostgresSettings, what: str) -> LakebedError:
    oldest = connection.execute(
        "SELECT pid, coalesce(usename, '?'), date_trunc('second', now() - xact_start)::text FROM pg_stat_activity "
        "WHERE backend_xid IS NOT NULL AND pid <> pg_backend_pid() ORDER BY age(backend_xid) DESC LIMIT 1"
    ).fetchone()
    waited = f"{what}: a transaction was still open after {settings.wait_ms / 1000:g} s"
    if oldest is None:
        return StorageError(
            f"{waited} (perhaps a prepared one)", hint="see pg_prepared_xacts, and end what stands there"
        )
    pid, user, age = oldest
    return StorageError(
        f"{waited}: process {pid} of user {user}, for {age}",
        hint=f"wait, end it with SELECT pg_terminate_backend({pid}), or raise `wait_ms`",
    )


def advance_slot(connection: psycopg.Connection[Any], settings: PostgresSettings, lsn: int) -> bool:
    """Lets the server forget what is before a position that is committed. False if somebody holds the slot just now.

    Not to have advanced does no harm: the next commit does it.
    """
    import psycopg

    state = slot_state(connection, settings)
    if state is None or state.is_lost or lsn <= state.confirmed_lsn:
        return False
    try:
        connection.execute("SELECT pg_replication_slot_advance(%s, %s::pg_lsn)", [settings.slot, format_lsn(lsn)])
    except psycopg.errors.ObjectInUse:
        return False
    return True


def slot_facts(connection: psycopg.Connection[Any], settings: PostgresSettings) -> dict[str, int | str | bool | None]:
    """What the server says of the slot for who watches: whether somebody reads it, and what it costs."""
    row = connection.execute(
        "SELECT active, wal_status, pg_wal_lsn_diff(pg_current_wal_lsn(), restart_lsn)::bigint, safe_wal_size "
        "FROM pg_replication_slots WHERE slot_name = %s",
        [settings.slot],
    ).fetchone()
    if row is None:
        return {"slot": settings.slot, "slot_status": "missing"}
    active, status, kept, safe = row
    return {
        "slot": settings.slot,
        "slot_status": str(status),
        "slot_active": bool(active),
        "kept_log_bytes": int(kept or 0),
        "log_bytes_until_lost": None if safe is None else int(safe),
    }


def drop_both(connection: psycopg.Connection[Any], settings: PostgresSettings) -> list[str]:
    """Drops slot and publication, if they are there and may be dropped; what was done, in words."""
    import psycopg

    done = []
    if slot_state(connection, settings) is not None:
        try:
            connection.execute("SELECT pg_drop_replication_slot(%s)", [settings.slot])
        except psycopg.errors.ObjectInUse as error:
            raise slot_in_use(settings, error) from None
        done.append(f"replication slot {settings.slot} dropped")
    publication = quote_name(settings.publication)
    owner = connection.execute(
        "SELECT pg_has_role(pubowner, 'USAGE') FROM pg_publication WHERE pubname = %s", [settings.publication]
    ).fetchone()
    if owner is not None and owner[0]:
        connection.execute(f"DROP PUBLICATION IF EXISTS {publication}".encode())
        done.append(f"publication {settings.publication} dropped")
    elif owner is not None:
        done.append(f"publication {settings.publication} stays: it belongs to somebody else")
    return done


def slot_in_use(settings: PostgresSettings, error: BaseException) -> StorageError:
    """The error for a slot that another process holds for too long."""
    pid = "".join(word for word in first_line(error).split() if word.isdigit()) or "…"
    return StorageError(
        f"the replication slot `{settings.slot}` is in use: {first_line(error)}",
        hint="stop the other sync of this slot, or end its connection with "
        f"SELECT pg_terminate_backend({pid}); two syncs need two slots",
    )


__all__ = [
    "SlotState",
    "advance_slot",
    "create_publication",
    "create_slot",
    "drop_both",
    "publish_more",
    "require_slot",
    "slot_facts",
    "slot_in_use",
    "slot_state",
    "wait_for_open_transactions",
]
