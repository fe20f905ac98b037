"""Values of statements as Arrow columns of a table."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable
from typing import Any

import pyarrow as pa

from lakebed.errors import InvalidData
from lakebed.sql.conversion import _EPOCH, convert
from lakebed.sql.values import Items, Members, Pairs, Scalar, Value
from lakebed.types.arrow import to_arrow_type
from lakebed.types.logical import TIMESTAMPS, ArrayType, AtomicType, DataField, DataType, MapType, RowType, TypeRoot

_UNIT_NS = {"s": 10**9, "ms": 10**6, "us": 10**3, "ns": 1}


def column_of(field: DataField, values: Iterable[Value], zone: dt.tzinfo | None) -> pa.Array:
    """The values as a column of a table; `zone` is where clocks are read for columns with a zone (None: here)."""
    place = f"column `{field.name}`"
    cells = [_cell(convert(value, field.type, explicit=False, place=place), field.type, zone) for value in values]
    try:
        return pa.array(cells, to_arrow_type(field.type))
    except (pa.ArrowException, OverflowError, TypeError) as error:
        raise InvalidData(f"{place}: {error}", hint=f"write values of type {field.type}") from error


def _cell(value: Value, data_type: DataType, zone: dt.tzinfo | None) -> Any:
    """What Arrow builds a cell from."""
    if value is None:
        return None
    match data_type, value:
        case ArrayType(element), Items(values):
            return [_cell(item, element, zone) for item in values]
        case MapType(key, item), Pairs(keys, values):
            return [(_cell(k, key, zone), _cell(v, item, zone)) for k, v in zip(keys, values, strict=True)]
        case RowType(fields), Members(values):
            return {field.name: _cell(part, field.type, zone) for field, part in zip(fields, values, strict=True)}
        case AtomicType(root=root), Scalar(value=atom):
            return _atom(atom, data_type, zone) if root in TIMESTAMPS | {TypeRoot.TIME} else atom
    raise AssertionError(f"{value} was not converted to {data_type}")


def _atom(nanos: int, data_type: AtomicType, zone: dt.tzinfo | None) -> int:
    """A moment or time of day in the unit of its column, cut to it."""
    if data_type.root == TypeRoot.TIMESTAMP_LTZ:
        moment = (_EPOCH + dt.timedelta(microseconds=nanos // 1000)).replace(tzinfo=zone)
        shift = (moment.utcoffset() if zone else moment.astimezone().utcoffset()) or dt.timedelta()
        nanos -= int(shift / dt.timedelta(microseconds=1)) * 1000
    return nanos // _UNIT_NS[to_arrow_type(data_type).unit]
