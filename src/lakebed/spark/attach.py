"""Tables of a lake under names of Spark's own catalog: `spark.sql`, `spark.table` and `spark.catalog` know them then.

Spark lets Python add data sources, but no catalogs; and of a table `USING` a Python data source it forgets all options.
So each table gets a data source of its own, in which the table is: nothing has to be told, and no key of a store is in
any option. Its rows are read whenever a query runs, so they are always the newest.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from lakebed.catalog.base import Catalog
from lakebed.catalog.names import TableName
from lakebed.cleanup import on_failure
from lakebed.errors import AlreadyExists, InvalidArgument, LakebedError, Unsupported
from lakebed.spark.data_source import bound_source
from lakebed.spark.errors import spark_errors
from lakebed.spark.worker_python import early_workers

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_CATALOG = "spark.sql.catalogImplementation"
_WAREHOUSE = "spark.sql.warehouse.dir"


class Attached:
    """Tables of a lake that a Spark session knows by name: `shop.orders` as `lakebed_shop.orders`."""

    def __init__(self, spark: SparkSession, catalog: Catalog, prefix: str, databases: Sequence[str] | None) -> None:
        _check(spark, catalog, prefix)
        self._spark = spark
        self._catalog = catalog
        self._prefix = prefix
        self._databases = databases
        self._known: dict[str, int] = {}
        self.left_out: dict[str, str] = {}
        """Tables that Spark can not have, and why."""
        with on_failure(self.detach):
            self.refresh()

    @property
    def names(self) -> list[str]:
        """What the tables are called in Spark."""
        return sorted(self._known)

    def refresh(self) -> None:
        """Brings the names in line with the lake: new tables, those that are gone, and columns that have changed.

        New rows need none of it.
        """
        wanted: dict[str, tuple[TableName, int]] = {}
        self.left_out.clear()
        for database in self._databases if self._databases is not None else self._catalog.databases():
            for table in self._catalog.tables(database):
                name = TableName(database, table)
                try:
                    wanted[f"{self._prefix}{database}.{table}"] = (name, self._catalog.table(name).schema.id)
                except LakebedError as error:
                    self.left_out[f"{database}.{table}"] = error.message
        for gone in self._known.keys() - wanted.keys():
            self._drop(gone)
        for shown, (name, schema_id) in wanted.items():
            if self._known.get(shown) != schema_id:
                self._create(shown, name)
                self._known[shown] = schema_id

    def detach(self) -> None:
        """Takes the names away. The tables stay as they are."""
        for name in self.names:
            self._drop(name)

    def _create(self, shown: str, name: TableName) -> None:
        place = f"table {name} of the lake at {self._catalog.root}"
        with spark_errors():
            if shown in self._known:
                self._spark.sql(f"DROP TABLE IF EXISTS {_quoted(shown)}")
            elif self._spark.catalog.tableExists(shown):
                raise AlreadyExists(
                    f"Spark's catalog has a table `{shown}` already",
                    hint="detach() it if it is of an earlier attach, or use another prefix: lake.attach(prefix=...)",
                )
            source = bound_source(self._catalog, name, f"lakebed_{zlib.crc32(place.encode()):08x}")
            with early_workers(self._spark):
                self._spark.dataSource.register(source)
            self._spark.sql(f"CREATE DATABASE IF NOT EXISTS {_quoted(shown.partition('.')[0])}")
            self._spark.sql(f"CREATE TABLE {_quoted(shown)} USING {source.name()}")

    def _drop(self, name: str) -> None:
        with spark_errors():
            self._spark.sql(f"DROP TABLE IF EXISTS {_quoted(name)}")
        del self._known[name]

    def __repr__(self) -> str:
        return f"<Attached {', '.join(self.names)}>"


def _check(spark: Any, catalog: Catalog, prefix: str) -> None:
    if not isinstance(prefix, str) or not prefix.replace("_", "").isalnum():
        raise InvalidArgument(f"prefix is {prefix!r}", hint='pass letters, digits and `_`, such as "lakebed_"')
    if str(spark.conf.get(_CATALOG, "in-memory")).lower() == "hive":
        raise Unsupported(
            "this session keeps its tables in a Hive metastore, where names of the lake would outlive the session",
            hint=f"start the session with {_CATALOG}=in-memory, or use lake.sql and lake.table(name).to_spark()",
        )
    # Spark deletes the directory of a table that it drops: that must be none of the lake's.
    own = str(spark.conf.get(_WAREHOUSE, "")).removeprefix("file:").rstrip("/").replace("//", "/")
    if own.endswith(catalog.root.rstrip("/").replace("//", "/")):
        raise InvalidArgument(
            f"the lake at {catalog.root} is also where Spark keeps tables of its own ({_WAREHOUSE})",
            hint="start the session with another directory there",
        )


def _quoted(name: str) -> str:
    return ".".join(f"`{part.replace('`', '``')}`" for part in name.split(".", 1))


__all__ = ["Attached"]
