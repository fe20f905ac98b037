"""The wheel and the sdist: those that `make dist` has built, or built now."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="session")
def dist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder that holds both."""
    given = os.environ.get("LAKEBED_DIST")
    return ROOT / given if given else build(ROOT, tmp_path_factory.mktemp("dist"))


@pytest.fixture(scope="session")
def wheel(dist: Path) -> Path:
    """What users install."""
    (found,) = dist.glob("*.whl")
    return found


@pytest.fixture(scope="session")
def sdist(dist: Path) -> Path:
    """What packagers build from."""
    (found,) = dist.glob("*.tar.gz")
    return found


def build(source: Path, target: Path, *what: str) -> Path:
    """Builds in this environment, which has all that the build needs; nothing is downloaded."""
    run = [sys.executable, "-m", "hatchling", "build", "-d", str(target), *what]
    done = subprocess.run(run, cwd=source, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return target
