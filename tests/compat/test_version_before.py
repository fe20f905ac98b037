"""Tables that the version before this one wrote: read, written on, compacted and checked as that version would."""

from __future__ import annotations

import json
import re
import tarfile
import time
from pathlib import Path
from typing import Any

import fastavro
import pytest
from tests.compat import version_before
from tests.compat.version_before import followed, go_on, rows, shown, told, told_later, unpack

import lakebed

ARCHIVE = Path(__file__).parents[1] / "fixtures" / "version-before" / "tables.tar.xz"


def _kinds() -> list[str]:
    with tarfile.open(ARCHIVE, mode="r:xz") as files:
        parts = [name.split("/") for name in files.getnames()]
    return sorted({part[2] for part in parts if part[:2] == ["warehouse", "kinds.db"]})


KINDS = _kinds()


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The archive, only to be read."""
    home = tmp_path_factory.mktemp("version-before")
    unpack(ARCHIVE, home)
    return home


@pytest.fixture(scope="module")
def known(archive: Path) -> dict[str, Any]:
    """What the version before has read, before and after it went on."""
    found: dict[str, Any] = json.loads((archive / "told.json").read_text())
    return found


@pytest.fixture
def lake(tmp_path: Path) -> lakebed.Lake:
    """The lake, to be changed."""
    unpack(ARCHIVE, tmp_path)
    return lakebed.connect(tmp_path / "warehouse")


def _as_json(value: Any) -> Any:
    return json.loads(json.dumps(value))


def test_all_kinds_are_there(known: dict[str, Any]) -> None:
    """No table is left out."""
    assert sorted(known["before"]) == KINDS
    assert len(KINDS) == 22


@pytest.mark.parametrize("kind", KINDS)
def test_reads_as_before(archive: Path, known: dict[str, Any], kind: str) -> None:
    """Rows, old snapshots, tags, branches, changes, consumers, statistics and options are as the version before read
    them, and nothing is found wrong with the files."""
    table = lakebed.connect(archive / "warehouse").table(f"kinds.{kind}")
    expected = {name: value for name, value in known["before"][kind].items() if name != "position"}
    assert _as_json(told(table)) == expected
    assert table.check(deep=True) == []


@pytest.mark.parametrize("kind", KINDS)
def test_goes_on_as_before(lake: lakebed.Lake, known: dict[str, Any], kind: str) -> None:
    """Written, deleted from, compacted and followed from a position of the version before, it is what that version
    would have made of it; then what is old goes, and nothing is wrong with what stays."""
    table = lake.table(f"kinds.{kind}")
    go_on(table)
    found = told_later(table)
    if (position := known["before"][kind].get("position")) is not None:
        found["followed"] = followed(table, position)[0]
    assert _as_json(found) == known["later"][kind]
    assert table.check(deep=True) == []
    if kind != "tags_branches":  # where a consumer holds what it has yet to read
        table.expire_snapshots(retain_max=1, retain_min=1)
        assert len(table.snapshots()) == 1
    table.compact_manifest()
    assert shown(table) == known["later"][kind]["rows"]
    assert table.check(deep=True) == []
    assert table.remove_orphan_files(older_than=int(time.time() * 1000) - 1, dry_run=True).paths == ()


def test_waiting_rows_find_their_bucket(lake: lakebed.Lake, known: dict[str, Any]) -> None:
    """Rows that waited when the version changed are placed by the next compaction, once."""
    table = lake.table("kinds.postponed")
    assert shown(table) != known["before"]["postponed"]["with waiting rows"]
    table.compact()
    assert shown(table) == known["before"]["postponed"]["with waiting rows"]


def test_a_stream_that_commits_again_is_known(lake: lakebed.Lake) -> None:
    """A commit that the version before made changes nothing when it is repeated, though its snapshot has expired."""
    table = lake.table("kinds.expired")
    before, latest = shown(table), table.latest_snapshot()
    for identifier in (1, 4):
        with table.writer(commit_user="job", commit_identifier=identifier) as writer:
            writer.write(rows(range(50, 52), "again"))
            assert writer.commit() is None
    assert (shown(table), table.latest_snapshot()) == (before, latest)
    with table.writer(commit_user="job", commit_identifier=5) as writer:
        writer.write(rows(range(50, 52), "new"))
        assert writer.commit() is not None


# --- names on disk ---------------------------------------------------------------------------------------------------

_UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")


def _names(warehouse: Path) -> set[str]:
    """Shapes of the paths of all files, with the members of those of JSON and the headers of those of Avro."""
    found = set()
    for path in warehouse.rglob("*"):
        if not path.is_file():
            continue
        shape = re.sub(r"\d+", "N", _UUID.sub("U", str(path.relative_to(warehouse))))
        found.add(shape)
        if path.parent.name in ("snapshot", "schema", "tag", "consumer", "changelog", "statistics"):
            content = path.read_text()
            if content.startswith("{"):
                found |= {f"{shape} {member}" for member in _members(json.loads(content))}
        elif path.parent.name == "manifest":
            with path.open("rb") as file:
                reader = fastavro.reader(file)
                meta, schema = sorted(reader.metadata), reader.writer_schema
            found |= {f"{shape} {name}" for name in (*meta, json.dumps(schema, sort_keys=True))}
    return found


def _members(body: Any, at: str = "") -> set[str]:
    if isinstance(body, dict):
        named = {re.sub(r"\d+", "N", _UUID.sub("U", name)): value for name, value in body.items()}
        below = (_members(value, f"{at}.{name}") for name, value in named.items())
        return {f"{at}.{name}" for name in named}.union(*below)
    return set().union(*(_members(each, at) for each in body)) if isinstance(body, list) else set()


def test_names_on_disk_are_those_of_the_version_before(archive: Path, tmp_path: Path) -> None:
    """The same history of tables makes files of the same names, members and Avro schemas: nothing was renamed.

    What was added since is named here.
    """
    version_before.tables(lakebed.connect(tmp_path / "warehouse"))
    before, now = _names(archive / "warehouse"), _names(tmp_path / "warehouse")
    assert before <= now
    assert {name for name in now - before if "lakebed.compaction." not in name} == set()
