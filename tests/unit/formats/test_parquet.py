"""Parquet: how types are stored, INT96, pruning, damage."""

from __future__ import annotations

import io
import math
import random
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.formats.format_samples import ArrayType, field, not_null, read, row, table, written

from lakebed.errors import CorruptFile, Unsupported
from lakebed.formats import FORMATS
from lakebed.formats.base import WriteSettings
from lakebed.types import logical as lt
from lakebed.types.logical import DataField, DataType, MapType, MultisetType

PARQUET = FORMATS["parquet"]
PATH = "db.db/t/bucket-0/data-1.parquet"

STORED = [
    (lt.TINYINT, "optional int32 field_id=7 c (Int(bitWidth=8, isSigned=true));"),
    (not_null(lt.SMALLINT), "required int32 field_id=7 c (Int(bitWidth=16, isSigned=true));"),
    (lt.INT, "optional int32 field_id=7 c;"),
    (lt.BIGINT, "optional int64 field_id=7 c;"),
    (lt.char(3), "optional binary field_id=7 c (String);"),
    (lt.binary(3), "optional binary field_id=7 c;"),
    (lt.decimal(9, 2), "optional int32 field_id=7 c (Decimal(precision=9, scale=2));"),
    (lt.decimal(18, 2), "optional int64 field_id=7 c (Decimal(precision=18, scale=2));"),
    (lt.decimal(19, 2), "optional fixed_len_byte_array(9) field_id=7 c (Decimal(precision=19, scale=2));"),
    (lt.decimal(38, 2), "optional fixed_len_byte_array(16) field_id=7 c (Decimal(precision=38, scale=2));"),
    (lt.DATE, "optional int32 field_id=7 c (Date);"),
    (lt.time(0), "optional int32 field_id=7 c (Time(isAdjustedToUTC=false, timeUnit=milliseconds));"),
    (lt.timestamp(0), "c (Timestamp(isAdjustedToUTC=false, timeUnit=milliseconds"),
    (lt.timestamp(3), "c (Timestamp(isAdjustedToUTC=false, timeUnit=milliseconds"),
    (lt.timestamp(6), "c (Timestamp(isAdjustedToUTC=false, timeUnit=microseconds"),
    (lt.timestamp_ltz(3), "c (Timestamp(isAdjustedToUTC=true, timeUnit=milliseconds"),
    (lt.timestamp_ltz(4), "c (Timestamp(isAdjustedToUTC=true, timeUnit=microseconds"),
    (lt.timestamp(9), "optional int96 field_id=7 c;"),
    (lt.timestamp_ltz(7), "optional int96 field_id=7 c;"),
    (ArrayType(lt.timestamp(9)), "optional int96 field_id="),
]


@pytest.mark.parametrize(("data_type", "line"), STORED, ids=lambda part: str(part)[:30])
def test_physical_types(data_type: DataType, line: str) -> None:
    """Atomic types have the physical type, annotation, repetition and id that other readers expect."""
    content, _ = written("parquet", [DataField(7, "c", data_type)])
    assert line in str(pq.ParquetFile(pa.BufferReader(content)).schema)


def test_nested_types_and_their_ids() -> None:
    """Lists have three levels, map keys are required, and parts carry the ids derived from the column's."""
    inner = DataField(6, "m", MapType(lt.STRING, not_null(lt.INT)))
    fields = [
        DataField(5, "l", ArrayType(ArrayType(not_null(lt.INT)))),
        DataField(8, "r", lt.RowType((inner,))),
        DataField(9, "s", MultisetType(lt.STRING)),
    ]
    content, _ = written("parquet", fields)
    schema = "\n".join(line.strip() for line in str(pq.ParquetFile(pa.BufferReader(content)).schema).splitlines())
    base = 536870911
    for line in (
        "optional group field_id=5 l (List) {",
        f"optional group field_id={base + 1024 * 5 + 1} element (List) {{",
        f"required int32 field_id={base + 1024 * 5 + 2} element;",
        "optional group field_id=8 r {",
        "optional group field_id=6 m (Map) {",
        "repeated group field_id=-1 key_value {",
        f"required binary field_id={base - 1024 * 6 - 1} key (String);",
        f"required int32 field_id={base + 1024 * 6 + 1} value;",
        f"required int32 field_id={base + 1024 * 9 + 1} value;",
    ):
        assert line in schema
    assert b"ARROW:schema" not in content


def test_ids_of_key_and_system_columns() -> None:
    """The large ids of key and system columns fit."""
    fields = [DataField(1073741823, "_KEY_a", lt.INT), DataField(2147483646, "_SEQUENCE_NUMBER", lt.BIGINT)]
    content, _ = written("parquet", fields)
    schema = pq.ParquetFile(pa.BufferReader(content)).schema_arrow
    assert [f.metadata[b"PARQUET:field_id"] for f in schema] == [b"1073741823", b"2147483646"]


def int96_file(values: list[int | None]) -> bytes:
    stream = pa.BufferOutputStream()
    rows = pa.table(
        {"c": pa.array(values, pa.timestamp("us")), "l": pa.array([[v] for v in values], pa.list_(pa.timestamp("us")))}
    )
    pq.write_table(rows, stream, use_deprecated_int96_timestamps=True)
    return stream.getvalue().to_pybytes()


def test_int96_timestamps_are_exact() -> None:
    """INT96 reads in the unit of the column, with the zone of the column, also inside lists."""
    content = int96_file([0, -1, 1_700_000_000_123_456, None])
    for data_type, factor in ((lt.timestamp(9), 1000), (lt.timestamp_ltz(9), 1000), (lt.timestamp_ltz(6), 1)):
        result = read("parquet", content, [field(data_type, "c"), field(ArrayType(data_type), "l")])
        expected = [0, -factor, 1_700_000_000_123_456 * factor, None]
        assert result["c"].cast(pa.int64()).to_pylist() == expected
        assert pc.list_flatten(result["l"]).cast(pa.int64()).to_pylist() == expected


def test_int96_beyond_nanoseconds() -> None:
    """INT96 of the year 1 reads as microseconds, and is an error rather than another year as nanoseconds."""
    content = int96_file([-62135596800000000, 253402300799999999])
    result = read("parquet", content, [field(lt.timestamp(6))])
    assert result["c"].cast(pa.int64()).to_pylist() == [-62135596800000000, 253402300799999999]
    for fields in ([field(lt.timestamp(9))], [field(ArrayType(lt.timestamp(9)), "l")]):
        with pytest.raises(Unsupported, match="can not hold"):
            read("parquet", content, fields)


def test_int96_columns_have_exact_statistics() -> None:
    """A file with one fine timestamp stores all as INT96, which has no footer bounds; ours are right all the same."""
    fields = [DataField(0, "fine", lt.timestamp(9)), DataField(1, "coarse", lt.timestamp(3))]
    columns = [pa.array([5, None, -7], pa.timestamp("ns")), pa.array([None, 3, 1], pa.timestamp("ms"))]
    stream = pa.BufferOutputStream()
    writer = FORMATS["parquet"].open_writer(stream, fields, WriteSettings())
    writer.write(pa.RecordBatch.from_arrays(columns, names=["fine", "coarse"]))
    stats = writer.close().columns
    assert (stats["fine"].min.value, stats["fine"].max.value, stats["fine"].null_count) == (-7, 5, 1)
    assert (stats["coarse"].min.value, stats["coarse"].max.value, stats["coarse"].null_count) == (1, 3, 1)
    again = read("parquet", stream.getvalue().to_pybytes(), fields)
    assert [again["fine"].cast(pa.int64()).to_pylist(), again["coarse"].cast(pa.int64()).to_pylist()] == [
        [5, None, -7],
        [None, 3, 1],
    ]


def test_other_flavours_are_converted_and_other_types_refused() -> None:
    """Unnamed elements, other decimal storage and missing members read well; text for a number does not."""
    stream = pa.BufferOutputStream()
    stored = pa.table(
        {
            "l": pa.array([[1], None], pa.list_(pa.field("array", pa.int32()))),
            "d": pa.array([Decimal("1.5"), None], pa.decimal128(5, 1)),
            "r": pa.array([{"y": "a", "x": 1}, None], pa.struct([("y", pa.string()), ("x", pa.int32())])),
            "t": pa.array(["12", None]),
        }
    )
    pq.write_table(stored, stream)
    content = stream.getvalue().to_pybytes()
    fields = [
        field(ArrayType(not_null(lt.INT)), "l"),
        field(lt.decimal(7, 3), "d"),
        field(row(("x", lt.INT), ("z", lt.INT)), "r"),
    ]
    assert read("parquet", content, fields).to_pydict() == {
        "l": [[1], None],
        "d": [Decimal("1.500"), None],
        "r": [{"x": 1, "z": None}, None],
    }
    with pytest.raises(CorruptFile, match=r"`t`.*some/file"):
        read("parquet", content, [field(lt.INT, "t")])


# --- pruning ---------------------------------------------------------------------------------------------------------

PRUNE_FIELDS = [
    field(lt.INT, "i", 1),
    field(lt.DOUBLE, "f", 2),
    field(lt.STRING, "s", 3),
    field(lt.timestamp(0), "t", 4),
    field(lt.decimal(20, 2), "d", 5),
    field(lt.BOOLEAN, "b", 6),
    field(lt.INT, "absent", 7),
]
ROWS = st.tuples(
    st.none() | st.integers(-5, 5),
    st.none() | st.sampled_from([-1.0, -0.0, 0.0, 2.0, math.nan, math.inf]),
    st.none() | st.sampled_from(["", "a", "b", "é", "zz"]),
    st.none() | st.integers(-5, 5),
    st.none() | st.sampled_from([Decimal("-1.00"), Decimal("0.00"), Decimal("7.25")]),
    st.none() | st.booleans(),
)
LITERALS = {
    "i": st.integers(-6, 6).map(lambda v: pa.scalar(v, pa.int32())),
    "f": st.sampled_from([-1.0, 0.0, 2.0, math.nan]).map(pa.scalar),
    "s": st.sampled_from(["", "a", "b", "é", "z"]).map(pa.scalar),
    "t": st.integers(-6, 6).map(lambda v: pa.scalar(v, pa.timestamp("s"))),
    "d": st.sampled_from([Decimal("0.00"), Decimal("7.25")]).map(lambda v: pa.scalar(v, pa.decimal128(20, 2))),
    "b": st.booleans().map(pa.scalar),
    "absent": st.integers(-6, 6).map(lambda v: pa.scalar(v, pa.int32())),
}


@st.composite
def comparisons(draw: st.DrawFn) -> pc.Expression:
    name = draw(st.sampled_from(list(LITERALS)))
    column = pc.field(name)
    kind = draw(st.sampled_from(["==", "!=", "<", "<=", ">", ">=", "null", "valid", "in"]))
    if kind == "null":
        return column.is_null()
    if kind == "valid":
        return column.is_valid()
    literal = draw(LITERALS[name])
    if kind == "in":
        return column.isin(pa.array([literal.as_py()], literal.type))
    operators = {"==": "__eq__", "!=": "__ne__", "<": "__lt__", "<=": "__le__", ">": "__gt__", ">=": "__ge__"}
    return getattr(column, operators[kind])(literal)


FILTERS = st.recursive(
    comparisons(),
    lambda inner: st.one_of(
        st.builds(lambda a, b: a & b, inner, inner),
        st.builds(lambda a, b: a | b, inner, inner),
        inner.map(lambda e: ~e),
    ),
    max_leaves=4,
)


@given(rows=st.lists(ROWS, min_size=1, max_size=24), keep=FILTERS, group=st.integers(1, 6))
@settings(max_examples=150, deadline=None)
def test_pruning_loses_no_matching_row(rows: list[Any], keep: pc.Expression, group: int) -> None:
    """Whatever the filter, every matching row comes through, at its right position."""
    fields = PRUNE_FIELDS[:-1]
    stored = table(fields, *(list(column) for column in zip(*rows, strict=True)))
    content, _ = written("parquet", fields, stored, row_group_rows=group)
    whole = read("parquet", content, PRUNE_FIELDS).append_column("position", pa.array(range(len(rows)), pa.int64()))
    pieces = []
    for position, batch in PARQUET.open_reader(pa.BufferReader(content), PATH).read(PRUNE_FIELDS, filter=keep):
        positions = pa.array(range(position, position + batch.num_rows), pa.int64())
        pieces.append(pa.Table.from_batches([batch]).append_column("position", positions))
    pruned = pa.concat_tables(pieces) if pieces else whole.slice(0, 0)
    assert repr(pruned.filter(keep).to_pylist()) == repr(whole.filter(keep).to_pylist())


def test_pruning_skips_row_groups() -> None:
    """Row groups outside the filter are left out, and positions tell where the others lie."""
    fields = [field(lt.INT, "i"), field(lt.DOUBLE, "f")]
    content, _ = written("parquet", fields, table(fields, list(range(100)), [0.5] * 100), row_group_rows=10)
    reader = PARQUET.open_reader(pa.BufferReader(content), PATH)

    def positions(keep: pc.Expression) -> list[int]:
        return [
            p
            for start, batch in reader.read(fields, filter=keep, batch_rows=10)
            for p in range(start, start + len(batch))
        ]

    column = pc.field("i")
    assert positions((column == 15) | (column == 91)) == [*range(10, 20), *range(90, 100)]
    assert positions(column > 1000) == []
    assert positions(column.is_null()) == []
    assert positions((column == 15) & (pc.field("f") == 0.5)) == list(range(100))
    assert positions(pc.field("nowhere") == 1) == list(range(100))


def test_pruning_without_statistics() -> None:
    """A file without statistics is read in full."""
    stream = pa.BufferOutputStream()
    pq.write_table(pa.table({"i": pa.array([1, 2], pa.int32())}), stream, write_statistics=False)
    reader = PARQUET.open_reader(pa.BufferReader(stream.getvalue()), PATH)
    assert [b.num_rows for _, b in reader.read([field(lt.INT, "i")], filter=pc.field("i") > 5)] == [2]


# --- damage ----------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def sound() -> tuple[list[DataField], pa.Table, bytes]:
    fields = [field(not_null(lt.BIGINT), "id", 1), field(lt.STRING, "v", 2), field(ArrayType(lt.INT), "l", 3)]
    count = 300
    rows = table(
        fields,
        list(range(count)),
        [None if i % 7 == 0 else f"v{i % 13}" for i in range(count)],
        [[i, None] for i in range(count)],
    )
    return fields, rows, written("parquet", fields, rows, row_group_rows=150)[0]


def test_a_flipped_byte_never_gives_wrong_rows(sound: tuple[list[DataField], pa.Table, bytes]) -> None:
    """Damage in the data area is reported with the file's name; where it is harmless the rows are right."""
    fields, rows, content = sound
    end = len(content) - 8 - int.from_bytes(content[-8:-4], "little")
    reported = 0
    for position in random.Random(1).sample(range(4, end), 400):
        damaged = bytearray(content)
        damaged[position] ^= 1 << (position % 8)
        try:
            result = read("parquet", bytes(damaged), fields)
        except CorruptFile as error:
            assert "some/file" in str(error)  # noqa: PT017
            reported += 1
        else:
            assert result.to_pydict() == rows.to_pydict()
    assert reported > 350


def test_a_truncated_file_is_reported(sound: tuple[list[DataField], pa.Table, bytes]) -> None:
    """A file cut anywhere, or of another kind, is reported."""
    fields, _, content = sound
    for size in [0, 1, 4, 8, 100, len(content) // 2, len(content) - 9, len(content) - 1]:
        with pytest.raises(CorruptFile, match="some/file"):
            read("parquet", content[:size], fields)
    with pytest.raises(CorruptFile):
        read("parquet", b"no parquet file at all", fields)


def test_errors_of_the_storage_are_not_corruption() -> None:
    """An error that the file system raises while reading passes through unchanged."""

    class Broken(io.BytesIO):
        def read(self, *_: object) -> bytes:
            raise TimeoutError(110, "no answer")

    with pytest.raises(TimeoutError):
        PARQUET.open_reader(pa.PythonFile(Broken(b"x" * 1000), mode="r"), PATH)


def test_long_decimals_have_no_dictionary() -> None:
    """Java misses values of decimals beyond 18 digits in dictionaries, so there are none, at any depth."""
    kinds = [lt.decimal(18, 2), lt.decimal(19, 2), ArrayType(lt.decimal(38, 2))]
    fields = [field(kind, f"c{i}", i) for i, kind in enumerate(kinds)]
    ones = [Decimal("1.00")] * 100
    content, _ = written("parquet", fields, table(fields, ones, ones, [[one] for one in ones]))
    group = pq.ParquetFile(io.BytesIO(content)).metadata.row_group(0)
    assert [group.column(i).has_dictionary_page for i in range(3)] == [True, False, False]
