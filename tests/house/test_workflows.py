"""Workflows and templates of the repository are well-formed and name what exists."""

import os
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).parents[2]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
FORMS = sorted((ROOT / ".github" / "ISSUE_TEMPLATE").glob("*.yml"))
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
TARGETS = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))


def _steps(workflow: Path) -> Iterator[dict[str, Any]]:
    for job in yaml.safe_load(workflow.read_text())["jobs"].values():
        yield from job["steps"]


@pytest.mark.parametrize("workflow", WORKFLOWS, ids=lambda path: path.stem)
def test_a_workflow_is_whole(workflow: Path) -> None:
    """It says when it runs and what it may do, its jobs end in time, and every step is a command or a pinned action."""
    read = yaml.safe_load(workflow.read_text())
    assert read[True], "YAML reads the word `on` as true"
    assert read["permissions"] == {"contents": "read"}
    for name, job in read["jobs"].items():
        assert job["timeout-minutes"] <= 360, name
        assert set(job.get("needs", "").split()) <= set(read["jobs"])
        for step in job["steps"]:
            assert ("run" in step) != ("uses" in step), name
            assert re.fullmatch(r"[\w./-]+@(v\d+|release/v\d+)", step.get("uses", "x@v1")), step


@pytest.mark.parametrize("workflow", WORKFLOWS, ids=lambda path: path.stem)
def test_commands_of_workflows_exist(workflow: Path) -> None:
    """Make targets are those of the Makefile, scripts are there and can be run."""
    for step in _steps(workflow):
        for line in step.get("run", "").splitlines():
            assert set(re.findall(r"\bmake ([\w-]+)", line)) <= TARGETS, line
            for script in re.findall(r"(?<!\S)(\.ci/\S+)", line):
                assert os.access(ROOT / script, os.X_OK), line
            for path in re.findall(r"\b(src/\S+|\w+\.md)\b", line):
                assert (ROOT / path).exists(), line


def test_every_python_of_the_package_is_tested() -> None:
    """The tests run on the versions that the package says it is for."""
    jobs = yaml.safe_load((ROOT / ".github" / "workflows" / "ci.yml").read_text())["jobs"]
    said = [re.fullmatch(r"Programming Language :: Python :: (3\.\d+)", each) for each in PROJECT["classifiers"]]
    assert jobs["test"]["strategy"]["matrix"]["python"] == [each.group(1) for each in said if each]
    assert PROJECT["requires-python"] == f">={jobs['check']['steps'][1]['with']['python-version']}"


def test_only_a_job_that_publishes_may_do_more_than_read() -> None:
    """A release is published by the registry's trust in the workflow: nothing in it is secret."""
    text = (ROOT / ".github" / "workflows" / "release.yml").read_text()
    jobs = yaml.safe_load(text)["jobs"]
    assert {name: job["permissions"] for name, job in jobs.items() if "permissions" in job} == {
        "publish": {"id-token": "write"},
        "announce": {"contents": "write"},
    }
    assert "secrets." not in text


@pytest.mark.parametrize("form", FORMS, ids=lambda path: path.stem)
def test_a_form_for_issues_is_whole(form: Path) -> None:
    """It has a name and fields with labels, or links to places that the package names too."""
    read = yaml.safe_load(form.read_text())
    if form.stem == "config":
        assert all(link["url"].startswith(PROJECT["urls"]["Homepage"]) for link in read["contact_links"])
        return
    assert read["name"]
    assert read["description"]
    assert all(field["attributes"]["label"] for field in read["body"])
    assert len({field["id"] for field in read["body"]}) == len(read["body"])


def test_templates_name_make_targets() -> None:
    """What somebody who changes something is asked to run can be run."""
    documents = [ROOT / ".github" / "PULL_REQUEST_TEMPLATE.md", ROOT / "CONTRIBUTING.md", ROOT / "README.md"]
    for document in documents:
        named = set(re.findall(r"(?:^    |`)make ([\w-]+)", document.read_text(), re.MULTILINE))
        assert named, document.name
        assert named <= TARGETS, document.name


def test_the_changelog_begins_with_what_is_not_released() -> None:
    """Above all releases; each of them has a version, a day and an address, and sections of the usual names."""
    text = (ROOT / "CHANGELOG.md").read_text()
    first, *released = re.findall(r"^## (.+)$", text, re.MULTILINE)
    assert first == "[Unreleased]"
    assert all(re.fullmatch(r"\[\d+\.\d+\.\d+\] - \d{4}-\d{2}-\d{2}", each) for each in released)
    usual = {"Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"}
    assert set(re.findall(r"^### (.+)$", text, re.MULTILINE)) <= usual
    for version in re.findall(r"^## \[(.+?)\]", text, re.MULTILINE):
        assert f"\n[{version}]: {PROJECT['urls']['Homepage']}" in text
