from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from lakebed.merge.segments import NO_ROW, Segments

ROWS = st.lists(
    st.lists(st.tuples(st.booleans(), st.integers(-(2**63), 2**63 - 1) | st.integers(0, 2)), min_size=1, max_size=5),
    min_size=1,
    max_size=5,
)


def segments_of(rows: list[list[Any]]) -> Segments:
    """Segments over rows that lie in the batch in reverse."""
    ends = np.cumsum([len(segment) for segment in rows])
    starts = ends - [len(segment) for segment in rows]
    count = int(ends[-1])
    return Segments(np.arange(count)[::-1].copy(), starts, ends, np.zeros(count, dtype=np.bool_))


@settings(deadline=None)
@given(ROWS)
def test_questions_about_each_segment(rows: list[list[tuple[bool, int]]]) -> None:
    """First, last, any and greatest are what a search of every segment finds."""
    segments = segments_of(rows)
    where = np.array([holds for segment in rows for holds, _ in segment])
    codes = np.array([code for segment in rows for _, code in segment], dtype=np.int64)
    for number, (start, end) in enumerate(zip(segments.starts, segments.ends, strict=True)):
        found = [int(position) for position in range(start, end) if where[position]]
        assert segments.first(where)[number] == (found[0] if found else NO_ROW)
        assert segments.last(where)[number] == (found[-1] if found else NO_ROW)
        assert segments.any(where)[number] == bool(found)
        best = max(found, key=lambda position: (codes[position], position), default=NO_ROW)
        assert segments.greatest(codes, where)[number] == best


@settings(deadline=None)
@given(ROWS)
def test_what_only_leaves_is_spread_again(rows: list[list[tuple[bool, int]]]) -> None:
    """Results for the segments that keep rows return to their places, with null at the others."""
    segments = segments_of(rows)
    kept, remaining = segments.only(np.array([holds for segment in rows for holds, _ in segment]))
    counts = [sum(holds for holds, _ in segment) for segment in rows]
    assert kept.sizes.tolist() == [count for count in counts if count]
    assert segments.spread(pa.array(kept.sizes), remaining).to_pylist() == [count or None for count in counts]


@settings(deadline=None)
@given(st.lists(st.lists(st.none() | st.integers(0, 9), min_size=1, max_size=4), min_size=1, max_size=5))
def test_results_without_any_value_become_null(rows: list[list[int | None]]) -> None:
    """A result stands only where its segment has a value."""
    segments = segments_of(rows)
    column = pa.array([value for segment in rows for value in segment][::-1], pa.int64())
    results = pa.array(range(len(rows)), pa.int64())
    expected = [number if any(value is not None for value in segment) else None for number, segment in enumerate(rows)]
    assert segments.null_without_value(results, column).to_pylist() == expected
