"""Files on a local disk, or on anything mounted like one (POSIX).

Durability, as chosen here:

* A new file is synced, and so is its directory, when `write_bytes` or the `with` block of `open_output` ends. Writers
  may run on other machines than the committer, so nobody later could catch up on it. The directory's share is about
  a quarter of the cost of a new file on ext4. Who writes many files at once makes them durable together instead
  (`sync_later`), before anybody hears of them.
* `create_exclusive` writes and syncs a hidden file beside the target, then gives it the target's name with link(2),
  which fails if the name is taken, and syncs the directory. Nobody ever sees part of the file.
* Where there are no hard links, renameat2 with "do not replace" has the same effect. Where that is missing too the
  call is refused: a plain exclusive open (O_EXCL) would show readers an empty file first, and a crash would leave it
  there for ever, blocking the table.
* `overwrite` syncs a hidden file and renames it over the target.
* Deletions are not synced: a file that comes back after a power failure is an orphan, which cleaning removes.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import shutil
import stat
from collections.abc import Iterator

import pyarrow as pa

from lakebed.cleanup import on_failure
from lakebed.errors import AlreadyExists, FileMissing, OutcomeUnknown, Unsupported
from lakebed.fileio.base import FileIO, FileStatus, OutputFile
from lakebed.fileio.posix import (
    LINK_UNSUPPORTED,
    make_durable_directory,
    rename_if_absent,
    storage_error,
    sync_directory,
    temporary_path,
    translated,
    unlink_quietly,
    write_new_file,
)
from lakebed.records import dataclass

__all__ = ["LocalFileIO", "LocalOutputFile", "fresh_name", "list_names"]

_WRITE_BUFFER_BYTES = 1 << 20

_ABSENT = (FileNotFoundError, NotADirectoryError)

# Errors of link(2) and rename(2) after which the name was certainly not given. After any other (EIO, ESTALE, a network
# time-out, ...) the request may have reached the disk although the answer did not reach us.
_CERTAINLY_NOT_DONE = frozenset(
    {errno.ENOENT, errno.ENOTDIR, errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EACCES, errno.EPERM}
    | {errno.ENAMETOOLONG, errno.ELOOP, errno.EXDEV}
)


@dataclass(frozen=True, slots=True)
class LocalFileIO:
    """The local file system. Paths are absolute. Holds no state, so it can be pickled and shared freely."""

    def read_bytes(self, path: str) -> bytes:
        try:  # many small files are read this way: a context for errors would cost as much as opening one
            with open(path, "rb", buffering=0) as file:
                return file.readall()
        except (OSError, ValueError) as error:
            with _reading(path):
                raise error

    def open_input(self, path: str) -> pa.NativeFile:
        with _reading(path):
            return pa.OSFile(path, "rb")

    def open_output(self, path: str) -> OutputFile:
        return LocalOutputFile(path)

    def write_bytes(self, path: str, data: bytes) -> None:
        with translated("write", path), fresh_name(path):
            write_new_file(path, data)
            sync_directory(os.path.dirname(path))

    def overwrite(self, path: str, data: bytes) -> None:
        temporary = temporary_path(path)
        with translated("overwrite", path):
            write_new_file(temporary, data)
            with on_failure(lambda: unlink_quietly(temporary)):
                os.replace(temporary, path)
            sync_directory(os.path.dirname(path))

    def create_exclusive(self, path: str, data: bytes) -> bool:
        if os.path.lexists(path):
            return False
        temporary = temporary_path(path)
        with translated("create", path):
            write_new_file(temporary, data)
        try:
            if not _give_name(temporary, path, data):
                return False
        finally:
            unlink_quietly(temporary)
        try:
            sync_directory(os.path.dirname(path))
        except OSError as error:
            raise OutcomeUnknown(
                f"{path} was created, but the disk did not confirm it: {error.strerror}",
                hint="check the disk; read the file back before trying again, and delete nothing",
            ) from error
        return True

    def exists(self, path: str) -> bool:
        with translated("look up", path):
            try:
                os.stat(path)
            except _ABSENT:
                return False
            return True

    def size(self, path: str) -> int:
        with _reading(path):
            found = os.stat(path)
        if stat.S_ISDIR(found.st_mode):
            raise _no_file(path)
        return found.st_size

    def list_directory(self, path: str) -> list[FileStatus]:
        with translated("list", path):
            try:
                with os.scandir(path) as entries:
                    found = [status for entry in entries if (status := _status(path, entry)) is not None]
            except _ABSENT:
                return []
        return sorted(found, key=lambda status: status.path)

    def list_recursive(self, path: str) -> Iterator[FileStatus]:
        for status in self.list_directory(path):
            if not status.is_directory:
                yield status
            elif not os.path.islink(status.path):  # a link may lead back up, or out of the table
                yield from self.list_recursive(status.path)

    def make_directory(self, path: str) -> None:
        with translated("make directory", path):
            make_durable_directory(path)

    def delete(self, path: str) -> bool:
        with translated("delete", path):
            try:
                os.unlink(path)
            except (*_ABSENT, IsADirectoryError):
                return False
            return True

    def delete_directory(self, path: str) -> None:
        with translated("delete directory", path):
            while os.path.lexists(path):
                # Things vanish under our hands only if somebody else deletes here as well: go on until all is gone.
                with contextlib.suppress(FileNotFoundError):
                    shutil.rmtree(path)

    def delete_empty_directory(self, path: str) -> bool:
        with translated("delete directory", path):
            try:
                os.rmdir(path)
            except OSError as error:
                if error.errno in (errno.ENOENT, errno.ENOTDIR, errno.ENOTEMPTY, errno.EEXIST):
                    return False
                raise
            return True

    def rename_directory(self, source: str, target: str) -> None:
        if not os.path.isdir(source):
            raise FileMissing(f"can not rename {source}: there is no such directory", hint="check the name")
        taken = AlreadyExists(f"can not rename {source}: {target} is there already", hint="choose another name")
        with translated("rename to", target):
            make_durable_directory(os.path.dirname(target))
            try:
                # mkdir tells who is first; rename then replaces the empty directory, in one step.
                os.mkdir(target)
            except FileExistsError:
                raise taken from None
            try:
                os.rename(source, target)
            except OSError as error:
                with contextlib.suppress(OSError):
                    os.rmdir(target)
                if error.errno in (errno.ENOTEMPTY, errno.EEXIST):
                    raise taken from error
                raise
            sync_directory(os.path.dirname(target))
            sync_directory(os.path.dirname(source))

    @contextlib.contextmanager
    def advisory_lock(self, directory: str) -> Iterator[None]:
        # A lock on the directory itself leaves no file behind and goes away with its process.
        self.make_directory(directory)
        descriptor = -1
        try:
            with contextlib.suppress(OSError):  # some network file systems have no locks
                descriptor = os.open(directory, os.O_RDONLY)
                fcntl.flock(descriptor, fcntl.LOCK_EX)
            yield
        finally:
            if descriptor >= 0:
                os.close(descriptor)


class LocalOutputFile(OutputFile):
    """A file written in place: its name is fresh, so nobody looks at it before a snapshot names it.

    Without `sync` it is complete when it is closed, and durable when somebody else has seen to it.
    """

    def __init__(self, path: str, *, sync: bool = True) -> None:
        super().__init__(path)
        self._sync = sync
        with translated("write", path), fresh_name(path):
            try:
                self._file = open(path, "xb", buffering=_WRITE_BUFFER_BYTES)  # noqa: SIM115 - closed in `_complete`
            except FileNotFoundError:
                make_durable_directory(os.path.dirname(path))
                self._file = open(path, "xb", buffering=_WRITE_BUFFER_BYTES)  # noqa: SIM115

    def _append(self, data: memoryview) -> None:
        with translated("write", self.path):
            self._file.write(data)

    def _complete(self) -> None:
        with translated("write", self.path):
            self._file.flush()
            if self._sync:
                os.fsync(self._file.fileno())
            self._file.close()
            if self._sync:
                sync_directory(os.path.dirname(self.path))

    def _discard(self) -> None:
        with contextlib.suppress(OSError):  # closing flushes what is left, which fails again on a full disk
            self._file.close()
        unlink_quietly(self.path)


def list_names(fileio: FileIO, path: str) -> list[str]:
    """Names in a directory of any storage; on a local disk without a look at each file, which takes most of the time.

    Tables that are written every second have thousands of snapshots, and look at their numbers after each commit.
    """
    if not isinstance(fileio, LocalFileIO):
        return [status.name for status in fileio.list_directory(path)]
    with translated("list", path):
        try:
            return os.listdir(path)
        except _ABSENT:
            return []


def _give_name(temporary: str, target: str, data: bytes) -> bool:
    """Give the finished temporary file its final name, unless that is taken. The answer is as in `create_exclusive`."""
    identity = os.stat(temporary)
    try:
        _link_or_rename(temporary, target)
        return True
    except FileExistsError:
        # A network file system may carry out a request, lose the answer, repeat it and find our own file.
        return _is_ours(target, identity, None)
    except OSError as error:
        if error.errno in _CERTAINLY_NOT_DONE:
            raise storage_error("create", target, error) from error
        return _is_ours(target, identity, data)


def _link_or_rename(temporary: str, target: str) -> None:
    try:
        os.link(temporary, target)
        return
    except OSError as error:
        if error.errno not in LINK_UNSUPPORTED:
            raise
    try:
        rename_if_absent(temporary, target)
    except OSError as error:
        if error.errno in (errno.ENOSYS, errno.EINVAL, errno.EOPNOTSUPP):
            raise Unsupported(
                f"can not create {target}: its file system has neither hard links nor rename without replace",
                hint="keep the table on a file system that has one of them (ext4, xfs, btrfs, NFS, ...), "
                "or on an object store",
            ) from error
        raise


def _is_ours(target: str, identity: os.stat_result, data: bytes | None) -> bool:
    """Whether the file at `target` is the one with this identity, or holds exactly `data` (if given)."""
    try:
        if os.path.samestat(os.stat(target), identity):
            return True
        if data is None:
            return False
        with open(target, "rb") as file:
            return file.read() == data
    except OSError as error:
        if data is None and isinstance(error, FileNotFoundError):
            return False  # it was there, hence not ours, and is gone by now
        raise OutcomeUnknown(
            f"it can not be told whether {target} was created: {error.strerror}",
            hint="check the disk; read the file back before trying again, and delete nothing",
        ) from error


def _status(directory: str, entry: os.DirEntry[str]) -> FileStatus | None:
    """The status of an entry, or None when it vanished since the directory was read."""
    try:
        found = entry.stat()
        return FileStatus(
            path=f"{directory.rstrip('/')}/{entry.name}",
            size_bytes=0 if entry.is_dir() else found.st_size,
            modified_ms=found.st_mtime_ns // 1_000_000,
            is_directory=entry.is_dir(),
        )
    except FileNotFoundError:
        return None


@contextlib.contextmanager
def _reading(path: str) -> Iterator[None]:
    """Translate errors of reading; a directory, or a path through a file, is a missing file."""
    with translated("read", path):
        try:
            yield
        except OSError as error:
            if isinstance(error, _ABSENT) or os.path.isdir(path):
                raise _no_file(path) from error
            raise


@contextlib.contextmanager
def fresh_name(path: str) -> Iterator[None]:
    """Says of a name that is taken that it is."""
    try:
        yield
    except FileExistsError as error:
        raise AlreadyExists(
            f"can not write {path}: the file is there already",
            hint="new files need names of their own; it was left as it is",
        ) from error


def _no_file(path: str) -> FileMissing:
    return FileMissing(
        f"can not read {path}: there is no such file",
        hint="check the path; if the file was there before, read the table again: it may have expired",
    )
