"""Spark's order of arrays and structs, told to DuckDB.

Both compare them part by part, but a null inside comes first in Spark and last in DuckDB, whatever is said about nulls
outside. So rows are ordered by a key: the same value, with a note in front of every part whether it is there. Zeros of
two signs are equal in both.
"""

from __future__ import annotations

import pyarrow as pa

from lakebed.expressions import kinds
from lakebed.expressions.nodes import Expression, NotProven, call


def order_key(value: Expression) -> Expression:
    """What DuckDB orders by to have Spark's order of a value: plain values as they are. Null where the value is."""
    if not kinds.is_nested(value.type):
        if value.type == kinds.YEAR_MONTH:
            raise NotProven(f"an order of {kinds.spark_name(value.type)}")
        return value
    template = f"list_transform([{{0}}], lambda v_ : {key_text(value.type, 'v_')})[1]"
    return call(template, value, type=value.type)


def key_text(kind: pa.DataType, text: str, depth: int = 0) -> str:
    """The spelling of the key of what a spelling gives; both are parts of a template."""
    if pa.types.is_list(kind):
        each = f"v{depth}_"
        inner = key_text(kind.value_type, each, depth + 1)
        return f"list_transform({text}, lambda {each} : struct_pack(n := {each} IS NOT NULL, v := {inner}))"
    if pa.types.is_struct(kind):
        members = []
        for n, part in enumerate(kind):
            name = part.name.replace("'", "''").replace("{", "{{").replace("}", "}}")
            member = f"struct_extract({text}, '{name}')"
            members.append(f"n{n} := {member} IS NOT NULL, v{n} := {key_text(part.type, member, depth)}")
        return f"CASE WHEN {text} IS NOT NULL THEN struct_pack({', '.join(members)}) END"
    if kind in (kinds.NULL, kinds.YEAR_MONTH) or pa.types.is_map(kind):
        raise NotProven(f"an order of {kinds.spark_name(kind)}")
    return text
