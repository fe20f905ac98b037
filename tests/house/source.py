"""The source as the rules of the house see it: its modules, their syntax trees, and who imports whom."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path

PACKAGE = "lakebed"
SOURCE = Path(__file__).parents[2] / "src" / PACKAGE


@dataclass(frozen=True)
class Import:
    """One imported module, and the name that is taken from it if there is one."""

    module: str
    name: str | None
    line: int


@dataclass(frozen=True)
class Module:
    """One file of the tree."""

    place: str
    """Where it lies below the root, such as `sql/words/names.py`."""
    text: str

    @cached_property
    def tree(self) -> ast.Module:
        """What it says."""
        return ast.parse(self.text)

    @property
    def name(self) -> str:
        """How it is imported."""
        return ".".join((PACKAGE, *self.parts)).removesuffix(".__init__")

    @property
    def parts(self) -> tuple[str, ...]:
        """The folders it lies in, and its own name."""
        return tuple(self.place.removesuffix(".py").split("/"))

    @cached_property
    def imports(self) -> list[Import]:
        """What it imports, wherever the import stands: inside of functions and for types only, too."""
        return list(_imports(self.tree))


def _imports(tree: ast.AST) -> Iterator[Import]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (Import(alias.name, None, node.lineno) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            # A relative import has no module that can be followed here: the linter refuses it.
            yield from (Import(node.module or "", alias.name, node.lineno) for alias in node.names)


def _read(root: Path) -> tuple[Module, ...]:
    return tuple(Module(path.relative_to(root).as_posix(), path.read_text()) for path in sorted(root.rglob("*.py")))


_read_source = cache(_read)  # planted trees change under our hands


def modules(root: Path, *, testing: bool = False) -> list[Module]:
    """All modules below, except what is shipped for tests."""
    found = _read_source(root) if root == SOURCE else _read(root)
    return [module for module in found if testing or module.parts[0] != "testing"]


def imported(module: Module, known: dict[str, Module]) -> Iterator[tuple[Module, int]]:
    """The modules of the tree that one imports, and the lines where it does."""
    for item in module.imports:
        inner = known.get(f"{item.module}.{item.name}") or known.get(item.module)
        if inner is not None and inner.name != module.name:
            yield inner, item.line


def by_name(root: Path, *, testing: bool = False) -> dict[str, Module]:
    """The modules by the names they are imported by."""
    return {module.name: module for module in modules(root, testing=testing)}
