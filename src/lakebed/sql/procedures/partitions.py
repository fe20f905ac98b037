"""Whole partitions: drop, expire, mark as done."""

from __future__ import annotations

import pyarrow as pa

from lakebed.sql.partition_specs import clear_partitions, parse_specs
from lakebed.sql.procedures.registry import (
    DONE,
    OPTIONS,
    TABLE,
    Kind,
    Parameter,
    Procedure,
    Rows,
    SqlLake,
    table_options,
)

_PARTITIONS = Parameter("partitions", required=True, aliases=("partition",))


def _drop(lake: SqlLake, table: str, partitions: list[str]) -> Rows:
    specs = [spec for text in partitions for spec in parse_specs(text)]
    clear_partitions(lake.table(table), specs)
    return DONE


def _mark_done(lake: SqlLake, table: str, partitions: str) -> Rows:
    lake.table(table).mark_partition_done(parse_specs(partitions))
    return DONE


def _expire(
    lake: SqlLake,
    table: str,
    expiration_time: str | None = None,
    timestamp_formatter: str | None = None,
    timestamp_pattern: str | None = None,
    expire_strategy: str | None = None,
    max_expires: int | None = None,
    options: str | None = None,
) -> Rows:
    handle = lake.table(table)
    if options:
        handle = handle.with_options(table_options(options))
    gone = handle.expire_partitions(
        expiration_time, timestamp_formatter, timestamp_pattern, expire_strategy, max_expires
    )
    texts = [", ".join(f"{column}={value}" for column, value in values.items()) for values in gone.partitions]
    return [(text,) for text in texts] or [("No expired partitions.",)]


PROCEDURES = (
    Procedure("drop_partition", (TABLE, _PARTITIONS), _drop, varargs=True),
    Procedure("mark_partition_done", (TABLE, _PARTITIONS), _mark_done),
    Procedure(
        "expire_partitions",
        (
            TABLE,
            Parameter("expiration_time"),
            Parameter("timestamp_formatter"),
            Parameter("timestamp_pattern"),
            Parameter("expire_strategy"),
            Parameter("max_expires", Kind.NUMBER),
            OPTIONS,
        ),
        _expire,
        {"expired_partitions": pa.string()},
    ),
)
