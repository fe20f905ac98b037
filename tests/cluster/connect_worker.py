"""A client of Spark Connect, which has no JVM: upserts, reads, compaction and a stream on somebody else's cluster."""

from __future__ import annotations

import json
import sys

from pyspark.sql import SparkSession

import lakebed


def main(told: str) -> None:
    """Prints what it has found."""
    given = json.loads(told)
    spark = SparkSession.builder.remote(given["remote"]).getOrCreate()
    lake = lakebed.connect(given["lake"], spark=spark, options=given["options"])
    columns = {"id": "BIGINT NOT NULL", "v": "BIGINT"}
    table = lake.create_table("t", columns, primary_key=["id"], options={"bucket": "2"})
    table.write_spark(spark.range(0, 1000, 1, 4).selectExpr("id", "id AS v"))
    table.write_spark(spark.range(500, 1500, 1, 4).selectExpr("id", "1L AS v"))
    table.compact(full=True, on_spark=True)
    once = lake.create_table("once", columns)
    query = once.write_stream(
        table.read_stream().drop("rowkind"), checkpoint=given["checkpoint"], trigger="availableNow"
    )
    query.awaitTermination()
    names = lake.attach(spark)
    found = {
        "work": table.explain_work(),
        "sum": table.to_spark().selectExpr("count(*)", "sum(v)").collect()[0][:],
        "streamed": once.to_arrow().num_rows,
        "attached": spark.sql("SELECT count(*) FROM lakebed_default.t").collect()[0][0],
    }
    names.detach()
    print(json.dumps(found))
    spark.stop()


if __name__ == "__main__":
    main(sys.argv[1])
