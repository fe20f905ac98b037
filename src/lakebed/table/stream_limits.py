"""How much of a table a stream takes at a time: the options `read.stream.*`.

The most it takes ends a piece between two splits; the least makes it wait until enough has come, or long enough.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate

from lakebed.errors import InvalidOption
from lakebed.options import (
    READ_STREAM_MAXBYTESPERTRIGGER,
    READ_STREAM_MAXFILESPERTRIGGER,
    READ_STREAM_MAXROWSPERTRIGGER,
    READ_STREAM_MAXTRIGGERDELAYMS,
    READ_STREAM_MINROWSPERTRIGGER,
    Options,
)
from lakebed.table.splits import Split


@dataclass(frozen=True, slots=True)
class StreamLimits:
    """None: no limit."""

    max_files: int | None = None
    max_bytes: int | None = None
    max_rows: int | None = None
    min_rows: int | None = None
    max_delay_ms: int | None = None

    @staticmethod
    def of(options: Options, table: str) -> StreamLimits:
        """What the options say."""
        least = (options[READ_STREAM_MINROWSPERTRIGGER], options[READ_STREAM_MAXTRIGGERDELAYMS])
        if (least[0] is None) != (least[1] is None):
            given, lacking = READ_STREAM_MINROWSPERTRIGGER.key, READ_STREAM_MAXTRIGGERDELAYMS.key
            if least[0] is None:
                given, lacking = lacking, given
            raise InvalidOption(
                f"table `{table}`: `{given}` says nothing without `{lacking}`",
                hint="set both: how many rows a stream waits for, and how long",
            )
        most_rows = options[READ_STREAM_MAXROWSPERTRIGGER]
        if least[0] is not None and most_rows is not None and least[0] > most_rows:
            raise InvalidOption(
                f"table `{table}`: `{READ_STREAM_MINROWSPERTRIGGER.key}` is {least[0]}, more than the {most_rows} of "
                f"`{READ_STREAM_MAXROWSPERTRIGGER.key}`",
                hint="raise the most, or lower the least",
            )
        return StreamLimits(
            options[READ_STREAM_MAXFILESPERTRIGGER], options[READ_STREAM_MAXBYTESPERTRIGGER], most_rows, *least
        )

    def count(self, splits: Sequence[Split]) -> int:
        """How many of the splits are taken together: all that fit, and always one."""
        fitting = len(splits)
        for limit, sizes in (
            (self.max_files, (len(split.files) for split in splits)),
            (self.max_bytes, (split.size_bytes for split in splits)),
            (self.max_rows, (row_count(split) for split in splits)),
        ):
            if limit is not None:
                fitting = min(fitting, sum(total <= limit for total in accumulate(sizes)))
        return max(fitting, min(1, len(splits)))


def row_count(split: Split) -> int:
    """Rows in the files of a split."""
    return sum(file.row_count for file in split.files)


__all__ = ["StreamLimits", "row_count"]
