"""Turns one Arrow array into values of a column's type, at every depth, without ever changing a value.

Another flavour of the same thing (a wider integer, dictionary-encoded text, a view, seconds for milliseconds) is
converted if all its values survive. Text that spells a number, a float for a decimal, an instant for a wall-clock time
would need a guess, and are refused. Which columns there are is the business of `conform`.
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

from lakebed.errors import InvalidData, did_you_mean
from lakebed.formats.conform import map_entries
from lakebed.records import dataclass
from lakebed.types.arrow import to_arrow_type
from lakebed.types.logical import (
    BINARIES,
    BYTES,
    INT,
    MAX_LENGTH,
    STRINGS,
    ArrayType,
    AtomicType,
    DataField,
    DataType,
    MapType,
    MultisetType,
    RowType,
    TypeRoot,
    is_root,
    with_nullable,
)

_COUNT = with_nullable(INT, False)
_VARIANT_PARTS = (
    DataField(0, "value", with_nullable(BYTES, False)),
    DataField(1, "metadata", with_nullable(BYTES, False)),
)
_LISTS = (
    pa.types.is_list,
    pa.types.is_large_list,
    pa.types.is_fixed_size_list,
    pa.types.is_list_view,
    pa.types.is_large_list_view,
)


@dataclass(frozen=True, slots=True)
class Place:
    """What an error is about: a column of a table, or a part of a nested column such as `tags.element`."""

    table: str
    path: str

    def __str__(self) -> str:
        return f"table `{self.table}`: column `{self.path}`"

    def part(self, name: str) -> Place:
        """A part of this column."""
        return Place(self.table, f"{self.path}.{name}")


def fit(values: pa.Array, wanted: DataType, place: Place, null_parents: int = 0) -> pa.Array:
    """The values as the Arrow type of `wanted`. `null_parents` of the nulls stem from rows that are null themselves."""
    if not wanted.nullable and values.null_count > null_parents:
        raise InvalidData(
            f"{place} is NOT NULL, the data has nulls in it ({values.null_count - null_parents} of them)",
            hint="fill or drop those rows",
        )
    if pa.types.is_dictionary(values.type):
        values = values.dictionary_decode()
    if pa.types.is_null(values.type):
        return pa.nulls(len(values), to_arrow_type(wanted))
    try:
        return _fit_kind(values, wanted, place)
    except pa.ArrowException as error:
        raise _misfit(values, wanted, place, str(error).splitlines()[0]) from error


def _fit_kind(values: pa.Array, wanted: DataType, place: Place) -> pa.Array:
    match wanted:
        case RowType(members):
            return _fit_row(values, wanted, members, place)
        case AtomicType(root=TypeRoot.VARIANT):
            return _fit_row(values, wanted, _VARIANT_PARTS, place)
        case ArrayType(element):
            return _fit_list(values, wanted, element, place)
        case MapType(key, value):
            return _fit_map(values, wanted, key, value, place)
        case MultisetType(element):
            return _fit_map(values, wanted, element, _COUNT, place)
        case AtomicType():
            return _fit_atom(values, wanted, place)


# --- nested columns --------------------------------------------------------------------------------------------------


def _fit_row(values: pa.Array, wanted: DataType, members: Sequence[DataField], place: Place) -> pa.Array:
    if not pa.types.is_struct(values.type):
        raise _misfit(values, wanted, place, "it is no struct")
    names = [child.name for child in values.type]
    known = [member.name for member in members]
    extra = [name for name in names if name not in known]
    missing = [name for name in known if name not in names]
    if extra or missing or len(set(names)) < len(names):
        odd = f"it has `{extra[0]}`" if extra else f"it lacks `{missing[0]}`" if missing else "it has a member twice"
        raise InvalidData(
            f"{place} is {wanted}, {values.type} in the data has other members: {odd}",
            hint=did_you_mean(extra[0], known) if extra else f"give the members {', '.join(known)}, null for no value",
        )
    parts = dict(zip(names, values.flatten(), strict=True))
    fitted = [
        fit(parts[member.name], member.type, place.part(member.name), null_parents=values.null_count)
        for member in members
    ]
    return pa.StructArray.from_arrays(fitted, fields=list(to_arrow_type(wanted)), mask=values.is_null())


def _fit_list(values: pa.Array, wanted: DataType, element: DataType, place: Place) -> pa.Array:
    if not any(matches(values.type) for matches in _LISTS):
        raise _misfit(values, wanted, place, "it is no list")
    elements = fit(values.flatten(), element, place.part("element"))
    return pa.ListArray.from_arrays(_offsets(values), elements, type=to_arrow_type(wanted), mask=values.is_null())


def _fit_map(values: pa.Array, wanted: DataType, key: DataType, value: DataType, place: Place) -> pa.Array:
    if not pa.types.is_map(values.type):
        raise _misfit(values, wanted, place, "it is no map")
    entries = map_entries(values)
    keys, items = entries.flatten().flatten()
    keys = fit(keys, with_nullable(key, False), place.part("key"))
    items = fit(items, value, place.part("value"))
    return pa.MapArray.from_arrays(_offsets(entries), keys, items, type=to_arrow_type(wanted), mask=values.is_null())


def _offsets(lists: pa.Array) -> pa.Array:
    """Offsets of the lists into their flattened elements, where null lists have none."""
    lengths = pc.if_else(lists.is_valid(), pc.list_value_length(lists), 0)
    ends = pc.cumulative_sum(lengths.cast(pa.int64()))
    return pa.concat_arrays([pa.array([0], pa.int32()), ends.cast(pa.int32())])


# --- plain columns ---------------------------------------------------------------------------------------------------


def _fit_atom(values: pa.Array, wanted: AtomicType, place: Place) -> pa.Array:
    arrow = to_arrow_type(wanted)
    if values.type != arrow:
        refusal = _refusal(values.type, arrow)
        if refusal is not None:
            raise _misfit(values, wanted, place, refusal)
        values = _converted(values, arrow)
    if pa.types.is_string(arrow):
        _check_text(values, place)
    _check_length(values, wanted, place)
    return values


_KINDS = {
    "numbers": (pa.types.is_integer, pa.types.is_floating, pa.types.is_decimal),
    "truth values": (pa.types.is_boolean,),
    "texts": (pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view),
    "bytes": (
        pa.types.is_binary,
        pa.types.is_large_binary,
        pa.types.is_binary_view,
        pa.types.is_fixed_size_binary,
    ),
    "days": (pa.types.is_date,),
    "times of day": (pa.types.is_time,),
    "wall-clock times": (lambda arrow: pa.types.is_timestamp(arrow) and arrow.tz is None,),
    "instants": (lambda arrow: pa.types.is_timestamp(arrow) and arrow.tz is not None,),
}


def _kind(arrow: pa.DataType) -> str:
    return next((kind for kind, tests in _KINDS.items() if any(test(arrow) for test in tests)), str(arrow))


def _refusal(given: pa.DataType, wanted: pa.DataType) -> str | None:
    """Why no value of the one type is taken for the other; none when it depends on the values."""
    kinds = {_kind(given), _kind(wanted)}
    if len(kinds) > 1 and kinds != {"days", "wall-clock times"}:
        return f"{_kind(given)} are not turned into {_kind(wanted)} silently"
    if {pa.types.is_floating(given), pa.types.is_decimal(given)} == {True, False} and (
        pa.types.is_floating(wanted) if pa.types.is_decimal(given) else pa.types.is_decimal(wanted)
    ):
        return "decimals are exact and floats are not, so one is rounded to become the other"
    return None


def _converted(values: pa.Array, arrow: pa.DataType) -> pa.Array:
    """REQUIRES: not refused. Raises ArrowInvalid for a value that would change."""
    if pa.types.is_decimal(arrow) and pa.types.is_integer(values.type):
        # Arrow asks for room for the largest integer of the type, not of the data.
        values = pc.cast(values, pa.decimal256(76, arrow.scale))
    converted = pc.cast(values, arrow, safe=True)
    if _kind(values.type) != _kind(arrow) or (pa.types.is_float64(values.type) and pa.types.is_float32(arrow)):
        # Arrow cuts the time off a timestamp, and digits off a float, even in a safe cast.
        same = pc.equal(pc.cast(converted, values.type, safe=False), values)
        if pa.types.is_float64(values.type):
            same = pc.or_(same, pc.is_nan(values))
        if pc.all(same).as_py() is False:
            example = values.filter(pc.invert(same))[0]
            raise pa.ArrowInvalid(f"{example} would lose a part of its value")
    return converted


def _check_text(values: pa.Array, place: Place) -> None:
    """Arrow does not look at the bytes of texts by itself, and other readers would stumble over them."""
    try:
        values.validate(full=True)
    except pa.ArrowException as error:
        raise InvalidData(
            f"{place} is text, the data has bytes in it that are no UTF-8 text: {error}",
            hint="decode the bytes with the encoding they have, or store them in a BYTES column",
        ) from error


def _check_length(values: pa.Array, wanted: AtomicType, place: Place) -> None:
    if not is_root(wanted, STRINGS | BINARIES) or wanted.root is TypeRoot.BLOB or wanted.length == MAX_LENGTH:
        return
    lengths = pc.utf8_length(values) if is_root(wanted, STRINGS) else pc.binary_length(values)
    longest = pc.max(lengths).as_py()
    if longest is not None and longest > wanted.length:
        raise InvalidData(
            f"{place} is {wanted}, the data has a value of length {longest}",
            hint="shorten the values, or widen the column first",
        )


def _misfit(values: pa.Array, wanted: DataType, place: Place, reason: str) -> InvalidData:
    return InvalidData(
        f"{place} is {wanted}, {values.type} in the data does not fit: {reason}",
        hint=f"cast it to {to_arrow_type(wanted)} yourself, the way you want misfits handled",
    )
