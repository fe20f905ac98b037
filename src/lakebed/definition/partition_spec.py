"""What an overwrite replaces: the whole table, the partitions that a spec names, or those of the new rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from lakebed.bucket.hashing import Hashes, hash_rows
from lakebed.definition.context import TableContext
from lakebed.definition.fit import Place, fit
from lakebed.errors import InvalidArgument, InvalidData, did_you_mean
from lakebed.metadata.manifest import ManifestEntry
from lakebed.options import DYNAMIC_PARTITION_OVERWRITE
from lakebed.records import dataclass
from lakebed.schema.casts import cast_array
from lakebed.types import ordering
from lakebed.types.binary_row import EMPTY_ROW, encode_rows
from lakebed.types.logical import STRING, STRINGS, DataField, is_root, with_nullable


@dataclass(frozen=True)
class Overwrite:
    """`spec` None: dynamic, exactly the partitions of the new rows. Otherwise all partitions that agree with it."""

    context: TableContext
    spec: Mapping[str, pa.Scalar] | None

    @staticmethod
    def parse(context: TableContext, overwrite: bool | Mapping[str, Any]) -> Overwrite:
        """From the argument of `write`: True, or a mapping from partition columns to values ({} is everything)."""
        if isinstance(overwrite, Mapping):
            return Overwrite(context, {name: _value(context, name, value) for name, value in overwrite.items()})
        if overwrite is not True:
            raise InvalidArgument(
                f"overwrite={overwrite!r} is not understood", hint="pass True, or a dict of partition columns to values"
            )
        is_dynamic = bool(context.schema.partition_keys) and context.options[DYNAMIC_PARTITION_OVERWRITE]
        return Overwrite(context, None if is_dynamic else {})

    def check(self, partition: bytes) -> None:
        """Refuses rows that a static overwrite does not replace."""
        if self.spec and not self._agrees(partition):
            wanted = ", ".join(f"{name}={value.as_py()}" for name, value in self.spec.items())
            raise InvalidData(
                f"table `{self.context.name}`: overwriting {wanted}, but a row belongs to "
                f"{self.context.partition_directory(partition)}",
                hint="leave such rows out, or overwrite dynamically with overwrite=True",
            )

    def replaced(self, live: Sequence[ManifestEntry], new_partitions: set[bytes]) -> list[ManifestEntry]:
        """The live entries that go."""
        if self.spec is None:
            return [entry for entry in live if entry.partition in new_partitions]
        gone = {partition for partition in {entry.partition for entry in live} if self._agrees(partition)}
        return [entry for entry in live if entry.partition in gone]

    def emptied(self, known: set[bytes], written: set[bytes]) -> set[bytes]:
        """Those of the known partitions of which nothing is left but what the commit writes."""
        return known & written if self.spec is None else {partition for partition in known if self._agrees(partition)}

    def _agrees(self, partition: bytes) -> bool:
        values = self.context.partition_values(partition)
        return all(_is_same(values[name], value) for name, value in (self.spec or {}).items())


def _is_same(left: pa.Scalar, right: pa.Scalar) -> bool:
    """Whether two values name one partition: NaN is NaN, and -0.0 is not 0.0."""
    both = pa.array([left, right], left.type)
    return ordering.sort_value(both, 0) == ordering.sort_value(both, 1)


def _value(context: TableContext, name: str, value: Any) -> pa.Scalar:
    fields = {field.name: field for field in context.partition_fields}
    if not fields:
        raise InvalidArgument(
            f"`{name}` is not a partition column of table `{context.name}`, which has none",
            hint="pass overwrite=True to replace all rows",
        )
    if name not in fields:
        raise InvalidArgument(
            f"`{name}` is not a partition column of table `{context.name}`", hint=did_you_mean(str(name), fields)
        )
    return _typed(fields[name], value, context.name)


def _typed(field: DataField, value: Any, table: str) -> pa.Scalar:
    """The value under the rules for rows: what would change it (a fraction cut off, say) is refused."""
    data_type = with_nullable(field.type, True)
    try:
        if isinstance(value, str) and not is_root(data_type, STRINGS):
            return cast_array(pa.array([value]), STRING, data_type)[0]
        return fit(pa.array([value]), data_type, Place(table, field.name))[0]
    except (pa.ArrowException, TypeError, ValueError, InvalidData) as error:
        raise InvalidArgument(
            f"{value!r} is no value of partition column `{field.name}` ({field.type})",
            hint="pass a value of the column's type",
        ) from error


Partitions = tuple[npt.NDArray[np.int64], list[bytes]]
"""A number for each row's partition, and the partition row behind each number."""


def partitions_of(context: TableContext, rows: pa.RecordBatch) -> Partitions:
    """A number for each row's partition, and the partition row behind each number."""
    fields = context.partition_fields
    if not fields:
        return np.zeros(rows.num_rows, dtype=np.int64), [EMPTY_ROW]
    numbers = np.zeros(rows.num_rows, dtype=np.int64)
    for field in fields:
        encoded = pc.dictionary_encode(rows.column(field.name), null_encoding="encode")
        codes = encoded.indices.to_numpy(zero_copy_only=False).astype(np.int64)
        # Renumbering after each column keeps the product small, however many columns there are.
        _, numbers = np.unique(numbers * len(encoded.dictionary) + codes, return_inverse=True)
    _, first_rows = np.unique(numbers, return_index=True)
    distinct = rows.select([field.name for field in fields]).take(pa.array(first_rows))
    encoded_rows = encode_rows(distinct.columns, context.partition_types)
    return numbers.astype(np.int64), encoded_rows.to_pylist()


def key_hashes(context: TableContext, rows: pa.RecordBatch) -> Hashes:
    """The hash of each row's key within its partition."""
    return hash_rows([rows.column(field.name) for field in context.key_fields], context.key_types)
