"""Which way a refresh goes: from changes or from all rows, by a rule that can be said in one line.

A changed row costs about twenty times as much as a row that is only read: it is looked for in the other tables, before
and after, and in the stored result. So changes are followed as long as they are no more than a twentieth of all rows.
"""

from __future__ import annotations

from lakebed.records import dataclass

_COST_OF_A_CHANGE = 20


@dataclass(frozen=True, slots=True)
class Estimate:
    """Rows that changed, and rows that a refresh of everything reads and compares."""

    changed: int
    everything: int

    @property
    def follows_changes(self) -> bool:
        """Whether following changes is expected to be cheaper."""
        return self.changed * _COST_OF_A_CHANGE <= self.everything

    @property
    def reason(self) -> str:
        """In words."""
        word = "few" if self.follows_changes else "many"
        return f"{self.changed:,} changed of {self.everything:,} rows are {word}"
