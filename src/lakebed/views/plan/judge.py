"""Which way each part of a query follows changes: one word, one reason, one thing to do about it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import StrEnum

from lakebed.algebra.equalities import equalities
from lakebed.algebra.relations import (
    Filter,
    Group,
    Join,
    JoinKind,
    Limit,
    Numbers,
    Project,
    Relation,
    Rows,
    Scan,
    SetKind,
    SetOperation,
    Subquery,
    Unnest,
    Window,
)
from lakebed.expressions import kinds
from lakebed.expressions.nodes import Aggregation, Column, Expression
from lakebed.records import dataclass
from lakebed.views.plan.normalise import ROWS, VALUE
from lakebed.views.rules.windows import common_partition


class Word(StrEnum):
    """How a part follows changes."""

    INCREMENTAL = "incremental"
    AFFECTED_KEYS = "affected keys"
    FULL = "full"


@dataclass(frozen=True, slots=True)
class Judged:
    """A part of a query, the word for it and why, and the parts below."""

    what: str
    word: Word
    reason: str = ""
    remedy: str = ""
    below: tuple[Judged, ...] = ()
    view: str | None = None
    """Of a table: the name of its scan."""

    def all(self) -> list[Judged]:
        """The part and those below it."""
        return [self, *(each for part in self.below for each in part.all())]

    @property
    def full(self) -> Judged | None:
        """The first part that has to be computed anew."""
        return next((each for each in self.all() if each.word is Word.FULL), None)


STACK = "make it a materialized table of its own, and read that"
_STABLE = ("count(", "bool_and(", "bool_or(", "bit_and(", "bit_or(", "bit_xor(", "list_transform([struct_pack(")
_EXACT = ("min(", "max(", "CAST(sum(", "TRY_CAST(sum(", "(CAST(sum(")
_RANKS = (
    *("CAST(row_number()", "CAST(rank()", "CAST(dense_rank()", "CAST(percent_rank()", "CAST(cume_dist()"),
    *("CAST(ntile(", "lag(", "lead("),
)


def judged(root: Relation, top: Relation | None, adding: Relation | None = None) -> Judged:
    """The words for a query. `top` is the grouping or the windows it ends with, if rows are replaced group by group;
    `adding` is that grouping if its values add up."""
    return _judged(root, top, adding, _names(root))


def _names(node: Relation) -> dict[str, str]:
    """What columns are called in the tables that they come from, as far as they are handed on as they are."""
    found: dict[str, str] = {}
    for below in node.inputs:
        found |= _names(below)
    match node:
        case Scan():
            found |= {each.id: name for each, name in zip(node.columns, node.names, strict=True)}
        case Project():
            pairs = zip(node.columns, node.values, strict=True)
            found |= {e.id: found[v.id] for e, v in pairs if isinstance(v, Column) and v.id in found}
        case Group():
            pairs = zip(node.columns, node.keys, strict=False)
            found |= {e.id: found[v.id] for e, v in pairs if isinstance(v, Column) and v.id in found}
    return found


def _called(values: Sequence[Expression], names: Mapping[str, str]) -> str:
    """Columns by their names; what is computed is called that."""
    words = [names.get(each.id, "...") if isinstance(each, Column) else "..." for each in values]
    return ", ".join(words)


def _judged(node: Relation, top: Relation | None, adding: Relation | None, names: Mapping[str, str]) -> Judged:
    below = tuple(_judged(each, top, adding, names) for each in node.inputs)
    if any(isinstance(each, Subquery) for value in node.expressions for each in value.walk()):
        return _full(node, below, _why_subquery(node))
    match node:
        case Scan():
            return Judged(".".join(node.source.path) or node.view, Word.INCREMENTAL, "changes", view=node.view)
        case Rows() | Numbers():
            return Judged("values", Word.INCREMENTAL, "never changes")
        case Filter() | Project() | Unnest():
            return Judged(type(node).__name__.lower(), Word.INCREMENTAL, "row by row", below=below)
        case SetOperation() if node.kind is SetKind.UNION_ALL:
            return Judged("union all", Word.INCREMENTAL, "changes of both sides", below=below)
        case Join() if not node.is_lateral and node.kind not in (JoinKind.RIGHT, JoinKind.FULL):
            same = equalities(node)
            what = f"{node.kind.value.lower()} {_called(same.left, names)}".rstrip()
            return Judged(what, Word.INCREMENTAL, "rows that match a change", below=below)
        case Group() if node is adding:
            what = f"group by {_called(node.keys, names)}" if node.keys else "one group"
            return Judged(what, Word.INCREMENTAL, "counts and sums, to which changes are added", below=below)
        case Group():
            return _group(node, top, below, f"group by {_called(node.keys, names)}")
        case Window():
            return _window(node, top, below, f"window by {_called(common_partition(node), names)}")
        case Limit():
            return _full(
                node, below, ("LIMIT keeps rows by all others", "rank rows by row_number() and filter by that")
            )
        case SetOperation():
            return _full(node, below, (f"{node.kind.value} is not followed", "write it with EXISTS or NOT EXISTS"))
        case Join() if node.is_lateral:
            return _full(node, below, ("a lateral join is not followed", "write it as a join with a grouping"))
    return _full(node, below, (f"{type(node).__name__.lower()} is not followed", STACK))


def _full(node: Relation, below: tuple[Judged, ...], why: tuple[str, str]) -> Judged:
    return Judged(type(node).__name__.lower(), Word.FULL, *why, below=below)


def _why_subquery(node: Relation) -> tuple[str, str]:
    asked = [each for value in node.expressions for each in value.walk() if isinstance(each, Subquery)]
    if all(each.template == VALUE for each in asked):
        return ("rows are compared with a value of all rows", "make that value a materialized table, and join it")
    return (
        "a query inside of an expression is not followed",
        "write it as a join, or with EXISTS; NOT IN as NOT EXISTS",
    )


def _group(node: Group, top: Relation | None, below: tuple[Judged, ...], what: str) -> Judged:
    if node.sets is not None:
        return _full(node, below, ("GROUPING SETS are not followed", "write one grouping each, with UNION ALL"))
    if not node.keys:
        return _full(node, below, ("one group of all rows is computed from all rows", STACK))
    unstable = [] if node is top else [each for each in node.aggregates if not _is_stable(each)]
    if unstable:
        return _full(node, below, _why_unstable(unstable[0]))
    why = "groups with a change, replaced" if node is top else "groups with a change, before and after"
    return Judged(what, Word.AFFECTED_KEYS, why, below=below)


def _window(node: Window, top: Relation | None, below: tuple[Judged, ...], what: str) -> Judged:
    if not common_partition(node):
        return _full(node, below, ("a window over all rows is computed from all rows", "add PARTITION BY"))
    unstable = [] if node is top else [each for each in node.values if not _is_stable_in_window(each)]
    if unstable:
        return _full(node, below, _why_unstable(unstable[0]))
    why = "partitions with a change, replaced" if node is top else "partitions with a change, before and after"
    return Judged(what, Word.AFFECTED_KEYS, why, below=below)


def _why_unstable(value: Expression) -> tuple[str, str]:
    name = value.template.split("(")[0] if isinstance(value, Aggregation) else "an aggregate"
    return (f"`{name}` may depend on the order of rows, and its old value would be needed", STACK)


def _is_stable(value: Expression) -> bool:
    """Whether an aggregate gives the same value in whatever order it sees the rows."""
    if not isinstance(value, Aggregation) or value.order:
        return False
    if value.template.startswith(_STABLE):
        return True
    return value.template.startswith(_EXACT) and not _has_fractions(value)


def _has_fractions(value: Aggregation) -> bool:
    is_mean = value.template.startswith("(CAST(sum(")
    kind = value.arguments[0].type if is_mean else value.type
    return kinds.is_fraction(kind) or kinds.is_nested(kind)


def _is_stable_in_window(value: Aggregation) -> bool:
    if value.template.startswith(_RANKS):
        return True
    if not _is_stable(value):
        return False
    has_order = len(value.window) > len(value.partition)
    return has_order or ROWS not in value.over
