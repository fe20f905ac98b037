"""How a query falls into parts that can be followed apart: each reads a share of some tables and all of the others.

The result of the query is that of all parts together, at any time; so its change is that of all parts together, and
each is found by the same rules from the same tables. A share is a condition on a table's rows: what the hash of some of
their values says. Tables that are joined are shared by what has to be equal, groups and partitions stay whole. What has
no such values, as a group of all rows in the midst of a query, can not be shared.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field, replace

import pyarrow as pa

from lakebed.algebra.equalities import columns_in, equalities
from lakebed.algebra.relations import (
    Filter,
    Group,
    Join,
    JoinKind,
    Numbers,
    Project,
    Relation,
    Rows,
    Scan,
    SetKind,
    SetOperation,
    Unnest,
    Window,
    scans,
)
from lakebed.expressions import kinds
from lakebed.expressions.nodes import Call, Column, Expression
from lakebed.records import dataclass
from lakebed.views.plan.build import ViewPlan, key_columns, states_of, with_rows
from lakebed.views.plan.normalise import replaced
from lakebed.views.row_hashes import part_of
from lakebed.views.rules.windows import common_partition

By = tuple[Expression, ...]
"""What rows are shared by; those with the same values are in the same part."""

_ERROR = re.compile(r"error\('[^']*'\)")
PART = "lakebed_part"
"""The variable of DuckDB's that says which part a program is about."""


@dataclass(frozen=True, slots=True)
class Parted:
    """A relation of which each part has a share.

    `views` has the scans by name: what their rows are shared by, or None if each part reads all rows, or rows by
    several rules.
    """

    relation: Relation
    views: Mapping[str, By | None] = field(default_factory=dict)

    def whole(self) -> list[str]:
        """Scans whose changes each part has to know."""
        return [view for view, by in self.views.items() if by is None]


@dataclass
class _Splitter:
    """Shares relations among so many parts. Of several ways the one is taken in which the fewest changed rows have to
    be known to all parts; `changed` says how many rows of each scan have changed."""

    parts: int
    changed: Mapping[str, int]
    _known: dict[tuple[int, tuple[str, ...] | None], tuple[Relation, Parted | None]] = field(default_factory=dict)

    def split(self, node: Relation, by: By | None) -> Parted | None:
        """The relation shared by these values of its rows, or by any (None); None if that can not be."""
        if by is not None and not (by and all(map(_tells_parts, by))):
            return None
        place = (id(node), None if by is None else tuple(each.spelled() for each in by))
        if place not in self._known:  # with the node, or its id could be another's later
            self._known[place] = (node, self._cheapest(self._ways(node, by)))
        return self._known[place][1]

    def _cheapest(self, found: Iterator[Parted | None]) -> Parted | None:
        ways = [each for each in found if each is not None]
        return min(ways, key=lambda each: sum(self.changed.get(view, 0) for view in each.whole()), default=None)

    def _ways(self, node: Relation, by: By | None) -> Iterator[Parted | None]:
        match node:
            case Scan() | Rows() | Numbers():
                yield self._share(node, _own_values(node) if by is None else by)
            case Filter():
                yield _above(node, self.split(node.input, by))
            case Project():
                yield _above(node, self.split(node.input, _below(by, node.columns, node.values)))
            case Unnest():
                if by is None or _are_of(by, node.input):
                    yield _above(node, self.split(node.input, by))
            case SetOperation() if node.kind is SetKind.UNION_ALL:
                sides = [self.split(side, _below(by, node.columns, side.columns)) for side in node.inputs]
                yield _both(node, *sides)
            case Group() if node.keys and node.sets is None:
                if by is None or _are_among(by, node.columns[: len(node.keys)]):
                    for chosen in _choices(node.keys) if by is None else [_below(by, node.columns, node.keys)]:
                        yield _above(node, self.split(node.input, chosen))
            case Window():
                partition = common_partition(node)
                texts = {each.spelled() for each in partition}
                if by is None or all(each.spelled() in texts for each in by):
                    for chosen in _choices(partition) if by is None else [by]:
                        yield _above(node, self.split(node.input, chosen))
            case Join() if not node.is_lateral and node.kind in (JoinKind.INNER, JoinKind.CROSS) and not node.latest:
                yield from self._either_side(node, by)
            case Join() if not node.is_lateral and node.kind not in (JoinKind.RIGHT, JoinKind.FULL):
                yield from self._left_side(node, by)

    def _share(self, node: Relation, by: By) -> Parted | None:
        if not by:
            return None
        by = tuple(map(_failing_as_null, by))
        number = part_text(by, [f"{{{place}}}" for place in range(len(by))], self.parts)
        condition = f"({number} = getvariable('{PART}'))"
        own = Call(type=pa.bool_(), nullable=False, template=condition, arguments=by)
        rows = Filter(columns=node.columns, input=node, conditions=(own,))
        return Parted(rows, {node.view: by} if isinstance(node, Scan) else {})

    def _either_side(self, node: Join, by: By | None) -> Iterator[Parted | None]:
        """Rows that match are in one part: one side is shared, and the other by what has to be equal, or not at all."""
        same = equalities(node)
        left, right = same.left, same.right
        for chosen in [by] if by is not None else [*_choices(left), None]:
            ours = None if chosen is None else _moved(chosen, node.left, right, left)
            if chosen is None or ours is not None:
                yield _both(node, self.split(node.left, ours), self._other(node.right, ours, left, right))
        for chosen in [by] if by is not None else [None]:
            theirs = None if chosen is None else _moved(chosen, node.right, left, right)
            if chosen is None or theirs is not None:
                yield _both(node, self._other(node.left, theirs, right, left), self.split(node.right, theirs))

    def _left_side(self, node: Join, by: By | None) -> Iterator[Parted | None]:
        """The left side is shared. Of which partners the latest is taken is seen only where all of them are."""
        same = equalities(node)
        for chosen in [by] if by is not None else [*_choices(same.left), None]:
            if chosen is None or _are_of(chosen, node.left):
                asked = None if node.latest is not None else chosen
                right = self._other(node.right, asked, same.left, same.right)
                yield _both(node, self.split(node.left, chosen), right)

    def _other(self, node: Relation, by: By | None, given: By, own: By) -> Parted:
        """The other side of a join: shared by what has to equal the values of the first, or all of it."""
        theirs = None if by is None else _moved(by, None, given, own)
        found = None if theirs is None else self.split(node, theirs)
        return found or Parted(node, {scan.view: None for scan in scans(node)})


def split_plan(plan: ViewPlan, parts: int, changed: Mapping[str, int]) -> Parted | None:
    """The query of a materialized table in parts; None if it has none.

    Groups whose values add up may lie in several parts: what each adds is added once more.
    """
    splitter = _Splitter(parts, changed)
    if plan.linear is None:
        return splitter.split(plan.root, None)
    states = states_of(plan.root)
    found = splitter.split(states.input, None)
    if found is None:
        return None
    return replace(found, relation=with_rows(plan.root, replace(states, input=found.relation)))


def _tells_parts(value: Expression) -> bool:
    """Whether equal values have one hash: zeros of two signs are equal. What may fail is computed by DuckDB alone."""
    is_tried = not value.can_fail or not any(each.uses for each in value.walk() if isinstance(each, Call))
    return is_tried and not kinds.is_fraction(value.type) and not kinds.is_nested(value.type)


def _failing_as_null(value: Expression) -> Expression:
    """The value with a null in the place of an error: what fails does so where the query asks for it, if it does."""
    if not isinstance(value, Call) or not value.can_fail:
        return value
    arguments = tuple(map(_failing_as_null, value.arguments))
    return replace(value, template=_ERROR.sub("NULL", value.template), arguments=arguments)


def part_text(by: By, texts: Sequence[str], parts: int) -> str:
    """Which part rows with these values belong to."""
    given = [f"TRY({text})" if each.can_fail else text for text, each in zip(texts, by, strict=True)]
    return part_of([(text, each.type) for text, each in zip(given, by, strict=True)], parts)


def _own_values(node: Relation) -> By:
    """What tells the rows of a table apart, as far as it can."""
    key = key_columns(node) if isinstance(node, Scan) else ()
    return tuple(each for each in key or node.columns if _tells_parts(each))


def _choices(values: Sequence[Expression]) -> list[By]:
    """All of them, which spread best, or one of them."""
    usable = tuple(each for each in values if _tells_parts(each))
    return [usable, *((each,) for each in usable)] if len(usable) > 1 else [usable]


def _below(by: By | None, columns: Sequence[Column], values: Sequence[Expression]) -> By | None:
    """The same values in terms of what columns are computed from."""
    given = {each.id: value for each, value in zip(columns, values, strict=False)}
    return None if by is None else tuple(replaced(each, given) for each in by)


def _moved(by: By, node: Relation | None, given: By, own: By) -> By | None:
    """Values as a side of a join has them: its own, or those that have to equal the given ones of the other side."""
    equal = {
        one.spelled(): other for one, other in zip(given, own, strict=True) if _are_hashed_alike(one.type, other.type)
    }
    found = [each if node is not None and _are_of((each,), node) else equal.get(each.spelled()) for each in by]
    moved = tuple(each for each in found if each is not None)
    return moved if len(moved) == len(by) else None


def _are_hashed_alike(one: pa.DataType, other: pa.DataType) -> bool:
    return bool(one == other or (kinds.is_integral(one) and kinds.is_integral(other)))


def _are_of(by: By, node: Relation) -> bool:
    return _are_among(by, node.columns)


def _are_among(by: By, columns: Sequence[Column]) -> bool:
    known = {each.id for each in columns}
    return all(columns_in(each) <= known for each in by)


def _above(node: Filter | Project | Unnest | Group | Window, below: Parted | None) -> Parted | None:
    return None if below is None else replace(below, relation=replace(node, input=below.relation))


def _both(node: Join | SetOperation, left: Parted | None, right: Parted | None) -> Parted | None:
    if left is None or right is None:
        return None
    views = {**left.views, **right.views}
    for view in left.views.keys() & right.views.keys():
        one, other = left.views[view], right.views[view]
        is_same = one is not None and other is not None and _texts(one) == _texts(other)
        views[view] = one if is_same else None
    return Parted(replace(node, left=left.relation, right=right.relation), views)


def _texts(by: By) -> list[str]:
    return [each.spelled() for each in by]


__all__ = ["PART", "By", "Parted", "part_text", "split_plan"]
