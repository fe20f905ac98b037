"""Settings that contradict each other are refused when they are made, and a table that has them works on."""

from __future__ import annotations

import json

import pyarrow as pa
import pytest
from tests.unit.maintenance.expiring_tables import Workshop, rows, shown

from lakebed.checksums import unsealed
from lakebed.errors import InvalidOption
from lakebed.schema.changes import RemoveOption, SetOption

CONTRADICTIONS = [
    ({"scan.snapshot-id": "1", "scan.timestamp": "2024-01-01 00:00:00"}, "each choose a snapshot"),
    ({"scan.snapshot-id": "1", "scan.tag-name": "x"}, "each choose a snapshot"),
    ({"scan.mode": "from-snapshot"}, "does not say where to start"),
    ({"scan.mode": "from-timestamp"}, "does not say where to start"),
    ({"scan.mode": "latest", "scan.snapshot-id": "1"}, "does not go with"),
    ({"scan.mode": "incremental"}, "does not say between what"),
    ({"scan.mode": "incremental", "incremental-between": "1,2", "incremental-to-auto-tag": "x"}, "each choose"),
    ({"scan.fallback-branch": "b"}, "which does not exist"),
    ({"scan.primary-branch": "b"}, "which does not exist"),
    ({"scan.fallback-branch": "a", "scan.primary-branch": "b"}, "which does not exist"),
    ({"snapshot.num-retained.min": "5", "snapshot.num-retained.max": "3"}, "is 5, more than"),
    ({"snapshot.num-retained.max": "3"}, "is 10, more than"),
    ({"changelog.num-retained.min": "50", "changelog.num-retained.max": "30"}, "is 50, more than"),
]
CASES = pytest.mark.parametrize(("options", "told"), CONTRADICTIONS, ids="+".join)


@CASES
def test_at_create(options: dict[str, str], told: str) -> None:
    """No table comes into being."""
    lake = Workshop().lake
    with pytest.raises(InvalidOption, match=told):
        lake.create_table("t", pa.schema([("k", pa.int64())]), options=options)
    assert lake.tables() == []


@CASES
def test_at_alter(options: dict[str, str], told: str) -> None:
    """The table stays as it was, and reads and writes on."""
    table = Workshop().create(False)
    with pytest.raises(InvalidOption, match=told):
        table.alter(*(SetOption(key, value) for key, value in options.items()))
    table.write(rows((1, 1)))
    assert shown(table) == [(1, 1)]


def test_a_branch_that_exists_may_be_named() -> None:
    """The option is taken once the branch is there, and main always is."""
    table = Workshop().create(False)
    table.write(rows((1, 1)))
    table.create_branch("b")
    table.alter(SetOption("scan.fallback-branch", "b"))
    table.alter(RemoveOption("scan.fallback-branch"))
    table.alter(SetOption("scan.primary-branch", "main"))
    assert shown(table) == [(1, 1)]


def test_an_option_that_goes_must_not_leave_another_alone() -> None:
    """To take the point away and leave the mode that needs one is a contradiction too."""
    table = Workshop().create(False, scan__mode="from-snapshot", scan__snapshot_id="1")
    with pytest.raises(InvalidOption, match="does not say where to start"):
        table.alter(RemoveOption("scan.snapshot-id"))
    table.alter(RemoveOption("scan.snapshot-id"), RemoveOption("scan.mode"))


def test_tables_that_have_them_already_work_on() -> None:
    """What another engine stored is read and written, and other options can be set."""
    shop = Workshop()
    table = shop.create(False)
    path = f"{table.location}/schema/schema-0"
    members = unsealed(json.loads(shop.fileio.read_bytes(path)))
    members["options"]["snapshot.num-retained.max"] = "3"
    shop.fileio.overwrite(path, json.dumps(members).encode())
    again = Workshop(shop.fileio).lake.table("t")
    assert again.options["snapshot.num-retained.max"] == "3"
    again.write(rows((1, 1)))
    again.alter(SetOption("target-file-size", "64 mb"))
    assert shown(again) == [(1, 1)]
