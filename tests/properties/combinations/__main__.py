"""The machine from the command line: `python -m tests.properties.combinations --seed 1 --configurations 2000`.

Prints progress, every finding with its shortest history, and totals. Exit code 1 if there was a finding.
"""

from __future__ import annotations

import argparse
import collections
import json
import logging
import sys
import time
from pathlib import Path

from tests.properties.combinations import judged
from tests.properties.combinations.configuration import Configuration
from tests.properties.combinations.machine import Operation
from tests.properties.combinations.runs import Totals, run_history
from tests.properties.combinations.shrink import replay
from tests.properties.combinations.workers import outcomes


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.properties.combinations", description=__doc__)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--configurations", type=int, default=2000)
    parser.add_argument("--operations", type=int, default=100_000)
    parser.add_argument("--minutes", type=float, default=600.0)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--spark", action="store_true", help="statements of SQL by Spark, and more of them")
    parser.add_argument("--most", type=int, default=1000, help="stop after so many findings")
    parser.add_argument("--no-shrink", action="store_true")
    parser.add_argument("--everything", action="store_true", help="also what is known to differ (`known`)")
    parser.add_argument("--only", type=int, help="the history of this seed alone, with its steps")
    parser.add_argument(
        "--judge", action="append", default=[], choices=judged.NAMES, help="who looks at each table too"
    )
    parser.add_argument("--replay", help="a file with a history, or its text")
    return parser.parse_args()


def main() -> int:
    """Runs histories until enough."""
    given = _arguments()
    logging.disable(logging.WARNING)  # statements without effect warn, thousands of times
    if given.replay:
        return _replay(given)
    if given.only is not None:
        outcome = run_history(
            given.only,
            given.operations if given.operations < 10_000 else 50,
            given.spark,
            not given.no_shrink,
            given.everything,
            judges=given.judge,
        )
        print(outcome.text())
        return int(outcome.finding is not None)
    length = max(5, given.operations // given.configurations)
    began, totals = time.monotonic(), Totals()
    seeds = range(given.seed * 1_000_000, given.seed * 1_000_000 + given.configurations)
    work = [
        (seed, length, given.spark, not given.no_shrink, given.everything, None, tuple(given.judge)) for seed in seeds
    ]
    found = outcomes(work, given.jobs, given.minutes * 60) if given.jobs > 1 else (run_history(*each) for each in work)
    for outcome in found:
        totals.add(outcome)
        if outcome.finding is not None:
            print(outcome.text(), flush=True)
        if totals.configurations % 20 == 0:
            print(f"{time.monotonic() - began:6.0f} s  {totals}", flush=True)
        if time.monotonic() - began > given.minutes * 60 or len(totals.findings) >= given.most:
            break
    getattr(found, "close", lambda: None)()
    print(f"{time.monotonic() - began:6.0f} s  {totals}")
    if given.judge:
        print(totals.verdicts.text())
    for oracle, count in collections.Counter(totals.findings).most_common():
        print(f"  {count:4d}  {oracle}")
    return int(bool(totals.findings))


def _replay(given: argparse.Namespace) -> int:
    is_text = given.replay.lstrip().startswith("{")  # too long a name for any file
    text = given.replay if is_text else Path(given.replay).read_text()
    members = json.loads(text)
    operations = [Operation(name, arguments) for name, arguments in members["operations"]]
    spark = None
    if given.spark:
        from tests.properties.combinations.runs import session

        spark = session()
    finding = replay(Configuration.from_members(members["configuration"]), operations, spark, given.judge)
    print(finding or "nothing found")
    return int(finding is not None)


if __name__ == "__main__":
    sys.exit(main())
