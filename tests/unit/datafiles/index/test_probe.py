"""Filters against file indexes: a file is left out only if no row of it matches."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.datafiles.index.indexed_columns import typed

from lakebed.datafiles.index.build import KINDS, FileIndexBuilder, IndexSpec
from lakebed.datafiles.index.container import pack
from lakebed.datafiles.index.probe import excludes
from lakebed.errors import CorruptFile
from lakebed.types.logical import DataField
from lakebed.types.predicate_evaluate import evaluate
from lakebed.types.predicate_parse import to_predicate

FIELDS = {
    "a": DataField(0, "a", typed("INT")),
    "s": DataField(1, "s", typed("STRING")),
    "d": DataField(2, "d", typed("DOUBLE")),
}
SCHEMA = pa.schema([("a", pa.int32()), ("s", pa.string()), ("d", pa.float64())])
_DOUBLES = st.sampled_from([0.0, -0.0, 1.5, float("nan")])
_ROWS = st.fixed_dictionaries(
    {"a": st.none() | st.integers(0, 5), "s": st.none() | st.sampled_from("xyz"), "d": st.none() | _DOUBLES}
)


def _fits(kind: str, field: DataField) -> bool:
    return bool(KINDS[kind].supports(field.type))


@st.composite
def _conditions(draw: st.DrawFn, depth: int = 2) -> pc.Expression:
    if depth and draw(st.booleans()):
        left, right = draw(_conditions(depth - 1)), draw(_conditions(depth - 1))
        return draw(st.sampled_from([left & right, left | right, ~left]))
    name = draw(st.sampled_from(["a", "s", "d"]))
    values = {"a": st.integers(0, 7), "s": st.sampled_from("xyzw"), "d": _DOUBLES}[name]
    field, value = pc.field(name), draw(values)
    return draw(
        st.sampled_from(
            [field == value, field != value, field < value, field.is_null(), field.is_valid(), field.isin([value])]
        )
    )


@given(
    st.lists(_ROWS, min_size=1, max_size=5),
    _conditions(),
    st.sets(st.sampled_from(["bloom-filter", "bitmap", "range-bitmap", "bsi"])),
)
def test_no_matching_row_is_excluded(rows: list[dict[str, object]], condition: pc.Expression, kinds: set[str]) -> None:
    """Whatever the filter and the indexes, a file with a matching row stays."""
    batch = pa.RecordBatch.from_pylist(rows, SCHEMA)
    builder = FileIndexBuilder(
        [IndexSpec(field, kind, {}) for field in FIELDS.values() for kind in sorted(kinds) if _fits(kind, field)]
    )
    builder.add(batch)
    predicate = to_predicate(condition, SCHEMA)
    assert predicate is not None
    if excludes(builder.finish() or pack({}), "x", predicate, FIELDS.get):
        assert not pc.any(evaluate(predicate, batch)).as_py()


@pytest.mark.parametrize(
    ("condition", "is_excluded"),
    [
        (pc.field("a") == 1, False),
        (pc.field("a") == 3, True),
        (pc.field("a").isin([3, 4]), True),
        (pc.field("a").isin([3, 2]), False),
        ((pc.field("a") == 1) & (pc.field("s") == "no"), True),
        ((pc.field("a") == 3) | (pc.field("s") == "x"), False),
        (pc.field("s").is_null(), True),
        (pc.field("d").is_valid(), True),
        (pc.field("d").is_null(), False),
        (pc.field("a") > 100, False),
        (pc.field("other") == 3, False),
    ],
)
def test_what_excludes(condition: pc.Expression, is_excluded: bool) -> None:
    """Equality, lists and nulls exclude; everything else, and columns without an index, never does."""
    builder = FileIndexBuilder([IndexSpec(field, "bitmap", {}) for field in FIELDS.values()])
    builder.add(pa.RecordBatch.from_pydict({"a": [1, 2], "s": ["x", "y"], "d": [None, None]}, schema=SCHEMA))
    predicate = to_predicate(condition, SCHEMA.append(pa.field("other", pa.int32())))
    assert predicate is not None
    container = builder.finish()
    assert container is not None
    assert excludes(container, "x", predicate, FIELDS.get) == is_excluded


def test_unknown_kinds_say_nothing_and_empty_ones_say_no() -> None:
    """An index of an unknown kind is passed over; one that is marked as empty holds no value."""
    predicate = to_predicate(pc.field("a") == 1, SCHEMA)
    assert predicate is not None
    assert not excludes(pack({"a": {"rtree": b"?"}}), "x", predicate, FIELDS.get)
    assert excludes(pack({"a": {"bloom-filter": None}}), "x", predicate, FIELDS.get)


@pytest.mark.parametrize("kind", ["bloom-filter", "bitmap", "range-bitmap", "bsi"])
def test_damaged_indexes_are_named(kind: str) -> None:
    """An index that can not be read is an error that names the file."""
    predicate = to_predicate(pc.field("a") == 1, SCHEMA)
    assert predicate is not None
    with pytest.raises(CorruptFile, match="some-file"):
        excludes(pack({"a": {kind: b"\x02\x00"}}), "some-file", predicate, FIELDS.get)
