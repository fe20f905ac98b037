"""The rules of the house: each a function from a source tree to its breaches, to be tried on planted ones too."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

from tests.house.source import Module, modules

EVERY_EXCEPTION = {"cleanup.py", "formats/careful_sink.py"}
"""Where every kind of exception may be caught, Ctrl-C included."""

ALL_ERRORS = {
    "fileio/together.py",
    "lineage/runs.py",
    "metrics/instruments.py",
    "cdc/pipeline.py",
    "cdc/start.py",
    "cli/main.py",
    "cli/sql.py",
    "pipelines/runner.py",
    "spark/late_workers.py",
    "spark/stream/query.py",
    "spark/stream/sink.py",
}
"""Where errors of any class may be caught: doors to people, and to Spark, which has no classes of its own for them."""


def broad_handlers(root: Path) -> list[str]:
    """Handlers that catch more than they can know of, outside of the named files."""
    found = []
    for module in modules(root):
        for name, line in _caught(module.tree):
            allowed = EVERY_EXCEPTION if name == "BaseException" else ALL_ERRORS
            if name in ("BaseException", "Exception") and module.place not in allowed:
                found.append(f"{module.place}:{line} catches {name}")
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


CLOCKS = ("clock.py", "fileio/", "cdc/sources/", "testing/")
"""Who may ask the operating system for the time, for chance and for new names: all else is given them."""

_TIME_AND_CHANCE = {
    "uuid.uuid1",
    "uuid.uuid4",
    "time.time",
    "time.time_ns",
    "datetime.datetime.now",
    "datetime.datetime.utcnow",
    "datetime.datetime.today",
    "datetime.date.today",
}

UNCLOCKED = {
    "metadata/deletion_vector.py": "its name for a new file, unless it is given one",
    "metadata/hash_index.py": "its name for a new file, unless it is given one",
    "metadata/index_manifest.py": "names of new index manifests",
    "metadata/manifest.py": "names of new manifests",
    "metadata/manifest_list.py": "names of new manifest lists",
    "metadata/partition_text.py": "today's offset for years outside of the calendar",
    "metadata/tag.py": "when a tag with a time to live was made, unless it is told",
}
"""Who asks all the same, and what for."""

SLEEPS = {
    "cdc/start.py": "waits for Spark to end a batch, and for a source that is away",
    "cdc/verify.py": "waits for a sync, in another process, to come to a position",
    "cli/cdc.py": "waits for somebody to end a pause",
    "connectors/kafka_state.py": "waits for a broker to hear of a topic that was just made",
    "commit/committer.py": "pauses between attempts, unless it is given another way to wait",
    "spark/late_workers.py": "pauses between attempts, unless it is given another way to wait",
}
"""Who may wait by the clock of the machine."""


def unasked_time(root: Path) -> list[str]:
    """Where time, chance and new names come from the machine instead of from a clock that is given."""
    found = []
    for module in modules(root):
        if module.place.startswith(CLOCKS):
            continue
        for name, line in _used(module):
            is_chance = name.split(".")[0] == "random" or name in _TIME_AND_CHANCE
            if (is_chance and module.place not in UNCLOCKED) or (name == "time.sleep" and module.place not in SLEEPS):
                found.append(f"{module.place}:{line} asks {name}")
    return found


def _used(module: Module) -> Iterator[tuple[str, int]]:
    """What a module uses of others, by the full names, however it was imported."""
    names: dict[str, str] = {}
    for node in ast.walk(module.tree):
        if isinstance(node, ast.Import):
            names |= {alias.asname or alias.name: alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            names |= {alias.asname or alias.name: f"{node.module}.{alias.name}" for alias in node.names}
    for node in ast.walk(module.tree):
        if isinstance(node, ast.Name | ast.Attribute):
            first, dot, rest = ast.unparse(node).partition(".")
            if first in names:
                yield f"{names[first]}{dot}{rest}", node.lineno


def early_dataclasses(root: Path) -> list[str]:
    """Where classes get their methods when they are loaded: `lakebed.records` has the decorator that waits."""
    return [
        f"{module.place}:{each.line} takes dataclass from dataclasses"
        for module in modules(root)
        for each in module.imports
        if (each.module, each.name) == ("dataclasses", "dataclass") and module.place != "records.py"
    ]


MOST_PARAMETERS = 9

MANY_PARAMETERS = {
    "cdc/sources/kafka/source.py KafkaSource.__init__": "settings of a source, which users give by name",
    "write/files.py FileMaker.__init__": "what a task is told of its write: to become one object",
}
"""Functions that take more, and why."""


def long_signatures(root: Path) -> list[str]:
    """Functions with more parameters than a caller keeps apart. What a dataclass is made of does not count."""
    found = []
    for module in modules(root):
        for name, function in _functions(module.tree):
            count = len(_parameters(function))
            if count > MOST_PARAMETERS and f"{module.place} {name}" not in MANY_PARAMETERS:
                found.append(f"{module.place}:{function.lineno} {name} takes {count} parameters")
    return found


def _functions(tree: ast.AST, outer: str = "") -> Iterator[tuple[str, ast.FunctionDef | ast.AsyncFunctionDef]]:
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield f"{outer}{node.name}", node
        inner = f"{outer}{node.name}." if isinstance(node, ast.ClassDef | ast.FunctionDef) else outer
        yield from _functions(node, inner)


def _parameters(function: ast.FunctionDef | ast.AsyncFunctionDef) -> list[str]:
    given = function.args
    names = [each.arg for each in (*given.posonlyargs, *given.args, *given.kwonlyargs)]
    names += [each.arg for each in (given.vararg, given.kwarg) if each is not None]
    return names[1:] if names and names[0] in ("self", "cls") else names


FEWEST_LINES = 40

REGISTERED = ("merge/aggregates/", "sql/connectors/", "sql/procedures/", "table/system/", "views/rules/")
"""Folders whose modules are entries of a registry: one thing each, however short."""

SHORT = {
    "options/views.py": "a group of options",
    "bucket/fixed.py": "stands above the registry of bucket functions, which the others stand below",
    "cleanup.py": "the one place that catches every exception",
    "cli/options.py": "an entry of the registry of commands",
    "expressions/aggregates/aggregate.py": "what the entries of the registry of aggregates are",
    "expressions/functions/function.py": "what the entries of the registry of functions are",
    "formats/pushed_nulls.py": "a fault of one library, apart until that mends it",
    "left_out.py": "a habit of one library, apart from those that work around it",
    "explain/texts.py": "how all answers of the room are drawn",
    "lineage/facets.py": "what datasets and runs say in the same way",
    "maintenance/checks.py": "what two kinds of upkeep remember of one handle",
    "maintenance/manifests.py": "one kind of upkeep, as its neighbours are",
    "metadata/branches.py": "one kind of directory, as its neighbours are one kind of file each",
    "metadata/corruption.py": "words that all kinds of files share",
    "spark/launchers.py": "what starting Java and starting Python share",
    "version.py": "the version, alone so that packaging reads it",
}
"""Other modules that are short, and why each is a module."""


def needless_slices(root: Path) -> list[str]:
    """Modules too short to hide anything: neither a registry, nor one of its entries, nor named with a reason."""
    found = []
    for module in modules(root):
        lines = len(module.text.splitlines())
        folder = module.place.rpartition("/")[0] + "/"
        is_door = module.parts[-1] in ("__init__", "__main__")
        if lines < FEWEST_LINES and not is_door and folder not in REGISTERED and module.place not in SHORT:
            found.append(f"{module.place} has {lines} lines")
    return found
