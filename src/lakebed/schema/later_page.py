"""The reference page of what may change later, made from the two tables so that it can not disagree with them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from lakebed.options import GROUPS
from lakebed.options.later import Later, rule_of
from lakebed.schema.later import COLUMN_RULES

_INTRO = """# What may change later

<!-- Made by `python -m lakebed.schema`; change the tables in options/later and schema/later, not this page. -->

Some options only say how work is done. Others decide what stored rows mean: under another value the same files would
show other rows. ALTER TABLE, `t.alter`, options of one handle (`t.with_options`, `/*+ OPTIONS(...) */`, CALL), columns
that writes and database syncs add or widen, and schema versions that another engine has written are all judged by the
tables below. Of several lines the first that applies counts.

| Word | Meaning |
|---|---|
| free | at any time, also for one handle |
| compaction first | all rows are folded under the old value before the new one counts; ALTER does it, and says so (1) |
| waiting rows first | rows that wait for a bucket are brought there first; ALTER does it |
| values must fit | stored values are read first. The change is refused if the new type can not hold one |
| empty table | refused as soon as the table has a snapshot |
| never | refused |

(1) One row of each key is left, on the highest level, no delete and no mark. `write-only` tables are compacted, too.

All else, and `bucket`, is refused for a single handle, since others read what it writes. Snapshots and tags from before
a change are read under the options they were made with. If another engine has changed the table, or a rollback has
brought rows back from before a change, rows are read as they were meant, and folded so by the next write or compaction
of lakebed; what only an empty table may change is refused then. A writer that began before such a change can not commit
after it.
"""


def later_page() -> str:
    """The page as Markdown."""
    columns = (
        (difference.value, case.when, case.later, case.reason)
        for difference, cases in COLUMN_RULES.items()
        for case in cases
    )
    parts = [_INTRO, _table("Columns and keys", "Change", columns)]
    for group, options in GROUPS.items():
        lines = (
            (f"`{option.key}`", case.when, case.later, case.reason) for option in options for case in rule_of(option)
        )
        parts.append(_table(group, "Option", lines))
    return "\n".join(parts)


def _table(heading: str, what: str, lines: Iterable[tuple[str, str, Later, str]]) -> str:
    return "\n".join([f"## {heading}", "", f"| {what} | When | Later | Why |", "|---|---|---|---|", *_rows(lines), ""])


def _rows(lines: Iterable[tuple[str, str, Later, str]]) -> Iterator[str]:
    for what, when, later, why in lines:
        yield "| " + " | ".join(cell.replace("|", "\\|") for cell in (what, when, later.value, why)) + " |"


__all__ = ["later_page"]
