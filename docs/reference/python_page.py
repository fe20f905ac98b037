"""Makes the page of the Python API from signatures and docstrings: `python -m docs.reference.python_page`.

The source is read, not asked: annotations stand on the page as they were written, whatever Python makes the page, and
no optional package has to be there.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import import_module
from inspect import cleandoc
from itertools import pairwise
from pathlib import Path

import lakebed

SOURCE = Path(lakebed.__file__).parent
_WIDTH = 116
_HEAD = """\
# Python API

<!-- Made by `python -m docs.reference.python_page`; change the docstrings, not this page. -->

`lakebed.connect` gives a Lake, a lake gives a Table, and everything else hangs on these. Names below are those to rely
on; others may change. What is wrong with a call is raised before anything is changed, as an error of `lakebed.errors`.
"""

HANDED_OUT = {
    "read.lookup": ["KeyLookup"],
    "changes.follow": ["ChangeStream"],
    "read.plan": ["ScanPlan"],
    "sql.query.answer": ["QueryResult"],
    "table.parts": ["ReadPlan"],
}
"""What methods give back and users then call, by its module."""

CDC = {
    "cdc.start": ["sync", "SyncRun"],
    "cdc.arguments": ["SyncArguments", "PastArguments"],
    "cdc.progress": ["SyncProgress", "TableProgress"],
}
"""What a sync of a database takes and gives."""

METRICS = {
    "metrics": ["start", "snapshot", "stop", "serve", "use_opentelemetry", "listen", "unlisten"],
    "metrics.endpoint": ["Endpoint"],
    "metrics.instruments": ["Instrument"],
}
"""Numbers about what a program does."""

_INHERITED = {"Table": (("table.reading", "TableReading"), ("table.upkeep", "TableUpkeep"))}
"""Classes whose other half is written down elsewhere."""

_SECTION = re.compile(r"^ +# --- (.+?) -+$")


@dataclass(frozen=True)
class Entry:
    """Something that has a name, as it stands in the source."""

    module: str
    node: ast.ClassDef | ast.FunctionDef


def page() -> str:
    """The whole page."""
    main = [name for name in ("connect", "Lake", "Table", "TableWriter") if name in lakebed.__all__]
    rest = [name for name in lakebed.__all__ if name not in main and _is_described(name)]
    changes = [name for name in rest if _home(name) in ("schema.changes", "schema.draft")]
    others = [name for name in rest if name not in changes]
    lines = [_HEAD]
    for name in [*main, *others]:
        lines += _described(_entry(_home(name), name))
    lines += _group("What methods give", HANDED_OUT)
    lines += ["## Schema changes\n", "What `Table.alter` takes. A column inside another one is named `r.x`.\n"]
    for name in changes:
        lines += _described(_entry(_home(name), name), level=3)
    lines += _group("lakebed.cdc", CDC)
    lines += _group("lakebed.metrics", METRICS)
    lines += ["## lakebed.errors\n", *_errors()]
    return "\n".join(lines)


def _group(title: str, members: dict[str, list[str]]) -> Iterator[str]:
    yield f"## {title}\n"
    for module, names in members.items():
        for name in names:
            yield from _described(_entry(module, name), level=3)


def _is_described(name: str) -> bool:
    return name not in ("errors", "metrics") and not name.startswith("__")


def _home(name: str) -> str:
    """The module below `lakebed` that a public name is written in."""
    return str(getattr(lakebed, name).__module__).removeprefix("lakebed.")


def _entry(module: str, name: str) -> Entry:
    for node in _parsed(module).body:
        if isinstance(node, ast.ClassDef | ast.FunctionDef) and node.name == name:
            return Entry(module, node)
    raise LookupError(f"lakebed.{module} defines no {name}")


def _file(module: str) -> Path:
    place = SOURCE.joinpath(*module.split("."))
    return place.with_suffix(".py") if place.with_suffix(".py").exists() else place / "__init__.py"


def _parsed(module: str) -> ast.Module:
    return ast.parse(_file(module).read_text(encoding="utf-8"))


# --- what stands on the page ---------------------------------------------------------------------------------------
def _described(entry: Entry, level: int = 2) -> Iterator[str]:
    node = entry.node
    if isinstance(node, ast.FunctionDef):
        yield f"{'#' * level} {node.name}\n"
        yield from _function(node, node.name, skip_first=False)
        return
    yield f"{'#' * level} {node.name}\n"
    yield _doc(node)
    fields = list(_fields(node))
    if fields:
        yield "\n".join(fields) + "\n"
    yield from _methods(entry, level + 1)
    for module, name in _INHERITED.get(node.name, ()):
        yield from _methods(_entry(module, name), level + 1)


def _methods(entry: Entry, level: int) -> Iterator[str]:
    """Public methods and properties, under the headings that the source has for them.

    What makes an object of its parts (class and static methods) is left out: users get these objects from others.
    """
    assert isinstance(entry.node, ast.ClassDef)
    lines = _file(entry.module).read_text(encoding="utf-8").splitlines()
    shown = "Table" if entry.node.name in ("TableReading", "TableUpkeep") else entry.node.name
    headings = {number: match.group(1) for number, line in enumerate(lines, 1) if (match := _SECTION.match(line))}
    has_sections = any(entry.node.lineno < number < (entry.node.end_lineno or 0) for number in headings)
    yield from _attributes(entry.node, shown, level)
    last = entry.node.lineno
    for node in entry.node.body:
        decorators = {ast.unparse(each) for each in getattr(node, "decorator_list", ())}
        if (
            not isinstance(node, ast.FunctionDef)
            or node.name.startswith("_")
            or decorators & {"overload", "classmethod", "staticmethod"}
        ):
            continue
        yield from (
            f"{'#' * level} {shown}: {heading}\n" for line, heading in headings.items() if last < line < node.lineno
        )
        last = node.lineno
        yield f"{'#' * (level + has_sections)} {shown}.{node.name}\n"
        if decorators & {"property", "cached_property"}:
            yield _code(f"{node.name}: {ast.unparse(node.returns)}" if node.returns else node.name)
            yield _doc(node)
        else:
            yield from _function(node, node.name, skip_first=True)


def _attributes(node: ast.ClassDef, shown: str, level: int) -> Iterator[str]:
    """What `__init__` sets for everybody: members with a docstring beneath them."""
    made = next((each for each in node.body if isinstance(each, ast.FunctionDef) and each.name == "__init__"), None)
    for each, after in pairwise(made.body if made else []):
        target = each.targets[0] if isinstance(each, ast.Assign) else getattr(each, "target", None)
        if isinstance(target, ast.Attribute) and not target.attr.startswith("_") and (said := _said(after)):
            kind = f": {ast.unparse(each.annotation)}" if isinstance(each, ast.AnnAssign) else ""
            yield f"{'#' * level} {shown}.{target.attr}\n"
            yield _code(f"{target.attr}{kind}")
            yield said + "\n"


def _function(node: ast.FunctionDef, name: str, *, skip_first: bool) -> Iterator[str]:
    parameters = _parameters(node.args)[1:] if skip_first else _parameters(node.args)
    gives = f" -> {ast.unparse(node.returns)}" if node.returns else ""
    line = f"{name}({', '.join(parameters)}){gives}"
    if len(line) > _WIDTH:
        line = f"{name}(\n" + "".join(f"    {parameter},\n" for parameter in parameters) + f"){gives}"
        line = line.replace("    *,,\n", "    *,\n")
    yield _code(line)
    yield _doc(node)


def _parameters(given: ast.arguments) -> list[str]:
    """Each as it is written in the source."""
    plain = [*given.posonlyargs, *given.args]
    defaults = [None] * (len(plain) - len(given.defaults)) + list(given.defaults)
    found = [_parameter(each, default) for each, default in zip(plain, defaults, strict=True)]
    if given.vararg:
        found.append("*" + _parameter(given.vararg, None))
    elif given.kwonlyargs:
        found.append("*")
    found += [_parameter(each, default) for each, default in zip(given.kwonlyargs, given.kw_defaults, strict=True)]
    return [*found, "**" + _parameter(given.kwarg, None)] if given.kwarg else found


def _parameter(given: ast.arg, default: ast.expr | None) -> str:
    kind = f": {ast.unparse(given.annotation)}" if given.annotation else ""
    if default is None:
        return f"{given.arg}{kind}"
    return f"{given.arg}{kind}{' = ' if kind else '='}{ast.unparse(default)}"


def _fields(node: ast.ClassDef) -> Iterator[str]:
    """Fields of a dataclass or a typed dictionary, with what the source says beneath them."""
    for each, after in pairwise([*node.body, ast.Pass()]):
        if isinstance(each, ast.AnnAssign) and isinstance(each.target, ast.Name) and not each.target.id.startswith("_"):
            default = f" = {ast.unparse(each.value)}" if each.value and not isinstance(each.value, ast.Call) else ""
            said = " ".join(_said(after).split())
            yield f"- `{each.target.id}: {ast.unparse(each.annotation)}{default}`{': ' if said else ''}{said}"


def _said(node: ast.stmt) -> str:
    """The docstring that stands beneath a member."""
    is_text = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
    return cleandoc(node.value.value) if is_text else ""


def _errors() -> Iterator[str]:
    body = _parsed("errors")
    tree = (ast.get_docstring(body) or "").split("\n\n")
    yield "\n\n".join(f"```text\n{cleandoc(part)}\n```" if "──" in part else part for part in tree) + "\n"
    for node in body.body:
        if isinstance(node, ast.ClassDef):
            yield f"### {node.name}\n"
            yield _doc(node)


def _doc(node: ast.ClassDef | ast.FunctionDef) -> str:
    text = ast.get_docstring(node)
    if text is None:
        raise LookupError(f"{node.name} has no docstring, and is on the page of the reference")
    return text + "\n"


def _code(line: str) -> str:
    return f"```python\n{line}\n```\n"


def undescribed(text: str) -> list[str]:
    """Public names that do not stand on the page: of the package, of `lakebed.cdc` and of the errors."""
    names = [name for name in lakebed.__all__ if _is_described(name)]
    names += [
        name
        for module in ("lakebed.cdc", "lakebed.metrics", "lakebed.errors")
        for name in import_module(module).__all__
    ]
    headings = {line.lstrip("# ") for line in text.splitlines() if line.startswith("##")}
    return [name for name in names if name not in headings and name not in ("did_you_mean", "Listener")]


if __name__ == "__main__":
    sys.stdout.write(page())
