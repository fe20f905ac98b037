"""The cache of judge environments: built once, rebuilt after changed pins or a cut-short build, honest when missing."""

import os
import sys
import threading
import time
from pathlib import Path

import pytest
from benchmarks import spark_peers

from . import conftest
from .judges import JavaJudge, JudgeUnavailable, environments


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache in place of the real one, for tests and for benchmarks, which have the module by another name."""
    for module in (environments, sys.modules[spark_peers.prepare_jars.__module__]):
        monkeypatch.setattr(module, "CACHE", tmp_path / "cache")
    return tmp_path / "cache"


def test_parallel_workers_build_once(cache: Path) -> None:
    """Workers that need the same environment at the same time wait for one build and share it."""
    builds = []

    def build() -> None:
        builds.append(1)
        time.sleep(0.1)

    workers = [threading.Thread(target=environments._once, args=("x", cache / "x-1", build)) for _ in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert builds == [1]


def test_interrupted_build_is_repeated(cache: Path) -> None:
    """What a failed build left behind is removed before the next attempt."""

    def broken() -> None:
        (cache / "x-1" / "half").touch()
        raise JudgeUnavailable("no network")

    with pytest.raises(JudgeUnavailable):
        environments._once("x", cache / "x-1", broken)
    environments._once("x", cache / "x-1", lambda: None)
    assert sorted(path.name for path in (cache / "x-1").iterdir()) == [environments.READY]


def test_changed_pins_get_another_directory(cache: Path, tmp_path: Path) -> None:
    """The key covers the content of the pins, and the environment of the old pins is removed."""
    pins = tmp_path / "pins.txt"
    pins.write_text("a==1")
    old = environments._directory("x", [pins])
    environments._once("x", old, lambda: None)
    pins.write_text("a==2")
    new = environments._directory("x", [pins])
    environments._once("x", new, lambda: None)
    assert [path.name for path in cache.glob("x-*")] == [new.name] != [old.name]


@pytest.mark.parametrize(("ci", "outcome"), [("true", pytest.fail.Exception), ("", pytest.skip.Exception)])
def test_missing_judge_fails_in_ci_and_skips_elsewhere(
    ci: str, outcome: type[BaseException], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without its tools the Java judge names them: a failure where CI=true, a skip on other machines."""
    monkeypatch.setenv("CI", ci)
    monkeypatch.setattr(environments.shutil, "which", lambda tool: None)
    with pytest.raises(outcome, match="mvn, javac, java"):
        next(conftest._session(JavaJudge, "java"))


def test_failed_command_is_quoted() -> None:
    """A build that fails says which command it was and what that printed."""
    with pytest.raises(JudgeUnavailable, match="exit code 3"):
        environments._run(["sh", "-c", "echo no such version; exit 3"])
    with pytest.raises(JudgeUnavailable, match="no-such-program"):
        environments._run(["no-such-program"])


MAVEN = """#!/bin/sh
for word in "$@"; do case $word in *paimon-connector*)
    echo "[ERROR] Could not find artifact org.apache.paimon:paimon-spark:jar:1 in central (https://somewhere)"; exit 1
esac; done
for word in "$@"; do case $word in -DoutputDirectory=*) mkdir -p "${word#*=}"; touch "${word#*=}/peer.jar"; esac; done
"""


def test_a_peer_that_the_registry_lacks_is_left_out(
    cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Benchmarks are told in one line which artifact is missing, and go on with the other peers."""
    tools = tmp_path / "bin"
    tools.mkdir()
    (tools / "mvn").write_text(MAVEN)
    (tools / "mvn").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tools}:{os.environ['PATH']}")
    monkeypatch.delenv("LAKEBED_PAIMON_CONNECTOR", raising=False)
    monkeypatch.setattr(spark_peers, "peer_python", lambda name: "python")
    found, missing = spark_peers.available(["paimon", "delta"], build=True)
    assert found == ["delta"]
    reason = "the registry that Maven asks does not have org.apache.paimon:paimon-spark:jar:1"
    assert missing == {"paimon": reason}
    assert (cache / "delta.lock").exists()


def test_jars_of_a_peer_can_be_named(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the registry lacks the connector, one that lies somewhere else is measured."""
    monkeypatch.setattr(environments.shutil, "which", lambda tool: None)
    monkeypatch.setattr(spark_peers, "peer_python", lambda name: "python")
    monkeypatch.setenv("LAKEBED_PAIMON_CONNECTOR", "/jars/a.jar:/jars/b.jar")
    assert spark_peers.available(["paimon"], build=True) == (["paimon"], {})
    assert not cache.exists()
