"""Random histories of tables whose columns have files of their own, and whose deleted rows are marked."""

from __future__ import annotations

from typing import Any
from uuid import uuid4

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.properties.column_histories import LAYOUTS, STEPS, History


def _run(layout: str, steps: list[tuple[str, Any]], partitioned: bool) -> None:
    history = History(f"memory://{uuid4().hex}/warehouse", layout, partitioned=partitioned)
    history.run(steps)
    history.check_all()


@pytest.mark.parametrize("layout", LAYOUTS)
@settings(max_examples=12)
@given(steps=STEPS, partitioned=st.booleans())
def test_rows_and_ids_are_those_of_the_model(layout: str, steps: list[tuple[str, Any]], partitioned: bool) -> None:
    """Whatever happens, in whatever order: rows, their ids, older states and tags are as a dict of rows has them."""
    _run(layout, steps, partitioned)


@pytest.mark.nightly
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("layout", LAYOUTS)
@settings(max_examples=800, derandomize=False)
@given(steps=STEPS, partitioned=st.booleans())
def test_rows_and_ids_for_a_night(layout: str, steps: list[tuple[str, Any]], partitioned: bool) -> None:
    """The same many times; other steps each time."""
    _run(layout, steps, partitioned)
