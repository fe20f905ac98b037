"""Types that a query writes, as `CAST(x AS DECIMAL(10, 2))`."""

from __future__ import annotations

import pyarrow as pa
from sqlglot import exp

from lakebed.expressions import kinds
from lakebed.expressions.nodes import NotProven

_PLAIN = {
    exp.DType.BOOLEAN: kinds.BOOLEAN,
    exp.DType.TINYINT: kinds.TINYINT,
    exp.DType.SMALLINT: kinds.SMALLINT,
    exp.DType.INT: kinds.INT,
    exp.DType.BIGINT: kinds.BIGINT,
    exp.DType.FLOAT: kinds.FLOAT,
    exp.DType.DOUBLE: kinds.DOUBLE,
    exp.DType.TEXT: kinds.STRING,
    exp.DType.BINARY: kinds.BINARY,
    exp.DType.DATE: kinds.DATE,
    exp.DType.TIMESTAMP: kinds.TIMESTAMP,
    exp.DType.TIMESTAMPTZ: kinds.TIMESTAMP,
    exp.DType.TIMESTAMPLTZ: kinds.TIMESTAMP,
    exp.DType.TIMESTAMPNTZ: kinds.TIMESTAMP_NTZ,
    exp.DType.NULL: kinds.NULL,
}


def type_of(node: exp.DataType) -> pa.DataType:
    """The type that a node names."""
    given = node.expressions
    if node.this == exp.DType.DECIMAL:
        numbers = [int(each.name) for each in given]
        precision, scale = [*numbers, *(10, 0)[len(numbers) :]]
        return kinds.decimal(precision, scale)
    if node.this == exp.DType.VARCHAR and not given:
        return kinds.STRING
    if node.this in _PLAIN and not given:
        return _PLAIN[node.this]
    if node.this == exp.DType.ARRAY and len(given) == 1:
        return kinds.array_of(type_of(given[0]))
    if node.this == exp.DType.MAP and len(given) == 2:
        return kinds.map_of(type_of(given[0]), type_of(given[1]))
    if node.this == exp.DType.STRUCT and all(isinstance(each, exp.ColumnDef) for each in given):
        return pa.struct([pa.field(each.name, type_of(each.args["kind"])) for each in given])
    raise NotProven(f"type {node.sql('spark')}")
