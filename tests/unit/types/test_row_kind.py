"""Row kinds between texts and numbers."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from lakebed.errors import InvalidData
from lakebed.types.row_kind import TEXTS, RowKind, is_retract, kinds_from_text, kinds_to_text


def test_numbers_are_those_of_the_file_format() -> None:
    """+I, -U, +U and -D are stored as 0 to 3."""
    assert [int(kind) for kind in RowKind] == [0, 1, 2, 3]
    assert TEXTS[RowKind.UPDATE_BEFORE] == "-U"


def test_retracts_are_minus_kinds() -> None:
    """-U and -D take away, +I and +U add."""
    assert is_retract(np.array([0, 1, 2, 3], np.int8)).tolist() == [False, True, False, True]


@pytest.mark.parametrize(
    "arrow", [pa.string(), pa.large_string(), pa.string_view(), pa.dictionary(pa.int8(), pa.string())]
)
def test_texts_of_any_arrow_type_become_numbers_and_back(arrow: pa.DataType) -> None:
    """Whatever a data frame library makes of text is understood."""
    column = pa.array(["-D", "+I", "-U", "+U"]).cast(arrow)
    kinds = kinds_from_text(column, "op")
    assert kinds.type == pa.int8()
    assert kinds.to_pylist() == [3, 0, 1, 2]
    assert kinds_to_text(kinds).to_pylist() == ["-D", "+I", "-U", "+U"]


def test_chunked_and_empty_columns_are_understood() -> None:
    """Chunks are joined; no rows have no kinds."""
    assert kinds_from_text(pa.chunked_array([["+I"], ["-D"]]), "op").to_pylist() == [0, 3]
    assert kinds_from_text(pa.array([], pa.string()), "op").to_pylist() == []


@pytest.mark.parametrize("bad", ["", "I", "+i", " +I", "+X", None])
def test_anything_else_is_refused_by_column(bad: str | None) -> None:
    """The error names the column and the text."""
    with pytest.raises(InvalidData) as caught:
        kinds_from_text(pa.array(["+I", bad], pa.string()), "op")
    assert "`op`" in caught.value.message
    assert repr(bad) in caught.value.message


def test_columns_that_are_no_text_are_refused() -> None:
    """Numbers are no row kinds, not even those stored in files."""
    with pytest.raises(InvalidData, match="`op`"):
        kinds_from_text(pa.array([0, 1]), "op")
    with pytest.raises(InvalidData, match="`op`"):
        kinds_from_text(pa.array([["+I"]]), "op")
