"""What may change later in a table that has rows: one question for columns and options alike.

`judged` compares two versions of a schema and says of every difference what it asks for. It does not matter who made
the later one: an ALTER that is about to be published, a handle with options of its own, or another engine. The rules of
options stand in `options.later`, those of columns here, both as tables: cases from top to bottom, the first that
applies counts. The reference page is made from them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from enum import Enum
from typing import Final

from lakebed.errors import InvalidOption, InvalidSchema, LakebedError
from lakebed.options import BUCKET, FIELD_SEQUENCE_GROUP, MERGE_ENGINE, SEQUENCE_FIELD, Options
from lakebed.options.later import Later, changed_options
from lakebed.records import dataclass
from lakebed.schema import column_options as co
from lakebed.schema.table_schema import TableSchema
from lakebed.schema.type_steps import folds_alike, keeps_order, keeps_values, may_not_fit
from lakebed.types.logical import DataField, same_ignoring_nullability

_COPY: Final = "copy the rows to a new table instead"


class Difference(Enum):
    """Kinds of differences between two versions of a schema, in the words of the reference page."""

    ADDED = "column added"
    DROPPED = "column dropped"
    RENAMED = "column renamed"
    MOVED = "columns in another order"
    RETYPED = "column given another type"
    REQUIRED = "NULL forbidden"
    RELAXED = "NULL allowed"
    COMMENTED = "comment changed"
    DEFAULTED = "default changed"
    PRIMARY_KEY = "primary key changed"
    PARTITIONS = "partition columns changed"


@dataclass(frozen=True, slots=True)
class ColumnChange:
    """One difference: the column before and after, and the tables it belongs to."""

    difference: Difference
    old: DataField | None
    new: DataField | None
    before: TableSchema
    after: TableSchema

    @property
    def name(self) -> str:
        """What the column is called now, or was called."""
        column = self.new or self.old
        return column.name if column else ""

    @property
    def is_primary(self) -> bool:
        """Whether it is part of the primary key."""
        return self.old is not None and self.old.name in self.before.primary_keys

    @property
    def is_partition(self) -> bool:
        """Whether partitions are told apart by it."""
        return self.old is not None and self.old.name in self.before.partition_keys

    @property
    def is_bucket_key(self) -> bool:
        """Whether its hash says in which bucket a row lies."""
        return self.old is not None and self.old.name in co.split_names(self.before.options.get(co.BUCKET_KEY, ""))

    @property
    def orders_rows(self) -> bool:
        """Whether it decides which of two rows, or of two parts of them, is the newer."""
        options = Options(self.before.options)
        groups = (name for names in options.fields_with(FIELD_SEQUENCE_GROUP) for name in names)
        return self.old is not None and self.old.name in {*(options[SEQUENCE_FIELD] or ()), *groups}

    @property
    def is_folded(self) -> bool:
        """Whether stored values of it are still to be folded, or chosen by not being null."""
        engine = Options(self.before.options)[MERGE_ENGINE]
        return bool(self.before.primary_keys) and engine in ("aggregation", "partial-update")


def _types(judge: Callable[..., bool], wanted: bool) -> Callable[[ColumnChange], bool]:
    def applies(change: ColumnChange) -> bool:
        assert change.old is not None
        assert change.new is not None
        return judge(change.old.type, change.new.type) is wanted

    return applies


def _both(*conditions: Callable[[ColumnChange], bool]) -> Callable[[ColumnChange], bool]:
    return lambda change: all(condition(change) for condition in conditions)


@dataclass(frozen=True, slots=True)
class ColumnCase:
    """What a difference asks for under some condition, and why. `when` is the condition in words; empty: always."""

    later: Later
    reason: str
    when: str = ""
    applies: Callable[[ColumnChange], bool] = lambda change: True
    instead: str = _COPY


COLUMN_RULES: Final[Mapping[Difference, tuple[ColumnCase, ...]]] = {
    Difference.ADDED: (
        ColumnCase(
            Later.NEVER,
            "rows that are stored have no value for it",
            "as NOT NULL",
            lambda change: change.new is not None and not change.new.type.nullable,
            "allow NULL",
        ),
        ColumnCase(Later.FREE, "rows that are stored read NULL, whatever the default"),
    ),
    Difference.DROPPED: (
        ColumnCase(
            Later.NEVER,
            "rows are found by it",
            "of the primary key or the partitions",
            lambda change: change.is_primary or change.is_partition,
        ),
        ColumnCase(
            Later.FREE,
            "columns are matched by their ids, and one of the same name is another column. One that an option names "
            "can not be dropped before the option is changed, which is judged by itself",
        ),
    ),
    Difference.RENAMED: (
        ColumnCase(Later.NEVER, "directories bear its name", "a partition column", lambda change: change.is_partition),
        ColumnCase(Later.FREE, "columns are matched by their ids; keys and options that name it follow"),
    ),
    Difference.MOVED: (ColumnCase(Later.FREE, "columns are matched by their ids"),),
    Difference.RETYPED: (
        ColumnCase(
            Later.NEVER,
            "files are sorted, and rows found, by its values as they are stored",
            "of the primary key or the partitions",
            lambda change: change.is_primary or change.is_partition,
        ),
        ColumnCase(
            Later.EMPTY,
            "it is a bucket key, whose hash would change, and rows be looked for in other buckets than they lie in",
            "a bucket key",
            lambda change: change.is_bucket_key,
        ),
        ColumnCase(
            Later.EMPTY,
            "its values would have another order, as texts `9` comes after `10`, and older rows win over newer ones",
            "it orders rows (`sequence.field` or a sequence group), and the order of values changes",
            _both(lambda change: change.orders_rows, _types(keeps_order, False)),
            "change the option that names it first, or " + _COPY,
        ),
        ColumnCase(
            Later.COMPACTION,
            "rows would be ordered, and stored values folded, as values of the new type; they must fit, too",
            "the merge engine is `aggregation` or `partial-update`, or it orders rows; unless whole numbers or texts "
            "get wider",
            lambda change: (
                (change.is_folded and not _types(folds_alike, True)(change))
                or (change.orders_rows and not _types(keeps_values, True)(change))
            ),
        ),
        ColumnCase(
            Later.FITTING,
            "old values are cast when they are read: one that does not fit would be shown as another, as NULL, or "
            "make the table unreadable",
            "to a type that does not hold all values of the old one",
            _types(may_not_fit, True),
        ),
        ColumnCase(
            Later.FREE,
            "every value of the old type is one of the new type, or is cut as asked for (text to a length, seconds to "
            "fewer digits, a value to its text)",
        ),
    ),
    Difference.REQUIRED: (
        ColumnCase(
            Later.FITTING,
            "a NULL that is stored would be shown in a column that has none. Needs "
            "`alter-column-null-to-not-null.disabled` = false",
        ),
    ),
    Difference.RELAXED: (
        ColumnCase(
            Later.NEVER,
            "keys identify rows",
            "of the primary key",
            lambda change: change.is_primary,
            "keep it NOT NULL",
        ),
        ColumnCase(Later.FREE, "stored rows have a value"),
    ),
    Difference.COMMENTED: (ColumnCase(Later.FREE, "is for people"),),
    Difference.DEFAULTED: (ColumnCase(Later.FREE, "counts for rows written from now on"),),
    Difference.PRIMARY_KEY: (ColumnCase(Later.EMPTY, "files are sorted, and rows merged, by it"),),
    Difference.PARTITIONS: (ColumnCase(Later.EMPTY, "files lie in directories named after them"),),
}
"""What a change of columns asks for."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """What one difference asks for: `what` names it as in an error, `column` is set if it is one of a column."""

    later: Later
    what: str
    """As in `option `bucket` can not change from 1 to -1`, without the first words of the sentence."""
    step: str
    reason: str
    instead: str
    column: ColumnChange | None = None
    key: str = ""
    """The option's key; empty for a column."""

    def refusal(self, because: str = "once the table has snapshots") -> LakebedError:
        """The error for a change that can not be made."""
        kind = InvalidOption if self.column is None else InvalidSchema
        return kind(f"{self.what} can not {self.step} {because}: {self.reason}", hint=self.instead)

    @property
    def must_fit(self) -> bool:
        """Whether stored values of the column have to be looked at first."""
        change = self.column
        if change is None or change.old is None or change.new is None:
            return False
        if change.difference is Difference.RETYPED:
            return may_not_fit(change.old.type, change.new.type)
        return change.difference is Difference.REQUIRED


def judged(before: TableSchema, after: TableSchema) -> list[Verdict]:
    """What every difference between two versions asks for; free ones are left out."""
    found = [*_judged_columns(before, after), *_judged_options(before, after)]
    return [verdict for verdict in found if verdict.later is not Later.FREE]


def check_may_change(before: TableSchema, after: TableSchema) -> None:
    """Raises if a table that has snapshots can not go from one version to the other, whatever is done first."""
    for verdict in judged(before, after):
        if verdict.later in (Later.EMPTY, Later.NEVER):
            raise verdict.refusal()


def handle_verdicts(schema: TableSchema, options: Mapping[str, str]) -> list[Verdict]:
    """The same for options that one handle has set on top of a table: what it does must fit what others do."""
    together = Options(schema.options).with_overrides(options).raw
    found = [_shared(verdict) for verdict in _of_options(schema.options, together, schema)]
    return [verdict for verdict in found if verdict.later is not Later.FREE]


def _shared(verdict: Verdict) -> Verdict:
    """What all handles have to agree on, although a table may change it at any time."""
    if verdict.key != BUCKET.key:
        return verdict
    reason = "all who write must agree on the number of buckets, by which rows are found again"
    instead = "leave it out; ALTER TABLE changes it for all, and a rescale brings the rows to their new buckets"
    return replace(verdict, later=Later.NEVER, reason=reason, instead=instead)


def differences(before: TableSchema, after: TableSchema) -> Iterator[ColumnChange]:
    """Every way in which columns and keys differ. Columns are matched by their ids."""

    def change(difference: Difference, old: DataField | None = None, new: DataField | None = None) -> ColumnChange:
        return ColumnChange(difference, old, new, before, after)

    olds = {field.id: field for field in before.fields}
    news = {field.id: field for field in after.fields}
    for field_id, old in olds.items():
        new = news.get(field_id)
        if new is None:
            yield change(Difference.DROPPED, old)
            continue
        if new.name != old.name:
            yield change(Difference.RENAMED, old, new)
        if not same_ignoring_nullability(old.type, new.type):
            yield change(Difference.RETYPED, old, new)
        if old.type.nullable != new.type.nullable:
            yield change(Difference.RELAXED if new.type.nullable else Difference.REQUIRED, old, new)
        if old.description != new.description:
            yield change(Difference.COMMENTED, old, new)
        if old.default_value != new.default_value:
            yield change(Difference.DEFAULTED, old, new)
    for field_id, new in news.items():
        if field_id not in olds:
            yield change(Difference.ADDED, None, new)
    if [i for i in olds if i in news] != [i for i in news if i in olds]:
        yield change(Difference.MOVED)
    renamed = {old.name: news[field_id].name for field_id, old in olds.items() if field_id in news}
    if tuple(renamed.get(name, name) for name in before.primary_keys) != after.primary_keys:
        yield change(Difference.PRIMARY_KEY)
    if tuple(renamed.get(name, name) for name in before.partition_keys) != after.partition_keys:
        yield change(Difference.PARTITIONS)


def under_names_of(before: TableSchema, after: TableSchema) -> dict[str, str]:
    """The options of one version with its columns called as in a later one."""
    names = {field.id: field.name for field in after.fields}
    moved = [(field.name, names[field.id]) for field in before.fields if names.get(field.id, field.name) != field.name]
    options = dict(before.options)
    # Two columns may have swapped names: none may get its new one while another still bears it.
    for number, (old, _) in enumerate(moved):
        options = co.renamed_in_options(options, old, f"\0{number}")
    for number, (_, new) in enumerate(moved):
        options = co.renamed_in_options(options, f"\0{number}", new)
    return options


def _judged_columns(before: TableSchema, after: TableSchema) -> Iterator[Verdict]:
    for change in differences(before, after):
        case = next(case for case in COLUMN_RULES[change.difference] if case.applies(change))
        yield Verdict(case.later, *_told(change), case.reason, case.instead, change)


def _told(change: ColumnChange) -> tuple[str, str]:
    column = f"column `{change.name}`"
    match change.difference:
        case Difference.RETYPED:
            assert change.old is not None
            assert change.new is not None
            return column, f"change from {change.old.type} to {change.new.type}"
        case Difference.PRIMARY_KEY:
            return "the primary key", "change"
        case Difference.PARTITIONS:
            return "the partition columns", "change"
        case Difference.REQUIRED:
            return column, "be made NOT NULL"
        case Difference.RELAXED:
            return column, "be made nullable"
        case difference:
            return column, f"be {difference.value.removeprefix('column ')}"


def _judged_options(before: TableSchema, after: TableSchema) -> Iterator[Verdict]:
    yield from _of_options(under_names_of(before, after), after.options, after)


def _of_options(before: Mapping[str, str], after: Mapping[str, str], schema: TableSchema) -> Iterator[Verdict]:
    has_key, is_partitioned = bool(schema.primary_keys), bool(schema.partition_keys)
    for change, case in changed_options(before, after, has_key=has_key, is_partitioned=is_partitioned):
        step = f"change from {change.shown(change.before)} to {change.shown(change.after)}"
        yield Verdict(case.later, f"option `{change.key}`", step, case.reason, case.instead, key=change.key)


__all__ = [
    "COLUMN_RULES",
    "ColumnCase",
    "ColumnChange",
    "Difference",
    "Verdict",
    "check_may_change",
    "differences",
    "handle_verdicts",
    "judged",
    "under_names_of",
]
