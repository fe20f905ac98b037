"""Short histories that the combination machine carries out: each one finds a certain kind of bug, if it is there.

They are what the machine's own findings shrink to. On sound code none of them finds anything, which the default run
shows; with a mutant planted, the one that the mutant names must.
"""

from __future__ import annotations

from typing import Any

from tests.properties.combinations.configuration import Configuration
from tests.properties.combinations.machine import Operation

History = tuple[Configuration, list[Operation]]


def table(kind: str = "INT", partitioned: bool = False, key: bool = True, **options: str) -> Configuration:
    """Options are spelled with `_` for `-` and `__` for a dot."""
    given = {name.replace("__", ".").replace("_", "-"): text for name, text in options.items()}
    if key:
        given.setdefault("bucket", "1")
    columns = {"k": "INT NOT NULL" if key else "INT", "v0": kind}
    if partitioned:
        columns["p"] = "INT NOT NULL" if key else "INT"
    primary_key = ("k", "p") if partitioned and key else ("k",) if key else ()
    return Configuration(columns, primary_key, ("p",) if partitioned else (), given)


def _rows(*values: tuple[Any, ...]) -> list[dict[str, Any]]:
    return [dict(zip(("k", "v0", "p"), row, strict=False)) for row in values]


def write(*values: tuple[Any, ...], kinds: list[str] | None = None, **more: Any) -> Operation:
    return Operation("write", {"rows": _rows(*values), "kinds": kinds, **more})


def do(name: str, /, **arguments: Any) -> Operation:
    return Operation(name, arguments)


MARKS = {"deletion_vectors__enabled": "true"}
COLUMN_FILES = {"row_tracking__enabled": "true", "data_evolution__enabled": "true"}
SUM = {"merge_engine": "aggregation", "fields__v0__aggregate_function": "sum"}
FULL = do("compact", full=True)
FAR_FUTURE_S = 2_147_483_647
"""Rows of this time do not expire."""

HISTORIES: dict[str, History] = {
    "an old state comes back and is compacted": (
        table(),
        [write((1, 1), (2, 2)), FULL, write((1, 9)), FULL, do("rollback_to_as_latest", back=2), FULL],
    ),
    "a file changes its level twice": (
        table(write_only="true"),
        [write((1, 1)), FULL, do("rollback_to_as_latest", back=1), FULL, write((2, 2)), FULL],
    ),
    "rescale of rows that are not shown": (
        table(write_only="true", **MARKS),
        [write((1, 1), (2, 2)), do("rescale", count=2)],
    ),
    "rows are replaced after the number of levels went down": (
        table(compaction__force_up_level_0="true", target_file_size="1 b", **SUM),
        [
            *(write(row) for row in ((5, 9), (1, 1), (1, 2))),
            do("set_option", key="num-levels", value="3"),
            do("sql_delete", column="k", sign="==", value=5),
        ],
    ),
    "waiting rows and later ones": (
        table(bucket="-2"),
        [
            write((1, 1)),
            do("stream_write", rows=_rows((1, 2)), kinds=None, user="job", replay=False),
            write((1, 3)),
            FULL,
        ],
    ),
    "an overwrite is told": (
        table(changelog_producer="lookup"),
        [write((1, 1), (2, 2)), do("overwrite", rows=_rows((3, 3)), spec={}), write((1, 5))],
    ),
    "a retract that nothing can take": (
        table(merge_engine="aggregation", fields__v0__aggregate_function="max"),
        [write((1, 1)), do("bad_write", row={"k": 1, "v0": 1}, kind="-D")],
    ),
    "a writer commits after another one": (
        table(),
        [
            write((1, 1)),
            do("open_writer", rows=_rows((1, 2), (2, 2)), kinds=None, handle=1),
            write((1, 3)),
            write((1, 4)),
            do("commit_writer"),
        ],
    ),
    "a delete meets older rows late": (
        table(
            write_only="true",
            num_sorted_run__compaction_trigger="2",
            compaction__max_size_amplification_percent="100000",
            num_levels="5",
        ),
        [
            write(*((k, k) for k in range(1, 3000))),
            FULL,
            write((1, 1), kinds=["-D"]),
            write((2, 9)),
            do("compact", full=False),
        ],
    ),
    "a job begins again": (
        table(),
        [write((2, 1), (3, 1), (4, 1), (1, 1)), do("reopen"), write((1, 2)), do("reopen"), write((1, 3))],
    ),
    "dynamic buckets after an old state": (
        table(bucket="-1", dynamic_bucket__target_row_num="1"),
        [
            write((1, 1)),
            write((2, 2), (3, 3)),
            do("rollback_to_as_latest", back=1),
            do("reopen"),
            write((3, 4), (2, 5), (1, 6)),
            write((1, 7), (2, 7), (3, 7)),
        ],
    ),
    "marks after an old state": (
        table(key=False, **MARKS),
        [
            write((1, 1), (2, 2), (3, 3)),
            do("delete_where", column="k", sign="==", value=1),
            do("rollback_to_as_latest", back=1),
        ],
    ),
    "marks in files with columns": (
        table(key=False, write_only="true", **COLUMN_FILES, **MARKS),
        [
            write((1, 1), (2, 2), (3, 3)),
            write((4, 4), (5, 5)),
            do("update_where", column="k", sign="==", value=2, name="v0", new=7),
            do("delete_where", column="k", sign="==", value=5),
            FULL,
        ],
    ),
    "the last row of files with columns": (
        table(key=False, write_only="true", **COLUMN_FILES, **MARKS),
        [
            write((1, 1), (2, 2)),
            do("update_where", column="k", sign="==", value=2, name="v0", new=7),
            do("delete_where", column="k", sign="==", value=1),
            do("delete_where", column="k", sign="==", value=2),
        ],
    ),
    "a tag outlives its snapshot": (
        table(),
        [
            write((1, 1)),
            do("tag", back=0),
            do("overwrite", rows=_rows((2, 2)), spec={}),
            write((3, 3)),
            do("expire", keep=1),
            do("reopen"),
        ],
    ),
    "an old state outlives its snapshot": (
        table(write_only="true"),
        [
            write((1, 1)),
            do("overwrite", rows=_rows((2, 2)), spec={}),
            do("rollback_to_as_latest", back=1),
            do("expire", keep=1),
            do("reopen"),
        ],
    ),
    "a stream repeats its commit": (
        table(**SUM),
        [
            do("stream_write", rows=_rows((1, 5)), kinds=None, user="job", replay=False),
            do("stream_write", rows=_rows((1, 5)), kinds=None, user="job", replay=True),
        ],
    ),
    "a stream repeats its commit after its snapshots have expired": (
        table(**SUM),
        [
            do("stream_write", rows=_rows((1, 5)), kinds=None, user="job", replay=False),
            write((2, 1)),
            do("expire", keep=1),
            do("stream_write", rows=_rows((1, 5)), kinds=None, user="job", replay=True),
        ],
    ),
    "another number of buckets": (
        table(bucket="2"),
        [
            write(*((k, 1) for k in range(1, 7))),
            do("set_option", key="bucket", value="3"),
            write(*((k, 2) for k in range(1, 7))),
        ],
    ),
    "marks of files that are gone": (
        table(num_sorted_run__compaction_trigger="2", **MARKS),
        [write((1, 1), (2, 2)), write((1, 2)), write((2, 3)), FULL, write((1, 4)), FULL],
    ),
    "an overwrite of marked rows": (
        table(key=False, **MARKS),
        [
            write((1, 1), (2, 2)),
            do("delete_where", column="k", sign="==", value=1),
            do("overwrite", rows=_rows((4, 4)), spec={}),
        ],
    ),
    "an overwrite of dynamic buckets": (
        table(bucket="-1", dynamic_bucket__target_row_num="1"),
        [
            write((1, 1), (2, 2), (3, 3)),
            do("overwrite", rows=_rows((4, 4)), spec={}),
            do("reopen"),
            write((3, 5), (1, 5)),
        ],
    ),
    "a column goes and comes back": (
        Configuration({"k": "INT NOT NULL", "v0": "INT", "v1": "INT"}, ("k",), (), {"bucket": "1"}),
        [
            Operation("write", {"rows": [{"k": 1, "v0": 1, "v1": 7}], "kinds": None}),
            do("drop_column", name="v1"),
            do("add_column", name="v1", kind="INT"),
        ],
    ),
    "orphans go while a tag needs files": (
        table(),
        [
            write((1, 1)),
            do("tag", back=0),
            do("overwrite", rows=_rows((2, 2)), spec={}),
            do("expire", keep=1),
            do("orphans"),
        ],
    ),
    "changes are told": (
        table(changelog_producer="full-compaction"),
        [write((1, 1), (2, 2)), write((1, 1), kinds=["-D"]), write((1, 5)), write((2, 5))],
    ),
    "changes that change nothing": (
        table(changelog_producer="lookup"),
        [write((1, 1), (2, 2)), write((1, 3)), write((1, 3)), write((2, 2), kinds=["-D"]), write((2, 2))],
    ),
    "filters and newer rows": (
        table(write_only="true", file__format="parquet"),
        [
            write((1, 1), (2, 2), (3, 3)),
            write((1, 9)),
            do("read", column="v0", sign="<=", value=2),
            do("read", column="v0", sign="==", value=1),
        ],
    ),
    "rows of several commits": (
        table(write_only="true"),
        [write((2, 1), (3, 1), (4, 1), (1, 1)), write((1, 2)), do("reopen"), write((1, 3)), FULL],
    ),
    "a key moves": (
        Configuration({"k": "INT NOT NULL", "v0": "INT", "p": "INT NOT NULL"}, ("k",), ("p",), {"bucket": "-1"}),
        [write((1, 1, 1)), write((1, 2, 2)), write((1, 3, 1)), do("reopen"), write((1, 4, 3))],
    ),
    "the first row stays": (
        table(merge_engine="first-row"),
        [write((1, 1)), write((1, 2), (2, 2)), FULL, write((2, 3))],
    ),
    "later values of a sequence come first": (
        Configuration(
            {"k": "INT NOT NULL", "v0": "INT", "s": "INT"}, ("k",), (), {"bucket": "1", "sequence.field": "s"}
        ),
        [
            Operation("write", {"rows": [{"k": 1, "v0": 1, "s": 9}], "kinds": None}),
            Operation("write", {"rows": [{"k": 1, "v0": 2, "s": 3}], "kinds": None}),
            Operation("write", {"rows": [{"k": 1, "v0": 3, "s": None}], "kinds": None}),
            FULL,
        ],
    ),
    "an option changes what order rows have": (
        Configuration(
            {"k": "INT NOT NULL", "v0": "INT", "s": "INT"}, ("k",), (), {"bucket": "1", "write-only": "true"}
        ),
        [
            Operation("write", {"rows": [{"k": 1, "v0": 1, "s": 9}], "kinds": None}),
            Operation("write", {"rows": [{"k": 1, "v0": 2, "s": 3}], "kinds": None}),
            do("set_option", key="sequence.field", value="s"),
            Operation("write", {"rows": [{"k": 2, "v0": 2, "s": 3}], "kinds": None}),
        ],
    ),
    "rows expire after they were looked up": (
        Configuration(
            {"k": "INT NOT NULL", "v0": "INT", "at": "INT"},
            ("k",),
            (),
            {
                "bucket": "1",
                **{"merge-engine": "aggregation", "fields.v0.aggregate-function": "sum", "force-lookup": "true"},
                **{"record-level.time-field": "at", "record-level.expire-time": "36500 d"},
            },
        ),
        [
            Operation("write", {"rows": [{"k": k, "v0": 10, "at": 1} for k in range(1, 1000)], "kinds": None}),
            FULL,
            Operation("write", {"rows": [{"k": 1, "v0": 1, "at": FAR_FUTURE_S}], "kinds": None}),
            do("set_option", key="record-level.expire-time", value="1 d"),
            Operation("write", {"rows": [{"k": 2, "v0": 2, "at": FAR_FUTURE_S}], "kinds": None}),
        ],
    ),
    "manifests are merged while rows wait": (
        table(
            partitioned=True,
            bucket="-2",
            postpone__batch_write_fixed_bucket="false",
            manifest__target_file_size="2600 b",
            manifest__full_compaction_threshold_size="1 b",
        ),
        [
            write((1, 1, 1)),
            write(*((1, 2, partition) for partition in range(1, 30))),
            write((1, 2, 500)),
            write((1, 2, 501)),
            FULL,
        ],
    ),
    "a writer dies": (
        table(),
        [
            write((1, 1)),
            *(do("crash", operation=["write", {"rows": _rows((1, n)), "kinds": None}], at=n) for n in range(2, 12)),
        ],
    ),
    "a write on a state that was taken back": (
        table(),
        [write((1, 1)), write((1, 2)), write((1, 3)), do("rollback_to", back=4), write((1, 4)), write((1, 5))],
    ),
    "rows of a partition go": (
        table(partitioned=True, changelog_producer="lookup"),
        [write((1, 1, 1), (2, 2, 2)), do("drop_partition", value=1), write((1, 3, 1))],
    ),
}

__all__ = ["FULL", "HISTORIES", "MARKS", "SUM", "History", "do", "table", "write"]
