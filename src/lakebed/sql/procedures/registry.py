"""What a procedure is, and how the arguments of a call become those of its function."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from enum import Enum
from typing import Any

import pyarrow as pa

from lakebed.errors import InvalidArgument, NotFound, did_you_mean
from lakebed.records import dataclass
from lakebed.sql.session import SqlLake

Rows = Sequence[Sequence[Any]]

DONE: Rows = [(True,)]
_RESULT: Mapping[str, pa.DataType] = {"result": pa.bool_()}


class Kind(Enum):
    """What kind of value an argument takes."""

    TEXT = "text"
    NUMBER = "a whole number"
    FLAG = "true or false"
    MOMENT = "a time, as text or as milliseconds since 1970"


@dataclass(frozen=True, slots=True)
class Parameter:
    """One argument. Flink and Spark name some differently; case and underscores never matter."""

    name: str
    kind: Kind = Kind.TEXT
    required: bool = False
    aliases: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Procedure:
    """A procedure: arguments without names are taken in the order of `parameters`."""

    name: str
    parameters: tuple[Parameter, ...]
    run: Callable[..., Rows]
    columns: Mapping[str, pa.DataType] = field(default_factory=lambda: _RESULT)
    varargs: bool = False
    """Whether the last parameter takes all values that are left."""

    def arguments(self, given: Sequence[tuple[str | None, Any]]) -> dict[str, Any]:
        """The values by parameter; those left out, or given as '' or NULL, are not there."""
        found: dict[str, Any] = {}
        for position, (name, value) in enumerate(given):
            parameter = self._positional(position) if name is None else self._named(name)
            if parameter.name in found and not (self.varargs and parameter is self.parameters[-1]):
                raise InvalidArgument(f"`{self.name}` has `{parameter.name}` twice", hint="give each argument once")
            if value is None or value == "":
                continue
            checked = _checked(self.name, parameter, value)
            if self.varargs and parameter is self.parameters[-1]:
                found.setdefault(parameter.name, []).append(checked)
            else:
                found[parameter.name] = checked
        for parameter in self.parameters:
            if parameter.required and parameter.name not in found:
                raise InvalidArgument(
                    f"procedure `{self.name}` needs `{parameter.name}`", hint=f"call it as {self.usage()}"
                )
        return found

    def usage(self) -> str:
        """How it is called."""
        parts = [f"{item.name} => ..." for item in self.parameters if item.required]
        optional = [item.name for item in self.parameters if not item.required]
        more = f" (and, if wanted, {', '.join(optional)})" if optional else ""
        return f"CALL sys.{self.name}({', '.join(parts)}){more}"

    def _positional(self, position: int) -> Parameter:
        if position < len(self.parameters):
            return self.parameters[position]
        if self.varargs:
            return self.parameters[-1]
        raise InvalidArgument(
            f"procedure `{self.name}` takes at most {len(self.parameters)} arguments", hint=f"call it as {self.usage()}"
        )

    def _named(self, name: str) -> Parameter:
        for parameter in self.parameters:
            if _plain(name) in map(_plain, (parameter.name, *parameter.aliases)):
                return parameter
        known = [parameter.name for parameter in self.parameters]
        raise InvalidArgument(f"procedure `{self.name}` has no argument `{name}`", hint=did_you_mean(name, known))


def _plain(name: str) -> str:
    return name.replace("_", "").lower()


def _checked(procedure: str, parameter: Parameter, value: Any) -> Any:
    match parameter.kind:
        case Kind.TEXT if isinstance(value, str | int | dict):
            return value if isinstance(value, str | dict) else str(value)
        case Kind.NUMBER if isinstance(value, int) and not isinstance(value, bool):
            return value
        case Kind.NUMBER if isinstance(value, str) and value.strip().lstrip("-").isdigit():
            return int(value)
        case Kind.FLAG if isinstance(value, bool):
            return value
        case Kind.FLAG if str(value).lower() in ("true", "false"):
            return str(value).lower() == "true"
        case Kind.MOMENT if isinstance(value, int) or (isinstance(value, str) and value.isdigit()):
            return int(value)
        case Kind.MOMENT if isinstance(value, str) or hasattr(value, "isoformat"):
            return value
    raise InvalidArgument(
        f"procedure `{procedure}`: `{parameter.name}` is {value!r}", hint=f"pass {parameter.kind.value}"
    )


def table_options(text: str) -> dict[str, str]:
    """`key1=value1,key2=value2`."""
    pairs = [part.partition("=") for part in text.split(",") if part.strip()]
    for key, sign, _ in pairs:
        if not sign:
            raise InvalidArgument(f"options `{text}` can not be read at `{key}`", hint="write key1=value1,key2=value2")
    return {key.strip(): value.strip() for key, _, value in pairs}


def missing_procedure(name: str, known: Sequence[str]) -> NotFound:
    """The error for a procedure that does not exist."""
    source, is_sync, _ = name.partition("_sync_")
    hint = f"{did_you_mean(name, known)}; see SHOW PROCEDURES"
    if is_sync:
        hint = (
            f"type `lakebed cdc {source} PLACE` on the command line, or define a source in SQL: CREATE TABLE ... WITH ("
        )
        hint += f"'connector' = '{source}-cdc', ...)"
    return NotFound(f"there is no procedure `sys.{name}`", hint=hint)


TABLE = Parameter("table", required=True, aliases=("identifier",))
OPTIONS = Parameter("options", aliases=("table_options",))

__all__ = [
    "DONE",
    "OPTIONS",
    "TABLE",
    "Kind",
    "Parameter",
    "Procedure",
    "Rows",
    "SqlLake",
    "missing_procedure",
    "table_options",
]
