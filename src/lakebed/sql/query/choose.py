"""Which engine answers a query: the embedded one if it is proven to give what Spark gives, else Spark, else nobody."""

from __future__ import annotations

from dataclasses import field
from enum import Enum
from importlib.util import find_spec

from lakebed.embedded.engine import Embedded
from lakebed.errors import InvalidArgument, MissingDependency, Unsupported, did_you_mean
from lakebed.expressions.nodes import NotProven
from lakebed.records import dataclass
from lakebed.sql.query.embedded import prepared
from lakebed.sql.query.pins import Pins
from lakebed.sql.query.plan import refuse_temporal
from lakebed.sql.session import SqlLake
from lakebed.sql.settings import session_changes_meaning
from lakebed.sql.statements import Sql


class Engine(Enum):
    """Who answers."""

    AUTO = "auto"
    DUCKDB = "duckdb"
    SPARK = "spark"


@dataclass(frozen=True)
class Choice:
    """The engine of a query, and why. `embedded` is the query, ready to run, if it is the embedded one."""

    reason: str
    embedded: Embedded | None = None
    pins: Pins = field(default_factory=Pins)

    @property
    def engine(self) -> Engine:
        """Who answers."""
        return Engine.SPARK if self.embedded is None else Engine.DUCKDB


def choose(lake: SqlLake, sql: Sql, engine: str = "auto") -> Choice:
    """The engine that is asked for, or the one that fits; raises if the query can not be answered there."""
    wanted = _engine_named(engine)
    if wanted is Engine.SPARK:
        return Choice("it is asked for")
    pins = Pins()
    instead = "write that part otherwise"
    reason = session_changes_meaning(lake)
    if reason is None and find_spec("duckdb") is None:
        if wanted is Engine.DUCKDB:
            raise MissingDependency(
                "queries in this process need duckdb, which is not installed",
                hint='install it with: pip install "lakebed[duckdb]"',
            )
        reason = "duckdb is not installed"
    if reason is None:
        try:
            found = prepared(lake, sql, pins)
        except NotProven as unproven:
            reason, instead = f"{unproven.what}: {unproven.why}", unproven.instead
            refuse_temporal(sql, reason)
        else:
            return Choice("all of it is known to mean the same there", found, pins)
    if wanted is Engine.DUCKDB:
        raise Unsupported(
            f"the query can not be answered in this process; {reason}",
            hint=f"leave the engine to auto, or say spark, or {instead}",
        )
    if not lake.is_spark_started and find_spec("pyspark") is None:
        raise Unsupported(
            f"the query needs Spark, which is not installed; {reason}",
            hint=f'install it with: pip install "lakebed[spark]", or {instead}',
        )
    return Choice(reason)


def _engine_named(name: str) -> Engine:
    """The engine of that name."""
    try:
        return Engine(name)
    except ValueError:
        known = [each.value for each in Engine]
        raise InvalidArgument(f"there is no engine {name!r}", hint=did_you_mean(name, known)) from None
