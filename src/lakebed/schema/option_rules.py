"""Which options of a table that has data may still change, and to what.

Options that decide how existing files are laid out or merged are fixed by the first snapshot; a few more may change in
one direction only. A table without snapshots may change anything.
"""

from __future__ import annotations

from collections.abc import Mapping

from lakebed.errors import InvalidOption
from lakebed.schema import column_options as co
from lakebed.schema.validation import bucket_count

_NEW_TABLE = "create a new table with the wanted value and copy the rows"


def check_option_change(options: Mapping[str, str], key: str, old: str | None, new: str | None) -> None:
    """Raise unless a table with snapshots may change option `key` from `old` to `new`; None stands for not set."""
    if old == new:
        return
    if key in co.FIXED_ONCE_WRITTEN:
        raise InvalidOption(f"option `{key}` can not change once the table has snapshots", hint=_NEW_TABLE)
    if key == co.BUCKET:
        _check_bucket(options, new)
    elif key == co.DELETION_VECTORS:
        _check_deletion_vectors(options, new)
    elif key in co.ONLY_SWITCHED_ON and co.is_true(options, key) and not co.is_true({key: new or ""}, key):
        raise InvalidOption(
            f"option `{key}` can not be switched off once the table has snapshots",
            hint="rows dropped meanwhile would be missing; " + _NEW_TABLE,
        )
    elif key == co.CLUSTERING_COLUMNS and co.PK_CLUSTERING_OVERRIDE in options:
        raise InvalidOption(
            f"option `{key}` can not change while `{co.PK_CLUSTERING_OVERRIDE}` is set", hint=_NEW_TABLE
        )


def _check_bucket(options: Mapping[str, str], new: str | None) -> None:
    if new is None:
        raise InvalidOption(
            f"option `{co.BUCKET}` can not be removed once the table has snapshots",
            hint="set another number of buckets",
        )
    old_count, new_count = bucket_count(options), bucket_count({co.BUCKET: new})
    if old_count != new_count and -1 in (old_count, new_count):
        raise InvalidOption(
            f"option `{co.BUCKET}` can not change from {old_count} to {new_count} once the table has snapshots",
            hint="a table keeps or lacks fixed buckets for life; " + _NEW_TABLE,
        )


def _check_deletion_vectors(options: Mapping[str, str], new: str | None) -> None:
    was, will_be = (
        co.is_true(options, co.DELETION_VECTORS),
        co.is_true({co.DELETION_VECTORS: new or ""}, co.DELETION_VECTORS),
    )
    if was != will_be and not co.is_true(options, co.DELETION_VECTORS_MODIFIABLE):
        raise InvalidOption(
            f"option `{co.DELETION_VECTORS}` can not change once the table has snapshots",
            hint=f"compact the table fully, set `{co.DELETION_VECTORS_MODIFIABLE}` to true, then change it",
        )
