"""Prints the reference page: `python -m lakebed.schema > docs/reference/changes.md`."""

from __future__ import annotations

import sys

from lakebed.schema.later_page import later_page

sys.stdout.write(later_page())
