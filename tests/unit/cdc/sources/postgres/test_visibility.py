"""The rule that joins copy and stream: which transactions a snapshot has seen."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakebed.cdc.sources.postgres.copy.filter import TransactionSnapshot
from lakebed.cdc.sources.postgres.names import format_lsn, parse_lsn
from lakebed.errors import InvalidData


def test_a_snapshot_sees_what_ended_before_it() -> None:
    """All before xmin, nothing from xmax on, in between all that was not in progress."""
    snapshot = TransactionSnapshot.parse("100:110:100,105")
    seen = snapshot.sees(np.array([5, 99, 100, 101, 105, 109, 110, 111]))
    assert seen.tolist() == [True, True, False, True, False, True, False, False]
    assert TransactionSnapshot.parse("7:7:").sees(np.array([6, 7])).tolist() == [True, False]


@given(st.integers(3, 2**40), st.integers(-(2**31) + 1, 2**31 - 1))
def test_ids_of_32_bits_find_their_epoch(xmax: int, distance: int) -> None:
    """The stream's short ids are taken for the long ones next to the snapshot, across any number of wraps."""
    xid = max(xmax + distance, 0)
    snapshot = TransactionSnapshot(xmax, xmax, ())
    assert snapshot.widen(np.array([xid % 2**32])).tolist() == [xid]
    assert snapshot.sees(np.array([xid % 2**32])).tolist() == [xid < xmax]


@given(st.integers(0, 2**64 - 1))
def test_positions_are_read_as_written(lsn: int) -> None:
    """Texts of positions go there and back."""
    assert parse_lsn(format_lsn(lsn)) == lsn


@pytest.mark.parametrize("text", ["", "1", "x/y", "1/"])
def test_positions_that_are_none(text: str) -> None:
    """What is no position is an error of ours."""
    with pytest.raises(InvalidData):
        parse_lsn(text)
