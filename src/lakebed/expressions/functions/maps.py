"""Maps and structs: making them, and what is in them."""

from __future__ import annotations

import pyarrow as pa

from lakebed.expressions import kinds
from lakebed.expressions.casts import coerced
from lakebed.expressions.functions import collections
from lakebed.expressions.functions.collections import as_template, element_type, if_any
from lakebed.expressions.functions.function import MANY, Function
from lakebed.expressions.nodes import Constant, Expression, NotProven, call


def _check_key(kind: pa.DataType) -> None:
    """Spark makes zeros of two signs one key, when it makes a map; nested keys are compared otherwise."""
    if kinds.is_nested(kind) or kinds.is_fraction(kind) or kind == kinds.NULL:
        raise NotProven(f"a map with keys of {kinds.spark_name(kind)}")


def _map_type(what: str, value: Expression) -> pa.DataType:
    if not pa.types.is_map(value.type):
        raise NotProven(f"`{what}` of {kinds.spark_name(value.type)}")
    _check_key(value.type.key_type)
    return value.type


def map_of(*parts: Expression) -> Expression:
    """MAP of keys and values in turn; an equal key or a null one is an error."""
    if len(parts) % 2 or not parts:
        raise NotProven(f"`map` with {len(parts)} arguments")
    key = kinds.common_type_of([part.type for part in parts[::2]], "map")
    value = kinds.common_type_of([part.type for part in parts[1::2]], "map")
    _check_key(key)
    if value == kinds.NULL:
        raise NotProven("a map of nothing but nulls")
    given = [coerced(part, value if n % 2 else key) for n, part in enumerate(parts)]
    names = [f"{{{n}}}" for n in range(len(parts))]
    template = f"map([{', '.join(names[::2])}], [{', '.join(names[1::2])}])"
    return call(template, *given, type=kinds.map_of(key, value), nullable=False, can_fail=True)


def map_from_arrays(keys: Expression, values: Expression) -> Expression:
    """MAP_FROM_ARRAYS: an error if one is longer than the other."""
    key, value = element_type("map_from_arrays", keys), element_type("map_from_arrays", values)
    _check_key(key)
    template = "(CASE WHEN {0} IS NOT NULL AND {1} IS NOT NULL THEN map({0}, {1}) END)"
    return call(template, keys, values, type=kinds.map_of(key, value), can_fail=True)


def map_from_entries(entries: Expression) -> Expression:
    """MAP_FROM_ENTRIES: null if an entry is."""
    entry = element_type("map_from_entries", entries)
    if not pa.types.is_struct(entry) or entry.num_fields != 2:
        raise NotProven(f"`map_from_entries` of {kinds.spark_name(entries.type)}")
    key, value = entry.field(0).type, entry.field(1).type
    _check_key(key)
    template = "(CASE WHEN list_count({0}) = len({0}) THEN map_from_entries({0}) END)"
    return if_any(template, entries, type=kinds.map_of(key, value), can_fail=True)


def map_keys(value: Expression) -> Expression:
    """MAP_KEYS."""
    kind = _map_type("map_keys", value)
    return call("map_keys({0})", value, type=kinds.array_of(kind.key_type))


def map_values(value: Expression) -> Expression:
    """MAP_VALUES."""
    return call("map_values({0})", value, type=kinds.array_of(_map_type("map_values", value).item_type))


def entry_type(what: str, value: Expression) -> pa.DataType:
    """The struct of a key and its value."""
    kind = _map_type(what, value)
    return pa.struct([pa.field("key", kind.key_type), pa.field("value", kind.item_type)])


def map_entries(value: Expression) -> Expression:
    """MAP_ENTRIES."""
    kind = entry_type("map_entries", value)
    return call("map_entries({0})", value, type=kinds.array_of(kind))


def map_contains_key(value: Expression, key: Expression) -> Expression:
    """MAP_CONTAINS_KEY."""
    kind = _map_type("map_contains_key", value)
    template = "(CASE WHEN {1} IS NOT NULL THEN map_contains({0}, {1}) END)"
    return call(template, value, _key(kind, key), type=kinds.BOOLEAN)


def _key(kind: pa.DataType, key: Expression) -> Expression:
    if key.type == kinds.NULL or kinds.common_type(kind.key_type, key.type) != kind.key_type:
        raise NotProven(f"a key of {kinds.spark_name(key.type)} in {kinds.spark_name(kind)}")
    if kinds.STRING in (key.type, kind.key_type) and key.type != kind.key_type:
        raise NotProven(f"a key of {kinds.spark_name(key.type)} in {kinds.spark_name(kind)}")
    return coerced(key, kind.key_type)


def map_concat(*maps: Expression) -> Expression:
    """MAP_CONCAT: an equal key is an error; null if one of the maps is."""
    kind = _map_type("map_concat", maps[0])
    if any(each.type.key_type != kind.key_type or each.type.item_type != kind.item_type for each in maps[1:]):
        raise NotProven("`map_concat` of maps of several types")
    entries = " || ".join(f"map_entries({{{n}}})" for n in range(len(maps)))
    return call(f"map_from_entries({entries})", *maps, type=kind, can_fail=True)


def element(value: Expression, key: Expression) -> Expression:
    """a[i] of an array, m[k] of a map."""
    return _of_map(value, key) if pa.types.is_map(value.type) else collections.item(value, key)


def element_at(value: Expression, key: Expression) -> Expression:
    """ELEMENT_AT of an array or map; a key that a map has not gives null."""
    return _of_map(value, key) if pa.types.is_map(value.type) else collections.element_at(value, key)


def try_element_at(value: Expression, key: Expression) -> Expression:
    """TRY_ELEMENT_AT of an array or map."""
    return _of_map(value, key) if pa.types.is_map(value.type) else collections.try_element_at(value, key)


def _of_map(value: Expression, key: Expression) -> Expression:
    kind = _map_type("[]", value)
    return if_any("map_extract_value({0}, {1})", value, _key(kind, key), type=kind.item_type)


def named_struct(*parts: Expression) -> Expression:
    """NAMED_STRUCT: names and values in turn."""
    names = [str(part.value) for part in parts[::2] if isinstance(part, Constant) and part.type == kinds.STRING]
    values = parts[1::2]
    if len({name.lower() for name in names}) < len(values) or len(parts) % 2:
        raise NotProven("a struct whose names are not constants, each of its own")  # DuckDB knows no case
    if any(value.type == kinds.NULL for value in values):
        raise NotProven("a struct with an untyped null")
    kind = pa.struct([pa.field(name, value.type) for name, value in zip(names, values, strict=True)])
    members = ", ".join(f"{as_template(kinds.quoted(name))} := {{{n}}}" for n, name in enumerate(names))
    return call(f"struct_pack({members})", *values, type=kind, nullable=False)


def member(value: Expression, name: Expression) -> Expression:
    """s.name; of an array of structs the array of that member; of a map the value of that key."""
    if not isinstance(name, Constant):
        raise NotProven("a member whose name is not a constant")
    if pa.types.is_map(value.type) and value.type.key_type == kinds.STRING:
        return _of_map(value, name)
    is_array = pa.types.is_list(value.type)
    kind = value.type.value_type if is_array else value.type
    if not pa.types.is_struct(kind):
        raise NotProven(f"`.{name.value}` of {kinds.spark_name(value.type)}")
    found = [part for part in kind if part.name.lower() == str(name.value).lower()]
    if len(found) != 1:
        raise NotProven(f"`.{name.value}` of {kinds.spark_name(value.type)}")
    text = as_template("'" + found[0].name.replace("'", "''") + "'")
    if is_array:
        inner = kinds.array_of(found[0].type)
        return call(f"list_transform({{0}}, lambda e_ : struct_extract(e_, {text}))", value, type=inner)
    return call(f"struct_extract({{0}}, {text})", value, type=found[0].type, nullable=True)


FUNCTIONS = {
    "map": Function(map_of, 2, MANY),
    "map_from_arrays": Function(map_from_arrays, 2, 2),
    "map_from_entries": Function(map_from_entries, 1, 1),
    "map_keys": Function(map_keys, 1, 1),
    "map_values": Function(map_values, 1, 1),
    "map_entries": Function(map_entries, 1, 1),
    "map_contains_key": Function(map_contains_key, 2, 2),
    "map_concat": Function(map_concat, 1, MANY),
    "[]": Function(element, 2, 2),
    "element_at": Function(element_at, 2, 2),
    "try_element_at": Function(try_element_at, 2, 2),
    "named_struct": Function(named_struct, 2, MANY),
    "struct": Function(named_struct, 1, MANY),
    ".": Function(member, 2, 2),
}
