"""Branches: create, delete, rename, go on as one."""

from __future__ import annotations

from lakebed.metadata.paths import MAIN_BRANCH
from lakebed.sql.procedures.registry import DONE, TABLE, Kind, Parameter, Procedure, Rows, SqlLake

_BRANCH = Parameter("branch", required=True, aliases=("branch_name",))


def _create(lake: SqlLake, table: str, branch: str, tag: str | None = None, ignore_if_exists: bool = False) -> Rows:
    handle = lake.table(table)
    if not (ignore_if_exists and branch in handle.branches()):
        handle.create_branch(branch, tag)
    return DONE


def _delete(lake: SqlLake, table: str, branch: str) -> Rows:
    lake.table(table).delete_branch(*[name.strip() for name in branch.split(",") if name.strip()])
    return DONE


def _rename(lake: SqlLake, table: str, from_branch: str, to_branch: str) -> Rows:
    lake.table(table).rename_branch(from_branch, to_branch)
    return DONE


def _fast_forward(lake: SqlLake, table: str, branch: str) -> Rows:
    lake.table(table).fast_forward(branch)
    return DONE


def _merge(lake: SqlLake, table: str, source_branch: str, target_branch: str = MAIN_BRANCH) -> Rows:
    lake.table(table).merge_branch(source_branch, target_branch)
    return DONE


PROCEDURES = (
    Procedure(
        "create_branch",
        (TABLE, _BRANCH, Parameter("tag", aliases=("tag_name",)), Parameter("ignore_if_exists", Kind.FLAG)),
        _create,
    ),
    Procedure("delete_branch", (TABLE, _BRANCH), _delete),
    Procedure(
        "rename_branch",
        (TABLE, Parameter("from_branch", required=True), Parameter("to_branch", required=True)),
        _rename,
    ),
    Procedure("fast_forward", (TABLE, _BRANCH), _fast_forward),
    Procedure(
        "merge_branch",
        (TABLE, Parameter("source_branch", required=True), Parameter("target_branch")),
        _merge,
    ),
)
