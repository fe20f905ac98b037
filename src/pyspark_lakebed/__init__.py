"""Makes `format("lakebed")` known to every Spark session: Spark looks for packages whose names begin like this one."""

from lakebed.spark.data_source import LakebedDataSource as DefaultSource

__all__ = ["DefaultSource"]
