"""Makes a failing history short: fewer operations, fewer rows, fewer options, as long as the same question fails."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa
from tests.properties.combinations import judged
from tests.properties.combinations.configuration import Configuration
from tests.properties.combinations.findings import Finding
from tests.properties.combinations.machine import Machine, Operation

from lakebed.errors import LakebedError

History = tuple[Configuration, list[Operation]]


def replay(
    configuration: Configuration, operations: Sequence[Operation], spark: object = None, judges: Sequence[str] = ()
) -> Finding | None:
    """Runs a history; what it finds, or what the judges find."""
    try:
        machine = Machine(configuration, spark)
    except LakebedError:
        return None  # a table that can not be created
    try:
        for operation in operations:
            machine.run(operation)
        machine.finish()
        judged.judge(machine, judges, judged.Verdicts())
    except Finding as finding:
        return finding
    finally:
        machine.close()
    return None


def shrunk(
    configuration: Configuration,
    operations: Sequence[Operation],
    finding: Finding,
    spark: object = None,
    seconds: float = 30.0,
    judges: Sequence[str] = (),
) -> History:
    """A short history with the same finding."""
    deadline = time.monotonic() + seconds

    def fails(config: Configuration, history: Sequence[Operation]) -> bool:
        if time.monotonic() > deadline:
            return False
        try:
            found = replay(config, history, spark, judges)
        except (pa.ArrowException, KeyError, TypeError):
            return False  # rows of a history are made for the columns that its other operations leave
        return found is not None and found.oracle == finding.oracle

    history = _fewer(list(operations), lambda shorter: fails(configuration, shorter))
    for key in [each for each in configuration.options if each != "primary-key.nullable"]:  # as a column has its type
        simpler = configuration.without_option(key)
        if fails(simpler, history):
            configuration = simpler
    for i, operation in enumerate(history):
        for field in ("rows",):
            rows = operation.arguments.get(field)
            if rows:
                history[i] = operation = _fewer_rows(
                    operation, lambda other, i=i: fails(configuration, [*history[:i], other, *history[i + 1 :]])
                )
    history = _fewer(history, lambda shorter: fails(configuration, shorter))
    return configuration, history


def _fewer(history: list[Operation], fails: Callable[[list[Operation]], bool]) -> list[Operation]:
    size = max(1, len(history) // 2)
    while size:
        start = 0
        while start < len(history):
            shorter = history[:start] + history[start + size :]
            if shorter != history and fails(shorter):
                history = shorter
            else:
                start += size
        size //= 2
    return history


def _fewer_rows(operation: Operation, fails: Callable[[Operation], bool]) -> Operation:
    i = 0
    while i < len(operation.arguments["rows"]):
        arguments: dict[str, Any] = dict(operation.arguments)
        arguments["rows"] = arguments["rows"][:i] + arguments["rows"][i + 1 :]
        if arguments.get("kinds"):
            arguments["kinds"] = arguments["kinds"][:i] + arguments["kinds"][i + 1 :]
        shorter = replace(operation, arguments=arguments)
        if arguments["rows"] and fails(shorter):
            operation = shorter
        else:
            i += 1
    return operation


__all__ = ["replay", "shrunk"]
