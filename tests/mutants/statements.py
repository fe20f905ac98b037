"""Short histories with statements of SQL, which need a Spark session: beside those of `histories`, for the same use."""

from __future__ import annotations

from tests.mutants.histories import FULL, MARKS, SUM, History, do, table, write
from tests.properties.combinations.configuration import Configuration
from tests.properties.combinations.machine import Operation

_GROUPS = Configuration(
    {"k": "INT NOT NULL", "g0": "INT", "a0": "INT", "v0": "INT"},
    ("k",),
    (),
    {
        "bucket": "1",
        "merge-engine": "partial-update",
        "fields.g0.sequence-group": "a0",
        "fields.a0.aggregate-function": "sum",
    },
)
_TWO = {"k": "INT NOT NULL", "v0": "INT", "v1": "INT"}


def _where_key(key: int) -> dict[str, object]:
    return {"column": "k", "sign": "==", "value": key}


STATEMENTS: dict[str, History] = {
    "an update beside sums": (
        _GROUPS,
        [
            Operation("write", {"rows": [{"k": 1, "g0": 1, "a0": 5, "v0": 1}], "kinds": None}),
            do("sql_update", **_where_key(1), name="v0", new=9),
        ],
    ),
    "an update of a group without an order": (
        _GROUPS,
        [
            Operation("write", {"rows": [{"k": 1, "g0": None, "a0": None, "v0": 1}], "kinds": None}),
            do("sql_update", **_where_key(1), name="a0", new=3),
        ],
    ),
    "a merge beside sums": (
        _GROUPS,
        [
            Operation("write", {"rows": [{"k": 1, "g0": 1, "a0": 5, "v0": 1}], "kinds": None}),
            do("sql_merge", rows=[{"k": 1, "g0": 2, "a0": 2, "v0": 2}], name="v0", delete=False),
        ],
    ),
    "a merge deletes": (
        table(merge_engine="partial-update"),
        [write((1, 1), (2, 2)), do("sql_merge", rows=[{"k": 1, "v0": 0}], name="v0", delete=True)],
    ),
    "a delete beside rows that add up": (
        table(**SUM),
        [write((1, 5), (2, 5)), write((1, 3), (2, 3)), do("sql_delete", **_where_key(1))],
    ),
    "a delete beside first rows": (
        table(merge_engine="first-row", num_sorted_run__compaction_trigger="5"),
        [write((1, 1), (2, 2)), write((2, 3), (3, 3)), do("sql_delete", **_where_key(1))],
    ),
    "an update of a row with a newer one that is not shown": (
        Configuration(_TWO, ("k",), (), {"bucket": "1", "deletion-vectors.enabled": "true", "write-only": "true"}),
        [
            Operation("write", {"rows": [{"k": 1, "v0": 1, "v1": 1}], "kinds": None}),
            FULL,
            Operation("write", {"rows": [{"k": 1, "v0": 2, "v1": 2}], "kinds": None}),
            do("sql_update", **_where_key(1), name="v0", new=9),
        ],
    ),
    "a delete of rows that wait": (
        table(bucket="-2", postpone__batch_write_fixed_bucket="false"),
        [write((1, 1), (2, 2)), do("sql_delete", **_where_key(1)), write((3, 3))],
    ),
    "an update to nothing": (
        Configuration(_TWO, ("k",), (), {"bucket": "1", "merge-engine": "partial-update"}),
        [
            Operation("write", {"rows": [{"k": 1, "v0": 1, "v1": 1}], "kinds": None}),
            do("sql_update", **_where_key(1), name="v0", new=None),
        ],
    ),
    "an update to a smaller sequence": (
        Configuration({**_TWO, "s": "INT"}, ("k",), (), {"bucket": "1", "sequence.field": "s"}),
        [
            Operation("write", {"rows": [{"k": 1, "v0": 1, "v1": 1, "s": 9}], "kinds": None}),
            do("sql_update", **_where_key(1), name="s", new=3),
        ],
    ),
    "an update to another partition": (
        Configuration(
            {"k": "INT NOT NULL", "v0": "INT", "p": "INT NOT NULL"},
            ("k",),
            ("p",),
            {"bucket": "-1", "merge-engine": "partial-update"},
        ),
        [write((1, 1, 1), (2, 2, 1)), do("sql_update", **_where_key(1), name="p", new=2), write((1, 5, 2))],
    ),
    "an update that is refused beside rows that wait": (
        Configuration(_TWO, ("k",), (), {"bucket": "-2", "merge-engine": "partial-update", "write-only": "true"}),
        [
            do("stream_write", rows=[{"k": 1, "v0": 1, "v1": 1}], kinds=None, user="job", replay=False),
            do("sql_update", **_where_key(1), name="v0", new=None),
        ],
    ),
    "an overwrite of marked rows by a statement": (
        table(**MARKS),
        [
            write((1, 1), (2, 2)),
            write((1, 3)),
            do("sql_overwrite", rows=[{"k": 3, "v0": 3}]),
            do("sql_update", **_where_key(3), name="v0", new=9),
        ],
    ),
}

__all__ = ["STATEMENTS"]
