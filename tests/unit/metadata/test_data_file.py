"""Data files as JSON, and the odd clock their creation time follows."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator

import pytest
from tests.unit.metadata.metadata_samples import FULL_FILE, data_file

from lakebed.errors import InvalidArgument
from lakebed.metadata.data_file import DataFile, creation_time_from_epoch, creation_time_to_epoch


@pytest.mark.parametrize("file", [data_file(), FULL_FILE], ids=["plain", "full"])
def test_json_round_trip(file: DataFile) -> None:
    """A file travels through JSON text unchanged, bytes and all."""
    assert DataFile.from_json(json.loads(json.dumps(file.to_json()))) == file


@pytest.mark.parametrize(
    "change", [{"min_key": "no base64!"}, {"key_stats": None}, {"extra_files": 3}, {"new_member": 1}, {"key_stats": {}}]
)
def test_foreign_json_is_refused(change: dict[str, object]) -> None:
    """What is not a data file is an invalid argument, not a KeyError."""
    with pytest.raises(InvalidArgument, match="data file"):
        DataFile.from_json(data_file().to_json() | change)
    with pytest.raises(InvalidArgument):
        DataFile.from_json({})


def test_a_file_can_change_its_level() -> None:
    """Only the level differs."""
    moved = data_file().at_level(5)
    assert (moved.level, moved.at_level(0)) == (5, data_file())


@pytest.fixture(params=["UTC", "Asia/Kolkata", "America/New_York"])
def zone(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Local time of various places."""
    monkeypatch.setenv("TZ", request.param)
    time.tzset()
    yield request.param
    monkeypatch.undo()
    time.tzset()


def test_creation_time_is_the_local_wall_clock(zone: str) -> None:
    """Summer and winter, the offset of the day is added, and taken off again."""
    winter, summer = 1704067200123, 1719792000456
    minutes = {"UTC": (0, 0), "Asia/Kolkata": (330, 330), "America/New_York": (-300, -240)}[zone]
    for epoch_ms, offset in zip((winter, summer), minutes, strict=True):
        assert creation_time_from_epoch(epoch_ms) == epoch_ms + offset * 60_000
        assert creation_time_to_epoch(epoch_ms + offset * 60_000) == epoch_ms
    assert creation_time_to_epoch(creation_time_from_epoch(-1)) == -1
