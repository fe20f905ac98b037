"""A materialized table with another query takes the place of the one that was there.

The new one is computed beside the old one, then both are renamed. Whoever dies between the two renames leaves no table
of that name, but both of them: the new one says which table it replaces, so the next who looks for it ends the swap.
"""

from __future__ import annotations

from collections.abc import Callable

from lakebed.cleanup import on_failure
from lakebed.errors import AlreadyExists, NotFound
from lakebed.sql.session import SqlLake
from lakebed.views.store import Definition

_NEW, _OLD = "__new", "__old"


def swapped_in(lake: SqlLake, name: str, make: Callable[[str], None]) -> None:
    """Has a table made under another name, and gives it this one. If that fails, the table is what it was."""
    _clear_leftovers(lake, name)
    with on_failure(lambda: lake.drop_table(f"{name}{_NEW}", if_exists=True)):
        make(f"{name}{_NEW}")
        lake.rename_table(name, f"{name}{_OLD}")
    try:
        lake.rename_table(f"{name}{_NEW}", name)
    except (NotFound, AlreadyExists):  # somebody has ended the swap
        if not lake.has_table(name):
            raise
    lake.drop_table(f"{name}{_OLD}", if_exists=True)


def lasting_name(name: str) -> str:
    """The name, or the path, that a table which is being made in the place of another will have."""
    return name.removesuffix(_NEW)


def finish_swap(lake: SqlLake, name: str) -> bool:
    """Ends a swap whose process died between the renames; whether there was one."""
    if lake.has_table(name) or not _replaces(lake, f"{name}{_NEW}", f"{name}{_OLD}"):
        return False
    lake.rename_table(f"{name}{_NEW}", name)
    lake.drop_table(f"{name}{_OLD}", if_exists=True)
    return True


def finish_swaps(lake: SqlLake, database: str) -> None:
    """The same for all tables of a database."""
    names = set(lake.tables(database))
    for name in sorted(names):
        plain = name.removesuffix(_NEW)
        if plain != name and plain not in names and f"{plain}{_OLD}" in names:
            finish_swap(lake, f"{database}.{plain}")


def _clear_leftovers(lake: SqlLake, name: str) -> None:
    """Removes what a swap that did not begin, or did not end, has left beside a table."""
    if _replaces(lake, f"{name}{_NEW}", name):
        lake.drop_table(f"{name}{_NEW}")
    if _replaces(lake, name, f"{name}{_OLD}"):
        lake.drop_table(f"{name}{_OLD}")


def _replaces(lake: SqlLake, new: str, old: str) -> bool:
    """Whether both are there, and the first was made to replace the second."""
    if not (lake.has_table(new) and lake.has_table(old)):
        return False
    made, there = Definition.of(lake.table(new)), Definition.of(lake.table(old))
    return made is not None and there is not None and made.replaces == there.id


__all__ = ["finish_swap", "finish_swaps", "swapped_in"]
