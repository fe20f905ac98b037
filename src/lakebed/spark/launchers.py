"""Small programs that stand in front of others: a `java` or a `python` that Spark starts, and what is different then.

They are kept in the user's cache, one for each text, and written so that who starts one at the same time sees it whole.
"""

from __future__ import annotations

import os
import tempfile
import zlib
from pathlib import Path


def launcher(kind: str, name: str, script: str) -> Path:
    """A program `name` that runs a shell script; in a `bin` directory that it shares with no other."""
    program = _cache_directory() / f"{kind}-{zlib.crc32(script.encode()):08x}" / "bin" / name
    if not program.exists() or program.read_text() != script:
        program.parent.mkdir(parents=True, exist_ok=True)
        scratch = program.with_name(f"{name}.{os.getpid()}")
        scratch.write_text(script)
        scratch.chmod(0o755)
        scratch.replace(program)
    return program


def _cache_directory() -> Path:
    base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "lakebed"
    try:
        base.mkdir(parents=True, exist_ok=True)
    except OSError:
        return Path(tempfile.mkdtemp(prefix="lakebed-launchers-"))
    return base if os.access(base, os.W_OK) else Path(tempfile.mkdtemp(prefix="lakebed-launchers-"))


__all__ = ["launcher"]
