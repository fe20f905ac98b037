"""Tables on Spark: sessions, hybrid reads, writes as jobs. The only part of the engine that knows PySpark.

Everything here uses PySpark's public API and works on Spark Connect as well: no JVM classes, and of the SparkContext
only which Python it starts (`worker_python`). What runs inside Spark's Python workers is the same Arrow core that runs
without Spark.
"""
