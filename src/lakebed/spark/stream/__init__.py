"""Streams on Spark: micro-batches written once, tables read as streams."""
