"""Prints the reference of all families: `python -m lakebed.metrics > docs/reference/metrics.md`."""

from __future__ import annotations

import sys

from lakebed.metrics.families import FAMILIES

_HEAD = """\
# Metrics

<!-- Made by `python -m lakebed.metrics`; change `metrics/families.py`, not this page. -->

What is measured; [how to get at it](../metrics.md). Names and labels stay as they are. Prometheus adds `_bucket`,
`_sum` and `_count` to the names of histograms. OpenTelemetry's names have dots, and the unit beside them:
`lakebed_commit_duration_seconds` is `lakebed.commit.duration` in `s`.

`table` is `database.table`, with its branch if it is one. `outcome` is `done`; `nothing` where there was nothing to do;
`conflict` if others were faster; `unknown` if nobody can tell; `put off` for a commit that begins again once waiting
rows are placed; `failed` for any other error. `kind` of a commit is `append`, `overwrite`, `compact` or `analyze`.
"""


def page() -> str:
    """The whole page."""
    lines = [_HEAD]
    for group in dict.fromkeys(each.group for each in FAMILIES):
        lines += [
            f"## {group.replace('_', ' ').capitalize()}\n",
            "| Name | Kind | Labels | What it says |",
            "|---|---|---|---|",
        ]
        for each in (each for each in FAMILIES if each.group == group):
            labels = ", ".join(f"`{label}`" for label in each.labels)
            lines.append(f"| `{each.name}` | {each.kind} | {labels} | {each.says} |")
        lines.append("")
    return "\n".join(lines)


if __name__ == "__main__":
    sys.stdout.write(page())
