"""Functions that need a window: the place of a row in it, and values of other rows."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa

from lakebed.expressions import kinds
from lakebed.expressions.aggregates.aggregate import Aggregate
from lakebed.expressions.casts import coerced
from lakebed.expressions.nodes import Aggregation, Constant, Expression, NotProven


def _place(name: str, kind: pa.DataType) -> Aggregate:
    def build() -> Aggregation:
        template = f"CAST({name}(){{over}} AS {kinds.duckdb_name(kind)})"
        return Aggregation(type=kind, nullable=False, template=template)

    return Aggregate(build, 0, 0, takes_distinct=False, takes_frame=False)


def tile(parts: Expression) -> Aggregation:
    """NTILE: which of some parts of equal size a row is in."""
    if not isinstance(parts, Constant) or parts.type != kinds.INT or parts.value < 1:
        raise NotProven("`ntile`", "the number of parts is not a constant of 1 or more")
    return Aggregation(type=kinds.INT, nullable=False, template="CAST(ntile({0}){over} AS INTEGER)", arguments=(parts,))


def _other_row(name: str, ending: str) -> Aggregate:
    def build(value: Expression, distance: Expression | None = None, other: Expression | None = None) -> Aggregation:
        steps = 1 if distance is None else _whole(name, distance)
        text = f"{name}({{0}}, {steps}{ending}){{over}}"
        if other is None or other.type == kinds.NULL:
            return Aggregation(type=value.type, template=text, arguments=(value,))
        text = f"{name}({{0}}, {steps}, {{1}}{ending}){{over}}"
        given = (value, coerced(other, value.type))
        return Aggregation(type=value.type, nullable=value.nullable or other.nullable, template=text, arguments=given)

    return Aggregate(build, 1, 3, takes_distinct=False, takes_frame=False)


def _whole(name: str, distance: Expression) -> int:
    if not isinstance(distance, Constant) or distance.type != kinds.INT:
        raise NotProven(f"`{name}`", "the distance is not a constant whole number")
    return int(distance.value)


def _of_frame(name: str, ending: str) -> Callable[..., Aggregation]:
    def build(value: Expression, ignores_nulls: Expression | None = None) -> Aggregation:
        said = ending
        if ignores_nulls is not None:
            if not isinstance(ignores_nulls, Constant) or ignores_nulls.type != kinds.BOOLEAN:
                raise NotProven(f"`{name}`", "whether nulls are left out is not a constant")
            said = _IGNORING if ignores_nulls.value else ending
        return Aggregation(type=value.type, template=f"{name}({{0}}{said}){{over}}", arguments=(value,))

    return build


def _at(ending: str) -> Callable[..., Aggregation]:
    def build(value: Expression, place: Expression) -> Aggregation:
        if _whole("nth_value", place) < 1:
            raise NotProven("`nth_value`", "the place is not 1 or more")
        return Aggregation(
            type=value.type, template=f"nth_value({{0}}, {{1}}{ending}){{over}}", arguments=(value, place)
        )

    return build


_IGNORING = " IGNORE NULLS"

RANKINGS = {
    "row_number": _place("row_number", kinds.INT),
    "rank": _place("rank", kinds.INT),
    "dense_rank": _place("dense_rank", kinds.INT),
    "percent_rank": _place("percent_rank", kinds.DOUBLE),
    "cume_dist": _place("cume_dist", kinds.DOUBLE),
    "ntile": Aggregate(tile, takes_distinct=False, takes_frame=False),
    **{
        f"{name}{ending.lower()}": entry
        for ending in ("", _IGNORING)
        for name, entry in {
            "lag": _other_row("lag", ending),
            "lead": _other_row("lead", ending),
            "first": Aggregate(_of_frame("first_value", ending), 1, 2, takes_distinct=False),
            "first_value": Aggregate(_of_frame("first_value", ending), 1, 2, takes_distinct=False),
            "any_value": Aggregate(_of_frame("first_value", ending), 1, 2, takes_distinct=False),
            "last": Aggregate(_of_frame("last_value", ending), 1, 2, takes_distinct=False),
            "last_value": Aggregate(_of_frame("last_value", ending), 1, 2, takes_distinct=False),
            "nth_value": Aggregate(_at(ending), 2, 2, takes_distinct=False),
        }.items()
    },
}
