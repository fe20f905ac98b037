"""What becomes of a column's type when the source's type of it changes: the widening rules of change capture.

A type only ever grows, so that every row that was and will be written fits. A narrower type of the source changes
nothing here. What has no common type is for the caller's policy.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from lakebed.records import dataclass
from lakebed.schema.casts import is_castable
from lakebed.types.logical import (
    STRING,
    STRINGS,
    ArrayType,
    AtomicType,
    DataField,
    DataType,
    MapType,
    MultisetType,
    RowType,
    TypeRoot,
    same_ignoring_nullability,
    with_nullable,
)

_T = TypeRoot
_WIDTHS: Final = {_T.TINYINT: 1, _T.SMALLINT: 2, _T.INT: 3, _T.BIGINT: 4}
_FLOAT_WIDTHS: Final = {_T.FLOAT: 1, _T.DOUBLE: 2}
_BYTES: Final = frozenset({_T.BINARY, _T.VARBINARY})
_MOST_DIGITS: Final = 38


@dataclass(frozen=True, slots=True)
class TypeRules:
    """What a user allows or forbids beyond the rules: modes of the type mapping."""

    non_string_to_string: bool = False
    """A column that becomes text in the source becomes text here, whatever it was."""
    keeps_decimals: bool = False
    """Decimals stay as they are."""


def evolved(old: DataType, new: DataType, rules: TypeRules | None = None) -> DataType | None:
    """The type of a column that is `old` here and `new` in the source: `old` if it holds both; None if nothing does.

    NULL is allowed where either allows it: one that the source does not allow any more may still be in old rows.
    """
    merged = _merged(old, new, rules or TypeRules())
    return None if merged is None else with_nullable(merged, old.nullable or new.nullable)


def _merged(old: DataType, new: DataType, rules: TypeRules) -> DataType | None:
    if same_ignoring_nullability(old, new):
        return old
    match old, new:
        case AtomicType(), AtomicType():
            return _atomic(old, new, rules)
        case ArrayType(element), ArrayType(other):
            inner = evolved(element, other, rules)
            return None if inner is None else replace(old, element=inner)
        case MultisetType(element), MultisetType(other):
            inner = evolved(element, other, rules)
            return None if inner is None else replace(old, element=inner)
        case MapType(key, value), MapType(other_key, other_value):
            inner = evolved(value, other_value, rules)
            same_key = same_ignoring_nullability(key, other_key)
            return replace(old, value=inner) if same_key and inner is not None else None
        case RowType(fields), RowType(others):
            members = _members(fields, others, rules)
            return None if members is None else replace(old, fields=members)
    return _as_text(old, new, rules)


def _atomic(old: AtomicType, new: AtomicType, rules: TypeRules) -> DataType | None:
    roots = {old.root, new.root}
    if roots <= STRINGS:
        return _longer(old, new, _T.CHAR, _T.VARCHAR)
    if roots <= _BYTES:
        return _longer(old, new, _T.BINARY, _T.VARBINARY)
    for widths in (_WIDTHS, _FLOAT_WIDTHS):
        if roots <= widths.keys():
            return new if widths[new.root] > widths[old.root] else old
    if roots == {_T.DECIMAL}:
        return old if rules.keeps_decimals else _decimal(old, new)
    if len(roots) == 1 and old.root in (_T.TIMESTAMP, _T.TIMESTAMP_LTZ, _T.TIME):
        return new if new.precision > old.precision else old
    return _as_text(old, new, rules)


def _as_text(old: DataType, new: DataType, rules: TypeRules) -> DataType | None:
    is_text = isinstance(new, AtomicType) and new.root in STRINGS
    return STRING if rules.non_string_to_string and is_text and is_castable(old, STRING, explicit=True) else None


def _longer(old: AtomicType, new: AtomicType, fixed: TypeRoot, varying: TypeRoot) -> AtomicType:
    """Both lengths fit; only where both have a fixed length it is one still."""
    root = fixed if old.root is new.root is fixed else varying
    return AtomicType(root, old.nullable, length=max(old.length, new.length))


def _decimal(old: AtomicType, new: AtomicType) -> AtomicType | None:
    """Digits enough on both sides of the point."""
    if new.precision <= old.precision and new.scale <= old.scale:
        return old
    scale = max(old.scale, new.scale)
    precision = scale + max(old.precision - old.scale, new.precision - new.scale)
    if precision > _MOST_DIGITS:
        return None
    return replace(old, precision=precision, scale=scale)


def _members(
    fields: tuple[DataField, ...], others: tuple[DataField, ...], rules: TypeRules
) -> tuple[DataField, ...] | None:
    """Members by name: none that must have a value may go, new ones may be NULL."""
    given = {member.name: member for member in others}
    kept: list[DataField] = []
    for member in fields:
        other = given.pop(member.name, None)
        if other is None and not member.type.nullable:
            return None
        inner = member.type if other is None else evolved(member.type, other.type, rules)
        if inner is None:
            return None
        kept.append(replace(member, type=inner))
    return (*kept, *(replace(member, type=with_nullable(member.type, True)) for member in given.values()))


__all__ = ["TypeRules", "evolved"]
