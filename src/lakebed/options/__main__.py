"""Prints the reference page: `python -m lakebed.options > docs/reference/options.md`."""

from __future__ import annotations

import sys

from lakebed.options.page import options_page

sys.stdout.write(options_page())
