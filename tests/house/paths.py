"""Paths and names that documents, docstrings and comments give in backticks, and those of them that do not exist.

In documents the words of drawings (blocks of "text") count as well, and in "`FORMATS` in `formats/__init__.py`" the
first must stand in the second.

Looked at are `write/placement`, `commit/attempt.py`, `write/files.FileMaker`, `formats/<name>.py` and `lsm/*`: from the
source's root, the project's, or the folder of the module that says it. In the source, and in documents about it, also
single words with an underscore, such as `merge_runs`: a module, or anything else of this name somewhere in the source.
"""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Iterator, Sequence, Set
from functools import cache
from pathlib import Path

NO_PATHS = {".oracles/", ".oracles/mysql", "a/b/", "bin/java", "changelog/"}
"""What looks like a path of the project and is one of something else, or is made on first use."""

NAMES_OF_OTHERS = {"standard_conforming_strings", "synchronous_commit", "type_length"}
"""Settings of PostgreSQL and members of Parquet footers."""

_QUOTED = re.compile(r"`([^`\n]+)`")
_PATH = re.compile(r"[.a-z_0-9*<>-]+(/[a-z_0-9*<>-]+)*(/|/[a-z_0-9*<>-]+(\.[a-z]+|\.[A-Z]\w*)?)")
_WORD = re.compile(r"[a-z0-9]+(_[a-z0-9]+)+")
_DRAWING = re.compile(r"^```text\n(.*?)^```", re.DOTALL | re.MULTILINE)
_REGISTERED = re.compile(r"`(\w+)` in `([\w/]+\.py)`")
_ANY_NAME = re.compile(r"\w+")


def stale_in_documents(project: Path, documents: Sequence[Path], *, words_too: bool = False) -> list[str]:
    """Paths in these documents that lead nowhere; with `words_too` also words that name nothing in the source."""
    source = project / "src" / "lakebed"
    names = _names(source) if words_too else None
    return [
        f"{document.relative_to(project)}:{line} names `{quoted}`"
        for document in documents
        for line, quoted in [*_quoted(document.read_text(), 1), *_drawn(document.read_text())]
        if _is_stale(quoted, (source, project), names)
    ] + [
        f"{document.relative_to(project)}:{line} looks for `{name}` in `{path}`"
        for document in documents
        for line, name, path in _registered(document.read_text())
        if not any(_says(root / path, name) for root in (source, project))
    ]


def stale_in_source(project: Path) -> list[str]:
    """Paths and words in docstrings and comments of the source that name nothing."""
    source = project / "src" / "lakebed"
    names = _names(source)
    found = []
    for path in sorted(source.rglob("*.py")):
        folders = [source, project, *(parent for parent in path.parents if parent.is_relative_to(source))]
        for start, text in _parts(path.read_text())[0]:
            found += [
                f"{path.relative_to(project)}:{line} names `{quoted}`"
                for line, quoted in _quoted(text, start)
                if _is_stale(quoted, folders, names)
            ]
    return found


def _is_stale(quoted: str, roots: Sequence[Path], names: Set[str] | None) -> bool:
    if _PATH.fullmatch(quoted) and quoted not in NO_PATHS:
        return not _exists(quoted, roots)
    return names is not None and _WORD.fullmatch(quoted) is not None and quoted not in names


def _quoted(text: str, start: int) -> Iterator[tuple[int, str]]:
    for match in _QUOTED.finditer(text):
        yield start + text.count("\n", 0, match.start()), match.group(1)


def _drawn(text: str) -> Iterator[tuple[int, str]]:
    for block in _DRAWING.finditer(text):
        for match in re.finditer(r"[^\s,:;]+", block.group(1)):
            if "/" in match.group():
                yield 1 + text.count("\n", 0, block.start(1) + match.start()), match.group()


def _registered(text: str) -> Iterator[tuple[int, str, str]]:
    for match in _REGISTERED.finditer(text):
        yield 1 + text.count("\n", 0, match.start()), match.group(1), match.group(2)


def _says(module: Path, name: str) -> bool:
    return module.exists() and name in _parts(module.read_text())[1]


def _exists(path: str, roots: Sequence[Path]) -> bool:
    """As a folder, a file or a module; a class behind a module must be defined in it, `<name>` may be anything."""
    pattern = re.sub(r"<\w+>", "*", path.rstrip("/"))
    module, dot, name = pattern.rpartition(".")
    if dot and name[:1].isupper():
        return any(_defines(root / f"{module}.py", name) for root in roots)
    return any(any(root.glob(pattern)) or any(root.glob(f"{pattern}.py")) for root in roots)


def _defines(module: Path, name: str) -> bool:
    return module.exists() and re.search(rf"^(class |def )?{name}\b", module.read_text(), re.MULTILINE) is not None


@cache
def _parts(text: str) -> tuple[tuple[tuple[int, str], ...], frozenset[str]]:
    """Docstrings and comments with the lines they start at; and every name of code, with every word of its texts."""
    prose = [
        (node.lineno, node.value.value)
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
    ]
    docstrings, names = {start for start, _ in prose}, set()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            prose.append((token.start[0], token.string))
        elif token.type == tokenize.NAME:
            names.add(token.string)
        elif token.type != tokenize.STRING or token.start[0] not in docstrings:
            names.update(_ANY_NAME.findall(token.string))
    return tuple(prose), frozenset(names)


def _names(source: Path) -> set[str]:
    """Everything that has a name in the source: modules, folders, and what their code says."""
    found = set(NAMES_OF_OTHERS)
    for path in source.rglob("*.py"):
        found |= {*path.relative_to(source).with_suffix("").parts, *_parts(path.read_text())[1]}
    return found
