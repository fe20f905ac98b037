"""What a sync keeps of the past: rows that were deleted, every change, every version of a row.

A table of the source then has up to three tables in the lake: its newest state, its changes, its history. Each is a
table of the sync like any other, with commits, columns and troubles of its own; they only differ in what becomes of the
same changes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from lakebed.cdc.envelope import SourceName
from lakebed.cdc.routing import compiled, matches, spellings
from lakebed.cdc.rows import past_columns as past
from lakebed.cdc.rows.past_columns import PastColumn
from lakebed.errors import InvalidArgument, did_you_mean
from lakebed.records import dataclass

STATE: Final = "state"
CHANGES: Final = "changes"
HISTORY: Final = "history"
"""What a table of the lake holds: the newest rows, all changes, all versions of all rows."""

MARKS: Final = "marks"
"""In front of the name of a column: what tables say of themselves whose deleted rows stay."""

APPLY: Final = "apply"
MARK: Final = "mark"
_DELETES: Final = (APPLY, MARK)

_HISTORY: Final = (past.VALID_FROM, past.VALID_TO, past.IS_CURRENT, past.ROW_VERSION, past.TRANSACTION_ID)
_CHANGES: Final = (past.OP, past.CHANGED, past.TRANSACTION_ID, past.POSITION, past.CHANGE_NUMBER)


@dataclass(frozen=True, slots=True)
class Keeping:
    """What is kept. `audit` and `history` are patterns of tables, which must match a whole name; None for no table."""

    deletes: str = APPLY
    deleted_column: str = past.DELETED_AT
    audit: str | None = None
    audit_by_day: bool = False
    history: str | None = None
    prefix: str = ""
    """How names of the columns of audits and histories begin."""

    def __post_init__(self) -> None:
        if self.deletes not in _DELETES:
            raise InvalidArgument(f"deletes can not be {self.deletes!r}", hint=did_you_mean(self.deletes, _DELETES))
        if not isinstance(self.deleted_column, str) or not self.deleted_column:
            raise InvalidArgument(
                f"deleted_column is {self.deleted_column!r}", hint="name the column that says when a row was deleted"
            )
        if self.audit_by_day and self.audit is None:
            raise InvalidArgument("audit_by_day goes with an audit", hint="say of which tables with `audit`")
        for name in ("audit", "history"):
            pattern = getattr(self, name)
            if pattern is not None:
                compiled(pattern, name)

    @property
    def needs_times(self) -> bool:
        """Whether the source is to tell of each change which transaction made it, and when."""
        return self.deletes == MARK or self.audit is not None or self.history is not None

    def forms_of(self, source: SourceName) -> tuple[str, ...]:
        """Which tables a table of the source has. The state is the first: others look into its columns."""
        return (STATE, *self.beside(spellings(source)))

    def beside(self, names: Sequence[str]) -> tuple[str, ...]:
        """What is kept beside the newest rows of a table that is called so."""
        wanted = {CHANGES: self.audit, HISTORY: self.history}
        return tuple(form for form, pattern in wanted.items() if pattern is not None and matches(pattern, names))

    def columns(self, form: str) -> tuple[PastColumn, ...]:
        """The columns that a table has because of what it keeps."""
        if form == STATE:
            return (PastColumn(past.DELETED_AT, self.deleted_column),) if self.deletes == MARK else ()
        kinds: tuple[str, ...] = _HISTORY if form == HISTORY else _CHANGES
        if form == CHANGES and self.audit_by_day:
            kinds = (*kinds, past.CHANGED_ON)
        return tuple(PastColumn(kind, self.prefix + kind) for kind in kinds)

    def mark(self, form: str) -> str | None:
        """What a table says of itself in its options; nothing if it only has the newest rows."""
        if form == STATE:
            return f"{MARKS}:{self.deleted_column}" if self.deletes == MARK else None
        return form


def table_name(name: str, form: str) -> str:
    """The name of a table beside the one with the newest rows."""
    return name if form == STATE else f"{name}_{form}"


__all__ = ["APPLY", "CHANGES", "HISTORY", "MARK", "MARKS", "STATE", "Keeping", "table_name"]
