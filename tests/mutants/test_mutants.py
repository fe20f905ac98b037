"""Planted bugs are found: the tests that guard against lost rows would notice if a guard were taken away."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from tests.mutants.find import FOUND
from tests.mutants.histories import HISTORIES
from tests.mutants.planted import CLASSICS, MENDS, MUTANTS, STATEMENT_MENDS, Mutant
from tests.mutants.statements import STATEMENTS
from tests.properties.combinations.shrink import replay

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "lakebed"


@pytest.mark.parametrize("name", HISTORIES)
def test_sound_code_has_no_finding(name: str) -> None:
    """The histories that catch mutants find nothing where there is none."""
    assert replay(*HISTORIES[name]) is None


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_mutants_fit_the_source(mutant: Mutant) -> None:
    """The text that a mutant replaces is in the source, once; and its history is there."""
    for path, old, _ in mutant.edits:
        assert (SOURCE / path).read_text().count(old) == 1, f"{path}: {old}"
    assert mutant.caught_by in HISTORIES | STATEMENTS


def test_there_are_enough() -> None:
    """Each mended fault, and twenty classics."""
    assert len(CLASSICS) >= 20
    assert len({mutant.name for mutant in MUTANTS}) == len(MENDS) + len(STATEMENT_MENDS) + len(CLASSICS)


@pytest.mark.nightly
@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_mutants_are_caught(mutant: Mutant, tmp_path: Path) -> None:
    """With a bug planted into a copy of the source, the history that the mutant names finds it."""
    done = find_in_copy(mutant, tmp_path)
    assert str(tmp_path) in done.stdout, f"another lakebed was imported: {done.stdout} {done.stderr}"
    assert done.returncode == FOUND, f"{mutant.name} is not caught: {done.stdout} {done.stderr}"


def find_in_copy(mutant: Mutant, directory: Path) -> subprocess.CompletedProcess[str]:
    """Plants the bug into a copy of the source and runs its history there, in a process of its own."""
    copy = directory / "lakebed"
    shutil.copytree(SOURCE, copy, ignore=shutil.ignore_patterns("__pycache__"))
    for path, old, new in mutant.edits:
        (copy / path).write_text((copy / path).read_text().replace(old, new))
    path = os.pathsep.join([str(directory), str(ROOT)])
    return subprocess.run(
        [sys.executable, "-m", "tests.mutants.find", mutant.caught_by],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": path},
    )
