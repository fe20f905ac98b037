"""Build the environments of all judges ahead of a test run: `python -m tests.compat.judges [name …]`."""

import sys
import time

from .environments import JudgeUnavailable, prepare
from .judge import JUDGES


def main(names: list[str]) -> int:
    failures = 0
    for name in names or list(JUDGES):
        started = time.monotonic()
        try:
            environment = prepare(name)
        except JudgeUnavailable as reason:
            failures += 1
            print(f"{name}: not available: {reason}", file=sys.stderr)
        else:
            print(f"{name}: {environment.directory.name} ready after {time.monotonic() - started:.1f} s")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
