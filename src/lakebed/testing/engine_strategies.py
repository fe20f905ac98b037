"""Random tables of every merge engine, with options that make sense together and that compact often.

Siblings of `strategies.table_definitions`, which knows the deduplicate engine and all types. Here the columns that an
engine computes with draw from small pools: values meet, compare equal and come out of order all the time, and sums and
products stay in the range of their columns and are exact in any order.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import field
from decimal import Decimal

from hypothesis import strategies as st

from lakebed.records import dataclass
from lakebed.testing.model import Value, order_of
from lakebed.testing.strategies import ATOMIC_TYPES, TableDefinition, layouts, values_of
from lakebed.types import logical as lt
from lakebed.types.logical import AtomicType, with_nullable

_INTS = (None, 0, 1, 2, -3, 9)
_HALVES = (None, 0.0, 1.0, 0.5, -2.5)
_TEXTS = (None, "", " ", "a", "b", "a;b", "b,c", "c;;c", "é")
_BOOLS = (None, True, False)
_FACTORS = (None, 1.0, -1.0, 2.0, 0.5)
_UNITS = (None, 1, -1)
_CENTS = tuple(None if n is None else Decimal(n).scaleb(-4) for n in (None, 0, 10001, -25000, 1))
_WHOLE = tuple(None if n is None else Decimal(n) for n in (None, 1, -1, 2))

Typed = tuple[AtomicType, tuple[Value, ...]]

SUMMED: tuple[Typed, ...] = (
    (lt.INT, _INTS),
    (lt.BIGINT, _INTS),
    (lt.SMALLINT, _INTS),
    (lt.DOUBLE, _HALVES),
    (lt.FLOAT, _HALVES),
    (lt.decimal(19, 4), _CENTS),
)
MULTIPLIED: tuple[Typed, ...] = ((lt.DOUBLE, _FACTORS), (lt.INT, _UNITS), (lt.decimal(38, 0), _WHOLE))
COUNTED: tuple[Typed, ...] = ((lt.INT, _INTS), (lt.BIGINT, _INTS))
JOINED: tuple[Typed, ...] = ((lt.STRING, _TEXTS),)
TRUTHS: tuple[Typed, ...] = ((lt.BOOLEAN, _BOOLS),)


@dataclass
class _Draft:
    """A table in the making."""

    draw: st.DrawFn
    columns: dict[str, AtomicType] = field(default_factory=dict)
    pools: dict[str, tuple[Value, ...]] = field(default_factory=dict)
    meaning: dict[str, str] = field(default_factory=dict)

    def any_column(self, name: str, *, pooled: int = 0) -> str:
        """A nullable column of any type; with `pooled`, of that many values."""
        data_type = self.draw(st.sampled_from(ATOMIC_TYPES))
        self.columns[name] = data_type
        if pooled:
            self.pools[name] = (None, *self.draw(_some_values(data_type, pooled)))
        return name

    def typed_column(self, name: str, choices: tuple[Typed, ...]) -> str:
        """A column of one of these types with these values."""
        self.columns[name], self.pools[name] = self.draw(st.sampled_from(choices))
        return name

    def aggregate(self, name: str, functions: list[str], *, may_ignore_retract: bool) -> None:
        """A column with one of these aggregate functions."""
        function = self.draw(st.sampled_from(functions))
        if function in FUNCTIONS_OF_TYPES:
            self.typed_column(name, FUNCTIONS_OF_TYPES[function])
        else:
            self.any_column(name)
        self.meaning[f"fields.{name}.aggregate-function"] = function
        if may_ignore_retract and self.draw(st.sampled_from([False, False, True])):
            self.meaning[f"fields.{name}.ignore-retract"] = "true"
        if function == "listagg":
            if self.draw(st.booleans()):
                self.meaning[f"fields.{name}.list-agg-delimiter"] = ";"
            if self.draw(st.booleans()):
                self.meaning[f"fields.{name}.distinct"] = "true"

    def sequence_fields(self, *, least: int = 0) -> None:
        """Maybe columns that order the rows of a key."""
        names = [f"s{i}" for i in range(self.draw(st.sampled_from([least, 0, 1, 1, 2])))]
        for name in names:
            self.any_column(name, pooled=3)
        if names:
            self.meaning["sequence.field"] = ",".join(names)
            if self.draw(st.booleans()):
                self.meaning["sequence.field.sort-order"] = "descending"


FUNCTIONS_OF_TYPES: Mapping[str, tuple[Typed, ...]] = {
    "sum": SUMMED,
    "count": COUNTED,
    "product": MULTIPLIED,
    "bool_and": TRUTHS,
    "bool_or": TRUTHS,
    "listagg": JOINED,
}
"""Functions that do not take columns of every type."""

ORDERLESS = ("sum", "count", "product", "max", "min", "bool_and", "bool_or", "last_value")
"""Functions whose result does not depend on the order in which late rows come in. `last_value` is one of them: a merged
row holds the newest sequence value together with the value of that row."""
ORDERED = ("last_non_null_value", "first_value", "first_non_null_value", "listagg")
RETRACTING = ("sum", "count", "last_value", "product", "last_non_null_value")


def _some_values(data_type: AtomicType, size: int) -> st.SearchStrategy[list[Value]]:
    return st.lists(values_of(data_type), min_size=1, max_size=size, unique_by=order_of)


def compaction_layouts() -> st.SearchStrategy[dict[str, str]]:
    """Options that make compactions frequent, and different from one another."""
    return st.fixed_dictionaries(
        {"num-sorted-run.compaction-trigger": st.sampled_from(["2", "3", "4", "5"])},
        optional={
            "write-only": st.just("true"),
            "compaction.force-up-level-0": st.just("true"),
            "compaction.force-rewrite-all-files": st.just("true"),
            "compaction.size-ratio": st.sampled_from(["0", "50", "100"]),
            "compaction.max-size-amplification-percent": st.sampled_from(["1", "5000"]),
            "compaction.small-file-ratio": st.sampled_from(["0.0", "1.0"]),
            "num-levels": st.sampled_from(["2", "3", "4"]),
        },
    )


# --- engines ---------------------------------------------------------------------------------------------------------


def _deduplicate(draft: _Draft) -> None:
    for i in range(draft.draw(st.integers(1, 2))):
        draft.any_column(f"v{i}")
    draft.sequence_fields()
    draft.meaning |= draft.draw(st.sampled_from([{}, {}, {"ignore-delete": "true"}]))


def _first_row(draft: _Draft) -> None:
    for i in range(draft.draw(st.integers(1, 3))):
        draft.any_column(f"v{i}")
    draft.meaning |= draft.draw(st.sampled_from([{}, {"ignore-delete": "true"}]))


_AGGREGATIONS: Mapping[str, tuple[list[str], list[str | None], bool]] = {
    "orderless": ([*ORDERLESS], ["last_value", "max", "min"], True),
    "subtracting": (["sum", "count", "last_value"], ["last_value"], False),
    "retracting": ([*RETRACTING], [None, "last_value"], False),
    "any": ([*ORDERLESS, *ORDERED], [None, "last_value", "first_value", "first_non_null_value", "max"], True),
}
"""Functions, defaults, and whether there may be sequence columns, by kind of table."""


def _aggregation(draft: _Draft) -> None:
    """Tables of one mind: functions that late rows, or retracts, or neither can disturb."""
    kind = draft.draw(st.sampled_from(list(_AGGREGATIONS)))
    functions, defaults, may_order = _AGGREGATIONS[kind]
    default = draft.draw(st.sampled_from(defaults))
    if default is not None:
        draft.meaning["fields.default-aggregate-function"] = default
    removes = draft.draw(st.sampled_from([False, True]))
    for i in range(draft.draw(st.integers(1, 3))):
        draft.aggregate(f"v{i}", functions, may_ignore_retract=not removes)
    if draft.draw(st.booleans()):
        draft.any_column("w")
    if may_order:
        draft.sequence_fields(least=int(kind == "orderless"))
    if removes:
        draft.meaning["aggregation.remove-record-on-delete"] = "true"
    elif draft.draw(st.sampled_from([False, False, True])):
        draft.meaning["ignore-delete"] = "true"


def _partial_update(draft: _Draft) -> None:
    """Tables without sequence groups; see `_grouped` for those with. Rows that are always complete may come late."""
    is_complete = draft.draw(st.booleans())
    for i in range(draft.draw(st.integers(2, 4))):
        draft.any_column(f"v{i}")
        if is_complete:
            draft.columns[f"v{i}"] = _required(draft.columns[f"v{i}"])
    draft.sequence_fields(least=int(is_complete))
    delete = draft.draw(st.sampled_from([None, "ignore-delete", "partial-update.remove-record-on-delete"]))
    if delete is not None:
        draft.meaning[delete] = "true"


def _grouped(draft: _Draft) -> None:
    """Partial-update tables with one or two sequence groups of one or two ordering columns."""
    aggregates = draft.draw(st.sampled_from([False, False, True]))
    removable = []
    for i in range(draft.draw(st.integers(1, 2))):
        ordering = [draft.any_column(f"g{i}{j}", pooled=3) for j in range(draft.draw(st.sampled_from([1, 1, 2])))]
        protected = [f"p{i}{j}" for j in range(draft.draw(st.integers(1, 2)))]
        for name in protected:
            if aggregates and draft.draw(st.booleans()):
                functions = [*ORDERLESS, *ORDERED] if draft.draw(st.booleans()) else list(RETRACTING)
                draft.aggregate(name, functions, may_ignore_retract=True)
            else:
                draft.any_column(name)
        draft.meaning[f"fields.{','.join(ordering)}.sequence-group"] = ",".join(protected)
        removable += ordering
    if draft.draw(st.booleans()):
        draft.any_column("v")
    draft.sequence_fields()
    if aggregates and draft.draw(st.booleans()):
        draft.meaning["fields.default-aggregate-function"] = "last_non_null_value"
    choice = draft.draw(st.sampled_from(["retract", "ignore", "remove", "remove"]))
    if choice == "ignore":
        draft.meaning["ignore-delete"] = "true"
    elif choice == "remove":
        draft.meaning["partial-update.remove-record-on-sequence-group"] = draft.draw(st.sampled_from(removable))


_ENGINES: Mapping[str, tuple[str, Callable[[_Draft], None]]] = {
    "deduplicate": ("deduplicate", _deduplicate),
    "first-row": ("first-row", _first_row),
    "aggregation": ("aggregation", _aggregation),
    "partial-update": ("partial-update", _partial_update),
    "sequence groups": ("partial-update", _grouped),
}
KINDS_OF_TABLES: tuple[str, ...] = tuple(_ENGINES)
"""What `engine_definitions` can make."""


@st.composite
def engine_definitions(draw: st.DrawFn, kind: str) -> TableDefinition:
    """Tables of one kind, one or two key columns, maybe a partition, any format."""
    engine, fill = _ENGINES[kind]
    draft = _Draft(draw)
    draft.meaning["merge-engine"] = engine
    fill(draft)
    key = {f"k{i}": draw(st.sampled_from(ATOMIC_TYPES)) for i in range(draw(st.sampled_from([1, 1, 2])))}
    partitions = {"p": draw(st.sampled_from([lt.INT, lt.STRING, lt.DATE]))} if not draw(st.integers(0, 3)) else {}
    fixed = {name: _required(data_type) for name, data_type in (key | partitions).items()}
    pools = {name: tuple(draw(_some_values(each, 2 if len(fixed) > 1 else 3))) for name, each in fixed.items()}
    names = draw(st.permutations([*fixed, *draft.columns]))
    columns = {name: (fixed | draft.columns)[name] for name in names}
    layout = {**draw(layouts(columns)), **draw(compaction_layouts())}
    layout["bucket"] = draw(st.sampled_from(["1", "1", "1", "2"]))
    return TableDefinition(columns, tuple(fixed), tuple(partitions), draft.meaning, layout, draft.pools | pools)


def _required(data_type: AtomicType) -> AtomicType:
    required = with_nullable(data_type, False)
    assert isinstance(required, AtomicType)
    return required


__all__ = ["KINDS_OF_TABLES", "ORDERED", "ORDERLESS", "RETRACTING", "compaction_layouts", "engine_definitions"]
