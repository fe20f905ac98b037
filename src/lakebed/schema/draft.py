"""The next schema while changes are being applied to it, one method per kind of change.

Each method checks its own rule and edits the draft; `finished` checks the whole. Changes apply one after the other, so
a later one sees the result of an earlier one. The schema the draft began with is never touched.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from lakebed.errors import AlreadyExists, InvalidOption, InvalidSchema
from lakebed.records import dataclass
from lakebed.schema import column_options as co
from lakebed.schema.casts import is_castable
from lakebed.schema.field_paths import Path, edited_members, edited_type, position_of, shown, to_path
from lakebed.schema.later import check_may_change
from lakebed.schema.table_schema import CURRENT_VERSION, TableSchema
from lakebed.schema.validation import (
    check_column_name,
    check_default,
    check_option_text,
    check_structure,
    keys_from_options,
    with_key_nullability,
)
from lakebed.types.logical import DataField, DataType, TypeRoot, is_root, renumbered, walk_fields, with_nullable


@dataclass(frozen=True, slots=True)
class First:
    """In front of all other columns."""


@dataclass(frozen=True, slots=True)
class Last:
    """Behind all other columns."""


@dataclass(frozen=True, slots=True)
class After:
    """Right behind the named column."""

    name: str


@dataclass(frozen=True, slots=True)
class Before:
    """Right in front of the named column."""

    name: str


Position = First | Last | After | Before
Name = str | Path
_Edit = Callable[[list[DataField]], None]


class SchemaDraft:
    """A schema on its way to the next version."""

    def __init__(self, base: TableSchema, has_snapshots: bool) -> None:
        self._base = base
        self._has_snapshots = has_snapshots
        self._fields = base.fields
        used_ids = (column.id for column in walk_fields(base.fields))
        self._highest_id = max([base.highest_field_id, *used_ids])  # some writers forget to raise the former
        self._partition_keys = base.partition_keys
        self._primary_keys = base.primary_keys
        self._options = dict(base.options)
        self._comment = base.comment

    def finished(self, time_millis: int) -> TableSchema:
        """The next version, checked as a whole."""
        partition, primary, options = keys_from_options(self._partition_keys, self._primary_keys, self._options)
        fields = with_key_nullability(self._fields, primary, options)
        check_structure(fields, partition, primary, options)
        next_id = self._base.id + 1
        parts = (next_id, fields, self._highest_id, partition, primary, options, self._comment)
        changed = TableSchema(*parts, time_millis, CURRENT_VERSION)
        if self._has_snapshots:
            check_may_change(self._base, changed)
        return changed

    # --- columns ---

    def add_column(
        self, name: Name, data_type: DataType, comment: str | None, default: str | None, position: Position | None
    ) -> None:
        """Old rows read NULL in a new column, so it has to be nullable."""
        path = to_path(name, self._fields)
        if not data_type.nullable:
            raise InvalidSchema(
                f"column `{shown(path)}` can not be added as NOT NULL", hint="rows written before read NULL: allow it"
            )
        self._check_new_name(path, path[-1])
        column = DataField(
            self._next_id(), path[-1], renumbered(data_type, self._next_id), comment, default_value=default
        )
        if default is not None:
            self._check_default(path, column)

        def insert(members: list[DataField]) -> None:
            members.append(column)
            target = position or (self._default_position() if len(path) == 1 else Last())
            _move(members, path, target)

        self._edit(path, insert)

    def drop_column(self, name: Name) -> None:
        """Keys stay, columns that options name stay, and at least one column stays."""
        path = to_path(name, self._fields)
        if len(path) == 1:
            self._refuse_key(path, "dropped")
            self._refuse_mentioned(path[0])
        else:
            self._refuse_mentioned_member(path, "dropped")

        def drop(members: list[DataField]) -> None:
            del members[position_of(members, path)]
            if not members:
                raise InvalidSchema(
                    f"column `{shown(path)}` is the only one left", hint="add another column first, or drop the table"
                )

        self._edit(path, drop)

    def rename_column(self, name: Name, new_name: str) -> None:
        """Keys and options follow the new name. Partition columns keep theirs: directories are named after them."""
        path = to_path(name, self._fields)
        if len(path) == 1 and path[0] in self._partition_keys:
            raise InvalidSchema(
                f"partition column `{path[0]}` can not be renamed", hint="copy the rows to a new table instead"
            )
        self._check_new_name(path, new_name)
        if len(path) > 1:
            self._refuse_mentioned_member(path, "renamed")

        def rename(members: list[DataField]) -> None:
            index = position_of(members, path)
            if is_root(members[index].type, TypeRoot.BLOB):
                raise InvalidSchema(f"BLOB column `{shown(path)}` can not be renamed", hint="add a new column instead")
            members[index] = replace(members[index], name=new_name)

        self._edit(path, rename)
        if len(path) == 1:
            self._primary_keys = tuple(new_name if key == path[0] else key for key in self._primary_keys)
            self._options = co.renamed_in_options(self._options, path[0], new_name)

    def update_type(self, name: Name, new_type: DataType, keep_nullability: bool) -> None:
        """Old files are cast when read, so there has to be a cast; keys keep their type."""
        path = to_path(name, self._fields)
        if len(path) == 1:
            self._refuse_key(path, "given another type")
        explicit = not co.is_true(self._options, co.EXPLICIT_CASTS_DISABLED)

        def change(old: DataType) -> DataType:
            new = with_nullable(new_type, old.nullable) if keep_nullability else new_type
            self._check_nullability(path, old, new.nullable)
            if not is_castable(old, new, explicit):
                raise InvalidSchema(
                    f"column `{shown(path)}` can not change from {old} to {new}", hint=_cast_hint(old, new)
                )
            return new

        self._fields = edited_type(self._fields, path, change)
        if len(path) == 1:
            check_default(self._fields[position_of(self._fields, path)])

    def update_nullability(self, name: Name, nullable: bool) -> None:
        """NOT NULL can be taken back; requiring it for existing rows needs an option."""
        path = to_path(name, self._fields)
        if nullable and path[0] in self._primary_keys and len(path) == 1:
            raise InvalidSchema(
                f"primary key column `{path[0]}` can not be made nullable", hint="keys identify rows; keep it NOT NULL"
            )

        def change(old: DataType) -> DataType:
            self._check_nullability(path, old, nullable)
            return with_nullable(old, nullable)

        self._fields = edited_type(self._fields, path, change)

    def update_column_comment(self, name: Name, comment: str | None) -> None:
        """Comments change freely."""
        self._replace_member(to_path(name, self._fields), lambda column: replace(column, description=comment))

    def update_default(self, name: Name, default: str | None) -> None:
        """The default counts for rows written from now on; None takes it away."""
        path = to_path(name, self._fields)
        if default is not None:
            column = self._fields[position_of(self._fields, path[:1])]
            self._check_default(path, replace(column, default_value=default))
        self._replace_member(path, lambda column: replace(column, default_value=default))

    def update_position(self, name: Name, position: Position) -> None:
        """Order is for users only; files are read by id."""
        path = to_path(name, self._fields)
        self._edit(path, lambda members: _move(members, path, position))

    # --- the table ---

    def set_option(self, key: str, value: str) -> None:
        """Set an option to a text."""
        check_option_text(key, value)
        self._check_option(key, value)
        self._options[key] = value

    def remove_option(self, key: str) -> None:
        """Go back to the option's default; nothing happens when it is not set."""
        if self._current_option(key) is not None:
            self._check_option(key, None)
        self._options.pop(key, None)

    def update_comment(self, comment: str | None) -> None:
        """Describe the table."""
        self._comment = comment

    def drop_primary_key(self) -> None:
        """Rows are kept by their key, so it can go only while there are none. Its columns stay NOT NULL."""
        if not self._primary_keys:
            raise InvalidSchema("the table has no primary key to drop", hint="leave the change out")
        if self._has_snapshots:
            raise InvalidSchema(
                f"the primary key ({', '.join(self._primary_keys)}) can not be dropped: the table has data",
                hint="copy the rows to a new table instead",
            )
        self._primary_keys = ()

    # --- rules and tools ---

    def _next_id(self) -> int:
        self._highest_id += 1
        return self._highest_id

    def _edit(self, path: Path, edit: _Edit) -> None:
        self._fields = edited_members(self._fields, path, edit)

    def _replace_member(self, path: Path, replacement: Callable[[DataField], DataField]) -> None:
        def change(members: list[DataField]) -> None:
            index = position_of(members, path)
            members[index] = replacement(members[index])

        self._edit(path, change)

    def _default_position(self) -> Position:
        if co.is_true(self._options, co.ADD_BEFORE_PARTITION) and self._partition_keys:
            return Before(next(column.name for column in self._fields if column.name in self._partition_keys))
        return Last()

    def _check_new_name(self, path: Path, name: str) -> None:
        if len(path) == 1:
            check_column_name(name)

        def check(members: list[DataField]) -> None:
            if any(member.name == name for member in members):
                taken = shown((*path[:-1], name))
                raise AlreadyExists(f"column `{taken}` exists already", hint="choose another name")

        self._edit(path, check)

    def _check_default(self, path: Path, column: DataField) -> None:
        if len(path) > 1:
            raise InvalidSchema(
                f"`{shown(path)}` is inside a nested column and can not have a DEFAULT",
                hint="give it to a whole column",
            )
        check_default(column)

    def _check_nullability(self, path: Path, old: DataType, nullable: bool) -> None:
        if old.nullable and not nullable and co.is_true(self._options, co.NULL_TO_NOT_NULL_DISABLED, default=True):
            raise InvalidSchema(
                f"column `{shown(path)}` can not be made NOT NULL: rows may hold NULL",
                hint=f"if none does, set option `{co.NULL_TO_NOT_NULL_DISABLED}` to false first",
            )

    def _refuse_key(self, path: Path, what: str) -> None:
        for kind, keys in (("partition", self._partition_keys), ("primary key", self._primary_keys)):
            if path[0] in keys:
                raise InvalidSchema(
                    f"{kind} column `{path[0]}` can not be {what}", hint="copy the rows to a new table instead"
                )

    def _refuse_mentioned(self, column: str) -> None:
        for mention in co.column_mentions(self._options):
            if column in mention.columns:
                raise InvalidSchema(
                    f"column `{column}` can not be dropped: option `{mention.key}` names it",
                    hint=f"change or remove option `{mention.key}` first",
                )

    def _refuse_mentioned_member(self, path: Path, what: str) -> None:
        for mention in co.member_mentions(self._options, path[0]):
            if path[-1] in mention.columns:
                raise InvalidSchema(
                    f"column `{shown(path)}` can not be {what}: option `{mention.key}` names it",
                    hint=f"change or remove option `{mention.key}` first",
                )

    def _current_option(self, key: str) -> str | None:
        """The option's value; keys are kept apart from options but may be asked for as such."""
        keys = {co.PRIMARY_KEY: self._primary_keys, co.PARTITION: self._partition_keys}.get(key)
        return ",".join(keys) if keys else self._options.get(key)

    def _check_option(self, key: str, new: str | None) -> None:
        if key == co.PATH:
            raise InvalidOption(f"option `{key}` can not change", hint="move the table with its catalog")
        old = self._current_option(key)
        if key in (co.PRIMARY_KEY, co.PARTITION):
            new = ",".join(co.split_names(new or "")) or None
            if new != old and (old is not None or self._has_snapshots):
                has = f"({old})" if old is not None else "rows without"
                raise InvalidOption(
                    f"option `{key}` can not change: the table has {has}", hint="copy the rows to a new table instead"
                )


def _move(members: list[DataField], path: Path, position: Position) -> None:
    """Put the member that the path names into its new place."""
    member = members.pop(position_of(members, path))
    match position:
        case First():
            index = 0
        case Last():
            index = len(members)
        case After(name) | Before(name) if name == member.name:
            raise InvalidSchema(f"column `{shown(path)}` can not be placed next to itself", hint="name another column")
        case After(name):
            index = position_of(members, (*path[:-1], name)) + 1
        case Before(name):
            index = position_of(members, (*path[:-1], name))
    members.insert(index, member)


def _cast_hint(old: DataType, new: DataType) -> str:
    if is_castable(old, new, explicit=True):
        return f"this may lose information; set option `{co.EXPLICIT_CASTS_DISABLED}` to false to allow it"
    return "no cast exists; change parts of a nested column by their path, or add a column of the new type"
