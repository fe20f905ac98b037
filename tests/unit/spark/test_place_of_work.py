"""Where files are rewritten: one rule, which is told."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import pytest

import lakebed
from lakebed.definition.elsewhere import place_of_work
from lakebed.spark.session import Session, Where, is_cluster
from lakebed.table.opened import opened_of


class _Conf:
    def __init__(self, master: str) -> None:
        self._master = master

    def get(self, key: str, default: str) -> str:
        return self._master if key == "spark.master" else default


class _Spark:
    """As much of a session as is asked."""

    def __init__(self, master: str) -> None:
        self.conf = _Conf(master)
        self.is_stopped = False

    def createDataFrame(self) -> None:  # noqa: N802 - Spark's name
        raise AssertionError


@pytest.mark.parametrize(
    ("master", "expected"),
    [
        ("local", False),
        ("local[2]", False),
        ("local[*, 3]", False),
        ("local-cluster[2,1,1024]", True),
        ("spark://host:7077", True),
        ("yarn", True),
        ("k8s://https://host", True),
    ],
)
def test_what_a_cluster_is(master: str, expected: bool) -> None:
    assert is_cluster(_Spark(master)) is expected


def _believe(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is asked of the session's JVM, which is not there."""
    monkeypatch.setattr("lakebed.spark.session._is_stopped", lambda spark: False)
    monkeypatch.setattr("lakebed.spark.session.use_this_python", lambda spark: None)


def _table(tmp_path: Path, spark: Any) -> Any:
    lake = lakebed.connect(tmp_path, spark=spark)
    return lake.create_table("t", {"id": "BIGINT NOT NULL"}, primary_key=["id"], options={"bucket": "1"})


def test_work_goes_where_the_session_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _believe(monkeypatch)
    table = _table(tmp_path / "cluster", _Spark("spark://host:7077"))
    assert place_of_work(opened_of(table).context) is not None
    assert place_of_work(opened_of(table).context, on_spark=False) is None
    assert table.explain_work() == (
        "files are rewritten in tasks of Spark, since the session is a cluster (spark://host:7077); rounds of at most "
        "16 mb in this process: a job starts more slowly than they are done; expiry and orphan cleaning delete 20,000 "
        "files or more in tasks, too"
    )
    assert "on_spark=False asks for it" in table.explain_work(on_spark=False)


def test_a_local_session_or_none_starts_no_job_by_itself(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _believe(monkeypatch)
    for name, spark in (("local", _Spark("local[2]")), ("none", None)):
        table = _table(tmp_path / name, spark)
        assert place_of_work(opened_of(table).context) is None
        assert "no session of a cluster is in use" in table.explain_work()
        assert "on_spark=True asks for it" in table.explain_work(on_spark=True)


def test_where_a_session_is_to_be_does_not_travel() -> None:
    """A copy is in another process, on a machine of the cluster: it must not start a driver there."""
    session = pickle.loads(pickle.dumps(Session(where=Where("spark://host:7077", settings={"a": "b"}))))
    assert session.cluster() == ""


def test_settings_are_not_shown() -> None:
    assert "hidden" not in repr(Where("spark://host:7077", settings={"spark.hadoop.fs.s3a.secret.key": "hidden"}))
