"""Arrays: making them, their elements, and arrays made of others.

Spark's null rules are written out in each spelling, since DuckDB's list functions leave nulls out, or find them, as
each of them likes. Types say that every part may be null: what is known of one value makes no type of its own. Names
of lambdas in spellings end in `_`, which no column's name in a query does.
"""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa

from lakebed.expressions import kinds
from lakebed.expressions.casts import coerced, null_of
from lakebed.expressions.functions.function import MANY, Function
from lakebed.expressions.nodes import Constant, Expression, NotProven, call
from lakebed.expressions.orders import key_text


def let(template: str, value: str = "{0}", name: str = "a_") -> str:
    """A spelling in which a value has a name, so that it is computed once."""
    return f"list_transform([{value}], lambda {name} : {template})[1]"


def as_template(text: str) -> str:
    """A text that a spelling has as it is."""
    return text.replace("{", "{{").replace("}", "}}")


def if_any(
    template: str,
    *arguments: Expression,
    type: pa.DataType,  # noqa: A002
    can_fail: bool = False,
) -> Expression:
    """A call that is null if an argument is, and may be so else."""
    return replace(call(template, *arguments, type=type, can_fail=can_fail), nullable=True)


def element_type(what: str, array: Expression) -> pa.DataType:
    """The type of an array's elements; NotProven if it is no array."""
    if not pa.types.is_list(array.type) or array.type.value_type == kinds.NULL:
        raise NotProven(f"`{what}` of {kinds.spark_name(array.type)}")
    return array.type.value_type


def _comparable_elements(what: str, array: Expression) -> pa.DataType:
    """The type of elements that are asked whether they are equal."""
    kind = element_type(what, array)
    if pa.types.is_map(kind) or kind == kinds.YEAR_MONTH:
        raise NotProven(f"`{what}` of {kinds.spark_name(array.type)}")
    return kind


def array(*values: Expression) -> Expression:
    """ARRAY of its arguments."""
    kind = kinds.common_type_of([value.type for value in values], "array")
    if kind == kinds.NULL:
        raise NotProven("an array of nothing but nulls")
    places = ", ".join(f"{{{n}}}" for n in range(len(values)))
    given = [coerced(value, kind) for value in values]
    return call(f"list_value({places})", *given, type=kinds.array_of(kind), nullable=False)


# --- elements ----------------------------------------------------------------------------------------------------


def _position(what: str, place: Expression) -> Expression:
    if place.type not in (kinds.TINYINT, kinds.SMALLINT, kinds.INT):
        raise NotProven(f"`{what}` with a place of {kinds.spark_name(place.type)}")  # Spark cuts a BIGINT to 32 bits
    return coerced(place, kinds.BIGINT)


_OUT_OF_BOUNDS = "error('the index is out of bounds of the array')"


def item(array: Expression, place: Expression) -> Expression:
    """a[i], from 0; an error if there is none."""
    kind = element_type("[]", array)
    outside = f"{{1}} < 0 OR {{1}} >= len({{0}}) THEN {_OUT_OF_BOUNDS}"
    template = f"(CASE WHEN {outside} ELSE list_extract({{0}}, {{1}} + 1) END)"
    return if_any(template, array, _position("[]", place), type=kind, can_fail=True)


def get(array: Expression, place: Expression) -> Expression:
    """GET: a[i], or null if there is none."""
    kind = element_type("get", array)
    template = "(CASE WHEN {1} >= 0 THEN list_extract({0}, {1} + 1) END)"
    return if_any(template, array, _position("get", place), type=kind)


def element_at(array: Expression, place: Expression) -> Expression:
    """ELEMENT_AT of an array: from 1, or from the end if negative; an error if there is none."""
    kind = element_type("element_at", array)
    outside = f"{{0}} IS NOT NULL AND ({{1}} = 0 OR abs({{1}}) > len({{0}})) THEN {_OUT_OF_BOUNDS}"
    template = f"(CASE WHEN {outside} ELSE list_extract({{0}}, {{1}}) END)"
    return if_any(template, array, _position("element_at", place), type=kind, can_fail=True)


def try_element_at(array: Expression, place: Expression) -> Expression:
    """TRY_ELEMENT_AT of an array: null if there is none; place 0 is an error all the same."""
    kind = element_type("try_element_at", array)
    zero = f"{{0}} IS NOT NULL AND {{1}} = 0 THEN {_OUT_OF_BOUNDS}"
    template = f"(CASE WHEN {zero} ELSE list_extract({{0}}, {{1}}) END)"
    return if_any(template, array, _position("try_element_at", place), type=kind, can_fail=True)


def size(value: Expression) -> Expression:
    """SIZE of an array or map."""
    if pa.types.is_map(value.type):
        return call("CAST(cardinality({0}) AS INTEGER)", value, type=kinds.INT)
    return array_size(value)


def array_size(array: Expression) -> Expression:
    """ARRAY_SIZE."""
    element_type("size", array)
    return call("CAST(len({0}) AS INTEGER)", array, type=kinds.INT)


def _with_element(
    what: str, array: Expression, value: Expression, *, takes_decimals: bool = False
) -> tuple[Expression, Expression]:
    """An array and a value to compare with its elements, brought to one type."""
    kind = _comparable_elements(what, array)
    return _with_new_element(what, array, value, kind, takes_decimals=takes_decimals)


def _with_new_element(
    what: str, array: Expression, value: Expression, kind: pa.DataType, *, takes_decimals: bool = False
) -> tuple[Expression, Expression]:
    common = kinds.common_type(kind, value.type)
    unlike = kind != value.type and not (kinds.is_numeric(kind) and kinds.is_numeric(value.type))
    digits = kind != value.type and not takes_decimals and (kinds.is_decimal(kind) or kinds.is_decimal(value.type))
    if common is None or value.type == kinds.NULL or unlike or digits:
        raise NotProven(f"`{what}` of {kinds.spark_name(array.type)} and {kinds.spark_name(value.type)}")
    return coerced(array, kinds.array_of(common)) if common != kind else array, coerced(value, common)


def array_contains(array: Expression, value: Expression) -> Expression:
    """ARRAY_CONTAINS: null if it is not there but a null is."""
    given = _with_element("array_contains", array, value, takes_decimals=True)
    found = "list_contains({0}, {1})"
    template = f"(CASE WHEN list_count({{0}}) = len({{0}}) THEN {found} ELSE nullif({found}, FALSE) END)"
    return if_any(template, *given, type=kinds.BOOLEAN)


def array_position(array: Expression, value: Expression) -> Expression:
    """ARRAY_POSITION: from 1; 0 if it is not there."""
    given = _with_element("array_position", array, value)
    found = "CAST(coalesce(list_position({0}, {1}), 0) AS BIGINT)"
    template = f"(CASE WHEN {{0}} IS NOT NULL AND {{1}} IS NOT NULL THEN {found} END)"
    return call(template, *given, type=kinds.BIGINT)


def array_max(array: Expression) -> Expression:
    """ARRAY_MAX, nulls aside."""
    return _extreme("array_max", "list_max", array)


def array_min(array: Expression) -> Expression:
    """ARRAY_MIN, nulls aside."""
    return _extreme("array_min", "list_min", array)


def _extreme(what: str, function: str, array: Expression) -> Expression:
    kind = _comparable_elements(what, array)
    if kinds.is_nested(kind):
        way = "'DESC', 'NULLS LAST'" if function == "list_max" else "'ASC', 'NULLS LAST'"
        ahead = "e_ IS NOT NULL" if function == "list_max" else "e_ IS NULL"
        return if_any("list_extract({0}, 1)", _sorted(what, array, way, ahead), type=kind)
    # Of zeros of two signs, which are equal, Spark gives the first.
    first = let(f"list_extract(a_, list_position(a_, {function}(a_)))")
    return if_any(first if kinds.is_fraction(kind) else f"{function}({{0}})", array, type=kind)


def array_join(array: Expression, between: Expression, instead: Expression | None = None) -> Expression:
    """ARRAY_JOIN: texts in a row; nulls are left out, or replaced."""
    _comparable_elements("array_join", array)
    array = _same_elements(array, kinds.array_of(kinds.STRING))
    if not isinstance(between, Constant) or between.type != kinds.STRING:
        raise NotProven("`array_join`", "the text between is not a constant")  # DuckDB takes no other
    joined = "(CASE WHEN {0} IS NOT NULL AND {1} IS NOT NULL THEN coalesce(array_to_string({0}, {1}), '') END)"
    if instead is None:
        return if_any(joined, array, between, type=kinds.STRING)
    filled = "list_transform({0}, lambda e_ : coalesce(e_, {2}))"
    template = (
        f"(CASE WHEN {{2}} IS NOT NULL THEN {joined.replace('array_to_string({0}', f'array_to_string({filled}')} END)"
    )
    return if_any(template, array, between, coerced(instead, kinds.STRING), type=kinds.STRING)


# --- arrays of arrays' elements ----------------------------------------------------------------------------------


_IS_FIRST = "list_position(a_, e_) = n_"
"""Whether an element stands there for the first time; nulls are found, too."""


def _set_elements(what: str, array: Expression) -> None:
    if _has_fraction(_comparable_elements(what, array)):
        raise NotProven(f"`{what}` of {kinds.spark_name(array.type)}")  # Spark turns -0.0 into 0.0 in these


def _has_fraction(kind: pa.DataType) -> bool:
    if kinds.is_nested(kind):
        return any(_has_fraction(kind.field(n).type) for n in range(kind.num_fields))
    return kinds.is_fraction(kind)


def array_distinct(array: Expression) -> Expression:
    """ARRAY_DISTINCT: each element where it stands first."""
    _set_elements("array_distinct", array)
    return call(let(f"list_filter(a_, lambda e_, n_ : {_IS_FIRST})"), array, type=array.type)


def _pair(what: str, left: Expression, right: Expression) -> tuple[Expression, Expression]:
    _comparable_elements(what, left)
    _comparable_elements(what, right)
    kind = kinds.common_type(left.type, right.type)
    if kind is None or (kinds.STRING in (left.type.value_type, right.type.value_type) and left.type != right.type):
        raise NotProven(f"`{what}` of {kinds.spark_name(left.type)} and {kinds.spark_name(right.type)}")
    return _same_elements(left, kind), _same_elements(right, kind)


def _same_elements(array: Expression, kind: pa.DataType) -> Expression:
    """An array as one of another type; whether elements may be null is no difference."""
    return array if array.type.value_type == kind.value_type else coerced(array, kind)


def array_union(left: Expression, right: Expression) -> Expression:
    """ARRAY_UNION: the elements of both, each once."""
    _set_elements("array_union", left)
    given = _pair("array_union", left, right)
    template = let(f"list_filter(a_, lambda e_, n_ : {_IS_FIRST})", "({0} || {1})")
    return call(template, *given, type=given[0].type)


def array_intersect(left: Expression, right: Expression) -> Expression:
    """ARRAY_INTERSECT: elements of the left that the right has, too, each once; a null is an element."""
    return _chosen_of_left("array_intersect", "IS NOT NULL", left, right)


def array_except(left: Expression, right: Expression) -> Expression:
    """ARRAY_EXCEPT: elements of the left that the right has not, each once; a null is an element."""
    return _chosen_of_left("array_except", "IS NULL", left, right)


def _chosen_of_left(what: str, found: str, left: Expression, right: Expression) -> Expression:
    _set_elements(what, left)
    given = _pair(what, left, right)
    inner = f"list_filter(a_, lambda e_, n_ : {_IS_FIRST} AND list_position(b_, e_) {found})"
    template = let(let(f"CASE WHEN b_ IS NOT NULL THEN {inner} END", "{1}", "b_"))
    return call(template, *given, type=given[0].type)


def arrays_overlap(left: Expression, right: Expression) -> Expression:
    """ARRAYS_OVERLAP: null if there is none in common but a null could be one."""
    given = _pair("arrays_overlap", left, right)
    has_null = "list_count({0}) < len({0}) OR list_count({1}) < len({1})"
    template = (
        "(CASE WHEN {0} IS NULL OR {1} IS NULL THEN NULL WHEN list_has_any({0}, {1}) THEN TRUE "
        f"WHEN len({{0}}) > 0 AND len({{1}}) > 0 AND ({has_null}) THEN NULL ELSE FALSE END)"
    )
    return if_any(template, *given, type=kinds.BOOLEAN)


def array_remove(array: Expression, value: Expression) -> Expression:
    """ARRAY_REMOVE: without the elements that are equal; nulls stay."""
    given = _with_element("array_remove", array, value)
    template = "(CASE WHEN {1} IS NOT NULL THEN list_filter({0}, lambda e_ : e_ IS NULL OR e_ <> {1}) END)"
    return call(template, *given, type=given[0].type)


def array_append(array: Expression, value: Expression) -> Expression:
    """ARRAY_APPEND."""
    given = _grown("array_append", array, value)
    return call("(CASE WHEN {0} IS NOT NULL THEN list_append({0}, {1}) END)", *given, type=given[0].type)


def array_prepend(array: Expression, value: Expression) -> Expression:
    """ARRAY_PREPEND."""
    given = _grown("array_prepend", array, value)
    return call("(CASE WHEN {0} IS NOT NULL THEN list_prepend({1}, {0}) END)", *given, type=given[0].type)


def _grown(what: str, array: Expression, value: Expression) -> tuple[Expression, Expression]:
    kind = element_type(what, array)
    if value.type == kinds.NULL:
        return array, null_of(kind)
    return _with_new_element(what, array, value, kind)


_MOST_ADDED = 1 << 20


def array_insert(array: Expression, place: Expression, value: Expression) -> Expression:
    """ARRAY_INSERT: at a place from 1, or from behind; the gap to a place further away is filled with nulls."""
    if not isinstance(place, Constant) or place.type != kinds.INT or not 0 < abs(place.value) <= _MOST_ADDED:
        raise NotProven("`array_insert`", "the place is not a small constant other than 0")
    given = _grown("array_insert", array, value)
    at = int(place.value)
    if at > 0:
        front = f"list_resize(list_slice(a_, 1, {at - 1}), {at - 1})" if at > 1 else "list_slice(a_, 1, 0)"
        inner = f"{front} || [{{1}}] || list_slice(a_, {at}, len(a_))"
    else:
        inside = f"list_slice(a_, 1, len(a_) - {-at - 1}) || [{{1}}] || list_slice(a_, len(a_) - {-at - 2}, len(a_))"
        before = f"[{{1}}] || list_resize(list_slice(a_, 1, 0), {-at - 1} - len(a_)) || a_"
        inner = f"CASE WHEN len(a_) >= {-at - 1} THEN {inside} ELSE {before} END"
    return call(let(f"CASE WHEN a_ IS NOT NULL THEN {inner} END"), *given, type=given[0].type)


def array_compact(array: Expression) -> Expression:
    """ARRAY_COMPACT: without nulls."""
    kind = kinds.array_of(element_type("array_compact", array))
    return call("list_filter({0}, lambda e_ : e_ IS NOT NULL)", array, type=kind)


def array_repeat(value: Expression, times: Expression) -> Expression:
    """ARRAY_REPEAT."""
    if value.type == kinds.NULL or not kinds.is_integral(times.type) or times.type == kinds.BIGINT:
        raise NotProven(f"`array_repeat` of {kinds.spark_name(value.type)}, {kinds.spark_name(times.type)}")
    kind = kinds.array_of(value.type)
    empty = f"CAST([] AS {kinds.duckdb_name(kind)})"
    template = f"(CASE WHEN {{1}} IS NOT NULL THEN list_resize({empty}, greatest({{1}}, 0), {{0}}) END)"
    return call(template, value, times, type=kind, nullable=times.nullable)


def array_sort(array: Expression) -> Expression:
    """ARRAY_SORT without a function: upwards, nulls last."""
    return _sorted("array_sort", array, "'ASC', 'NULLS LAST'", "e_ IS NULL")


def sort_array(array: Expression, upwards: Expression | None = None) -> Expression:
    """SORT_ARRAY: upwards with nulls first, or downwards with nulls last."""
    if upwards is not None and (not isinstance(upwards, Constant) or upwards.type != kinds.BOOLEAN):
        raise NotProven("`sort_array`", "the direction is not a constant")
    way = "'ASC', 'NULLS FIRST'" if upwards is None or upwards.value else "'DESC', 'NULLS LAST'"
    return _sorted("sort_array", array, way, "e_ IS NOT NULL")


def _sorted(what: str, array: Expression, way: str, ahead: str) -> Expression:
    kind = element_type(what, array)
    if not kinds.is_nested(kind):
        _comparable_elements(what, array)
        return call(f"list_sort({{0}}, {way})", array, type=array.type)
    keyed = f"list_transform({{0}}, lambda e_ : struct_pack(n := {ahead}, k := {key_text(kind, 'e_')}, v := e_))"
    return call(f"list_transform(list_sort({keyed}, {way}), lambda e_ : e_.v)", array, type=array.type)


def slice_of(array: Expression, start: Expression, length: Expression) -> Expression:
    """SLICE: from a place, from the end if negative, so many elements."""
    element_type("slice", array)
    template = (
        "(CASE WHEN {0} IS NULL OR {1} IS NULL OR {2} IS NULL THEN NULL "
        "WHEN {1} = 0 THEN error('slice starts at 1, or from the end at -1, not at 0') "
        "WHEN {2} < 0 THEN error('the length of a slice is less than 0') "
        "WHEN {1} > 0 THEN list_slice({0}, {1}, {1} + {2} - 1) "
        "WHEN len({0}) + {1} < 0 THEN list_slice({0}, 1, 0) "
        "ELSE list_slice({0}, len({0}) + {1} + 1, len({0}) + {1} + {2}) END)"
    )
    return call(template, array, _position("slice", start), _position("slice", length), type=array.type, can_fail=True)


def flatten(array: Expression) -> Expression:
    """FLATTEN: null if one of the arrays is."""
    inner = element_type("flatten", array)
    if not pa.types.is_list(inner):
        raise NotProven(f"`flatten` of {kinds.spark_name(array.type)}")
    return if_any("(CASE WHEN list_count({0}) = len({0}) THEN flatten({0}) END)", array, type=inner)


def sequence(start: Expression, stop: Expression, step: Expression | None = None) -> Expression:
    """SEQUENCE of whole numbers or days; steps of months and of times are not proven."""
    if start.type == stop.type == kinds.DATE and step is None:
        days = "generate_series({0}, {1}, CASE WHEN {0} <= {1} THEN INTERVAL 1 DAY ELSE INTERVAL (-1) DAY END)"
        return call(f"CAST({days} AS DATE[])", start, stop, type=kinds.array_of(kinds.DATE))
    given = [start, stop] if step is None else [start, stop, step]
    if not all(kinds.is_integral(each.type) for each in given):
        raise NotProven(f"`sequence` of {', '.join(kinds.spark_name(each.type) for each in given)}")
    kind = kinds.common_type_of([each.type for each in given], "sequence")
    values = [coerced(coerced(each, kind), kinds.BIGINT) for each in given]
    result = kinds.array_of(kind)
    name = kinds.duckdb_name(result)
    if step is None:
        series = "generate_series({0}, {1}, CASE WHEN {0} <= {1} THEN 1 ELSE -1 END)"
        return call(f"CAST({series} AS {name})", *values, type=result, can_fail=True)
    template = (
        "(CASE WHEN {0} IS NULL OR {1} IS NULL OR {2} IS NULL THEN NULL "
        "WHEN {2} = 0 AND {0} = {1} THEN [{0}] "
        "WHEN {2} = 0 OR ({2} > 0 AND {0} > {1}) OR ({2} < 0 AND {0} < {1}) "
        "THEN error('the step of a sequence leads away from its end') ELSE generate_series({0}, {1}, {2}) END)"
    )
    return call(f"CAST({template} AS {name})", *values, type=result, can_fail=True)


def arrays_zip(*parts: Expression) -> Expression:
    """ARRAYS_ZIP: structs of elements at one place; names and arrays in turn."""
    names = [str(part.value) for part in parts[::2] if isinstance(part, Constant)]
    arrays = parts[1::2]
    if len({name.lower() for name in names}) < len(arrays):
        raise NotProven("`arrays_zip` of two arrays of one name")
    kind = pa.struct(
        [pa.field(name, element_type("arrays_zip", each)) for name, each in zip(names, arrays, strict=True)]
    )
    lengths = ", ".join(f"len({{{n}}})" for n in range(len(arrays)))
    members = ", ".join(
        f"{as_template(kinds.quoted(name))} := list_extract({{{n}}}, k_)" for n, name in enumerate(names)
    )
    present = " AND ".join(f"{{{n}}} IS NOT NULL" for n in range(len(arrays)))
    zipped = f"list_transform(range(1, greatest({lengths}) + 1), lambda k_ : struct_pack({members}))"
    return call(f"(CASE WHEN {present} THEN {zipped} END)", *arrays, type=kinds.array_of(kind))


FUNCTIONS = {
    "array": Function(array, 1, MANY),
    "get": Function(get, 2, 2),
    "size": Function(size, 1, 1),
    "cardinality": Function(size, 1, 1),
    "array_size": Function(array_size, 1, 1),
    "array_contains": Function(array_contains, 2, 2),
    "array_position": Function(array_position, 2, 2),
    "array_max": Function(array_max, 1, 1),
    "array_min": Function(array_min, 1, 1),
    "array_join": Function(array_join, 2, 3),
    "array_distinct": Function(array_distinct, 1, 1),
    "array_union": Function(array_union, 2, 2),
    "array_intersect": Function(array_intersect, 2, 2),
    "array_except": Function(array_except, 2, 2),
    "arrays_overlap": Function(arrays_overlap, 2, 2),
    "array_remove": Function(array_remove, 2, 2),
    "array_append": Function(array_append, 2, 2),
    "array_prepend": Function(array_prepend, 2, 2),
    "array_insert": Function(array_insert, 3, 3),
    "array_compact": Function(array_compact, 1, 1),
    "array_repeat": Function(array_repeat, 2, 2),
    "array_sort": Function(array_sort, 1, 1),
    "sort_array": Function(sort_array, 1, 2),
    "slice": Function(slice_of, 3, 3),
    "flatten": Function(flatten, 1, 1),
    "sequence": Function(sequence, 2, 3),
    "arrays_zip": Function(arrays_zip, 2, MANY),
}
