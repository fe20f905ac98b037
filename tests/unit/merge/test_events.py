"""Events of a change, against the table of what they are."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakebed.merge.events import EventRules, change_events
from lakebed.types.row_kind import TEXTS

SCHEMA = pa.schema(
    [
        ("_SEQUENCE_NUMBER", pa.int64()),
        ("_VALUE_KIND", pa.int8()),
        ("k", pa.int64()),
        ("v", pa.string()),
        ("w", pa.int8()),
    ]
)
Side = tuple[str, str | None, int | None]
"""Kind, v and w of a key's row."""


def _rows(sides: list[Side]) -> pa.RecordBatch:
    columns = [
        [7] * len(sides),
        [TEXTS.index(side[0]) for side in sides],
        range(len(sides)),
        [side[1] for side in sides],
        [side[2] for side in sides],
    ]
    arrays = [pa.array(list(column), field.type) for column, field in zip(columns, SCHEMA, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=SCHEMA)


def _expected(
    before: list[Side | None], after: list[Side], rules: EventRules
) -> list[tuple[str, int, str | None, int | None]]:
    events = []
    for key, (old, new) in enumerate(zip(before, after, strict=True)):
        had = old is not None and old[0] in ("+I", "+U")
        has = new[0] in ("+I", "+U")
        if had and has:
            assert old is not None
            same_v = "v" in rules.ignored_columns or old[1] == new[1]
            same_w = "w" in rules.ignored_columns or old[2] == new[2]
            if not (rules.skips_unchanged and same_v and same_w):
                events += [("-U", key, old[1], old[2]), ("+U", key, new[1], new[2])]
        elif has:
            events.append(("+I", key, new[1], new[2]))
        elif had and not rules.skips_deletes:
            assert old is not None
            events.append(("-D", key, old[1], old[2]))
    return events


SIDES = st.tuples(st.sampled_from(TEXTS), st.sampled_from([None, "a", "b"]), st.sampled_from([None, 1]))
RULES = st.builds(
    EventRules, st.booleans(), st.sampled_from([frozenset(), frozenset("v"), frozenset("vw")]), st.booleans()
)


@given(pairs=st.lists(st.tuples(st.none() | SIDES, SIDES), max_size=20), rules=RULES)
def test_events(pairs: list[tuple[Side | None, Side]], rules: EventRules) -> None:
    """Every pair of old row and result gives the events of the table, in key order."""
    before, after = [pair[0] for pair in pairs], [pair[1] for pair in pairs]
    known = np.array([side is not None for side in before], dtype=np.bool_)
    filler: Side = ("+I", "anything", 1)
    events = change_events(_rows([side or filler for side in before]), _rows(after), rules, known=known)
    found = [(TEXTS[row["_VALUE_KIND"]], row["k"], row["v"], row["w"]) for row in events.to_pylist()]
    assert found == _expected(before, after, rules)


@pytest.mark.parametrize("count", [0, 1])
def test_shape(count: int) -> None:
    """Events have the shape of the rows, also when there are none."""
    rows = _rows([("-D", None, None)] * count)
    events = change_events(rows, rows, EventRules(), known=np.zeros(count, dtype=np.bool_))
    assert events.schema == SCHEMA
    assert events.num_rows == 0
