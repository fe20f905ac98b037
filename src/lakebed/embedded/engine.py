"""The DuckDB of this process: where bound queries run.

One database in memory for all queries, a connection for each. What does not fit into memory DuckDB writes to a
directory of its own, which goes with the process.
"""

from __future__ import annotations

import atexit
import os
import re
import shutil
import tempfile
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import field
from typing import Any

import pyarrow as pa

from lakebed.algebra.relations import Relation, narrowed, scans, used_ids
from lakebed.embedded import shared
from lakebed.embedded.tables import threads_here
from lakebed.errors import InvalidArgument, InvalidData, InvalidOption, LakebedError, MissingDependency, told_in
from lakebed.expressions import kinds
from lakebed.expressions.nodes import ArrowFunction, Call
from lakebed.records import dataclass
from lakebed.units import format_size, parse_size

_BATCH_ROWS = 1 << 17
MEMORY = "LAKEBED_QUERY_MEMORY"
"""The environment variable that bounds the memory of queries, such as `2 gb`."""
_LEAST_BYTES = 64 << 20

_OF_DUCKDB = re.compile(r"(Conversion|Out of Range|Invalid Input) Error: ")
_INNER_COLUMN = re.compile(r" when casting from source column \w+$")
"""What is said of a column whose name is ours."""

_lock = threading.Lock()


@dataclass
class _Database:
    """A database in memory, the process that made it, and the functions that it has got from us."""

    handle: Any
    owner: int
    defined: set[str] = field(default_factory=set)


_database: _Database | None = None


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
        return shared.spelled(narrowed(self.relation, used_ids(self.relation)))

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
    functions: Sequence[ArrowFunction] = (),
    *,
    defines_tables: bool = True,
) -> Iterator[Any]:
    """A connection that knows the functions of queries, some more if asked, and their tables."""
    connection, owner = _new_connection()
    try:
        with _told():
            if zone is not None:
                connection.execute(f"SET TimeZone = '{zone}'")
            if defines_tables:
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


def _new_connection() -> tuple[Any, _Database]:
    """A connection to the database of this process, which is made when it is first needed."""
    global _database  # noqa: PLW0603
    with _lock:
        if _database is None or _database.owner != os.getpid():  # a fork has a copy that is of no use
            _database = _Database(_opened(), os.getpid())
        return _database.handle.cursor(), _database


def _opened() -> Any:
    try:
        import duckdb  # optional, and not needed by those who do not ask
    except ImportError as error:
        raise MissingDependency(
            "queries in this process need duckdb, which is not installed",
            hint='install it with: pip install "lakebed[duckdb]"',
        ) from error
    bound = _memory_bound()
    directory = tempfile.mkdtemp(prefix="lakebed-query-")
    atexit.register(_close, directory)
    database = duckdb.connect(
        ":memory:",
        config={
            "temp_directory": directory,
            "threads": threads_here(),
            **({} if bound is None else {"memory_limit": f"{bound}B"}),
            # Nothing comes from elsewhere while a query runs.
            "autoinstall_known_extensions": "false",
            "autoload_known_extensions": "false",
            # These two have given wrong rows where parts of a query are empty, as most changes are.
            "disabled_optimizers": "statistics_propagation,common_subplan",
        },
    )
    # A query looks at the footer of a file for its view, its columns and its rows, and the next query does so again.
    database.execute("SET GLOBAL parquet_metadata_cache = true")
    return database


def version_here() -> str:
    """The version of DuckDB in this process."""
    import duckdb

    return str(duckdb.__version__)


def zone_here() -> str:
    """The time zone of queries of this process that name none."""
    with connected([], None) as connection:
        return str(connection.execute("SELECT current_setting('TimeZone')").fetchone()[0])


def share_machine(execute: Callable[[str], None]) -> None:
    """Keeps the queries of this process within one core's share of the machine: other processes have the others."""
    execute("SET threads = 1")
    if not os.environ.get(MEMORY):
        total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
        execute(f"SET memory_limit = '{max(_LEAST_BYTES, total * 6 // (10 * threads_here()))}B'")


def _memory_bound() -> int | None:
    """Bytes that queries of this process may hold in memory; None for what DuckDB takes by itself."""
    text = os.environ.get(MEMORY)
    if not text:
        return None
    try:
        found = parse_size(text)
    except InvalidOption as error:
        raise InvalidArgument(f"environment variable {MEMORY} is `{text}`", hint=str(error.hint)) from error
    if found < _LEAST_BYTES:
        raise InvalidArgument(
            f"environment variable {MEMORY} is `{text}`", hint=f"queries need at least {format_size(_LEAST_BYTES)}"
        )
    return found


def _close(directory: str) -> None:
    global _database  # noqa: PLW0603
    with _lock:
        if _database is not None and _database.owner == os.getpid():
            _database.handle.close()
            _database = None
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
    except OSError as error:  # what fails while Arrow fetches rows arrives as this
        if _OF_DUCKDB.match(str(error)) is None:
            raise
        raise _translated(error) from error


def _translated(error: Exception) -> LakebedError:
    told = told_in(str(error))
    if told is not None:
        return told
    text = _INNER_COLUMN.sub("", str(error).split("\n\nLINE")[0].strip())
    name, _, rest = text.partition(": ")
    return InvalidData(rest or name, hint="correct the values, or write try_cast, try_divide and the like for those")
