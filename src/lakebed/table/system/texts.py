"""How system tables spell values: the texts that Paimon's own system tables show, so that queries on them agree.

Partitions are spelled as SQL's cast to text would, keys and statistics as Java objects print: a date is a number of
days there. Times are wall-clock times of the local zone.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import timedelta

import pyarrow as pa

from lakebed.definition.context import TableContext
from lakebed.metadata.data_file import creation_time_from_epoch
from lakebed.metadata.partition_text import partition_text
from lakebed.types.binary_row import decode_rows
from lakebed.types.logical import BINARIES, AtomicType, DataType, is_root

local_time_ms = creation_time_from_epoch
"""The local wall clock at an instant, as milliseconds: what a TIMESTAMP column holds."""


def partition_texts(context: TableContext, partitions: Sequence[bytes]) -> list[str]:
    """Partitions as `{2024-10-10, 1}`, nulls as `null`; `{}` in a table without partitions."""
    known = _by_partition(context, set(partitions))
    return ["{" + ", ".join("null" if text is None else text for text in known[item]) + "}" for item in partitions]


def partition_names(context: TableContext, partitions: Sequence[bytes], default_name: str) -> list[str]:
    """Partitions as `dt=2024-10-10/hh=1`, nulls and blanks under the default name; empty without partitions."""
    known = _by_partition(context, set(partitions))
    keys = context.schema.partition_keys
    return [
        "/".join(
            f"{key}={default_name if not (text or '').strip() else text}"
            for key, text in zip(keys, known[item], strict=True)
        )
        for item in partitions
    ]


def _by_partition(context: TableContext, partitions: Iterable[bytes]) -> dict[bytes, list[str | None]]:
    distinct = list(partitions)
    if not context.partition_types or not distinct:
        return {partition: [] for partition in distinct}
    columns = decode_rows(distinct, context.partition_types)
    texts = [_cast_texts(column, kind) for column, kind in zip(columns, context.partition_types, strict=True)]
    return {partition: [column[i] for column in texts] for i, partition in enumerate(distinct)}


def _cast_texts(values: pa.Array, data_type: DataType) -> list[str | None]:
    """Values as SQL's cast to text spells them."""
    return [partition_text(data_type, value, legacy=False) if value.is_valid else None for value in values]


def object_texts(values: pa.Array, data_type: DataType) -> list[str]:
    """Values as Java objects print; nulls as `null`."""
    return [_object_text(value, data_type) if value.is_valid else "null" for value in values]


def _object_text(value: pa.Scalar, data_type: DataType) -> str:
    # Java prints no content of bytes, only where they lie in memory; and there are no statistics of nested values.
    if is_root(data_type, BINARIES):
        return bytes(value.as_py()).hex()
    if isinstance(data_type, AtomicType):
        return partition_text(data_type, value, legacy=True)
    return str(value.as_py())


def duration_text(duration: timedelta) -> str:
    """A time span in the notation of ISO 8601 without days: `PT48H`, `PT1H30M`, `PT0.5S`."""
    micros = duration // timedelta(microseconds=1)
    seconds, fraction = divmod(abs(micros), 1_000_000)
    sign = "-" if micros < 0 else ""
    parts = [
        f"{sign}{seconds // 3600}H" if seconds >= 3600 else "",
        f"{sign}{seconds // 60 % 60}M" if seconds // 60 % 60 else "",
    ]
    rest = f"{seconds % 60}.{fraction:06}".rstrip("0").rstrip(".")
    if rest != "0" or micros == 0:
        parts.append(f"{sign}{rest}S")
    return "PT" + "".join(parts)


__all__ = ["duration_text", "local_time_ms", "object_texts", "partition_names", "partition_texts"]
