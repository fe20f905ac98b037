"""Whether the values that are stored fit a column's new type, found out before the type changes.

Old files are cast when they are read. A whole number that is too large would wrap and a text that is no number would
make the table unreadable, so all stored values of the column are read once. Digits behind the point, and text behind
the new length, are given up as asked for. A null counts where it is stored, not where it is shown: reads hide rows and
show defaults, and a compaction that is to write it again could not.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from lakebed.definition.context import TableContext
from lakebed.definition.row_rules import vectors_at
from lakebed.errors import InvalidData, InvalidSchema
from lakebed.lsm.sections import Section, SortedRun
from lakebed.metadata.entries import live_files
from lakebed.metadata.snapshot import Snapshot
from lakebed.read.plan import FileSieve, splits_of
from lakebed.read.reader import SplitReader
from lakebed.read.splits import Split
from lakebed.schema.casts import cast_array
from lakebed.schema.later import Difference, Verdict
from lakebed.schema.type_steps import may_not_fit, steps
from lakebed.types.logical import NUMERICS, ArrayType, DataField, DataType, MapType, MultisetType, RowType, is_root

_CLOSE = 1e-6
"""Floats are rounded by less than this share of them; a value that does not fit is off by much more."""


def check_values_fit(context: TableContext, snapshot: Snapshot, verdicts: Sequence[Verdict]) -> None:
    """Raises if a stored value does not fit its column's new type, or is null where it may not be any more."""
    for verdict in verdicts:
        assert verdict.column is not None
        assert verdict.column.old is not None
        assert verdict.column.new is not None
        old, new = verdict.column.old, verdict.column.new
        stored = _stored(context, snapshot, old)
        if verdict.column.difference is Difference.REQUIRED:
            problem = next((NULL for array in stored if array.null_count), None)
        else:
            problem = next((found for array in stored if (found := _misfit(array, old, new))), None)
        if problem is not None:
            raise InvalidSchema(
                f"table `{context.name}`: {verdict.what} can not {verdict.step}: it holds {problem}",
                hint="correct such rows first"
                + (", and compact the table fully" if context.has_key else "")
                + ", or add a column of the new type",
            )


NULL = "NULL"


def _misfit(array: pa.Array, old: DataField, new: DataField) -> str | None:
    """The first value that does not survive, as a text."""
    for values, before, after in _leaves(array, old.type, new.type):
        found = _misfit_of_part(values, before, after)
        if found is not None:
            return found
    return None


def _misfit_of_part(values: pa.Array, before: DataType, after: DataType) -> str | None:
    if not may_not_fit(before, after):
        return None
    given = values.drop_null()
    try:
        cast = cast_array(given, before, after)
    except InvalidData as error:
        return f"what {after} can not hold ({error.message})"
    wrong = np.asarray(pc.is_null(cast))
    if is_root(before, NUMERICS) and is_root(after, NUMERICS):
        wrong = wrong | ~_is_close(_floats(given), _floats(cast))
    place = int(np.argmax(wrong)) if wrong.any() else None
    return None if place is None else str(given[place].as_py())


def _is_close(before: npt.NDArray[np.float64], after: npt.NDArray[np.float64]) -> npt.NDArray[np.bool_]:
    with np.errstate(invalid="ignore"):
        close = np.abs(before - after) < 1 + np.abs(before) * _CLOSE
    same: npt.NDArray[np.bool_] = close | (before == after) | (np.isnan(before) & np.isnan(after))
    return same


def _floats(values: pa.Array) -> npt.NDArray[np.float64]:
    return np.asarray(pc.cast(values, pa.float64(), safe=False).fill_null(np.nan), dtype=np.float64)


def _leaves(array: pa.Array, old: DataType, new: DataType) -> Iterator[tuple[pa.Array, DataType, DataType]]:
    """The values of the parts whose types change."""
    if not any(steps(old, new)):
        return
    match old, new:
        case RowType(before), RowType(after):
            now = {member.id: member.type for member in after}
            for part, member in zip(array.flatten(), before, strict=True):
                if member.id in now:
                    yield from _leaves(part, member.type, now[member.id])
        case ArrayType(before_part), ArrayType(after_part):
            yield from _leaves(array.flatten(), before_part, after_part)
        case (MapType(), MapType()) | (MultisetType(), MultisetType()):
            keys, items = array.drop_null().keys, array.drop_null().items
            if isinstance(old, MapType) and isinstance(new, MapType):
                yield from _leaves(keys, old.key, new.key)
                yield from _leaves(items, old.value, new.value)
            elif isinstance(old, MultisetType) and isinstance(new, MultisetType):
                yield from _leaves(keys, old.element, new.element)
        case _:
            yield array, old, new


def _stored(context: TableContext, snapshot: Snapshot, column: DataField) -> Iterator[pa.Array]:
    """All values of the column in live files, also of rows that are replaced or wait."""
    reader = SplitReader(context, (column,))
    entries = live_files(context.stores, snapshot)
    vectors = vectors_at(context, snapshot)
    if context.has_key:
        splits: list[Split] = [
            Split(entry.partition, entry.bucket, (Section((SortedRun((entry.file,)),)),), vectors) for entry in entries
        ]
    else:
        splits = splits_of(context, entries, FileSieve(context, None), vectors)
    return (batch.column(0) for split in splits for batch in reader.read_stored(split))


__all__ = ["check_values_fit"]
