"""Statistics of data files as columns: what manifests tell of the values in each file."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lakebed.definition.context import TableContext
from lakebed.metadata.data_file import DataFile, SimpleStats
from lakebed.schema.evolution import Evolution, map_fields
from lakebed.types.arrow import to_arrow_type
from lakebed.types.binary_row import decode_rows
from lakebed.types.logical import DataField
from lakebed.types.predicate_stats import ColumnStats, StatsColumns


def stats_in_all(context: TableContext, files: Sequence[DataFile], fields: Sequence[DataField]) -> StatsColumns | None:
    """Least and greatest values and numbers of nulls of columns, file by file; None if one of them is not told.

    REQUIRES: types whose statistics are values and not bounds, and files all of whose rows are shown.
    """
    groups: dict[tuple[int, tuple[str, ...] | None], list[DataFile]] = defaultdict(list)
    for file in files:
        groups[file.schema_id, file.value_stats_cols].append(file)
    parts: dict[str, list[ColumnStats]] = {field.name: [] for field in fields}
    for (schema_id, columns), members in groups.items():
        evolution = map_fields(fields, context.schemas.get(schema_id))
        found = stats_in_files(context, evolution, schema_id, columns, [file.value_stats for file in members])
        counts = pa.array([file.row_count for file in members], pa.int64())
        for name, known in parts.items():
            stats = found.get(name)
            if stats is None or not _are_exact(stats, counts):
                return None
            known.append(stats)
    return {
        name: ColumnStats(*(pa.concat_arrays([getattr(part, each) for part in known]) for each in _PARTS))
        for name, known in parts.items()
        if known
    }


_PARTS = ("min", "max", "null_count")


def _are_exact(stats: ColumnStats, row_counts: pa.Array) -> bool:
    """Whether every file says how many nulls it has, and has both extremes unless it has nothing but nulls."""
    if stats.null_count.null_count:
        return False
    has_values = pc.not_equal(stats.null_count, row_counts)
    lacks = pc.or_(pc.is_null(stats.min), pc.is_null(stats.max))
    return not pc.any(pc.and_(has_values, lacks), min_count=0).as_py()


def stats_in_files(
    context: TableContext,
    evolution: Evolution,
    schema_id: int,
    columns: tuple[str, ...] | None,
    stats: Sequence[SimpleStats],
) -> StatsColumns:
    """Statistics of wanted columns in files of one schema; renamed columns are found by id."""
    schema = context.schemas.get(schema_id)
    fields = schema.fields if columns is None else tuple(schema.fields_of(columns))
    if not fields:
        return {}
    wanted = evolution.wanted
    old_names = {field.name: evolution.old_name_of(field.name) for field in wanted if evolution.can_push(field.name)}
    decoded = decoded_stats(stats, fields, only={name for name in old_names.values() if name})
    result = {}
    for field in wanted:
        bounds = decoded.get(old_names.get(field.name) or "")
        if bounds is not None:
            arrow = to_arrow_type(field.type)
            result[field.name] = ColumnStats(bounds.min.cast(arrow), bounds.max.cast(arrow), bounds.null_count)
    return result


def decoded_stats(
    stats: Sequence[SimpleStats], fields: Sequence[DataField], only: set[str] | None = None
) -> StatsColumns:
    """Statistics rows as columns of bounds. Rows of another width than the fields (no statistics) give unknowns."""
    types = [field.type for field in fields]
    known = [len(item.null_counts or ()) == len(fields) for item in stats]
    rows = [i for i, is_known in enumerate(known) if is_known]
    if not rows:
        return {}
    chosen = [n for n, field in enumerate(fields) if only is None or field.name in only]
    lows = decode_rows([stats[i].min_values for i in rows], types, chosen)
    highs = decode_rows([stats[i].max_values for i in rows], types, chosen)
    place: Callable[[pa.Array], pa.Array] = lambda column: column  # noqa: E731
    if len(rows) < len(stats):
        positions = np.full(len(stats), -1, dtype=np.int64)
        positions[rows] = np.arange(len(rows))
        indices = pa.array(positions, mask=positions < 0)
        place = lambda column: column.take(indices)  # noqa: E731
    result: dict[str, ColumnStats] = {}
    for n, low, high in zip(chosen, lows, highs, strict=True):
        counts = pa.array([(stats[i].null_counts or ())[n] for i in rows], pa.int64())
        result[fields[n].name] = ColumnStats(place(low), place(high), place(counts))
    return result
