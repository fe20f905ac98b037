"""Between moments and what clocks show: TIMESTAMP is a moment, DATE and TIMESTAMP_NTZ are readings of a clock.

Where clocks are turned back, a reading stands for two moments: Spark takes the earlier one, or the one whose offset is
that of the moment it came from; DuckDB the later one. Where clocks skip an hour, both go on by it.
"""

from __future__ import annotations

import re
from zoneinfo import available_timezones

import pyarrow as pa

from lakebed.expressions import kinds
from lakebed.expressions.casts import coerced
from lakebed.expressions.functions.patterns import constant_text
from lakebed.expressions.nodes import Call, Expression, NotProven, call


def let(template: str, scope: str = "l_v", /, **names: str) -> str:
    """A template in which names stand for longer ones, as `l_v.name`, so that each is written and computed once."""
    members = ", ".join(f"'{name}': {value}" for name, value in names.items())
    return f"list_transform([{{{{{members}}}}}], lambda {scope} : {template})[1]"


def as_date(value: Expression) -> Expression:
    """The day; that of a moment is the session's."""
    return _taken(value, kinds.DATE)


def as_clock(value: Expression) -> Expression:
    """What a clock of the session shows."""
    return _taken(value, kinds.TIMESTAMP_NTZ)


def as_moment(value: Expression) -> Expression:
    """The moment at which a clock of the session shows it."""
    return _taken(value, kinds.TIMESTAMP)


def _taken(value: Expression, kind: pa.DataType) -> Expression:
    """As an argument: CAST reads numbers as moments, functions do not take them."""
    if value.type not in (kinds.DATE, kinds.TIMESTAMP, kinds.TIMESTAMP_NTZ, kinds.STRING, kinds.NULL):
        raise NotProven(f"{kinds.spark_name(value.type)} as {kinds.spark_name(kind)}")
    return coerced(value, kind)


def moment_of(clock: str, zone: str | None = None) -> str:
    """The moment of a reading: of the earlier offset, if the clock showed it twice."""

    def later(reading: str) -> str:
        return f"CAST({reading} AS TIMESTAMPTZ)" if zone is None else f"timezone('{zone}', {reading})"

    def shown(moment: str) -> str:
        return f"CAST({moment} AS TIMESTAMP)" if zone is None else f"timezone('{zone}', {moment})"

    a_day = "INTERVAL 24 HOUR"
    return let(
        f"CASE WHEN l_e.early <> l_e.late AND {shown('l_e.early')} = l_e.clock THEN l_e.early ELSE l_e.late END",
        "l_e",
        clock=clock,
        late=later(clock),
        early=f"({later(f'({clock} - {a_day})')} + {a_day})",
    )


def moved(moment: str, reading: str) -> str:
    """The moment of another reading, with the offset of the moment it came from if the clock showed it so."""
    same = let(
        f"CASE WHEN CAST(l_s.same AS TIMESTAMP) = l_s.new THEN l_s.same ELSE {moment_of('l_s.new')} END",
        "l_s",
        new="l_v.new",
        same="make_timestamptz(epoch_us(l_v.moment) + epoch_us(l_v.new) - epoch_us(l_v.old))",
    )
    return let(same, moment=moment, old=f"CAST({moment} AS TIMESTAMP)", new=reading)


_UNLIKE_ZONES = {
    "Africa/Casablanca",
    "Africa/El_Aaiun",
    "America/Edmonton",
    "America/Ensenada",
    "America/Inuvik",
    "America/Rainy_River",
    "America/Santa_Isabel",
    "America/Tijuana",
    "America/Vancouver",
    "America/Winnipeg",
    "America/Yellowknife",
    "Canada/Central",
    "Canada/Mountain",
    "Canada/Pacific",
    "Europe/Dublin",
    "Mexico/BajaNorte",
}
"""Zones whose offsets, somewhere from 1850 to 2100, are not the same in the tables of both engines."""


def proven_zone(name: str) -> str:
    """A zone in which clocks show the same in both engines; for a session, too."""
    is_name = name == "UTC" or (re.fullmatch(r"[A-Z]\w+(/[A-Z]\w+)+", name) and name in available_timezones())
    if not is_name or name in _UNLIKE_ZONES:
        raise NotProven(f"zone '{name}'")
    return name


def zone_of(value: Expression) -> str:
    """The zone that a constant names."""
    return proven_zone(constant_text(value, "a zone"))


def micros(value: Expression) -> Call:
    """Microseconds since 1970 of a TIMESTAMP or TIMESTAMP_NTZ."""
    return call("epoch_us({0})", value, type=kinds.BIGINT)
