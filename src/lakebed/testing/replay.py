"""What changes come to, event by event: the oracle for everything that tells what changed in a table.

Strict on purpose: an event that does not fit what was told before it is an error, even if the sum would come out right.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from lakebed.testing.model import Change, Row, order_of
from lakebed.testing.model_arrow import tally

Key = tuple[object, ...]


def key_of(row: Row, key: Sequence[str]) -> Key:
    """A token for the key of a row: two rows have the same key when their tokens are equal."""
    return tuple(order_of(row[name]) for name in key)


def replayed(changes: Iterable[Change], key: Sequence[str]) -> dict[Key, Row]:
    """The rows that are there after all changes.

    `+I` is for keys that are not there, `-D` and `-U` carry the row as it was, and `+U` follows its `-U`.
    """
    rows: dict[Key, Row] = {}
    awaited: Key | None = None
    for kind, row in changes:
        place = key_of(row, key)
        before = rows.pop(place, None)
        if kind == "+U":
            assert awaited == place, f"+U {row} without its -U"
            rows[place], awaited = row, None
            continue
        assert awaited is None, f"a -U without its +U: {kind} {row} came next"
        if kind == "+I":
            assert before is None, f"+I {row}, but the key has {before}"
            rows[place] = row
            continue
        assert before is not None, f"{kind} {row} of a key that is not there"
        assert tally([before]) == tally([row]), f"{kind} {row}, but the row was {before}"
        awaited = place if kind == "-U" else None
    assert awaited is None, "a -U at the end"
    return rows


__all__ = ["Key", "key_of", "replayed"]
