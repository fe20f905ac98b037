"""One cluster for all tests here, and a session on it. They are nightly: six JVMs take a minute to start."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.cluster.bed import Bed
from tests.compat.judges.environments import JudgeUnavailable

import lakebed


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """All of them need a JVM, and a night."""
    for item in items:
        if "tests/cluster/" in item.path.as_posix():
            item.add_marker(pytest.mark.spark)
            item.add_marker(pytest.mark.nightly)


@pytest.fixture(scope="session")
def bed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bed]:
    """A cluster of two workers."""
    # As in an environment that is activated: Spark looks for `python3` on the driver, too.
    os.environ["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)])
    try:
        with Bed(tmp_path_factory.mktemp("cluster") / "bed") as made:
            yield made
    except JudgeUnavailable as missing:
        pytest.skip(f"the S3 server can not be had: {missing}")


@pytest.fixture(scope="session")
def spark(bed: Bed) -> Iterator[Any]:
    """A session on the cluster, with this process as the driver; Spark reads the store itself, if that can be had."""
    session = bed.session(**bed.hadoop())
    yield session
    session.stop()


@pytest.fixture
def lake(bed: Bed, spark: Any, request: pytest.FixtureRequest) -> lakebed.Lake:
    """An empty lake in the S3 server."""
    return bed.lake(request.node.name.replace("[", "-").replace("]", ""), spark)
