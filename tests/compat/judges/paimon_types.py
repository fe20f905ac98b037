"""Paimon type texts such as `MAP<STRING, ROW<x INT NOT NULL>>`, as JSON for the judges and as Arrow types.

Written for the judges alone, so that they stay independent of the type code under test.
"""

import itertools
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa

JsonType = str | dict[str, Any]

_TOKEN = re.compile(r"\s*([A-Za-z_][A-Za-z0-9_]*|`[^`]+`|\d+|[<>(),])")
_PLAIN = {
    "BOOLEAN": pa.bool_(),
    "TINYINT": pa.int8(),
    "SMALLINT": pa.int16(),
    "INT": pa.int32(),
    "BIGINT": pa.int64(),
    "FLOAT": pa.float32(),
    "DOUBLE": pa.float64(),
    "STRING": pa.string(),
    "CHAR": pa.string(),
    "VARCHAR": pa.string(),
    "BYTES": pa.binary(),
    "BINARY": pa.binary(),
    "VARBINARY": pa.binary(),
    "DATE": pa.date32(),
    "TIME": pa.time32("ms"),
}


def json_fields(fields: list[tuple[str, str, bool]]) -> list[dict[str, Any]]:
    """Columns given as (name, type text, nullable) in the JSON form of schema files, with all field ids assigned."""
    ids = itertools.count()
    columns = []
    for name, text, nullable in fields:
        column_id = next(ids)  # a column is numbered before its nested fields
        columns.append({"id": column_id, "name": name, "type": _Parser(text, ids).whole(nullable)})
    return columns


class _Parser:
    """Recursive descent over the tokens of one type text."""

    def __init__(self, text: str, ids: Iterator[int]) -> None:
        self._text, self._ids, self._tokens = text, ids, self._split(text)

    @staticmethod
    def _split(text: str) -> list[str]:
        tokens, at = [], 0
        while at < len(text.rstrip()):
            match = _TOKEN.match(text, at)
            if match is None:
                raise ValueError(f"cannot read the type {text!r} from position {at}")
            tokens.append(match[1])
            at = match.end()
        return tokens

    def whole(self, nullable: bool) -> JsonType:
        kind = self._type(nullable)
        if self._tokens:
            raise ValueError(f"the type {self._text!r} has left-over words {self._tokens}")
        return kind

    def _take(self, *words: str) -> bool:
        found = [token.upper() for token in self._tokens[: len(words)]] == list(words)
        if found:
            del self._tokens[: len(words)]
        return found

    def _expect(self, word: str) -> None:
        if not self._take(word):
            raise ValueError(f"expected {word} before {self._tokens} in the type {self._text!r}")

    def _type(self, nullable: bool = True) -> JsonType:
        root = self._tokens.pop(0).upper()
        members: dict[str, Any] = {}
        text = root
        if root in ("ARRAY", "MULTISET"):
            self._expect("<")
            members = {"element": self._type()}
            self._expect(">")
        elif root == "MAP":
            self._expect("<")
            members["key"] = self._type()
            self._expect(",")
            members["value"] = self._type()
            self._expect(">")
        elif root == "ROW":
            members = {"fields": self._row_fields()}
        else:
            text += self._parameters()
            if self._take("WITH", "LOCAL", "TIME", "ZONE"):
                text += " WITH LOCAL TIME ZONE"
        if self._take("NOT", "NULL") or not nullable:
            text += " NOT NULL"
        return {"type": text, **members} if members else text

    def _parameters(self) -> str:
        if not self._take("("):
            return ""
        numbers = [self._tokens.pop(0)]
        while self._take(","):
            numbers.append(self._tokens.pop(0))
        self._expect(")")
        return f"({', '.join(numbers)})"

    def _row_fields(self) -> list[dict[str, Any]]:
        self._expect("<")
        fields = []
        while True:
            name = self._tokens.pop(0).strip("`")
            kind = self._type()  # inside a ROW the nested fields are numbered before the field that holds them
            fields.append({"id": next(self._ids), "name": name, "type": kind})
            if not self._take(","):
                break
        self._expect(">")
        return fields


def latest_fields(warehouse: Path, database: str, table: str) -> list[dict[str, Any]]:
    """The columns in the newest schema file of a table, or of its branch when the name ends in `$branch_…`."""
    name, _, branch = table.partition("$branch_")
    root = warehouse / f"{database}.db" / name
    if branch:
        root = root / "branch" / f"branch-{branch}"
    newest = max((root / "schema").glob("schema-*"), key=lambda path: int(path.name.removeprefix("schema-")))
    fields: list[dict[str, Any]] = json.loads(newest.read_text())["fields"]
    return fields


def arrow_schema(fields: list[dict[str, Any]]) -> pa.Schema:
    """The Arrow columns in which the Python judges take rows for these table columns."""
    return pa.schema([_arrow_field(field["name"], field["type"]) for field in fields])


def _arrow_field(name: str, kind: JsonType) -> pa.Field:
    text = kind if isinstance(kind, str) else kind["type"]
    return pa.field(name, _arrow_type(kind), nullable=not text.endswith("NOT NULL"))


def _arrow_type(kind: JsonType) -> pa.DataType:
    if isinstance(kind, dict):
        return _arrow_nested(kind)
    text = kind.removesuffix("NOT NULL").strip()
    root = re.split(r"[ (]", text)[0]
    numbers = [int(number) for number in re.findall(r"\d+", text)]
    if root == "DECIMAL":
        return pa.decimal128(*numbers)
    if root in ("TIMESTAMP", "TIMESTAMP_LTZ"):
        precision = numbers[0] if numbers else 6
        unit = "s" if precision == 0 else "ms" if precision <= 3 else "us" if precision <= 6 else "ns"
        return pa.timestamp(unit, "UTC" if root.endswith("LTZ") or "LOCAL" in text else None)
    if root not in _PLAIN:
        raise ValueError(f"the Python judges cannot be given rows of type {text}")
    return _PLAIN[root]


def _arrow_nested(kind: dict[str, Any]) -> pa.DataType:
    root = kind["type"].split()[0]
    if root == "ARRAY":
        return pa.list_(_arrow_field("element", kind["element"]))
    if root == "MULTISET":
        return pa.map_(_arrow_type(kind["element"]), pa.field("value", pa.int32(), nullable=False))
    if root == "MAP":
        return pa.map_(_arrow_type(kind["key"]), _arrow_field("value", kind["value"]))
    if root == "ROW":
        return pa.struct([_arrow_field(field["name"], field["type"]) for field in kind["fields"]])
    raise ValueError(f"the Python judges cannot be given rows of type {root}")
