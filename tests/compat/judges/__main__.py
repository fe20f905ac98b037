"""Build the environments of all judges, and fetch servers, ahead of a run: `python -m tests.compat.judges [name …]`."""

import sys
import time

from .environments import SERVERS, JudgeUnavailable, prepare, prepare_jars
from .judge import JUDGES


def main(names: list[str]) -> int:
    failures = 0
    for name in names or [*JUDGES, *SERVERS]:
        started = time.monotonic()
        try:
            directory = prepare_jars(name)[0].parent if name in SERVERS else prepare(name).directory
        except JudgeUnavailable as reason:
            failures += 1
            print(f"{name}: not available: {reason}", file=sys.stderr)
        else:
            print(f"{name}: {directory.name} ready after {time.monotonic() - started:.1f} s")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
