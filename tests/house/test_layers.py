"""The layers of ARCHITECTURE.md hold, and the order inside of the rooms; each rule finds a planted breach."""

import ast
import re
from pathlib import Path

import pytest
from tests.house.planted import planted
from tests.house.rooms import (
    INNER,
    LAYERS,
    MOST_MODULES,
    against_inner_order,
    against_layers,
    crowded_folders,
    import_cycles,
)
from tests.house.source import SOURCE, Module, modules

HEAVY = {"pandas", "polars", "duckdb", "obstore", "pyspark", "hypothesis"}
LATE = "def f():\n    from lakebed.{} import x\n"
FOR_TYPES = "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from lakebed.{} import x\n"
PLAIN = "from lakebed.{} import x\n"
IN_EACH_WAY = pytest.mark.parametrize("text", [PLAIN, FOR_TYPES, LATE], ids=["plain", "for types", "late"])


def test_imports_go_down() -> None:
    """A part has a layer and imports lower layers only, or itself."""
    assert against_layers(SOURCE) == []


@IN_EACH_WAY
def test_an_import_that_goes_up_is_found(text: str, tmp_path: Path) -> None:
    """Also one inside of a function, and one for types only."""
    planted(tmp_path, "read/y.py", "x = 1\n")
    (breach,) = against_layers(planted(tmp_path, "merge/x.py", text.format("read.y")))
    assert breach.startswith("merge/x.py:")
    assert breach.endswith("imports read/y.py")


def test_an_import_within_a_layer_is_found(tmp_path: Path) -> None:
    """Parts of one layer stand beside each other."""
    planted(tmp_path, "bucket/y.py", "x = 1\n")
    assert len(against_layers(planted(tmp_path, "merge/x.py", PLAIN.format("bucket.y")))) == 1


def test_a_part_without_a_layer_is_found(tmp_path: Path) -> None:
    """A new folder or module must be given its place."""
    assert against_layers(planted(tmp_path, "attic/x.py", "")) == ["attic/x.py has no layer"]


def test_the_drawing_shows_the_layers() -> None:
    """ARCHITECTURE.md draws each part on the line of its layer."""
    document = (SOURCE.parents[1] / "ARCHITECTURE.md").read_text()
    lines = {int(match.group(1)): match.group(2) for match in re.finditer(r"^ +(\d+)  (.*)$", document, re.MULTILINE)}
    missing = [
        part
        for part, layer in LAYERS.items()
        if part != "__init__" and not re.search(rf"(^|  ){part}\b", lines.get(layer, ""))
    ]
    assert missing == []
    assert set(lines) == set(LAYERS.values())


def test_rooms_keep_their_order() -> None:
    """Inside of sql, spark, cdc and the sources of changes imports go one way."""
    assert against_inner_order(SOURCE) == []


def test_every_room_with_an_order_is_there() -> None:
    """An order for a folder that has moved would check nothing."""
    assert [room for room in INNER if not (SOURCE / room).is_dir()] == []


@IN_EACH_WAY
@pytest.mark.parametrize(
    ("low", "high"),
    [
        ("sql/query/x.py", "sql/change/y.py"),
        ("spark/write.py", "spark/stream/y.py"),
        ("spark/stream/x.py", "spark/jobs.py"),
        ("cdc/rows/x.py", "cdc/schema/y.py"),
        ("cdc/batch/x.py", "cdc/pipeline.py"),
        ("cdc/sources/kafka/x.py", "cdc/sources/mysql/y.py"),
        ("cdc/sources/mysql/settings.py", "cdc/sources/mysql/log/y.py"),
        ("cdc/sources/mysql/log/x.py", "cdc/sources/mysql/server/y.py"),
        ("cdc/sources/postgres/copy/x.py", "cdc/sources/postgres/planner.py"),
    ],
)
def test_an_import_against_the_order_is_found(low: str, high: str, text: str, tmp_path: Path) -> None:
    """However it is written."""
    planted(tmp_path, high, "x = 1\n")
    name = high.removesuffix(".py").replace("/", ".")
    assert len(against_inner_order(planted(tmp_path, low, text.format(name)))) == 1


def test_what_has_no_place_in_a_room_is_found(tmp_path: Path) -> None:
    """A new module of an ordered room is given its place."""
    assert against_inner_order(planted(tmp_path, "sql/attic.py", "")) == ["sql/attic.py has no place in sql"]


def test_no_modules_import_each_other() -> None:
    """A cycle is one module in several files."""
    assert import_cycles(SOURCE) == []


@IN_EACH_WAY
def test_a_cycle_is_found(text: str, tmp_path: Path) -> None:
    """Over three modules, the last import written in any way."""
    planted(tmp_path, "types/a.py", PLAIN.format("types.b"))
    planted(tmp_path, "types/b.py", PLAIN.format("types.c"))
    (cycle,) = import_cycles(planted(tmp_path, "types/c.py", text.format("types.a")))
    assert cycle == "lakebed.types.a > lakebed.types.b > lakebed.types.c > lakebed.types.a"


def test_no_folder_is_crowded() -> None:
    """What one folder holds can be kept apart by a reader."""
    assert crowded_folders(SOURCE) == []


def test_a_crowded_folder_is_found(tmp_path: Path) -> None:
    """One module more than allowed; `__init__` does not count."""
    for number in range(MOST_MODULES):
        planted(tmp_path, f"types/m{number}.py", "")
    assert crowded_folders(planted(tmp_path, "types/__init__.py", "")) == []
    assert crowded_folders(planted(tmp_path / "again", "x.py", "")) == []
    for number in range(MOST_MODULES + 1):
        planted(tmp_path / "more", f"types/m{number}.py", "")
    assert crowded_folders(tmp_path / "more") == [f"types holds {MOST_MODULES + 1} modules"]


def _heavy_at_the_top(module: Module) -> list[str]:
    part, last = module.parts[0], module.parts[-1]
    is_loaded_late = part == "spark" and last not in {"__init__", "jobs", "session"}
    is_source = part == "cdc" and last == "spark_source"  # classes that only Spark loads
    if is_loaded_late or is_source:
        return []
    at_top = [node for node in module.tree.body if isinstance(node, ast.Import | ast.ImportFrom)]
    names = [
        name
        for node in at_top
        for name in ([alias.name for alias in node.names] if isinstance(node, ast.Import) else [node.module or ""])
    ]
    return [f"{module.place} imports {name}" for name in names if name.split(".")[0] in HEAVY]


def test_heavy_imports_are_not_at_the_top() -> None:
    """Optional packages are imported where they are needed, so that importing lakebed does not load them."""
    assert [each for module in modules(SOURCE) for each in _heavy_at_the_top(module)] == []


def test_a_heavy_import_is_found(tmp_path: Path) -> None:
    """One at the top of a module; not one within a function."""
    planted(tmp_path, "read/x.py", "def f():\n    import polars\n")
    root = planted(tmp_path, "merge/x.py", "from duckdb import connect\n")
    found = [each for module in modules(root) for each in _heavy_at_the_top(module)]
    assert found == ["merge/x.py imports duckdb"]


def test_modules_say_why_they_exist() -> None:
    """Every module opens with a docstring."""
    assert [module.place for module in modules(SOURCE) if not ast.get_docstring(module.tree)] == []
