"""Syncs with everything turned on that tells tales: `python -m tests.cdc.secrets_worker PLACE`, arguments on stdin.

Debug logs of Spark and Python, Spark's event log, its web pages and REST answers all end as files below PLACE, beside
the lake and the checkpoints. A test looks through them.
"""

from __future__ import annotations

import json
import logging
import sys
import traceback
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import redirect_stdout
from pathlib import Path
from typing import TYPE_CHECKING, Any

import lakebed
import lakebed.cdc
from lakebed.cdc.sources import open_source
from lakebed.errors import LakebedError
from lakebed.spark import session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_LOGGING = """\
rootLogger.level = debug
rootLogger.appenderRef.file.ref = file
appender.file.type = File
appender.file.name = file
appender.file.fileName = {place}/spark.log
appender.file.layout.type = PatternLayout
appender.file.layout.pattern = %d %p %c: %m%n%throwable
logger.codegen.name = org.apache.spark.sql.catalyst.expressions.codegen
logger.codegen.level = info
logger.jetty.name = org.sparkproject.jetty
logger.jetty.level = info
"""
_PAGES = (
    "jobs/", "stages/", "storage/", "environment/", "executors/", "SQL/", "StreamingQuery/",
    "executors/threadDump/?executorId=driver",
)  # fmt: skip
_ANSWERS = ("environment", "jobs", "stages?details=true", "allexecutors", "sql?details=true&planDescription=true")


def main(place: Path, syncs: dict[str, dict[str, Any]], wrong: dict[str, dict[str, Any]]) -> None:
    """Syncs each source until it is caught up, then lets syncs fail."""
    logging.basicConfig(filename=place / "python.log", level=logging.DEBUG)
    spark = _spark(place)
    lake = lakebed.connect(place / "warehouse", spark=spark)
    for number, (source, options) in enumerate(syncs.items()):
        _explain(place, spark, source, options)
        run = lakebed.cdc.sync(
            lake, source, source, checkpoint=place / f"checkpoint-{source}", trigger="200 milliseconds",
            source_options=options, query_name=f"sync {source}",
        )  # fmt: skip
        while not run.progress.rows or run.progress.phase != "stream":
            run.wait(0.2)
        _keep_pages(place / f"pages-{number}", spark, str(run.query.runId))
        (place / f"progress-{source}.json").write_text(
            json.dumps([run.progress.to_json(), run.query.lastProgress.json])
        )
        (place / f"repr-{source}").write_text(f"{run!r} {run.progress!r} {vars(run)!r}")
        run.stop()
    for source, options in wrong.items():
        with (place / f"error-{source}").open("w") as file, redirect_stdout(file):
            try:
                lakebed.cdc.sync(
                    lake, source, source, checkpoint=place / f"checkpoint-{source}", source_options=options
                )
            except LakebedError:
                traceback.print_exc(file=file)
    spark.stop()


def _spark(place: Path) -> SparkSession:
    (place / "events").mkdir()
    properties = place / "log4j2.properties"
    properties.write_text(_LOGGING.format(place=place))
    settings = session._settings(False) | {
        "spark.driver.extraJavaOptions": f"-Dlog4j2.configurationFile={properties}",
        "spark.ui.enabled": "true",
        "spark.ui.port": "0",
        "spark.eventLog.enabled": "true",
        "spark.eventLog.dir": (place / "events").as_uri(),
        "spark.eventLog.compress": "false",
        "spark.eventLog.rolling.enabled": "false",
    }
    session._settings = lambda _: settings
    spark = session.start_local()
    spark.sparkContext.setLogLevel("DEBUG")  # Python's side of Spark has made it WARN
    return spark


def _explain(place: Path, spark: SparkSession, source: str, options: dict[str, Any]) -> None:
    with (place / f"explain-{source}").open("w") as file, redirect_stdout(file):
        opened = open_source(source, **options)
        opened.keep_state_in(str(place / f"state-{source}"))
        stream = opened.stream(spark)
        stream.explain("extended")
        print(stream, stream.schema)


def _keep_pages(directory: Path, spark: SparkSession, run_id: str) -> None:
    directory.mkdir()
    home = str(spark.sparkContext.uiWebUrl)
    answers = f"api/v1/applications/{spark.sparkContext.applicationId}"
    pages = [*_PAGES, f"StreamingQuery/statistics/?id={run_id}", "api/v1/applications"]
    pages += [f"{answers}/{name}" for name in _ANSWERS] + [f"SQL/execution/?id={number}" for number in range(4)]
    for number, page in enumerate(pages):
        for text in _read(f"{home}/{page}"):
            (directory / str(number)).write_bytes(f"{page}\n".encode() + text)


def _read(url: str) -> Iterator[bytes]:
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(url, timeout=60) as answer:
            yield answer.read()
    except urllib.error.HTTPError as error:
        yield str(error).encode()


if __name__ == "__main__":
    main(Path(sys.argv[1]), **json.load(sys.stdin))
