"""The cases run on Spark, as users run them."""

from __future__ import annotations

from tests.spark.conftest import lake, mark_as_spark, spark

__all__ = ["lake", "spark"]

pytest_collection_modifyitems = mark_as_spark("tests/conformance/")
