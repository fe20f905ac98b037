"""What the options say of single levels: format, compression and statistics of the files there.

New rows lie on level 0 for a short while and are read often, old ones lie higher and are read much: so they may be
stored differently. A file that moves up as it is keeps what it was written with.
"""

from __future__ import annotations

from dataclasses import dataclass

from lakebed.datafiles.statistics import parse_stats_mode
from lakebed.errors import InvalidOption, did_you_mean
from lakebed.formats import FORMATS
from lakebed.options import (
    FILE_COMPRESSION,
    FILE_COMPRESSION_PER_LEVEL,
    FILE_FORMAT_PER_LEVEL,
    METADATA_STATS_MODE_PER_LEVEL,
    Names,
    Option,
    Options,
)
from lakebed.schema.table_schema import TableSchema


@dataclass(frozen=True, slots=True)
class LevelRules:
    """What is said of one level; None where it is as on all others."""

    format: str | None = None
    compression: str | None = None
    stats_mode: str | None = None

    @staticmethod
    def of(options: Options, level: int) -> LevelRules:
        """The rules of a level."""
        return LevelRules(
            _by_level(options, FILE_FORMAT_PER_LEVEL).get(level),
            _by_level(options, FILE_COMPRESSION_PER_LEVEL).get(level),
            _by_level(options, METADATA_STATS_MODE_PER_LEVEL).get(level),
        )


def check_level_rules(schema: TableSchema, options: Options, table: str) -> None:
    """Raises if a format or compression does not exist, a format can not hold the columns, or a level comes twice."""
    for option in (FILE_FORMAT_PER_LEVEL, FILE_COMPRESSION_PER_LEVEL, METADATA_STATS_MODE_PER_LEVEL):
        if len(_by_level(options, option)) < len(options[option]):
            raise InvalidOption(f"table `{table}`: `{option.key}` names a level twice", hint="name each level once")
    for name in _by_level(options, FILE_FORMAT_PER_LEVEL).values():
        if name not in FORMATS:
            raise InvalidOption(
                f"table `{table}`: `{FILE_FORMAT_PER_LEVEL.key}` names format `{name}`",
                hint=did_you_mean(name, FORMATS),
            )
        FORMATS[name].check(schema.fields)
    for name in _by_level(options, FILE_COMPRESSION_PER_LEVEL).values():
        if name not in FILE_COMPRESSION.choices:
            raise InvalidOption(
                f"table `{table}`: `{FILE_COMPRESSION_PER_LEVEL.key}` names compression `{name}`",
                hint=did_you_mean(name, FILE_COMPRESSION.choices),
            )
    for mode in _by_level(options, METADATA_STATS_MODE_PER_LEVEL).values():
        parse_stats_mode(mode)


def levels_named(options: Options) -> list[int]:
    """Levels of which a format or a compression is said."""
    return sorted({*_by_level(options, FILE_FORMAT_PER_LEVEL), *_by_level(options, FILE_COMPRESSION_PER_LEVEL)})


def _by_level(options: Options, option: Option[Names]) -> dict[int, str]:
    pairs = (item.partition(":") for item in options[option])
    return {int(level): value.strip().lower() for level, _, value in pairs}


__all__ = ["LevelRules", "check_level_rules", "levels_named"]
