"""The one row form that every judge and every test speaks.

A row is a dict from column name to a JSON value, exact to the last digit:

| Type | Form |
|---|---|
| BOOLEAN, integers | `true`, `42` |
| FLOAT, DOUBLE | the number (FLOAT widened exactly); `NaN`, `Infinity`, `-Infinity` as text |
| character types | text |
| binary types | `base64:…` |
| DECIMAL | plain text with the full scale, `12.50` |
| DATE | `2024-05-14` |
| TIME, TIMESTAMP | `03:04:05`, `2024-01-02T03:04:05.123456`: no, six or nine digits of fraction, as needed |
| local-zoned TIMESTAMP | the same in UTC, with `+00:00` at the end |
| ARRAY | list |
| MAP, MULTISET | list of `[key, value]`, sorted |
| ROW | dict |

The order of rows is no part of a table's content, so lists of rows are sorted by their JSON text.
"""

import base64
import json
import math
from decimal import Decimal
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa

Row = dict[str, Any]
Rows: TypeAlias = "pa.Table | list[Row]"

BINARY_PREFIX = "base64:"
NANOS_PER_DAY = 86_400_000_000_000
NANOS_PER = {"s": 1_000_000_000, "ms": 1_000_000, "us": 1_000, "ns": 1}


def canonical_rows(rows: Rows) -> list[Row]:
    """Turn an Arrow table, or rows that are canonical but for their order, into sorted canonical rows."""
    return sorted(rows_in_order(rows), key=row_text)


def rows_in_order(rows: Rows) -> list[Row]:
    """The same unsorted, for writing: among rows with one key the last wins."""
    if isinstance(rows, list):
        return rows
    columns = [[_encode(scalar) for scalar in column] for column in rows.columns]
    return [dict(zip(rows.column_names, values, strict=True)) for values in zip(*columns, strict=True)]


def sorted_entries(entries: list[list[Any]]) -> list[list[Any]]:
    """The entries of a map in canonical order; readers disagree about it and it has no meaning."""
    return sorted(entries, key=lambda entry: json.dumps(entry[0]))


def row_text(row: Row) -> str:
    """Text that is equal for equal rows only: it tells 1 from 1.0, from true, and 0.0 from -0.0."""
    return json.dumps(row, sort_keys=True, ensure_ascii=False)


def assert_same_rows(actual: Rows, expected: Rows) -> None:
    """Fail, naming the rows that differ, unless both sides hold exactly the same rows the same number of times."""
    left = [row_text(row) for row in canonical_rows(actual)]
    right = [row_text(row) for row in canonical_rows(expected)]
    if left != right:
        extra, missing = _without(left, right), _without(right, left)
        raise AssertionError(
            f"{len(left)} rows instead of {len(right)}; not expected:\n  "
            + "\n  ".join(extra[:10])
            + "\nmissing:\n  "
            + "\n  ".join(missing[:10])
        )


def _without(rows: list[str], others: list[str]) -> list[str]:
    left = list(rows)
    for other in others:
        if other in left:
            left.remove(other)
    return left


# ---------------------------------------------------------------- Arrow -> canonical


def _encode(scalar: Any) -> Any:
    """One Arrow scalar in canonical form. Temporal values go through integers: datetime cannot hold nanoseconds."""
    if not scalar.is_valid:
        return None
    kind = scalar.type
    if pa.types.is_timestamp(kind):
        nanos = scalar.value * NANOS_PER[kind.unit]
        days, nanos_of_day = divmod(nanos, NANOS_PER_DAY)
        return f"{_date_text(days)}T{_time_text(nanos_of_day)}" + ("+00:00" if kind.tz else "")
    if pa.types.is_date(kind):
        return _date_text(scalar.value if pa.types.is_date32(kind) else scalar.value // 86_400_000)
    if pa.types.is_time(kind):
        return _time_text(scalar.value * NANOS_PER[kind.unit])
    if pa.types.is_map(kind):
        return sorted_entries([[_encode(entry[0]), _encode(entry[1])] for entry in scalar.values])
    if pa.types.is_struct(kind):
        return {name: _encode(scalar[at]) for at, name in enumerate(kind.names)}
    if pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind):
        return [_encode(item) for item in scalar.values]
    return _encode_plain(scalar.as_py())


def _encode_plain(value: Any) -> Any:
    if isinstance(value, bytes):
        return BINARY_PREFIX + base64.b64encode(value).decode()
    if isinstance(value, Decimal):
        return format(value, "f")
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    if isinstance(value, bool | int | float | str):
        return value
    raise TypeError(f"no canonical form for {value!r}")


def _date_text(days: int) -> str:
    return str(np.datetime64(days, "D"))


def _time_text(nanos_of_day: int) -> str:
    seconds, nanos = divmod(nanos_of_day, NANOS_PER["s"])
    text = f"{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}"
    if nanos == 0:
        return text
    return f"{text}.{nanos // 1000:06}" if nanos % 1000 == 0 else f"{text}.{nanos:09}"


# ---------------------------------------------------------------- canonical -> Arrow


def arrow_table(rows: list[Row], schema: pa.Schema) -> pa.Table:
    """Canonical rows as an Arrow table of exactly these columns; a value that does not fit is an error."""
    for row in rows:
        if row.keys() != set(schema.names):
            raise ValueError(f"the row {row} does not have exactly the columns {schema.names}")
    columns = [pa.array([_decode(row[field.name], field.type) for row in rows], field.type) for field in schema]
    return pa.Table.from_arrays(columns, schema=schema)


def _decode(value: Any, kind: Any) -> Any:
    """What `pa.array` takes for one canonical value: integers for temporal types, lists of pairs for maps."""
    if value is None:
        return None
    if pa.types.is_timestamp(kind):
        date, time = value.removesuffix("+00:00").split("T")
        return _units(_days(date) * NANOS_PER_DAY + _nanos_of_day(time), kind.unit)
    if pa.types.is_date(kind):
        return _days(value)
    if pa.types.is_time(kind):
        return _units(_nanos_of_day(value), kind.unit)
    if pa.types.is_map(kind):
        return [(_decode(key, kind.key_type), _decode(item, kind.item_type)) for key, item in value]
    if pa.types.is_struct(kind):
        return {field.name: _decode(value[field.name], field.type) for field in kind}
    if pa.types.is_list(kind):
        return [_decode(item, kind.value_type) for item in value]
    if pa.types.is_decimal(kind):
        return Decimal(value)
    if pa.types.is_floating(kind):
        return float(value)
    if pa.types.is_binary(kind) or pa.types.is_large_binary(kind) or pa.types.is_fixed_size_binary(kind):
        return base64.b64decode(value.removeprefix(BINARY_PREFIX), validate=True)
    return value


def _days(text: str) -> int:
    return int(np.datetime64(text, "D").astype(np.int64))


def _nanos_of_day(text: str) -> int:
    clock, _, fraction = text.partition(".")
    hours, minutes, seconds = map(int, clock.split(":"))
    return (hours * 3600 + minutes * 60 + seconds) * NANOS_PER["s"] + int(fraction.ljust(9, "0"))


def _units(nanos: int, unit: str) -> int:
    units, rest = divmod(nanos, NANOS_PER[unit])
    if rest:
        raise ValueError(f"{nanos} ns is not a whole number of {unit}")
    return units
