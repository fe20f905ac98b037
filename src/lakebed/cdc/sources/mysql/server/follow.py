"""What is followed on a server and how: plain data that travels to Spark's workers as options."""

from __future__ import annotations

import json
import re
import zlib
from collections.abc import Mapping
from dataclasses import asdict, field, replace
from typing import Any, Final, Self

import pyarrow as pa
import pyarrow.compute as pc

from lakebed.cdc.envelope import SourceName
from lakebed.cdc.routing import TablePatterns, spellings
from lakebed.cdc.sources.mysql.server.catalog import SYSTEM_DATABASES
from lakebed.cdc.sources.mysql.server.mapping import modes_of
from lakebed.cdc.sources.mysql.settings import ServerSettings
from lakebed.errors import InvalidArgument, did_you_mean
from lakebed.records import dataclass

_OPTION: Final = "follow"
_POLICIES: Final = {
    "tables_without_key": ("fail", "skip"),
    "unsupported_types": ("fail", "skip"),
    "dropped_partitions": ("fail", "ignore"),
    "cascades": ("fail", "ignore"),
    "on_error": ("stop", "park", "dead-letter"),
}


@dataclass(frozen=True, slots=True)
class Follow:
    """Which tables, which types, how much at a time. Patterns match whole names; excluding wins.

    Tables are matched by their own name and by `database.table`. `zone` is the time zone in which TIMESTAMP columns are
    shown. `tables_without_key` and `unsupported_types` say what becomes of tables that can not be followed;
    `dropped_partitions` what happens when rows vanish with their partition, `cascades` what becomes of tables with rows
    that change by foreign keys (ON DELETE CASCADE): the log tells neither.
    """

    databases: str = ".*"
    including: str = ".*"
    excluding: str = ""
    only: TablePatterns = field(default_factory=TablePatterns)
    type_mapping: tuple[str, ...] = ()
    zone: str = "UTC"
    copy: bool = True
    replica_id: int = 0
    tables_without_key: str = "fail"
    unsupported_types: str = "fail"
    dropped_partitions: str = "fail"
    cascades: str = "fail"
    on_error: str = "stop"
    copy_chunk_rows: int = 100_000
    copy_chunks_per_batch: int = 8
    max_log_bytes_per_batch: int = 256 << 20
    tells_times: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "type_mapping", modes_of(self.type_mapping))
        for name, choices in _POLICIES.items():
            if getattr(self, name) not in choices:
                raise InvalidArgument(
                    f"`{name}` is `{getattr(self, name)}`", hint=did_you_mean(getattr(self, name), choices)
                )
        for name in ("databases", "including", "excluding"):
            _check_pattern(name, getattr(self, name))
        for name in ("copy_chunk_rows", "copy_chunks_per_batch", "max_log_bytes_per_batch"):
            if getattr(self, name) < 1:
                raise InvalidArgument(f"`{name}` is {getattr(self, name)}", hint="give a number above 0")
        if not 0 <= self.replica_id < 1 << 32:
            raise InvalidArgument(f"`replica_id` is {self.replica_id}", hint="give a number from 1 to 4294967295")
        _check_zone(self.zone)

    def matches(self, database: str, table: str) -> bool:
        """Whether a table is one of those to follow."""
        if database in SYSTEM_DATABASES or not re.fullmatch(self.databases, database):
            return False
        source = SourceName(database, "", table)
        if not self.only.follow(source):
            return False
        names = spellings(source)
        if self.excluding and any(re.fullmatch(self.excluding, name) for name in names):
            return False
        return any(re.fullmatch(self.including, name) for name in names)

    def with_replica_id(self, settings: ServerSettings) -> Self:
        """With a number under which the server knows this reader: the same each time, another for other readers."""
        if self.replica_id:
            return self
        seed = f"{settings}|{self.databases}|{self.including}|{self.excluding}"
        return replace(self, replica_id=1 << 31 | zlib.crc32(seed.encode()) & ~0xFF & 0x7FFFFFFF)

    def options(self) -> dict[str, str]:
        """As options of a Spark reader."""
        return {_OPTION: json.dumps(asdict(self), ensure_ascii=False)}

    @classmethod
    def from_options(cls, options: Mapping[str, str]) -> Self:
        """Inverse of `options`."""
        body: dict[str, Any] = json.loads(options.get(_OPTION, "{}"))
        body["type_mapping"] = tuple(body.get("type_mapping", ()))
        body["only"] = TablePatterns(**body.get("only", {}))
        return cls(**body)


def _check_zone(zone: str) -> None:
    try:
        pc.local_timestamp(pa.scalar(0, pa.timestamp("us", tz=zone or "none")))
    except pa.ArrowException as error:
        raise InvalidArgument(
            f"`zone` is `{zone}`, which is no time zone that is known here",
            hint="give a name such as Europe/Berlin or UTC",
        ) from error


def _check_pattern(name: str, pattern: str) -> None:
    try:
        re.compile(pattern)
    except re.error as error:
        raise InvalidArgument(
            f"`{name}` is no regular expression: {error}", hint="escape special characters with a backslash"
        ) from error


__all__ = ["Follow"]
