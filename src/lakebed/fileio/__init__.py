"""Where a table's files live: one interface, and an implementation for each kind of place.

`open_fileio` chooses by the URL's scheme. To add a kind of place, write one module that satisfies
`lakebed.fileio.base.FileIO`, and register its factory in `FILE_SYSTEMS`. Nothing here knows what the files mean.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping

from lakebed.errors import InvalidArgument, did_you_mean
from lakebed.fileio.base import FileIO, FileStatus, OutputFile
from lakebed.fileio.local import LocalFileIO
from lakebed.fileio.memory import MemoryFileIO

__all__ = ["FILE_SYSTEMS", "FileIO", "FileStatus", "LocalFileIO", "MemoryFileIO", "OutputFile", "open_fileio"]

# Two characters at least, so that a drive letter is not taken for one; Hadoop writes `file:/path` with one slash.
_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):/")


def _open_local(url: str, options: Mapping[str, str]) -> tuple[FileIO, str]:
    path = url
    if url.startswith("file:"):
        path = url.removeprefix("file:")
        if path.startswith("//"):
            host, _, rest = path[2:].partition("/")
            if host not in ("", "localhost"):
                raise InvalidArgument(
                    f"{url} names the host `{host}`", hint="write a local path as file:///path or /path"
                )
            path = f"/{rest}"
    return LocalFileIO(), os.path.abspath(os.path.expanduser(path))


def _open_memory(url: str, options: Mapping[str, str]) -> tuple[FileIO, str]:
    path = url.removeprefix("memory:").strip("/")
    if not path:
        raise InvalidArgument(f"{url} has no name", hint="write it as memory://name")
    return MemoryFileIO(path.partition("/")[0]), path


def _open_object_store(url: str, options: Mapping[str, str]) -> tuple[FileIO, str]:
    from lakebed.fileio.object_store import open_object_store  # needs an optional dependency

    return open_object_store(url, options)


FILE_SYSTEMS: dict[str, Callable[[str, Mapping[str, str]], tuple[FileIO, str]]] = {
    "file": _open_local,
    "memory": _open_memory,
    "s3": _open_object_store,
    "s3a": _open_object_store,
    "gs": _open_object_store,
    "az": _open_object_store,
    "abfs": _open_object_store,
    "abfss": _open_object_store,
}


def open_fileio(url: str, options: Mapping[str, str] | None = None) -> tuple[FileIO, str]:
    """The file system a path or URL lies on, and the path to use with it.

    A plain path, relative ones included, is a local directory. Nothing is created and nobody is connected to yet.
    """
    url = os.fspath(url)
    if not url:
        raise InvalidArgument("the path is empty", hint="give a directory, or a URL such as s3://bucket/path")
    match = _SCHEME.match(url)
    scheme = match.group(1).lower() if match else "file"
    if match:
        url = scheme + url[match.end(1) :]
    factory = FILE_SYSTEMS.get(scheme)
    if factory is None:
        raise InvalidArgument(f"{url}: unknown scheme `{scheme}`", hint=did_you_mean(scheme, FILE_SYSTEMS))
    return factory(url, options or {})
