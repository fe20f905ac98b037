"""The wheel in an empty environment, with each extra in turn: the README runs from there, outside of the checkout."""

import json
import os
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from tests.package.conftest import ROOT
from tests.readme import printed, steps

README = (ROOT / "README.md").read_text()
EXTRAS = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
WITH_SPARK = {"spark", "cdc"}
SHOWN_BY = {"pandas": "to_pandas", "polars": "to_polars", "duckdb": "to_duckdb"}
"""Which method needs which extra."""

CLEAN = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "VIRTUAL_ENV")}


MADE = "import lakebed; t = lakebed.connect('made').create_table('orders', {'id': [1, 2]})"
"""A program that has a table `t` with rows."""


@pytest.fixture(params=["", *EXTRAS], ids=lambda extra: extra or "alone")
def installed(request: pytest.FixtureRequest, wheel: Path, tmp_path: Path) -> tuple[str, Path]:
    """An extra, and the Python of an environment that has the wheel with that extra and nothing else."""
    extra: str = request.param
    home = tmp_path / "environment"
    subprocess.run([sys.executable, "-m", "venv", home], check=True)
    python = home / "bin" / "python"
    wanted = f"{wheel.resolve()}[{extra}]" if extra else str(wheel.resolve())
    pip = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", wanted]
    done = subprocess.run(pip, capture_output=True, text=True, check=False, env=CLEAN)
    assert done.returncode == 0, done.stderr
    return extra, python


@pytest.mark.nightly
def test_the_readme_runs_from_the_wheel(installed: tuple[str, Path], tmp_path: Path) -> None:
    """Every part of the README that this extra is enough for prints what it says."""
    extra, python = installed
    wanted = [step for step in steps(README) if step.extra == extra or extra in WITH_SPARK]
    assert printed(python, wanted, tmp_path / "empty", CLEAN) == [step.output for step in wanted]

    said = _said(python, "import json, lakebed; print(json.dumps([lakebed.__file__, lakebed.__version__]))", tmp_path)
    place, version = json.loads(said)
    assert Path(place).is_relative_to(tmp_path / "environment")
    command = [str(python.parent / "lakebed"), "--version"]
    assert version in subprocess.run(command, capture_output=True, text=True, check=True, env=CLEAN).stdout
    if extra in SHOWN_BY:
        _said(python, f"{MADE}; print(t.{SHOWN_BY[extra]}())", tmp_path)
    if not extra:
        spark = f"{MADE}; t.to_spark()"
        failed = subprocess.run(
            [python, "-c", spark], cwd=tmp_path, capture_output=True, text=True, check=False, env=CLEAN
        )
        assert 'pip install "lakebed[spark]"' in failed.stderr


READ_BY_RAY = """
import lakebed, ray
from lakebed.integrations.ray import read_table

columns = {"k": "BIGINT", "s": "STRING"}
t = lakebed.connect("made").create_table("t", columns, primary_key=["k"], options={"bucket": "3"})
for start in (0, 50):
    t.write({"k": list(range(start, start + 100)), "s": [str(k) for k in range(start, start + 100)]})
ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, logging_level="ERROR")
found = read_table(t, ["k"], "k >= 20")
print(sorted(row["k"] for row in found.take_all()) == list(range(20, 150)), found.schema().names)
nothing = read_table(t, filter="s = 'nope'")
print(nothing.count(), nothing.schema().names)
ray.shutdown()
"""


@pytest.mark.nightly
def test_ray_reads_a_table(wheel: Path, tmp_path: Path) -> None:
    """The reader for Ray, with Ray itself: its workers read every split once, and know columns without rows."""
    home = tmp_path / "environment"
    subprocess.run([sys.executable, "-m", "venv", home], check=True)
    python = home / "bin" / "python"
    pip = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", str(wheel.resolve())]
    done = subprocess.run([*pip, "ray[data]"], capture_output=True, text=True, check=False, env=CLEAN)
    assert done.returncode == 0, done.stderr
    assert _said(python, READ_BY_RAY, tmp_path).splitlines() == ["True ['k']", "0 ['k', 's']"]


def _said(python: Path, program: str, folder: Path) -> str:
    run = [str(python), "-c", program]
    done = subprocess.run(run, cwd=folder, capture_output=True, text=True, check=False, env=CLEAN)
    assert done.returncode == 0, done.stderr
    return done.stdout
