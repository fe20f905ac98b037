"""One engine on Spark in a process of its own, for `spark_read` and `spark_upsert`.

    python -P benchmarks/spark_worker.py lakebed|paimon|delta <warehouse>

Runs under the interpreter of the engine, so it imports nothing of this package. Reads one JSON object a line, `do` and
its arguments, and answers each with one. What Spark prints goes to standard error.
"""

from __future__ import annotations

import json
import os
import sys
from typing import Any

COLUMNS = {
    "k": "BIGINT NOT NULL",
    "x": "INT",
    "at": "TIMESTAMP_NTZ",
    "d": "DOUBLE",
    "n": "INT",
    "s1": "STRING",
    "s2": "STRING",
}
SHARED_SETTINGS = (
    "spark.master",
    "spark.driver.memory",
    "spark.driver.extraJavaOptions",
    "spark.driver.bindAddress",
    "spark.driver.host",
    "spark.ui.enabled",
    "spark.ui.showConsoleProgress",
    "spark.sql.shuffle.partitions",
    "spark.sql.sources.parallelPartitionDiscovery.threshold",
)
"""Settings of Lakebed's local session that the peers get as well."""

DEFINITION = ", ".join(f"{name} {kind}" for name, kind in COLUMNS.items())


class Engine:
    """What all engines do alike. A source of rows is a Parquet file, seen by SQL as the view `source`."""

    table = "t"
    create = ""
    upsert_sql = ""
    spark: Any

    def start(self, settings: dict[str, str]) -> dict[str, str]:
        """Starts Spark and lets it run one job; answers with the settings that others shall have too."""
        self.spark = self.session(settings)
        self.spark.range(1000).selectExpr("sum(id)").collect()
        conf = self.spark.sparkContext.getConf()
        return {key: conf.get(key) for key in SHARED_SETTINGS if conf.contains(key)}

    def session(self, settings: dict[str, str]) -> Any:
        """A Spark session with the engine in it."""
        from pyspark.sql import SparkSession

        builder = SparkSession.builder
        for key, value in settings.items():
            builder = builder.config(key, value)
        return builder.getOrCreate()

    def sql(self, text: str) -> list[list[Any]]:
        """Rows of a statement, with times as text."""
        rows = self.spark.sql(text).collect()
        return [[value if isinstance(value, int | float) else str(value) for value in row] for row in rows]

    def load(self, source: str) -> None:
        """A new table with the rows of the source."""
        self.sql(self.create)
        self._see(source)
        self.sql(f"INSERT INTO {self.table} SELECT * FROM source")

    def upsert(self, source: str) -> None:
        """Puts the rows of the source in the place of those with the same keys."""
        self._see(source)
        self.sql(self.upsert_sql or f"INSERT INTO {self.table} SELECT * FROM source")

    def query(self, text: str) -> list[list[Any]]:
        """Rows of a query, in which `{table}` stands for the table."""
        return self.sql(text.format(table=self.table))

    def _see(self, source: str) -> None:
        self.spark.read.parquet(source).createOrReplaceTempView("source")


class Lakebed(Engine):
    """This package, in the Spark session that it starts by itself."""

    create = f"CREATE TABLE t ({DEFINITION}, PRIMARY KEY (k) NOT ENFORCED) WITH ('bucket' = '8')"

    def __init__(self, warehouse: str) -> None:
        import lakebed

        self.lake = lakebed.connect(warehouse)

    def session(self, settings: dict[str, str]) -> Any:
        """Our own: whatever the settings."""
        return self.lake.spark

    def sql(self, text: str) -> list[list[Any]]:
        """Through our own front."""
        rows = self.lake.sql(text).collect()
        return [[value if isinstance(value, int | float) else str(value) for value in row] for row in rows]

    def frame(self, columns: list[str], condition: list[Any], aggregates: list[str]) -> list[list[Any]]:
        """Aggregates over `t.to_spark`, which is told the columns and the filter."""
        import pyarrow.compute as pc

        column, bound = condition
        frame = self.lake.table("t").to_spark(columns=columns, filter=pc.field(column) < bound)
        rows = frame.selectExpr(*aggregates).collect()
        return [[value if isinstance(value, int | float) else str(value) for value in row] for row in rows]

    def files(self, text: str, paths: list[str]) -> list[list[Any]]:
        """A query over Parquet files as they are, by Spark alone."""
        self.spark.read.parquet(*paths).createOrReplaceTempView("files")
        return Engine.sql(self, text.format(table="files"))


class Paimon(Engine):
    """The Paimon connector."""

    table = "paimon.default.t"
    create = f"CREATE TABLE {table} ({DEFINITION}) TBLPROPERTIES ('primary-key' = 'k', 'bucket' = '8')"

    def __init__(self, warehouse: str) -> None:
        self.warehouse = warehouse

    def session(self, settings: dict[str, str]) -> Any:
        """With a catalog on the warehouse."""
        return super().session(
            {
                **settings,
                "spark.sql.catalog.paimon": "org.apache.paimon.spark.SparkCatalog",
                "spark.sql.catalog.paimon.warehouse": self.warehouse,
                "spark.sql.extensions": "org.apache.paimon.spark.extensions.PaimonSparkSessionExtensions",
            }
        )


class Delta(Engine):
    """Delta Lake, with deletion vectors: its quickest way to merge."""

    create = f"CREATE TABLE t ({DEFINITION}) USING delta TBLPROPERTIES ('delta.enableDeletionVectors' = 'true')"
    upsert_sql = (
        "MERGE INTO t USING source ON t.k = source.k WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
    )

    def __init__(self, warehouse: str) -> None:
        self.warehouse = warehouse

    def session(self, settings: dict[str, str]) -> Any:
        """With Delta's catalog as the session's own."""
        return super().session(
            {
                **settings,
                "spark.sql.warehouse.dir": self.warehouse,
                # Its log is read in 50 tasks unless told otherwise, which takes longer than all else here.
                "spark.databricks.delta.snapshotPartitions": settings["spark.sql.shuffle.partitions"],
                "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
                "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
            }
        )


ENGINES = {"lakebed": Lakebed, "paimon": Paimon, "delta": Delta}


def main(name: str, warehouse: str) -> None:
    """Does what it is told until the input ends."""
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)
    engine = ENGINES[name](warehouse)
    for line in sys.stdin:
        step = json.loads(line)
        found = getattr(engine, step.pop("do"))(**step)
        print(json.dumps(found), file=answers)
    engine.spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
