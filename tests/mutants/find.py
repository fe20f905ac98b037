"""Runs one history on whatever lakebed is imported: `python -m tests.mutants.find "a key moves"`.

Exit code 0: nothing found. 3: a finding, which is printed. Anything else: the history could not be run.
"""

from __future__ import annotations

import sys

from tests.mutants.histories import HISTORIES
from tests.properties.combinations.shrink import replay

import lakebed

FOUND = 3

if __name__ == "__main__":
    finding = replay(*HISTORIES[sys.argv[1]])
    print(lakebed.__file__)
    print(finding or "nothing found")
    sys.exit(0 if finding is None else FOUND)
