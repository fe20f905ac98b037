"""The SQL front: statements in Flink's and in Spark's spelling, on tables of a lake."""
