"""The changes a schema can go through, and the way from one version to the next.

Changes are plain data, so they can be queued, logged and sent. `apply_changes` is pure; `store` makes the result
durable. Columns are named by a text or by a path into nested columns: `("r", "x")` or `"r.x"` is member x of ROW r,
`("a", "element", "x")` reaches through an ARRAY and `("m", "value", "x")` through a MAP.
"""

from __future__ import annotations

from collections.abc import Sequence

from lakebed.records import dataclass
from lakebed.schema.draft import After, Before, First, Last, Name, Position, SchemaDraft
from lakebed.schema.table_schema import TableSchema
from lakebed.types.arrow import as_data_type
from lakebed.types.logical import DataType

__all__ = [
    "AddColumn",
    "After",
    "Before",
    "DropColumn",
    "DropPrimaryKey",
    "First",
    "Last",
    "Position",
    "RemoveOption",
    "RenameColumn",
    "SchemaChange",
    "SetOption",
    "UpdateColumnComment",
    "UpdateColumnDefault",
    "UpdateColumnNullability",
    "UpdateColumnPosition",
    "UpdateColumnType",
    "UpdateComment",
    "apply_changes",
]


@dataclass(frozen=True, slots=True)
class AddColumn:
    """A new, nullable column. Rows written before read NULL, whatever the default; it counts for later writes only."""

    name: Name
    type: DataType
    """As text (`DECIMAL(10, 2)`), as a pyarrow type, or as a logical type."""
    comment: str | None = None
    default: str | None = None
    position: Position | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "type", as_data_type(self.type, str(self.name)))


@dataclass(frozen=True, slots=True)
class DropColumn:
    """Take a column away. Its id is never used again: a later column of that name does not see the old values."""

    name: Name


@dataclass(frozen=True, slots=True)
class RenameColumn:
    """Call a column otherwise. Keys and options that name it follow."""

    name: Name
    new_name: str


@dataclass(frozen=True, slots=True)
class UpdateColumnType:
    """Give a column another type. Old values are cast when read."""

    name: Name
    type: DataType
    """As for `AddColumn`."""
    keep_nullability: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "type", as_data_type(self.type, str(self.name)))


@dataclass(frozen=True, slots=True)
class UpdateColumnNullability:
    """Allow or forbid NULL in a column."""

    name: Name
    nullable: bool


@dataclass(frozen=True, slots=True)
class UpdateColumnComment:
    """Describe a column."""

    name: Name
    comment: str | None


@dataclass(frozen=True, slots=True)
class UpdateColumnPosition:
    """Move a column among its neighbours."""

    name: Name
    position: Position


@dataclass(frozen=True, slots=True)
class UpdateColumnDefault:
    """The text of the value that writers put in place of NULL from now on; None takes it away."""

    name: Name
    default: str | None


@dataclass(frozen=True, slots=True)
class SetOption:
    """Set an option."""

    key: str
    value: str


@dataclass(frozen=True, slots=True)
class RemoveOption:
    """Go back to an option's default."""

    key: str


@dataclass(frozen=True, slots=True)
class UpdateComment:
    """Describe the table."""

    comment: str | None


@dataclass(frozen=True, slots=True)
class DropPrimaryKey:
    """Make it a table without a primary key, as long as nothing is written."""


SchemaChange = (
    AddColumn
    | DropColumn
    | RenameColumn
    | UpdateColumnType
    | UpdateColumnNullability
    | UpdateColumnComment
    | UpdateColumnPosition
    | UpdateColumnDefault
    | SetOption
    | RemoveOption
    | UpdateComment
    | DropPrimaryKey
)


def apply_changes(
    schema: TableSchema, changes: Sequence[SchemaChange], *, has_snapshots: bool, time_millis: int
) -> TableSchema:
    """The schema after the changes, as its next version. All of them apply, or an error says why none does."""
    draft = SchemaDraft(schema, has_snapshots)
    for change in changes:
        _apply(draft, change)
    return draft.finished(time_millis)


def _apply(draft: SchemaDraft, change: SchemaChange) -> None:
    match change:
        case AddColumn(name, data_type, comment, default, position):
            draft.add_column(name, data_type, comment, default, position)
        case DropColumn(name):
            draft.drop_column(name)
        case RenameColumn(name, new_name):
            draft.rename_column(name, new_name)
        case UpdateColumnType(name, data_type, keep_nullability):
            draft.update_type(name, data_type, keep_nullability)
        case UpdateColumnNullability(name, nullable):
            draft.update_nullability(name, nullable)
        case UpdateColumnComment(name, comment):
            draft.update_column_comment(name, comment)
        case UpdateColumnPosition(name, position):
            draft.update_position(name, position)
        case UpdateColumnDefault(name, default):
            draft.update_default(name, default)
        case SetOption(key, value):
            draft.set_option(key, value)
        case RemoveOption(key):
            draft.remove_option(key)
        case UpdateComment(comment):
            draft.update_comment(comment)
        case DropPrimaryKey():
            draft.drop_primary_key()
