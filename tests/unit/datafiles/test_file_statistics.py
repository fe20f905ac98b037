"""Statistics for manifests: modes, cut texts that stay bounds, and the dense form."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.datafiles.datafile_samples import fields

from lakebed.datafiles.statistics import bounds, key_statistics, parse_stats_mode, value_statistics
from lakebed.errors import InvalidOption
from lakebed.formats.base import ColumnStats
from lakebed.types.binary_row import decode_row


def _stats(low: Any, high: Any, nulls: int | None, arrow: pa.DataType) -> ColumnStats:
    make = lambda value: None if value is None else pa.scalar(value, arrow)  # noqa: E731
    return ColumnStats(make(low), make(high), nulls)


@pytest.mark.parametrize(
    ("text", "parsed"), [("none", "none"), ("COUNTS", "counts"), (" full ", "full"), ("truncate(16)", 16)]
)
def test_modes(text: str, parsed: int | str) -> None:
    """The four modes, in any case."""
    assert parse_stats_mode(text) == parsed


@pytest.mark.parametrize("text", ["", "all", "truncate", "truncate()", "truncate(0)", "truncate(-1)", "truncate(1.5)"])
def test_modes_there_are_not(text: str) -> None:
    """Anything else is refused with the modes there are."""
    with pytest.raises(InvalidOption, match="truncate") as raised:
        parse_stats_mode(text)
    assert f"`{text}`" in raised.value.message


@pytest.mark.parametrize(
    ("mode", "kept"),
    [
        ("none", (None, None, None)),
        ("counts", (None, None, 2)),
        ("full", ("aaaa", "zzzz", 2)),
        ("truncate(2)", ("aa", "z{", 2)),
        ("truncate(4)", ("aaaa", "zzzz", 2)),
    ],
)
def test_what_a_mode_keeps(mode: str, kept: tuple[Any, Any, Any]) -> None:
    """Each mode keeps its part; cutting raises the maximum so that it stays one."""
    (column,) = fields(s="STRING")
    low, high, nulls = bounds(column, _stats("aaaa", "zzzz", 2, pa.string()), mode)
    assert (low and low.as_py(), high and high.as_py(), nulls) == kept


def test_numbers_are_never_cut() -> None:
    """Only text and bytes have a length to cut."""
    (column,) = fields(n="BIGINT")
    assert [
        part if isinstance(part, int) else part.as_py()
        for part in bounds(column, _stats(-(2**60), 2**60, 0, pa.int64()), "truncate(1)")
    ] == [-(2**60), 2**60, 0]


@pytest.mark.parametrize("kind", ["ARRAY<INT>", "MAP<INT, INT>", "ROW<x INT>"])
def test_nested_columns_have_counts_only(kind: str) -> None:
    """What has no order has no bounds."""
    (column,) = fields(c=kind)
    assert bounds(column, ColumnStats(None, None, 3), "full") == (None, None, 3)


@given(st.text(), st.text(), st.integers(1, 5))
def test_cut_texts_stay_bounds(one: str, other: str, length: int) -> None:
    """A cut minimum is at most, a cut maximum at least what it was, compared as bytes as all engines do."""
    low, high = sorted((one, other), key=str.encode)
    (column,) = fields(s="STRING")
    cut_low, cut_high, _ = bounds(column, _stats(low, high, 0, pa.string()), f"truncate({length})")
    if cut_low is None or cut_high is None:
        assert set(high[:length]) == {"\U0010ffff"}
        return
    assert cut_low.as_py().encode() <= low.encode()
    assert cut_high.as_py().encode() >= high.encode()
    assert len(cut_low.as_py()) <= length
    assert len(cut_high.as_py()) <= length


@pytest.mark.parametrize("kind", ["BINARY(2)", "VARBINARY(8)", "BYTES"])
def test_binary_columns_have_counts_only(kind: str) -> None:
    """Engines do not agree on the order of bytes, so no bounds are kept that one of them could misuse."""
    (column,) = fields(b=kind)
    assert bounds(column, _stats(b"\x00", b"\xff", 2, pa.binary()), "full") == (None, None, 2)


def test_surrogates_are_stepped_over() -> None:
    """The character after the last one before the surrogates is the first one behind them."""
    (column,) = fields(s="STRING")
    _, high, _ = bounds(column, _stats("a", "\ud7ffx", 0, pa.string()), "truncate(1)")
    assert high is not None
    assert high.as_py() == "\ue000"


def test_dense_and_sparse() -> None:
    """Dense statistics leave out columns of which nothing is known and say which are there."""
    columns = fields(a="INT", b="INT", c="STRING")
    stats = {
        "a": _stats(1, 2, 0, pa.int32()),
        "b": _stats(3, 4, 1, pa.int32()),
        "c": _stats("x", "y", 0, pa.string()),
    }
    mode_of = {"a": "full", "b": "none", "c": "counts"}.__getitem__
    dense, names = value_statistics(columns, stats, mode_of, dense=True)
    assert names == ("a", "c")
    assert dense.null_counts == (0, 0)
    low = decode_row(dense.min_values, [columns[0].type, columns[2].type])
    assert [value.as_py() for value in low] == [1, None]
    sparse, names = value_statistics(columns, stats, mode_of, dense=False)
    assert names is None
    assert sparse.null_counts == (0, None, 0)
    high = decode_row(sparse.max_values, [column.type for column in columns])
    assert [value.as_py() for value in high] == [2, None, None]
    _, names = value_statistics(columns, stats, lambda _: "full", dense=True)
    assert names is None


def test_keys_are_cut_late() -> None:
    """Key statistics are complete and keep 128 characters."""
    columns = fields(k="STRING")
    stats = key_statistics(columns, {"k": _stats("a" * 200, "b" * 200, 0, pa.string())})
    (low,) = decode_row(stats.min_values, [columns[0].type])
    (high,) = decode_row(stats.max_values, [columns[0].type])
    assert low.as_py() == "a" * 128
    assert high.as_py() == "b" * 127 + "c"
