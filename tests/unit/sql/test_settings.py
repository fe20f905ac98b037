"""Settings of a Spark session, as statements see them."""

from __future__ import annotations

from typing import Any

from lakebed.sql.settings import dynamic_options, settings_of_one_statement


class _Conf:
    """A session's settings, which count how often they are asked for."""

    def __init__(self) -> None:
        self.values: dict[str, str] = {}
        self.asked = 0

    @property
    def getAll(self) -> dict[str, str]:  # noqa: N802
        self.asked += 1
        return self.values


class _Lake:
    """A lake with a session of which only the settings are there."""

    is_spark_started = True
    current_database = "default"

    def __init__(self) -> None:
        self.settings: dict[str, str] = {}
        self.spark: Any = self
        self.conf = _Conf()


def test_a_statement_asks_the_session_once() -> None:
    """A session has hundreds of settings, which cross to the JVM one by one: tables of a statement share them."""
    lake: Any = _Lake()
    lake.conf.values["spark.paimon.scan.snapshot-id"] = "1"
    with settings_of_one_statement():
        assert dynamic_options(lake, "a") == dynamic_options(lake, "b") == {"scan.snapshot-id": "1"}
        with settings_of_one_statement():
            dynamic_options(lake, "c")
    assert lake.conf.asked == 1


def test_the_next_statement_sees_what_was_set_meanwhile() -> None:
    """Nothing is remembered from one statement to the next, nor from one lake to another."""
    lake: Any = _Lake()
    other: Any = _Lake()
    with settings_of_one_statement():
        assert dynamic_options(lake, "a") == {}
        lake.conf.values["spark.paimon.scan.snapshot-id"] = "2"
        other.conf.values["spark.paimon.scan.snapshot-id"] = "3"
        assert dynamic_options(other, "a") == {"scan.snapshot-id": "3"}
    assert dynamic_options(lake, "a") == {"scan.snapshot-id": "2"}
