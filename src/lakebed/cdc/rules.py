"""What a user wants of a sync, checked and in one place: where tables go, what is added to them, what may change."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import field, replace
from typing import Final

from lakebed.cdc.envelope import Description, SourceColumn
from lakebed.cdc.formats.mysql_types import (
    BIGINT_UNSIGNED_TO_BIGINT,
    CHAR_TO_STRING,
    LONGTEXT_TO_BYTES,
    TINYINT1_NOT_BOOL,
    TO_STRING,
)
from lakebed.cdc.routing import PatternValue, Routing
from lakebed.cdc.rows.computed import ComputedColumn
from lakebed.cdc.rows.keeping import Keeping
from lakebed.cdc.rows.metadata import MetadataColumn
from lakebed.cdc.rows.past_columns import PastColumn
from lakebed.cdc.schema.sync import Policies
from lakebed.cdc.schema.types import TypeRules
from lakebed.errors import InvalidArgument, did_you_mean
from lakebed.records import dataclass
from lakebed.types.logical import STRING, with_nullable

TO_NULLABLE: Final = "to-nullable"
NON_STRING_TO_STRING: Final = "allow-non-string-to-string"
DECIMAL_NO_CHANGE: Final = "decimal-no-change"
_MODES: Final = (
    TO_NULLABLE, NON_STRING_TO_STRING, DECIMAL_NO_CHANGE,
    BIGINT_UNSIGNED_TO_BIGINT, CHAR_TO_STRING, LONGTEXT_TO_BYTES, TINYINT1_NOT_BOOL, TO_STRING,
)  # fmt: skip

DELETE_ROWS: Final = "delete"
IGNORE_TRUNCATE: Final = "ignore"
FAIL_TRUNCATE: Final = "fail"
_TRUNCATES: Final = (DELETE_ROWS, IGNORE_TRUNCATE, FAIL_TRUNCATE)


STOP: Final = "stop"
PARK: Final = "park"
DEAD_LETTER: Final = "dead-letter"
_ON_ERROR: Final = (STOP, PARK, DEAD_LETTER)
"""What a table's trouble does: end the sync, leave that table as it is while the others go on, or the same for all but
rows with values that do not fit, which go to a table of their own."""
DEAD_LETTERS: Final = "lakebed_dead_letters"
"""The table of the lake for such rows."""


def type_modes(given: Collection[str]) -> frozenset[str]:
    """Modes of the type mapping, with hyphens or underscores."""
    modes = frozenset(mode.strip().lower().replace("_", "-") for mode in given)
    for mode in sorted(modes):
        if mode not in _MODES:
            raise InvalidArgument(f"type mapping `{mode}` is unknown", hint=did_you_mean(mode, _MODES))
    return modes


def type_rules(modes: Collection[str]) -> TypeRules:
    """What the modes say about changes of types."""
    return TypeRules(NON_STRING_TO_STRING in modes, DECIMAL_NO_CHANGE in modes)


@dataclass(frozen=True)
class SyncRules:
    """All rules of one sync.

    `primary_keys` and `partition_keys` take the place of the source's. A table without any key is skipped, unless the
    sync `is_for_one_table`: then it is an error. `merge_shards` says whether several tables may share one; None if
    nobody has said so.
    """

    routing: Routing
    policies: Policies = field(default_factory=Policies)
    primary_keys: tuple[str, ...] = ()
    takes_source_keys: bool = True
    partition_keys: tuple[str, ...] = ()
    computed: tuple[ComputedColumn, ...] = ()
    metadata: tuple[MetadataColumn | PastColumn, ...] = ()
    table_conf: tuple[PatternValue, ...] = ()
    modes: frozenset[str] = frozenset()
    truncate: str = DELETE_ROWS
    skips_incompatible: bool = False
    is_for_one_table: bool = False
    merge_shards: bool | None = None
    on_error: str = STOP
    keeping: Keeping = field(default_factory=Keeping)

    def __post_init__(self) -> None:
        if self.on_error not in _ON_ERROR:
            raise InvalidArgument(f"on_error can not be {self.on_error!r}", hint=did_you_mean(self.on_error, _ON_ERROR))
        if self.truncate not in _TRUNCATES:
            raise InvalidArgument(
                f"truncate can not be {self.truncate!r}", hint=did_you_mean(self.truncate, _TRUNCATES)
            )

    def of_form(self, form: str) -> SyncRules:
        """The rules of tables that hold the newest rows, changes, or versions: each has columns of its own."""
        added = self.keeping.columns(form)
        return replace(self, metadata=(*self.metadata, *added)) if added else self

    @property
    def added_names(self) -> tuple[str, ...]:
        """Columns that the sync adds."""
        return (*(column.name for column in self.computed), *(column.name for column in self.metadata))

    def mapped(self, description: Description) -> Description:
        """The description with the types that the lake is to have."""
        return replace(description, columns=tuple(self._mapped(column, description) for column in description.columns))

    def _mapped(self, column: SourceColumn, description: Description) -> SourceColumn:
        data_type = column.type
        if TO_STRING in self.modes:
            data_type = with_nullable(STRING, data_type.nullable)
        if TO_NULLABLE in self.modes and column.name not in (*description.primary_key, *self.primary_keys):
            data_type = with_nullable(data_type, True)
        return replace(column, type=data_type)

    def name(self, column: str) -> str:
        """How a column of the source is called in the lake."""
        return column.lower() if self.routing.lowers else column


__all__ = [
    "DEAD_LETTER",
    "DEAD_LETTERS",
    "DECIMAL_NO_CHANGE",
    "DELETE_ROWS",
    "FAIL_TRUNCATE",
    "IGNORE_TRUNCATE",
    "NON_STRING_TO_STRING",
    "STOP",
    "TO_NULLABLE",
    "SyncRules",
    "type_modes",
    "type_rules",
]
