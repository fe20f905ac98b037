"""Spark's errors in the user's own words."""

from __future__ import annotations

import pytest

from lakebed.errors import InvalidArgument, StorageError
from lakebed.spark.errors import cause_of, translated_error
from lakebed.spark.late_workers import until_workers_come


def test_view_names_and_plans_do_not_leak() -> None:
    """Names of views become those of tables; class, place and plan are taken off the message."""
    raw = (
        "[UNRESOLVED_COLUMN.WITH_SUGGESTION] A column with name `x` cannot be resolved. Did you mean one of the "
        "following? [`lakebed_view_7`.`k`, `lakebed_view_71`.`v`]. SQLSTATE: 42703; "
        "line 1 pos 7;\n'Project ['x]\n+- Relation"
    )
    error = translated_error(Exception(raw), {"lakebed_view_7": "db.t", "lakebed_view_71": "u"})
    assert isinstance(error, InvalidArgument)
    assert error.message == (
        "A column with name `x` cannot be resolved. Did you mean one of the following? [`db.t`.`k`, `u`.`v`]."
    )
    assert "UNRESOLVED_COLUMN" in error.hint


def test_functions_of_flink() -> None:
    """A function of Flink that Spark lacks is answered with Spark's word, a mistyped one with the nearest."""
    raw = "[UNRESOLVED_ROUTINE] Cannot resolve routine `{}` on search path [`system`.`builtin`]. SQLSTATE: 42883"
    assert "get_json_object(" in translated_error(Exception(raw.format("Json_Value")), {}).hint
    assert "split_part(" in translated_error(Exception(raw.format("SPLIT_INDEX")), {}).hint
    mistyped = translated_error(Exception(raw.format("lenght")), {})
    assert (mistyped.message, mistyped.hint) == ("there is no function `lenght`", "did you mean `length`?")


def test_places_leave_no_bracket() -> None:
    """The place that Spark names in brackets goes with its brackets."""
    raw = "[PARSE_SYNTAX_ERROR] Syntax error at or near '4'. SQLSTATE: 42601 (line 1, pos 12)\n\n== SQL ==\nselect"
    assert translated_error(Exception(raw), {}).message == "Syntax error at or near '4'."


@pytest.mark.parametrize(
    "reason",
    [
        "java.nio.file.NoSuchFileException: /tmp/spark-1/executor-2/blockmgr-3/0f",
        "java.io.IOException: No space left on device",
        "ExecutorLostFailure (executor 1 exited caused by one of the running tasks) Reason: worker lost",
    ],
)
def test_a_machine_that_broke_is_no_mistake_of_the_statement(reason: str) -> None:
    """A task that failed too often since its machine did is told with the machine, as something to run again."""
    raw = (
        "An error occurred while calling o602.getResult.\n: org.apache.spark.SparkException: Exception thrown in "
        "awaitResult: \n\tat org.apache.spark.util.X\nCaused by: org.apache.spark.SparkException: Job aborted due to "
        "stage failure: Task 0 in stage 10.0 failed 4 times, most recent failure: Lost task 0.3 in stage 10.0 (TID 25) "
        f"(10.0.0.2 executor 0): {reason}\n\tat java.base/sun.nio.fs"
    )
    for error in (translated_error(Exception(raw), {}), cause_of(Exception(raw))):
        assert isinstance(error, StorageError)
        assert "machine 10.0.0.2" in error.message
        assert reason in error.message
        assert "run it again" in error.hint

    def fail() -> None:
        raise RuntimeError(raw)

    with pytest.raises(StorageError, match=r"machine 10\.0\.0\.2"):
        until_workers_come(fail)


def test_a_file_that_a_store_refuses_is_no_broken_machine() -> None:
    raw = "Lost task 0.3 in stage 1.0 (TID 25) (10.0.0.2 executor 0): java.nio.file.AccessDeniedException: s3a://b/x"
    assert not isinstance(translated_error(Exception(raw), {}), StorageError)
