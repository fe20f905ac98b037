"""Files rewritten one by one or in groups: in threads of this process, or elsewhere if there is much to do."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from lakebed.commit.attempt import Attempt
from lakebed.commit.message import CommitMessage
from lakebed.definition.context import TableContext
from lakebed.definition.elsewhere import Elsewhere, Work
from lakebed.read.reader import parallelism
from lakebed.records import dataclass

_Piece = TypeVar("_Piece")

Tell = Callable[[int, int], None]
"""Is told how many pieces are done, and how many there are."""


@dataclass(frozen=True)
class PieceWork:
    """Where the pieces of one commit are worked on. `attempt` takes note of all files that are made."""

    context: TableContext
    attempt: Attempt
    elsewhere: Elsewhere | None = None
    tell: Tell | None = None

    def run(self, pieces: Sequence[_Piece], size_bytes: int, work: Work[_Piece]) -> list[CommitMessage]:
        """What all pieces become."""
        if not pieces:
            return []
        made = None if self.elsewhere is None else self.elsewhere(self.context, pieces, size_bytes, work)
        if made is not None:
            self.attempt.note(self._paths(made))
            return made
        tell = self.tell or (lambda count, total: None)
        tell(0, len(pieces))
        messages: list[CommitMessage] = []
        with ThreadPoolExecutor(max(1, min(len(pieces), parallelism(self.context.options)))) as pool:
            done = pool.map(lambda piece: work(self.context, piece, self.attempt.fileio), pieces)
            for count, answer in enumerate(done, 1):
                messages += answer
                tell(count, len(pieces))
        return messages

    def _paths(self, messages: Sequence[CommitMessage]) -> list[str]:
        return [
            self.context.data_file_path(message.partition, message.bucket, name)
            for message in messages
            for file in (*message.new_files, *message.compact_after, *message.changelog_files)
            for name in (file.file_name, *file.extra_files)
        ]


__all__ = ["PieceWork", "Tell"]
