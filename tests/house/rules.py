"""The rules of the house: each a function from a source tree to its breaches, to be tried on planted ones too."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

EVERY_EXCEPTION = {"cleanup.py", "formats/careful_sink.py"}
"""Where every kind of exception may be caught, Ctrl-C included."""

ALL_ERRORS = {
    "cdc/pipeline.py",
    "cdc/start.py",
    "cli/main.py",
    "cli/sql.py",
    "spark/late_workers.py",
    "spark/stream/query.py",
}
"""Where errors of any class may be caught: doors to people, and to Spark, which has no classes of its own for them."""


def modules(root: Path) -> list[Path]:
    """All modules below, except what is shipped for tests."""
    return sorted(path for path in root.rglob("*.py") if path.relative_to(root).parts[0] != "testing")


def broad_handlers(root: Path) -> list[str]:
    """Handlers that catch more than they can know of, outside of the named files."""
    found = []
    for path in modules(root):
        place = str(path.relative_to(root))
        for name, line in _caught(ast.parse(path.read_text())):
            allowed = EVERY_EXCEPTION if name == "BaseException" else ALL_ERRORS
            if name in ("BaseException", "Exception") and place not in allowed:
                found.append(f"{place}:{line} catches {name}")
    return found


def _caught(tree: ast.AST) -> Iterator[tuple[str, int]]:
    """Names of exception classes that are caught, and where. A handler without a class catches everything."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ExceptHandler):
            if node.type is None:
                yield "BaseException", node.lineno
                continue
            classes = node.type.elts if isinstance(node.type, ast.Tuple) else [node.type]
            yield from ((each.id, node.lineno) for each in classes if isinstance(each, ast.Name))
        elif isinstance(node, ast.Call) and ast.unparse(node.func) in ("suppress", "contextlib.suppress"):
            yield from ((each.id, node.lineno) for each in node.args if isinstance(each, ast.Name))
