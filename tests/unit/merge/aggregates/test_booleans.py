from __future__ import annotations

import itertools

import pytest
from tests.unit.merge.aggregates.scalar_folds import Column

from lakebed.errors import InvalidData, InvalidOption
from lakebed.types import logical as lt

AND, OR = Column(lt.BOOLEAN, "bool_and"), Column(lt.BOOLEAN, "bool_or")


def test_example_of_the_notes() -> None:
    """M-41: nulls are skipped; one false settles an and, one true an or."""
    assert AND.after_each(("+I", True), ("+I", None), ("+I", False), ("+I", True)) == [True, True, False, False]
    assert OR.after_each(("+I", False), ("+I", None), ("+I", True), ("+I", False)) == [False, False, True, True]


def test_every_short_sequence() -> None:
    """All sequences of up to three values, nulls included, many keys at once."""
    sequences = [values for n in (2, 3) for values in itertools.product([True, False, None], repeat=n)]
    rows = [(key, value) for key, values in enumerate(sequences) for value in values]
    keys, values = zip(*rows, strict=True)
    for column, reduce in ((AND, all), (OR, any)):
        known = [[value for value in sequence if value is not None] for sequence in sequences]
        expected = [reduce(sequence) if sequence else None for sequence in known]
        assert column.merged(column.rows(keys, ["+I"] * len(keys), values)).column("v").to_pylist() == expected


@pytest.mark.parametrize("function", ["bool_and", "bool_or"])
def test_retracts(function: str) -> None:
    """A value can not be taken back, unless retracts are ignored."""
    with pytest.raises(InvalidData, match=f"`v`.*`{function}` can not take back"):
        Column(lt.BOOLEAN, function).after_each(("+I", True), ("-U", True))
    ignoring = Column(lt.BOOLEAN, function, {"ignore-retract": "true"})
    assert ignoring.after_each(("+I", True), ("-U", True), ("-U", False)) == [True, True, True]
    assert ignoring.after_each(("-U", True), ("-U", True))[-1] is None


@pytest.mark.parametrize("function", ["bool_and", "bool_or"])
def test_other_types_are_refused(function: str) -> None:
    """Only booleans are true or false."""
    column = Column(lt.INT, function)
    with pytest.raises(InvalidOption, match=f"`{function}` does not take column `v`"):
        column.engine.check(column.setup, "t")
