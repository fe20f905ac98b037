"""Runs one history on whatever lakebed is imported: `python -m tests.mutants.find "a key moves"`.

Exit code 0: nothing found. 3: a finding, which is printed. Anything else: the history could not be run.
"""

from __future__ import annotations

import sys

from tests.mutants.histories import HISTORIES
from tests.mutants.statements import STATEMENTS
from tests.properties.combinations.runs import session
from tests.properties.combinations.shrink import replay

import lakebed

FOUND = 3

if __name__ == "__main__":
    name = sys.argv[1]
    finding = replay(*STATEMENTS[name], session()) if name in STATEMENTS else replay(*HISTORIES[name])
    print(lakebed.__file__)
    print(finding or "nothing found")
    sys.exit(0 if finding is None else FOUND)
