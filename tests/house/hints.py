"""What hints of errors and refused options tell people to use exists: options, methods, procedures, commands, extras.

A hint is written when a thing is refused, and read for years: what it names may have gone, or got another name.
"""

from __future__ import annotations

import ast
import inspect
import re
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

from tests.house.source import SOURCE, Module, modules

import lakebed
from lakebed.catalog.global_tables import GLOBAL_TABLES
from lakebed.cdc.rules import type_modes
from lakebed.cli.hints import for_command_line
from lakebed.cli.main import COMMANDS
from lakebed.datafiles.index.build import KINDS
from lakebed.errors import InvalidArgument
from lakebed.options import OPTIONS
from lakebed.options.option import FieldOption
from lakebed.sql.connectors.registry import DEFINITIONS
from lakebed.sql.procedures import PROCEDURES

HOLE = "{}"
"""What stands in a text for a value that is known only when the error is raised."""

OTHER_WORDS = {
    "database.table",
    "db.table",
    "schema.table",
    "ignore-retract",
    "max.message.bytes",
    "transaction.max.timeout.ms",
}
"""Words with dashes or dots that are no options here: forms of names, ends of options that were named in full, and
options of a topic or a broker."""

_KEY = re.compile(r"[a-z<{][a-z0-9<>{}]*(?:[.-][a-z0-9_<>{}]+)+")
_METHOD = re.compile(r"\b(t|table|lake)\.([a-z_]+)\((?:([^()]*)\))?")
_ATTRIBUTE = re.compile(r"\blakebed((?:\.[A-Za-z_]+)+)")


@dataclass(frozen=True, slots=True)
class Hint:
    """One text and where it stands."""

    place: str
    line: int
    text: str


def hints(root: Path) -> list[Hint]:
    """All texts that are given as `hint` or as `instead`, by themselves or by the name of a constant."""
    found = []
    for module in modules(root):
        constants = _constants(module)
        for node in ast.walk(module.tree):
            if isinstance(node, ast.keyword) and node.arg in ("hint", "instead"):
                texts = _texts(node.value, constants)
                found += [Hint(module.place, node.value.lineno, text) for text in texts]
    if root == SOURCE:  # some of the table of options are made by functions
        found += [Hint(f"option {option.key}", 0, option.instead) for option in OPTIONS if option.instead]
    return found


def _constants(module: Module) -> dict[str, ast.expr]:
    constants: dict[str, ast.expr] = {}
    for node in module.tree.body:
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            constants[node.targets[0].id] = node.value
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and node.value is not None:
            constants[node.target.id] = node.value
    return constants


def _texts(node: ast.expr, constants: dict[str, ast.expr]) -> Iterator[str]:
    if isinstance(node, ast.JoinedStr):
        yield "".join(str(part.value) if isinstance(part, ast.Constant) else HOLE for part in node.values)
    elif isinstance(node, ast.Constant) and isinstance(node.value, str):
        yield node.value
    elif isinstance(node, ast.Name) and node.id in constants:
        yield from _texts(constants[node.id], {})
    else:
        for part in ast.iter_child_nodes(node):
            if isinstance(part, ast.expr):
                yield from _texts(part, constants)


def stale_hints(root: Path) -> list[str]:
    """Hints that name what does not exist."""
    return [f"{hint.place}:{hint.line} names {what}" for hint in hints(root) for what in missing(hint.text)]


def missing(text: str) -> Iterator[str]:
    """What a text names and nobody has."""
    for quoted in re.findall(r"`([^`]+)`", text):
        if _KEY.fullmatch(quoted) and not _is_known_word(quoted):
            yield f"`{quoted}`"
        command = re.match(r"lakebed ([a-z]+)", quoted)
        if command and command[1] not in COMMANDS:
            yield f"`lakebed {command[1]}`"
    for holder, method, arguments in _METHOD.findall(text):
        yield from _missing_method(lakebed.Lake if holder == "lake" else lakebed.Table, method, arguments)
    for named in re.findall(r"\bsys\.([a-z_]+)", text):
        if named not in PROCEDURES and named not in GLOBAL_TABLES:
            yield f"sys.{named}"
    for path in _ATTRIBUTE.findall(text):
        if not _is_attribute(path.strip(".").split(".")):
            yield f"lakebed{path}"
    for extra in re.findall(r"lakebed\[([a-z-]+)\]", text):
        if extra not in _extras():
            yield f"lakebed[{extra}]"


def _missing_method(holder: type, method: str, arguments: str) -> Iterator[str]:
    found: Any = getattr(holder, method, None)
    if found is None:
        yield f"{holder.__name__}.{method}"
        return
    parameters = inspect.signature(found).parameters
    if not any(each.kind is inspect.Parameter.VAR_KEYWORD for each in parameters.values()):
        for name in re.findall(r"\b([a-z_]+)=", arguments):
            if name not in parameters:
                yield f"{holder.__name__}.{method}({name}=)"


def _is_known_word(word: str) -> bool:
    if (
        word in OTHER_WORDS
        or word in _words()
        or word.startswith("properties.")
        or any(pattern.fullmatch(word) for pattern in _key_patterns())
    ):
        return True
    if HOLE in word:
        fits = re.compile(".+".join(map(re.escape, word.split(HOLE))))
        return any(fits.fullmatch(known) for known in _words())
    try:
        return bool(type_modes([word]))  # of a sync
    except InvalidArgument:
        return False


@cache
def _words() -> frozenset[str]:
    """Keys of options of tables and connectors, other names of them, values that they take; kinds of indexes."""
    words = {*KINDS}
    for option in OPTIONS:
        words |= {option.key, *getattr(option, "aliases", ()), *getattr(option, "choices", ())}
    for definition in DEFINITIONS.values():
        words |= {definition.name, *(word for each in definition.options for word in (each.name, *each.choices))}
    return frozenset(words)


@cache
def _key_patterns() -> tuple[re.Pattern[str], ...]:
    """Keys that hold a name, such as `fields.<field>.stats-mode`, with any name in its place."""
    named = [option.key for option in OPTIONS if isinstance(option, FieldOption) or "<" in option.key]
    return tuple(re.compile(re.sub(r"<[^>]+>", "[a-z_]+", re.escape(key))) for key in named)


def _is_attribute(names: list[str]) -> bool:
    found: Any = lakebed
    for name in names:
        if not hasattr(found, name) and isinstance(found, ModuleType):
            try:
                import_module(f"{found.__name__}.{name}")
            except ImportError:
                return False
        if not hasattr(found, name):
            return False
        found = getattr(found, name)
    return True


@cache
def _extras() -> frozenset[str]:
    project = tomllib.loads((SOURCE.parents[1] / "pyproject.toml").read_text())["project"]
    return frozenset(project["optional-dependencies"])


PYTHON_ONLY = (
    *("definition/arguments.py", "definition/incoming.py", "definition/elsewhere.py"),
    *(
        "lake.py",
        "table/dataset.py",
        "table/writer.py",
        "table/upkeep.py",
        "write/conform.py",
        "rewrite/rows_by_place.py",
    ),
    *("types/binary_row.py", "types/predicate_parse.py", "read/reader.py", "sql/words/parameters.py"),
    *("spark/attach.py", "spark/data_source.py", "spark/write.py", "spark/stream/sink.py", "spark/stream/source.py"),
    *("spark/stream/writer_format.py", "cdc/arguments.py", "cdc/start.py"),
    *("cdc/sources/kafka/spark_source.py", "cdc/sources/postgres/spark_source.py"),
)
"""Modules whose hints are about arguments that only a call in Python has."""

_PYTHON = re.compile(
    r"\b(?:t|table|lake|df|pa)\.[a-z_]+\b|\b[a-z_]+=(?:True|False|\[|\{|\"|'|\.\.\.)|\bcreate_table\b|\blakebed\.(?:connect|cdc\.sync)"
)


def python_on_the_command_line(root: Path) -> list[str]:
    """Hints that name a call or an argument of Python where somebody at a terminal reads them."""
    return [
        f"{hint.place}:{hint.line} says {found[0]} in: {hint.text}"
        for hint in hints(root)
        if hint.place not in PYTHON_ONLY and not hint.place.startswith("testing/")
        for found in [_PYTHON.search(for_command_line(hint.text))]
        if found is not None
    ]


def named_options(text: str) -> set[str]:
    """Keys of options that a text names."""
    keys = {option.key for option in OPTIONS}
    return {quoted for quoted in re.findall(r"`([^`]+)`", text) if quoted in keys}
