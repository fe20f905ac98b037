"""The branches of a table: lines of history beside the main one, with metadata of their own and shared data files."""

from __future__ import annotations

from lakebed.fileio.base import FileIO
from lakebed.metadata.paths import MAIN_BRANCH, TablePaths
from lakebed.metadata.stores import MetadataStores

_PREFIX = "branch-"


def branch_names(fileio: FileIO, paths: TablePaths) -> list[str]:
    """Names of all branches but the main one."""
    return list(branch_times(fileio, paths))


def branch_times(fileio: FileIO, paths: TablePaths) -> dict[str, int]:
    """All branches but the main one by name, with the time in milliseconds when their directory last changed."""
    found = fileio.list_directory(paths.branches_directory)
    return {s.name.removeprefix(_PREFIX): s.modified_ms for s in found if s.name.startswith(_PREFIX)}


def is_husk(stores: MetadataStores) -> bool:
    """Whether a branch is only directories: what a writer leaves who did not know that the branch was deleted."""
    return next(iter(stores.fileio.list_recursive(stores.paths.branch_root)), None) is None


def all_branches(stores: MetadataStores) -> list[MetadataStores]:
    """The stores of every branch, the main one first."""
    names = (MAIN_BRANCH, *branch_names(stores.fileio, stores.paths))
    return [
        stores
        if name == stores.paths.branch
        else MetadataStores.open(stores.fileio, stores.paths.on_branch(name), stores.compression)
        for name in names
    ]
