"""Who runs a server that refuses to run as root, and which files that user can reach.

Root starts such servers as `nobody`. A clone below root's own home, as people have it in containers, is closed to
everybody else, and so are the programs in its `.venv`: then a copy of them is started, from a temporary directory.
"""

from __future__ import annotations

import atexit
import functools
import os
import pwd
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Any, Final

from lakebed.errors import StorageError

_ACCOUNT: Final = "nobody"
_OPEN_PLACES: Final = ("/tmp", "/var/tmp")
"""Where everybody may write, should `TMPDIR` lie where only root may look."""


def account() -> str | None:
    """The user that servers run as; None for the user who asks."""
    return _ACCOUNT if os.geteuid() == 0 else None


def run_as() -> dict[str, Any]:
    """Arguments of a subprocess that must not run as root."""
    name = account()
    if name is None:
        return {}
    entry = pwd.getpwnam(name)
    return {"user": entry.pw_uid, "group": entry.pw_gid, "extra_groups": []}


def give(path: Path) -> None:
    """Makes the user of servers the owner."""
    name = account()
    if name is not None:
        entry = pwd.getpwnam(name)
        os.chown(path, entry.pw_uid, entry.pw_gid)


def new_home(prefix: str) -> Path:
    """A new temporary directory where the user of servers can reach what it is given."""
    return Path(tempfile.mkdtemp(prefix=prefix, dir=_open_place(tempfile.gettempdir())))


@functools.cache
def reachable(root: Path, folders: tuple[str, ...], programs: tuple[str, ...]) -> Path:
    """The root, or that of a copy of the folders below it if the user of servers can not run the programs in them.

    The copy is made once and goes when this process ends. Only what finds its own files by where it lies can be copied.
    """
    if account() is None or _run(root, programs):
        return root
    copy = new_home("lakebed-server-")
    atexit.register(_remove, copy, os.getpid())
    for name in folders:
        shutil.copytree(root / name, copy / name, symlinks=True)
    for folder, _, files in os.walk(copy):
        _open_to_all(folder)
        for name in files:
            _open_to_all(os.path.join(folder, name))
    if not _run(copy, programs):
        raise StorageError(
            f"user `{_ACCOUNT}` can not run {' and '.join(programs)} in {root}, nor a copy of them",
            hint=f"let others read {root}, or set TMPDIR to a place where programs may run",
        )
    return copy


@functools.cache
def _open_place(wanted: str) -> str:
    """The directory for temporary ones: the wanted one, if the user of servers can enter it."""
    return next((place for place in (wanted, *_OPEN_PLACES) if _can_enter(place)), wanted)


def _can_enter(directory: str) -> bool:
    # A child would change to its `cwd` while it still is root.
    command = ["/bin/sh", "-c", 'cd "$0"', directory]
    return subprocess.run(command, check=False, capture_output=True, cwd="/", **run_as()).returncode == 0


def _run(root: Path, programs: tuple[str, ...]) -> bool:
    """Whether all of them start: each finds out itself whether it can read its libraries."""
    try:
        return all(
            subprocess.run([root / name, "--version"], check=False, capture_output=True, cwd="/", **run_as()).returncode
            == 0
            for name in programs
        )
    except PermissionError:
        return False


def _open_to_all(path: str) -> None:
    """What the owner may read or run, all may."""
    if not os.path.islink(path):
        mode = os.stat(path).st_mode
        os.chmod(path, mode | (mode & 0o500) >> 3 | (mode & 0o500) >> 6)


def _remove(place: Path, made_by: int) -> None:
    if os.getpid() == made_by:  # not a child that was forked from it
        shutil.rmtree(place, ignore_errors=True)


__all__ = ["account", "give", "new_home", "reachable", "run_as"]
