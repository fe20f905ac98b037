"""Which node comes before which: whoever writes a table before those that read it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from graphlib import CycleError, TopologicalSorter

from lakebed.errors import InvalidArgument
from lakebed.pipelines.nodes import INSERT, Node


class Graph:
    """The nodes of a pipeline in an order in which each comes behind those that it reads from."""

    def __init__(self, nodes: Iterable[Node]) -> None:
        given = list(nodes)
        _refuse_two_of_a_name(given)
        writers: dict[str, list[Node]] = {}
        for node in given:
            for table in node.writes:
                writers.setdefault(table, []).append(node)
        self._above = {
            node.name: tuple(above.name for table in node.reads for above in writers.get(table, ())) for node in given
        }
        by_name = {node.name: node for node in given}
        try:
            order = list(TopologicalSorter(self._above).static_order())
        except CycleError as error:
            way = " -> ".join(reversed(error.args[1]))
            raise InvalidArgument(
                f"the pipeline goes in a circle: {way}", hint="a table can not be read by what it is made from"
            ) from error
        self.nodes: Sequence[Node] = [by_name[name] for name in order]
        """Those that are read from come first."""

    def above(self, node: Node) -> tuple[str, ...]:
        """The names of the nodes that write what it reads."""
        return self._above[node.name]

    def is_made_here(self, table: str) -> bool:
        """Whether a node of this pipeline writes the table."""
        return any(table in node.writes for node in self.nodes)


def _refuse_two_of_a_name(nodes: Sequence[Node]) -> None:
    names = [node.name for node in nodes]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is None:
        return
    same = next(node for node in nodes if node.name == twice)
    if same.kind == INSERT:
        raise InvalidArgument(
            f"the same INSERT into `{same.writes[0]}` is there twice", hint="leave one out: each row would come twice"
        )
    raise InvalidArgument(f"`{twice}` is made twice", hint="give one of them another name")
