"""Which value of an INSERT goes into which column: by position, by a list of names, or by the names of the query."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from lakebed.errors import InvalidArgument, InvalidData, NotFound, did_you_mean
from lakebed.sql.statements import Insert
from lakebed.types.logical import DataField


@dataclass(frozen=True, slots=True)
class InsertColumns:
    """For each column of the table, in its order: the place of its value in the rows given, or None."""

    fields: tuple[DataField, ...]
    sources: tuple[int | None, ...]


def find_column(name: str, fields: Sequence[DataField], table: str) -> DataField:
    """The column of that name, in any case."""
    found = [field for field in fields if field.name == name]
    found = found or [field for field in fields if field.name.lower() == name.lower()]
    if not found:
        known = [field.name for field in fields]
        raise NotFound(f"table `{table}` has no column `{name}`", hint=did_you_mean(name, known))
    return found[0]


def columns_of(
    statement: Insert,
    fields: tuple[DataField, ...],
    table: str,
    given: Sequence[str] | int,
    partitions_last: Sequence[str] = (),
) -> InsertColumns:
    """The columns of a statement whose rows have these names, or so many values.

    `partitions_last` are columns that come after all others, as in Hive, unless the names say that they do not.
    """
    fixed = {find_column(name, fields, table).name for name, value in statement.partition.items() if value is not None}
    if statement.by_name and not isinstance(given, int):
        return _by_name(fields, fixed, list(given), table)
    count = given if isinstance(given, int) else len(given)
    named = _named(statement, fields, fixed, table)
    if partitions_last and not _are_names(named, given):
        named = [*(name for name in named if name not in partitions_last), *partitions_last]
    if len(named) != count:
        raise InvalidData(
            f"table `{table}`: each row has {count} values for {len(named)} columns ({', '.join(named)})",
            hint="give one value for each column, or list the columns: INSERT INTO t (a, b) ...",
        )
    places = {name: index for index, name in enumerate(named)}
    return InsertColumns(fields, tuple(places.get(field.name) for field in fields))


def _named(statement: Insert, fields: tuple[DataField, ...], fixed: set[str], table: str) -> list[str]:
    if statement.columns is None:
        return [field.name for field in fields if field.name not in fixed]
    return named_columns(statement.columns, fields, table, fixed)


def _are_names(named: list[str], given: Sequence[str] | int) -> bool:
    return not isinstance(given, int) and [name.lower() for name in given] == [name.lower() for name in named]


def hive_order(
    statement: Insert, fields: Sequence[DataField], table: str, partition_by: Sequence[str]
) -> tuple[str, ...]:
    """Partition columns that Hive's order has last: those whose values the rows bring."""
    if statement.by_name or statement.columns is not None:
        return ()
    dynamic = {find_column(name, fields, table).name for name, value in statement.partition.items() if value is None}
    return tuple(name for name in partition_by if name in dynamic)


def named_columns(
    names: Sequence[str], fields: Sequence[DataField], table: str, fixed: Collection[str] = ()
) -> list[str]:
    """The columns of a list, by the table's own names; each may be given once, in the list or as a `fixed` value."""
    named = [find_column(name, fields, table).name for name in names]
    twice = {name for name in named if named.count(name) > 1} | (set(named) & set(fixed))
    if twice:
        raise InvalidArgument(f"column `{min(twice)}` of table `{table}` is given twice", hint="name each column once")
    return named


def _by_name(fields: tuple[DataField, ...], fixed: set[str], given: list[str], table: str) -> InsertColumns:
    lowered = [name.lower() for name in given]
    twice = {name for name in lowered if lowered.count(name) > 1}
    if twice:
        raise InvalidData(f"the query has column `{min(twice)}` twice", hint="give each column a name of its own")
    known = {field.name.lower() for field in fields if field.name not in fixed}
    extra = [name for name in given if name.lower() not in known]
    if extra:
        raise InvalidData(
            f"the query has column `{extra[0]}`, which table `{table}` has not",
            hint="leave it out, or set `write.merge-schema` to have it added to the table",
        )
    places = {name: index for index, name in enumerate(lowered)}
    return InsertColumns(fields, tuple(places.get(field.name.lower()) for field in fields))
