"""Aggregate functions as users write them, and as a table keeps them.

Names are stored in the one spelling that other engines know. `count` is not known to them: it is stored as `sum`,
beside a list of the counting columns; writing puts 1 (0 for null) in place of each value, so that sums are counts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from lakebed.errors import InvalidOption
from lakebed.merge.aggregates.configured import canonical_name
from lakebed.options import FIELD_AGGREGATE_FUNCTION, FIELDS_DEFAULT_AGGREGATE_FUNCTION, LAKEBED_COUNT_FIELDS, Options
from lakebed.types.arrow import to_arrow_type
from lakebed.types.logical import DataField, DataType, TypeRoot, is_root

_COUNT = "count"
_STORED_AS = "sum"
_COUNTING_TYPES = frozenset({TypeRoot.INT, TypeRoot.BIGINT})


def stored_options(options: Mapping[str, str], fields: Sequence[DataField]) -> dict[str, str]:
    """The options with functions as the table keeps them."""
    stored = dict(options)
    counting = list(Options(options)[LAKEBED_COUNT_FIELDS])
    types = {field.name: field.type for field in fields}
    for key, text in options.items():
        if key == FIELDS_DEFAULT_AGGREGATE_FUNCTION.key:
            stored[key] = canonical_name(text)
            continue
        names = FIELD_AGGREGATE_FUNCTION.names_in(key)
        if names is None:
            continue
        function = canonical_name(text)
        if function == _COUNT:
            _check_counting(names[0], types.get(names[0]))
            function = _STORED_AS
            counting += [name for name in names if name not in counting]
        stored[key] = function
    if counting:
        stored[LAKEBED_COUNT_FIELDS.key] = ",".join(counting)
    return stored


def _check_counting(column: str, data_type: DataType | None) -> None:
    if data_type is not None and not is_root(data_type, _COUNTING_TYPES):
        raise InvalidOption(
            f"aggregate function `count` does not take column `{column}` of type {data_type}",
            hint="make the column BIGINT or INT: it holds the number of values written",
        )


def counted(column: pa.Array, field: DataField) -> pa.Array:
    """1 for every value and 0 for every null, in the column's type."""
    return pc.cast(pc.is_valid(column), to_arrow_type(field.type))
