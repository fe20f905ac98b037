"""The vectorised decoder against the message-by-message one, on what real servers send."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from lakebed.cdc.sources.postgres.log.messages import Messages, Relation
from lakebed.cdc.sources.postgres.log.pgoutput import DecodedRows, PgOutputDecoder, Truncation
from lakebed.testing.pgoutput_model import UNCHANGED, PgOutputModel
from lakebed.testing.postgres_workload import RandomWorkload
from lakebed.types.row_kind import RowKind

KEYS: dict[str, Sequence[str]] = {
    "all_types": ["id"],
    "by_uuid": ["id"],
    "by_pair": ["a", "b"],
    "whole_rows": ["id"],
    "parted": ["id", "region"],
    "Odd \"Näme'": ["select"],
}
_SHORT = {RowKind.INSERT: "+I", RowKind.UPDATE_BEFORE: "-U", RowKind.UPDATE_AFTER: "+U", RowKind.DELETE: "-D"}
_EPOCH_2000_US = 946_684_800_000_000


def _key_of(relation: Relation) -> list[int]:
    names = [column.name for column in relation.columns]
    return [names.index(name) for name in KEYS[relation.name]]


def _plain(event: DecodedRows | Truncation) -> list[tuple[Any, ...]]:
    """Decoded changes in the model's form."""
    if isinstance(event, Truncation):
        times = (event.commit_lsn, event.commit_us - _EPOCH_2000_US, event.xid)
        return [(relation.name, _names(relation), "T", (), *times) for relation in event.relations]
    columns = [column.to_pylist() for column in event.columns]
    rows = []
    for i, kind in enumerate(event.kinds):
        values = tuple(
            UNCHANGED if place in event.unchanged and event.unchanged[place][i] else column[i]
            for place, column in enumerate(columns)
        )
        times = (int(event.commit_lsns[i]), int(event.commit_us[i]) - _EPOCH_2000_US, int(event.xids[i]))
        rows.append((event.relation.name, _names(event.relation), _SHORT[RowKind(int(kind))], values, *times))
    return rows


def _names(relation: Relation) -> tuple[str, ...]:
    return tuple(column.name for column in relation.columns)


def _raw(database: Any) -> list[bytes]:
    rows = database.query(
        "SELECT data FROM pg_logical_slot_peek_binary_changes('s' || current_database(), NULL, NULL, "
        "'proto_version', '1', 'publication_names', 'p')"
    )
    return [bytes(row[0]) for row in rows]


def _prepare(database: Any) -> None:
    database.execute(
        "CREATE PUBLICATION p FOR ALL TABLES WITH (publish_via_partition_root = true)",
        "SELECT pg_create_logical_replication_slot('s' || current_database(), 'pgoutput')",
    )


@pytest.mark.parametrize("seed", [1, *(pytest.param(seed, marks=pytest.mark.nightly) for seed in range(2, 9))])
def test_random_changes_decode_as_the_model_reads_them(any_database: Any, seed: int) -> None:
    """All kinds of rows, in pieces of any size, give the changes of a plain parser, table by table in order."""
    with any_database.connect() as connection:
        workload = RandomWorkload(connection, seed, hostile=True)
        workload.create_tables()
        _prepare(any_database)
        workload.run(120)
        connection.execute("ALTER TABLE by_pair ADD COLUMN late int DEFAULT 7")
        workload.run(40)
    messages = _raw(any_database)
    expected = PgOutputModel(KEYS).read(messages)
    assert {change[2] for change in expected} >= {"+I", "-U", "+U", "-D"}
    for size in (7, 100, 100_000):
        decoder = PgOutputDecoder(_key_of)
        found = [
            row
            for first in range(0, len(messages), size)
            for event in decoder.decode(Messages.of(messages[first : first + size]))
            for row in _plain(event)
        ]
        for table in KEYS:
            assert [row for row in found if row[0] == table] == [row for row in expected if row[0] == table]


def test_membership_is_by_the_start_of_the_commit_record(database: Any) -> None:
    """Any cut of the log gives each transaction to exactly one side, also a cut inside a commit record."""
    database.execute("CREATE TABLE whole_rows (id int PRIMARY KEY)")
    _prepare(database)
    with database.connect() as connection:
        for key in range(20):
            connection.execute("INSERT INTO whole_rows VALUES (%s)", [key])
    messages = _raw(database)
    lsns = sorted({change[4] for change in PgOutputModel(KEYS).read(messages)})
    for cut in [lsn + shift for lsn in lsns for shift in (-1, 0, 1, 20)]:
        sides = []
        for start, end in ((0, cut), (cut, 1 << 63)):
            events = PgOutputDecoder(_key_of, start, end).decode(Messages.of(messages))
            sides.append([row for event in events for row in _plain(event)])
        assert len(sides[0]) + len(sides[1]) == 20
        assert all(row[4] < cut for row in sides[0])
        assert all(row[4] >= cut for row in sides[1])


def test_empty_input_gives_nothing() -> None:
    """No messages, no changes; and a decoder that saw nothing is as good as new."""
    decoder = PgOutputDecoder(_key_of)
    assert list(decoder.decode(Messages.of([]))) == []
    assert np.array_equal(Messages.of([]).starts, np.zeros(0))
