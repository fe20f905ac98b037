"""Settings of the local session, and what of a session goes along to another process."""

from __future__ import annotations

import pickle
import re

from lakebed.spark import session
from lakebed.spark.session import Session


class _Stand:
    """Looks like a session."""

    def createDataFrame(self) -> None:  # noqa: N802 (Spark's name)
        """Nothing calls it."""


def test_a_session_that_only_plans_compiles_lightly() -> None:
    """Its JVM does without the second compiler; all other settings are the same."""
    full, light = session._settings(False), session._settings(True)
    differing = [name for name in full if full[name] != light[name] and name != "spark.sql.warehouse.dir"]
    assert differing == ["spark.driver.extraJavaOptions"]
    assert "TieredStopAtLevel=1" in light[differing[0]]
    assert "TieredStopAtLevel" not in full[differing[0]]


def test_a_copy_has_no_session() -> None:
    """Another process gets the settings, and finds or starts a session of its own."""
    given = Session(_Stand(), plans_only=True)
    assert given.is_started
    copy = pickle.loads(pickle.dumps(given))
    assert not copy.is_started
    assert copy._plans_only


def test_an_error_is_one_line_of_the_log() -> None:
    """The pattern that cuts what follows survives Java's way to read the file, in which a backslash hides the next."""
    text = re.sub(r"\\(.)", r"\1", session._LOGGING)
    pattern = text.partition("%replace{%m %ex{short.message}}{")[2].partition("}{}%n")[0]
    assert re.sub(pattern, "", "it failed\n  File somewhere\r\n  more") == "it failed"
