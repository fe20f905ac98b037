"""The beginning of a stream: checks everything, then makes publication and slot, then plans the copy. Once.

The publication comes before the slot, since a slot knows only publications that were there when a change was made. An
interrupted beginning is taken up again: what was made is recognised by a note of intent that is written first.
"""

from __future__ import annotations

from dataclasses import asdict

from lakebed.cdc.sources.postgres.connect import session
from lakebed.cdc.sources.postgres.copy.plan import plan_copy
from lakebed.cdc.sources.postgres.names import format_lsn, parse_lsn, quote_value
from lakebed.cdc.sources.postgres.server.catalog import Catalog
from lakebed.cdc.sources.postgres.server.check import check_source
from lakebed.cdc.sources.postgres.server.slot import (
    create_publication,
    create_slot,
    publish_more,
    slot_state,
    wait_for_open_transactions,
)
from lakebed.cdc.sources.postgres.settings import PostgresSettings
from lakebed.cdc.sources.postgres.state import SourceState
from lakebed.errors import AlreadyExists, InvalidArgument

_IDENTITY = ("slot", "publication", "database")


def prepare(settings: PostgresSettings, state: SourceState) -> int:
    """Makes what is missing and returns the position at which the stream begins."""
    begun = state.read("source")
    if begun is not None:
        for name in _IDENTITY:
            if begun[name] != getattr(settings, name):
                raise InvalidArgument(
                    f"the checkpoint belongs to the {name} `{begun[name]}`, not to `{getattr(settings, name)}`",
                    hint="go on with the old name, or choose a new checkpoint",
                )
        return parse_lsn(begun["lsn"])
    with session(settings) as connection:
        tables = check_source(connection, settings).tables
        slot = slot_state(connection, settings)
        is_ours = state.read("intent") is not None or settings.adopt_slot
        if slot is not None and not is_ours:
            quoted = quote_value(settings.slot)
            raise AlreadyExists(
                f"the replication slot `{settings.slot}` is there already, and this checkpoint did not make it",
                hint=f"choose another `slot`, drop it with SELECT pg_drop_replication_slot({quoted}), "
                "or set adopt_slot=True if nobody else reads it",
            )
        identity = {name: getattr(settings, name) for name in _IDENTITY}
        state.publish("intent", identity)
        publication = Catalog(connection, settings).publication()
        if publication is None:
            create_publication(connection, settings, tables)
        elif not publication.is_for_all:
            missing = [table for table in tables if (table.schema, table.name) not in publication.tables]
            if missing:
                publish_more(connection, settings, missing)
        lsn = create_slot(connection, settings) if slot is None else slot.confirmed_lsn
        wait_for_open_transactions(connection, settings)
        parts = plan_copy(connection, settings, tables, 0) if settings.copy else []
        body = {**identity, "lsn": format_lsn(lsn), "parts": [asdict(part) for part in parts]}
        body["tables"] = [[table.oid, table.schema, table.name] for table in tables]
    return parse_lsn(state.publish("source", body)["lsn"])


__all__ = ["prepare"]
