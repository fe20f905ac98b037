"""What the pipeline asks of a source of changes, whatever stands behind it.

A source is a small object on the driver: it is checked before anything is created, says which tables there are, and
starts the Spark stream of envelope rows. It holds no rows, and its secrets stay out of options, texts and errors.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, ClassVar, Self

import pyarrow as pa

from lakebed.cdc.envelope import SourceName, SourceTable
from lakebed.cdc.routing import TablePatterns
from lakebed.cdc.storage import PLAIN, Storage
from lakebed.errors import InvalidArgument, LakebedError, Unsupported
from lakebed.metadata.source_position import own_words
from lakebed.records import dataclass
from lakebed.spark.worker_python import early_workers

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.datasource import DataSource


@dataclass(frozen=True, slots=True)
class SourceProgress:
    """How far the source is ahead of what is committed. None where it can not say."""

    phase: str | None = None
    """`copy` or `stream`."""
    lag_bytes: int | None = None
    copied_rows: int | None = None
    rows_to_copy: int | None = None


def with_storage(kind: type[DataSource], storage: Storage) -> type[DataSource]:
    """The data source with what opens its files.

    Not among its options, which Spark shows: a class that is made here is sent as it is, with all that is inside.
    """
    return type(kind.__name__, (kind,), {"storage": storage, "__doc__": kind.__doc__})


@dataclass(frozen=True, slots=True)
class SourceProblem:
    """Something that stands against following a source, or one table of it."""

    message: str
    hint: str
    sql: str = ""
    """The statement that repairs it, if one does."""
    table: str = ""


@dataclass(frozen=True, slots=True)
class PlannedTable:
    """A table that would be copied: about how large it is."""

    name: str
    rows: int
    size_bytes: int


@dataclass(frozen=True, slots=True)
class KeyRange:
    """Rows with `lower <= column < upper`, as texts of the source. None is no bound, and no column all rows."""

    column: str | None = None
    lower: str | None = None
    upper: str | None = None


@dataclass(frozen=True)
class SourceRows:
    """Rows as the source has them at one moment, in the types of the lake."""

    rows: pa.Table
    key: tuple[str, ...]
    position: str
    """A position of the source behind all that is in the rows."""


def truth(name: str, value: bool | str) -> bool:
    """A setting that is on or off; from a command line it comes as text."""
    if isinstance(value, bool):
        return value
    if str(value).lower() not in ("true", "false"):
        raise InvalidArgument(f"`{name}` is `{value}`", hint="give true or false")
    return str(value).lower() == "true"


def no_transactions(source: str) -> Unsupported:
    """The error of a source that can not tell what a table of changes has to say."""
    return Unsupported(
        f"a sync of {source} can not keep an audit: it does not tell of each change which transaction made it",
        hint="leave out `audit`; `history` and `deletes` need the time of a change alone",
    )


class ChangeSource(ABC):
    """A database, or a log of messages, whose changes are followed."""

    name: ClassVar[str]
    """How it is called in `lakebed cdc NAME` and in the registry."""

    place: ClassVar[str]
    """Which of its arguments says where it is: what follows its name in `lakebed cdc NAME PLACE`."""

    list_settings: ClassVar[frozenset[str]] = frozenset()
    """Arguments that are lists; on a command line commas stand between their items."""

    takes_patterns: ClassVar[bool] = False
    """Whether it takes `including`, `excluding` and `tables_without_key`, and so does not send what nobody wants."""

    keeps_transactions: ClassVar[bool] = False
    """Whether a batch ends where a transaction of the source does, so that none is in the lake in part."""

    shares_state: ClassVar[bool] = False
    """Whether its tasks read or write what lies beside the checkpoint, so that all machines have to see it."""

    metadata_columns: ClassVar[tuple[str, ...]] = ("database_name", "table_name", "op_ts")
    """What may be added to each row of a table: see `lakebed.cdc.rows.metadata`."""

    @abstractmethod
    def check(self) -> None:
        """Raises an error that names the repair if the source can not be followed. Creates nothing."""

    @classmethod
    def reopened(cls, options: Mapping[str, str]) -> Self:
        """The source again, from its `reader_options`, for who looks after a sync."""
        raise Unsupported(
            f"a sync of {cls.name} can not be looked after from outside",
            hint="stop it with Ctrl-C, and start it again with the same checkpoint",
        )

    def take_password_from(self, variable: str) -> None:
        """Told by who looks after a sync: the environment variable that holds the password here."""
        raise InvalidArgument(f"a sync of {self.name} has no password", hint="leave the variable out")

    def problems(self) -> list[SourceProblem]:
        """All that stands against following it. Creates nothing."""
        try:
            self.check()
        except LakebedError as error:
            return [SourceProblem(error.message, error.hint)]
        return []

    def planned(self) -> list[PlannedTable]:
        """What would be copied."""
        return [PlannedTable(str(table.name), 0, 0) for table in self.tables()]

    def facts(self) -> dict[str, int | str | bool | None]:
        """What the source keeps for this sync, such as how much of its log, for who watches."""
        return {}

    def key_ranges(self, table: str) -> Iterator[KeyRange]:
        """Ranges of a table's key that are compared one by one."""
        raise Unsupported(f"tables of {self.name} can not be compared", hint="count their rows on both sides instead")

    def rows_of(self, table: str, where: KeyRange | Sequence[Sequence[str | None]]) -> SourceRows:
        """Rows of a table: of a range, or with some keys."""
        raise Unsupported(f"tables of {self.name} can not be compared", hint="count their rows on both sides instead")

    def is_past(self, position: str, wanted: str) -> bool:
        """Whether a position is at or behind another."""
        return position == wanted

    def let_go(self) -> list[str]:
        """Removes what was made at the source for the sync, which can not go on then; what was removed."""
        return []

    def probe(self) -> None:  # noqa: B027 - a source that is always there
        """Raises if the source can not be reached just now. Cheap: asked before every new attempt."""

    @abstractmethod
    def tables(self) -> list[SourceTable]:
        """The tables that can be followed now. May be empty where tables show only with their first change."""

    def troubles(self) -> list[tuple[SourceName, LakebedError]]:
        """Tables that can not be followed at the start, and that only a new copy brings back: they are parked."""
        return []

    def left_out(self) -> dict[str, str]:
        """Tables that match and are not followed just now, and why. Asked now and then by who watches."""
        return {}

    def copy_anew(self, sources: Sequence[str]) -> None:
        """Asks for a new copy of tables, which takes the place of what the lake has of them."""
        raise Unsupported(
            f"a sync of {self.name} can not copy a table anew",
            hint="drop the table in the lake and start the sync with a new checkpoint",
        )

    def follow_only(self, patterns: TablePatterns) -> None:  # noqa: B027 - messages come whether wanted or not
        """Told before `check`: what else is not wanted, beyond what the source itself was told."""

    def tell_times(self, *, changes: bool) -> None:
        """Told before `check`: somebody keeps the past, so every change is to come with the time of its commit, every
        copied row with the time at which it was read; with `changes` also with its transaction and its place in it.
        """
        raise Unsupported(
            f"a sync of {self.name} can not keep the past: it does not tell when a transaction was committed",
            hint="leave out `deletes`, `audit` and `history`",
        )

    def prepare(self) -> None:  # noqa: B027 - many sources need nothing
        """Makes what the source needs, such as a replication slot, once all is checked. May be called again."""

    def keep_state_in(self, directory: str, storage: Storage = PLAIN) -> None:  # noqa: B027 - many sources have none
        """Told before `stream`: a directory beside the checkpoint for what has to outlive a restart, and how to open
        it: also in tasks, which see it as well."""

    def data_source(self) -> type[DataSource] | None:
        """The Spark data source that reads envelope rows; None if `stream` starts another one."""
        return None

    def reader_options(self) -> Mapping[str, str]:
        """Options of the Spark stream. No secrets: Spark shows options in plans and logs."""
        return {}

    def stream(self, spark: SparkSession) -> DataFrame:
        """The stream, not started yet."""
        kind = self.data_source()
        if kind is None:
            raise NotImplementedError(f"{type(self).__name__} has neither data_source() nor stream()")
        with early_workers(spark):
            spark.dataSource.register(kind)
        return spark.readStream.format(kind.name()).options(**dict(self.reader_options())).load()

    def envelopes(self, batch: DataFrame) -> DataFrame:
        """The envelope rows of a micro-batch. Most sources deliver them as they are."""
        return batch

    def settled_at(self, offset: str) -> str | None:
        """The source's own position, if all tables are as of it when all that comes before an offset is in the lake.

        None as long as they are not: parts of tables that are copied are as of different moments. Asked after each
        batch, with the text of its Spark offset, in the process that makes batches.
        """
        return own_words(offset)

    def progress(self, position: str | None) -> SourceProgress:
        """How far it is ahead of a position, which is the text of a Spark offset. Shown to people; may say nothing."""
        return SourceProgress()

    @property
    def origin(self) -> str:
        """Where it is, as lineage names places: no user, no password."""
        return self.name

    def close(self) -> None:  # noqa: B027 - many sources hold nothing
        """Lets go of connections. The source may be asked again afterwards."""

    def __repr__(self) -> str:
        return f"<{type(self).__name__}>"  # never what it was made with: that may hold a password


__all__ = [
    "ChangeSource",
    "KeyRange",
    "PlannedTable",
    "SourceProblem",
    "SourceProgress",
    "SourceRows",
    "no_transactions",
    "truth",
    "with_storage",
]
