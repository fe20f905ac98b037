"""Columns in the keys of messages: they name the row where a message has no body, and are a table's primary key."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from lakebed.cdc.formats.avro_types import avro_type, avro_values
from lakebed.cdc.formats.base import column_texts, member_names, query
from lakebed.cdc.formats.reading import AVRO_KEY, TEXT_KEY, KeyForm
from lakebed.cdc.formats.registry import Registry
from lakebed.cdc.formats.wire import HEAD_BYTES, NOTHING, schema_numbers
from lakebed.errors import InvalidData
from lakebed.formats.avro.lockstep import decoded
from lakebed.records import dataclass
from lakebed.types.logical import DataType

_OBJECT: Final = "OBJECT"


@dataclass(frozen=True, slots=True)
class KeyColumn:
    """Values of a column for all messages; `type` is None where the key is text of which nobody says what it is."""

    values: pa.Array
    type: DataType | None


def key_columns(form: KeyForm, keys: pa.Array, registry: Registry | None) -> dict[str, KeyColumn]:
    """The columns that the keys hold, by name. Keys of Avro are all of one schema: see `key_schemas`."""
    if form.format == AVRO_KEY:
        assert registry is not None
        return _of_avro(form, keys, registry)
    texts = _texts(keys)
    if form.format == TEXT_KEY:
        return {form.columns[0]: KeyColumn(texts, None)}
    return {name: KeyColumn(values, None) for name, values in _of_json(form, texts).items()}


def key_schemas(form: KeyForm | None, keys: pa.Array) -> npt.NDArray[np.int64]:
    """The number of the schema of each key; all the same where keys are not of Avro."""
    if form is None or form.format != AVRO_KEY:
        return np.full(len(keys), NOTHING, np.int64)
    return schema_numbers(keys, "key")


def avro_key_names(keys: pa.Array, registry: Registry) -> tuple[str, ...]:
    """The columns of a key, if keys are of Avro with a registry; none if they are anything else."""
    first = pc.drop_null(keys).slice(0, 1)
    if not len(first):
        return ()
    try:
        schema = registry.schema(int(schema_numbers(first, "key")[0]))
    except InvalidData:
        return ()
    return schema.names if schema.kind == "record" else ()


def _texts(keys: pa.Array) -> pa.Array:
    try:
        return keys.cast(pa.string())
    except pa.ArrowInvalid as error:
        raise InvalidData("the key of a message is no UTF-8", hint="give another `key_format`") from error


def _of_json(form: KeyForm, texts: pa.Array) -> dict[str, pa.Array]:
    kinds = query("SELECT json_type(json) AS kind FROM given", texts).column(0).combine_chunks()
    is_object = pc.equal(kinds, _OBJECT)
    bare = pc.all(pc.invert(is_object).fill_null(True)).as_py() and kinds.null_count < len(kinds)
    if bare and len(form.columns) == 1:
        values = query("SELECT json ->> '$' AS text FROM given", texts).column(0)
        return {form.columns[0]: _whole(values)}
    if not pc.all(is_object.fill_null(True)).as_py():
        raise InvalidData(
            "the key of a message is no JSON object", hint="name the one column that it is with `key_columns`"
        )
    return column_texts(texts, _chosen(form, member_names([texts])))


def _of_avro(form: KeyForm, keys: pa.Array, registry: Registry) -> dict[str, KeyColumn]:
    numbers = schema_numbers(keys, "key")
    is_there = numbers != NOTHING
    if not is_there.any():
        return {}
    schema = registry.schema(int(numbers[is_there][0]))
    if schema.kind != "record":
        raise InvalidData(
            f"the schema of a key is of kind `{schema.kind}`, which has no columns",
            hint="have the writer make keys that are records",
        )
    fields = decoded(schema, pc.drop_null(keys), HEAD_BYTES)
    places = pa.array(np.cumsum(is_there) - 1, mask=~is_there)
    found = {}
    for name in _chosen(form, schema.names):
        node = schema.field(name)
        if node is None:
            raise InvalidData(
                f"keys have no column `{name}`", hint=f"they have {', '.join(schema.names)}: correct `key_columns`"
            )
        found[name] = KeyColumn(avro_values(fields[name], node, name).take(places), avro_type(node))
    return found


def _chosen(form: KeyForm, there: Sequence[str]) -> list[str]:
    return list(form.columns or there)


def _whole(column: pa.ChunkedArray) -> pa.Array:
    whole = column.combine_chunks()
    return pa.concat_arrays(whole.chunks) if isinstance(whole, pa.ChunkedArray) else whole


__all__ = ["KeyColumn", "avro_key_names", "key_columns", "key_schemas"]
