"""Which transactions a snapshot of the copy has seen: the rule that joins copy and stream without gap or duplicate.

A part of a table that was copied under a snapshot holds what every transaction did that the snapshot sees, and nothing
of any other. A streamed change of that part is dropped if and only if its transaction is seen. Positions in the log can
not decide this: a commit stands in the log before it is visible.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

_EPOCH = 1 << 32


@dataclass(frozen=True, slots=True)
class TransactionSnapshot:
    """A value of `pg_current_snapshot()`: `xmin:xmax:xip,…` with 64-bit transaction ids."""

    xmin: int
    xmax: int
    in_progress: tuple[int, ...]

    @classmethod
    def parse(cls, text: str) -> TransactionSnapshot:
        """The snapshot that the server's text stands for."""
        xmin, xmax, in_progress = text.split(":")
        return cls(int(xmin), int(xmax), tuple(int(xid) for xid in in_progress.split(",") if xid))

    def sees(self, xids: np.ndarray[Any, Any]) -> np.ndarray[Any, np.dtype[np.bool_]]:
        """Whether committed transactions are seen. The stream names them with 32 bits, of the epoch next to ours."""
        full = self.widen(xids)
        seen: np.ndarray[Any, np.dtype[np.bool_]] = full < self.xmax
        if self.in_progress:
            seen &= (full < self.xmin) | ~np.isin(full, np.array(self.in_progress, np.int64))
        return seen

    def widen(self, xids: np.ndarray[Any, Any]) -> np.ndarray[Any, np.dtype[np.int64]]:
        """32-bit ids as 64-bit ones: the nearest to this snapshot, which is at most half an epoch away."""
        base = self.xmax
        distance = (np.asarray(xids, np.int64) - base) & (_EPOCH - 1)
        near: np.ndarray[Any, np.dtype[np.int64]] = base + np.where(distance < _EPOCH // 2, distance, distance - _EPOCH)
        return near


__all__ = ["TransactionSnapshot"]
