"""Short histories that the combination machine carries out: each one finds a certain kind of bug, if it is there.

They are what the machine's own findings shrink to. On sound code none of them finds anything, which the default run
shows; with a mutant planted, the one that the mutant names must.
"""

from __future__ import annotations

from typing import Any

from tests.properties.combinations.configuration import Configuration
from tests.properties.combinations.machine import Operation

History = tuple[Configuration, list[Operation]]


def _table(kind: str = "INT", partitioned: bool = False, key: bool = True, **options: str) -> Configuration:
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


def _write(*values: tuple[Any, ...], kinds: list[str] | None = None, **more: Any) -> Operation:
    return Operation("write", {"rows": _rows(*values), "kinds": kinds, **more})


def _do(name: str, /, **arguments: Any) -> Operation:
    return Operation(name, arguments)


_MARKS = {"deletion_vectors__enabled": "true"}
_SUM = {"merge_engine": "aggregation", "fields__v0__aggregate_function": "sum"}
_FULL = _do("compact", full=True)

HISTORIES: dict[str, History] = {
    "an old state comes back and is compacted": (
        _table(),
        [_write((1, 1), (2, 2)), _FULL, _write((1, 9)), _FULL, _do("rollback_to_as_latest", back=2), _FULL],
    ),
    "a file changes its level twice": (
        _table(write_only="true"),
        [_write((1, 1)), _FULL, _do("rollback_to_as_latest", back=1), _FULL, _write((2, 2)), _FULL],
    ),
    "rescale of rows that are not shown": (
        _table(write_only="true", **_MARKS),
        [_write((1, 1), (2, 2)), _do("rescale", count=2)],
    ),
    "waiting rows and later ones": (
        _table(bucket="-2"),
        [
            _write((1, 1)),
            _do("stream_write", rows=_rows((1, 2)), kinds=None, user="job", replay=False),
            _write((1, 3)),
            _FULL,
        ],
    ),
    "an overwrite is told": (
        _table(changelog_producer="lookup"),
        [_write((1, 1), (2, 2)), _do("overwrite", rows=_rows((3, 3)), spec={}), _write((1, 5))],
    ),
    "a retract that nothing can take": (
        _table(merge_engine="aggregation", fields__v0__aggregate_function="max"),
        [_write((1, 1)), _do("bad_write", row={"k": 1, "v0": 1}, kind="-D")],
    ),
    "a writer commits after another one": (
        _table(),
        [
            _write((1, 1)),
            _do("open_writer", rows=_rows((1, 2), (2, 2)), kinds=None, handle=1),
            _write((1, 3)),
            _write((1, 4)),
            _do("commit_writer"),
        ],
    ),
    "a delete meets older rows late": (
        _table(
            write_only="true",
            num_sorted_run__compaction_trigger="2",
            compaction__max_size_amplification_percent="100000",
            num_levels="5",
        ),
        [
            _write(*((k, k) for k in range(1, 3000))),
            _FULL,
            _write((1, 1), kinds=["-D"]),
            _write((2, 9)),
            _do("compact", full=False),
        ],
    ),
    "a job begins again": (
        _table(),
        [_write((2, 1), (3, 1), (4, 1), (1, 1)), _do("reopen"), _write((1, 2)), _do("reopen"), _write((1, 3))],
    ),
    "dynamic buckets after an old state": (
        _table(bucket="-1", dynamic_bucket__target_row_num="1"),
        [
            _write((1, 1)),
            _write((2, 2), (3, 3)),
            _do("rollback_to_as_latest", back=1),
            _do("reopen"),
            _write((3, 4), (2, 5), (1, 6)),
            _write((1, 7), (2, 7), (3, 7)),
        ],
    ),
    "marks after an old state": (
        _table(key=False, **_MARKS),
        [
            _write((1, 1), (2, 2), (3, 3)),
            _do("delete_where", column="k", sign="==", value=1),
            _do("rollback_to_as_latest", back=1),
        ],
    ),
    "a tag outlives its snapshot": (
        _table(),
        [
            _write((1, 1)),
            _do("tag", back=0),
            _do("overwrite", rows=_rows((2, 2)), spec={}),
            _write((3, 3)),
            _do("expire", keep=1),
            _do("reopen"),
        ],
    ),
    "an old state outlives its snapshot": (
        _table(write_only="true"),
        [
            _write((1, 1)),
            _do("overwrite", rows=_rows((2, 2)), spec={}),
            _do("rollback_to_as_latest", back=1),
            _do("expire", keep=1),
            _do("reopen"),
        ],
    ),
    "a stream repeats its commit": (
        _table(**_SUM),
        [
            _do("stream_write", rows=_rows((1, 5)), kinds=None, user="job", replay=False),
            _do("stream_write", rows=_rows((1, 5)), kinds=None, user="job", replay=True),
        ],
    ),
    "a stream repeats its commit after its snapshots have expired": (
        _table(**_SUM),
        [
            _do("stream_write", rows=_rows((1, 5)), kinds=None, user="job", replay=False),
            _write((2, 1)),
            _do("expire", keep=1),
            _do("stream_write", rows=_rows((1, 5)), kinds=None, user="job", replay=True),
        ],
    ),
    "another number of buckets": (
        _table(bucket="2"),
        [
            _write(*((k, 1) for k in range(1, 7))),
            _do("set_option", key="bucket", value="3"),
            _write(*((k, 2) for k in range(1, 7))),
        ],
    ),
    "marks of files that are gone": (
        _table(num_sorted_run__compaction_trigger="2", **_MARKS),
        [_write((1, 1), (2, 2)), _write((1, 2)), _write((2, 3)), _FULL, _write((1, 4)), _FULL],
    ),
    "an overwrite of marked rows": (
        _table(key=False, **_MARKS),
        [
            _write((1, 1), (2, 2)),
            _do("delete_where", column="k", sign="==", value=1),
            _do("overwrite", rows=_rows((4, 4)), spec={}),
        ],
    ),
    "an overwrite of dynamic buckets": (
        _table(bucket="-1", dynamic_bucket__target_row_num="1"),
        [
            _write((1, 1), (2, 2), (3, 3)),
            _do("overwrite", rows=_rows((4, 4)), spec={}),
            _do("reopen"),
            _write((3, 5), (1, 5)),
        ],
    ),
    "a column goes and comes back": (
        Configuration({"k": "INT NOT NULL", "v0": "INT", "v1": "INT"}, ("k",), (), {"bucket": "1"}),
        [
            Operation("write", {"rows": [{"k": 1, "v0": 1, "v1": 7}], "kinds": None}),
            _do("drop_column", name="v1"),
            _do("add_column", name="v1", kind="INT"),
        ],
    ),
    "orphans go while a tag needs files": (
        _table(),
        [
            _write((1, 1)),
            _do("tag", back=0),
            _do("overwrite", rows=_rows((2, 2)), spec={}),
            _do("expire", keep=1),
            _do("orphans"),
        ],
    ),
    "changes are told": (
        _table(changelog_producer="full-compaction"),
        [_write((1, 1), (2, 2)), _write((1, 1), kinds=["-D"]), _write((1, 5)), _write((2, 5))],
    ),
    "changes that change nothing": (
        _table(changelog_producer="lookup"),
        [_write((1, 1), (2, 2)), _write((1, 3)), _write((1, 3)), _write((2, 2), kinds=["-D"]), _write((2, 2))],
    ),
    "filters and newer rows": (
        _table(write_only="true", file__format="parquet"),
        [
            _write((1, 1), (2, 2), (3, 3)),
            _write((1, 9)),
            _do("read", column="v0", sign="<=", value=2),
            _do("read", column="v0", sign="==", value=1),
        ],
    ),
    "rows of several commits": (
        _table(write_only="true"),
        [_write((2, 1), (3, 1), (4, 1), (1, 1)), _write((1, 2)), _do("reopen"), _write((1, 3)), _FULL],
    ),
    "a key moves": (
        Configuration({"k": "INT NOT NULL", "v0": "INT", "p": "INT NOT NULL"}, ("k",), ("p",), {"bucket": "-1"}),
        [_write((1, 1, 1)), _write((1, 2, 2)), _write((1, 3, 1)), _do("reopen"), _write((1, 4, 3))],
    ),
    "the first row stays": (
        _table(merge_engine="first-row"),
        [_write((1, 1)), _write((1, 2), (2, 2)), _FULL, _write((2, 3))],
    ),
    "later values of a sequence come first": (
        Configuration(
            {"k": "INT NOT NULL", "v0": "INT", "s": "INT"}, ("k",), (), {"bucket": "1", "sequence.field": "s"}
        ),
        [
            Operation("write", {"rows": [{"k": 1, "v0": 1, "s": 9}], "kinds": None}),
            Operation("write", {"rows": [{"k": 1, "v0": 2, "s": 3}], "kinds": None}),
            Operation("write", {"rows": [{"k": 1, "v0": 3, "s": None}], "kinds": None}),
            _FULL,
        ],
    ),
    "an option changes what order rows have": (
        Configuration(
            {"k": "INT NOT NULL", "v0": "INT", "s": "INT"}, ("k",), (), {"bucket": "1", "write-only": "true"}
        ),
        [
            Operation("write", {"rows": [{"k": 1, "v0": 1, "s": 9}], "kinds": None}),
            Operation("write", {"rows": [{"k": 1, "v0": 2, "s": 3}], "kinds": None}),
            _do("set_option", key="sequence.field", value="s"),
            Operation("write", {"rows": [{"k": 2, "v0": 2, "s": 3}], "kinds": None}),
        ],
    ),
    "a writer dies": (
        _table(),
        [
            _write((1, 1)),
            *(_do("crash", operation=["write", {"rows": _rows((1, n)), "kinds": None}], at=n) for n in range(2, 12)),
        ],
    ),
    "a write on a state that was taken back": (
        _table(),
        [_write((1, 1)), _write((1, 2)), _write((1, 3)), _do("rollback_to", back=4), _write((1, 4)), _write((1, 5))],
    ),
    "rows of a partition go": (
        _table(partitioned=True, changelog_producer="lookup"),
        [_write((1, 1, 1), (2, 2, 2)), _do("drop_partition", value=1), _write((1, 3, 1))],
    ),
}

__all__ = ["HISTORIES", "History"]
