"""Commits of files that several tasks have made, each with a range of sequence numbers of its own."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from tests.unit.table.worked_tables import create, shown, write

import lakebed
from lakebed.commit.attempt import Attempt
from lakebed.commit.message import CommitMessage
from lakebed.commit.replay import CommitIdentity
from lakebed.write.commit import WriteCommit
from lakebed.write.files import FileMaker
from lakebed.write.sequence import BucketStates

NORMALISED = {"changelog-producer": "input", "changelog-producer.input.normalize": "true"}


class Job:
    """Tasks that share buckets, and the commit of what they made."""

    def __init__(self, table: lakebed.Table) -> None:
        self.context = table._opened.context
        self.states = BucketStates.load(self.context.stores, self.context.stores.snapshots.latest())
        self.attempt = Attempt(self.context.fileio)
        self.messages: list[CommitMessage] = []

    def run_task(self, number: int, rows: list[tuple[int, Any]]) -> None:
        """Makes files of rows; messages travel as JSON."""
        states = self.states.leaving_out(number << 40)
        maker = FileMaker(
            self.context, row_kind=None, overwrite=None, states=lambda: states, fileio=self.attempt.fileio
        )
        columns = [
            pa.array(column, field.type)
            for column, field in zip(zip(*rows, strict=True), _fields(self.context), strict=True)
        ]
        maker.write(pa.table(columns, names=["k", "v"]), lambda: None)
        self.messages += [CommitMessage.from_json(message.to_json()) for message in maker.finish()]

    def commit(self) -> None:
        """Publishes everything."""
        commit = WriteCommit(
            self.context,
            overwrite=None,
            identity=CommitIdentity("job"),
            attempt=self.attempt,
            states=self.states,
        )
        commit.run(self.messages)


def _fields(context: Any) -> list[pa.Field]:
    return list(context.schema.arrow_schema)


def _told(table: lakebed.Table, since: int) -> list[tuple[Any, ...]]:
    return [tuple(row.values()) for row in table.changes(since).to_pylist()]


@pytest.mark.parametrize("is_meddled", [False, True])
def test_later_tasks_and_later_commits_win(is_meddled: bool) -> None:
    """Rows of a later task win, and all of them win over a commit that came in between."""
    table = create("k v", {})
    write(table, [[1, 1], [2, 1], [3, 1]])
    job = Job(table)
    job.run_task(0, [(1, 10), (2, 10)])
    job.run_task(1, [(2, 20)])
    if is_meddled:
        write(table, [[key, 99] for key in (1, 2, 3) for _ in range(50)])
    job.commit()
    assert shown(table) == [[1, 10], [2, 20], [3, 99 if is_meddled else 1]]


@pytest.mark.parametrize("is_meddled", [False, True])
def test_normalised_input_of_tasks_that_share_a_bucket(is_meddled: bool) -> None:
    """What tasks change is told as one chain, on top of what is there when they are committed."""
    table = create("k v", NORMALISED)
    write(table, [[1, 1], [2, 1]])
    job = Job(table)
    job.run_task(0, [(1, 10), (2, 10)])
    job.run_task(1, [(2, 20), (3, 20)])
    if is_meddled:
        write(table, [[2, 99], [3, 99]])
    since = table.snapshots()[-1].id
    job.commit()
    before = 99 if is_meddled else 1
    third = [("-U", 3, 99), ("+U", 3, 20)] if is_meddled else [("+I", 3, 20)]
    assert _told(table, since) == [
        ("-U", 1, 1),
        ("+U", 1, 10),
        ("-U", 2, before),
        ("+U", 2, 10),
        ("-U", 2, 10),
        ("+U", 2, 20),
        *third,
    ]
    assert shown(table) == [[1, 10], [2, 20], [3, 20]]
