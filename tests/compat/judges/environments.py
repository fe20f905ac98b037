"""Environments of the judges: built on demand, kept in `.oracles/`, keyed by a hash of everything pinned.

A changed pin, worker source or interpreter gives another key, so a stale environment is never used. Building holds
a file lock, which makes it safe for parallel test workers; the marker file written last makes an interrupted build
count as no build.
"""

import fcntl
import hashlib
import os
import platform
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent
JAVA_SOURCES = HERE.parent / "java"
CACHE = HERE.parents[2] / ".oracles"
READY = "READY"
JAVA_JUDGES = ("java", "java2")
"""One program and several releases of the engine: each has the pins in `<name>-pom.xml`."""
SERVERS = ("kafka",)
"""Servers that are nothing but the jars of `<name>-pom.xml`."""
BUILD_TIMEOUT_S = 1800
_NOT_IN_REGISTRY = re.compile(r"Could not find artifact (\S+:\S+)|(\S+:\S+) was not found in")


class JudgeUnavailable(Exception):
    """The environment of a judge cannot be made here; the message says what is missing."""


@dataclass(frozen=True, slots=True)
class Environment:
    """A ready environment: the judge's name and the command line that starts its process."""

    name: str
    directory: Path
    command: tuple[str, ...]


def prepare(name: str) -> Environment:
    """Return the environment of judge `name`, building it first when the cache has none for the present pins."""
    if name in JAVA_JUDGES:
        return _prepare_java(name)
    return _prepare_python(name)


def prepare_jars(name: str) -> list[Path]:
    """The jars that `<name>-pom.xml` pins, fetched when the cache has them not. A peer on Spark, or a
    server, is nothing but jars."""
    if shutil.which("mvn") is None:
        raise JudgeUnavailable(f"the jars of {name} need mvn on the PATH")
    pins = _jar_pins(name)
    directory = _directory(name, [pins])

    def build() -> None:
        _copy_jars(pins, directory)

    _once(name, directory, build)
    return sorted(directory.glob("*.jar"))


def prepare_go_program(name: str, module: str) -> Path:
    """A program that `go install` builds from a pinned module: a server of which the tests need no more."""
    if shutil.which("go") is None:
        raise JudgeUnavailable(f"{name} needs go on the PATH")
    directory = CACHE / f"{name}-{hashlib.sha256(module.encode()).hexdigest()[:16]}"
    made = {"GOBIN": str(directory), "GOPATH": str(directory / "go"), "GOFLAGS": "-modcacherw", "CGO_ENABLED": "0"}

    def build() -> None:
        _run(["go", "install", module], made)
        shutil.rmtree(directory / "go", ignore_errors=True)

    _once(name, directory, build)
    return directory / name


def is_at_hand(name: str) -> bool:
    """Whether the environment of a Python judge, or the jars of a peer, are in the cache."""
    pins = _jar_pins(name)
    directory = _directory(name, [pins]) if pins.exists() else _python_directory(name)
    return (directory / READY).exists()


def _jar_pins(name: str) -> Path:
    return JAVA_SOURCES / f"{name}-pom.xml"


def _python_pins(name: str) -> Path:
    return HERE / f"requirements-{name}.txt"


def _python_directory(name: str) -> Path:
    return _directory(name, [_python_pins(name)], platform.python_version(), platform.machine())


def _prepare_python(name: str) -> Environment:
    pins, directory = _python_pins(name), _python_directory(name)
    python = directory / "bin" / "python"

    def build() -> None:
        _run([sys.executable, "-m", "venv", str(directory)])
        _run([str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "-r", str(pins)])

    _once(name, directory, build)
    # The worker runs from the source tree, so an edit of it needs no rebuild.
    return Environment(name, directory, (str(python), str(HERE / "workers" / f"{name}_worker.py")))


def _prepare_java(name: str) -> Environment:
    missing = [tool for tool in ("mvn", "javac", "java") if shutil.which(tool) is None]
    if missing:
        raise JudgeUnavailable(f"the {name} judge needs {', '.join(missing)} on the PATH")
    pins = _jar_pins(name)
    sources = sorted(JAVA_SOURCES.glob("*.java"))
    directory = _directory(name, [pins, *sources])
    jars, classes = directory / "lib", directory / "classes"

    def build() -> None:
        _copy_jars(pins, jars)
        classes.mkdir(parents=True)
        _run(["javac", "-nowarn", "-proc:none", "-cp", f"{jars}/*", "-d", str(classes), *map(str, sources)])

    _once(name, directory, build)
    # Short runs on small tables: the quick compiler and the simple collector start fastest. The zone is fixed
    # because the engine turns local-zoned timestamps into text in the zone of the process.
    flags = ("-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xmx1g", "-Duser.timezone=UTC", "-Dfile.encoding=UTF-8")
    return Environment(name, directory, ("java", *flags, "-cp", f"{classes}:{jars}/*", "Judge"))


def _copy_jars(pins: Path, target: Path) -> None:
    """Fetches what the pins name: dependencies with all that they need, and artifacts that are asked for alone."""
    goals = ["dependency:copy-dependencies"]
    if "<artifactItem>" in pins.read_text():
        goals.append("dependency:copy")
    try:
        _run(["mvn", "-q", "-B", "-f", str(pins), *goals, f"-DoutputDirectory={target}"])
    except JudgeUnavailable as failure:
        absent = _NOT_IN_REGISTRY.search(str(failure))
        if absent is None:
            raise
        raise JudgeUnavailable(f"the registry that Maven asks does not have {absent[1] or absent[2]}") from failure


def _directory(name: str, files: list[Path], *facts: str) -> Path:
    digest = hashlib.sha256("\0".join(facts).encode())
    for file in files:
        digest.update(file.read_bytes())
    return CACHE / f"{name}-{digest.hexdigest()[:16]}"


def _once(name: str, directory: Path, build: Callable[[], None]) -> None:
    if (directory / READY).exists():
        return
    CACHE.mkdir(exist_ok=True)
    with _locked(CACHE / f"{name}.lock"):
        if (directory / READY).exists():  # another worker built it while this one waited
            return
        for stale in CACHE.glob(f"{name}-*"):
            shutil.rmtree(stale)
        directory.mkdir()
        build()
        (directory / READY).touch()


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    with path.open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # released when the file is closed, even if the process dies
        yield


def _run(command: list[str], more: Mapping[str, str] | None = None) -> None:
    try:
        done = subprocess.run(
            command,
            capture_output=True,
            text=True,
            timeout=BUILD_TIMEOUT_S,
            check=False,
            env={**os.environ, "PYTHONPATH": "", **(more or {})},
        )
    except (OSError, subprocess.TimeoutExpired) as failure:
        raise JudgeUnavailable(f"{command[0]}: {failure}") from failure
    if done.returncode != 0:
        tail = "\n".join((done.stdout + done.stderr).splitlines()[-15:])
        raise JudgeUnavailable(f"`{' '.join(command[:4])} …` failed with exit code {done.returncode}:\n{tail}")
