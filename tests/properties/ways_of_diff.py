"""Makes `t.diff` go one of its ways, however few the rows are, and counts how often. Only tests import this."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest import mock

import pyarrow as pa

from lakebed.changes import changed_keys, diff

PLAIN, FILES, COMMITS = "range by range", "keys of files", "keys of commits"
WAYS = (PLAIN, FILES, COMMITS)

taken: Counter[str] = Counter()
"""How often some keys were looked up, by way."""


@contextmanager
def differences_by(way: str) -> Iterator[None]:
    """Within it, differences of tables with a key are found this way where it is sound. Keys come two at a time."""
    if way not in WAYS:
        yield
        return
    chunks, keys_changed_in = changed_keys.ChangedKeys.chunks, changed_keys.Commits.keys_changed_in

    def counted(self: changed_keys.ChangedKeys) -> Iterator[tuple[pa.Array, ...]]:
        for chunk in chunks(self):
            taken[way] += 1
            yield chunk

    def first(self: changed_keys.Commits, *args: Any) -> Any:
        found = keys_changed_in(self, *args)
        if found is not None and not found:
            taken[f"{way}: none"] += 1
        return found

    is_worth_it = {PLAIN: False, FILES: True, COMMITS: True}[way]
    with (
        mock.patch.object(changed_keys, "CHUNK_KEYS", 2),
        mock.patch.object(changed_keys.ChangedKeys, "chunks", counted),
        mock.patch.object(changed_keys.Commits, "keys_changed_in", first),
        mock.patch.object(diff, "is_worth_looking_up", return_value=is_worth_it),
    ):
        if way == COMMITS:
            yield
        else:
            with mock.patch.object(diff, "commits_between", return_value=None):
                yield


__all__ = ["WAYS", "differences_by", "taken"]
