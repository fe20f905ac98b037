"""What a column's new type makes of its old values: keeps all of them, keeps their order, or may lose some.

Types are compared part by part; members of a ROW are matched by their ids. What is added or dropped is no change of
values.
"""

from __future__ import annotations

from collections.abc import Iterator

from lakebed.types.logical import (
    BINARIES,
    INTEGERS,
    NUMERICS,
    STRINGS,
    TIMESTAMPS,
    ArrayType,
    AtomicType,
    DataType,
    MapType,
    MultisetType,
    RowType,
    TypeRoot,
    same_ignoring_nullability,
)

Step = tuple[DataType, DataType]

_DIGITS = {TypeRoot.TINYINT: 3, TypeRoot.SMALLINT: 5, TypeRoot.INT: 10, TypeRoot.BIGINT: 19}
_MICROSECONDS = 6
_EXACT_IN = {TypeRoot.FLOAT: 5, TypeRoot.DOUBLE: 10}
"""Whole numbers of so many digits, as `_DIGITS` counts them, are exact in it."""


def steps(old: DataType, new: DataType) -> Iterator[Step]:
    """The parts whose type changes, as pairs of old and new type; none if nothing but nullability changes."""
    if same_ignoring_nullability(old, new):
        return
    match old, new:
        case RowType(before), RowType(after):
            now = {member.id: member.type for member in after}
            for member in before:
                if member.id in now:
                    yield from steps(member.type, now[member.id])
        case (ArrayType(before_part), ArrayType(after_part)) | (MultisetType(before_part), MultisetType(after_part)):
            yield from steps(before_part, after_part)
        case MapType(before_key, before_value), MapType(after_key, after_value):
            yield from steps(before_key, after_key)
            yield from steps(before_value, after_value)
        case _:
            yield old, new


def keeps_values(old: DataType, new: DataType) -> bool:
    """Whether every value of the old type is one of the new type, in the same order."""
    return all(_widens(before, after) for before, after in steps(old, new))


def keeps_order(old: DataType, new: DataType) -> bool:
    """Whether values that still fit are in the same order as before, ties aside."""
    return all(_widens(before, after) or _rounds(before, after) for before, after in steps(old, new))


def may_not_fit(old: DataType, new: DataType) -> bool:
    """Whether there are old values that the new type can not hold, or that can not be read as one."""
    return any(not _widens(before, after) and not _cuts(before, after) for before, after in steps(old, new))


def folds_alike(old: DataType, new: DataType) -> bool:
    """Whether it is the same to fold values before or after they get the new type."""
    return all(_folds_alike(before, after) for before, after in steps(old, new))


def _folds_alike(old: DataType, new: DataType) -> bool:
    # Sums of floats round, and decimals round to their scale, so that only whole numbers and texts are left.
    both = _roots(old, new)
    return _widens(old, new) and both is not None and (both <= INTEGERS or both <= STRINGS)


def _roots(old: DataType, new: DataType) -> set[TypeRoot] | None:
    return {old.root, new.root} if isinstance(old, AtomicType) and isinstance(new, AtomicType) else None


def _widens(old: DataType, new: DataType) -> bool:
    if not isinstance(old, AtomicType) or not isinstance(new, AtomicType):
        return False
    match old.root, new.root:
        case (a, b) if a in INTEGERS and b in INTEGERS:
            return _DIGITS[a] <= _DIGITS[b]
        case (a, TypeRoot.DECIMAL) if a in INTEGERS:
            return new.precision - new.scale >= _DIGITS[a]
        case (a, TypeRoot.FLOAT | TypeRoot.DOUBLE) if a in INTEGERS:
            return _DIGITS[a] <= _EXACT_IN[new.root]
        case (TypeRoot.FLOAT, TypeRoot.DOUBLE):
            return True
        case (TypeRoot.DECIMAL, TypeRoot.DECIMAL):
            return new.scale >= old.scale and new.precision - new.scale >= old.precision - old.scale
        case (a, TypeRoot.VARCHAR) if a in STRINGS:
            return new.length >= old.length
        case (TypeRoot.BINARY | TypeRoot.VARBINARY, TypeRoot.VARBINARY):
            return new.length >= old.length
        case (a, b) if a == b and a in TIMESTAMPS | {TypeRoot.TIME}:
            return new.precision >= old.precision and not _shortens_reach(old, new)
        case (TypeRoot.DATE, TypeRoot.TIMESTAMP):
            return not _shortens_reach(old, new)
    return False


def _rounds(old: DataType, new: DataType) -> bool:
    roots = _roots(old, new)
    if roots is None:
        return False
    return (
        roots <= NUMERICS or (len(roots) == 1 and roots <= TIMESTAMPS) or roots <= {TypeRoot.TIMESTAMP, TypeRoot.DATE}
    )


def _cuts(old: DataType, new: DataType) -> bool:
    """Whether what is lost is what was asked for: text cut to a length, digits of seconds, a value as its text."""
    if not isinstance(new, AtomicType) or not isinstance(old, AtomicType):
        return True  # a nested value as its text
    if new.root in STRINGS:
        return old.root not in BINARIES
    if TypeRoot.BOOLEAN in (old.root, new.root):
        return old.root not in STRINGS
    if old.root in BINARIES:
        return new.root in BINARIES
    if old.root in STRINGS:
        return new.root in BINARIES
    if new.root in (TypeRoot.FLOAT, TypeRoot.DOUBLE):
        return old.root is not TypeRoot.DOUBLE  # whole numbers and decimals are rounded, but always in reach
    times = TIMESTAMPS | {TypeRoot.DATE, TypeRoot.TIME}
    return old.root in times and new.root in times and not _shortens_reach(old, new)


def _shortens_reach(old: AtomicType, new: AtomicType) -> bool:
    """Whether times are counted in nanoseconds from now on, which reach from 1677 to 2262 only."""
    is_fine = old.root in TIMESTAMPS and old.precision > _MICROSECONDS
    return new.root in TIMESTAMPS and new.precision > _MICROSECONDS and not is_fine and old.root is not TypeRoot.TIME


__all__ = ["Step", "folds_alike", "keeps_order", "keeps_values", "may_not_fit", "steps"]
