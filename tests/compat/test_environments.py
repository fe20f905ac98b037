"""The cache of judge environments: built once, rebuilt after changed pins or a cut-short build, honest when missing."""

import threading
import time
from pathlib import Path

import pytest

from . import conftest
from .judges import JavaJudge, JudgeUnavailable, environments


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache in place of the real one."""
    monkeypatch.setattr(environments, "CACHE", tmp_path / "cache")
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
