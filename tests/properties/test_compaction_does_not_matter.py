"""Small histories with retracts, each committed in several ways: what is shown may not depend on what was merged when.

The random histories of `test_engines_model.py` prove the same at large; these say what it means.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import pytest
from tests.properties.side_by_side import SideBySide

from lakebed.testing.model import Value
from lakebed.testing.strategies import TableDefinition
from lakebed.types.logical import INT, AtomicType

N = None
Change = tuple[str, tuple[Value, ...]]

_PARTIAL = {"merge-engine": "partial-update"}
_ON_DELETE = {**_PARTIAL, "partial-update.remove-record-on-delete": "true"}
_GROUPS = {**_PARTIAL, "fields.g.sequence-group": "a", "fields.h.sequence-group": "b"}
_ON_GROUP = {**_GROUPS, "partial-update.remove-record-on-sequence-group": "g"}
_SUM = {"merge-engine": "aggregation", "fields.a.aggregate-function": "sum"}
_SUM_ON_DELETE = {**_SUM, "aggregation.remove-record-on-delete": "true"}

# name: columns, options, changes of key 1, row at the end (N: none)
HISTORIES: dict[str, tuple[str, dict[str, str], list[Change], tuple[Value, ...] | None]] = {
    "M-21 -U is ignored": ("k a", _ON_DELETE, [("+I", (1, 5)), ("-U", (1, 5)), ("-U", (1, 5))], (1, 5)),
    "M-22 partial-update: delete is a barrier": (
        "k a b",
        _ON_DELETE,
        [("+I", (1, 5, 6)), ("-D", (1, 5, 6)), ("+I", (1, N, 7))],
        (1, N, 7),
    ),
    "M-22 aggregation: delete is a barrier": (
        "k a",
        _SUM_ON_DELETE,
        [("+I", (1, 10)), ("-D", (1, 10)), ("+I", (1, 5))],
        (1, 5),
    ),
    "M-22 two barriers": (
        "k a",
        _SUM_ON_DELETE,
        [("+I", (1, 10)), ("-D", (1, 10)), ("+I", (1, 5)), ("-D", (1, 5)), ("-D", (1, 5)), ("+I", (1, 7))],
        (1, 7),
    ),
    "M-12 the newer of two retracts of a group comes first": (
        "k a g b h",
        _GROUPS,
        [("+I", (1, 5, 1, 6, 1)), ("-U", (1, 5, 3, N, N)), ("-U", (1, 5, 2, N, N))],
        (1, N, 3, 6, 1),
    ),
    "M-12 retracts of two groups": (
        "k a g b h",
        _GROUPS,
        [("+I", (1, 5, 1, 6, 1)), ("-U", (1, 5, 3, N, N)), ("-U", (1, N, N, 6, 4))],
        (1, N, 3, N, 4),
    ),
    "M-13 barrier of a group": (
        "k a g b h",
        _ON_GROUP,
        [("+I", (1, 5, 4, 6, 1)), ("-D", (1, 5, 5, N, N)), ("+I", (1, 7, 1, N, N))],
        (1, 7, 1, N, N),
    ),
    "M-13 a lower barrier after a higher one": (
        "k a g b h",
        _ON_GROUP,
        [("+I", (1, 5, 4, 6, 1)), ("-D", (1, 5, 5, N, N)), ("+I", (1, 7, 1, 7, 1)), ("-D", (1, 7, 3, N, N))],
        N,
    ),
    "M-33 sums of a group: two retracts": (
        "k g a",
        {**_PARTIAL, "fields.g.sequence-group": "a", "fields.a.aggregate-function": "sum"},
        [("+I", (1, 1, 10)), ("-U", (1, 2, 3)), ("-U", (1, 3, 4))],
        (1, 3, 3),
    ),
    "M-31 sums take back": (
        "k a",
        _SUM,
        [("+I", (1, 10)), ("+I", (1, 5)), ("-U", (1, 5)), ("-U", (1, 3)), ("+U", (1, 7))],
        (1, 14),
    ),
}


def _partitions(changes: list[Change]) -> Iterator[list[list[Change]]]:
    """All ways to cut the changes into commits."""
    for cuts in itertools.product([False, True], repeat=len(changes) - 1):
        commits = [[changes[0]]]
        for is_cut, change in zip(cuts, changes[1:], strict=True):
            if is_cut:
                commits.append([change])
            else:
                commits[-1].append(change)
        yield commits


@pytest.mark.parametrize("name", HISTORIES)
def test_however_it_is_committed_and_compacted(name: str) -> None:
    """All ways to cut the history into commits, as written, compacted at the end, and fully compacted in between."""
    columns, options, changes, visible = HISTORIES[name]
    names = columns.split()
    types = {column: AtomicType(INT.root, nullable=column != "k") for column in names}
    for commits, compacts in itertools.product(_partitions(changes), [False, True]):
        both = SideBySide(TableDefinition(types, ("k",), (), options, {"bucket": "1", "write-only": "true"}))
        for commit in commits:
            both.write([[dict(zip(names, row, strict=True)) for _, row in commit]], [kind for kind, _ in commit])
            both.check_table()
            if compacts:
                both.compact(full=True)
        assert both.model.rows() == ([] if visible is None else [dict(zip(names, visible, strict=True))])
        both.compact(full=True)
        both.check_table()
        both.close()
