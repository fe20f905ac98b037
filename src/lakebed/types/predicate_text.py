"""How predicates read in explain output and error messages: close to SQL, for people, never parsed again."""

from __future__ import annotations

import re

import pyarrow as pa

_PLAIN_NAME = re.compile(r"[A-Za-z_]\w*\Z")
_MOST_VALUES_SHOWN = 20


def identifier(name: str) -> str:
    """A column name, quoted when it is not a plain word."""
    return name if _PLAIN_NAME.match(name) else "`" + name.replace("`", "``") + "`"


def literal_text(value: pa.Scalar) -> str:
    """A constant as SQL would write it."""
    kind = value.type
    if not value.is_valid:
        return "NULL"
    if pa.types.is_boolean(kind):
        return str(value.as_py()).upper()
    if pa.types.is_binary(kind) or pa.types.is_large_binary(kind) or pa.types.is_fixed_size_binary(kind):
        return f"X'{value.as_py().hex().upper()}'"
    if pa.types.is_temporal(kind):
        # Text by Arrow's own cast: Python's datetime has no nanoseconds and ends with the year 9999.
        word = "DATE" if pa.types.is_date(kind) else "TIME" if pa.types.is_time(kind) else "TIMESTAMP"
        return f"{word} '{value.cast(pa.string())}'"
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        return "'" + str(value).replace("'", "''") + "'"
    return str(value.as_py())


def literal_list(values: pa.Array) -> str:
    """Constants with commas; a long list is cut and its length named."""
    shown = [literal_text(value) for value in values[:_MOST_VALUES_SHOWN]]
    more = len(values) - len(shown)
    return ", ".join(shown) + (f", … {more} more" if more else "")
