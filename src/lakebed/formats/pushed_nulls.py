"""Makes everything below a null null as well.

Arrow does not care what a null ROW has in its members. pyarrow's ORC writer does: it takes a ROW inside a null ROW for
one that is there, and stores the values that follow in the wrong rows.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from lakebed.formats.conform import map_entries


def with_pushed_nulls(array: pa.Array) -> pa.Array:
    """The same values. REQUIRES: no slice, and members that may be null."""
    kind = array.type
    if pa.types.is_struct(kind):
        # Unlike `field`, `flatten` makes members null where the row is.
        members = [with_pushed_nulls(member) for member in array.flatten()]
        return pa.StructArray.from_arrays(members, fields=list(kind), mask=array.is_null())
    if pa.types.is_map(kind):
        entries = map_entries(array)
        keys, items = (with_pushed_nulls(part) for part in entries.flatten().flatten())
        return pa.MapArray.from_arrays(_offsets(entries), keys, items, type=kind, mask=array.is_null())
    if pa.types.is_list(kind):
        values = with_pushed_nulls(array.flatten())
        return pa.ListArray.from_arrays(_offsets(array), values, type=kind, mask=array.is_null())
    return array


def _offsets(lists: pa.ListArray) -> pa.Array:
    """Where each list begins among the values of all that are not null."""
    lengths = lists.value_lengths().fill_null(0).to_numpy()
    return pa.array(np.concatenate([[0], np.cumsum(lengths)]), pa.int32())
