"""Which part of the source may import which: the layers, the order inside of the rooms, no cycle, no crowd.

Every import counts, also one for types only and one inside of a function: a reader follows them all the same.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path

from tests.house.source import Module, by_name, imported, modules

LAYERS = {
    "errors": 0,
    "version": 0,
    "units": 0,
    "checksums": 0,
    "clock": 0,
    "calls": 0,
    "cells": 0,
    "cleanup": 0,
    "left_out": 0,
    "metrics": 0,
    "notebook": 0,
    "records": 0,
    "registry": 0,
    "options": 0,
    "types": 1,
    "fileio": 1,
    "schema": 2,
    "formats": 2,
    "expressions": 2,
    "algebra": 3,
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
    "explain": 12,
    "table": 13,
    "catalog": 14,
    "integrations": 14,
    "lineage": 14,
    "spark": 15,
    "embedded": 15,
    "sql": 16,
    "views": 17,
    "lake": 18,
    "cdc": 19,
    "connectors": 20,
    "pipelines": 21,
    "__init__": 22,  # what `import lakebed` gives
    "ui": 23,
    "cli": 24,
}
ABOVE_ALL = {"testing", "__main__"}

REST = "*"
"""Modules of a room that are not named."""

INNER: dict[str, Sequence[Iterable[str]]] = {
    "sql": [
        ("words",),
        ("statements", "result"),
        ("connectors",),
        ("session",),
        ("settings", "partition_specs"),
        ("parse",),
        ("bind",),
        ("query",),
        ("change",),
        ("define",),
        ("procedures",),
        ("traced",),
        ("run", "__init__"),
    ],
    "spark": [{REST}, ("stream",), {"jobs", "data_source"}, ("attach",)],
    "cdc": [
        ("storage",),
        ("envelope",),
        ("routing", "payloads", "progress", "parked", "checkpoint"),
        ("rows",),
        ("formats",),
        {"schema", "rules"},
        ("batch",),
        ("pipeline",),
        ("sources",),
        {"arguments", "patience", "start", "operate", "verify", "__init__"},
        ("health",),
    ],
    "cdc/sources": [("base", "requests"), ("files", "kafka", "mysql", "postgres"), ("__init__",)],
    "cdc/sources/mysql": [{"settings", "columns", "tagged_ids"}, ("values",), ("log",), ("server",), ("copy",), {REST}],
    # Messages of PostgreSQL's log name types by numbers that only its catalog explains: here the log asks the server.
    "cdc/sources/postgres": [
        {"settings", "names", "state", "connect"},
        ("values",),
        ("server",),
        ("log",),
        ("copy",),
        {REST},
    ],
}
"""What the modules and folders of a room may import of it: what stands further left, and of their own kind what stands
in the same set (`{}`). Those of one tuple know nothing of each other."""

MOST_MODULES = 25
"""How many modules a folder holds, `__init__` aside: more than a reader keeps apart."""


def against_layers(root: Path) -> list[str]:
    """Imports that go up or aside, and parts that no layer was given. L0 parts may import one another."""
    found = []
    known = by_name(root, testing=True)
    for module in known.values():
        part = _part(module)
        if part in ABOVE_ALL:
            continue
        if part not in LAYERS:
            found.append(f"{module.place} has no layer")
            continue
        for target, line in imported(module, known):
            other = _part(target)
            if other != part and not _is_below(other, part):
                found.append(f"{module.place}:{line} imports {target.place}")
    return found


def _part(module: Module) -> str:
    return module.parts[0]


def _is_below(part: str, other: str) -> bool:
    if part not in LAYERS:
        return False
    return LAYERS[part] < LAYERS[other] or LAYERS[part] == LAYERS[other] == 0


def against_inner_order(root: Path) -> list[str]:
    """Imports that go against the order of a room, and what has no place in it."""
    found = []
    known = by_name(root)
    for room, order in INNER.items():
        for module in known.values():
            name = _inside(room, module)
            if name is None:
                continue
            own = _place(order, name)
            if own is None:
                found.append(f"{module.place} has no place in {room}")
                continue
            for target, line in imported(module, known):
                other = _inside(room, target)
                if other is None or other == name:
                    continue
                place = _place(order, other)
                if place is not None and not (place < own or (place == own and isinstance(order[own], set))):
                    found.append(f"{module.place}:{line} imports {target.place}")
    return found


def _inside(room: str, module: Module) -> str | None:
    """The module or folder of the room that a module belongs to."""
    folders = tuple(room.split("/"))
    is_inside = module.parts[: len(folders)] == folders and len(module.parts) > len(folders)
    return module.parts[len(folders)] if is_inside else None


def _place(order: Sequence[Iterable[str]], name: str) -> int | None:
    for wanted in (name, REST):
        for place, names in enumerate(order):
            if wanted in names:
                return place
    return None


def import_cycles(root: Path) -> list[str]:
    """Modules that import each other, however far around. That a package is loaded first is no import."""
    known = by_name(root, testing=True)
    graph = {name: sorted({target.name for target, _ in imported(module, known)}) for name, module in known.items()}
    return [" > ".join(cycle) for cycle in _cycles(graph)]


def _cycles(graph: dict[str, list[str]]) -> list[list[str]]:
    """One cycle for every way back that a walk in depth meets."""
    found: list[list[str]] = []
    done: set[str] = set()
    for start in graph:
        path: list[str] = []
        ways = [iter([start])]
        while ways:
            name = next(ways[-1], None)
            if name is None:
                ways.pop()
                if path:
                    done.add(path.pop())
            elif name in path:
                found.append([*path[path.index(name) :], name])
            elif name not in done:
                path.append(name)
                ways.append(iter(graph[name]))
    return found


def crowded_folders(root: Path) -> list[str]:
    """Folders with more modules than one keeps apart."""
    sizes = Counter("/".join(module.parts[:-1]) for module in modules(root) if module.parts[-1] != "__init__")
    return [f"{folder} holds {size} modules" for folder, size in sizes.items() if size > MOST_MODULES]
