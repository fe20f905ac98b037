"""FLOAT and DOUBLE as text: the shortest digits that read back as the same number, laid out as Java has it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lakebed.expressions import kinds
from lakebed.expressions.nodes import ArrowFunction

_SHAPE = r"^(?P<sign>-?)(?P<whole>[0-9]+)(?:\.(?P<rest>[0-9]+))?(?:e(?P<power>[+-]?[0-9]+))?$"

_LEAST = {kinds.FLOAT: pa.scalar(0.001, kinds.FLOAT), kinds.DOUBLE: pa.scalar(0.001, kinds.DOUBLE)}
_SUBNORMAL = {kinds.FLOAT: 1e-43, kinds.DOUBLE: 1e-320}


def template(kind: pa.DataType) -> tuple[str, ArrowFunction]:
    """DuckDB's own text where Java has the same layout; the others are laid out in Arrow.

    All of FLOAT are: DuckDB writes some with a digit more than are needed.
    """
    function = _FUNCTIONS[kind]
    if kind == kinds.FLOAT:
        return f"{function.name}({{0}})", function
    plain = "abs({0}) >= 0.001 AND abs({0}) < 10000000 OR {0} = 0"
    return f"(CASE WHEN {plain} THEN CAST({{0}} AS VARCHAR) ELSE {function.name}({{0}}) END)", function


def java_text(values: Any) -> Any:
    """Texts of fractions: with an exponent, `1.0E7`, from ten millions on and below a thousandth."""
    found = pc.cast(values, pa.string())
    # Java has two digits at least, and of the smallest numbers of all the second is no zero: 4.9E-324.
    smallest = pc.less(pc.abs(pc.cast(values, pa.float64())), _SUBNORMAL[values.type])
    if pc.any(smallest).as_py():
        one_digit = pc.and_(smallest, pc.match_substring_regex(found, "^-?[0-9]e"))
        two_digits = np.char.mod("%.1e", values.to_numpy(zero_copy_only=False).astype("float64")).tolist()
        found = pc.if_else(one_digit, pa.array(two_digits, pa.string()), found)
    parts = pc.extract_regex(found, _SHAPE)
    sign, whole, rest, power = (pc.struct_field(parts, name) for name in ("sign", "whole", "rest", "power"))
    digits = pc.binary_join_element_wise(whole, rest, "")
    leading = pc.subtract(pc.utf8_length(digits), pc.utf8_length(pc.utf8_ltrim(digits, "0")))
    behind = pc.subtract(pc.subtract(pc.utf8_length(whole), leading), 1)
    exponent = pc.add(pc.cast(pc.if_else(pc.equal(power, ""), "0", pc.utf8_ltrim(power, "+")), pa.int32()), behind)
    digits = pc.utf8_trim(digits, "0")
    first, others = pc.utf8_slice_codeunits(digits, 0, 1), pc.utf8_slice_codeunits(digits, 1)
    others = pc.if_else(pc.equal(others, ""), "0", others)
    mantissa = pc.binary_join_element_wise(first, others, ".")
    spelled = pc.binary_join_element_wise(
        pc.binary_join_element_wise(sign, mantissa, ""), pc.cast(exponent, pa.string()), "E"
    )
    names = pc.if_else(pc.is_nan(values), "NaN", pc.if_else(pc.greater(values, 0), "Infinity", "-Infinity"))
    size = pc.abs(values)
    is_plain = pc.or_(pc.and_(pc.greater_equal(size, _LEAST[values.type]), pc.less(size, 1e7)), pc.equal(size, 0))
    whole = pc.binary_join_element_wise(found, pc.if_else(pc.match_substring(found, "."), "", ".0"), "")
    return pc.if_else(is_plain, whole, pc.if_else(pc.is_finite(values), spelled, names))


_FUNCTIONS = {
    kind: ArrowFunction(name=f"lakebed_{name.lower()}_text", compute=java_text, types=(name, "VARCHAR"))
    for kind, name in ((kinds.FLOAT, "FLOAT"), (kinds.DOUBLE, "DOUBLE"))
}
