"""The compaction of a commit has its number; one that comes late does not make the table forget later commits."""

from __future__ import annotations

from pathlib import Path

import lakebed
from lakebed.commit.replay import CommitIdentity, last_identifiers
from lakebed.rewrite.bucket import Compactor
from lakebed.table.opened import opened_of


def test_a_late_compaction_does_not_take_numbers_back(tmp_path: Path) -> None:
    """After the compaction of the first commit, which comes behind the third, a repeat of the third is recognised."""
    table = lakebed.connect(tmp_path).create_table(
        "t", {"id": "INT NOT NULL", "v": "INT"}, primary_key=["id"], options={"bucket": "1", "write-only": "true"}
    )

    def commit(number: int) -> None:
        with table.writer(commit_user="stream", commit_identifier=number) as writer:
            writer.write([{"id": number, "v": number}])

    for number in (1, 2, 3):
        commit(number)
    context = opened_of(table).current()
    made = Compactor(context, full=True).run(CommitIdentity("stream", 1))
    assert made is not None
    assert last_identifiers(context.stores.snapshots, made) == {"stream": 3}
    commit(3)
    assert table.latest_snapshot() == made
    commit(4)
    assert table.count() == 4
