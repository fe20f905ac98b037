"""How far a streaming INSERT is: in the properties of the snapshots of the table that it writes, under its own name.

So the rows that were sent and how far that is are one commit. A table that is rolled back forgets both. Other systems
keep the same words in their own way.
"""

from __future__ import annotations

from collections.abc import Mapping

from lakebed.commit.replay import INSERT_PREFIX, insert_properties, last_identifiers
from lakebed.definition.context import TableContext
from lakebed.errors import CorruptFile
from lakebed.metadata.snapshot import Snapshot
from lakebed.records import dataclass
from lakebed.views.store import Cut


@dataclass(frozen=True, slots=True)
class InsertState:
    """The cut whose rows were sent, by which step, and how that went; the time zone that clocks were read by."""

    cut: Cut
    step: int
    way: str
    zone: str | None = None

    def to_properties(self, name: str) -> dict[str, str]:
        """As properties of the snapshot that the step makes."""
        return {f"{INSERT_PREFIX}{name}.{word}": value for word, value in self.to_words().items()}

    def to_words(self) -> dict[str, str]:
        """As texts by name."""
        words = {"cut": self.cut.to_text(), "step": str(self.step), "way": self.way}
        return words if self.zone is None else {**words, "zone": self.zone}

    @staticmethod
    def of_words(said: Mapping[str, str | None]) -> InsertState:
        """Inverse of `to_words`; an error that is none of ours if the texts make no sense."""
        return InsertState(Cut.of_text(said["cut"] or ""), int(said["step"] or ""), said["way"] or "", said.get("zone"))

    @staticmethod
    def of(context: TableContext, latest: Snapshot | None, name: str) -> InsertState | None:
        """What the table knows of an INSERT; None if it has sent nothing to it, or nothing since it was replaced."""
        given = insert_properties(context.stores.snapshots, latest)
        said = {word: given.get(f"{INSERT_PREFIX}{name}.{word}") for word in ("cut", "step", "way", "zone")}
        if said["cut"] is None or said["step"] is None:
            _check_not_forgotten(context, latest, name)
            return None
        if not said["cut"]:
            return None
        try:
            return InsertState.of_words(said)
        except (ValueError, TypeError, KeyError) as error:
            raise CorruptFile(
                f"table `{context.name}`: property `{INSERT_PREFIX}{name}.cut` of its snapshot can not be read",
                hint="restore the snapshot file, or roll the table back to an earlier one",
            ) from error


def user_of(name: str) -> str:
    """Who commits the steps of an INSERT."""
    return f"insert-{name}"


def next_step(context: TableContext, latest: Snapshot | None, name: str) -> int:
    """The number of the step that begins with a state of the table."""
    return last_identifiers(context.stores.snapshots, latest).get(user_of(name), 0) + 1


def _check_not_forgotten(context: TableContext, latest: Snapshot | None, name: str) -> None:
    """Raises if an INSERT has written to a table that does not know how far it was: all would be sent twice."""
    if user_of(name) in last_identifiers(context.stores.snapshots, latest):
        raise CorruptFile(
            f"table `{context.name}`: INSERT `{name}` has written to it, and how far it was is not known any more",
            hint="roll the table back to a snapshot of the INSERT, or run it under another name to send all rows again",
        )
