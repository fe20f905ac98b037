"""The type tree of a table: Paimon's logical types, their canonical text and their JSON form in schema files.

Everything that has to know what a column *is* (hashing, statistics, casts, Arrow mapping) dispatches on these classes.
They are immutable and comparable. Nothing here knows Arrow, files or tables.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import field, replace
from enum import StrEnum
from typing import Any

from lakebed.errors import InvalidSchema, did_you_mean
from lakebed.records import dataclass

MAX_LENGTH = 2147483647
"""Length that turns VARCHAR into STRING and VARBINARY into BYTES."""


class TypeRoot(StrEnum):
    """Name of an atomic type, without its parameters."""

    BOOLEAN = "BOOLEAN"
    TINYINT = "TINYINT"
    SMALLINT = "SMALLINT"
    INT = "INT"
    BIGINT = "BIGINT"
    FLOAT = "FLOAT"
    DOUBLE = "DOUBLE"
    DECIMAL = "DECIMAL"
    CHAR = "CHAR"
    VARCHAR = "VARCHAR"
    BINARY = "BINARY"
    VARBINARY = "VARBINARY"
    DATE = "DATE"
    TIME = "TIME"
    TIMESTAMP = "TIMESTAMP"
    TIMESTAMP_LTZ = "TIMESTAMP_LTZ"
    VARIANT = "VARIANT"
    BLOB = "BLOB"


INTEGERS = frozenset({TypeRoot.TINYINT, TypeRoot.SMALLINT, TypeRoot.INT, TypeRoot.BIGINT})
FLOATS = frozenset({TypeRoot.FLOAT, TypeRoot.DOUBLE})
NUMERICS = INTEGERS | FLOATS | {TypeRoot.DECIMAL}
STRINGS = frozenset({TypeRoot.CHAR, TypeRoot.VARCHAR})
BINARIES = frozenset({TypeRoot.BINARY, TypeRoot.VARBINARY, TypeRoot.BLOB})
TIMESTAMPS = frozenset({TypeRoot.TIMESTAMP, TypeRoot.TIMESTAMP_LTZ})

_WITH_LENGTH = STRINGS | {TypeRoot.BINARY, TypeRoot.VARBINARY}
_WITH_PRECISION = TIMESTAMPS | {TypeRoot.TIME, TypeRoot.DECIMAL}


@dataclass(frozen=True, slots=True)
class AtomicType:
    """A type without parts. `length` for text and bytes, `precision` (and `scale`) for decimals and times."""

    root: TypeRoot
    nullable: bool = True
    length: int = 0
    precision: int = 0
    scale: int = 0

    def __post_init__(self) -> None:
        if self.root in _WITH_LENGTH and not 1 <= self.length <= MAX_LENGTH:
            raise InvalidSchema(
                f"length {self.length} of {self.root} is out of range", hint=f"use a length from 1 to {MAX_LENGTH}"
            )
        if self.root is TypeRoot.DECIMAL and not (1 <= self.precision <= 38 and 0 <= self.scale <= self.precision):
            raise InvalidSchema(
                f"DECIMAL({self.precision}, {self.scale}) is out of range",
                hint="precision must be 1 to 38 and scale 0 to the precision",
            )
        if self.root in _WITH_PRECISION and self.root is not TypeRoot.DECIMAL and not 0 <= self.precision <= 9:
            raise InvalidSchema(f"{self.root}({self.precision}) is out of range", hint="use a precision from 0 to 9")

    def __str__(self) -> str:
        return self._bare_text() + ("" if self.nullable else " NOT NULL")

    def _bare_text(self) -> str:
        match self.root:
            case TypeRoot.VARCHAR if self.length == MAX_LENGTH:
                return "STRING"
            case TypeRoot.VARBINARY if self.length == MAX_LENGTH:
                return "BYTES"
            case TypeRoot.DECIMAL:
                return f"DECIMAL({self.precision}, {self.scale})"
            case TypeRoot.TIMESTAMP_LTZ:
                return f"TIMESTAMP({self.precision}) WITH LOCAL TIME ZONE"
            case root if root in _WITH_LENGTH:
                return f"{root}({self.length})"
            case root if root in _WITH_PRECISION:
                return f"{root}({self.precision})"
            case root:
                return str(root)


@dataclass(frozen=True, slots=True)
class ArrayType:
    """Ordered elements of one type."""

    element: DataType
    nullable: bool = True

    def __str__(self) -> str:
        return f"ARRAY<{self.element}>" + ("" if self.nullable else " NOT NULL")


@dataclass(frozen=True, slots=True)
class MultisetType:
    """Elements with their counts; stored as a map from element to INT."""

    element: DataType
    nullable: bool = True

    def __str__(self) -> str:
        return f"MULTISET<{self.element}>" + ("" if self.nullable else " NOT NULL")


@dataclass(frozen=True, slots=True)
class MapType:
    """Keys to values."""

    key: DataType
    value: DataType
    nullable: bool = True

    def __str__(self) -> str:
        return f"MAP<{self.key}, {self.value}>" + ("" if self.nullable else " NOT NULL")


@dataclass(frozen=True, slots=True)
class RowType:
    """Named members, each a `DataField` with an id of its own."""

    fields: tuple[DataField, ...]
    nullable: bool = True

    def __str__(self) -> str:
        names = [member.name.replace("`", "``") for member in self.fields]
        members = ", ".join(f"`{name}` {member.type}" for name, member in zip(names, self.fields, strict=True))
        return f"ROW<{members}>" + ("" if self.nullable else " NOT NULL")


DataType = AtomicType | ArrayType | MultisetType | MapType | RowType


@dataclass(frozen=True, slots=True)
class DataField:
    """A column, or a member of a ROW. `id` never changes and is never reused; names may change."""

    id: int
    name: str
    type: DataType
    description: str | None = None
    default_value: str | None = field(default=None, kw_only=True)

    def to_json(self) -> dict[str, Any]:
        """The object that stands for this field in a schema file."""
        body: dict[str, Any] = {"id": self.id, "name": self.name, "type": type_to_json(self.type)}
        if self.description is not None:
            body["description"] = self.description
        if self.default_value is not None:
            body["defaultValue"] = self.default_value
        return body

    @staticmethod
    def from_json(body: dict[str, Any]) -> DataField:
        """The field that a schema file's object stands for."""
        return DataField(
            int(body["id"]),
            str(body["name"]),
            type_from_json(body["type"]),
            body.get("description"),
            default_value=body.get("defaultValue"),
        )


BOOLEAN = AtomicType(TypeRoot.BOOLEAN)
TINYINT = AtomicType(TypeRoot.TINYINT)
SMALLINT = AtomicType(TypeRoot.SMALLINT)
INT = AtomicType(TypeRoot.INT)
BIGINT = AtomicType(TypeRoot.BIGINT)
FLOAT = AtomicType(TypeRoot.FLOAT)
DOUBLE = AtomicType(TypeRoot.DOUBLE)
DATE = AtomicType(TypeRoot.DATE)
STRING = AtomicType(TypeRoot.VARCHAR, length=MAX_LENGTH)
BYTES = AtomicType(TypeRoot.VARBINARY, length=MAX_LENGTH)
VARIANT = AtomicType(TypeRoot.VARIANT)
BLOB = AtomicType(TypeRoot.BLOB)


def decimal(precision: int, scale: int) -> AtomicType:
    """DECIMAL(precision, scale)."""
    return AtomicType(TypeRoot.DECIMAL, precision=precision, scale=scale)


def char(length: int) -> AtomicType:
    """CHAR(length)."""
    return AtomicType(TypeRoot.CHAR, length=length)


def varchar(length: int) -> AtomicType:
    """VARCHAR(length)."""
    return AtomicType(TypeRoot.VARCHAR, length=length)


def binary(length: int) -> AtomicType:
    """BINARY(length)."""
    return AtomicType(TypeRoot.BINARY, length=length)


def varbinary(length: int) -> AtomicType:
    """VARBINARY(length)."""
    return AtomicType(TypeRoot.VARBINARY, length=length)


def time(precision: int) -> AtomicType:
    """TIME(precision); stored with millisecond resolution whatever the precision."""
    return AtomicType(TypeRoot.TIME, precision=precision)


def timestamp(precision: int) -> AtomicType:
    """TIMESTAMP(precision), without time zone."""
    return AtomicType(TypeRoot.TIMESTAMP, precision=precision)


def timestamp_ltz(precision: int) -> AtomicType:
    """TIMESTAMP(precision) WITH LOCAL TIME ZONE: an instant."""
    return AtomicType(TypeRoot.TIMESTAMP_LTZ, precision=precision)


def is_root(data_type: DataType, roots: TypeRoot | frozenset[TypeRoot] | set[TypeRoot]) -> bool:
    """Whether the type is atomic and of (one of) the given roots."""
    return isinstance(data_type, AtomicType) and (
        data_type.root is roots if isinstance(roots, TypeRoot) else data_type.root in roots
    )


def is_nested(data_type: DataType) -> bool:
    """Whether the type has parts or no order: such a column can be neither key nor partition."""
    return not isinstance(data_type, AtomicType) or data_type.root in (TypeRoot.VARIANT, TypeRoot.BLOB)


def with_nullable(data_type: DataType, nullable: bool) -> DataType:
    """The same type with that nullability at its top."""
    return replace(data_type, nullable=nullable)


def same_ignoring_nullability(left: DataType, right: DataType) -> bool:
    """Whether both are the same type once top-level nullability is left aside."""
    return with_nullable(left, True) == with_nullable(right, True)


def type_to_json(data_type: DataType) -> Any:
    """Schema-file form: text for atomic types, an object for the rest."""
    suffix = "" if data_type.nullable else " NOT NULL"
    match data_type:
        case AtomicType():
            return str(data_type)
        case ArrayType(element):
            return {"type": "ARRAY" + suffix, "element": type_to_json(element)}
        case MultisetType(element):
            return {"type": "MULTISET" + suffix, "element": type_to_json(element)}
        case MapType(key, value):
            return {"type": "MAP" + suffix, "key": type_to_json(key), "value": type_to_json(value)}
        case RowType(fields):
            return {"type": "ROW" + suffix, "fields": [member.to_json() for member in fields]}


def type_from_json(body: Any) -> DataType:
    """Inverse of `type_to_json`; tolerant of the redundant members other writers add."""
    if isinstance(body, str):
        return parse_type(body)
    text = str(body["type"]).strip()
    nullable = not text.upper().endswith("NOT NULL")
    name = text.split()[0].upper()
    if name == "ARRAY":
        return ArrayType(type_from_json(body["element"]), nullable)
    if name == "MULTISET":
        return MultisetType(type_from_json(body["element"]), nullable)
    if name == "MAP":
        return MapType(type_from_json(body["key"]), type_from_json(body["value"]), nullable)
    if name == "ROW":
        return RowType(tuple(DataField.from_json(member) for member in body["fields"]), nullable)
    raise InvalidSchema(f"type `{text}` is not known", hint=did_you_mean(name, ["ARRAY", "MULTISET", "MAP", "ROW"]))


def walk_fields(fields: tuple[DataField, ...]) -> Iterator[DataField]:
    """All fields at every depth, parents before their members."""
    for member in fields:
        yield member
        yield from walk_fields(_rows_inside(member.type))


def _rows_inside(data_type: DataType) -> tuple[DataField, ...]:
    match data_type:
        case RowType(fields):
            return fields
        case ArrayType(element) | MultisetType(element):
            return _rows_inside(element)
        case MapType(key, value):
            return _rows_inside(key) + _rows_inside(value)
        case _:
            return ()


def renumbered(data_type: DataType, next_id: Callable[[], int]) -> DataType:
    """The type with fresh ids in all its ROW members; a member's own parts are numbered before the member itself."""
    match data_type:
        case ArrayType(element):
            return replace(data_type, element=renumbered(element, next_id))
        case MultisetType(element):
            return replace(data_type, element=renumbered(element, next_id))
        case MapType(key, value):
            new_key = renumbered(key, next_id)
            return replace(data_type, key=new_key, value=renumbered(value, next_id))
        case RowType(fields):
            members = []
            for member in fields:
                inner = renumbered(member.type, next_id)
                members.append(replace(member, type=inner, id=next_id()))
            return replace(data_type, fields=tuple(members))
        case _:
            return data_type


# --- text ------------------------------------------------------------------------------------------------------------

_TOKEN = re.compile(r"\s*(?:(`(?:[^`]|``)*`)|([A-Za-z_]\w*)|(\d+)|('(?:[^']|'')*')|(.))", re.DOTALL)
_PLAIN = {
    "BOOLEAN": BOOLEAN,
    "BOOL": BOOLEAN,
    "TINYINT": TINYINT,
    "BYTE": TINYINT,
    "SMALLINT": SMALLINT,
    "SHORT": SMALLINT,
    "INT": INT,
    "INTEGER": INT,
    "BIGINT": BIGINT,
    "LONG": BIGINT,
    "FLOAT": FLOAT,
    "REAL": FLOAT,
    "DATE": DATE,
    "STRING": STRING,
    "BYTES": BYTES,
    "VARIANT": VARIANT,
    "BLOB": BLOB,
}
_SIZED: dict[str, Callable[[int], AtomicType]] = {
    "CHAR": char,
    "VARCHAR": varchar,
    "BINARY": binary,
    "VARBINARY": varbinary,
}
_KNOWN = [*_PLAIN, *_SIZED, "DOUBLE", "DECIMAL", "TIME", "TIMESTAMP", "TIMESTAMP_LTZ"]
_KNOWN += ["ARRAY", "MULTISET", "MAP", "ROW"]
_MEANT = {
    **dict.fromkeys(
        ("TEXT", "STR", "OBJECT", "UTF8", "NVARCHAR", "VARCHAR2", "CLOB", "UUID", "JSON", "JSONB", "ENUM"), "STRING"
    ),
    **dict.fromkeys(("INT64", "UINT32", "SERIAL", "BIGSERIAL"), "BIGINT"),
    **dict.fromkeys(("INT32", "UINT16", "INT4", "MEDIUMINT"), "INT"),
    **dict.fromkeys(("INT16", "UINT8", "INT2"), "SMALLINT"),
    **dict.fromkeys(("FLOAT64", "FLOAT8"), "DOUBLE"),
    **dict.fromkeys(("FLOAT32", "FLOAT4"), "FLOAT"),
    **dict.fromkeys(("UINT64", "NUMBER", "MONEY"), "DECIMAL(20, 0), or with other digits"),
    **dict.fromkeys(("DATETIME", "DATETIME64", "DATETIME2", "SMALLDATETIME"), "TIMESTAMP(6)"),
    **dict.fromkeys(("TIMESTAMPTZ", "TIMESTAMP_TZ"), "TIMESTAMP_LTZ(6)"),
    **dict.fromkeys(("BYTEA", "LONGBLOB"), "BYTES"),
    "BIT": "BOOLEAN",
    "INT8": "BIGINT for eight bytes, TINYINT for eight bits",
}
"""Types of databases, pandas and Arrow."""


def parse_type(text: str) -> DataType:
    """The type that a text names: `DECIMAL(10, 2) NOT NULL`, `ARRAY<ROW<x INT, y STRING>>`, …

    Member ids of ROWs are numbered from 0 in order of appearance; a schema gives them their real ids.
    """
    parser = _TypeParser(text)
    parsed = parser.type()
    parser.end()
    return parsed


class _TypeParser:
    """Recursive descent over the type grammar; one instance per text."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.tokens = [match.group().strip() for match in _TOKEN.finditer(text.strip()) if match.group().strip()]
        self.position = 0
        self.next_member_id = 0

    def type(self) -> DataType:
        name = self._next().upper()
        parsed: DataType
        if name in _PLAIN:
            parsed = _PLAIN[name]
        elif name in _SIZED:
            parsed = _SIZED[name](self._numbers([1])[0])
        elif name == "DOUBLE":
            self._skip("PRECISION")
            parsed = DOUBLE
        elif name in ("DECIMAL", "NUMERIC", "DEC"):
            parsed = decimal(*self._numbers([10, 0]))
        elif name == "TIME":
            parsed = time(self._numbers([0])[0])
            self._zone()
        elif name == "TIMESTAMP":
            precision = self._numbers([6])[0]
            parsed = timestamp_ltz(precision) if self._zone() else timestamp(precision)
        elif name == "TIMESTAMP_LTZ":
            parsed = timestamp_ltz(self._numbers([6])[0])
        elif name in ("ARRAY", "MULTISET"):
            self._expect("<")
            element = self.type()
            self._expect(">")
            parsed = ArrayType(element) if name == "ARRAY" else MultisetType(element)
        elif name == "MAP":
            self._expect("<")
            key = self.type()
            self._expect(",")
            parsed = MapType(key, self.type())
            self._expect(">")
        elif name in ("ROW", "STRUCT"):
            parsed = self._row()
        else:
            hint = f"write {_MEANT[name]}" if name in _MEANT else did_you_mean(name, _KNOWN)
            raise InvalidSchema(f"type `{name}` in `{self.text}` is not known", hint=hint)
        return with_nullable(parsed, self._nullable())

    def end(self) -> None:
        if self.position < len(self.tokens):
            raise self._wrong(f"`{self.tokens[self.position]}` is unexpected")

    def _row(self) -> RowType:
        closing = {"<": ">", "(": ")"}.get(self._peek())
        if closing is None:
            raise self._wrong("ROW needs members")
        self._next()
        members: list[DataField] = []
        while self._peek() != closing:
            if members:
                self._expect(",")
            name = self._next()
            if name.startswith("`"):
                name = name[1:-1].replace("``", "`")
            self._skip(":")
            member_type = self.type()
            comment = None
            if self._skip("COMMENT") or self._peek().startswith("'"):
                comment = self._next()[1:-1].replace("''", "'")
            members.append(DataField(self.next_member_id, name, member_type, comment))
            self.next_member_id += 1
        self._expect(closing)
        return RowType(tuple(members))

    def _numbers(self, defaults: list[int]) -> list[int]:
        """The numbers in parentheses, with defaults for those left out."""
        if not self._skip("("):
            return defaults
        numbers: list[int] = []
        while True:
            token = self._next()
            if not token.isdigit():
                raise self._wrong(f"`{token}` should be a number")
            numbers.append(int(token))
            if self._skip(")"):
                break
            self._expect(",")
        if len(numbers) > len(defaults):
            raise self._wrong("too many parameters")
        return numbers + defaults[len(numbers) :]

    def _zone(self) -> bool:
        """Consumes WITH LOCAL TIME ZONE or WITHOUT TIME ZONE; true for the first."""
        if self._skip("WITHOUT"):
            self._expect("TIME")
            self._expect("ZONE")
        elif self._skip("WITH"):
            for word in ("LOCAL", "TIME", "ZONE"):
                self._expect(word)
            return True
        return False

    def _nullable(self) -> bool:
        if self._skip("NOT"):
            self._expect("NULL")
            return False
        self._skip("NULL")
        return True

    def _peek(self) -> str:
        return self.tokens[self.position] if self.position < len(self.tokens) else ""

    def _next(self) -> str:
        token = self._peek()
        if not token:
            raise self._wrong("the text ends too early")
        self.position += 1
        return token

    def _skip(self, word: str) -> bool:
        if self._peek().upper() != word:
            return False
        self.position += 1
        return True

    def _expect(self, word: str) -> None:
        if not self._skip(word):
            raise self._wrong(f"`{word}` expected, found `{self._peek() or 'the end'}`")

    def _wrong(self, what: str) -> InvalidSchema:
        return InvalidSchema(
            f"type text `{self.text}` can not be read: {what}",
            hint="write types as in `DECIMAL(10, 2) NOT NULL` or `ARRAY<ROW<x INT, y STRING>>`",
        )
