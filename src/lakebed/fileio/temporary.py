"""Files on local disk for what does not fit into memory: in a directory that goes with its owner.

The directory is made below the system's temporary one (`TMPDIR` moves it) when first needed, and is removed when its
owner closes it, is forgotten, or the process ends.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import shutil
import tempfile
import weakref
from collections.abc import Iterator

import pyarrow as pa

from lakebed.errors import StorageError


class TemporaryFiles:
    """`what` says what is kept there and `remedy` what to do without, for the error of a disk that fails."""

    def __init__(self, prefix: str, what: str, remedy: str) -> None:
        self._prefix = prefix
        self._what = what
        self._remedy = remedy
        self._names = itertools.count()
        self._directory: str | None = None
        self._remove: weakref.finalize[..., TemporaryFiles] | None = None

    def new_path(self, ending: str) -> str:
        """The path of a file that is not there yet."""
        if self._directory is None:
            with self.using("make a directory in", tempfile.gettempdir()):
                self._directory = tempfile.mkdtemp(prefix=self._prefix)
            self._remove = weakref.finalize(self, shutil.rmtree, self._directory, ignore_errors=True)
        return os.path.join(self._directory, f"run-{next(self._names)}.{ending}")

    def remove(self, path: str) -> None:
        """Removes one file. One that stays goes with the directory."""
        with contextlib.suppress(OSError):
            os.unlink(path)

    def close(self) -> None:
        """Removes everything."""
        if self._remove is not None:
            self._remove()
        self._directory = self._remove = None

    @contextlib.contextmanager
    def using(self, doing: str, path: str) -> Iterator[None]:
        """Tells a failure of the disk, or of a file on it, as what it is."""
        try:
            yield
        except (OSError, pa.ArrowException) as error:
            raise StorageError(
                f"could not {doing} {path} while {self._what}: {error}",
                hint=f"make room there, choose another place with TMPDIR, or {self._remedy}",
            ) from error


__all__ = ["TemporaryFiles"]
