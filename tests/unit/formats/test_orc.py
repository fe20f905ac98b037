"""ORC: what it can not store, and what other writers store differently.

The files in `data/` come from pyorc (`chars.orc` with the zone America/New_York) and, with a far timestamp, pyarrow.
"""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from typing import Any

import pytest
from tests.unit.formats.format_samples import (
    NEAR_TIMES,
    SAMPLES,
    SECOND_1,
    field,
    not_null,
    read,
    row,
    table,
    written,
)

from lakebed.errors import CorruptFile, InvalidData, InvalidSchema, Unsupported
from lakebed.formats import FORMATS
from lakebed.types import logical as lt
from lakebed.types.logical import ArrayType, DataType, MapType

DATA = Path(__file__).parent / "data"


@pytest.mark.parametrize(
    "data_type",
    [
        lt.VARIANT,
        ArrayType(lt.VARIANT),
        MapType(not_null(lt.INT), lt.VARIANT),
        row(("x", lt.VARIANT)),
    ],
    ids=str,
)
def test_unfit_types_are_refused(data_type: DataType) -> None:
    """Types that other readers reject are refused with the column's name, at any depth."""
    with pytest.raises(InvalidSchema, match="`c`"):
        FORMATS["orc"].check([field(data_type)])
    with pytest.raises(InvalidSchema, match="`c`"):
        written("orc", [field(data_type)])


def test_times_that_could_not_be_read_back_are_refused() -> None:
    """Timestamps outside the range of nanoseconds are refused on writing."""
    for data_type in (lt.timestamp(0), lt.timestamp_ltz(0)):
        fields = [field(data_type)]
        with pytest.raises(InvalidData, match="`c`"):
            written("orc", fields, table(fields, [0, SECOND_1]))
    assert NEAR_TIMES["timestamp0"][0] == lt.timestamp(0)


@pytest.mark.parametrize("data_type", [lt.timestamp(3), lt.timestamp_ltz(6), lt.timestamp(9)], ids=str)
def test_fractions_before_1970_are_refused_at_any_depth(data_type: DataType) -> None:
    """No other reader finds a fraction of a second before 1970 in what pyarrow writes, so it is not written."""
    early: list[tuple[DataType, Any]] = [
        (data_type, -1),
        (ArrayType(data_type), [0, -1]),
        (row(("x", data_type)), {"x": -1}),
        (MapType(not_null(lt.INT), data_type), [(1, -1)]),
    ]
    for nested, value in early:
        fields = [field(nested)]
        with pytest.raises(InvalidData, match=r"`c`.*1970"):
            written("orc", fields, table(fields, [None, value]))


def test_files_of_other_writers() -> None:
    """CHAR padding goes, VARCHAR keeps its blanks, wall-clock times keep the wall clock of their writer's zone."""
    fields = [
        field(lt.INT, "id"),
        field(lt.char(5), "c"),
        field(lt.varchar(5), "v"),
        field(lt.timestamp(6), "ts"),
        field(lt.timestamp_ltz(6), "ltz"),
    ]
    rows = read("orc", (DATA / "chars.orc").read_bytes(), fields).to_pylist()
    assert [(r["id"], r["c"], r["v"]) for r in rows] == [(1, "ab", "cd "), (2, "éé", "é"), (3, None, None)]
    instant = dt.datetime(2024, 7, 1, 12, 30, 15, 123456, dt.UTC)
    assert (rows[0]["ts"], rows[0]["ltz"]) == (dt.datetime(2024, 7, 1, 8, 30, 15, 123456), instant)


def test_nested_files_of_other_writers() -> None:
    """Rows inside rows can be read although they can not be written, and CHAR is trimmed at any depth."""
    z_text, z_int = row(("z", lt.STRING)), row(("z", lt.INT))
    fields = [
        field(row(("x", lt.INT), ("y", z_text)), "c"),
        field(ArrayType(row(("y", z_int))), "l"),
        field(ArrayType(lt.char(3)), "k"),
    ]
    rows = read("orc", (DATA / "nested.orc").read_bytes(), fields, batch_rows=4).to_pydict()
    assert rows["c"] == [
        {"x": 1, "y": {"z": "q"}},
        {"x": None, "y": None},
        {"x": 2, "y": {"z": "r"}},
        None,
        {"x": 3, "y": {"z": None}},
        {"x": 4, "y": {"z": "s"}},
    ]
    assert rows["l"][0] == [{"y": {"z": 5}}, {"y": None}, {"y": {"z": 6}}]
    assert rows["k"] == [["a", None], ["bcd"], None, ["é"], [], ["z"]]


def test_far_timestamps_of_other_writers_are_unsupported() -> None:
    """A timestamp of the year 1 is sound but out of reach: the error says so instead of calling the file corrupt."""
    with pytest.raises(Unsupported, match="1677"):
        read("orc", (DATA / "far_timestamp.orc").read_bytes(), [field(lt.timestamp(6), "ts")])


def test_truncated_files_are_reported() -> None:
    """A file cut anywhere is reported with its name."""
    fields = [field(SAMPLES["orc"]["string"][0])]
    content, _ = written("orc", fields, table(fields, ["x", None] * 100))
    for size in (0, 3, len(content) // 2, len(content) - 1):
        with pytest.raises(CorruptFile, match="some/file"):
            read("orc", content[:size], fields)
