"""One history from one number: configuration, operations, oracles, and a short form of what it finds."""

from __future__ import annotations

import json
import time
import traceback
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache
from random import Random
from typing import Any

from tests.properties.combinations import judged
from tests.properties.combinations.configuration import Configuration, random_configuration
from tests.properties.combinations.findings import Finding
from tests.properties.combinations.generate import random_operation
from tests.properties.combinations.known import avoided
from tests.properties.combinations.machine import Machine, Operation
from tests.properties.combinations.script import code_of
from tests.properties.combinations.shrink import replay, shrunk

from lakebed.errors import LakebedError


@cache
def session() -> Any:
    """The Spark session of this process."""
    from tests.sessions import open_session

    return open_session()


@dataclass
class Outcome:
    """What became of a history."""

    seed: int
    configuration: Configuration
    operations: list[Operation] = field(default_factory=list)
    refused: int = 0
    rejected_configurations: int = 0
    finding: Finding | None = None
    seconds: float = 0.0
    verdicts: judged.Verdicts = field(default_factory=judged.Verdicts)

    def text(self) -> str:
        """For people, and to be run again."""
        if self.finding is None:
            return f"seed {self.seed}: {len(self.operations)} operations, {self.refused} refused, nothing found"
        history = {
            "configuration": self.configuration.to_members(),
            "operations": [o.to_members() for o in self.operations],
        }
        return (
            f"--- seed {self.seed}: {self.finding}\n{code_of(self.configuration, self.operations)}\n"
            f"--- replay: {json.dumps(history)}"
        )


@dataclass
class Totals:
    """Of many histories."""

    configurations: int = 0
    operations: int = 0
    refused: int = 0
    findings: list[str] = field(default_factory=list)
    verdicts: judged.Verdicts = field(default_factory=judged.Verdicts)

    def add(self, outcome: Outcome) -> None:
        self.configurations += 1
        self.operations += len(outcome.operations)
        self.refused += outcome.refused
        self.verdicts.add(outcome.verdicts)
        if outcome.finding is not None:
            self.findings.append(outcome.finding.oracle)

    def __str__(self) -> str:
        text = f"{self.configurations} configurations, {self.operations} operations ({self.refused} refused)"
        return f"{text}, {len(self.findings)} findings"


def run_history(
    seed: int,
    length: int,
    with_spark: bool = False,
    shrinks: bool = True,
    everything: bool = False,
    spark: object = None,
    judges: Sequence[str] = (),
) -> Outcome:
    """A random table, and so many operations that apply; in the end the judges (by name) look at it."""
    began = time.monotonic()
    random = Random(seed)
    spark = session() if with_spark and spark is None else spark
    rejected = 0
    while True:
        configuration = random_configuration(random)
        try:
            machine = Machine(configuration, spark)
            break
        except LakebedError:
            rejected += 1
            assert rejected < 200, "hardly any configuration can be created"
    outcome = Outcome(seed, configuration, rejected_configurations=rejected)
    try:
        tries = 0
        while len(machine.done) < length and tries < 10 * length:
            tries += 1
            operation = random_operation(random, machine)
            if not everything and avoided(machine, operation):
                continue
            machine.run(operation)
        machine.finish()
        judged.judge(machine, judges, outcome.verdicts)
    except Finding as finding:
        outcome.finding = finding
    except Exception:  # noqa: BLE001 - a history that the machine can not carry out is told like any other
        outcome.finding = Finding("the machine itself fails", traceback.format_exc())
    finally:
        outcome.operations, outcome.refused = list(machine.done), machine.refused
        machine.close()
    if outcome.finding is not None and shrinks:
        _shrink(outcome, spark, judges)
    outcome.seconds = time.monotonic() - began
    return outcome


def _shrink(outcome: Outcome, spark: object, judges: Sequence[str]) -> None:
    assert outcome.finding is not None
    configuration, operations = shrunk(outcome.configuration, outcome.operations, outcome.finding, spark, judges=judges)
    outcome.finding = replay(configuration, operations, spark, judges) or outcome.finding
    outcome.configuration, outcome.operations = configuration, operations


__all__ = ["Outcome", "Totals", "run_history", "session"]
