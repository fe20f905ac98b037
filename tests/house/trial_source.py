"""A source of changes that is none of ours: a tape of chunks, of which a batch takes one piece."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa

from lakebed.cdc.envelope import Chunk, SourceTable, chunks_to_arrow
from lakebed.cdc.sources.base import ChangeSource

TAPES: dict[str, list[list[Chunk]]] = {}


class TapeSource(ChangeSource):
    """Replays what lies in `TAPES`."""

    name = "tape"
    place = "title"
    list_settings = frozenset({"pieces"})
    takes_patterns = True

    def __init__(
        self, title: str, *, pieces: Sequence[str] = (), including: str = ".*", tables_without_key: str = "fail"
    ) -> None:
        self.title = title
        self.pieces = tuple(pieces)
        self.patterns = (including, tables_without_key)

    def check(self) -> None:
        assert self.title in TAPES

    def tables(self) -> list[SourceTable]:
        return []

    def data_source(self) -> Any:
        return Tape

    def reader_options(self) -> Mapping[str, str]:
        return {"title": self.title}


class Tape:
    """What Spark would ask: it needs no more than these names."""

    def __init__(self, options: Mapping[str, str]) -> None:
        self._tape = TAPES[options["title"]]

    def streamReader(self, _: Any) -> Tape:  # noqa: N802
        return self

    def initialOffset(self) -> dict[str, int]:  # noqa: N802
        return {"piece": 0}

    def getDefaultReadLimit(self) -> None:  # noqa: N802
        return None

    def latestOffset(self, start: dict[str, int], _: Any) -> dict[str, int]:  # noqa: N802
        return {"piece": min(start["piece"] + 1, len(self._tape))}

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> list[int]:
        return list(range(start["piece"], end["piece"]))

    def read(self, piece: int) -> Iterator[pa.RecordBatch]:
        yield chunks_to_arrow(self._tape[piece])

    def commit(self, end: dict[str, int]) -> None:
        pass

    def stop(self) -> None:
        pass
