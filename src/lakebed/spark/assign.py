"""Columns of a DataFrame as columns of a table: what goes where, and in which type.

The rules are Spark's ANSI rules for storing, and text for dates and times: any number for a number, anything for text.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from pyspark.sql import functions as sf
from pyspark.sql import types as st

from lakebed.errors import InvalidData
from lakebed.spark.types import spark_type
from lakebed.types.logical import AtomicType, DataField, TypeRoot, is_root

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

_TIMES = (st.DateType, st.TimestampType, st.TimestampNTZType, st.TimeType)
_TEXT = (st.StringType, st.CharType, st.VarcharType)


def assigned(
    frame: DataFrame,
    table: str,
    fields: Sequence[DataField],
    sources: Sequence[int | None],
    constants: Mapping[str, Any],
    *,
    by_name: bool = False,
) -> DataFrame:
    """The frame with the columns of a table.

    `sources` are the places of their values in the frame; None: the constant of that name, or null. Members of rows
    are matched by position, or by name.
    """
    given = frame.schema.fields
    numbered = frame.toDF(*(f"_{index}" for index in range(len(given))))
    columns = []
    for field, place in zip(fields, sources, strict=True):
        target = spark_type(field.type, field.name)
        if place is None:
            column = sf.lit(constants.get(field.name)).cast(target)
        else:
            column = stored(
                sf.col(f"_{place}"), given[place].dataType, target, f"column `{field.name}`", by_name=by_name
            )
        columns.append(padded(column, field).alias(field.name))
    return numbered.select(*columns)


def stored(column: Column, given: st.DataType, target: st.DataType, place: str, *, by_name: bool) -> Column:
    """The column in another type; an error that names the place if a table column of that type does not take it."""
    check_storable(given, target, place, by_name=by_name)
    if given == target:
        return column
    return _shaped(column, given, target) if by_name and _has_rows(given) else column.cast(target)


def check_storable(given: st.DataType, target: st.DataType, place: str, *, by_name: bool = False) -> None:
    """Raises unless values of the one type can be stored as the other."""
    if isinstance(given, st.NullType) or given == target:
        return
    match given, target:
        case st.ArrayType(), st.ArrayType():
            check_storable(given.elementType, target.elementType, place, by_name=by_name)
        case st.MapType(), st.MapType():
            check_storable(given.keyType, target.keyType, place, by_name=by_name)
            check_storable(given.valueType, target.valueType, place, by_name=by_name)
        case st.StructType(), st.StructType():
            _check_members(given, target, place, by_name)
        case _ if not _is_storable(given, target):
            raise InvalidData(
                f"{place} is of type {target.simpleString()}, which does not take {given.simpleString()}",
                hint="cast the value, if it is meant",
            )


def _check_members(given: st.StructType, target: st.StructType, place: str, by_name: bool) -> None:
    if by_name:
        known = {part.name.lower(): part for part in target.fields}
        extra = [part.name for part in given.fields if part.name.lower() not in known]
        pairs = [(part, known[part.name.lower()]) for part in given.fields if part.name.lower() in known]
    else:
        extra = [part.name for part in given.fields[len(target.fields) :]]
        pairs = list(zip(given.fields, target.fields, strict=False))
        if len(given.fields) < len(target.fields):
            raise InvalidData(
                f"{place} lacks member `{target.fields[len(given.fields)].name}`",
                hint=f"give a value of type {target.simpleString()}",
            )
    if extra:
        raise InvalidData(
            f"{place} is given member `{extra[0]}`, which it has not",
            hint=f"give a value of type {target.simpleString()}, or set `write.merge-schema`",
        )
    for part, wanted in pairs:
        check_storable(part.dataType, wanted.dataType, f"{place}.`{wanted.name}`", by_name=by_name)


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


def _shaped(column: Column, given: st.DataType, target: st.DataType) -> Column:
    """The column with members of rows in their places by name; those that are not given are null."""
    if not _has_rows(given):
        return column.cast(target)
    match given, target:
        case st.StructType(), st.StructType():
            known = {part.name.lower(): part for part in given.fields}
            members = []
            for wanted in target.fields:
                part = known.get(wanted.name.lower())
                value = sf.lit(None) if part is None else _member(column, part, wanted)
                members.append(value.cast(wanted.dataType).alias(wanted.name))
            return sf.when(column.isNotNull(), sf.struct(*members))
        case st.ArrayType(), st.ArrayType():
            return sf.transform(column, lambda item: _shaped(item, given.elementType, target.elementType))
        case st.MapType(), st.MapType():
            shaped = sf.transform_values(column, lambda _, item: _shaped(item, given.valueType, target.valueType))
            return sf.transform_keys(shaped, lambda key, _: _shaped(key, given.keyType, target.keyType))
    return column.cast(target)


def _member(column: Column, part: st.StructField, wanted: st.StructField) -> Column:
    return _shaped(column.getField(part.name), part.dataType, wanted.dataType)


def changed_rows(
    frame: DataFrame, fields: Sequence[DataField], changed: set[str], places: Sequence[str], kind: str, value: str
) -> DataFrame:
    """Rows of an UPDATE or DELETE: the table's columns, then the places of the old rows, and the kind of change."""
    given = frame.schema.fields
    numbered = frame.toDF(*(f"_{index}" for index in range(len(given))))
    columns = []
    for index, field in enumerate(fields):
        column = sf.col(f"_{index}")
        if field.name in changed:
            column = restored(column, given[index].dataType, field)
        columns.append(column.alias(field.name))
    columns += [sf.col(f"_{len(fields) + index}").alias(name) for index, name in enumerate(places)]
    return numbered.select(*columns, sf.lit(value).alias(kind))


def restored(column: Column, given: st.DataType, field: DataField) -> Column:
    """A new value of a column; members of rows are matched by name where all of them have names of the column's."""
    target = spark_type(field.type, field.name)
    return padded(
        stored(column, given, target, f"column `{field.name}`", by_name=_is_named_alike(given, target)), field
    )


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


def _is_named_alike(given: st.DataType, target: st.DataType) -> bool:
    match given, target:
        case st.StructType(), st.StructType():
            known = {part.name.lower(): part.dataType for part in target.fields}
            return all(
                part.name.lower() in known and _is_named_alike(part.dataType, known[part.name.lower()])
                for part in given.fields
            )
        case st.ArrayType(), st.ArrayType():
            return _is_named_alike(given.elementType, target.elementType)
        case st.MapType(), st.MapType():
            return _is_named_alike(given.keyType, target.keyType) and _is_named_alike(given.valueType, target.valueType)
    return True


def merged_rows(
    frame: DataFrame,
    fields: Sequence[DataField],
    changed: Sequence[set[str]],
    kinds: Sequence[str],
    places: Sequence[str],
    kind: str,
) -> DataFrame:
    """Rows of a MERGE, from columns `_lakebed_clause`, `_place_*`, `_old_*` and, for each clause, `_new_<clause>_*`."""
    given = {field.name: field.dataType for field in frame.schema.fields}
    clause = sf.col("_lakebed_clause")
    columns = []
    for index, field in enumerate(fields):
        value: Column | None = None
        for number, names in enumerate(changed):
            new = f"_new_{number}_{index}"
            if field.name in names:
                column = restored(sf.col(new), given[new], field)
            else:
                column = sf.lit(None) if kinds[number] == "+I" else sf.col(f"_old_{index}")
            value = sf.when(clause == number, column) if value is None else value.when(clause == number, column)
        assert value is not None
        columns.append(value.cast(spark_type(field.type, field.name)).alias(field.name))
    hidden = [(index, name) for index, name in enumerate(places) if name not in {field.name for field in fields}]
    columns += [sf.col(f"_place_{index}").alias(name) for index, name in hidden]
    chosen = sf.element_at(sf.array(*(sf.lit(name) for name in kinds)), clause + 1)
    return frame.select(*columns, chosen.alias(kind))
