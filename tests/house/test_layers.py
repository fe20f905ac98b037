"""The layers of ARCHITECTURE.md hold: read off the import statements of the source."""

import ast
import re
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[2] / "src" / "lakebed"
LAYERS = {
    "errors": 0,
    "version": 0,
    "units": 0,
    "checksums": 0,
    "clock": 0,
    "cleanup": 0,
    "options": 0,
    "types": 1,
    "fileio": 1,
    "schema": 2,
    "formats": 2,
    "metadata": 3,
    "merge": 4,
    "bucket": 4,
    "datafiles": 4,
    "lsm": 5,
    "commit": 5,
    "definition": 6,
    "read": 7,
    "changes": 8,
    "write": 9,
    "rewrite": 10,
    "maintenance": 11,
    "table": 12,
    "catalog": 13,
    "spark": 14,
    "sql": 15,
    "lake": 16,
    "cdc": 17,
    "cli": 18,
}
ABOVE_ALL = {"testing", "__init__", "__main__"}
HEAVY = {"pandas", "polars", "duckdb", "obstore", "pyspark", "hypothesis"}


def _files() -> list[Path]:
    return sorted(SOURCE.rglob("*.py"))


def _part(path: Path) -> str:
    return path.relative_to(SOURCE).parts[0].removesuffix(".py")


def _imports(path: Path) -> list[tuple[str, bool]]:
    """Imported modules, and whether the import stands at the top of the file and runs."""
    tree = ast.parse(path.read_text())
    found: list[tuple[str, bool]] = []
    for node in ast.walk(tree):
        names: list[str] = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            names = [node.module or ""]
            if node.module == "lakebed":
                names = [f"lakebed.{alias.name}" for alias in node.names]
        found += [(name, node in tree.body) for name in names]
    return found


def test_every_part_has_a_layer() -> None:
    """A new folder or module must be given its place."""
    assert {_part(path) for path in _files()} <= set(LAYERS) | ABOVE_ALL


def test_the_drawing_shows_the_layers() -> None:
    """ARCHITECTURE.md draws each part on the line of its layer."""
    document = (SOURCE.parents[1] / "ARCHITECTURE.md").read_text()
    lines = {int(match.group(1)): match.group(2) for match in re.finditer(r"^ +(\d+)  (.*)$", document, re.MULTILINE)}
    missing = [part for part, layer in LAYERS.items() if not re.search(rf"(^|  ){part}\b", lines.get(layer, ""))]
    assert missing == []
    assert set(lines) == set(LAYERS.values())


@pytest.mark.parametrize("path", _files(), ids=lambda path: str(path.relative_to(SOURCE)))
def test_imports_go_down(path: Path) -> None:
    """A part imports lower layers only, or itself; L0 parts may import one another."""
    part = _part(path)
    if part in ABOVE_ALL:
        return
    for module, _ in _imports(path):
        if not module.startswith("lakebed."):
            continue
        target = module.split(".")[1]
        if target != part:
            assert LAYERS[target] < LAYERS[part] or LAYERS[target] == LAYERS[part] == 0, f"{path}: {module}"


@pytest.mark.parametrize("path", _files(), ids=lambda path: str(path.relative_to(SOURCE)))
def test_heavy_imports_are_not_at_the_top(path: Path) -> None:
    """Optional packages are imported where they are needed, so that importing lakebed does not load them."""
    is_loaded_late = _part(path) == "spark" and path.name not in {"__init__.py", "jobs.py", "session.py"}
    is_source = _part(path) == "cdc" and path.name == "spark_source.py"  # classes that only Spark loads
    if _part(path) == "testing" or is_loaded_late or is_source:
        return
    assert not [module for module, at_top in _imports(path) if at_top and module.split(".")[0] in HEAVY]


@pytest.mark.parametrize("path", _files(), ids=lambda path: str(path.relative_to(SOURCE)))
def test_modules_say_why_they_exist(path: Path) -> None:
    """Every module opens with a docstring."""
    assert ast.get_docstring(ast.parse(path.read_text()))
