"""Asks the indexes of a data file whether a row of it can match a filter.

Only what an index is sure of excludes the file: equality and lists of values, with bitmaps nulls, and with range
bitmaps what is less or greater. Every other part of a filter may match. Columns are looked for under the names and
types they had when the file was written.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping
from types import ModuleType

import pyarrow as pa
import pyarrow.compute as pc

from lakebed.datafiles.index.build import KINDS
from lakebed.datafiles.index.container import unpack, unreadable
from lakebed.types.logical import FLOATS, DataField, DataType, is_root
from lakebed.types.predicate import Always, And, Comparison, In, IsNotNull, IsNull, Op, Or, Predicate

OldFields = Callable[[str], DataField | None]
"""The column of the file that a column of today is, if its type is still the same."""


def excludes(container: bytes, path: str, predicate: Predicate, old_field_of: OldFields) -> bool:
    """Whether no row of the file can match."""
    probe = _Probe(unpack(container, path), old_field_of)
    try:
        return not probe.may_match(predicate)
    except (struct.error, ValueError, IndexError) as error:
        raise unreadable(path, str(error)) from error


class _Probe:
    def __init__(self, indexes: Mapping[str, Mapping[str, bytes | None]], old_field_of: OldFields) -> None:
        self._indexes = indexes
        self._old_field_of = old_field_of

    def may_match(self, predicate: Predicate) -> bool:
        match predicate:
            case Always(value):
                return bool(value)
            case And(children):
                return all(self.may_match(child) for child in children)
            case Or(children):
                return any(self.may_match(child) for child in children)
            case Comparison(column, Op.EQ, literal):
                return self._may_hold(column, pa.array([literal], literal.type))
            case In(column, values):
                return self._may_hold(column, values)
            case Comparison(column, op, literal):
                found = self._found(column, "may_compare")
                return all(module.may_compare(payload, op, literal, kind) for module, payload, kind in found)
            case IsNull(column):
                found = self._found(column, "has_nulls")
                return all(module.has_nulls(payload, kind) for module, payload, kind in found)
            case IsNotNull(column):
                found = self._found(column, "has_values")
                return all(module.has_values(payload, kind) for module, payload, kind in found)
            case _:
                return True

    def _may_hold(self, column: str, values: pa.Array) -> bool:
        """Whether the file may hold one of the values. What is in one index must be in all."""
        field = self._old_field_of(column)
        values = values.drop_null()
        if field is None:
            return True
        if is_root(field.type, FLOATS):
            values = _with_both_zeros(values)
        for kind, payload in self._indexes.get(field.name, {}).items():
            if kind not in KINDS or not KINDS[kind].supports(field.type):
                continue
            if payload is None or not KINDS[kind].may_contain(payload, values, field.type).any():
                return False
        return True

    def _found(self, column: str, question: str) -> list[tuple[ModuleType, bytes, DataType]]:
        """Indexes of a column that can answer a question, with the type it had. An empty one is no answer."""
        field = self._old_field_of(column)
        indexes = {} if field is None else self._indexes.get(field.name, {})
        return [
            (KINDS[kind], payload, field.type)
            for kind, payload in indexes.items()
            if field is not None and payload is not None and kind in KINDS and hasattr(KINDS[kind], question)
        ]


def _with_both_zeros(values: pa.Array) -> pa.Array:
    """Both zeros are equal to who asks, but not to an index. NaN equals nothing."""
    values = values.filter(pc.invert(pc.is_nan(values)))
    zeros = pa.array([0.0, -0.0], values.type)
    return pa.concat_arrays([values, zeros]) if pc.any(pc.equal(values, 0.0)).as_py() else values
