"""The parts of an event: each says who made it, and which version of the specification describes it.

Events hold names: of tables, columns, jobs. Values of rows are in none of them; of a query its shape is told, with `?`
in place of every literal.
"""

from __future__ import annotations

from typing import Any

from sqlglot import exp

from lakebed.version import VERSION

PRODUCER = f"https://github.com/lakebed/lakebed/tree/v{VERSION}"
EVENT_SCHEMA = "https://openlineage.io/spec/2-0-2/OpenLineage.json#/$defs/RunEvent"
_FACETS = "https://openlineage.io/spec/facets"


def facet(kind: str, version: str, **members: Any) -> dict[str, Any]:
    """One facet of the specification."""
    return {"_producer": PRODUCER, "_schemaURL": f"{_FACETS}/{version}/{kind}.json#/$defs/{kind}", **members}


def shape_of(tree: exp.Expression) -> str:
    """A query without the values in it."""
    text: str = tree.transform(_without_value).sql("spark")
    return text


def _without_value(node: exp.Expression) -> exp.Expression:
    return exp.Placeholder() if isinstance(node, exp.Literal) else node


__all__ = ["EVENT_SCHEMA", "PRODUCER", "facet", "shape_of"]
