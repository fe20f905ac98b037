"""Public names are for others: what no other module of the source uses is private, or gone."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from tests.house.source import Module, modules

OPTION_TABLES = "options/"
"""Its constants are entries of the table of options, used or refused by their keys."""

OUTSIDE = {
    "cdc/formats/__init__.py": {"MESSAGE_FORMATS"},  # a registry: others add to it
    "cdc/rows/metadata.py": {"METADATA_COLUMNS"},  # a registry
    "clock.py": {"CountingIds", "FixedClock"},  # for users who want the same input to give the same table twice
    "integrations/ray.py": {"read_table"},  # called by users of Ray
    "integrations/torch.py": {"TableBatches"},  # given to a DataLoader
    "metrics/__init__.py": {"listen", "snapshot", "start", "stop", "unlisten"},  # for users who look at numbers
    "views/insert.py": {"StreamingInsert"},  # held by whoever runs it in a loop
    "spark/data_source.py": {"LakebedDataSource"},  # registered by users: spark.dataSource.register
}
"""Names that are used from outside of the source only."""

INSIDE = {
    "definition/file_rules.py": {
        "APPEND_TARGET_SIZE_BYTES",
        "KEYED_TARGET_SIZE_BYTES",
        "levels_named",
        "waiting_format",
    },
    "formats/avro/encode.py": {"Longs"},
    "formats/avro/schema.py": {"RECORD_NAME", "has_text_key"},
    "formats/parquet/footer.py": {"Edit"},
    "formats/parquet/int96.py": {"contains_raw"},
    "formats/size_estimate.py": {"SAMPLE_FROM_BYTES", "SAMPLE_ROWS"},
    "formats/text/writer.py": {"csv_values"},
    "metadata/avro_container.py": {"read_long"},
    "metadata/manifest.py": {"DEFAULT_TARGET_SIZE_BYTES"},
    "metadata/operation.py": {"WRITER_NAME"},
    "metadata/paths.py": {"DEFAULT_PARTITION_NAME"},
}
"""Names that only their module uses, and that are still to get an underscore."""


def unused_names(root: Path, looked_at: Path | None = None) -> list[str]:
    """Functions, classes and constants without an underscore that no other module uses.

    A name that its own module uses may be public if it stands in the signature of a public one, whose callers have it
    in hand, or if a test below `looked_at` examines that part alone.
    """
    known = modules(root)
    users: dict[str, set[str]] = {}
    for module in known:
        for name in _used(module):
            users.setdefault(name, set()).add(module.place)
    tested = _words(looked_at) if looked_at is not None else frozenset()
    found = []
    for module in known:
        face = _face(module)
        for name, line in _public(module):
            used = users.get(name, set())
            is_part = module.place in used and (name in face or name in tested)
            allowed = OUTSIDE.get(module.place, set()) | INSIDE.get(module.place, set())
            if not used - {module.place} and not is_part and name not in allowed:
                found.append(f"{module.place}:{line} {name}")
    return found


def _public(module: Module) -> Iterator[tuple[str, int]]:
    """Names that stand at the top of a module."""
    if module.place.startswith(OPTION_TABLES) or module.parts[-1] == "__main__":
        return
    for node in module.tree.body:
        names: list[str] = []
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            names = [node.name]
        elif isinstance(node, ast.Assign):
            names = [target.id for target in node.targets if isinstance(target, ast.Name)]
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            names = [node.target.id]
        is_command = module.parts[0] == "cli" and isinstance(node, ast.Assign) and "Command(" in ast.unparse(node.value)
        for name in names:
            if not name.startswith("_") and not is_command:
                yield name, node.lineno


def _used(module: Module) -> Iterator[str]:
    """Names that are read in a module, imported by it, or spelled out in it: registries name classes so."""
    for node in ast.walk(module.tree):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
            yield node.id
        elif isinstance(node, ast.Attribute):
            yield node.attr
        elif isinstance(node, ast.alias):
            yield node.name.rpartition(".")[2]
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and not _is_in_all(node, module):
            parts = node.value.split(".")
            yield from parts[-1:] if all(part.isidentifier() for part in parts) else ()


def _is_in_all(node: ast.Constant, module: Module) -> bool:
    """What a module lists as its own is no use of it."""
    return any(
        isinstance(each, ast.Assign)
        and ast.unparse(each.targets[0]) == "__all__"
        and each.lineno <= node.lineno <= (each.end_lineno or each.lineno)
        for each in module.tree.body
    )


def _face(module: Module) -> set[str]:
    """Names that stand in types and bases of what is public in a module."""
    face: set[str] = set()
    for node in module.tree.body:
        if isinstance(node, ast.Assign | ast.AnnAssign):  # other names of types, and registries
            face |= _names(node)
        elif isinstance(node, ast.FunctionDef | ast.ClassDef) and not node.name.startswith("_"):
            for inner in ast.walk(node):
                types: list[ast.expr | None] = []
                if isinstance(inner, ast.arg):
                    types = [inner.annotation]
                elif isinstance(inner, ast.FunctionDef):
                    types = [inner.returns]
                elif isinstance(inner, ast.AnnAssign):
                    types = [inner.annotation]
                elif isinstance(inner, ast.ClassDef):
                    types = [*inner.bases]
                face |= {name for each in types if each is not None for name in _names(each)}
    return face


def _names(node: ast.AST) -> set[str]:
    return {each.id for each in ast.walk(node) if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Load)}


@cache
def _words(folder: Path) -> frozenset[str]:
    return frozenset(word for path in folder.rglob("*.py") for word in re.findall(r"\w+", path.read_text()))
