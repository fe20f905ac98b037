"""What is in the wheel and in the sdist, and what is not."""

import os
import re
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from email import message_from_string
from email.message import Message
from pathlib import Path, PurePosixPath

import pytest
from tests.package.conftest import ROOT, build

import lakebed

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
INFO = f"lakebed-{lakebed.__version__}.dist-info"


def _names(wheel: Path) -> set[str]:
    with zipfile.ZipFile(wheel) as archive:
        return set(archive.namelist())


def _metadata(wheel: Path) -> Message:
    with zipfile.ZipFile(wheel) as archive:
        return message_from_string(archive.read(f"{INFO}/METADATA").decode())


def _sources(*folders: str) -> set[str]:
    """Files of the source, without what Python leaves beside them."""
    return {
        path.relative_to(ROOT).as_posix()
        for folder in folders
        for path in (ROOT / folder).rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }


def test_the_wheel_holds_the_package(wheel: Path) -> None:
    """All of it and the name Spark finds us by, with its types; no models, no servers, no tests, nothing else."""
    package = {path.removeprefix("src/") for path in _sources("src") if not path.startswith("src/lakebed/testing/")}
    info = {f"{INFO}/{name}" for name in ("METADATA", "RECORD", "WHEEL", "entry_points.txt")}
    licences = {f"{INFO}/licenses/{name}" for name in ("LICENSE", "NOTICE")}
    assert _names(wheel) == package | info | licences
    assert "lakebed/py.typed" in _names(wheel)


def test_nothing_in_the_wheel_needs_what_is_left_out(wheel: Path) -> None:
    """No module that is shipped imports the models and servers of the tests."""
    with zipfile.ZipFile(wheel) as archive:
        code = {name: archive.read(name).decode() for name in archive.namelist() if name.endswith(".py")}
    importing = re.compile(
        r"^\s*(from|import) (lakebed\.testing|tests)\b|from lakebed import .*\btesting\b", re.MULTILINE
    )
    assert [name for name, text in code.items() if importing.search(text)] == []


def test_the_wheel_says_what_it_is(wheel: Path) -> None:
    """Version, licence, address, extras and the README stand in its metadata, as a registry shows them."""
    said = _metadata(wheel)
    assert said["Name"] == "lakebed"
    assert said["Version"] == lakebed.__version__
    assert said["License-Expression"] == "Apache-2.0"
    assert said.get_all("License-File") == ["LICENSE", "NOTICE"]
    assert said["Requires-Python"] == ">=3.11"
    assert set(said.get_all("Provides-Extra") or []) == set(PROJECT["optional-dependencies"])
    urls = dict(each.split(", ") for each in said.get_all("Project-URL") or [])
    assert urls == PROJECT["urls"]
    assert said["Description-Content-Type"] == "text/markdown"


def test_the_readme_of_the_wheel_can_be_read_anywhere(wheel: Path) -> None:
    """It is the repository's, with addresses for what only the repository holds: a registry shows the picture, too."""
    shown, home = str(_metadata(wheel).get_payload()), PROJECT["urls"]["Homepage"]
    assert re.findall(r"\]\((?!https://)[^)]*\)", shown) == []
    assert f"]({home}/raw/main/docs/pictures/main-job.svg)" in shown
    assert f"]({home}/blob/main/docs/changelogs.md)" in shown
    assert re.sub(rf"{home}/(raw|blob)/main/", "", shown) == (ROOT / "README.md").read_text()


def test_the_licence_is_whole(wheel: Path) -> None:
    """The text of the Apache License, and whose work it is."""
    with zipfile.ZipFile(wheel) as archive:
        licence, notice = (archive.read(f"{INFO}/licenses/{name}").decode() for name in ("LICENSE", "NOTICE"))
    assert licence.splitlines()[0].strip() == "Apache License"
    assert "END OF TERMS AND CONDITIONS" in licence
    assert notice.startswith("Lakebed\nCopyright ")


def test_the_sdist_holds_the_project(sdist: Path) -> None:
    """Everything that the repository holds, so that its tests run; and nothing else."""
    with tarfile.open(sdist) as archive:
        held = {PurePosixPath(*PurePosixPath(each.name).parts[1:]).as_posix() for each in archive if each.isfile()}
    assert held >= _sources("src", "docs", "examples", "benchmarks", ".github", ".ci")
    assert held >= {"LICENSE", "NOTICE", "Makefile", "pyproject.toml", "requirements.lock", "README.md", "PKG-INFO"}
    assert held >= _sources("tests/unit", "tests/house", "tests/fixtures")
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=False)
    if listed.returncode == 0:  # an sdist that was unpacked has no list of its files
        assert set(listed.stdout.splitlines()) - held == set()
    assert [name for name in held if re.search(r"(^|/)(\.venv|\.oracles|__pycache__|\.hypothesis|dist)/", name)] == []


@pytest.mark.nightly
@pytest.mark.timeout(5400)  # a whole run of the unit tests
def test_the_sdist_is_enough(sdist: Path, wheel: Path, tmp_path: Path) -> None:
    """Unpacked elsewhere it builds the same wheel, byte for byte, and runs its unit tests."""
    with tarfile.open(sdist) as archive:
        archive.extractall(tmp_path, filter="data")
    (unpacked,) = tmp_path.iterdir()
    (again,) = build(unpacked, tmp_path / "dist", "-t", "wheel").glob("*.whl")
    assert again.read_bytes() == wheel.read_bytes()
    run = [sys.executable, "-m", "pytest", "-n", "2", "tests/unit", "tests/house", "-p", "no:cacheprovider"]
    env = os.environ | {"PYTHONPATH": str(unpacked / "src")}  # processes that tests start find it there, too
    done = subprocess.run(run, cwd=unpacked, capture_output=True, text=True, check=False, env=env)
    assert done.returncode == 0, done.stdout[-5000:]
