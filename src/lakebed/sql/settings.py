"""SET and RESET: options for all statements of a lake, and settings of Spark.

`spark.paimon.<option>` and `spark.lakebed.<option>` are options of tables, as if each statement gave them in a hint.
`spark.paimon.<catalog>.<database>.<table>.<option>` means tables of that name only, `*` any. They live in the lake and
need no Spark; those that the session has (`spark.conf.set`) count, too, unless SET says otherwise. Settings of Flink
are taken with a warning that they have no effect, but for those that change what statements mean: these are honoured
(the time zone; streaming mode, and how often changes are looked for) or refused. The time zone counts without a
session, too, and one that is started later gets it. Everything else is Spark's.
"""

from __future__ import annotations

import datetime as dt
import os
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from fnmatch import fnmatchcase
from typing import Any, Final
from weakref import WeakKeyDictionary
from zoneinfo import ZoneInfo, available_timezones

import pyarrow as pa

from lakebed.calls import warn_caller
from lakebed.errors import InvalidOption, Unsupported
from lakebed.options import (
    WRITE_HIVE_STYLE_DYNAMIC_PARTITION_ENABLED,
    WRITE_MERGE_SCHEMA,
    WRITE_MERGE_SCHEMA_EXPLICIT_CAST,
    WRITE_MERGE_SCHEMA_TYPE_WIDENING,
    check_options,
)
from lakebed.options.table import find_option
from lakebed.spark.errors import spark_errors
from lakebed.sql.session import SqlLake, nothing, result
from lakebed.sql.statements import ResetSetting, SetSetting
from lakebed.units import parse_duration

_SEEN: ContextVar[WeakKeyDictionary[SqlLake, dict[str, str]] | None] = ContextVar("settings_seen", default=None)
"""What sessions said of tables while a statement is carried out."""
_PREFIXES = ("spark.paimon.", "spark.lakebed.")
_WRITE_SETTINGS = tuple(
    option.key
    for option in (
        WRITE_MERGE_SCHEMA,
        WRITE_MERGE_SCHEMA_TYPE_WIDENING,
        WRITE_MERGE_SCHEMA_EXPLICIT_CAST,
        WRITE_HIVE_STYLE_DYNAMIC_PARTITION_ENABLED,
    )
)
"""What statements do with the columns of their rows; no options of a table itself."""
_FLINK = ("execution.", "table.", "sql-client.", "pipeline.", "parallelism.", "state.", "jobmanager.", "taskmanager.")
"""Beginnings of Flink's settings. Most are about its jobs, so scripts that set them mean nothing else here."""
MODE: Final = "execution.runtime-mode"
"""`streaming`: INSERTs and SELECTs go on; else they work on what is stored now."""
CHECKPOINTS: Final = "execution.checkpointing.interval"
"""How often what goes on looks for changes, and commits."""
RESULT_MODE: Final = "sql-client.execution.result-mode"
_RESULT_MODES: Final = ("changelog", "tableau")
"""How a SELECT that goes on is shown: row by row, with what each does."""
_DEFAULTS: Final = {MODE: "batch", CHECKPOINTS: "1 s", RESULT_MODE: "changelog"}
"""Settings of Flink that are kept, and what they are if nobody sets them."""
_FLINK_ZONE: Final = "table.local-time-zone"
_SPARK_ZONE: Final = "spark.sql.session.timeZone"
_FLINK_MEANING: Final = {
    MODE: (
        ("batch", "streaming", "automatic"),
        "set it to streaming: INSERTs and SELECTs go on; or to batch: they work on what is stored now",
    ),
    "table.sql-dialect": (("default",), "write statements in Flink's or Spark's spelling"),
    "table.exec.sink.not-null-enforcer": (("error",), "leave such rows out: INSERT ... SELECT ... WHERE c IS NOT NULL"),
    "table.exec.sink.type-length-enforcer": (("ignore",), "cut texts in the query: SELECT LEFT(c, 10)"),
    "table.exec.legacy-cast-behaviour": (("disabled", "false"), "write TRY_CAST where a value may not fit"),
}
"""Settings of Flink that change what statements give: the values that mean what happens here, and what else to do."""
_MEANT: Final = {"spark.sql.ansi.enabled": "true", "spark.sql.casesensitive": "false"}
"""Settings of a Spark session that change what expressions mean, with the values under which both engines agree."""
_SHOWN = {"key": pa.string(), "value": pa.string()}


def set_setting(lake: SqlLake, statement: SetSetting) -> Any:
    """SET."""
    key = statement.key
    if key is not None and key.startswith(_FLINK):
        _set_flink(lake, key, statement.value)
        shown = _flink_setting(lake, key) if statement.value is None else statement.value
        return result(lake, _SHOWN, [(key, shown)])
    prefix = _prefix(key)
    if key is None or prefix is None:
        if key is not None and key.lower() == _SPARK_ZONE.lower() and _is_kept_here(lake, statement.value):
            return result(lake, _SHOWN, [(_SPARK_ZONE, _zone_set_to(lake, statement.value))])
        return lake.spark.sql(statement.text)
    option = key.removeprefix(prefix)
    if statement.value is None:
        return result(lake, _SHOWN, [(key, lake.settings.get(option, "<undefined>"))])
    if _option_of(option) in _WRITE_SETTINGS:
        _check_flag(key, statement.value)
    else:
        check_options({_option_of(option): statement.value}, for_create=False, columns=None)
    lake.settings[option] = statement.value
    return result(lake, _SHOWN, [(key, statement.value)])


def reset_setting(lake: SqlLake, statement: ResetSetting) -> Any:
    """RESET."""
    prefix = _prefix(statement.key)
    if statement.key is None:
        lake.settings.clear()
        _ZONES.pop(lake, None)
        _KEPT.pop(lake, None)
        return lake.spark.sql("RESET") if lake.is_spark_started else nothing(lake)
    if statement.key.startswith(_FLINK):
        if statement.key == _FLINK_ZONE:
            _unset_zone(lake)
        _KEPT.get(lake, {}).pop(statement.key, None)
        return nothing(lake)
    if prefix is None:
        if statement.key.lower() == _SPARK_ZONE.lower() and not lake.is_spark_started:
            _unset_zone(lake)
            return nothing(lake)
        return lake.spark.sql(statement.text)
    lake.settings.pop(statement.key.removeprefix(prefix), None)
    return nothing(lake)


def _set_flink(lake: SqlLake, key: str, value: str | None) -> None:
    """What a setting of Flink means here: the session's time zone, an error, or nothing, which is said."""
    if value is None:
        return
    if key == _FLINK_ZONE:
        if value.lower() == "default":
            _unset_zone(lake)
        elif _is_kept_here(lake, value):
            _zone_set_to(lake, value)
        else:
            with spark_errors():
                lake.spark.conf.set(_SPARK_ZONE, value)
        return
    if key == CHECKPOINTS:
        _KEPT.setdefault(lake, {})[key] = f"{_duration_ms(value)} ms"
        return
    if key == RESULT_MODE and value.lower() in _RESULT_MODES:
        _KEPT.setdefault(lake, {})[key] = value.lower()
        return
    if key not in _FLINK_MEANING:
        warn_caller(f"`{key}` is a setting of Flink and has no effect here")
        return
    meant, instead = _FLINK_MEANING[key]
    if value.lower() not in meant:
        raise Unsupported(f"setting `{key}` = `{value}` of Flink is not honoured here", hint=instead)
    if key in _DEFAULTS:
        _KEPT.setdefault(lake, {})[key] = value.lower()


_KEPT: WeakKeyDictionary[Any, dict[str, str]] = WeakKeyDictionary()
"""Settings of Flink that statements ask for, by lake."""


def _flink_setting(lake: SqlLake, key: str) -> str | None:
    """What a setting of Flink is; None if it is not kept."""
    return _KEPT.get(lake, {}).get(key, _DEFAULTS.get(key))


def is_streaming(lake: SqlLake) -> bool:
    """Whether INSERTs and SELECTs go on."""
    return _flink_setting(lake, MODE) == "streaming"


def check_interval_ms(lake: SqlLake) -> int:
    """How often what goes on looks for changes."""
    return parse_duration(_flink_setting(lake, CHECKPOINTS) or "")


def _duration_ms(value: str) -> int:
    """A duration as Flink writes it: a number without a unit is of milliseconds."""
    return max(1, parse_duration(f"{value} ms" if value.strip().isdigit() else value))


def session_changes_meaning(lake: SqlLake) -> str | None:
    """Why a query may mean something else on the session in use than it does elsewhere; None if it does not."""
    if not lake.is_spark_started:
        return None
    for key, meant in _MEANT.items():
        found = str(lake.spark.conf.get(key, meant)).lower()
        if found != meant:
            return f"setting `{key}` of the Spark session is `{found}`"
    return None


# --- the time zone ---------------------------------------------------------------------------------------------------


_ZONES: WeakKeyDictionary[Any, str] = WeakKeyDictionary()
"""What SET has set while no session is in use, by lake."""


def session_zone(lake: SqlLake) -> str | None:
    """The time zone of the session, or what SET has set, or that of the machine; None if it has no name to be found."""
    if lake.is_spark_started:
        return str(lake.spark.conf.get(_SPARK_ZONE))
    return _ZONES.get(lake) or os.environ.get("TZ") or _zone_of_machine()


def session_clock(lake: SqlLake) -> dt.tzinfo | None:
    """The same zone, to read clocks by; None for that of the machine."""
    try:
        return ZoneInfo(session_zone(lake) or "")
    except (KeyError, ValueError, OSError):
        return None


def _is_kept_here(lake: SqlLake, value: str | None) -> bool:
    """Whether a zone can be set without a session: there is none, and the name is that of a place or UTC."""
    if lake.is_spark_started:
        return False
    if value is None:
        return session_zone(lake) is not None
    return value == "UTC" or ("/" in value and value in available_timezones())


def _zone_set_to(lake: SqlLake, value: str | None) -> str | None:
    if value is not None:
        _ZONES[lake] = value
    return session_zone(lake)


def _unset_zone(lake: SqlLake) -> None:
    _ZONES.pop(lake, None)
    if lake.is_spark_started:
        lake.spark.conf.unset(_SPARK_ZONE)


def hand_over_settings(lake: SqlLake) -> None:
    """Gives a session that has just started what SET has set before."""
    zone = _ZONES.pop(lake, None)
    if zone is not None:
        lake.spark.conf.set(_SPARK_ZONE, zone)


def _zone_of_machine() -> str | None:
    """The name of the zone that the machine is set to."""
    try:
        return os.path.realpath("/etc/localtime").partition("zoneinfo/")[2] or None
    except OSError:
        return None


def dynamic_options(lake: SqlLake, table: str) -> dict[str, str]:
    """Options that SET gives to a table, named `t` or `db.t`, as `with_options` takes them."""
    return {key: value for key, value in _settings_of(lake, table).items() if key not in _WRITE_SETTINGS}


def write_settings(lake: SqlLake, table: str) -> dict[str, bool]:
    """What SET says about columns when a statement writes to a table, by the keys of the options."""
    found = _settings_of(lake, table)
    return {key: found.get(key, "false").lower() == "true" for key in _WRITE_SETTINGS}


def _check_flag(key: str, value: str) -> None:
    if value.lower() not in ("true", "false"):
        raise InvalidOption(f"setting `{key}` is `{value}`", hint="set it to true or false")


def _settings_of(lake: SqlLake, table: str) -> dict[str, str]:
    """Those for the table's name before those for all."""
    names = table.split("$")[0].split(".")
    full = ["paimon", names[0] if len(names) == 2 else lake.current_database, names[-1]]
    general: dict[str, str] = {}
    special: dict[str, str] = {}
    for key, value in {**_of_session(lake), **lake.settings}.items():
        if _is_option(key):
            general[key] = value
            continue
        *patterns, option = key.split(".", 3)
        if all(fnmatchcase(name, pattern) for name, pattern in zip(full, patterns, strict=True)):
            special[option] = value
    return {**general, **special}


def _of_session(lake: SqlLake) -> dict[str, str]:
    """Options of tables among the settings of the Spark session, if there is one."""
    if not lake.is_spark_started:
        return {}
    seen = _SEEN.get()
    if seen is None:
        return _asked_of_session(lake)
    if lake not in seen:
        seen[lake] = _asked_of_session(lake)
    return seen[lake]


def _asked_of_session(lake: SqlLake) -> dict[str, str]:
    found: dict[str, str] = {}
    for key, value in lake.spark.conf.getAll.items():
        prefix = _prefix(key)
        if prefix is not None:
            found[key.removeprefix(prefix)] = value
    return found


@contextmanager
def settings_of_one_statement() -> Iterator[None]:
    """Within it a session is asked once for its settings, of which it has hundreds: a statement names many tables."""
    if _SEEN.get() is not None:  # within another one
        yield
        return
    before = _SEEN.set(WeakKeyDictionary())
    try:
        yield
    finally:
        _SEEN.reset(before)


def _prefix(key: str | None) -> str | None:
    return next((prefix for prefix in _PREFIXES if key is not None and key.lower().startswith(prefix)), None)


def _is_option(key: str) -> bool:
    return find_option(key) is not None or key.count(".") < 3


def _option_of(key: str) -> str:
    """The option itself, without the names of the tables it is for."""
    return key if _is_option(key) else key.split(".", 3)[3]
