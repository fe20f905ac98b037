"""Makes the page that tells how each query of TPC-H follows changes: `python -m docs.reference.tpch_page`."""

from __future__ import annotations

import sys
import tempfile

from benchmarks.tpch import Shop, queries

import lakebed

_HEAD = """\
# TPC-H as materialized tables

<!-- Made by `python -m docs.reference.tpch_page`; change what EXPLAIN says, not this page. -->

How the 22 queries follow changes of their tables, as `EXPLAIN CREATE MATERIALIZED VIEW ... AS SELECT ...` and
`lake.explain(sql)` tell it. All tables have their keys and `changelog-producer` = `lookup`. Words are those of
[materialized tables](../materialized.md#which-way-a-refresh-goes): what is `full` is computed anew by each refresh, and
the difference written; the remedy stands beside it.

Queries {limited} have a LIMIT; without it, {followed} are followed.

| Query | Way | Key | Computed anew because of |
|---|---|---|---|
"""


def page() -> str:
    """The page."""
    with tempfile.TemporaryDirectory() as place:
        lake = lakebed.connect(place)
        Shop(lake, 0.0001).fill()
        told = {name: str(lake.explain(text)) for name, text in queries().items()}
        limited = [name for name, text in queries().items() if "LIMIT" in text]
        without = {name: str(lake.explain(queries()[name].rsplit("LIMIT", 1)[0])) for name in limited}
    followed = [name for name, text in without.items() if _way(text) == "incremental"]
    parts = [_HEAD.format(limited=_listed(limited), followed=_listed(followed))]
    parts += [_row(name, text) for name, text in told.items()]
    for name, text in told.items():
        tree = text.split("\n", 2)[2]
        parts.append(f"\n## Query {name}: {_way(text)}\n\n```text\n{tree}\n```\n")
    return "".join(parts)


def _way(text: str) -> str:
    return text.split("\n")[0].removeprefix("query: ").split(",")[0]


def _row(name: str, text: str) -> str:
    lines = text.split("\n")
    reasons = [line.split("  full  ")[1].strip().split("; ")[0] for line in lines[2:] if "  full  " in line]
    reason = next((each for each in reasons if not each.startswith("sort is")), "")
    return f"| [{name}](#query-{name}-{_way(text)}) | {_way(text)} | {lines[1].removeprefix('key: ')} | {reason} |\n"


def _listed(names: list[str]) -> str:
    return f"{', '.join(names[:-1])} and {names[-1]}" if len(names) > 1 else names[0]


if __name__ == "__main__":
    sys.stdout.write(page())
