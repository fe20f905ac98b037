"""`t$branches`: one row for each branch but the main one, by name."""

from __future__ import annotations

from lakebed.metadata.branches import branch_times
from lakebed.table.system.base import Column, SystemTable, TableState, each
from lakebed.table.system.texts import local_time_ms

_Branch = tuple[str, int]


def _branches(state: TableState) -> list[_Branch]:
    return sorted(branch_times(state.context.fileio, state.context.paths).items())


def _created_ms(state: TableState, branch: _Branch) -> int:
    """When the branch's directory was made; object stores have no directories, so there its schemas tell."""
    name, modified_ms = branch
    if modified_ms:
        return local_time_ms(modified_ms)
    schemas = state.context.fileio.list_directory(state.context.paths.on_branch(name).schema_directory)
    return local_time_ms(min((schema.modified_ms for schema in schemas), default=0))


BRANCHES = SystemTable[TableState, _Branch](
    "branches",
    _branches,
    (
        each("branch_name", "STRING NOT NULL", lambda branch: branch[0]),
        Column(
            "create_time",
            "TIMESTAMP(3) NOT NULL",
            lambda state, branches: [_created_ms(state, branch) for branch in branches],
        ),
    ),
)

__all__ = ["BRANCHES"]
