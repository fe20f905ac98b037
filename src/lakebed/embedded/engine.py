"""The DuckDB of this process: where bound queries run.

One database in memory for all queries, a connection for each. What does not fit into memory DuckDB writes to a
directory of its own, which goes with the process.
"""

from __future__ import annotations

import atexit
import os
import shutil
import tempfile
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from lakebed.algebra.relations import Relation, narrowed, scans, used_ids
from lakebed.embedded.tables import threads_here
from lakebed.errors import InvalidData, LakebedError, MissingDependency
from lakebed.expressions import kinds
from lakebed.expressions.nodes import ArrowFunction, Call

_BATCH_ROWS = 1 << 17

_QUERIES, _CHANGES = "queries", "changes"
_SETTINGS = {
    _QUERIES: "",
    # DuckDB 2.0.0 has lost rows of outer joins with branches that are known to be empty, as in changes most are.
    _CHANGES: "statistics_propagation",
}
"""The databases, and which parts of DuckDB's optimizer each does without; that holds for a whole database."""

_lock = threading.Lock()


@dataclass
class _Database:
    """A database in memory, the process that made it, and the functions that it has got from us."""

    handle: Any
    owner: int
    defined: set[str] = field(default_factory=set)


_databases: dict[str, _Database] = {}


@dataclass(frozen=True)
class Embedded:
    """A query that is ready to run as often as wanted; each time it reads the same snapshots."""

    relation: Relation
    names: tuple[str, ...]
    zone: str | None = None
    """The time zone in which moments are read and shown; None for that of the machine."""

    @property
    def schema(self) -> pa.Schema:
        """The columns of the result, with Spark's types."""
        given = zip(self.names, self.relation.columns, strict=True)
        return pa.schema([pa.field(name, each.type, each.nullable) for name, each in given])

    def text(self) -> str:
        """What DuckDB is told."""
        return narrowed(self.relation, used_ids(self.relation)).spelled()

    def batches(self, rows: int = _BATCH_ROWS) -> Iterator[pa.RecordBatch]:
        """The result batch by batch; what has not been asked for is not computed yet, as far as the query allows."""
        with connected([self.relation], self.zone) as connection, Work(connection) as work:
            schema = self.schema
            reader = work.do(lambda: connection.sql(self.text()).to_arrow_reader(rows))
            while (batch := work.do(lambda: next(reader, None))) is not None:
                if batch.num_rows:
                    yield shaped(batch, schema)

    def table(self) -> pa.Table:
        """The whole result."""
        return pa.Table.from_batches(self.batches(1 << 20), schema=self.schema)

    def plan(self) -> str:
        """How DuckDB would compute it."""
        with connected([self.relation], self.zone) as connection:
            found = connection.execute(f"EXPLAIN {self.text()}").fetchall()
            return "\n".join(str(row[-1]) for row in found)


@contextmanager
def connected(
    relations: Sequence[Relation],
    zone: str | None,
    database: str = _QUERIES,
    functions: Sequence[ArrowFunction] = (),
) -> Iterator[Any]:
    """A connection that knows the functions of queries; of `queries` the tables, too."""
    connection, owner = _new_connection(database)
    try:
        with _told():
            if zone is not None:
                connection.execute(f"SET TimeZone = '{zone}'")
            if database == _QUERIES:
                for scan in [scan for relation in relations for scan in scans(relation)]:
                    scan.source.define(connection, scan.view)
            for function in (*_functions(relations), *functions):
                _define(owner, function)
            yield connection
    finally:
        connection.close()


class Work:
    """Calls of DuckDB in a thread of their own: it does not look for Ctrl-C while it works, and whoever waits does."""

    def __init__(self, connection: Any) -> None:
        self._connection = connection
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="lakebed-query")

    def __enter__(self) -> Work:
        return self

    def __exit__(self, *_: object) -> None:
        self._thread.shutdown()

    def do(self, call: Callable[[], Any]) -> Any:
        """What the call gives; if the wait is interrupted, the call is stopped first."""
        future = self._thread.submit(call)
        try:
            return future.result()
        except KeyboardInterrupt:
            while not future.done():
                self._connection.interrupt()
                wait([future], 0.1)
            raise


def _functions(relations: Sequence[Relation]) -> list[ArrowFunction]:
    """What the queries need that DuckDB has not, each once."""
    found: dict[str, ArrowFunction] = {}
    for part in (part for relation in relations for part in relation.walk()):
        for expression in part.expressions:
            for each in expression.walk():
                if isinstance(each, Call):
                    found |= {function.name: function for function in each.uses}
    return list(found.values())


def _define(database: _Database, function: ArrowFunction) -> None:
    """Makes a function known; all connections share it, so it may be there already.

    INVARIANT: by the connection that lives as long as the database. DuckDB keeps in a function what belongs to the
    connection that defined it: once that is closed, the next query that calls the function ends the process.
    """
    with _lock:
        if function.name not in database.defined:
            *given, result = function.types
            database.handle.create_function(
                function.name, function.compute, given, result, type="arrow", null_handling="special"
            )
            database.defined.add(function.name)


def shaped(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """The batch with the types of the result."""
    columns = []
    for column, given in zip(batch.columns, schema, strict=True):
        if column.type == given.type:
            columns.append(column)
        elif given.type == kinds.NULL:
            columns.append(pa.nulls(batch.num_rows))
        else:
            columns.append(column.cast(given.type))
    fields = [each.with_nullable(True) for each in schema]
    return pa.RecordBatch.from_arrays(columns, schema=pa.schema(fields)).cast(schema)


def _new_connection(name: str) -> tuple[Any, _Database]:
    """A connection to a database of this process, which is made when it is first needed."""
    with _lock:
        found = _databases.get(name)
        if found is None or found.owner != os.getpid():  # a fork has a copy that is of no use
            found = _databases[name] = _Database(_opened(_SETTINGS[name]), os.getpid())
        return found.handle.cursor(), found


def _opened(disabled: str) -> Any:
    try:
        import duckdb  # optional, and not needed by those who do not ask
    except ImportError as error:
        raise MissingDependency(
            "queries in this process need duckdb, which is not installed",
            hint='install it with: pip install "lakebed[duckdb]"',
        ) from error
    directory = tempfile.mkdtemp(prefix="lakebed-query-")
    atexit.register(_close, directory)
    opened = duckdb.connect(
        ":memory:",
        config={
            "temp_directory": directory,
            "threads": threads_here(),
            # Nothing comes from elsewhere while a query runs.
            "autoinstall_known_extensions": "false",
            "autoload_known_extensions": "false",
        },
    )
    if disabled:
        opened.execute(f"SET disabled_optimizers = '{disabled}'")
    return opened


def _close(directory: str) -> None:
    with _lock:
        for name, found in [*_databases.items()]:
            if found.owner == os.getpid():
                found.handle.close()
                del _databases[name]
    shutil.rmtree(directory, ignore_errors=True)


@contextmanager
def _told() -> Iterator[None]:
    """DuckDB's errors in our own words."""
    import duckdb

    try:
        yield
    except duckdb.InterruptException as error:
        raise KeyboardInterrupt from error
    except duckdb.Error as error:
        cause = error.__cause__ or error.__context__
        if isinstance(cause, LakebedError):
            raise cause from error
        raise _translated(error) from error


def _translated(error: Exception) -> LakebedError:
    text = str(error).split("\n\nLINE")[0].strip()
    name, _, rest = text.partition(": ")
    return InvalidData(rest or name, hint="correct the values, or write try_cast, try_divide and the like for those")
