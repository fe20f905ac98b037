"""Which tables of a source are followed, and what they are called in the lake. Pure functions of names.

Patterns are regular expressions that must match a whole name; `excluding` wins over `including`. A table is matched by
its own name and by its full one, so `orders`, `public\\.orders` and `shop\\.public\\.orders` all work.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field
from typing import Final

from lakebed.cdc.envelope import SourceName
from lakebed.errors import InvalidArgument, did_you_mean
from lakebed.records import dataclass

KEEP_CASE: Final = "keep"
LOWER_CASE: Final = "lower"
_CASES: Final = (KEEP_CASE, LOWER_CASE)


@dataclass(frozen=True, slots=True)
class Target:
    """A table of the lake."""

    database: str
    table: str
    form: str = "state"
    """What it holds of its source: see `lakebed.cdc.rows.keeping`."""

    def __str__(self) -> str:
        return f"{self.database}.{self.table}"


@dataclass(frozen=True, slots=True)
class TablePatterns:
    """Which tables are followed. Sources are told, so that a database need not send what is left out here."""

    including: str = ".*"
    excluding: str | None = None
    including_databases: str = ".*"
    excluding_databases: str | None = None

    def follow(self, source: SourceName) -> bool:
        """Whether the patterns let the table through."""
        databases = [source.database, f"{source.database}.{source.schema}"] if source.schema else [source.database]
        tables = spellings(source)
        if not matches(self.including_databases, databases) or not matches(self.including, tables):
            return False
        if self.excluding_databases is not None and matches(self.excluding_databases, databases):
            return False
        return self.excluding is None or not matches(self.excluding, tables)


@dataclass(frozen=True)
class Routing:
    """From tables of a source to tables of a database of the lake.

    `table` sends everything that is followed into one table. `mapping` gives names of its own to some tables; others
    get `prefixes_db`/`suffixes_db` of their database, else `prefix`/`suffix`. With `merge_shards` tables of one name in
    several databases or schemas share one table; without it their names begin with that of the database.
    """

    database: str
    table: str | None = None
    including: str = ".*"
    excluding: str | None = None
    including_databases: str = ".*"
    excluding_databases: str | None = None
    prefix: str = ""
    suffix: str = ""
    prefixes_db: Mapping[str, str] = field(default_factory=dict)
    suffixes_db: Mapping[str, str] = field(default_factory=dict)
    mapping: Mapping[str, str] = field(default_factory=dict)
    merge_shards: bool = True
    case: str = KEEP_CASE

    def __post_init__(self) -> None:
        if self.case not in _CASES:
            raise InvalidArgument(f"case {self.case!r} is unknown", hint=did_you_mean(self.case, _CASES))
        for name in ("including", "excluding", "including_databases", "excluding_databases"):
            pattern = getattr(self, name)
            if pattern is not None:
                compiled(pattern, name)

    @property
    def lowers(self) -> bool:
        """Whether names of tables and columns are written in lower case."""
        return self.case == LOWER_CASE

    @property
    def patterns(self) -> TablePatterns:
        """Which tables are followed."""
        return TablePatterns(self.including, self.excluding, self.including_databases, self.excluding_databases)

    def follows(self, source: SourceName) -> bool:
        """Whether the patterns let the table through."""
        return self.patterns.follow(source)

    def target(self, source: SourceName) -> Target | None:
        """The table of the lake; None for a table that is not followed."""
        if not self.follows(source):
            return None
        return Target(self.database, self._table_name(source) if self.table is None else self.table)

    def _table_name(self, source: SourceName) -> str:
        mapped = next((self.mapping[name] for name in spellings(source) if name in self.mapping), None)
        if mapped is not None:
            return mapped
        name = source.table if self.merge_shards else "_".join((source.schema or source.database, source.table))
        database = source.database
        prefix = self.prefixes_db.get(database, self.prefix)
        suffix = self.suffixes_db.get(database, self.suffix)
        return f"{prefix}{name.lower() if self.lowers else name}{suffix}"


def spellings(source: SourceName) -> list[str]:
    """How a table may be called in patterns: alone, with its schema, with its database, with both."""
    names = [source.table]
    if source.schema:
        names += [f"{source.schema}.{source.table}", f"{source.database}.{source.schema}.{source.table}"]
    return [*names, f"{source.database}.{source.table}"]


def matches(pattern: str, names: Iterable[str]) -> bool:
    """Whether the pattern matches one of the names as a whole."""
    expression = compiled(pattern)
    return any(expression.fullmatch(name) is not None for name in names)


def compiled(pattern: str, name: str = "pattern") -> re.Pattern[str]:
    """The regular expression, or an error that says what is wrong with it."""
    try:
        return re.compile(pattern)
    except (re.error, TypeError) as error:
        raise InvalidArgument(
            f"{name} {pattern!r} is no regular expression: {error}", hint="write it like `orders|customers_.*`"
        ) from error


@dataclass(frozen=True, slots=True)
class PatternValue:
    """Something for all tables that a pattern matches."""

    pattern: str
    values: Mapping[str, str]


def values_for(source: SourceName, patterns: Sequence[PatternValue]) -> dict[str, str]:
    """What all matching patterns say together; later ones win."""
    found: dict[str, str] = {}
    for each in patterns:
        if matches(each.pattern, spellings(source)):
            found |= each.values
    return found


__all__ = [
    "KEEP_CASE",
    "LOWER_CASE",
    "PatternValue",
    "Routing",
    "TablePatterns",
    "Target",
    "compiled",
    "matches",
    "spellings",
    "values_for",
]
