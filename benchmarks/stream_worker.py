"""One engine that takes streams on Spark in a process of its own, for `stream_latency`.

    python -P benchmarks/stream_worker.py lakebed|paimon <warehouse>

Runs under the interpreter of the engine, so it imports nothing of this package. Reads one JSON object a line, `do` and
its arguments, and answers each with one. What Spark prints goes to standard error. Every sink is fed by files of a
directory, one a micro-batch: the rows of `parquet` go to plain Parquet files, those of other names to a table.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
import threading
import time
from pathlib import Path
from typing import Any

COLUMNS = "k BIGINT NOT NULL, x INT, at TIMESTAMP_NTZ, d DOUBLE, n INT, s1 STRING, s2 STRING"
PARQUET = "parquet"
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


class Engine:
    """What all engines do alike."""

    spark: Any

    def __init__(self, warehouse: str) -> None:
        self.home = Path(warehouse)

    def start(self, settings: dict[str, str]) -> dict[str, str]:
        """Starts Spark; answers with the settings that others shall have too."""
        self.spark = self.session(settings)
        conf = self.spark.sparkContext.getConf()
        return {key: conf.get(key) for key in SHARED_SETTINGS if conf.contains(key)}

    def create(self, sink: str, options: dict[str, str]) -> None:
        """A table of 8 buckets."""
        raise NotImplementedError

    def session(self, settings: dict[str, str]) -> Any:
        """A Spark session with the engine in it."""
        raise NotImplementedError

    def started(self, frame: Any, sink: str, checkpoint: str, trigger: dict[str, Any]) -> Any:
        """The query that writes the frame to a table."""
        raise NotImplementedError

    def run(self, sink: str, source: str) -> list[dict[str, float]]:
        """Writes all files of the source that are not written yet, back to back; milliseconds of each batch."""
        query = self._query(sink, source, {"availableNow": True})
        query.awaitTermination()
        return [dict(progress["durationMs"]) for progress in query.recentProgress if progress["numInputRows"]]

    def follow(self, sink: str, source: str, files: list[str], interval_s: float) -> list[float]:
        """Seconds from the appearance of each file until its rows are visible, while files come one by one."""
        Path(source).mkdir(parents=True, exist_ok=True)
        query = self._query(sink, source, {"processingTime": "0 seconds"})
        appeared: list[float] = []

        def deliver() -> None:
            for number, file in enumerate(files):
                waiting = Path(source, f".{number:05}")
                shutil.copyfile(file, waiting)
                appeared.append(time.time())
                waiting.rename(Path(source, f"{number:05}.parquet"))
                time.sleep(interval_s)

        before = len(self.visible(sink))
        producer = threading.Thread(target=deliver)
        producer.start()
        while len(self.visible(sink)) < before + len(files) and query.isActive:
            time.sleep(0.05)
        producer.join()
        query.stop()
        return [seen - came for seen, came in zip(self.visible(sink)[before:], appeared, strict=True)]

    def visible(self, sink: str) -> list[float]:
        """When each batch became visible: of the files that made it so, the time at which they were written."""
        if sink == PARQUET:
            return sorted(path.stat().st_mtime for path in self.home.glob("parquet-*/_SUCCESS"))
        paths = Path(self.location(sink), "snapshot").glob("snapshot-*")
        return sorted(path.stat().st_mtime for path in paths if json.loads(path.read_text())["commitKind"] == "APPEND")

    def location(self, sink: str) -> str:
        """Where a table lies."""
        return str(self.home / "default.db" / sink)

    def _query(self, sink: str, source: str, trigger: dict[str, Any]) -> Any:
        reader = self.spark.readStream.schema(COLUMNS).option("maxFilesPerTrigger", 1)
        frame = reader.parquet(source)
        checkpoint = f"{self.home}/checkpoint-{sink}-{Path(source).name}"
        if sink != PARQUET:
            return self.started(frame, sink, checkpoint, trigger)
        prefix = f"{self.home}/parquet-{Path(source).name}"

        def write(batch: Any, number: int) -> None:
            batch.write.parquet(f"{prefix}-{number}")

        writer = frame.writeStream.option("checkpointLocation", checkpoint).trigger(**trigger)
        return writer.foreachBatch(write).start()


class Lakebed(Engine):
    """This package, in the Spark session that it starts by itself."""

    def __init__(self, warehouse: str) -> None:
        import lakebed

        super().__init__(warehouse)
        self.lake = lakebed.connect(warehouse)

    def session(self, settings: dict[str, str]) -> Any:
        """Our own: whatever the settings."""
        return self.lake.spark

    def create(self, sink: str, options: dict[str, str]) -> None:
        """With the Flink spelling."""
        given = ", ".join(f"'{key}' = '{value}'" for key, value in {"bucket": "8", **options}.items())
        self.lake.sql(f"CREATE TABLE {sink} ({COLUMNS}, PRIMARY KEY (k) NOT ENFORCED) WITH ({given})")

    def started(self, frame: Any, sink: str, checkpoint: str, trigger: dict[str, Any]) -> Any:
        """By `t.write_stream`, or by name if the sink's name says so."""
        if not sink.endswith("_format"):
            return self.lake.table(sink).write_stream(frame, checkpoint=checkpoint, trigger=trigger)
        writer = frame.writeStream.format("lakebed").option("checkpointLocation", checkpoint).trigger(**trigger)
        return writer.start(self.location(sink))


class Paimon(Engine):
    """The Paimon connector."""

    def session(self, settings: dict[str, str]) -> Any:
        """With a catalog on the warehouse."""
        from pyspark.sql import SparkSession

        builder = SparkSession.builder
        catalog = {
            "spark.sql.catalog.paimon": "org.apache.paimon.spark.SparkCatalog",
            "spark.sql.catalog.paimon.warehouse": str(self.home),
            "spark.sql.extensions": "org.apache.paimon.spark.extensions.PaimonSparkSessionExtensions",
        }
        for key, value in {**settings, **catalog}.items():
            builder = builder.config(key, value)
        return builder.getOrCreate()

    def create(self, sink: str, options: dict[str, str]) -> None:
        """With the primary key as a property."""
        given = ", ".join(f"'{key}' = '{value}'" for key, value in {"bucket": "8", **options}.items())
        self.spark.sql(f"CREATE TABLE paimon.default.{sink} ({COLUMNS}) TBLPROPERTIES ('primary-key' = 'k', {given})")

    def started(self, frame: Any, sink: str, checkpoint: str, trigger: dict[str, Any]) -> Any:
        """By name."""
        writer = frame.writeStream.format("paimon").option("checkpointLocation", checkpoint).trigger(**trigger)
        return writer.start(self.location(sink))


ENGINES = {"lakebed": Lakebed, "paimon": Paimon}


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
