"""A job for spark-submit: upserts into a table of a lake and reads it back, wherever the session runs.

spark-submit --master spark://host:7077 examples/cluster/job.py s3://bucket/lake

The store is reached with what the environment has: AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_ENDPOINT_URL.
"""

from __future__ import annotations

import sys

from pyspark.sql import SparkSession

import lakebed


def main(place: str) -> None:
    """Writes a million rows twice, compacts, and counts."""
    spark = SparkSession.builder.appName("lakebed example").getOrCreate()
    lake = lakebed.connect(place, spark=spark)
    table = lake.create_table(
        "events",
        {"id": "BIGINT NOT NULL", "v": "DOUBLE"},
        primary_key=["id"],
        options={"bucket": "4"},
        if_not_exists=True,
    )
    for _ in range(2):
        table.write_spark(spark.range(1_000_000).selectExpr("id", "rand() AS v"))
    print(table.explain_work())
    table.compact(full=True)
    print(table.to_spark().count(), "rows")
    names = lake.attach(spark)
    spark.sql("SELECT count(*) AS rows, round(avg(v), 1) AS mean FROM lakebed_default.events").show()
    names.detach()
    spark.stop()


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "./warehouse")
