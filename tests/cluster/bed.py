"""A Spark cluster as a test bed: a standalone master, workers on hosts of their own, and an S3 server for the lake.

Master and workers are started from the jars that come with pyspark. Nothing of the source tree is on the workers: they
have the wheel. The driver is whoever asks: `Bed.session()` makes this process one.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import time
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any, Self

from tests.cluster.hosts import Host, Network, build_wheel, end, without_paths
from tests.cluster.s3_server import S3Server
from tests.compat.judges import environments
from tests.compat.judges.environments import JudgeUnavailable

import lakebed
from lakebed.spark.session import java_home
from lakebed.testing.ports import free_port

_START_S = 120.0
_STORE = 200
"""The number of the store's host, if it has one."""
_DAEMON = {"SPARK_DAEMON_MEMORY": "192m", "SPARK_DAEMON_JAVA_OPTS": "-XX:+UseSerialGC -XX:TieredStopAtLevel=1"}


class Bed:
    """The cluster. `with Bed(home) as bed:` starts it and takes everything away after."""

    def __init__(self, home: Path, workers: int = 2, *, cores: int = 1, has_store_apart: bool = False) -> None:
        self.home = home
        home.mkdir(parents=True, exist_ok=True)
        self.network = Network()
        # The driver's machine, unless somebody wants to tell its traffic from that of the driver.
        place = self.network.add(_STORE) if has_store_apart else (self.network.driver, [])
        self.store = S3Server(home, *place)
        self.event_logs = home / "events"
        self.event_logs.mkdir()
        self.driver_only = home / "driver-only"
        self.driver_only.mkdir()
        self.hosts = [Host(self.network, number + 1, home, (self.driver_only,)) for number in range(workers)]
        self._cores = cores
        self._master: subprocess.Popen[bytes] | None = None
        self._workers: dict[int, subprocess.Popen[bytes]] = {}
        self._port, self._ui_port = free_port(), free_port()
        self.java_home = java_home() or os.environ.get("JAVA_HOME", "")

    # --- life -------------------------------------------------------------------------------------------------------

    def start(self) -> Self:
        """Starts everything and returns once all workers have reported."""
        self.store.start()
        self.start_master()
        self.install()
        for host in self.hosts:
            self.start_worker(host)
        self.until(lambda: self.alive_workers() == len(self.hosts), "workers")
        return self

    def install(self) -> None:
        """Installs the wheel of the source tree on all hosts."""
        wheel = build_wheel(self.home / "wheel")
        for host in self.hosts:
            host.install(wheel)

    def remove(self) -> None:
        """Ends everything and takes it away."""
        for number in list(self._workers):
            self.end_worker(self.hosts[number - 1], signal.SIGKILL)
        end(self._master, signal.SIGKILL)
        self.store.stop()
        self.network.remove()
        shutil.rmtree(self.home, ignore_errors=True)

    def __enter__(self) -> Self:
        try:
            return self.start()
        except BaseException:
            self.remove()
            raise

    def __exit__(self, *_: object) -> None:
        self.remove()

    # --- its parts --------------------------------------------------------------------------------------------------

    @property
    def master(self) -> str:
        """What drivers connect to."""
        return f"spark://{self.network.driver}:{self._port}"

    def start_master(self) -> None:
        """Starts the master."""
        place = ["--host", self.network.driver, "--port", str(self._port), "--webui-port", str(self._ui_port)]
        with (self.home / "master.log").open("ab") as log:
            self._master = subprocess.Popen(
                [spark_class(), "org.apache.spark.deploy.master.Master", *place],
                stdout=log,
                stderr=log,
                cwd=self.home,
                env={**without_paths(os.environ), "JAVA_HOME": self.java_home, **_DAEMON},
                start_new_session=True,
            )

    def start_worker(self, host: Host) -> None:
        """Starts the worker of a host."""
        size = ["--cores", str(self._cores), "--memory", "1536m", "--work-dir", str(host.home / "work")]
        command = [spark_class(), "org.apache.spark.deploy.worker.Worker", "--host", host.address, *size, self.master]
        own = {
            "JAVA_HOME": self.java_home,
            "SPARK_HOME": str(Path(spark_class()).parents[1]),
            "SPARK_LOCAL_DIRS": str(host.temporary),
            "SPARK_LOCAL_IP": host.address,
            **_DAEMON,
        }
        self._workers[host.number] = host.start(command, "worker.log", **own)

    def end_worker(self, host: Host, sign: signal.Signals = signal.SIGKILL) -> None:
        """Ends a worker with its executors."""
        end(self._workers.pop(host.number, None), sign)
        for process in executors_of(host):
            os.kill(process, signal.SIGKILL)

    def kill_executor(self, host: Host) -> bool:
        """Kills what runs tasks on a host; False if nothing does."""
        found = executors_of(host)
        for process in found:
            os.kill(process, signal.SIGKILL)
        return bool(found)

    def alive_workers(self) -> int:
        """How many workers the master knows to be there."""
        try:
            with urllib.request.urlopen(f"http://{self.network.driver}:{self._ui_port}/json/", timeout=5) as answer:
                return answer.read().decode().replace(" ", "").count('"state":"ALIVE"')
        except OSError:
            return 0

    def until(self, is_so: Callable[[], bool], what: str, seconds: float = _START_S) -> None:
        """Waits for a condition."""
        deadline = time.monotonic() + seconds
        while not is_so():
            if time.monotonic() > deadline:
                raise TimeoutError(f"no {what} after {seconds:.0f} s; see {self.home}")
            time.sleep(0.1)

    def traffic(self) -> dict[str, int]:
        """How many bytes each host has sent and received so far; empty where hosts share one network."""
        if not self.network.is_real:
            return {}
        found = {f"worker-{host.number}": self.network.bytes_of(host.number) for host in self.hosts}
        return {"driver": self.network.bytes_of_driver(), **found}

    # --- what drivers use -------------------------------------------------------------------------------------------

    def settings(self) -> dict[str, str]:
        """What a driver's session is made with, on top of what Spark does by itself."""
        return {
            "spark.driver.host": self.network.driver,
            "spark.driver.bindAddress": self.network.driver,
            "spark.driver.memory": "1g",
            "spark.executor.memory": "768m",
            "spark.ui.enabled": "false",
            "spark.ui.showConsoleProgress": "false",
            "spark.sql.shuffle.partitions": "2",
            "spark.eventLog.enabled": "true",
            "spark.eventLog.dir": self.event_logs.as_uri(),
            "spark.eventLog.compress": "false",
            "spark.executor.extraJavaOptions": "-XX:+UseSerialGC -XX:TieredStopAtLevel=1",
        }

    def session(self, **more: str) -> Any:
        """A session with this process as the driver. Workers take the `python3` of their host, as is usual."""
        from pyspark.sql import SparkSession

        os.environ.update({"JAVA_HOME": self.java_home, "SPARK_LOCAL_IP": self.network.driver})
        builder = SparkSession.builder.master(self.master).appName("lakebed on a cluster")
        for key, value in {**self.settings(), **more}.items():
            builder = builder.config(key, value)
        session = builder.getOrCreate()
        session.sparkContext.setLogLevel("ERROR")
        return session

    def hadoop(self) -> dict[str, str]:
        """Settings with which Spark itself writes to the store, as checkpoints need it; empty if it can not be had."""
        try:
            jars = environments.prepare_jars("s3a")
        except JudgeUnavailable:
            return {}
        options, prefix = self.store.options, "spark.hadoop.fs.s3a"
        return {
            "spark.jars": ",".join(map(str, jars)),
            "spark.hadoop.fs.s3.impl": "org.apache.hadoop.fs.s3a.S3AFileSystem",
            f"{prefix}.endpoint": options["s3.endpoint"],
            f"{prefix}.endpoint.region": options["s3.region"],
            f"{prefix}.access.key": options["s3.access-key"],
            f"{prefix}.secret.key": options["s3.secret-key"],
            f"{prefix}.path.style.access": "true",
        }

    def checkpoint(self, name: str) -> str:
        """A place for a checkpoint that all see: in the store if Spark can write there, else in a directory."""
        return self.place(name) if self.hadoop() else str(self.home / name)

    def place(self, name: str) -> str:
        """A URL for a lake."""
        return f"s3://{self.store.bucket}/{name}"

    def lake(self, name: str, spark: Any = None) -> lakebed.Lake:
        """A lake on the S3 server."""
        return lakebed.connect(self.place(name), spark=spark, options=self.store.options)

    def told(self) -> str:
        """All that Spark has written down of its jobs: event logs, and the logs of the workers and executors."""
        files = [path for path in self.event_logs.rglob("*") if path.is_file()]
        files += [path for host in self.hosts for path in host.home.glob("work/*/*/std*")]
        files += [path for host in self.hosts for path in host.home.glob("*.log")]
        return "".join(path.read_text(errors="replace") for path in files)


def executors_of(host: Host) -> list[int]:
    """Processes that run tasks on a host: they have its work directory."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                place = (entry / "cwd").readlink()
                words = (entry / "cmdline").read_bytes()
            except OSError:
                continue
            if place.is_relative_to(host.home / "work") and b"CoarseGrainedExecutorBackend" in words:
                found.append(int(entry.name))
    return found


def spark_class() -> str:
    """The program that starts a class of Spark."""
    import pyspark

    return str(Path(pyspark.__file__).parent / "bin" / "spark-class")


__all__ = ["Bed", "executors_of", "spark_class"]
