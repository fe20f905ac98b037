"""Compaction by hand: of data files, merged or sorted, of manifests, and into another number of buckets."""

from __future__ import annotations

import re
from typing import Any

import pyarrow as pa

from lakebed.errors import InvalidArgument, NotFound, did_you_mean
from lakebed.options import CLUSTERING_INCREMENTAL, Options
from lakebed.rewrite.sorting import STRATEGIES
from lakebed.sql.procedures.chosen_partitions import agreeing_partitions, chosen_partitions
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
from lakebed.units import parse_size

_STRATEGIES = ("full", "minor")
_ORDERS = ("none", *STRATEGIES)
_SORTING = "manifest-sort."


def _compact(
    lake: SqlLake,
    table: str,
    order_strategy: str = "none",
    order_by: str | None = None,
    options: str | None = None,
    compact_strategy: str | None = None,
    buckets: str | None = None,
    **which: str | None,
) -> Rows:
    """`which` are `partitions`, `where` and `partition_idle_time`."""
    handle = lake.table(table)
    if options:
        handle = handle.with_options(table_options(options))
    # Sorting step by step is not asked for to sort everything each time.
    usual = "minor" if Options(handle.options)[CLUSTERING_INCREMENTAL] else "full"
    strategy = compact_strategy or usual
    _check_choice("compact_strategy", strategy, _STRATEGIES)
    _check_choice("order_strategy", order_strategy, _ORDERS)
    idle_time = which.get("partition_idle_time")
    chosen = chosen_partitions(lake, handle, which.get("partitions"), which.get("where"), idle_time)
    if order_strategy.lower() != "none":
        for name, value in {"partition_idle_time": idle_time, "buckets": buckets}.items():
            if value:
                raise InvalidArgument(f"{name} and order_strategy do not go together", hint="leave one of them out")
        names = [name.strip() for name in (order_by or "").split(",") if name.strip()]
        if not names:
            raise InvalidArgument("order_strategy needs order_by", hint="name the columns: order_by => 'a,b'")
        handle.compact(where=chosen, order_by=names, order_strategy=order_strategy.lower(), on_spark=True)
    else:
        if order_by:
            raise InvalidArgument("order_by needs an order_strategy", hint="add order_strategy => 'order' or 'zorder'")
        numbers = None if buckets is None else _bucket_numbers(buckets)
        handle.compact(full=strategy.lower() == "full", where=chosen, buckets=numbers, on_spark=True)
    return DONE


def _bucket_numbers(text: str) -> list[int]:
    """`0,3-5`: numbers and ranges, which have both ends in them."""
    numbers: list[int] = []
    for part in text.split(","):
        found = re.fullmatch(r"\s*(\d+)\s*(?:-\s*(\d+)\s*)?", part)
        if found is None or int(found[2] or found[1]) < int(found[1]):
            raise InvalidArgument(f"buckets `{text}` can not be read at `{part}`", hint="write them as in '0,3-5'")
        numbers += range(int(found[1]), int(found[2] or found[1]) + 1)
    return numbers


def _check_choice(name: str, value: str, choices: tuple[str, ...]) -> None:
    if value.lower() not in choices:
        raise InvalidArgument(f"{name} is `{value}`", hint=f"choose one of {', '.join(choices)}")


def _compact_database(
    lake: SqlLake,
    including_databases: str = ".*",
    mode: str | None = None,
    including_tables: str = ".*",
    excluding_tables: str | None = None,
    options: str | None = None,
    partition_idle_time: str | None = None,
    compact_strategy: str | None = None,
) -> Rows:
    """All tables whose names fit, one after another; `mode` is about Flink's jobs and has no meaning here."""
    done = 0
    for database in lake.databases():
        if not re.fullmatch(including_databases, database):
            continue
        for name in lake.tables(database):
            full_name = f"{database}.{name}"
            fits = any(re.fullmatch(including_tables, text) for text in (full_name, name))
            if fits and not _is_excluded(excluding_tables, full_name, name):
                extra: dict[str, Any] = {"options": options, "partition_idle_time": partition_idle_time}
                _compact(lake, full_name, compact_strategy=compact_strategy, **extra)
                done += 1
    return [(f"{done} tables compacted",)]


def _is_excluded(pattern: str | None, *names: str) -> bool:
    return pattern is not None and any(re.fullmatch(pattern, name) for name in names)


def _compact_manifest(
    lake: SqlLake,
    table: str,
    options: str | None = None,
    dry_run: bool = False,
    manifest_sort_enabled: bool | None = None,
    manifest_sort_partition_field: str | None = None,
    manifest_sort_max_rewrite_size: str | None = None,
) -> Rows:
    """The order of manifests is not chosen here: arguments about sorting are checked, and change nothing else."""
    handle = lake.table(table)
    field = manifest_sort_partition_field
    if manifest_sort_enabled and field is not None and field not in handle.partition_by:
        raise InvalidArgument(
            f"`{field}` is not a partition column of table `{handle.name}`",
            hint=did_you_mean(field, handle.partition_by),
        )
    if manifest_sort_max_rewrite_size is not None:
        parse_size(manifest_sort_max_rewrite_size)
    chosen = table_options(options) if options else {}
    if chosen:
        handle = handle.with_options({key: value for key, value in chosen.items() if not key.startswith(_SORTING)})
    if not dry_run:
        handle.compact_manifest()
    return DONE


def _rescale(
    lake: SqlLake,
    table: str,
    bucket_num: int | None = None,
    partitions: str | None = None,
    where: str | None = None,
) -> Rows:
    handle = lake.table(table)
    if handle.latest_snapshot() is None:
        raise NotFound(f"table `{handle.name}` has no snapshot", hint="write rows first: there is nothing to rescale")
    chosen = chosen_partitions(lake, handle, partitions, where)
    specs = None if chosen is None else [item.values for item in agreeing_partitions(handle, chosen)]
    if specs != []:
        handle.rescale(bucket_num, specs, on_spark=True)
    return DONE


def _rewrite_file_index(lake: SqlLake, table: str, where: str | None = None, partitions: str | None = None) -> Rows:
    handle = lake.table(table)
    made = handle.rewrite_file_index(chosen_partitions(lake, handle, partitions, where))
    return [(made.partitions, made.files)]


def _reassign_row_id(lake: SqlLake, table: str, partitions: str | None = None) -> Rows:
    handle = lake.table(table)
    made = handle.reassign_row_ids(chosen_partitions(lake, handle, partitions, None))
    if made is not None:
        text = (
            f"Success. Reassigned row IDs for table '{table}': snapshot {made.previous} -> {made.current}, nextRowId "
            f"{made.first} -> {made.next_row_id}, files={made.files}, rows={made.rows}, indexFiles=0."
        )
    else:
        reason = "no partition requires row-id reassignment" if handle.partition_by else "table is not partitioned"
        latest = handle.latest_snapshot()
        assert latest is not None
        text = (
            f"Skipped. Row IDs for table '{table}' were not reassigned because {reason}: snapshot {latest.id} "
            f"unchanged, nextRowId={latest.next_row_id}."
        )
    return [(text,)]


PROCEDURES = (
    Procedure(
        "compact",
        (
            TABLE,
            Parameter("partitions"),
            Parameter("order_strategy"),
            Parameter("order_by"),
            OPTIONS,
            Parameter("where"),
            Parameter("partition_idle_time"),
            Parameter("compact_strategy"),
            Parameter("buckets"),
        ),
        _compact,
    ),
    Procedure(
        "compact_database",
        (
            Parameter("including_databases"),
            Parameter("mode"),
            Parameter("including_tables"),
            Parameter("excluding_tables"),
            OPTIONS,
            Parameter("partition_idle_time"),
            Parameter("compact_strategy"),
        ),
        _compact_database,
        {"result": pa.string()},
    ),
    Procedure(
        "compact_manifest",
        (
            TABLE,
            OPTIONS,
            Parameter("dry_run", Kind.FLAG),
            Parameter("manifest_sort_enabled", Kind.FLAG),
            Parameter("manifest_sort_partition_field"),
            Parameter("manifest_sort_max_rewrite_size"),
        ),
        _compact_manifest,
    ),
    Procedure(
        "rewrite_file_index",
        (TABLE, Parameter("where"), Parameter("partitions")),
        _rewrite_file_index,
        {"written_partitions": pa.int32(), "written_indexes": pa.int32()},
    ),
    Procedure("reassign_row_id", (TABLE, Parameter("partitions")), _reassign_row_id, {"result": pa.string()}),
    Procedure(
        "rescale",
        (
            TABLE,
            Parameter("bucket_num", Kind.NUMBER),
            Parameter("partitions", aliases=("partition",)),
            Parameter("where"),
        ),
        _rescale,
    ),
)
