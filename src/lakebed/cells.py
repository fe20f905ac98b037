"""Values as people and programs read them: texts for tables and CSV, plain data for JSON.

A moment is told as a clock here shows it, with what that is ahead of UTC (`Z` for UTC itself), in a table, JSON and CSV
alike: it is the time that one types in a statement, and no reader can take it for another. Columns without a zone are
told as they are.
"""

from __future__ import annotations

import base64
import datetime as dt
import json
import math
import re
from decimal import Decimal


def plain(value: object) -> object:
    """The value as JSON has it. Times are ISO 8601, decimals exact texts, bytes base64, maps lists of pairs."""
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)  # JSON knows no NaN
    if isinstance(value, dt.datetime):
        return _time_text(_here(value).isoformat())
    if isinstance(value, dt.date | dt.time):
        return _time_text(value.isoformat())
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    return format(value, "f") if isinstance(value, Decimal) else str(value)


def to_json(value: object) -> str:
    """The value as JSON on one line."""
    return json.dumps(plain(value), ensure_ascii=False)


def text(value: object, null: str = "") -> str:
    """The value as one line of text; what is nested as JSON."""
    if value is None:
        return null
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, dt.datetime):
        return _time_text(_here(value).isoformat(sep=" "))
    if isinstance(value, dict | list | tuple):
        return to_json(value)
    return " ".join(str(plain(value)).splitlines())


def _here(moment: dt.datetime) -> dt.datetime:
    """A moment on the clock of this machine; what has no zone stays."""
    if moment.tzinfo is None:
        return moment
    try:
        return moment.astimezone()
    except (OverflowError, OSError, ValueError):  # close to the years 1 and 9999
        return moment


_FRACTION = re.compile(r"(:\d\d)\.(\d*?)0*(?=$|[+-])")


def _time_text(time: str) -> str:
    """ISO 8601 without zeros that say nothing, and `Z` for UTC."""
    short = _FRACTION.sub(lambda found: f"{found[1]}.{found[2]}" if found[2] else found[1], time)
    return f"{short[:-6]}Z" if short.endswith("+00:00") else short


def seconds_text(moment: dt.datetime) -> str:
    """A time without fractions of a second."""
    return moment.isoformat(sep=" ", timespec="seconds")


__all__ = ["plain", "seconds_text", "text", "to_json"]
