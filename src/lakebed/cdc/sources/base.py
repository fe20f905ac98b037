"""What the pipeline asks of a source of changes, whatever stands behind it.

A source is a small object on the driver: it is checked before anything is created, says which tables there are, and
starts the Spark stream of envelope rows. It holds no rows, and its secrets stay out of options, texts and errors.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import TYPE_CHECKING, ClassVar

from lakebed.cdc.envelope import SourceTable
from lakebed.cdc.routing import TablePatterns
from lakebed.cdc.storage import PLAIN, Storage
from lakebed.errors import InvalidArgument
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


def truth(name: str, value: bool | str) -> bool:
    """A setting that is on or off; from a command line it comes as text."""
    if isinstance(value, bool):
        return value
    if str(value).lower() not in ("true", "false"):
        raise InvalidArgument(f"`{name}` is `{value}`", hint="give true or false")
    return str(value).lower() == "true"


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

    @abstractmethod
    def tables(self) -> list[SourceTable]:
        """The tables that can be followed now. May be empty where tables show only with their first change."""

    def follow_only(self, patterns: TablePatterns) -> None:  # noqa: B027 - messages come whether wanted or not
        """Told before `check`: what else is not wanted, beyond what the source itself was told."""

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

    def close(self) -> None:  # noqa: B027 - many sources hold nothing
        """Lets go of connections. The source may be asked again afterwards."""

    def __repr__(self) -> str:
        return f"<{type(self).__name__}>"  # never what it was made with: that may hold a password


__all__ = ["ChangeSource", "SourceProgress", "truth", "with_storage"]
