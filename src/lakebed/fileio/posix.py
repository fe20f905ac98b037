"""The few system calls that durability and exclusive creation on a local disk rest on, and what their errors mean.

Kept apart from `local.py` so that the order "file on disk, then its name, then the directory" can be read, and tested,
in one place. Functions here raise plain `OSError`; `storage_error` is the one translation to `lakebed.errors`.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import os
import uuid
from collections.abc import Iterator

from lakebed.cleanup import on_failure
from lakebed.errors import FileMissing, InvalidArgument, StorageError

__all__ = [
    "LINK_UNSUPPORTED",
    "make_durable_directory",
    "rename_if_absent",
    "storage_error",
    "sync_directory",
    "sync_file",
    "temporary_path",
    "translated",
    "write_new_file",
]

# What link(2) answers where the file system (or a sandbox) has no hard links.
LINK_UNSUPPORTED = frozenset({errno.EPERM, errno.EACCES, errno.EOPNOTSUPP, errno.ENOTSUP, errno.ENOSYS})

_RENAME_NOREPLACE = 1
_AT_FDCWD = -100

_RETRY_HINT = "check the disk and its mount, then retry; what was committed before is still there"
_HINTS = {
    errno.ENOSPC: "the disk is full: free some space, then retry; what was committed before is still there",
    errno.EDQUOT: "the disk quota is used up: free some space, then retry; what was committed before is still there",
    errno.EACCES: "permission denied: give this user read and write access to the directory, or choose another one",
    errno.EPERM: "permission denied: give this user read and write access to the directory, or choose another one",
    errno.EROFS: "the file system is mounted read-only: remount it, or choose another directory",
    errno.EMFILE: "too many open files: raise the limit (`ulimit -n`), or read with fewer threads",
    errno.ENFILE: "too many open files on this machine: close some programs, then retry",
    errno.ENAMETOOLONG: "the path is too long for this file system: shorten partition values or the directory",
    errno.ENOTDIR: "a part of the path is a file, not a directory: choose another path",
}


def storage_error(action: str, path: str, error: OSError) -> StorageError:
    """The error of ours that an `OSError` on `path` means."""
    if error.errno == errno.ENOENT:
        return FileMissing(
            f"can not {action} {path}: there is no such file",
            hint="check the path; if the file was there before, read the table again: it may have expired",
        )
    reason = error.strerror or str(error)
    hint = _HINTS.get(error.errno or 0, _RETRY_HINT)
    return StorageError(f"can not {action} {path}: {reason}", hint=hint)


@contextlib.contextmanager
def translated(action: str, path: str) -> Iterator[None]:
    """Turn what the system calls of the block raise into errors of ours that name the path."""
    try:
        yield
    except OSError as error:
        raise storage_error(action, path, error) from error
    except ValueError as error:  # a NUL character, or text the file system's encoding has no bytes for
        raise InvalidArgument(f"can not {action} {path!r}: {error}", hint="choose another name") from error


def temporary_path(path: str) -> str:
    """A fresh hidden name in the same directory: readers ignore it, and orphan cleaning recognises it."""
    directory, name = os.path.split(path)
    return os.path.join(directory, f".{name}.{uuid.uuid4()}.tmp")


def sync_directory(path: str) -> None:
    """Make the names in a directory durable."""
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    except OSError as error:
        # Some network file systems can not sync a directory because they have nothing to sync: names are durable at
        # once on the server. They say EINVAL; any other answer is a real failure.
        if error.errno != errno.EINVAL:
            raise
    finally:
        os.close(descriptor)


def make_durable_directory(path: str) -> None:
    """Make a directory and its missing parents, and make each of the new names durable in its parent."""
    missing = []
    while not os.path.isdir(path):
        missing.append(path)
        path = os.path.dirname(path)
    for directory in reversed(missing):
        try:
            os.mkdir(directory)
        except FileExistsError:
            if not os.path.isdir(directory):
                raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), directory) from None
        # Also when somebody else made it a moment ago: their own sync may still be outstanding.
        sync_directory(os.path.dirname(directory))


def write_new_file(path: str, data: bytes, *, sync: bool = True) -> None:
    """Create a file that must not exist yet, with this content on disk. Parents are made as needed; the name itself
    is durable only after `sync_directory` of the parent. A failure leaves no file behind. Without `sync` nothing is
    durable yet.
    """
    try:
        file = open(path, "xb")  # noqa: SIM115 - closed by the `with` below, in both branches
    except FileNotFoundError:
        make_durable_directory(os.path.dirname(path))
        file = open(path, "xb")  # noqa: SIM115
    with on_failure(lambda: unlink_quietly(path)), file:
        file.write(data)
        file.flush()
        if sync:
            os.fsync(file.fileno())


def unlink_quietly(path: str) -> None:
    """Remove a file that nobody knows of. If that fails, it is an orphan, and no reason to fail once more."""
    with contextlib.suppress(OSError):
        os.unlink(path)


def sync_file(path: str) -> None:
    """Make the content of a file durable, whoever wrote it."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def rename_if_absent(source: str, target: str) -> None:
    """renameat2(RENAME_NOREPLACE): move a file unless the target is there (`FileExistsError`), in one step.

    It stands in for link(2) on file systems without hard links (FAT, SMB shares). ENOSYS where the system has no such
    call: there is no other way to show a file whole and to one winner only, so the caller has to give up.
    """
    function = getattr(ctypes.CDLL(None, use_errno=True), "renameat2", None)
    if function is None:
        raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS), source, None, target)
    if function(_AT_FDCWD, os.fsencode(source), _AT_FDCWD, os.fsencode(target), _RENAME_NOREPLACE) != 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code), source, None, target)
