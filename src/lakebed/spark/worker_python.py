"""The Python that Spark's workers run on: one that answers before Spark gives up on it, however busy the machine is.

Most workers are forks of a daemon, for which Spark waits a minute. Those that read Python data sources as streams, and
on Spark Connect those that run `foreachBatch`, are started one by one, and have ten seconds to import everything and
connect. There is no setting for it, so `workers/early_connect` turns the order round. Sessions that we start use it for
all workers; a session that the user passes in, for the streams that we register, as long as workers run here. A server
of Spark Connect is told of it when it starts: PYSPARK_PYTHON=$(python -m lakebed.spark.worker_python)
"""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any

from lakebed.errors import MissingDependency
from lakebed.spark.launchers import launcher

_EARLY_CONNECT = Path(__file__).parent / "workers" / "early_connect.py"
_KIND = "python"
_one_at_a_time = threading.Lock()


def worker_python(python: str | None = None) -> str:
    """A program that does what a Python does, this one if none is named; only that Spark's workers connect early."""
    given = python or os.environ.get("PYSPARK_PYTHON") or sys.executable
    return given if os.name != "posix" or _is_ours(given) else str(_early("python", given))


def _early(name: str, given: str) -> Path:
    run, early = shlex.quote(given), shlex.quote(str(_EARLY_CONNECT))
    choice = f'case "$1 $2" in "-m pyspark."*) exec {run} {early} "$@";; *) exec {run} "$@";; esac'
    return launcher(_KIND, name, f"#!/bin/sh\n{choice}\n")


@contextmanager
def early_workers(spark: Any) -> Iterator[None]:
    """What is registered with a session in the meantime has workers that connect early, where that can be arranged.

    A client of Spark Connect has no say in it, and a program on this machine is of no use to workers on others.
    """
    context = None if type(spark).__module__.startswith("pyspark.sql.connect") else spark.sparkContext
    if context is None:
        yield
        return
    if not str(context.master).startswith("local"):
        _check_python(spark)
        yield
        return
    with _one_at_a_time:  # who comes second would take what the first has set for the user's
        before = context.pythonExec
        context.pythonExec = worker_python(before)
        try:
            yield
        finally:
            context.pythonExec = before


def use_this_python(spark: Any) -> None:
    """Lets the workers of a user's local session run on the Python of the driver, unless the user chose one.

    Without a choice Spark takes the `python3` of the PATH, which in a virtual environment that is not activated is
    another one, without our modules and perhaps of another version. Spark looks for data sources with that one too, so
    `format("lakebed")` is made known by hand.
    """
    if type(spark).__module__.startswith("pyspark.sql.connect"):
        return
    context = spark.sparkContext
    is_chosen = "PYSPARK_PYTHON" in os.environ or context.getConf().contains("spark.pyspark.python")
    if is_chosen or not str(context.master).startswith("local"):
        return
    found = shutil.which(context.pythonExec)
    # Not where links lead: an environment's Python is a link to one that knows nothing of the environment.
    if found is None or Path(found).parent != Path(sys.executable).parent:
        context.pythonExec = sys.executable
        with early_workers(spark):
            spark.dataSource.register(import_module("pyspark_lakebed").DefaultSource)


@contextmanager
def first_on_path() -> Iterator[None]:
    """A JVM that starts in the meantime finds this Python under the name `python3`, as it is called on other machines.

    Spark has one name for the Python of the driver and of all machines. On a cluster that is a name to look for.
    """
    before = os.environ.get("PATH", os.defpath)
    if os.name == "posix":
        os.environ["PATH"] = os.pathsep.join([str(_early("python3", sys.executable).parent), before])
    try:
        yield
    finally:
        os.environ["PATH"] = before


def _check_python(spark: Any) -> None:
    """Raises if the Python that the driver of a cluster's session starts has none of our modules.

    Spark plans Python data sources in a process of their own, on the `python3` of the driver's PATH: in a virtual
    environment that is not activated, that is another one.
    """
    context = spark.sparkContext
    found = shutil.which(context.pythonExec)
    if found is None or Path(found).parent == Path(sys.executable).parent or _is_ours(found) or found in _looked_at:
        return
    look = "import importlib.util as u, sys; sys.exit(0 if u.find_spec('lakebed') else 1)"
    if subprocess.run([found, "-c", look], check=False, capture_output=True).returncode == 1:
        raise MissingDependency(
            f"Spark starts {found} on the driver, which has no lakebed; this is {sys.executable}",
            hint="activate the environment of this Python before the session starts, or set PYSPARK_PYTHON to one that "
            "has lakebed on all machines",
        )
    _looked_at.add(found)


_looked_at: set[str] = set()
"""Pythons that have our modules."""


@contextmanager
def named_in_environment() -> Iterator[None]:
    """A JVM that starts in the meantime takes the program for all its workers."""
    names = ("PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON")
    before = {name: os.environ.get(name) for name in names}
    program = worker_python()
    os.environ.update(dict.fromkeys(names, program))
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


def _is_ours(python: str) -> bool:
    path = Path(python)
    return (
        path.parent.parent.name.startswith(f"{_KIND}-") and path.is_file() and str(_EARLY_CONNECT) in path.read_text()
    )


if __name__ == "__main__":
    sys.stdout.write(worker_python() + "\n")

__all__ = ["early_workers", "first_on_path", "named_in_environment", "use_this_python", "worker_python"]
