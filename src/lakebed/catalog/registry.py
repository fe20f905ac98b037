"""Catalogs by the name that the option `metastore` of a lake gives them. To add one, write it and add a line here."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from lakebed.catalog.base import Catalog
from lakebed.catalog.filesystem import FilesystemCatalog
from lakebed.clock import RandomIds, SystemClock
from lakebed.definition.elsewhere import SparkJobs
from lakebed.errors import InvalidOption, did_you_mean
from lakebed.fileio import open_fileio

_METASTORE = "metastore"
"""The option, as Paimon's catalogs have it."""

OpenCatalog = Callable[[str, Mapping[str, str], SparkJobs | None], Catalog]
"""From the place of a warehouse, options of the lake, and what its tables ask of Spark."""


def _open_filesystem(place: str, options: Mapping[str, str], jobs: SparkJobs | None) -> Catalog:
    fileio, root = open_fileio(place, options)
    return FilesystemCatalog(fileio, root, SystemClock(), RandomIds(), jobs)


CATALOGS: dict[str, OpenCatalog] = {
    "filesystem": _open_filesystem,
}


def open_catalog(place: str, options: Mapping[str, str] | None = None, jobs: SparkJobs | None = None) -> Catalog:
    """The catalog of a warehouse: of directories, unless the options name another kind."""
    given = dict(options or {})
    kind = given.pop(_METASTORE, "filesystem")
    if kind not in CATALOGS:
        raise InvalidOption(
            f"option `{_METASTORE}` is `{kind}`, which is no kind of catalog here",
            hint=did_you_mean(str(kind), CATALOGS),
        )
    return CATALOGS[kind](place, given, jobs)


__all__ = ["CATALOGS", "OpenCatalog", "open_catalog"]
