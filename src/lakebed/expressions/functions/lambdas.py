"""Functions that take a function: transform, filter, exists, aggregate, zip_with, and those of maps.

DuckDB's lambdas see one list at a time, with places from 1. Where Spark's see something else (places from 0, two
arrays, a key and its value), that is put in place of the parameter.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import pyarrow as pa

from lakebed.expressions import kinds
from lakebed.expressions.functions.collections import element_type, let
from lakebed.expressions.functions.function import Function
from lakebed.expressions.functions.maps import entry_type
from lakebed.expressions.nodes import Call, Expression, Lambda, NotProven, Parameter, call


def _function(what: str, given: Expression) -> Lambda:
    if not isinstance(given, Lambda):
        raise NotProven(f"`{what}`", "its argument is not a lambda")
    if given.type == kinds.NULL:
        raise NotProven(f"`{what}` with a lambda that gives nothing but nulls")
    return given


def _with(body: Expression, values: Mapping[str, Expression]) -> Expression:
    """An expression with other ones in place of parameters."""
    match body:
        case Parameter():
            return values.get(body.id, body)
        case Call():
            return replace(body, arguments=tuple(_with(each, values) for each in body.arguments))
        case Lambda():
            return replace(body, body=_with(body.body, values))
    return body


def _placed(function: Lambda) -> Lambda:
    """A lambda of an element and its place, which Spark counts from 0 and as INT."""
    if len(function.parameters) == 1:
        return function
    place = function.parameters[1]
    from_zero = call("CAST({0} - 1 AS INTEGER)", place, type=kinds.INT, nullable=False)
    return replace(function, body=_with(function.body, {place.id: from_zero}))


def transform(array: Expression, function: Expression) -> Expression:
    """TRANSFORM."""
    given = _placed(_function("transform", function))
    return call("list_transform({0}, {1})", array, given, type=kinds.array_of(given.type), nullable=array.nullable)


def filtered(array: Expression, function: Expression) -> Expression:
    """FILTER: the elements for which a condition holds."""
    given = _condition("filter", function)
    return call("list_filter({0}, {1})", array, _placed(given), type=array.type, nullable=array.nullable)


def _condition(what: str, function: Expression) -> Lambda:
    given = _function(what, function)
    if given.type != kinds.BOOLEAN:
        raise NotProven(f"`{what}` with a condition of {kinds.spark_name(given.type)}")
    return given


def exists(array: Expression, function: Expression) -> Expression:
    """EXISTS: whether a condition holds for some element; null if it is null for one and holds for none."""
    return _asked("exists", array, function, "TRUE")


def forall(array: Expression, function: Expression) -> Expression:
    """FORALL: whether a condition holds for all elements; null if it is null for one and false for none."""
    return _asked("forall", array, function, "FALSE")


def _asked(what: str, array: Expression, function: Expression, decisive: str) -> Expression:
    given = _condition(what, function)
    if given.can_fail:
        # Spark stops at the first element that decides, and never sees that a later one would fail.
        before = replace(given.parameters[0], type=kinds.BOOLEAN, id=f"{given.parameters[0].id}_before")
        joint = "OR" if decisive == "TRUE" else "AND"
        step = f"(CASE WHEN {{0}} IS {decisive} THEN {decisive} ELSE ({{0}} {joint} {{1}}) END)"
        body = call(step, before, given.body, type=kinds.BOOLEAN, nullable=True)
        folded = replace(given, parameters=(before, *given.parameters), body=body)
        start = "FALSE" if decisive == "TRUE" else "TRUE"
        return call(f"list_reduce({{0}}, {{1}}, {start})", array, folded, type=kinds.BOOLEAN, nullable=True)
    answer = (
        f"CASE WHEN t_ IS NULL THEN NULL WHEN list_contains(t_, {decisive}) THEN {decisive} "
        f"WHEN list_count(t_) < len(t_) THEN NULL ELSE NOT {decisive} END"
    )
    template = let(answer, "list_transform({0}, {1})", "t_")
    return call(template, array, given, type=kinds.BOOLEAN, nullable=True)


def aggregate(array: Expression, start: Expression, merge: Expression, finish: Expression | None = None) -> Expression:
    """AGGREGATE: from the left, each element with what came out before; then, once, `finish`."""
    step = _function("aggregate", merge)
    if step.type != start.type:
        raise NotProven(f"`aggregate` from {kinds.spark_name(start.type)} to {kinds.spark_name(step.type)}")
    folded = "list_reduce({0}, {2}, {1})"
    if finish is None:
        return call(folded, array, start, step, type=start.type, nullable=True)
    last = _function("aggregate", finish)
    template = f"(CASE WHEN {{0}} IS NOT NULL THEN list_transform([{folded}], {{3}})[1] END)"
    return call(template, array, start, step, last, type=last.type, nullable=True)


def zip_with(left: Expression, right: Expression, function: Expression) -> Expression:
    """ZIP_WITH: two elements at one place at a time; the shorter array goes on with nulls."""
    given = _function("zip_with", function)
    place = replace(given.parameters[0], type=kinds.BIGINT)
    values = {
        parameter.id: call("list_extract({0}, {1})", side, place, type=parameter.type, nullable=True)
        for parameter, side in zip(given.parameters, (left, right), strict=True)
    }
    body = Lambda(
        type=given.type,
        nullable=given.nullable,
        can_fail=given.can_fail,
        parameters=(place,),
        body=_with(given.body, values),
    )
    zipped = "list_transform(range(1, greatest(len({0}), len({1})) + 1), {2})"
    template = f"(CASE WHEN {{0}} IS NOT NULL AND {{1}} IS NOT NULL THEN {zipped} END)"
    return call(template, left, right, body, type=kinds.array_of(given.type))


def _of_entry(what: str, value: Expression, function: Expression) -> Lambda:
    """A lambda of a key and its value as one of their struct."""
    given = _function(what, function)
    entry = replace(given.parameters[0], type=entry_type(what, value))
    values: dict[str, Expression] = {
        parameter.id: call(f"struct_extract({{0}}, '{name}')", entry, type=parameter.type)
        for parameter, name in zip(given.parameters, ("key", "value"), strict=True)
    }
    return replace(given, parameters=(entry,), body=_with(given.body, values))


def map_filter(value: Expression, function: Expression) -> Expression:
    """MAP_FILTER."""
    chosen = _of_entry("map_filter", value, _condition("map_filter", function))
    return call("map_from_entries(list_filter(map_entries({0}), {1}))", value, chosen, type=value.type)


def transform_values(value: Expression, function: Expression) -> Expression:
    """TRANSFORM_VALUES."""
    made = _of_entry("transform_values", value, function)
    return _rebuilt(value, made, "struct_extract({0}, 'key')", "{1}", kinds.map_of(value.type.key_type, made.type))


def transform_keys(value: Expression, function: Expression) -> Expression:
    """TRANSFORM_KEYS: an equal key or a null one is an error."""
    made = _of_entry("transform_keys", value, function)
    if kinds.is_nested(made.type) or kinds.is_fraction(made.type):
        raise NotProven(f"`transform_keys` to {kinds.spark_name(made.type)}")
    kind = kinds.map_of(made.type, value.type.item_type)
    return _rebuilt(value, made, "{1}", "struct_extract({0}, 'value')", kind)


def _rebuilt(value: Expression, made: Lambda, key: str, item: str, kind: pa.DataType) -> Expression:
    """The map of entries that a lambda makes anew."""
    entry = call(
        f"struct_pack(key := {key}, value := {item})",
        made.parameters[0],
        made.body,
        type=pa.struct([("key", kind.key_type), ("value", kind.item_type)]),
        nullable=False,
    )
    body = replace(made, type=entry.type, nullable=False, body=entry)
    return call("map_from_entries(list_transform(map_entries({0}), {1}))", value, body, type=kind, can_fail=True)


# --- types of parameters -----------------------------------------------------------------------------------------


def _element_and_int(before: list[Expression], count: int) -> Sequence[pa.DataType]:
    return (element_type("a lambda", before[0]), kinds.INT)[:count]


def _one_element(before: list[Expression], _count: int) -> Sequence[pa.DataType]:
    return (element_type("a lambda", before[0]),)


def _merged(before: list[Expression], _count: int) -> Sequence[pa.DataType]:
    if len(before) == 2:
        return (before[1].type, element_type("aggregate", before[0]))
    return (before[1].type,)


def _two_elements(before: list[Expression], _count: int) -> Sequence[pa.DataType]:
    return (element_type("zip_with", before[0]), element_type("zip_with", before[1]))


def _key_and_value(before: list[Expression], _count: int) -> Sequence[pa.DataType]:
    entry = entry_type("a lambda", before[0])
    return (entry.field(0).type, entry.field(1).type)


FUNCTIONS = {
    "transform": Function(transform, 2, 2, lambda_types=_element_and_int),
    "filter": Function(filtered, 2, 2, lambda_types=_element_and_int),
    "exists": Function(exists, 2, 2, lambda_types=_one_element),
    "forall": Function(forall, 2, 2, lambda_types=_one_element),
    "aggregate": Function(aggregate, 3, 4, lambda_types=_merged),
    "reduce": Function(aggregate, 3, 4, lambda_types=_merged),
    "zip_with": Function(zip_with, 3, 3, lambda_types=_two_elements),
    "map_filter": Function(map_filter, 2, 2, lambda_types=_key_and_value),
    "transform_values": Function(transform_values, 2, 2, lambda_types=_key_and_value),
    "transform_keys": Function(transform_keys, 2, 2, lambda_types=_key_and_value),
}
