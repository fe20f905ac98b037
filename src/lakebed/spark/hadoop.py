"""Whether Spark's own readers reach a table's files: on a disk they do, in S3 if Hadoop's module for it is set up.

Spark needs its own keys for a store: those of the lake are handed to nobody. So it is looked whether the session is set
up for the endpoint of the lake, and one small job asks a task whether it can read a file. What is found is remembered
for as long as the session lives.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit
from weakref import WeakKeyDictionary

from pyspark.errors import PySparkException

from lakebed.fileio.base import FileIO
from lakebed.fileio.local import LocalFileIO
from lakebed.fileio.together import answers_late
from lakebed.spark.errors import java_errors

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_log = logging.getLogger(__name__)

_S3 = ("s3://", "s3a://")
_SETTINGS = "spark.hadoop.fs.s3a"
_SET_UP = ("endpoint", "access.key", "aws.credentials.provider", "impl")
"""Settings of which a session has one if somebody has thought of S3."""

_KNOWN: WeakKeyDictionary[Any, dict[tuple[str, str | None], bool]] = WeakKeyDictionary()


def spark_prefix(spark: SparkSession, fileio: FileIO, path: str) -> str | None:
    """What makes of paths of a table what Spark reads; None if it can not. `path` is a file that is there."""
    store: Any = getattr(fileio, "itself", fileio)
    if isinstance(store, LocalFileIO):
        return ""
    place = str(getattr(store, "place", ""))
    if not answers_late(store) or not place.startswith(_S3):
        return None
    bucket = place.partition("://")[2]
    prefix = f"s3a://{bucket}/"
    known = _KNOWN.setdefault(spark, {})
    key = (bucket, store.endpoint)
    if key not in known:
        known[key] = _is_set_up_for(spark, bucket, store.endpoint) and _reads(spark, f"{prefix}{path}")
    return prefix if known[key] else None


def _is_set_up_for(spark: SparkSession, bucket: str, endpoint: str | None) -> bool:
    """Whether the session has settings for S3, and for that of the lake."""

    def setting(name: str) -> str | None:
        of_all = spark.conf.get(f"{_SETTINGS}.{name}", None)
        found: str | None = spark.conf.get(f"{_SETTINGS}.bucket.{bucket}.{name}", of_all)
        return found

    given = [setting(name) for name in _SET_UP]
    return any(given) and _host(given[0]) == _host(endpoint)


def _host(endpoint: str | None) -> str:
    """The server of an endpoint; the endpoints of Amazon, which differ by region, are one."""
    if not endpoint:
        return ""
    host = urlsplit(endpoint if "://" in endpoint else f"//{endpoint}").netloc.lower()
    return "" if host.endswith((".amazonaws.com", ".amazonaws.com.cn")) else host


def _reads(spark: SparkSession, path: str) -> bool:
    """Whether a task of the session can read a file."""
    try:
        spark.read.schema("none INT").parquet(path).limit(1).collect()
    except (PySparkException, OSError, *java_errors()) as error:
        _log.info("Spark's own reader can not read %s: %s", path, str(error).partition("\n")[0])
        return False
    return True


__all__ = ["spark_prefix"]
