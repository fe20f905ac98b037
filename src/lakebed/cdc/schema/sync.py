"""From what a source says of a table to the changes that bring a table of the lake in line with it.

Pure: nothing is read or written here. Columns are added at the end and may be NULL, types grow, comments follow.
Renamed, dropped and incompatible columns go by policy. No row is ever left out: whatever the policy, a row that comes
under an old or a new description has its place.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import field, replace
from typing import Final

from lakebed.cdc.envelope import STREAM, Description, NameChanges, SourceColumn
from lakebed.cdc.schema.links import ColumnLink, Links, link_key
from lakebed.cdc.schema.types import TypeRules, evolved
from lakebed.errors import InvalidArgument, InvalidSchema, did_you_mean
from lakebed.records import dataclass
from lakebed.schema.casts import is_castable
from lakebed.schema.changes import (
    AddColumn,
    DropColumn,
    RenameColumn,
    SchemaChange,
    UpdateColumnComment,
    UpdateColumnNullability,
    UpdateColumnType,
    UpdateComment,
    apply_changes,
)
from lakebed.schema.table_schema import TableSchema
from lakebed.schema.type_changes import type_changes
from lakebed.types.logical import STRING, DataField, with_nullable

KEEP: Final = "keep"
FOLLOW: Final = "follow"
FAIL: Final = "fail"
IGNORE: Final = "ignore"
AS_STRING: Final = "string"
_COLUMN_POLICIES: Final = (KEEP, FOLLOW, FAIL)
_MOST_NAMES: Final = 8
_TYPE_POLICIES: Final = (FAIL, IGNORE, AS_STRING)


@dataclass(frozen=True, slots=True)
class Policies:
    """What happens to columns that the source renames, drops, or gives a type that has nothing in common with ours.

    `keep`: a renamed column is a new one beside the old, a dropped one stays and gets NULL. `follow`: the lake's column
    is renamed or dropped. `fail`: the sync stops before the change. An incompatible type lets the sync stop (`fail`),
    leaves the column as it is, with NULL for values it can not hold (`ignore`), or makes it text (`string`).
    """

    rename: str = KEEP
    drop: str = KEEP
    incompatible: str = FAIL
    types: TypeRules = field(default_factory=TypeRules)

    def __post_init__(self) -> None:
        for name, value, known in (
            ("rename", self.rename, _COLUMN_POLICIES),
            ("drop", self.drop, _COLUMN_POLICIES),
            ("incompatible", self.incompatible, _TYPE_POLICIES),
        ):
            if value not in known:
                raise InvalidArgument(f"policy `{name}` can not be {value!r}", hint=did_you_mean(value, known))


@dataclass(frozen=True, slots=True)
class SchemaStep:
    """What one description of the source makes of a table."""

    schema: TableSchema
    """The columns after the changes."""
    changes: tuple[SchemaChange, ...]
    links: Links
    fields: Mapping[str, int]
    """The field behind each column of the source, by its name there."""
    added: Mapping[int, str]
    """Fields that are new, with the value that rows have which are there already."""
    keys: Mapping[str, str]
    """The key of each column's link, by its name in the source."""


@dataclass(frozen=True, slots=True)
class Naming:
    """What the lake says about names: its table, how columns are written, which ones the source has no part in."""

    table: str = ""
    lower_case: bool = False
    reserved: frozenset[str] = frozenset()


def plan_step(
    schema: TableSchema,
    links: Links,
    description: Description,
    phase: str,
    policies: Policies,
    identifier: int,
    *,
    seen: Collection[str] = (),
    naming: Naming | None = None,
) -> SchemaStep:
    """The changes after which rows under the description fit. The copy only adds: it may be ahead of the log.

    `identifier` is that of the commit, `seen` are the keys of links that the log has named before within it.
    """
    planner = _Planner(schema, dict(links), policies, naming or Naming())
    if description.changes is not None:
        planner.change_names(description.changes, description)
    planner.recognise(description)
    if phase == STREAM and description.changes is None and not description.partial:
        planner.drop(description, identifier, seen)
        planner.rename(description)
    planner.take(description, identifier if phase == STREAM else None)
    planner.describe(description)
    return planner.step()


class _Planner:
    """The schema and the links on their way to what a description asks for."""

    def __init__(
        self,
        schema: TableSchema,
        links: dict[str, ColumnLink],
        policies: Policies,
        naming: Naming,
    ) -> None:
        self._schema = schema
        self._links = links
        self._policies = policies
        self._naming = naming
        self._left_behind: set[str] = set()
        self._keys: dict[str, str] = {}
        self._changes: list[SchemaChange] = []
        self._fields: dict[str, int] = {}
        self._added: dict[int, str] = {}

    def step(self) -> SchemaStep:
        """The result."""
        return SchemaStep(self._schema, tuple(self._changes), self._links, self._fields, self._added, self._keys)

    def recognise(self, description: Description) -> None:
        """Which link each column has.

        A column whose id the source does not know any more is known by the name that it has here, or had.
        """
        ids = {link_key(column) for column in description.columns if column.id is not None}
        if ids and not ids & self._links.keys() and any(key.isdigit() for key in self._links):
            self._take_over(description)
        by_name = {known.name: key for key, link in self._links.items() if (known := self._field(link)) is not None}
        names = {self._name(column) for column in description.columns}
        for key, link in self._links.items():
            known = self._field(link)
            if known is not None and key not in ids and known.name not in names:
                by_name = dict.fromkeys(link.former_names, key) | by_name
        for column in description.columns:
            key, name = link_key(column), self._name(column)
            if column.id is None and key not in self._links:
                key = by_name.get(name, key)
            elif column.id is not None and key not in self._links and f"={column.name}" in self._links:
                self._links[key] = self._links.pop(f"={column.name}")
            self._keys[column.name] = key

    def change_names(self, changes: NameChanges, description: Description) -> None:
        """What a statement did to columns that are known by their names alone."""
        if changes.is_new_table:
            self._take_over(description)
        for name in changes.dropped:
            key = self._key_of(name)
            if key is not None:
                self._let_go(key, self._links[key])
        moved: dict[str, ColumnLink] = {}
        renamed: list[tuple[DataField, str]] = []
        for old, new in changes.renamed:
            key = self._key_of(old)
            known = self._field(self._links[key]) if key is not None else None
            if key is None or known is None or old == new:
                continue
            self._refuse_renaming(known, new)
            link = self._links.pop(key)
            if self._policies.rename == FOLLOW:
                moved[f"={new}"] = link
                renamed.append((known, self._lowered(new)))
            else:
                self._left_behind.add(new)
        self._links |= moved
        self._rename_all(renamed)

    def _key_of(self, name: str) -> str | None:
        """The key of a column's link; servers that know columns by name take any case for the same."""
        return next((key for key in self._links if key.lower() == f"={name}".lower()), None)

    def _take_over(self, description: Description) -> None:
        """Another table has the name now. Its columns take the places of those that are called the same.

        One that has nothing in common with its namesake is another column. Those that are left have gone.
        """
        names = {known.name: key for key, link in self._links.items() if (known := self._field(link)) is not None}
        taken: dict[str, ColumnLink] = {}
        for column in description.columns:
            key, known = names.get(self._name(column)), self._by_name(self._name(column))
            if key is None or known is None:
                continue
            is_other = evolved(known.type, column.type, self._policies.types) is None
            if not is_other or self._is_key(known) or self._policies.drop != FOLLOW:
                taken[link_key(column)] = replace(self._links.pop(key), streamed_in=None, default=None)
        for key, link in list(self._links.items()):
            self._let_go(key, link)
        self._links = taken

    def drop(self, description: Description, identifier: int, seen: Collection[str]) -> None:
        """Columns that the log knew and does not know any more.

        Of one that only the copy knew, the log may simply be older, unless it knows a column that came later: sources
        that number columns number them in the order in which they came.
        """
        present = {self._keys[column.name] for column in description.columns}
        newest = max((column.id for column in description.columns if column.id is not None), default=-1)
        for key, link in list(self._links.items()):
            is_known = key in seen or link.is_streamed_before(identifier) or (key.isdigit() and int(key) < newest)
            if key not in present and is_known:
                self._let_go(key, link)

    def _let_go(self, key: str, link: ColumnLink) -> None:
        """A column is gone from the source."""
        column = self._field(link)
        if column is None:
            return
        if self._is_key(column):
            raise self._refusal(
                f"key column `{column.name}` is gone from the source",
                "its rows can not be told apart any more: sync the table into a new one",
            )
        if self._policies.drop == FAIL:
            raise self._refusal(
                f"column `{column.name}` is gone from the source",
                "policy `drop` is `fail`; start again with `keep` or `follow`",
            )
        if self._policies.drop == FOLLOW:
            self._apply(DropColumn((column.name,)))
            del self._links[key]

    def rename(self, description: Description) -> None:
        """Columns that the source calls otherwise now."""
        renamed: list[tuple[DataField, str]] = []
        for column in description.columns:
            link = self._links.get(self._keys[column.name])
            known = self._field(link) if link is not None else None
            if known is None or known.name == self._name(column):
                continue
            self._refuse_renaming(known, column.name)
            if self._policies.rename == FOLLOW:
                renamed.append((known, self._name(column)))
                assert link is not None
                former = (known.name, *(name for name in link.former_names if name != known.name))
                self._links[self._keys[column.name]] = replace(link, former_names=former[:_MOST_NAMES])
            else:
                del self._links[self._keys[column.name]]
                self._left_behind.add(column.name)
        self._rename_all(renamed)

    def _refuse_renaming(self, known: DataField, name: str) -> None:
        if self._policies.rename == FAIL:
            raise self._refusal(
                f"column `{known.name}` is called `{name}` in the source now",
                "policy `rename` is `fail`; start again with `keep` or `follow`",
            )

    def _rename_all(self, renamed: list[tuple[DataField, str]]) -> None:
        """Gives columns their new names, all at once: names may have been exchanged."""
        wanted = {name for _, name in renamed}
        for number, (known, _) in enumerate(renamed):
            if known.name in wanted:
                between = f"_lakebed_renamed_{number}"
                self._apply(RenameColumn((known.name,), between))
                renamed[number] = (replace(known, name=between), renamed[number][1])
        for known, name in renamed:
            if name in self._schema.field_names:
                raise self._refusal(
                    f"column `{known.name}` shall be called `{name}` as in the source, and another column is",
                    f"rename or drop column `{name}` of the lake first",
                )
            self._apply(RenameColumn((known.name,), name))

    def take(self, description: Description, streamed_in: int | None) -> None:
        """Every column of the description has its place afterwards, and a type that holds its values."""
        for column in description.columns:
            if self._name(column) in self._naming.reserved:
                raise self._refusal(
                    f"column `{column.name}` of the source is called like one that the sync adds",
                    "give the computed or metadata column another name",
                )
            key = self._keys[column.name]
            link = self._links.get(key)
            known = self._field(link) if link is not None else None
            if known is None:
                known = self._by_name(self._name(column))
                link = None
            if known is None:
                known = self._add(column)
                link = ColumnLink(known.id, self._added.get(known.id))
            elif description.typed:
                self._adapt(known, column)
            link = link or ColumnLink(known.id)
            if streamed_in is not None and link.streamed_in is None:
                link = replace(link, streamed_in=streamed_in)
            self._links[key] = link
            self._fields[column.name] = known.id

    def describe(self, description: Description) -> None:
        """The comment of the table."""
        if description.comment is not None and description.comment != self._schema.comment:
            self._apply(UpdateComment(description.comment))

    # --- one column ----------------------------------------------------------------------------------------------

    def _add(self, column: SourceColumn) -> DataField:
        name = self._name(column)
        self._apply(AddColumn((name,), with_nullable(column.type, True), column.comment))
        added = self._schema.field(name)
        if column.default is not None and column.name not in self._left_behind:
            self._added[added.id] = column.default
        return added

    def _adapt(self, known: DataField, column: SourceColumn) -> None:
        wanted = evolved(known.type, column.type, self._policies.types)
        if self._is_key(known):
            if wanted is None or with_nullable(wanted, True) != with_nullable(known.type, True):
                self._key_type(known, column)
        elif wanted is None:
            self._incompatible(known, column)
        else:
            for change in type_changes(self._schema, (known.name,), wanted, True):
                self._apply(change)
            if wanted.nullable and not known.type.nullable:
                self._apply(UpdateColumnNullability((known.name,), True))
        if column.comment is not None and column.comment != known.description:
            self._apply(UpdateColumnComment((known.name,), column.comment))

    def _key_type(self, known: DataField, column: SourceColumn) -> None:
        """Keys keep their type; with `ignore`, values that fit it are still written, and others stop the sync."""
        if self._policies.incompatible != IGNORE or not is_castable(column.type, known.type, explicit=True):
            raise self._refusal(
                f"key column `{known.name}` is {known.type} and becomes {column.type} in the source",
                "keys can not be given another type: sync the table into a new one, or set `incompatible` to `ignore` "
                "if all values still fit",
            )

    def _incompatible(self, known: DataField, column: SourceColumn) -> None:
        policy = self._policies.incompatible
        if policy == FAIL:
            raise self._refusal(
                f"column `{known.name}` is {known.type} and becomes {column.type} in the source, which nothing holds "
                "together",
                "set `incompatible` to `string` to keep both as text, or to `ignore` to keep the column as it is",
            )
        if policy == AS_STRING and known.type != STRING:
            if not is_castable(known.type, STRING, explicit=True):
                raise self._refusal(
                    f"column `{known.name}` of type {known.type} can not be made text", "set `incompatible` to `ignore`"
                )
            text = with_nullable(STRING, known.type.nullable or column.type.nullable)
            self._apply(UpdateColumnType((known.name,), text))

    # --- tools ---------------------------------------------------------------------------------------------------

    def _name(self, column: SourceColumn) -> str:
        return self._lowered(column.name)

    def _lowered(self, name: str) -> str:
        return name.lower() if self._naming.lower_case else name

    def _field(self, link: ColumnLink) -> DataField | None:
        return next((known for known in self._schema.fields if known.id == link.field_id), None)

    def _is_key(self, column: DataField) -> bool:
        return column.name in (*self._schema.primary_keys, *self._schema.partition_keys)

    def _by_name(self, name: str) -> DataField | None:
        return next((known for known in self._schema.fields if known.name == name), None)

    def _apply(self, change: SchemaChange) -> None:
        changed = apply_changes(self._schema, [change], has_snapshots=True, time_millis=self._schema.time_millis)
        self._schema = replace(changed, id=self._schema.id)
        self._changes.append(change)

    def _refusal(self, message: str, hint: str) -> InvalidSchema:
        where = f"table `{self._naming.table}`: " if self._naming.table else ""
        return InvalidSchema(where + message, hint=hint)


__all__ = ["AS_STRING", "FAIL", "FOLLOW", "IGNORE", "KEEP", "Policies", "SchemaStep", "plan_step"]
