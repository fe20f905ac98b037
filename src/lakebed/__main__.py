"""Commands of `python -m lakebed`. So far there is one, which looks whether tables keep the rules of their levels."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from lakebed.errors import LakebedError
from lakebed.lake import Lake, connect


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs a command; the number is the exit status: 0 if all is well, 1 for findings, 2 if it could not run."""
    parser = argparse.ArgumentParser(prog="python -m lakebed", description="Commands for a lake of tables.")
    commands = parser.add_subparsers(dest="command", required=True, metavar="command")
    check = commands.add_parser("check", help="prove the rules of the levels on tables, by their metadata")
    check.add_argument("lake", help="directory or URL of the lake")
    check.add_argument("tables", nargs="*", metavar="table", help="names such as db.t; all tables without any")
    given = parser.parse_args(arguments)
    try:
        return _check(connect(given.lake), given.tables)
    except LakebedError as error:
        print(error, file=sys.stderr)  # noqa: T201
        return 2


def _check(lake: Lake, names: Sequence[str]) -> int:
    found = 0
    for name in names or [f"{database}.{table}" for database in lake.databases() for table in lake.tables(database)]:
        findings = lake.table(name).check()
        found += len(findings)
        for line in [f"{name}: {finding}" for finding in findings] or [f"{name}: all is well"]:
            print(line)  # noqa: T201
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
