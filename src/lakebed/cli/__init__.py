"""The program `lakebed`: a lake from the command line. One file for each group of commands; `main` starts them."""

from __future__ import annotations

import atexit
import gc
import os
import signal
import sys
from contextlib import suppress

from lakebed.left_out import leave_pandas_out

_INTERRUPTED = 130


def program() -> int:
    """Where the program begins. Little is imported before: from here on Ctrl-C ends it with one line."""
    if "cdc" not in sys.argv:
        leave_pandas_out()
    # What is loaded stays: to look for garbage in it again and again takes a tenth of a short command.
    gc.set_threshold(200_000, 20, 50)
    status = _INTERRUPTED
    ended: list[int] = []
    atexit.register(_leave, ended)  # the first to be registered is the last to be called
    try:
        from lakebed.cli.main import main  # its imports take as long as a short command

        status = main()
    except KeyboardInterrupt:
        print("stopped", file=sys.stderr)  # noqa: T201
    finally:
        with suppress(OSError):
            sys.stdout.flush()
        # What is left is the end of threads and of Spark: another Ctrl-C ends that at once, without a word.
        signal.signal(signal.SIGINT, lambda *_: os._exit(status))
    ended.append(status)
    return status


def _leave(ended: list[int]) -> None:
    """Ends the process once all is done that is to be done at the end, but for Python's own farewell.

    Python looks for garbage in all that was loaded and takes it apart, a quarter of a short command's time; the memory
    goes with the process anyway. Where an error comes out, or nobody takes what was printed, Python has the last word.
    """
    if ended:
        with suppress(OSError, ValueError):
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(ended[0])


__all__ = ["program"]
