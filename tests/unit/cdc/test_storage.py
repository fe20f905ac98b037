"""What lies beside a checkpoint is opened with the lake's options, which nobody shows."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import pytest

from lakebed.cdc.envelope import Chunk, SourceName, chunks_from_arrow, chunks_to_arrow, payload_at
from lakebed.cdc.payloads import INLINE_BYTES
from lakebed.cdc.progress import ProgressFile
from lakebed.cdc.sources import open_source
from lakebed.cdc.sources.postgres.state import SourceState
from lakebed.cdc.storage import Storage
from lakebed.fileio import LocalFileIO

OPTIONS = {"s3.endpoint": "http://host:1", "s3.access-key": "user", "s3.secret-key": "very-secret"}


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[tuple[str, dict[str, str]]]:
    """Which URLs were opened, with which options: a store that lies in a directory."""
    found: list[tuple[str, dict[str, str]]] = []

    def note(url: str, options: Any = None) -> Any:
        found.append((url, dict(options or {})))
        return LocalFileIO(), url.replace("s3:/", str(tmp_path))

    monkeypatch.setattr("lakebed.cdc.storage.open_fileio", note)
    return found


def test_payloads_and_notes_are_opened_with_the_options_of_the_lake(opened: list[tuple[str, dict[str, str]]]) -> None:
    storage = Storage(OPTIONS, "s3://bucket/checkpoint")
    state = SourceState("s3://bucket/checkpoint/source-state", storage)
    payload = bytes(INLINE_BYTES + 1)
    chunk = Chunk(0, SourceName("d", "s", "t"), "rows", "", "stream", payload, 1, None, False)
    (row,) = state.payload_file(7).through([chunks_to_arrow([chunk])])
    (placed,) = chunks_from_arrow(row)
    assert placed.place is not None
    assert payload_at(placed.place, pickle.loads(pickle.dumps(storage))).to_pybytes() == payload
    ProgressFile("s3://bucket/checkpoint", storage).remove()
    assert [options for _, options in opened] == [OPTIONS] * len(opened)


def test_what_lies_below_the_root_is_opened_once(opened: list[tuple[str, dict[str, str]]]) -> None:
    """Where the keys are: they may be in the environment of the driver alone."""
    storage = Storage(OPTIONS, "s3://bucket/checkpoint/")
    assert storage.open("s3://bucket/checkpoint/a/b")[1].endswith("/bucket/checkpoint/a/b")
    assert [url for url, _ in opened] == ["s3://bucket/checkpoint"]
    storage.open("s3://bucket/checkpoint-2/a")
    assert len(opened) == 2


def test_options_are_not_shown() -> None:
    storage = Storage(OPTIONS)
    assert "very-secret" not in repr(storage)
    assert storage == Storage(OPTIONS) != Storage()


def test_they_are_in_no_option_of_a_stream(tmp_path: Path) -> None:
    """Spark shows options in plans and logs; what is inside of a class travels unseen."""
    source = open_source("postgres", url="postgresql://user@host/db")
    source.keep_state_in(str(tmp_path), Storage(OPTIONS))
    assert "very-secret" not in str(source.reader_options())
    kind: Any = source.data_source()
    assert kind.storage == Storage(OPTIONS)
    assert kind.name() == "lakebed-postgres"
