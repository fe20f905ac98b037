"""What the target of a streaming INSERT takes: which kinds of rows are sent to it, and which queries it can follow.

As Flink does it: old values are sent where rows of a key are added up, so that they can be taken back, and where the
changelog is what comes in; elsewhere the new row of a key is enough. A system outside of the lake takes new rows only,
the last row of each key, or every change.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import Enum
from typing import Protocol

from lakebed.definition.changelog_rules import INPUT, normalises_input, producer
from lakebed.definition.context import TableContext
from lakebed.errors import InvalidArgument, Unsupported
from lakebed.merge.aggregates import Aggregate
from lakebed.merge.aggregation import Aggregation
from lakebed.merge.deduplicate import Deduplicate
from lakebed.merge.first_row import FirstRow
from lakebed.merge.partial_update import PartialUpdate
from lakebed.options import (
    IGNORE_DELETE,
    PARTIAL_UPDATE_REMOVE_RECORD_ON_DELETE,
    ROWKIND_FIELD,
    SEQUENCE_FIELD,
)
from lakebed.records import dataclass
from lakebed.views.inserts.flows import Flow
from lakebed.views.plan.judge import STACK

_STACK = "keep the query as a materialized table"


class Sink(Protocol):
    """What takes the changes of a query's result."""

    @property
    def key(self) -> tuple[str, ...]:
        """Columns by which it tells rows apart; none if it does not."""

    @property
    def takes_old(self) -> bool:
        """Whether -U rows are sent to it."""

    @property
    def keeps_one(self) -> bool:
        """Whether the last row of a key is the row of that key."""

    def only_grows(self, flows: Sequence[Flow]) -> bool:
        """Whether it follows the query only because nothing is ever taken back."""

    def check(self, flows: Sequence[Flow]) -> None:
        """Raises if the changes of a query can be such that it does not take them."""

    def replaces(self, flows: Sequence[Flow]) -> bool:
        """Whether groups of the query are sent as they are now, whatever they were. Raises if the query can not be
        followed at all."""


@dataclass(frozen=True, slots=True)
class TableSink:
    """A table of the lake."""

    context: TableContext

    @property
    def name(self) -> str:
        """Of the table."""
        return self.context.name

    @property
    def key(self) -> tuple[str, ...]:
        """Its primary key."""
        return tuple(self.context.schema.primary_keys)

    @property
    def takes_old(self) -> bool:
        """Whether -U rows are sent to it."""
        engine, options = self.context.merge_engine, self.context.options
        if isinstance(engine, Deduplicate):
            return producer(options) == INPUT and not normalises_input(options)
        return bool(self._functions())

    @property
    def keeps_one(self) -> bool:
        """Whether the last row of a key is the row of that key."""
        return bool(self.key) and isinstance(self.context.merge_engine, Deduplicate)

    def only_grows(self, flows: Sequence[Flow]) -> bool:
        """Whether it follows the query only because nothing is ever taken back."""
        return not self.key or (self.keeps_one and not _has_one_row(self.key, flows))

    def _functions(self) -> Mapping[str, Aggregate]:
        """The functions by which values of a key are put together."""
        engine = self.context.merge_engine
        return engine.aggregates if isinstance(engine, Aggregation | PartialUpdate) and self.key else {}

    # --- which queries -------------------------------------------------------------------------------------------

    def check(self, flows: Sequence[Flow]) -> None:
        """Raises if the changes of a query can be such that the table does not take them."""
        options = self.context.options
        grows = all(flow.grows_only for flow in flows)
        if not self.key:
            self._check_without_key(grows)
            return
        _check_key(self.name, self.key, flows)
        if not grows and options[ROWKIND_FIELD] is not None:
            raise Unsupported(
                f"INSERT INTO {self.name}: column `{options[ROWKIND_FIELD]}` says what rows do, and rows of the query "
                "may change or go",
                hint=f"drop `{ROWKIND_FIELD.key}`, or insert from tables to which rows are only appended",
            )
        if self.keeps_one:
            self._check_one_row(flows, grows)
        if options[IGNORE_DELETE] or grows:
            return
        for name, function in self._functions().items():
            if function.settings.ignore_retract or (function.can_retract and not function.forgets_early_retracts):
                continue
            how = ", unless it is alone in its commit" if function.can_retract else ""
            raise Unsupported(
                f"INSERT INTO {self.name}: rows of the query may change or go, and function `{function.name}` of "
                f"column `{name}` can not take a value back{how}",
                hint=f"set `fields.{name}.ignore-retract` to true, so that values are only added or replaced; or "
                "choose another function",
            )
        if not all(flow.keeps(self.key) for flow in flows):
            self._check_deletes()

    def _check_without_key(self, grows: bool) -> None:
        if not grows:
            raise Unsupported(
                f"INSERT INTO {self.name}: rows of the query may change or go, and a table without a primary key only "
                "takes new ones",
                hint=f"give the table a primary key, or {_STACK}, which has one",
            )

    def _check_one_row(self, flows: Sequence[Flow], grows: bool) -> None:
        """The query has one row of each key, or a column says which of several is the last."""
        if _has_one_row(self.key, flows) or (grows and self.context.options[SEQUENCE_FIELD]):
            return
        hint = _same_key(self.key)
        if grows:
            hint += f"; or set `{SEQUENCE_FIELD.key}`, which says which row of a key is the last"
        elif len(flows) > 1:
            hint = "write one INSERT for each part, or choose merge engine `partial-update` or `aggregation`"
        raise _not_apart(self.name, self.key, flows, hint)

    def _check_deletes(self) -> None:
        engine, options = self.context.merge_engine, self.context.options
        if isinstance(engine, FirstRow):
            raise Unsupported(
                f"INSERT INTO {self.name}: rows of the query may go, and merge engine `first-row` takes none back",
                hint=f"set `{IGNORE_DELETE.key}` to true to keep them, or choose merge engine `deduplicate`",
            )
        if not isinstance(engine, PartialUpdate) or engine.groups or options[PARTIAL_UPDATE_REMOVE_RECORD_ON_DELETE]:
            return
        raise Unsupported(
            f"INSERT INTO {self.name}: rows of the query may go, and nothing says what that means for the table",
            hint=f"set `{IGNORE_DELETE.key}` to keep such rows, `{PARTIAL_UPDATE_REMOVE_RECORD_ON_DELETE.key}` to "
            "remove the row of the key, or sequence groups to take back columns",
        )

    # --- what can not be followed --------------------------------------------------------------------------------

    def replaces(self, flows: Sequence[Flow]) -> bool:
        """Whether groups of the query are sent as they are now, whatever they were: values that depend on the order
        of rows can not be computed again. Raises if the query can not be followed at all."""
        if all(flow.plan.judged.full is None for flow in flows):
            return False
        can_replace = self.keeps_one and len(flows) == 1 and flows[0].replaced_by(self.key) is not None
        if can_replace and flows[0].judged_replacing.full is None:
            return True
        raise _not_followed(self.name, flows)


class Takes(Enum):
    """What a system outside of the lake takes."""

    NEW_ROWS = "new rows only"
    LAST_ROWS = "the last row of each key"
    CHANGES = "changes of each key, with old rows"
    ANYTHING = "changes, with old rows"


@dataclass(frozen=True, slots=True)
class OtherSink:
    """A system outside of the lake. What it was sent can not be read again."""

    name: str
    takes: Takes
    key: tuple[str, ...] = ()
    remedy: str = ""
    """What to do if it takes new rows only, and the query has others."""

    @property
    def takes_old(self) -> bool:
        """Whether -U rows are sent to it."""
        return self.takes in (Takes.CHANGES, Takes.ANYTHING)

    @property
    def keeps_one(self) -> bool:
        """Whether the last row of a key is the row of that key."""
        return bool(self.key)

    def only_grows(self, flows: Sequence[Flow]) -> bool:
        """Whether it takes new rows only."""
        return self.takes is Takes.NEW_ROWS

    def check(self, flows: Sequence[Flow]) -> None:
        """Raises if the query has changes that it does not take, or several rows of a key."""
        if self.takes is Takes.NEW_ROWS and not all(flow.grows_only for flow in flows):
            raise Unsupported(
                f"INSERT INTO {self.name}: rows of the query may change or go, and the table only takes new ones",
                hint=self.remedy,
            )
        if not self.key:
            return
        _check_key(self.name, self.key, flows)
        if not _has_one_row(self.key, flows):
            hint = _same_key(self.key) if len(flows) == 1 else "write one INSERT for each part, each into its own table"
            raise _not_apart(self.name, self.key, flows, hint)

    def replaces(self, flows: Sequence[Flow]) -> bool:
        """Never: which groups it has been sent is not known. Raises if the query can not be followed otherwise."""
        if any(flow.plan.judged.full is not None for flow in flows):
            raise _not_followed(self.name, flows)
        return False


# --- what both ask of a query -----------------------------------------------------------------------------------------


def _has_one_row(key: Sequence[str], flows: Sequence[Flow]) -> bool:
    """Whether the query has no more than one row for each key."""
    return len(flows) == 1 and flows[0].is_key(key)


def _check_key(name: str, key: Sequence[str], flows: Sequence[Flow]) -> None:
    missing = [each for each in key if each not in flows[0].names]
    if missing:
        raise InvalidArgument(
            f"INSERT INTO {name}: column `{missing[0]}` of its primary key gets no value",
            hint="name it in the list of columns, and select it",
        )


def _same_key(key: Sequence[str]) -> str:
    return f"give the table the key that the query has, or group by ({', '.join(key)})"


def _not_apart(name: str, key: Sequence[str], flows: Sequence[Flow], hint: str) -> InvalidArgument:
    known = "UNION ALL may give a key twice" if len(flows) > 1 else flows[0].key_in_words()
    return InvalidArgument(
        f"INSERT INTO {name}: ({', '.join(key)}) is not known to tell the rows of the query apart: {known}", hint=hint
    )


def _not_followed(name: str, flows: Sequence[Flow]) -> Unsupported:
    full = next(each for flow in flows if (each := flow.plan.judged.full) is not None)
    stacked = f"{_STACK}, and insert from that"
    return Unsupported(
        f"INSERT INTO {name} can not follow the query: {full.what}: {full.reason}",
        hint=stacked if full.remedy in ("", STACK) else f"{full.remedy}; or {stacked}",
    )
