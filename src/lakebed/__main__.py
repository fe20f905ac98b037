"""`python -m lakebed` is the program `lakebed`."""

from __future__ import annotations

import sys

from lakebed.cli import program

if __name__ == "__main__":
    sys.exit(program())
