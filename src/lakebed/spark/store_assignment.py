"""Columns of a DataFrame as columns of a table: what goes where, and in which type.

The rules are Spark's ANSI rules for storing, and text for anything it spells: any number for a number, anything for
text. Text that does not spell a number is an error, never null, whatever the session says about casts.
Members of rows are matched by name or by position; one that is not given is an error, unless the statement may change
the table's columns: then it is null, or keeps its old value where `*` updates.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from pyspark.sql import functions as sf
from pyspark.sql import types as st

from lakebed.errors import InvalidData
from lakebed.records import dataclass
from lakebed.spark.types import spark_type
from lakebed.types.logical import AtomicType, DataField, TypeRoot, is_root

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

_TIMES = (st.DateType, st.TimestampType, st.TimestampNTZType, st.TimeType)
_TEXT = (st.StringType, st.CharType, st.VarcharType)
_SPELLED = (st.NumericType, st.BooleanType)


def assigned(
    frame: DataFrame,
    table: str,
    fields: Sequence[DataField],
    sources: Sequence[int | None],
    constants: Mapping[str, Any],
    *,
    by_name: bool = False,
    may_lack: bool = False,
) -> DataFrame:
    """The frame with the columns of a table.

    `sources` are the places of their values in the frame; None: the constant of that name, or null. Members of rows
    are matched by position, or by name; those that are missing then are null if they `may_lack`.
    """
    given = frame.schema.fields
    numbered = frame.toDF(*(f"_{index}" for index in range(len(given))))
    columns = []
    for field, place in zip(fields, sources, strict=True):
        target = spark_type(field.type, field.name)
        if place is None:
            column = sf.lit(constants.get(field.name)).cast(target)
        else:
            matching = Matching(by_name, may_lack)
            column = stored(sf.col(f"_{place}"), given[place].dataType, target, f"column `{field.name}`", matching)
        columns.append(padded(column, field).alias(field.name))
    return numbered.select(*columns)


@dataclass(frozen=True, slots=True)
class Matching:
    """How members of rows find theirs: by name or by position, and whether some may be missing."""

    by_name: bool = False
    may_lack: bool = False
    """Whether members that are not given are null, or as they were; only where they go by name."""


def stored(
    column: Column,
    given: st.DataType,
    target: st.DataType,
    place: str,
    matching: Matching,
    old: Column | None = None,
) -> Column:
    """The column in another type; an error that names the place if a table column of that type does not take it.

    Members that are missing, where they may be, have their value of `old`, the row's value before; without it, null.
    """
    if isinstance(given, _TEXT) and isinstance(target, _SPELLED):
        return _read(column, target, place)
    _check_storable(given, target, place, matching)
    if given == target:
        return column
    return _shaped(column, given, target, old) if matching.by_name and _has_rows(given) else column.cast(target)


def _read(column: Column, target: st.DataType, place: str) -> Column:
    """What the text spells."""
    value = column.try_cast(target)
    message = sf.concat(
        sf.lit(f"{place} is of type {target.simpleString()}, which does not take '"), column, sf.lit("'")
    )
    return sf.when(column.isNull() | value.isNotNull(), value).otherwise(sf.raise_error(message).cast(target))


def _check_storable(given: st.DataType, target: st.DataType, place: str, matching: Matching) -> None:
    """Raises unless values of the one type can be stored as the other."""
    if isinstance(given, st.NullType) or given == target:
        return
    match given, target:
        case st.ArrayType(), st.ArrayType():
            _check_storable(given.elementType, target.elementType, place, matching)
        case st.MapType(), st.MapType():
            _check_storable(given.keyType, target.keyType, place, matching)
            _check_storable(given.valueType, target.valueType, place, matching)
        case st.StructType(), st.StructType():
            _check_members(given, target, place, matching)
        case _ if not _is_storable(given, target):
            raise InvalidData(
                f"{place} is of type {target.simpleString()}, which does not take {given.simpleString()}",
                hint="cast the value, if it is meant",
            )


def _check_members(given: st.StructType, target: st.StructType, place: str, matching: Matching) -> None:
    if matching.by_name:
        known = {part.name.lower(): part for part in target.fields}
        names = [part.name.lower() for part in given.fields]
        extra = [part.name for part in given.fields if part.name.lower() not in known]
        pairs = [(part, known[part.name.lower()]) for part in given.fields if part.name.lower() in known]
        lacking = [part.name for part in target.fields if part.name.lower() not in names]
        twice = [name for name in names if names.count(name) > 1]
        if twice:
            raise InvalidData(f"{place} is given member `{twice[0]}` twice", hint="give each member once")
    else:
        extra = [part.name for part in given.fields[len(target.fields) :]]
        pairs = list(zip(given.fields, target.fields, strict=False))
        lacking = [part.name for part in target.fields[len(given.fields) :]]
    if extra:
        raise InvalidData(
            f"{place} is given member `{extra[0]}`, which it has not",
            hint=f"give a value of type {target.simpleString()}, or set `write.merge-schema`",
        )
    if lacking and not (matching.by_name and matching.may_lack):
        raise InvalidData(f"{place} lacks member `{lacking[0]}`", hint=f"give a value of type {target.simpleString()}")
    for part, wanted in pairs:
        _check_storable(part.dataType, wanted.dataType, f"{place}.`{wanted.name}`", matching)


def _is_storable(given: st.DataType, target: st.DataType) -> bool:
    if isinstance(target, _TEXT):
        return isinstance(given, st.AtomicType)
    if isinstance(given, st.NumericType):
        return isinstance(target, st.NumericType)
    if isinstance(given, _TEXT):
        return isinstance(target, (*_TIMES, st.BinaryType))
    if isinstance(given, _TIMES) and isinstance(target, _TIMES):
        return isinstance(given, st.TimeType) == isinstance(target, st.TimeType)
    return type(given) is type(target)


def _has_rows(given: st.DataType) -> bool:
    match given:
        case st.StructType():
            return True
        case st.ArrayType():
            return _has_rows(given.elementType)
        case st.MapType():
            return _has_rows(given.keyType) or _has_rows(given.valueType)
    return False


def _shaped(column: Column, given: st.DataType, target: st.DataType, old: Column | None = None) -> Column:
    """The column with members of rows in their places by name; those that are not given are as in `old`, or null."""
    if not _has_rows(given):
        return column.cast(target)
    match given, target:
        case st.StructType(), st.StructType():
            known = {part.name.lower(): part for part in given.fields}
            members = []
            for wanted in target.fields:
                part = known.get(wanted.name.lower())
                before = None if old is None else old.getField(wanted.name)
                if part is None:
                    value = sf.lit(None) if before is None else before
                else:
                    value = _shaped(column.getField(part.name), part.dataType, wanted.dataType, before)
                members.append(value.cast(wanted.dataType).alias(wanted.name))
            is_there = column.isNotNull()
            if old is not None and _keeps_members(given, target):
                is_there = is_there | old.isNotNull()  # what was not given stays, though nothing was given
            return sf.when(is_there, sf.struct(*members))
        case st.ArrayType(), st.ArrayType():
            return sf.transform(column, lambda item: _shaped(item, given.elementType, target.elementType))
        case st.MapType(), st.MapType():
            shaped = sf.transform_values(column, lambda _, item: _shaped(item, given.valueType, target.valueType))
            return sf.transform_keys(shaped, lambda key, _: _shaped(key, given.keyType, target.keyType))
    return column.cast(target)


def _keeps_members(given: st.StructType, target: st.StructType) -> bool:
    """Whether the value before has members, on any level, that the new one has not."""
    known = {part.name.lower(): part.dataType for part in given.fields}
    for wanted in target.fields:
        part = known.get(wanted.name.lower())
        if part is None:
            return True
        is_row = isinstance(part, st.StructType) and isinstance(wanted.dataType, st.StructType)
        if is_row and _keeps_members(part, wanted.dataType):
            return True
    return False


def changed_rows(
    frame: DataFrame,
    fields: Sequence[DataField],
    changed: set[str],
    places: Sequence[str],
    kind: str,
    value: str,
    kind_field: str | None = None,
) -> DataFrame:
    """Rows of an UPDATE or DELETE: the table's columns, then the places of the old rows, and the kind of change.

    `kind_field` is the column of the table that says the kinds of its rows; if it is changed, it says this one.
    """
    given = frame.schema.fields
    numbered = frame.toDF(*(f"_{index}" for index in range(len(given))))
    columns = []
    for index, field in enumerate(fields):
        column = sf.col(f"_{index}")
        if field.name in changed:
            column = restored(column, given[index].dataType, field)
        columns.append(column.alias(field.name))
    columns += [sf.col(f"_{len(fields) + index}").alias(name) for index, name in enumerate(places)]
    found = dict(zip((field.name for field in fields), columns, strict=False))
    told = _told_kind(found[kind_field], value) if kind_field is not None and kind_field in changed else sf.lit(value)
    return numbered.select(*columns, told.alias(kind))


def _told_kind(column: Column, value: str) -> Column:
    """The kind that a row tells itself; a row that is there already does not become a new one."""
    return sf.when(column == "+I", sf.lit(value)).otherwise(column)


def restored(
    column: Column, given: st.DataType, field: DataField, *, may_lack: bool = False, old: Column | None = None
) -> Column:
    """A new value of a column; members of rows are matched by name, those that have none by position."""
    target = spark_type(field.type, field.name)
    named = _with_names(given, target)
    if named != given:
        column = column.cast(named)
    return padded(stored(column, named, target, f"column `{field.name}`", Matching(True, may_lack), old), field)


def padded(column: Column, field: DataField) -> Column:
    """Text of fixed length with blanks at the end, as Spark stores it; text that is too long stays, to be refused."""
    if not (isinstance(field.type, AtomicType) and field.type.root == TypeRoot.CHAR):
        return column
    length = field.type.length
    return sf.when(sf.char_length(column) < length, sf.rpad(column, length, " ")).otherwise(column)


def padded_frame(frame: DataFrame, fields: Sequence[DataField]) -> DataFrame:
    """The frame with all text of fixed length filled up: not all files keep the blanks at the end."""
    known = {field.name: field for field in fields if is_root(field.type, TypeRoot.CHAR)}
    if not known.keys() & set(frame.columns):
        return frame
    columns = []
    for part in frame.schema.fields:
        column = sf.col("`" + part.name.replace("`", "``") + "`")
        if part.name in known:
            column = padded(column, known[part.name]).alias(part.name, metadata=part.metadata)
        columns.append(column)
    return frame.select(*columns)


def with_shown_defaults(frame: DataFrame, defaults: DataFrame, stored: Mapping[str, str]) -> DataFrame:
    """The frame with the values of `defaults`, one row, in place of nulls; `stored` names columns for what it had."""
    named = defaults.toDF(*(f"_lakebed_default_{index}" for index in range(len(stored))))
    old = {part.name: sf.col("`" + part.name.replace("`", "``") + "`") for part in frame.schema.fields}
    shown = {name: sf.coalesce(old[name], sf.col(place)) for name, place in zip(stored, named.columns, strict=True)}
    columns = [
        shown.get(part.name, old[part.name]).alias(part.name, metadata=part.metadata) for part in frame.schema.fields
    ]
    return frame.crossJoin(named).select(*columns, *(old[name].alias(other) for name, other in stored.items()))


def _with_names(given: st.DataType, target: st.DataType) -> st.DataType:
    """The type with names of the table's in place of `col1`, `col2`, which Spark gives to members without a name."""
    match given, target:
        case st.StructType(), st.StructType():
            known = {part.name.lower(): part for part in target.fields}
            is_unnamed = all(part.name == f"col{number}" for number, part in enumerate(given.fields, start=1))
            if is_unnamed and not all(part.name in known for part in given.fields):
                wanted = [*target.fields[: len(given.fields)], *given.fields[len(target.fields) :]]
            else:
                wanted = [known.get(part.name.lower(), part) for part in given.fields]
            return st.StructType(
                [
                    st.StructField(
                        other.name if is_unnamed else part.name,
                        _with_names(part.dataType, other.dataType),
                        part.nullable,
                    )
                    for part, other in zip(given.fields, wanted, strict=True)
                ]
            )
        case st.ArrayType(), st.ArrayType():
            return st.ArrayType(_with_names(given.elementType, target.elementType), given.containsNull)
        case st.MapType(), st.MapType():
            return st.MapType(
                _with_names(given.keyType, target.keyType),
                _with_names(given.valueType, target.valueType),
                given.valueContainsNull,
            )
    return given


def merged_rows(
    frame: DataFrame,
    fields: Sequence[DataField],
    changed: Sequence[set[str]],
    kinds: Sequence[str],
    places: Sequence[str],
    kind: str,
    *,
    may_lack: bool = False,
    stars: Sequence[bool] = (),
    kind_field: str | None = None,
) -> DataFrame:
    """Rows of a MERGE, from columns `_lakebed_clause`, `_place_*`, `_old_*` and, for each clause, `_new_<clause>_*`.

    `may_lack`: whether rows may lack members; where `stars` says that `*` updates, these stay as they were.
    `kind_field` is the column of the table that says the kinds of its rows: a clause that sets it says them there.
    """
    given = {field.name: field.dataType for field in frame.schema.fields}
    clause = sf.col("_lakebed_clause")
    columns = []
    for index, field in enumerate(fields):
        value: Column | None = None
        for number, names in enumerate(changed):
            new = f"_new_{number}_{index}"
            if field.name in names:
                keeps = may_lack and kinds[number] == "+U" and bool(stars) and stars[number]
                old = sf.col(f"_old_{index}") if keeps else None
                column = restored(sf.col(new), given[new], field, may_lack=may_lack, old=old)
            else:
                column = sf.lit(None) if kinds[number] == "+I" else sf.col(f"_old_{index}")
            value = sf.when(clause == number, column) if value is None else value.when(clause == number, column)
        assert value is not None
        columns.append(value.cast(spark_type(field.type, field.name)).alias(field.name))
    hidden = [(index, name) for index, name in enumerate(places) if name not in {field.name for field in fields}]
    columns += [sf.col(f"_place_{index}").alias(name) for index, name in hidden]
    chosen = sf.element_at(sf.array(*(sf.lit(name) for name in kinds)), clause + 1)
    for index, field in enumerate(fields):
        for number, names in enumerate(changed):
            if field.name == kind_field and field.name in names:
                told = _told_kind(columns[index], kinds[number])
                chosen = sf.when(clause == number, told).otherwise(chosen)
    return frame.select(*columns, chosen.alias(kind))
