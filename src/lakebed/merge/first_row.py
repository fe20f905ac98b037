"""The engine that keeps the first row of a key and ignores all later ones."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lakebed.errors import InvalidData, InvalidOption
from lakebed.merge.base import MergeSetup, value_columns
from lakebed.merge.folding import Folded, FoldingEngine
from lakebed.merge.segments import NO_ROW, Segments
from lakebed.merge.trace import Role, Trace
from lakebed.options import IGNORE_DELETE, SEQUENCE_FIELD
from lakebed.types.row_kind import is_retract


class FirstRow(FoldingEngine):
    """Oldest row wins; retracts are errors, or ignored."""

    name = "first-row"

    @classmethod
    def check(cls, setup: MergeSetup, table: str) -> None:
        """The first row is the one that came first: no column can say otherwise."""
        if setup.options[SEQUENCE_FIELD]:
            raise InvalidOption(
                f"table `{table}`: merge engine `first-row` does not go with `sequence.field`",
                hint="leave the option out, or use merge engine `deduplicate` with "
                "`sequence.field.sort-order` = `descending` to keep the row with the smallest value",
            )

    def check_written(self, rows: pa.RecordBatch, kinds: npt.NDArray[np.int8]) -> None:
        """See `MergeEngine.check_written`."""
        self.refuse_retracts(is_retract(kinds))

    @staticmethod
    def refuse_retracts(retracts: npt.NDArray[np.bool_]) -> None:
        """Raises if any row takes something away: a first row is never taken back."""
        if np.any(retracts):
            raise InvalidData(
                "a first-row table takes no -U and -D rows",
                hint="send inserts only, or set `ignore-delete` to true to drop such rows",
            )

    def rule(self, column: str) -> str:
        """See `MergeEngine.rule`."""
        return "first version"

    def fold(self, rows: pa.RecordBatch, segments: Segments, trace: Trace | None = None) -> Folded:
        """The oldest row of every segment that is no retract."""
        if not self.setup.options[IGNORE_DELETE]:
            self.refuse_retracts(segments.retracts)
        first = segments.first(~segments.retracts)
        if trace is not None:
            trace.note(segments.order, Role.LATER)
            trace.note(segments.order[segments.retracts], Role.IGNORED)
            trace.note(segments.order[first[first != NO_ROW]], Role.VALUE)
        chosen = np.where(first == NO_ROW, segments.starts, first)
        names = value_columns(rows, self.setup.key)
        return Folded({name: segments.pick(rows.column(name), chosen) for name in names}, first == NO_ROW)
