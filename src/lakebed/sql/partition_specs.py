"""Partitions in statements: `PARTITION (dt = '2024-01-01', hh = 1)`, and `dt=2024-01-01,hh=1` in procedures."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

import pyarrow as pa

from lakebed.errors import InvalidArgument, InvalidData, NotFound, did_you_mean
from lakebed.maintenance.partitions import Partition
from lakebed.metadata.partition_text import partition_text
from lakebed.options import PARTITION_DEFAULT_NAME, Options
from lakebed.schema.casts import cast_array
from lakebed.sql.statements import PartitionSpec
from lakebed.table.table import Table
from lakebed.types.logical import STRING, with_nullable

T = TypeVar("T")


def existing_partitions(table: Table) -> list[Partition]:
    """All partitions that have files."""
    if not table.partition_by:
        raise InvalidArgument(f"table `{table.name}` is not partitioned", hint="it has no partitions to show or drop")
    return table.partitions()


def matching_partitions(table: Table, spec: PartitionSpec) -> list[Partition]:
    """Those that have the values of the spec."""
    spec = named_columns(table, spec)
    wanted = {column: _stored_text(table, column, value) for column, value in spec.items()}
    return [item for item in existing_partitions(table) if wanted.items() <= item.values.items()]


def _stored_text(table: Table, column: str, value: object) -> str | None:
    """The literal as partitions show the value, read with the type of its column."""
    default_name = Options(table.options)[PARTITION_DEFAULT_NAME]
    if value is None or value == default_name:
        return None
    kind = with_nullable(next(field.type for field in table.schema.fields if field.name == column), True)
    try:
        scalar = cast_array(pa.array([_spec_text(value)]), STRING, kind)[0]
    except InvalidData as error:
        raise InvalidArgument(
            f"{value!r} is no value of partition column `{column}` ({kind})", hint="give a value of the column's type"
        ) from error
    return partition_text(kind, scalar, legacy=False)


def named_columns(table: Table, spec: Mapping[str, T]) -> dict[str, T]:
    """The spec by the table's own names of its partition columns; raises if it names anything else."""
    if not table.partition_by:
        raise InvalidArgument(f"table `{table.name}` is not partitioned", hint="leave PARTITION out")
    known = {column.lower(): column for column in table.partition_by}
    for column in spec:
        if column.lower() not in known:
            raise NotFound(
                f"`{column}` is not a partition column of table `{table.name}`",
                hint=did_you_mean(column, table.partition_by),
            )
    return {known[column.lower()]: value for column, value in spec.items()}


def _check_prefix(table: Table, spec: Mapping[str, Any]) -> None:
    """Raises unless the spec, by the table's own names, names the first partition columns."""
    first = table.partition_by[: len(spec)]
    if set(first) != set(spec):
        missing = next(column for column in first if column not in spec)
        raise InvalidArgument(
            f"PARTITION ({', '.join(spec)}) leaves out `{missing}`, which comes before in table `{table.name}`",
            hint=f"name the first columns of ({', '.join(table.partition_by)})",
        )


def drop_partitions(table: Table, specs: Sequence[PartitionSpec], *, if_exists: bool) -> None:
    """Takes the rows of partitions away; a partition that is named in full has to exist."""
    specs = [named_columns(table, spec) for spec in specs]
    for spec in specs:
        _check_prefix(table, spec)
        is_full = len(spec) == len(table.partition_by)
        if is_full and not if_exists and not matching_partitions(table, spec):
            raise NotFound(
                f"table `{table.name}` has no partition {_spec_shown(spec)}",
                hint="look at SHOW PARTITIONS, or write IF EXISTS",
            )
    table.drop_partitions([_as_overwrite(spec) for spec in specs])


def clear_partitions(table: Table, specs: Sequence[PartitionSpec]) -> None:
    """Takes the rows of all partitions away that agree with one of the specs, whichever columns it names."""
    table.drop_partitions([_as_overwrite(named_columns(table, spec)) for spec in specs])


def _as_overwrite(spec: PartitionSpec) -> dict[str, str | None]:
    """The spec as tables take it: texts, which they read with the types of their columns."""
    return {column: None if value is None else _spec_text(value) for column, value in spec.items()}


def _spec_text(value: object) -> str:
    """A literal as text."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, dt.datetime):
        return value.isoformat(sep=" ")
    return str(value)


def _spec_shown(spec: PartitionSpec) -> str:
    """The spec as users write it."""
    return ", ".join(f"{column}={value}" for column, value in spec.items())


def parse_specs(text: str) -> list[dict[str, str]]:
    """`dt=20221208,hh=15;dt=20221209`: `,` is AND, `;` is OR; values may have quotes around them."""
    return [dict(_pair(part, text) for part in spec.split(",")) for spec in text.split(";") if spec.strip()]


def _pair(part: str, text: str) -> tuple[str, str]:
    column, sign, value = part.partition("=")
    if not sign or not column.strip():
        raise InvalidArgument(
            f"partitions `{text}` can not be read at `{part}`",
            hint="write them as in `dt=2024-01-01,hh=1;dt=2024-01-02`",
        )
    value = value.strip()
    is_quoted = len(value) > 1 and value[0] == value[-1] and value[0] in "'\""
    return column.strip(), value[1:-1] if is_quoted else value
