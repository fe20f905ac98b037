"""What a statement may do to a table, and how it is carried out: the one table that all statements ask.

Rows of a key are merged by the table's engine, so writing a row over another one gives what the statement says for some
engines and something else for others. Where it would not, the rows are rewritten: everything that is stored of them is
merged first, and the new rows then take the place of the old ones, whatever the engine. The page of the reference about
it is made from here.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum, StrEnum

from lakebed.options import (
    AGGREGATION_REMOVE_RECORD_ON_DELETE,
    DATA_EVOLUTION_ENABLED,
    DELETION_VECTORS_ENABLED,
    FIELD_SEQUENCE_GROUP,
    IGNORE_DELETE,
    MERGE_ENGINE,
    PARTIAL_UPDATE_REMOVE_RECORD_ON_DELETE,
    SCAN_FALLBACK_BRANCH,
    SCAN_PRIMARY_BRANCH,
    SEQUENCE_FIELD,
    Options,
)
from lakebed.records import dataclass


class Statement(StrEnum):
    """What changes rows of a table."""

    INSERT = "INSERT"
    UPDATE = "UPDATE"
    DELETE = "DELETE"
    MERGE = "MERGE"
    OVERWRITE = "INSERT OVERWRITE"
    TRUNCATE = "TRUNCATE, DROP PARTITION"
    RESCALE = "rescale"
    ROLLBACK = "rollback_to_as_latest"


class Way(Enum):
    """How a statement is carried out."""

    APPEND = "new rows are added and merged with those that are there"
    RETRACT = "rows of kind -D are added, which remove those that are there"
    PLACES = "old rows are marked as deleted or their files rewritten, new ones are added"
    MARKS = "rows are marked as deleted, and stay where they lie"
    COLUMNS = "columns that change are written beside the old ones, rows stay where they lie; deleted rows are marked"
    REWRITE = "all that is stored is merged first, then the new rows take the place of the old ones in their files"
    REPLACE = "files are replaced as a whole"
    NOTHING = "nothing happens, and a warning says so"
    REFUSED = "refused"


@dataclass(frozen=True, slots=True)
class Rule:
    """How one statement is carried out on one table, and why."""

    way: Way
    why: str = ""
    hint: str = ""


@dataclass(frozen=True, slots=True)
class Sets:
    """What UPDATE, or UPDATE in a MERGE, assigns: columns, and whether a value may be null."""

    columns: Mapping[str, bool]
    moves: bool = False
    """Whether the partition of a row is assigned."""


def rule_of(
    statement: Statement,
    options: Options,
    sets: Sets | None = None,
    *,
    deletes: bool = False,
    has_key: bool = True,
    other_branch: str | None = None,
) -> Rule:
    """The rule of a statement for a table with these options.

    `sets` is what it assigns to rows that are there; `deletes` says whether a MERGE deletes rows; `other_branch` is the
    one of which reads show partitions, too.
    """
    match statement:
        case Statement.OVERWRITE | Statement.TRUNCATE | Statement.ROLLBACK:
            return Rule(Way.REPLACE)
        case Statement.RESCALE:
            if not has_key:
                return Rule(Way.REPLACE)
            return Rule(Way.REPLACE, "rows that reads do not show yet are compacted first")
        case Statement.INSERT:
            return Rule(Way.APPEND)
    if other_branch is not None:
        # INVARIANT: a row that is found there would be written here, and then all others of its partition are hidden.
        return Rule(
            Way.REFUSED,
            f"its rows may be those of branch `{other_branch}`, which reads show as its own",
            f"change them in the branch, `...$branch_{other_branch}`, or reset `{SCAN_FALLBACK_BRANCH.key}` and "
            f"`{SCAN_PRIMARY_BRANCH.key}` to change the table's own",
        )
    if not has_key:
        return _placed(statement, options, deletes=deletes)
    if statement is Statement.DELETE:
        return _delete(options)
    rules = [_update(options, sets or Sets({}), is_merge=statement is Statement.MERGE)]
    if deletes:
        rules.append(_delete(options))
    return max(rules, key=lambda rule: _STRENGTH.index(rule.way))


_STRENGTH = (Way.NOTHING, Way.APPEND, Way.RETRACT, Way.REWRITE, Way.REFUSED)
"""Of the ways that parts of one statement need, the last serves all of them."""


def _placed(statement: Statement, options: Options, *, deletes: bool) -> Rule:
    """Of tables without a key, whose rows are changed where they lie."""
    if not options[DATA_EVOLUTION_ENABLED]:
        return Rule(Way.PLACES)
    if (deletes or statement is Statement.DELETE) and not options[DELETION_VECTORS_ENABLED]:
        return Rule(
            Way.REFUSED,
            f"with `{DATA_EVOLUTION_ENABLED.key}` rows can be added and changed, not deleted",
            f"set `{DELETION_VECTORS_ENABLED.key}` to true, so that rows can be marked as deleted, or overwrite or "
            "drop whole partitions",
        )
    return Rule(Way.MARKS if statement is Statement.DELETE else Way.COLUMNS)


def _delete(options: Options) -> Rule:
    engine = options[MERGE_ENGINE]
    if options[IGNORE_DELETE]:
        return Rule(Way.NOTHING, f"the table ignores deletes: `{IGNORE_DELETE.key}` is set")
    if engine == "deduplicate":
        return Rule(Way.RETRACT)
    removing = {
        "partial-update": PARTIAL_UPDATE_REMOVE_RECORD_ON_DELETE,
        "aggregation": AGGREGATION_REMOVE_RECORD_ON_DELETE,
    }.get(engine)
    if removing is not None and options[removing]:
        return Rule(Way.RETRACT, f"`{removing.key}` is set")
    return Rule(Way.REWRITE, f"merge engine `{engine}` does not take -D rows as the end of a row")


def _update(options: Options, sets: Sets, *, is_merge: bool) -> Rule:
    """A MERGE that only inserts is refused where others are, so that adding a clause changes nothing."""
    engine, columns = options[MERGE_ENGINE], sets.columns
    if engine not in ("deduplicate", "partial-update"):
        return Rule(
            Way.REFUSED,
            f"merge engine `{engine}` has no new versions of a row",
            "only deduplicate and partial-update can; write new rows instead",
        )
    if not columns:
        return Rule(Way.APPEND)
    ordering = sorted(set(options[SEQUENCE_FIELD] or ()) & set(columns))
    if ordering and not is_merge:
        return Rule(Way.REWRITE, f"a row with a smaller `{ordering[0]}` would lose against the old one")
    if engine == "deduplicate":
        return Rule(Way.APPEND)
    if sets.moves and not is_merge:
        return Rule(Way.REWRITE, "a row that is added stays in the partition where its key is")
    if options.fields_with(FIELD_SEQUENCE_GROUP):
        return Rule(Way.REWRITE, "columns of sequence groups are aggregated, or follow an order of their own")
    nullable = sorted(name for name, may_be_null in columns.items() if may_be_null)
    if nullable:
        return Rule(
            Way.REWRITE, f"the new value of `{nullable[0]}` may be null, which changes nothing when it is added"
        )
    return Rule(Way.APPEND)


# --- the page --------------------------------------------------------------------------------------------------------

_PARTIAL, _AGGREGATION = {MERGE_ENGINE.key: "partial-update"}, {MERGE_ENGINE.key: "aggregation"}
_COLUMN_FILES = {DATA_EVOLUTION_ENABLED.key: "true"}
_UNKEYED: tuple[tuple[str, Mapping[str, str]], ...] = (
    ("no primary key", {}),
    (f"no primary key, `{DATA_EVOLUTION_ENABLED.key}`", _COLUMN_FILES),
    (
        f"no primary key, `{DATA_EVOLUTION_ENABLED.key}` and `{DELETION_VECTORS_ENABLED.key}`",
        {**_COLUMN_FILES, DELETION_VECTORS_ENABLED.key: "true"},
    ),
)
_KEYED: tuple[tuple[str, Mapping[str, str]], ...] = (
    ("deduplicate", {}),
    (f"deduplicate, `{IGNORE_DELETE.key}`", {IGNORE_DELETE.key: "true"}),
    ("partial-update", _PARTIAL),
    (
        f"partial-update, `{PARTIAL_UPDATE_REMOVE_RECORD_ON_DELETE.key}`",
        {**_PARTIAL, PARTIAL_UPDATE_REMOVE_RECORD_ON_DELETE.key: "true"},
    ),
    ("partial-update, sequence groups", {**_PARTIAL, "fields.g.sequence-group": "v"}),
    ("aggregation", _AGGREGATION),
    (
        f"aggregation, `{AGGREGATION_REMOVE_RECORD_ON_DELETE.key}`",
        {**_AGGREGATION, AGGREGATION_REMOVE_RECORD_ON_DELETE.key: "true"},
    ),
    ("first-row", {MERGE_ENGINE.key: "first-row"}),
)

_HEAD = """# What a statement does

Made by `make docs`. Bucket modes, changelog producers and deletion vectors change none of this: rows that wait for
their bucket are placed before a statement reads, new files that reads do not show yet are read too, and a table with a
complete changelog (`lookup`, `full-compaction`) tells what a statement changes, whichever way it is carried out. If
others change the same rows meanwhile, the statement begins anew.
"""
_TAIL = """
A rewrite compacts first. On a table with `write-only`, where that is left to others, it is refused until they have:
`CALL sys.compact(table => 't', compact_strategy => 'full')`. An UPDATE that sets a column of `sequence.field` is a
rewrite: with a smaller value the new row would lose; so is one that moves rows of a `partial-update` table to another
partition. A MERGE brings rows as INSERT does: those with a smaller value of
`sequence.field` than the stored row change nothing.

INSERT appends. INSERT OVERWRITE, TRUNCATE, DROP PARTITION, `rescale` and `rollback_to_as_latest` replace files; what
they replace has been read, or goes because it was named.

Where a column says the kinds of rows (`rowkind.field`), a statement that sets it writes rows of these kinds: UPDATE ...
SET it to `-D` deletes. One that does not set it writes what it does there.

Of a table with `data-evolution.enabled`, UPDATE and MERGE write no row again, but the changed columns of all rows of
the range of row ids that a changed row is in; values of partition columns stay. Marked rows stay in their places, so
that others keep their ids. A compaction joins files and takes the marks along. Only with
`data-evolution.compaction.rewrite-row-ids` it leaves marked rows out: the rows beside them get new ids.

Rows of kinds that a table could store but not merge (-D rows of `partial-update` without an option for them, or of
functions that take nothing back) are refused when they are written.

Of a table that shows partitions of another branch (`scan.fallback-branch`, `scan.primary-branch`), UPDATE, DELETE and
MERGE are refused: a row of the other branch would be written here, and hide all others of its partition.
"""


def page() -> str:
    """The table as a page of the reference."""
    cases: tuple[tuple[str, Statement, Sets | None, bool], ...] = (
        ("UPDATE", Statement.UPDATE, Sets({"v": False}), False),
        ("UPDATE, value may be null", Statement.UPDATE, Sets({"v": True}), False),
        ("DELETE", Statement.DELETE, None, False),
        ("MERGE, updates", Statement.MERGE, Sets({"v": True}), False),
        ("MERGE, deletes", Statement.MERGE, None, True),
    )
    lines = [_HEAD, *(f"- **{way.name.lower()}**: {way.value}." for way in Way if way is not Way.REFUSED), ""]
    lines += ["| Table | " + " | ".join(name for name, *_ in cases) + " |", "|---" * (len(cases) + 1) + "|"]
    for has_key, name, raw in [*((False, *kind) for kind in _UNKEYED), *((True, *kind) for kind in _KEYED)]:
        options = Options(dict(raw))
        ways = (
            rule_of(statement, options, sets, deletes=deletes, has_key=has_key).way
            for _, statement, sets, deletes in cases
        )
        lines.append(f"| {name} | " + " | ".join(way.name.lower() for way in ways) + " |")
    return "\n".join([*lines, _TAIL])


if __name__ == "__main__":
    import sys

    sys.stdout.write(page())


__all__ = ["Rule", "Sets", "Statement", "Way", "page", "rule_of"]
