"""Which table type a PostgreSQL type becomes, and in which textual form its values arrive.

Two types of the lake can come in different spellings (`t` and `1` are both a true BOOLEAN), so a column is a pair of
both: `Form`. Domains count as what they are made of, enums as text. Nothing here reads values or asks a server.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from lakebed.records import dataclass
from lakebed.types import logical as lt
from lakebed.types.logical import ArrayType, DataType


@dataclass(frozen=True, slots=True)
class PgType:
    """A row of `pg_type`, as far as it matters here."""

    oid: int
    name: str
    kind: str
    """`b` base, `c` composite, `d` domain, `e` enum, `r` range, `m` multirange."""
    category: str
    base: int
    base_typmod: int
    element: int
    delimiter: str
    is_builtin: bool
    """Whether it is one of the server's own: an extension may call a type as it likes."""


@dataclass(frozen=True, slots=True)
class Form:
    """A type of the lake and how the source spells its values. `element` is the form inside an array."""

    spelling: str
    type: DataType
    element: Form | None = None


UNBOUNDED: Final = "unbounded"
ROUNDED: Final = "rounded"
"""Spellings of a `numeric` without digits: of which some do not fit, or are rounded to what does."""
_TEXT: Final = Form("text", lt.STRING)
_MAX_DECIMAL: Final = 38


def _numeric(typmod: int) -> Form:
    if typmod < 4:
        return Form(UNBOUNDED, lt.decimal(38, 18))
    precision = (typmod - 4) >> 16 & 0xFFFF
    scale = ((typmod - 4) & 0x7FF ^ 0x400) - 0x400  # eleven bits, signed since PostgreSQL 15
    if precision > _MAX_DECIMAL or not 0 <= scale <= precision:
        return _TEXT
    return Form("numeric", lt.decimal(precision, scale))


def _bits(typmod: int) -> Form:
    if typmod == 1:
        return Form("bit", lt.BOOLEAN)
    return Form("bits", lt.BYTES if typmod < 1 else lt.binary((typmod + 7) // 8))


def _varying_bits(typmod: int) -> Form:
    return Form("bits", lt.BYTES if typmod < 1 else lt.binary((typmod + 7) // 8))


_FORMS: Final[Mapping[str, Callable[[int], Form]]] = {
    "bool": lambda typmod: Form("bool", lt.BOOLEAN),
    "bit": _bits,
    "varbit": _varying_bits,
    "int2": lambda typmod: Form("integer", lt.SMALLINT),
    "int4": lambda typmod: Form("integer", lt.INT),
    "int8": lambda typmod: Form("integer", lt.BIGINT),
    "float4": lambda typmod: Form("float", lt.FLOAT),
    "float8": lambda typmod: Form("float", lt.DOUBLE),
    "numeric": _numeric,
    "bpchar": lambda typmod: _TEXT if typmod < 5 else Form("text", lt.char(typmod - 4)),
    "varchar": lambda typmod: _TEXT if typmod < 5 else Form("text", lt.varchar(typmod - 4)),
    "text": lambda typmod: _TEXT,
    "json": lambda typmod: _TEXT,
    "jsonb": lambda typmod: _TEXT,
    "uuid": lambda typmod: _TEXT,
    "bytea": lambda typmod: Form("bytea", lt.BYTES),
    "date": lambda typmod: Form("date", lt.DATE),
    "time": lambda typmod: Form("time", lt.time(6 if typmod < 0 else typmod)),
    "timestamp": lambda typmod: Form("timestamp", lt.timestamp(6 if typmod < 0 else typmod)),
    "timestamptz": lambda typmod: Form("timestamp", lt.timestamp_ltz(6 if typmod < 0 else typmod)),
}


def form_of(types: Mapping[int, PgType], oid: int, typmod: int, as_text: bool = False) -> Form | None:
    """The form of a type; None if there is none. `as_text` is the mapping `to-string`: everything becomes STRING."""
    known = types.get(oid)
    if known is None:
        return None
    if as_text or known.kind == "e":
        return _TEXT
    if known.kind == "d":
        # A domain has its own type modifier; one of the column never comes with it.
        return form_of(types, known.base, known.base_typmod)
    if known.category == "A" and known.element and known.delimiter == ",":
        element = form_of(types, known.element, typmod)
        if element is None or element.element is not None:
            return None
        return Form("array", ArrayType(element.type), element)
    if known.kind != "b" or not known.is_builtin or known.name not in _FORMS:
        return None
    return _FORMS[known.name](typmod)


def unbounded_as(form: Form, policy: str) -> Form:
    """The form with what a `numeric` without digits is to be: `decimal`, `string` or `round`."""
    if form.element is not None:
        element = unbounded_as(form.element, policy)
        return Form(form.spelling, ArrayType(element.type), element)
    if form.spelling != UNBOUNDED or policy == "decimal":
        return form
    return _TEXT if policy == "string" else Form(ROUNDED, form.type)


__all__ = ["ROUNDED", "UNBOUNDED", "Form", "PgType", "form_of", "unbounded_as"]
