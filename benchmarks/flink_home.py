"""Flink as a peer: a cluster of one machine that follows the same database into tables of Paimon."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import time
from pathlib import Path

import lakebed
from benchmarks.views import cpu_seconds
from lakebed.testing.postgres_server import PostgresServer

CONFIG = """
jobmanager.rpc.address: localhost
jobmanager.bind-host: localhost
jobmanager.memory.process.size: 1024m
taskmanager.bind-host: localhost
taskmanager.host: localhost
taskmanager.memory.process.size: 4096m
taskmanager.numberOfTaskSlots: 8
parallelism.default: 2
rest.address: localhost
rest.bind-address: localhost
state.backend.type: rocksdb
execution.checkpointing.interval: 1000ms
execution.checkpointing.min-pause: 0ms
execution.checkpointing.mode: EXACTLY_ONCE
restart-strategy.type: fixed-delay
restart-strategy.fixed-delay.attempts: 1000
restart-strategy.fixed-delay.delay: 1s
"""
_RUNS = {
    "jobmanager": "org.apache.flink.runtime.entrypoint.StandaloneSessionClusterEntrypoint",
    "taskmanager": "org.apache.flink.runtime.taskexecutor.TaskManagerRunner",
}


class FlinkCluster:
    """A JobManager and a TaskManager with two jobs: the synced tables, and what is made of them."""

    name = "flink"

    def __init__(self, home: Path, place: Path, server: PostgresServer, wide: str, sums: str) -> None:
        self._home = place / "flink"
        shutil.copytree(home, self._home, symlinks=True)
        config = self._home / "conf" / "config.yaml"
        opened = re.search(r"^ *all: (--add-.*)$", config.read_text(), re.MULTILINE)
        (place / "tmp").mkdir()
        more = f"execution.checkpointing.dir: file://{place}/checkpoints\nio.tmp.dirs: {place}/tmp\n"
        more += f"env.java.opts.all: {opened[1]}\n" if opened is not None else ""
        config.write_text(CONFIG + more)
        self.lake = lakebed.connect(place / "lake")
        self._place, self._has_jobs = place, False
        self._job = place / "job.sql"
        self._job.write_text(_statements(place, server, wide, sums))

    def start(self) -> None:
        """Starts what does not run; the jobs only once, since they go on by themselves."""
        for program, name in _RUNS.items():
            if self._pid(name) is None:
                self._run(f"bin/{program}.sh", "start")
        if self._has_jobs:
            return
        self._run("bin/sql-client.sh", "-f", str(self._job))
        self._has_jobs = True

    def kill(self) -> None:
        """The TaskManager; the JobManager finds out, and starts the jobs again on another one."""
        pid = self._pid(_RUNS["taskmanager"])
        assert pid is not None
        os.kill(pid, signal.SIGKILL)
        while self._pid(_RUNS["taskmanager"]) is not None:
            time.sleep(0.05)

    def stop(self) -> None:
        """Both processes."""
        for name in reversed(_RUNS.values()):
            pid = self._pid(name)
            if pid is not None:
                os.kill(pid, signal.SIGKILL)

    def cpu(self) -> float:
        """Of both processes."""
        return sum(cpu_seconds(pid) for name in _RUNS.values() if (pid := self._pid(name)) is not None)

    def _pid(self, name: str) -> int | None:
        """Of a process that runs from this home."""
        for place in Path("/proc").iterdir():
            if place.name.isdigit():
                try:
                    words = (place / "cmdline").read_bytes().decode(errors="replace")
                except OSError:  # it has ended
                    continue
                if name in words and str(self._home) in words:
                    return int(place.name)
        return None

    def _run(self, program: str, *words: str) -> None:
        with (self._place / "log").open("ab") as log:
            subprocess.run(
                [str(self._home / program), *words], check=True, stdout=log, stderr=log, stdin=subprocess.DEVNULL
            )


def _statements(place: Path, server: PostgresServer, wide: str, sums: str) -> str:
    def source(name: str, columns: str) -> str:
        options = {
            "connector": "postgres-cdc",
            "hostname": "127.0.0.1",
            "port": str(server.port),
            "username": server.user,
            "password": server.password,
            "database-name": server.database,
            "schema-name": "public",
            "table-name": name,
            "slot.name": f"flink_{name}",
            "decoding.plugin.name": "pgoutput",
            "debezium.publication.autocreate.mode": "filtered",
            "debezium.publication.name": f"flink_{name}",
            "scan.incremental.snapshot.enabled": "true",
            "changelog-mode": "all",
        }
        listed = ", ".join(f"'{key}' = '{value}'" for key, value in options.items())
        return (
            f"CREATE TEMPORARY TABLE src_{name} ({columns}) WITH ({listed});\n"
            f"CREATE TABLE {name} ({columns}) WITH ('bucket' = '2', 'changelog-producer' = 'lookup');\n"
        )

    orders = "id BIGINT, customer BIGINT, amount BIGINT, note STRING, PRIMARY KEY (id) NOT ENFORCED"
    customers = "id BIGINT, name STRING, city STRING, PRIMARY KEY (id) NOT ENFORCED"
    names = {"orders": "orders", "customers": "customers"}
    return (
        f"CREATE CATALOG lake WITH ('type' = 'paimon', 'warehouse' = 'file://{place}/lake');\nUSE CATALOG lake;\n"
        "SET 'table.exec.sink.upsert-materialize' = 'NONE';\n"
        f"{source('orders', orders)}{source('customers', customers)}"
        "CREATE TABLE wide (id BIGINT, amount BIGINT, customer BIGINT, name STRING, city STRING, "
        "PRIMARY KEY (id) NOT ENFORCED) WITH ('bucket' = '2');\n"
        "CREATE TABLE sums (city STRING, n BIGINT, amount BIGINT, PRIMARY KEY (city) NOT ENFORCED) "
        "WITH ('bucket' = '1');\n"
        "EXECUTE STATEMENT SET BEGIN INSERT INTO orders SELECT * FROM src_orders; "
        "INSERT INTO customers SELECT * FROM src_customers; END;\n"
        f"EXECUTE STATEMENT SET BEGIN INSERT INTO wide {wide.format(**names)}; "
        f"INSERT INTO sums {sums.format(**names)}; END;\n"
    )
