"""Spark Connect on the cluster, with a client that shares nothing with it but the network and the store."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.cluster.bed import Bed, spark_class
from tests.cluster.hosts import ROOT, end
from tests.cluster.s3_server import SECRET_KEY

from lakebed.testing.ports import free_port


@pytest.fixture
def server(bed: Bed, tmp_path: Path) -> Iterator[str]:
    """The address of a server whose tasks run on the cluster."""
    port = free_port()
    settings = {**bed.settings(), "spark.connect.grpc.binding.port": str(port)}
    conf = [word for key, value in settings.items() for word in ("--conf", f"{key}={value}")]
    main = ["--class", "org.apache.spark.sql.connect.service.SparkConnectServer", "spark-internal"]
    own = {"JAVA_HOME": bed.java_home, "SPARK_LOCAL_IP": bed.network.driver, "PYTHONPATH": f"{ROOT / 'src'}:{ROOT}"}
    log = tmp_path / "server.log"
    with log.open("ab") as told:
        process = subprocess.Popen(
            [spark_class(), "org.apache.spark.deploy.SparkSubmit", "--master", bed.master, *conf, *main],
            stdout=told,
            stderr=told,
            cwd=tmp_path,
            env={**os.environ, **own},
            start_new_session=True,
        )

    def answers() -> bool:
        assert process.poll() is None, log.read_text()[-2000:]
        with socket.socket() as probe:
            probe.settimeout(1)
            return probe.connect_ex((bed.network.driver, port)) == 0

    try:
        bed.until(answers, "server of Spark Connect")
        yield f"sc://{bed.network.driver}:{port}"
    finally:
        end(process, signal.SIGKILL)


def test_a_client_without_a_jvm(bed: Bed, server: str, tmp_path: Path) -> None:
    told = {
        "remote": server,
        "lake": bed.place("connect"),
        "options": bed.store.options,
        "checkpoint": str(tmp_path / "checkpoint"),
    }
    ran = subprocess.run(
        [sys.executable, "-m", "tests.cluster.connect_worker", json.dumps(told)],
        capture_output=True,
        text=True,
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": f"{ROOT / 'src'}:{ROOT}"},
        timeout=600,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr[-3000:]
    found = json.loads(ran.stdout.splitlines()[-1])
    assert found.pop("work").startswith("files are rewritten in tasks of Spark")
    assert found == {"sum": [1500, 125_750], "streamed": 1500, "attached": 1500}
    assert SECRET_KEY not in (tmp_path / "server.log").read_text()
