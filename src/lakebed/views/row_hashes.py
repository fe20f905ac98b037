"""The hash of a row or of its key, by which a materialized table finds it again.

The same values have the same hash in every version and time zone: it is made of numbers, never of how something is
shown. A null is a value, too. Hashes by which rows are shared among tasks are others: quicker to make, and forgotten
with the job.
"""

from __future__ import annotations

import pyarrow as pa

from lakebed.expressions import kinds
from lakebed.expressions.nodes import ArrowFunction


def _bits(values: pa.Array) -> pa.Array:
    """Fractions as the whole numbers of their bits; zeros of two signs differ, all NaNs are one."""
    if isinstance(values, pa.ChunkedArray):
        values = values.combine_chunks()
    given = values.fill_null(0.0).to_numpy(zero_copy_only=False).copy()
    given[given != given] = float("nan")
    return pa.array(given.view("int64"), mask=values.is_null().to_numpy(zero_copy_only=False))


BITS = ArrowFunction(name="lakebed_bits", compute=_bits, types=("DOUBLE", "BIGINT"))
"""What DuckDB has no function for."""


def hashed(columns: list[tuple[str, pa.DataType]]) -> str:
    """The hash of values, given their spellings for DuckDB."""
    parts = [f"coalesce({_text(text, kind)}, 'n')" for text, kind in columns]
    return f"md5(concat_ws(',', {', '.join(parts)}))" if parts else "md5('')"


def part_of(columns: list[tuple[str, pa.DataType]], parts: int) -> str:
    """Which of so many parts rows with these values belong to, from 0 on: the same for whole numbers of all types.

    INVARIANT: only within one job, in which all tasks have one version of DuckDB. Its hashes change with that.
    """
    return f"CAST(hash({', '.join(_hashed_alike(*each) for each in columns) or '0'}) % {parts} AS INTEGER)"


def _hashed_alike(text: str, kind: pa.DataType) -> str:
    if kinds.is_integral(kind):
        return f"CAST({text} AS BIGINT)"
    return f"{BITS.name}(CAST({text} AS DOUBLE))" if kinds.is_fraction(kind) else text


def _text(text: str, kind: pa.DataType, depth: int = 0) -> str:
    """A text without commas that stands for a value and no other; null for null."""
    if kind in (kinds.STRING, kinds.BINARY):
        return f"md5({text})" if kind == kinds.STRING else f"md5(CAST(hex({text}) AS VARCHAR))"
    if kinds.is_fraction(kind):
        return f"CAST({BITS.name}(CAST({text} AS DOUBLE)) AS VARCHAR)"
    if kind == kinds.DATE:
        return f"CAST(date_diff('day', DATE '1970-01-01', {text}) AS VARCHAR)"
    if kind in (kinds.TIMESTAMP, kinds.TIMESTAMP_NTZ):
        return f"CAST(epoch_us({text}) AS VARCHAR)"
    if pa.types.is_map(kind):
        entry = pa.struct([("key", kind.key_type), ("value", kind.item_type)])
        return _text(f"map_entries({text})", pa.list_(entry), depth)
    if pa.types.is_list(kind):
        each = f"e{depth}_"
        inner = f"coalesce({_text(each, kind.value_type, depth + 1)}, 'n')"
        return f"md5('l' || array_to_string(list_transform({text}, lambda {each} : {inner}), ','))"
    if pa.types.is_struct(kind):
        parts = [
            f"coalesce({_text(f'struct_extract({text}, {_quoted(part.name)})', part.type, depth)}, 'n')"
            for part in kind
        ]
        return f"CASE WHEN {text} IS NOT NULL THEN md5('s' || concat_ws(',', {', '.join(parts)})) END"
    return f"CAST({text} AS VARCHAR)"


def _quoted(name: str) -> str:
    return "'" + name.replace("'", "''") + "'"
