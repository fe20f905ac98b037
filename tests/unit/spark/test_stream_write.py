"""What tasks and the driver do with a micro-batch, without Spark: rows handed on or written, commits made once."""

from __future__ import annotations

import pickle
import threading
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from tests.patience import PATIENCE_S

pytest.importorskip("pyspark")

from pyspark.sql import types as st

import lakebed
from lakebed.errors import InvalidData, Unsupported
from lakebed.spark.stream import micro_batch as stream_write
from lakebed.spark.stream import writer_format as stream_format
from lakebed.spark.stream.follow_ups import FollowUps
from lakebed.spark.stream.micro_batch import Answers, BatchTask
from lakebed.spark.stream.query import EventTime
from lakebed.spark.stream.writer_format import StreamTableWriter
from lakebed.spark.write import WriteTask
from lakebed.table.plans import plan_write
from lakebed.write.sequence import BucketStates

SCHEMA = st.StructType([st.StructField("id", st.LongType()), st.StructField("v", st.IntegerType())])
SUMS = {"bucket": "2", "merge-engine": "aggregation", "fields.v.aggregate-function": "sum"}


def rows(*ids: int) -> pa.RecordBatch:
    return pa.record_batch({"id": pa.array(ids, pa.int64()), "v": pa.array([1] * len(ids), pa.int32())})


@pytest.fixture
def table(tmp_path: Path) -> lakebed.Table:
    """A table in which a batch that comes twice shows."""
    lake = lakebed.connect(tmp_path / "warehouse")
    return lake.create_table("t", {"id": "BIGINT NOT NULL", "v": "INT"}, primary_key=["id"], options=SUMS)


def data_files(table: lakebed.Table) -> set[str]:
    return {path.name for path in Path(table.location).rglob("bucket-*/*")}


def live_files(table: lakebed.Table) -> set[str]:
    return {file.file_name for split in table.scan().splits for file in split.files}


class TestTasks:
    """A task of `t.write_stream`."""

    def answers(self, table: lakebed.Table, gathered_bytes: int, *batches: pa.RecordBatch) -> Answers:
        context, _ = plan_write(table, "q", 1)
        task = BatchTask(WriteTask(context, None, None, BucketStates(), "job"), EventTime(), gathered_bytes)
        told = list(pickle.loads(pickle.dumps(task)).run(iter(batches)))
        assert len(told) <= 1
        return Answers.of(pa.Table.from_batches(told, stream_write.ANSWER))

    def test_few_rows_are_handed_on(self, table: lakebed.Table) -> None:
        """All batches as they came, and no file."""
        answers = self.answers(table, 1 << 20, rows(1, 2), rows(3))
        assert pa.concat_tables(answers.rows)["id"].to_pylist() == [1, 2, 3]
        assert answers.messages == []
        assert data_files(table) == set()

    def test_many_rows_are_written(self, table: lakebed.Table) -> None:
        """Also those that came before it was known that there are many."""
        answers = self.answers(table, 30, rows(1, 2), rows(3, 4), rows(5))
        assert answers.rows == []
        assert sum(file.row_count for message in answers.messages for file in message.new_files) == 5
        assert answers.size_bytes == sum(batch.nbytes for batch in (rows(1, 2), rows(3, 4), rows(5)))

    def test_many_rows_may_be_too_many(self, table: lakebed.Table) -> None:
        """A task that only looks whether there are few says that there are not, and takes no more of them."""
        context, _ = plan_write(table, "q", 1)
        task = BatchTask(WriteTask(context, None, None, BucketStates(), "job"), EventTime(), 30, gives_up=True)
        given = iter([rows(1, 2), rows(3, 4), rows(5)])
        answers = Answers.of(pa.Table.from_batches(list(task.run(given)), stream_write.ANSWER))
        assert answers.is_given_up
        assert (answers.messages, answers.rows, len(list(given))) == ([], [], 1)
        assert data_files(table) == set()
        assert not self.answers(table, 30, rows(1, 2), rows(3, 4)).is_given_up

    def test_no_rows_are_no_answer(self, table: lakebed.Table) -> None:
        """A task without rows says nothing."""
        assert self.answers(table, 0) == Answers([], [], 0, None)

    def test_a_row_that_does_not_fit_is_told(self, table: lakebed.Table) -> None:
        """The error of the task is raised where its answer is read, and its files are gone."""
        bad = pa.record_batch({"id": pa.array([None], pa.int64()), "v": pa.array([1], pa.int32())})
        with pytest.raises(InvalidData, match="`id`"):
            self.answers(table, 0, rows(1, 2), bad)
        assert data_files(table) == set()


class TestFormat:
    """The writer behind `writeStream.format("lakebed")`, made anew for each step as Spark does it."""

    @pytest.fixture(autouse=True)
    def query(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Tasks that say that they belong to a query."""
        monkeypatch.setattr(stream_format, "_query_id", lambda: "query")

    def made(self, table: lakebed.Table, *tasks: pa.RecordBatch, overwrite: bool = False) -> list[Any]:
        writer = pickle.loads(pickle.dumps(StreamTableWriter(table, SCHEMA, overwrite, None)))
        return [writer.write(iter([task])) for task in tasks]

    def commit(self, table: lakebed.Table, messages: list[Any], number: int, *, overwrite: bool = False) -> None:
        StreamTableWriter(table, SCHEMA, overwrite, None).commit(messages, number)

    def test_a_batch_is_committed_once(self, table: lakebed.Table) -> None:
        """The same batch written again leaves neither rows nor files."""
        for _ in range(2):
            self.commit(table, self.made(table, rows(1, 2), rows(3)), 0)
        assert table.to_arrow()["v"].to_pylist() == [1, 1, 1]
        assert [(s.commit_user, s.commit_identifier) for s in table.snapshots()] == [("query", 1)]
        assert data_files(table) == live_files(table)

    def test_rows_go_behind_those_of_others(self, table: lakebed.Table) -> None:
        """Another commit between writing and committing: its rows are older, all numbers differ."""
        messages = self.made(table, rows(1, 2, 3))
        table.write(pa.Table.from_batches([rows(1, 2, 3)]))
        self.commit(table, messages, 0)
        assert table.to_arrow()["v"].to_pylist() == [2, 2, 2]
        for bucket in range(2):
            files = [file for split in table.scan().splits if split.bucket == bucket for file in split.files]
            first, second = sorted((file.min_sequence_number, file.max_sequence_number) for file in files)
            assert first[1] < second[0]

    def test_each_batch_replaces_the_table(self, table: lakebed.Table) -> None:
        """With `overwrite`, which is output mode `complete`."""
        for number, batch in enumerate((rows(1, 2, 3), rows(2))):
            self.commit(table, self.made(table, batch, overwrite=True), number, overwrite=True)
        assert table.to_arrow()["id"].to_pylist() == [2]

    def test_what_is_given_up_is_removed(self, table: lakebed.Table) -> None:
        """Of a batch in which a task failed nothing is left."""
        messages = self.made(table, rows(1, 2), rows(3))
        assert data_files(table)
        StreamTableWriter(table, SCHEMA, False, None).abort([*messages, None], 0)
        assert data_files(table) == set()

    def test_the_error_of_a_task_is_the_error_of_the_batch(self, table: lakebed.Table) -> None:
        """It names the column; the files of other tasks are removed."""
        bad = pa.record_batch({"id": pa.array([None], pa.int64()), "v": pa.array([1], pa.int32())})
        messages = self.made(table, rows(1, 2), bad)
        with pytest.raises(InvalidData, match="`id`"):
            self.commit(table, messages, 0)
        assert table.snapshots() == []
        assert data_files(table) == set()

    def test_buckets_by_an_index_are_refused(self, tmp_path: Path) -> None:
        """The way out is named."""
        lake = lakebed.connect(tmp_path / "other")
        dynamic = lake.create_table("t", {"id": "BIGINT NOT NULL", "v": "INT"}, primary_key=["id"])
        with pytest.raises(Unsupported, match="index of its keys") as caught:
            StreamTableWriter(dynamic, SCHEMA, False, None)
        assert "t.write_stream" in caught.value.hint


class TestFollowUps:
    """What follows a commit, meanwhile."""

    def test_one_at_a_time_and_waited_for(self) -> None:
        """The next waits for the one under way; what has failed is said and done."""
        follow_ups, gate, done = FollowUps(), threading.Event(), []

        def first() -> None:
            gate.wait(PATIENCE_S)
            done.append(1)

        follow_ups.run(first, lambda: done.append(2))
        assert done == []
        gate.set()
        follow_ups.run(lambda: done.append(3))
        follow_ups.wait()
        assert done == [1, 2, 3]
        follow_ups.run(lambda: done[5])  # type: ignore[arg-type, return-value]
        follow_ups.wait()
        follow_ups.wait()

    @pytest.mark.parametrize(("of", "is_waited_for"), [("own", True), (None, True), ("other", False)])
    def test_compactions_and_cleaning_wait_for_those_of_their_table(
        self, table: lakebed.Table, of: str | None, is_waited_for: bool
    ) -> None:
        """`t.compact()` right after a stream does not meet its last compaction; other tables are not waited for."""
        follow_ups = FollowUps({"own": table.location, "other": table.location + "2", None: None}[of])
        for action in (table.compact, table.remove_orphan_files):
            gate, done = threading.Event(), []
            follow_ups.run(lambda gate=gate: gate.wait(PATIENCE_S) or None)  # type: ignore[misc]
            asked = threading.Thread(target=lambda action=action, done=done: (action(), done.append(1)))
            asked.start()
            asked.join(0.5 if is_waited_for else PATIENCE_S)
            assert bool(done) is not is_waited_for
            gate.set()
            asked.join(PATIENCE_S)
            assert done == [1]
            follow_ups.wait()

    def test_what_follows_may_compact_by_itself(self, table: lakebed.Table) -> None:
        """It does not wait for its own end."""
        follow_ups = FollowUps(table.location)
        follow_ups.run(lambda: table.compact() and None)
        follow_ups.wait()
        table.compact()

    def test_copies_begin_with_nothing(self) -> None:
        """A writer that travels to another process takes no thread with it."""
        follow_ups = FollowUps()
        follow_ups.run(lambda: None)
        copy = pickle.loads(pickle.dumps(follow_ups))
        copy.wait()
        follow_ups.wait()
