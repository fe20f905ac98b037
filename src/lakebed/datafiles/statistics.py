"""Column statistics between data files and manifests: cutting them to size when written, decoding them to prune.

A manifest keeps min, max and null count of the columns of each file as two BinaryRows. Text is cut to a few characters;
a cut minimum stays below, a cut maximum is raised above, so both remain bounds. Binary columns have no bounds: Java
takes their bytes for signed numbers when it compares, and would skip files that hold what it looks for.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence

import pyarrow as pa

from lakebed.errors import InvalidOption
from lakebed.formats.base import ColumnStats
from lakebed.metadata.data_file import SimpleStats
from lakebed.types.binary_row import encode_row
from lakebed.types.logical import BINARIES, STRINGS, DataField, is_nested, is_root

_KEY_STATS_MODE = "truncate(128)"
"""Keys are cut later than values: their ranges decide which files overlap."""

Bounds = tuple[pa.Scalar | None, pa.Scalar | None, int | None]


def parse_stats_mode(text: str) -> int | str | None:
    """`full` and `counts` and `none` as they are; `truncate(16)` as the number."""
    mode = text.strip().lower()
    if mode in ("none", "counts", "full"):
        return mode
    match = re.fullmatch(r"truncate\((\d+)\)", mode)
    if match is None or int(match.group(1)) < 1:
        raise InvalidOption(
            f"statistics mode `{text}` is not known", hint="use none, counts, full or truncate(n) with n of at least 1"
        )
    return int(match.group(1))


def bounds(field: DataField, stats: ColumnStats, mode: str) -> Bounds:
    """What the manifest keeps of a column's statistics under a mode; None is unknown."""
    parsed = parse_stats_mode(mode)
    if parsed == "none":
        return (None, None, None)
    if parsed == "counts" or is_nested(field.type) or is_root(field.type, BINARIES):
        return (None, None, stats.null_count)
    if stats.min is None or stats.max is None:
        return (None, None, stats.null_count)
    if isinstance(parsed, int) and is_root(field.type, STRINGS):
        return (*_cut(stats.min, stats.max, parsed), stats.null_count)
    return (stats.min, stats.max, stats.null_count)


def _cut(low: pa.Scalar, high: pa.Scalar, length: int) -> tuple[pa.Scalar | None, pa.Scalar | None]:
    lowest, highest = low.as_py()[:length], high.as_py()
    if len(highest) > length:
        highest = _next_text(highest[:length])
        if highest is None:
            return (None, None)
    return (pa.scalar(lowest, low.type), pa.scalar(highest, high.type))


def _next_text(text: str) -> str | None:
    """The shortest text above all that start with `text`; none when every character is the last one."""
    for i in range(len(text) - 1, -1, -1):
        code = ord(text[i]) + 1
        if 0xD800 <= code <= 0xDFFF:
            code = 0xE000  # surrogates are no characters
        if code <= 0x10FFFF:
            return text[:i] + chr(code)
    return None


def _to_simple_stats(fields: Sequence[DataField], kept: Sequence[Bounds]) -> SimpleStats:
    """Two BinaryRows and the null counts of these columns."""
    types = [field.type for field in fields]
    return SimpleStats(
        encode_row([low for low, _, _ in kept], types),
        encode_row([high for _, high, _ in kept], types),
        tuple(count for _, _, count in kept),
    )


def key_statistics(fields: Sequence[DataField], stats: Mapping[str, ColumnStats]) -> SimpleStats:
    """`_KEY_STATS`: never dense, one entry for each key column."""
    return _to_simple_stats(fields, [bounds(field, stats[field.name], _KEY_STATS_MODE) for field in fields])


def value_statistics(
    fields: Sequence[DataField], stats: Mapping[str, ColumnStats], mode_of: Callable[[str], str], *, dense: bool
) -> tuple[SimpleStats, tuple[str, ...] | None]:
    """`_VALUE_STATS` and `_VALUE_STATS_COLS`; dense statistics leave out columns of which nothing is known."""
    kept = {field.name: bounds(field, stats[field.name], mode_of(field.name)) for field in fields}
    if not dense:
        return _to_simple_stats(fields, list(kept.values())), None
    known = [field for field in fields if kept[field.name] != (None, None, None)]
    columns = None if len(known) == len(fields) else tuple(field.name for field in known)
    return _to_simple_stats(known, [kept[field.name] for field in known]), columns
