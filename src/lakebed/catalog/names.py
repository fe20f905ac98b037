"""Names of databases and tables, and what may be written in them.

Names become directories, so nothing that a file system or a path could read differently is let through.
"""

from __future__ import annotations

from lakebed.catalog.listing import DEFAULT_DATABASE
from lakebed.definition.context import VIEWS
from lakebed.errors import InvalidArgument, NotFound, did_you_mean
from lakebed.records import dataclass
from lakebed.table.system import SYSTEM_TABLES

SYSTEM_DATABASE = "sys"
"""Holds tables about all tables; nobody else's name."""
_FORBIDDEN = set("./\\:*?\"<>|%#$`'") | {chr(code) for code in range(32)} | {chr(127)}
_BRANCH = "branch_"


@dataclass(frozen=True, slots=True)
class TableName:
    """A table's full name, the branch of it that is meant, and the view or system table of it (`ro`), if one."""

    database: str
    table: str
    branch: str = "main"
    view: str = ""

    @property
    def is_table_itself(self) -> bool:
        """Whether this names neither a branch nor a view."""
        return self.branch == "main" and not self.view

    def __str__(self) -> str:
        branch = "" if self.branch == "main" else f"$branch_{self.branch}"
        return f"{self.database}.{self.table}{branch}{'$' if self.view else ''}{self.view}"


def check_name(name: object, what: str) -> str:
    """The name itself, if it can be one."""
    if not isinstance(name, str):
        raise InvalidArgument(f"{what} name {name!r} is no text", hint=f"pass the {what}'s name as a string")
    bad = sorted(_FORBIDDEN & set(name))
    if not name or name != name.strip() or bad:
        why = f"contains {bad[0]!r}" if bad else "begins or ends with a blank" if name else "is empty"
        raise InvalidArgument(
            f"{what} name {name!r} {why}", hint="use letters, digits, `_` and `-`; it becomes a directory's name"
        )
    if len(name.encode()) > 200:
        raise InvalidArgument(f"{what} name {name[:20]!r}… is too long", hint="use at most 200 bytes")
    return name


def check_branch_name(name: str) -> str:
    """The branch name itself, if it can be one."""
    check_name(name, "branch")
    if name == "main" or name.isdigit():
        raise InvalidArgument(
            f"branch name {name!r} is reserved", hint="use a name that is neither `main` nor a number"
        )
    return name


def parse_table_name(text: object, current_database: str) -> TableName:
    """`t`, `db.t`, `db.t$branch_b`, `db.t$files` or `db.t$branch_b$files`; backticks around a part are allowed."""
    if not isinstance(text, str):
        raise InvalidArgument(f"table name {text!r} is no text", hint="pass it like `db.table`")
    parts = [_unquoted(part) for part in text.split(".")]
    if len(parts) > 2:
        raise InvalidArgument(f"table name {text!r} has {len(parts)} parts", hint="write `database.table` or `table`")
    database = check_name(parts[0], "database") if len(parts) == 2 else current_database
    table, *suffixes = parts[-1].split("$")
    check_name(table, "table")
    branch = "main"
    if suffixes and suffixes[0].startswith(_BRANCH):
        branch = check_branch_name(suffixes.pop(0).removeprefix(_BRANCH))
    if not suffixes:
        return TableName(database, table, branch)
    known = [*VIEWS, *SYSTEM_TABLES]
    if len(suffixes) == 1 and suffixes[0].lower() in known:
        return TableName(database, table, branch, suffixes[0].lower())
    raise NotFound(
        f"`{text}` names no system table",
        hint=f"{did_you_mean(suffixes[-1], known)}; there are " + ", ".join(sorted(known)),
    )


def _unquoted(part: str) -> str:
    return part[1:-1] if len(part) > 2 and part[0] == part[-1] == "`" else part


__all__ = [
    "DEFAULT_DATABASE",
    "SYSTEM_DATABASE",
    "TableName",
    "check_branch_name",
    "check_name",
    "parse_table_name",
]
