"""Random tables, rows and filters for property tests, as hypothesis strategies.

The only module of lakebed that needs hypothesis. Values are those of `lakebed.testing.model`. Key columns draw from a
small pool, so that keys meet; every other column draws from all of its type, with the troublesome values more often.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Mapping, Sequence
from dataclasses import field, replace
from decimal import Decimal
from typing import Any

from hypothesis import strategies as st

from lakebed.errors import InvalidSchema
from lakebed.formats import FORMATS
from lakebed.lake import Lake
from lakebed.records import dataclass
from lakebed.table.table import Table
from lakebed.testing import conditions
from lakebed.testing.conditions import Filter
from lakebed.testing.model import KINDS, ModelTable, Row, Value, order_of, ticks_per_second
from lakebed.testing.model_engines import model_engine
from lakebed.types import logical as lt
from lakebed.types.logical import AtomicType, DataField, TypeRoot, with_nullable

# --- types and values ----------------------------------------------------------------------------------------------

ATOMIC_TYPES: tuple[AtomicType, ...] = (
    lt.BOOLEAN,
    lt.TINYINT,
    lt.SMALLINT,
    lt.INT,
    lt.BIGINT,
    lt.FLOAT,
    lt.DOUBLE,
    lt.decimal(5, 2),
    lt.decimal(18, 0),
    lt.decimal(19, 4),
    lt.decimal(38, 10),
    lt.char(3),
    lt.varchar(20),
    lt.STRING,
    lt.binary(4),
    lt.varbinary(8),
    lt.BYTES,
    lt.DATE,
    lt.time(0),
    lt.time(3),
    lt.timestamp(0),
    lt.timestamp(3),
    lt.timestamp(5),
    lt.timestamp(6),
    lt.timestamp(9),
    lt.timestamp_ltz(0),
    lt.timestamp_ltz(3),
    lt.timestamp_ltz(6),
    lt.timestamp_ltz(9),
)
"""Types whose values have an order: any of them can be a key, a partition or a sequence column."""

_BITS = {TypeRoot.TINYINT: 8, TypeRoot.SMALLINT: 16, TypeRoot.INT: 32, TypeRoot.BIGINT: 64}
_FLOATS = (0.0, -0.0, 1.0, -1.0, 1.5, math.nan, math.inf, -math.inf, 1e-30)
_TEXTS = (
    "",
    "a",
    "ab",
    "b",
    "é",
    "zz",
    "Ａ",
    "\uffff",
    "\U00010000",
    "a'b/c=d",
    "long enough to be cut off in statistics",
)
_SECONDS = (-(10**9), 4 * 10**9)


def values_of(data_type: AtomicType) -> st.SearchStrategy[Value]:
    """Values of a type, never None."""
    root = data_type.root
    if root is TypeRoot.BOOLEAN:
        return st.booleans()
    if root in _BITS:
        limit = 1 << (_BITS[root] - 1)
        return st.sampled_from([0, 1, -1, 7, -limit, limit - 1]) | st.integers(-limit, limit - 1)
    if root is TypeRoot.FLOAT:
        return st.sampled_from(_FLOATS).map(_single) | st.floats(width=32)
    if root is TypeRoot.DOUBLE:
        return st.sampled_from(_FLOATS) | st.floats()
    if root is TypeRoot.DECIMAL:
        limit = 10**data_type.precision - 1
        unscaled = st.sampled_from([0, 1, -1, limit, -limit]) | st.integers(-limit, limit)
        return unscaled.map(lambda digits: Decimal(f"{digits}E-{data_type.scale}"))
    if root in lt.STRINGS:
        return _texts(data_type.length)
    if root in lt.BINARIES:
        length = min(data_type.length, 24)
        return _texts(length).map(lambda text: text.encode()[:length]) | st.binary(max_size=length)
    if root is TypeRoot.DATE:
        return st.sampled_from([0, -1, 19_000]) | st.integers(-100_000, 100_000)
    if root is TypeRoot.TIME:
        step = 10 ** max(0, 3 - data_type.precision)
        return st.integers(0, (86_400_000 - 1) // step).map(lambda ticks: ticks * step)
    return _moments(data_type)


def _single(value: float) -> float:
    return float(struct.unpack("<f", struct.pack("<f", value))[0])


def _texts(length: int) -> st.SearchStrategy[str]:
    alphabet = st.characters(codec="utf-8")
    return st.sampled_from(_TEXTS).map(lambda text: text[:length]) | st.text(alphabet, max_size=min(length, 6))


def _moments(data_type: AtomicType) -> st.SearchStrategy[Value]:
    """Ticks within the years 1938 to 2096, on the grid of the type's precision."""
    per_second = ticks_per_second(data_type)
    step = per_second // 10**data_type.precision
    low, high = (seconds * 10**data_type.precision for seconds in _SECONDS)
    return (st.sampled_from([0, -1, 1]) | st.integers(low, high)).map(lambda ticks: ticks * step)


# --- tables --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, repr=False)
class TableDefinition:
    """A table to be created: what it means, how it is laid out, and which values its key columns take."""

    columns: Mapping[str, AtomicType]
    primary_key: tuple[str, ...]
    partition_by: tuple[str, ...] = ()
    meaning: Mapping[str, str] = field(default_factory=dict)
    layout: Mapping[str, str] = field(default_factory=dict)
    pools: Mapping[str, tuple[Value, ...]] = field(default_factory=dict)

    def __repr__(self) -> str:
        columns = {name: str(data_type) for name, data_type in self.columns.items()}
        return (
            f"TableDefinition({columns}, primary_key={self.primary_key}, partition_by={self.partition_by}, "
            f"meaning={dict(self.meaning)}, layout={dict(self.layout)}, pools={dict(self.pools)})"
        )

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        # hypothesis would print every parameter of every type.
        printer.text(repr(self))

    @property
    def rowkind_field(self) -> str | None:
        """The column that holds row kinds, if one does."""
        return self.meaning.get("rowkind.field")

    def create(self, lake: Lake, name: str) -> Table:
        """The real table."""
        return lake.create_table(
            name,
            dict(self.columns),
            primary_key=self.primary_key,
            partition_by=self.partition_by,
            options={**self.meaning, **self.layout},
        )

    def model(self) -> ModelTable:
        """The model of it."""
        sequence = self.meaning.get("sequence.field")
        return ModelTable(
            self.columns,
            self.primary_key,
            self.partition_by,
            sequence_fields=sequence.split(",") if sequence else (),
            descending=self.meaning.get("sequence.field.sort-order") == "descending",
            ignore_delete=self.meaning.get("ignore-delete") == "true",
            ignore_update_before=self.meaning.get("ignore-update-before") == "true",
            rowkind_field=self.rowkind_field,
            dynamic_overwrite=self.meaning.get("dynamic-partition-overwrite") != "false",
            engine=model_engine(self.meaning, list(self.columns), [*self.primary_key, *self.partition_by]),
            counted=[name for name in self.columns if self.meaning.get(f"fields.{name}.aggregate-function") == "count"],
            hides_new=self.meaning.get("merge-engine") == "first-row",
        )


def layouts(columns: Mapping[str, AtomicType], *, keyed: bool = True) -> st.SearchStrategy[dict[str, str]]:
    """Options that change files and reads, but never what is read."""
    rare: dict[str, list[str]] = {
        "write-buffer-size": ["1 b", "300 b", "2 kb"],
        "target-file-size": ["1 b", "1 kb"],
        "target-file-row-num": ["1", "2", "3"],
        "read.batch-size": ["1", "2", "3"],
        "file.block-size": ["1 b", "100 b"],
        "source.split.target-size": ["1 b", "4 kb"],
        "source.split.open-file-cost": ["1 b"],
        "manifest.target-file-size": ["1 b", "2 kb"],
        "manifest.merge-min-count": ["1", "2", "3"],
        "manifest.full-compaction-threshold-size": ["1 b", "3 kb"],
        "metadata.stats-mode": ["none", "counts", "full", "truncate(1)", "truncate(3)"],
        "metadata.stats-dense-store": ["false"],
    }
    common = {"file.format": st.sampled_from([name for name in ("parquet", "orc", "avro") if stores(name, columns)])}
    if keyed:
        common["bucket"] = st.sampled_from(["1", "1", "2", "3", "5"])
    return st.fixed_dictionaries(common, optional={key: st.sampled_from(values) for key, values in rare.items()})


def stores(format_name: str, columns: Mapping[str, AtomicType]) -> bool:
    """Whether a file format has room for all values of these types."""
    if format_name == "orc" and any(lt.is_root(each, lt.TIMESTAMPS) and each.precision for each in columns.values()):
        return False  # no fractions of seconds before 1970
    fields = [DataField(i, name, data_type) for i, (name, data_type) in enumerate(columns.items())]
    try:
        FORMATS[format_name].check(fields)
    except InvalidSchema:
        return False
    return True


@st.composite
def table_definitions(draw: st.DrawFn, *, keyed: bool = True) -> TableDefinition:
    """Tables with one to three key columns, maybe partitions, one to three value columns, random options."""
    nullable_key = keyed and draw(st.booleans())
    types = st.sampled_from(ATOMIC_TYPES)
    key = {f"k{i}": with_nullable(draw(types), nullable_key) for i in range(draw(st.sampled_from([1, 1, 2, 3])))}
    partitions = {
        f"p{i}": with_nullable(draw(types), nullable_key or not keyed)
        for i in range(draw(st.sampled_from([0, 0, 0, 1, 2])))
    }
    values = {f"v{i}": with_nullable(draw(types), draw(st.booleans())) for i in range(draw(st.integers(1, 3)))}
    meaning: dict[str, str] = {}
    if keyed:
        meaning, extra = draw(_meanings(nullable_key))
        values |= extra
    if any(lt.is_root(data_type, lt.BINARIES) for data_type in partitions.values()):
        meaning["partition.legacy-name"] = "false"  # bytes have no directory name otherwise
    names = draw(st.permutations([*key, *partitions, *values]))
    columns = {name: _atomic({**key, **partitions, **values}[name]) for name in names}
    pool_size = 4 if len(key) + len(partitions) == 1 else 2
    pools = {name: draw(_pool(columns[name], pool_size)) for name in [*key, *partitions]}
    primary_key = tuple(draw(st.permutations([*key, *partitions]))) if keyed else ()
    layout = draw(layouts(columns, keyed=keyed))
    return TableDefinition(columns, primary_key, tuple(partitions), meaning, layout, pools)


def _atomic(data_type: lt.DataType) -> AtomicType:
    assert isinstance(data_type, AtomicType)
    return data_type


def _pool(data_type: AtomicType, max_size: int) -> st.SearchStrategy[tuple[Value, ...]]:
    values = st.lists(values_of(data_type), min_size=1, max_size=max_size, unique_by=order_of)
    return values.map(lambda pool: (*pool, None) if data_type.nullable else tuple(pool))


@st.composite
def _meanings(draw: st.DrawFn, nullable_key: bool) -> tuple[dict[str, str], dict[str, lt.DataType]]:
    """Options that say what rows mean, and the columns that they need."""
    meaning = draw(
        st.fixed_dictionaries(
            {},
            optional={
                "ignore-delete": st.just("true"),
                "ignore-update-before": st.just("true"),
                "dynamic-partition-overwrite": st.just("false"),
            },
        )
    )
    if nullable_key:
        meaning["primary-key.nullable"] = "true"
    extra: dict[str, lt.DataType] = {}
    for i in range(draw(st.sampled_from([0, 0, 1, 2]))):
        extra[f"s{i}"] = with_nullable(draw(st.sampled_from(ATOMIC_TYPES)), draw(st.booleans()))
    if extra:
        meaning["sequence.field"] = ",".join(draw(st.permutations(list(extra))))
        if draw(st.booleans()):
            meaning["sequence.field.sort-order"] = draw(st.sampled_from(["ascending", "descending"]))
    if draw(st.sampled_from([False, False, True])):
        meaning["rowkind.field"] = "kind"
        extra["kind"] = with_nullable(lt.STRING, draw(st.booleans()))
    return meaning, extra


# --- rows ----------------------------------------------------------------------------------------------------------


def cells(data_type: AtomicType, pool: Sequence[Value] = ()) -> st.SearchStrategy[Value]:
    """Values for one column: from its pool, or any of its type, null now and then."""
    if pool:
        return st.sampled_from(pool)
    values = values_of(data_type)
    return st.none() | values if data_type.nullable else values


def rows_of(
    columns: Mapping[str, AtomicType],
    pools: Mapping[str, Sequence[Value]],
    rowkind_field: str | None = None,
    *,
    min_size: int = 0,
    max_size: int = 8,
) -> st.SearchStrategy[list[Row]]:
    """Rows of a table."""
    strategies = {name: cells(data_type, pools.get(name, ())) for name, data_type in columns.items()}
    if rowkind_field is not None:
        strategies[rowkind_field] = row_kinds()
    return st.lists(st.fixed_dictionaries(strategies), min_size=min_size, max_size=max_size)


def row_kinds() -> st.SearchStrategy[str]:
    """Row kinds, adds more often."""
    return st.sampled_from([*KINDS, "+I", "+U"])


def wider_types(data_type: AtomicType) -> list[AtomicType]:
    """Types that the column may be widened to without losing a value or the order of two."""
    match data_type:
        case AtomicType(root=TypeRoot.TINYINT):
            wider = [lt.SMALLINT, lt.INT, lt.BIGINT, lt.FLOAT, lt.DOUBLE, lt.decimal(10, 2)]
        case AtomicType(root=TypeRoot.SMALLINT):
            wider = [lt.INT, lt.BIGINT, lt.FLOAT, lt.DOUBLE, lt.decimal(20, 0)]
        case AtomicType(root=TypeRoot.INT):
            wider = [lt.BIGINT, lt.DOUBLE, lt.decimal(30, 5)]
        case AtomicType(root=TypeRoot.BIGINT):
            wider = [lt.decimal(38, 2)]
        case AtomicType(root=TypeRoot.FLOAT):
            wider = [lt.DOUBLE]
        case AtomicType(root=TypeRoot.DECIMAL, precision=precision, scale=scale) if precision < 37:
            wider = [lt.decimal(precision + 1, scale), lt.decimal(precision + 2, scale + 1)]
        case AtomicType(root=TypeRoot.CHAR | TypeRoot.VARCHAR, length=length) if length < lt.MAX_LENGTH:
            wider = [lt.varchar(length + 1), lt.STRING]
        case AtomicType(root=TypeRoot.TIMESTAMP, precision=precision) if precision < 9:
            wider = [lt.timestamp(finer) for finer in range(precision + 1, 10)]
        case _:
            wider = []
    return [_atomic(with_nullable(each, data_type.nullable)) for each in wider]


# --- filters -------------------------------------------------------------------------------------------------------


def filters(columns: Mapping[str, AtomicType], pools: Mapping[str, Sequence[Value]]) -> st.SearchStrategy[Filter]:
    """Conditions over the columns, as pyarrow understands them: NaN equals nothing, -0.0 equals 0.0."""

    def literal(name: str) -> st.SearchStrategy[Value]:
        known = [value for value in pools.get(name, ()) if value is not None]
        any_value = values_of(columns[name])
        return st.sampled_from(known) | any_value if known else any_value

    def leaves_of(name: str) -> st.SearchStrategy[Filter]:
        data_type = columns[name]
        compared = st.tuples(st.sampled_from(list(conditions.COMPARISONS)), literal(name))
        several = st.lists(st.none() | literal(name), max_size=3)
        choices = [
            compared.map(lambda drawn: conditions.comparison(name, data_type, *drawn)),
            several.map(lambda values: conditions.membership(name, data_type, values)),
            st.booleans().map(lambda negated: conditions.null_test(name, negated)),
        ]
        if data_type.root in lt.STRINGS:
            choices.append(literal(name).map(lambda text: conditions.prefix(name, str(text)[:2])))
        return st.one_of(choices)

    alone = st.sampled_from(list(columns)).flatmap(leaves_of)
    joined = _combinations(alone)
    return alone | joined | _combinations(alone | joined)


def _combinations(parts: st.SearchStrategy[Filter]) -> st.SearchStrategy[Filter]:
    pairs = st.tuples(parts, parts)
    return st.one_of(
        pairs.map(lambda pair: conditions.joined("&", False, *pair)),
        pairs.map(lambda pair: conditions.joined("|", True, *pair)),
        parts.map(conditions.negated),
    )


def with_layout(definition: TableDefinition, layout: Mapping[str, str]) -> TableDefinition:
    """The same table, laid out otherwise."""
    return replace(definition, layout=dict(layout))


__all__ = [
    "ATOMIC_TYPES",
    "Filter",
    "TableDefinition",
    "cells",
    "filters",
    "layouts",
    "row_kinds",
    "rows_of",
    "stores",
    "table_definitions",
    "values_of",
    "wider_types",
    "with_layout",
]
