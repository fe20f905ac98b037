"""A cluster to try things on: `python -m tests.cluster` starts one, says how to use it, and ends with Ctrl-C.

Enter installs the wheel of the source tree as it is then on the workers; drivers that start afterwards see it.
"""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path

from tests.cluster.bed import Bed


def main() -> None:
    """Runs a cluster until it is interrupted."""
    with tempfile.TemporaryDirectory(prefix="lakebed-cluster-") as home, Bed(Path(home) / "bed") as bed:
        told = {
            "master": bed.master,
            "conf": bed.settings(),
            "lake": bed.place("try"),
            "options": bed.store.options,
            "java_home": bed.java_home,
            "home": str(bed.home),
        }
        sys.stdout.write(json.dumps(told, indent=2) + "\n")
        sys.stdout.flush()
        try:
            while sys.stdin.readline():
                bed.install()
                sys.stdout.write("installed\n")
                sys.stdout.flush()
        except KeyboardInterrupt:
            pass


if __name__ == "__main__":
    main()
