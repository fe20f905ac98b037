"""A machine of a cluster on which Lakebed is not installed: the error names it and the next step."""

from __future__ import annotations

import pytest

from lakebed.errors import MissingDependency
from lakebed.spark.errors import cause_of
from lakebed.spark.late_workers import until_workers_come

TOLD = """An exception was thrown from the Python worker:
  File "/usr/lib/python3/dist-packages/pyspark/cloudpickle.py", line 1
ModuleNotFoundError: No module named 'lakebed'
"""


def test_a_job_says_what_to_install_and_where() -> None:
    def fail() -> None:
        raise RuntimeError(TOLD)

    with pytest.raises(MissingDependency, match="has no Python package `lakebed`") as refused:
        until_workers_come(fail)
    assert 'pip install "lakebed[spark]==' in refused.value.hint
    assert isinstance(cause_of(RuntimeError(TOLD)), MissingDependency)


def test_what_a_function_of_the_user_lacks_is_his_own() -> None:
    error = RuntimeError("ModuleNotFoundError: No module named 'lakebedding_tools'\nNo module named 'mine'")
    assert cause_of(error) is error
