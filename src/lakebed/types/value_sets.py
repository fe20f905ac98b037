"""Which rows have one of given values in some columns: a join that only asks whether there is a partner.

Values are equal as SQL has it: 0.0 is -0.0, NaN is NaN. A null has no equal, or, null-safe, is equal to null.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from lakebed.records import dataclass

Mask = npt.NDArray[np.bool_]
_Ids = npt.NDArray[np.int64]


@dataclass(frozen=True)
class ValueSet:
    """Some rows of columns, each once. None of the columns may be nested."""

    dictionaries: tuple[pa.Array, ...]
    """The distinct values of each column."""
    steps: tuple[_Ids, ...]
    """For each column but the first, the combinations of what is before it and its own values, in ascending order."""
    null_safe: bool

    @staticmethod
    def of(columns: Sequence[pa.Array], *, null_safe: bool) -> ValueSet:
        """Rows with a null are left out unless null is equal to null."""
        bare = [_comparable(column) for column in columns]
        if not null_safe:
            valid = np.logical_and.reduce([np.asarray(column.is_valid()) for column in bare])
            bare = [column.filter(pa.array(valid)) for column in bare]
        dictionaries = tuple(column.unique() for column in bare)
        steps: list[_Ids] = []
        ids = _places(bare[0], dictionaries[0])
        for column, dictionary in zip(bare[1:], dictionaries[1:], strict=True):
            combined = ids * len(dictionary) + _places(column, dictionary)
            step, ids = np.unique(combined, return_inverse=True)
            ids = ids.astype(np.int64)
            steps.append(step)
        return ValueSet(dictionaries, tuple(steps), null_safe)

    def __len__(self) -> int:
        return len(self.steps[-1]) if self.steps else len(self.dictionaries[0])

    def holds(self, columns: Sequence[pa.Array]) -> Mask:
        """Which rows of these columns are among those of the set."""
        ids = _places(_comparable(columns[0]), self.dictionaries[0])
        found = ids >= 0
        for column, dictionary, step in zip(columns[1:], self.dictionaries[1:], self.steps, strict=True):
            places = _places(_comparable(column), dictionary)
            found &= places >= 0
            combined = ids * len(dictionary) + places
            ids = np.minimum(np.searchsorted(step, combined), max(0, len(step) - 1))
            found &= step[ids] == combined if len(step) else False
        return found


def _places(column: pa.Array, dictionary: pa.Array) -> _Ids:
    """For each value its place in the dictionary, or -1."""
    if not len(dictionary):
        return np.full(len(column), -1, np.int64)
    places = pc.index_in(column, value_set=dictionary)
    return np.asarray(places.fill_null(-1)).astype(np.int64)


def _comparable(column: pa.Array) -> pa.Array:
    """Floats as the bits of one of their equals; other columns as they are."""
    if not pa.types.is_floating(column.type):
        return column
    values = np.asarray(column.cast(pa.float64()).fill_null(0.0)) + 0.0  # makes -0.0 positive
    bits = np.where(np.isnan(values), np.nan, values).view(np.int64)
    return pa.array(bits, mask=np.asarray(column.is_null()) if column.null_count else None)


__all__ = ["ValueSet"]
