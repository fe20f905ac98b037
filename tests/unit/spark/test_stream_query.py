"""Errors of a micro-batch, told so that Spark understands them."""

from __future__ import annotations

import re

import pytest

from lakebed.errors import InvalidData, LakebedError
from lakebed.spark.stream.query import batch_errors

INTERRUPTED = re.compile(
    r"py4j.protocol.Py4JJavaError: An error occurred while calling"
    r"((.|\r\n|\r|\n|\f)*)(java.lang.InterruptedException|java.io.InterruptedIOException)"
)
"""What Spark looks for in the words of a batch to know that it was interrupted."""
STACK = "\n\tat org.example.Some.call(Some.scala:1)" * 200


def _told(error: Exception) -> Exception:
    with pytest.raises(type(error) if isinstance(error, LakebedError) else Exception) as caught, batch_errors(7):
        raise error
    return caught.value


@pytest.mark.parametrize(
    "text",
    [
        f"Exception thrown in awaitResult:{STACK}\nCaused by: [SPARK_JOB_CANCELLED] Job 3 cancelled{STACK}",
        f"An error occurred while calling o5.sql.\n: java.lang.InterruptedException{STACK}",
    ],
)
def test_a_batch_that_was_interrupted_says_so_in_few_words(text: str) -> None:
    """Spark takes it for what a stopped query does, not for a failure."""
    told = _told(RuntimeError(text))
    assert isinstance(told, LakebedError)
    assert "batch 7 was given up" in told.message
    assert INTERRUPTED.search(str(told))
    assert len(str(told)) < 400


def test_long_texts_of_failures_are_cut() -> None:
    """The stacks of the JVM go, the reason stays, and it is not taken for a stop."""
    told = _told(RuntimeError(f"Job aborted: no space left{STACK}"))
    assert str(told).startswith("batch 7 was not written: Job aborted: no space left")
    assert len(str(told)) < 400
    assert not INTERRUPTED.search(str(told))


@pytest.mark.parametrize("error", [InvalidData("row 3 does not fit", hint="mend it"), ValueError("short")])
def test_other_errors_stay_as_they_are(error: Exception) -> None:
    """Our own, and short ones."""
    assert _told(error) is error


def test_our_error_of_a_worker_is_told_as_it_is() -> None:
    """It comes back in the middle of a long text of Spark's; its words and what to do next are all that is told."""
    worker = "Traceback (most recent call last):\nlakebed.errors.InvalidData: row 3 does not fit\n  -> mend it\n"
    told = _told(RuntimeError(f"Job aborted: {'x' * 2000}{worker}{STACK}"))
    assert isinstance(told, InvalidData)
    assert (told.message, told.hint) == ("row 3 does not fit", "mend it")
    assert told.__suppress_context__
