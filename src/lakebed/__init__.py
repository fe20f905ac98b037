"""Lakebed: Apache Paimon tables from Python, with a vectorised Arrow core and pipelines on Spark."""
