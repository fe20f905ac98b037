"""Files of tasks that were killed or ran twice go, of every kind; others stay."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

import lakebed
from lakebed.commit.message import CommitMessage
from lakebed.definition.context import TableContext
from lakebed.spark import tasks
from lakebed.spark.tasks import JobIds, message_paths, remove_leftovers
from lakebed.table.plans import plan_write
from lakebed.testing.s3_server import BUCKET, S3State
from lakebed.write.files import FileMaker
from lakebed.write.placement.postponed import for_stream
from lakebed.write.sequence import BucketStates

COLUMNS = {"p": "INT NOT NULL", "k": "INT NOT NULL", "v": "INT"}
ROWS = pa.table({"p": [1, 2], "k": [1, 2], "v": [1, 1]}, schema=pa.schema([(name, pa.int32()) for name in COLUMNS]))


def _attempt(context: TableContext, job: str, attempt: int, *, is_repeated: bool = False) -> list[CommitMessage]:
    """What one attempt at a task makes."""
    named = replace(context, ids=JobIds(job, attempt, is_repeated=is_repeated))
    maker = FileMaker(
        named, row_kind=None, overwrite=None, states=BucketStates, fileio=context.fileio, commit_user="query"
    )
    maker.write(ROWS, lambda: None)
    return maker.finish()


def _files(directory: Path) -> set[str]:
    return {
        str(path.relative_to(directory))
        for path in directory.rglob("*")
        if path.is_file() and path.parent.name not in ("schema", "snapshot", "manifest") and path.name[0] != "."
    }


@pytest.mark.parametrize(
    "options",
    [
        {"bucket": "1"},
        {"bucket": "1", "changelog-producer": "input"},
        {"bucket": "1", "file-index.bloom-filter.columns": "v"},
        {"bucket": "-1"},
        {"bucket": "-2"},
    ],
)
def test_of_two_attempts_one_stays(tmp_path: Path, options: dict[str, str]) -> None:
    """After the commit of one attempt nothing of the other is left: data, changes, indexes, rows that wait."""
    lake = lakebed.connect(tmp_path / "lake")
    table = lake.create_table("t", COLUMNS, primary_key=["p", "k"], partition_by=["p"], options=options)
    context = for_stream(plan_write(table)[0])
    others = _attempt(context, "other", 0)
    _attempt(context, "job", 7)
    kept = _attempt(context, "job", 8)
    remove_leftovers(context, "job", kept)
    root = Path(table.location)
    paths = {str(Path(path).relative_to(root)) for path in message_paths(context, [*others, *kept])}
    assert _files(root) == paths
    assert len(paths) >= 4
    if options["bucket"] == "-1":
        assert sum(path.startswith("index/") for path in paths) == 4
    if options["bucket"] == "-2":
        assert all("-u-query-s-" in path for path in paths)


@pytest.mark.parametrize("options", [{"bucket": "1"}, {"bucket": "-1"}, {"bucket": "-2"}])
def test_of_a_job_that_failed_nothing_stays(tmp_path: Path, options: dict[str, str]) -> None:
    """Without a commit all files of the job go, and no others."""
    lake = lakebed.connect(tmp_path / "lake")
    table = lake.create_table("t", COLUMNS, primary_key=["p", "k"], partition_by=["p"], options=options)
    table.write(ROWS)
    context = for_stream(plan_write(table)[0])
    before = _files(Path(table.location))
    _attempt(context, "job", 1)
    assert _files(Path(table.location)) > before
    remove_leftovers(context, "job")
    assert _files(Path(table.location)) == before


@pytest.mark.parametrize("bucket", ["1", "-1", "-2"])
def test_an_object_store_is_listed_only_if_a_task_ran_again(
    s3: S3State, bucket: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The names of committed files tell whether it did; then everything is found with a request for a thousand."""
    monkeypatch.setattr(tasks, "repeated_lately", lambda: False)  # whatever other tests had to repeat
    lake = lakebed.connect(f"s3://{BUCKET}/lake", options=s3.options)
    table = lake.create_table("t", COLUMNS, primary_key=["p", "k"], partition_by=["p"], options={"bucket": bucket})
    context = for_stream(plan_write(table)[0])
    first = _attempt(context, "job", 7)
    with s3.counted() as log:
        remove_leftovers(context, "job", first)
    assert not log
    kept = _attempt(context, "job", 8, is_repeated=True)
    with s3.counted() as log:
        remove_leftovers(context, "job", kept)
    assert dict(log.kinds) == {"LIST": 1, "POST": 1}
    left = {path for path in s3.objects if "/bucket-" in path or "/index/" in path}
    assert left == set(message_paths(context, kept))


def test_speculation_is_looked_after(s3: S3State, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where Spark starts tasks twice on purpose, and where whole jobs were repeated, there may be files of others."""
    lake = lakebed.connect(f"s3://{BUCKET}/lake", options=s3.options)
    table = lake.create_table("t", COLUMNS, primary_key=["p", "k"], partition_by=["p"], options={"bucket": "1"})
    context = plan_write(table)[0]
    for name in ("repeated_lately", "_is_speculating"):
        _attempt(context, "job", 7)
        kept = _attempt(context, "job", 8)
        with monkeypatch.context() as patched:
            patched.setattr(tasks, name, lambda: True)
            remove_leftovers(context, "job", kept)
        assert {path for path in s3.objects if "/bucket-" in path} == set(message_paths(context, kept))
