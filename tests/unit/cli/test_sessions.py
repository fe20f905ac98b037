"""Where a command does its work, and how it reaches the lake's store."""

from __future__ import annotations

import argparse
from pathlib import Path

import pytest

import lakebed
from lakebed.cli.command import Parser
from lakebed.cli.main import main
from lakebed.cli.sessions import add_session, session_of, storage_of
from lakebed.errors import InvalidArgument
from lakebed.spark.session import Where


def _given(*typed: str, warehouse: str = "s3://bucket/lake", storage: tuple[str, ...] = ()) -> argparse.Namespace:
    parser = Parser("lakebed test", "")
    add_session(parser)
    given = parser.parse_args(list(typed))
    given.warehouse, given.storage = warehouse, list(storage)
    return given


def _where(given: argparse.Namespace) -> Where:
    where: Where = session_of(given)._where
    return where


def test_a_command_may_name_a_cluster() -> None:
    where = _where(_given("--master", "spark://host:7077", "--conf", "spark.executor.memory=2g", warehouse="/lake"))
    assert (where.master, where.remote, where.settings) == (
        "spark://host:7077",
        None,
        {"spark.executor.memory": "2g"},
    )


def test_a_command_may_name_a_server() -> None:
    where = _where(_given("--remote", "sc://host:15002"))
    assert (where.remote, where.settings) == ("sc://host:15002", {})


def test_not_both() -> None:
    with pytest.raises(InvalidArgument, match="not allowed with"):
        _given("--remote", "sc://host", "--master", "yarn")


def test_spark_reaches_the_store_of_the_lake_too() -> None:
    """Checkpoints are written by Spark."""
    where = _where(_given("--conf", "spark.x=y", storage=("s3.endpoint=http://host:9000", "s3.path-style-access=true")))
    assert where.settings == {
        "spark.hadoop.fs.s3.impl": "org.apache.hadoop.fs.s3a.S3AFileSystem",
        "spark.hadoop.fs.s3a.endpoint": "http://host:9000",
        "spark.hadoop.fs.s3a.path.style.access": "true",
        "spark.x": "y",
    }


@pytest.mark.parametrize("key", ["s3.secret-key", "s3.session-token", "az.account-key", "az.client_secret"])
def test_secrets_are_not_typed(key: str) -> None:
    with pytest.raises(InvalidArgument, match="others can see it") as refused:
        storage_of(_given(storage=(f"{key}=hush",)))
    assert "hush" not in str(refused.value)


def test_what_is_not_understood_is_not_repeated() -> None:
    with pytest.raises(InvalidArgument, match="--conf is not understood") as refused:
        session_of(_given("--conf", "hush"))
    assert "hush" not in str(refused.value)


def test_options_of_the_store_may_stand_before_and_behind_the_command(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    asked: list[dict[str, str]] = []
    connect = lakebed.connect

    def note(path: str, spark: object = None, options: dict[str, str] | None = None) -> lakebed.Lake:
        asked.append(dict(options or {}))
        return connect(path)

    monkeypatch.setattr(lakebed, "connect", note)
    connect(tmp_path).create_database("a")
    place = ["--warehouse", str(tmp_path)]
    assert main([*place, "--storage", "s3.region=a", "compact", "a.*", "--storage", "s3.endpoint=b"]) == 0
    assert main(["compact", "a.*", *place]) == 0
    assert asked == [{"s3.region": "a", "s3.endpoint": "b"}, {}]
