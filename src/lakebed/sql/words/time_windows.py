"""Flink's windows over a table, turned into plain queries: every engine answers them, and changes can be followed.

    TABLE(TUMBLE(TABLE t, DESCRIPTOR(ts), INTERVAL '10' MINUTE))
    TABLE(HOP(TABLE t, DESCRIPTOR(ts), INTERVAL '5' MINUTE, INTERVAL '10' MINUTE))
    TABLE(CUMULATE(TABLE t, DESCRIPTOR(ts), INTERVAL '1' HOUR, INTERVAL '1' DAY))
    TABLE(SESSION(TABLE t PARTITION BY k, DESCRIPTOR(ts), INTERVAL '5' MINUTE))

Each is the table with three columns more: `window_start`, `window_end`, and `window_time`, a millisecond before the
end; all three are read off the clock, as in Flink. A row without a time is in no window.
"""

from __future__ import annotations

from decimal import Decimal, InvalidOperation

from sqlglot.tokens import Token, TokenType

from lakebed.errors import InvalidArgument, Unsupported
from lakebed.records import dataclass
from lakebed.sql.words.cursor import Cursor

_WORDS = ("TUMBLE", "HOP", "CUMULATE", "SESSION")
_DAY = 86_400
_SECONDS = {"SECOND": 1, "MINUTE": 60, "HOUR": 3600, "DAY": _DAY, "WEEK": 7 * _DAY}
_MOST_WINDOWS = 10_000
"""A row may be in so many windows at once."""
_EXAMPLE = {
    "TUMBLE": "TUMBLE(TABLE t, DESCRIPTOR(ts), INTERVAL '10' MINUTE)",
    "HOP": "HOP(TABLE t, DESCRIPTOR(ts), INTERVAL '5' MINUTE, INTERVAL '10' MINUTE)",
    "CUMULATE": "CUMULATE(TABLE t, DESCRIPTOR(ts), INTERVAL '1' HOUR, INTERVAL '1' DAY)",
    "SESSION": "SESSION(TABLE t PARTITION BY k, DESCRIPTOR(ts), INTERVAL '5' MINUTE)",
}
_DURATIONS = {"TUMBLE": ("SIZE",), "HOP": ("SLIDE", "SIZE"), "CUMULATE": ("STEP", "SIZE"), "SESSION": ("GAP",)}
"""Lengths of time that each takes, in the order in which they are written; OFFSET may follow."""


@dataclass(frozen=True, slots=True)
class _Window:
    """A window as it is written; lengths in seconds."""

    kind: str
    table: str
    partition: tuple[str, ...]
    column: str
    lengths: dict[str, int]

    @property
    def offset(self) -> int:
        return self.lengths.get("OFFSET", 0)


def _is_window(tokens: list[Token], index: int) -> bool:
    """Whether a window over a table begins at a place."""
    words = [token.text.upper() for token in tokens[index : index + 5]]
    return words[:1] in [[word] for word in _WORDS] and words[1:2] == ["("] and "TABLE" in words[2:5]


def window_edits(cursor: Cursor) -> list[tuple[int, int, str]]:
    """Places of windows in a text, and the queries to write there."""
    edits = []
    tokens = cursor.tokens
    for index in range(len(tokens)):
        if not _is_window(tokens, index):
            continue
        closing = _closing(tokens, index + 1)
        first, last = index, closing
        wrapped = index >= 2 and tokens[index - 1].text == "(" and tokens[index - 2].text.upper() == "TABLE"
        if wrapped and closing + 1 < len(tokens) and tokens[closing + 1].text == ")":
            first, last = index - 2, closing + 1
        window = _read(cursor.text, tokens[index : closing + 1])
        edits.append((tokens[first].start, tokens[last].end + 1, f"({_QUERIES[window.kind](window)})"))
    return edits


# --- how they are written --------------------------------------------------------------------------------------------


def _read(text: str, tokens: list[Token]) -> _Window:
    kind = tokens[0].text.upper()
    parts = _arguments(tokens[2:-1])
    given: dict[str, list[Token]] = {}
    order = ["DATA", "TIMECOL", *_DURATIONS[kind], "OFFSET"]
    for place, part in enumerate(parts):
        if len(part) > 2 and part[1].text == "=" and part[2].text == ">":
            given[part[0].text.upper()] = part[3:]
        elif len(part) > 1 and part[1].text == "=>":
            given[part[0].text.upper()] = part[2:]
        elif place < len(order):
            given[order[place]] = part
        else:
            raise _wrong(kind, "it has too many arguments")
    unknown = [name for name in given if name not in order]
    missing = [name for name in order[:-1] if name not in given]
    if unknown or missing:
        raise _wrong(kind, f"it has no {unknown[0]}" if unknown else f"its {missing[0]} is missing")
    table, partition = _table(kind, text, given["DATA"])
    descriptor = given["TIMECOL"]
    if len(descriptor) != 4 or descriptor[0].text.upper() != "DESCRIPTOR":
        raise _wrong(kind, "its column of times is not named by DESCRIPTOR(column)")
    lengths = {name: _seconds(kind, given[name]) for name in (*_DURATIONS[kind], "OFFSET") if name in given}
    return _checked(_Window(kind, table, partition, _source(text, descriptor[2:3]), lengths))


def _checked(window: _Window) -> _Window:
    kind, lengths = window.kind, window.lengths
    if any(length <= 0 for name, length in lengths.items() if name != "OFFSET"):
        raise _wrong(kind, "a length of time is not above zero")
    if kind == "SESSION" and "OFFSET" in lengths:
        raise _wrong(kind, "it has no OFFSET")
    if window.partition and kind != "SESSION":
        raise _wrong(kind, "PARTITION BY is for SESSION; group by the columns instead")
    if kind in ("HOP", "CUMULATE"):
        step, size = lengths[_DURATIONS[kind][0]], lengths["SIZE"]
        if size % step:
            raise _wrong(kind, "its SIZE is not a multiple of the other length")
        if size // step > _MOST_WINDOWS:
            raise _wrong(kind, f"a row would be in {size // step:,} windows")
    return window


def _arguments(tokens: list[Token]) -> list[list[Token]]:
    """The tokens between commas outside of brackets. PARTITION BY has commas of its own, up to DESCRIPTOR."""
    parts: list[list[Token]] = [[]]
    depth = 0
    for place, token in enumerate(tokens):
        depth += (token.text == "(") - (token.text == ")")
        following = tokens[place + 1].text.upper() if place + 1 < len(tokens) else ""
        in_partition = "PARTITION" in [each.text.upper() for each in parts[-1]]
        in_partition = in_partition and following not in ("DESCRIPTOR", "TIMECOL")
        if token.text == "," and depth == 0 and not in_partition:
            parts.append([])
        else:
            parts[-1].append(token)
    return parts


def _table(kind: str, text: str, tokens: list[Token]) -> tuple[str, tuple[str, ...]]:
    words = [token.text.upper() for token in tokens]
    if not words or words[0] != "TABLE" or len(words) < 2:
        raise _wrong(kind, "its table is not named by TABLE t")
    end = words.index("PARTITION") if "PARTITION" in words else len(words)
    columns: tuple[str, ...] = ()
    if end < len(words):
        if words[end + 1 : end + 2] != ["BY"] or end + 2 >= len(words):
            raise _wrong(kind, "its PARTITION BY names no column")
        columns = tuple(_source(text, [token]) for token in tokens[end + 2 :] if token.text != ",")
    return _source(text, tokens[1:end]), columns


def _seconds(kind: str, tokens: list[Token]) -> int:
    words = [token.text.upper() for token in tokens]
    if len(words) == 3 and words[0] == "INTERVAL" and words[2].removesuffix("S") in _SECONDS:
        try:
            found = Decimal(words[1].strip("'")) * _SECONDS[words[2].removesuffix("S")]
        except InvalidOperation as error:
            raise _wrong(kind, f"`{tokens[1].text}` is no number") from error
        if found == int(found):
            return int(found)
        raise Unsupported(f"{kind} of parts of a second", hint="choose a length of whole seconds")
    raise _wrong(kind, "a length of time is not written like INTERVAL '10' MINUTE")


def _source(text: str, tokens: list[Token]) -> str:
    return text[tokens[0].start : tokens[-1].end + 1]


def _closing(tokens: list[Token], opening: int) -> int:
    depth = 0
    for index in range(opening, len(tokens)):
        depth += (tokens[index].text == "(") - (tokens[index].text == ")")
        if depth == 0 and tokens[index].token_type != TokenType.STRING:
            return index
    raise _wrong(tokens[opening - 1].text.upper(), "its bracket is not closed")


def _wrong(kind: str, what: str) -> InvalidArgument:
    return InvalidArgument(f"{kind} is not written so: {what}", hint=f"write TABLE({_EXAMPLE[kind]})")


# --- what they mean --------------------------------------------------------------------------------------------------

_CLOCK, _START, _NUMBER = "__clock", "__start", "__number"
"""Columns on the way: the time as the clock shows it, in seconds since 1970; where a window starts; which one it is."""


def _timed(window: _Window) -> str:
    """The rows that have a time, with the second that the clock shows."""
    clock = f"CAST({window.column} AS TIMESTAMP_NTZ)"
    day = f"CAST(datediff(CAST({clock} AS DATE), DATE '1970-01-01') AS BIGINT) * {_DAY}"
    time = f"hour({clock}) * 3600 + minute({clock}) * 60 + second({clock})"
    return (
        f"SELECT *, {day} + {time} - {window.offset} AS {_CLOCK} FROM {window.table} WHERE {window.column} IS NOT NULL"
    )


def _moment(seconds: str) -> str:
    """The clock at so many seconds since 1970."""
    rest = f"pmod({seconds}, {_DAY})"
    day = f"date_add(DATE '1970-01-01', CAST(({seconds} - {rest}) div {_DAY} AS INT))"
    return f"timestampadd(SECOND, CAST({rest} AS INT), CAST({day} AS TIMESTAMP_NTZ))"


def _shown(rows: str, hidden: tuple[str, ...], start: str, end: str) -> str:
    """The columns that are seen: those of the table, and those of the window."""
    return (
        f"SELECT * EXCEPT ({', '.join(hidden)}), {start} AS window_start, {end} AS window_end, "
        f"{end} - INTERVAL '0.001' SECOND AS window_time FROM ({rows})"
    )


def _tumble(window: _Window) -> str:
    size, offset = window.lengths["SIZE"], window.offset
    rows = f"SELECT *, {_CLOCK} - pmod({_CLOCK}, {size}) + {offset} AS {_START} FROM ({_timed(window)})"
    return _shown(rows, (_CLOCK, _START), _moment(_START), _moment(f"({_START} + {size})"))


def _hop(window: _Window) -> str:
    slide, size, offset = window.lengths["SLIDE"], window.lengths["SIZE"], window.offset
    last = f"{_CLOCK} - pmod({_CLOCK}, {slide}) + {offset}"
    rows = (
        f"SELECT *, {last} - {_NUMBER} * {slide} AS {_START} FROM ({_timed(window)}) "
        f"CROSS JOIN LATERAL explode(sequence(0, {size // slide - 1})) AS windows({_NUMBER})"
    )
    return _shown(rows, (_CLOCK, _START, _NUMBER), _moment(_START), _moment(f"({_START} + {size})"))


def _cumulate(window: _Window) -> str:
    step, size, offset = window.lengths["STEP"], window.lengths["SIZE"], window.offset
    rows = (
        f"SELECT *, {_CLOCK} - pmod({_CLOCK}, {size}) + {offset} AS {_START} FROM ({_timed(window)}) "
        f"CROSS JOIN LATERAL explode(sequence(1, {size // step})) AS windows({_NUMBER}) "
        f"WHERE pmod({_CLOCK}, {size}) < {_NUMBER} * {step}"
    )
    return _shown(rows, (_CLOCK, _START, _NUMBER), _moment(_START), _moment(f"({_START} + {_NUMBER} * {step})"))


def _session(window: _Window) -> str:
    """Rows of a partition that follow one another with less than the gap between them are one session."""
    gap, by = window.lengths["GAP"], ", ".join(window.partition)
    clock = f"CAST({window.column} AS TIMESTAMP_NTZ)"
    partition = f"PARTITION BY {by} " if by else ""
    both = f"PARTITION BY {by}, {_NUMBER}" if by else f"PARTITION BY {_NUMBER}"
    ordered = f"{partition}ORDER BY {_CLOCK}"
    timed = f"SELECT *, {clock} AS {_CLOCK} FROM {window.table} WHERE {window.column} IS NOT NULL"
    follows = f"{_CLOCK} < lag({_CLOCK}) OVER ({ordered}) + INTERVAL '{gap}' SECOND"
    marked = f"SELECT *, CASE WHEN {follows} THEN 0 ELSE 1 END AS __first FROM ({timed})"
    numbered = f"SELECT *, sum(__first) OVER ({ordered}) AS {_NUMBER} FROM ({marked})"
    rows = f"SELECT *, min({_CLOCK}) OVER ({both}) AS {_START}, max({_CLOCK}) OVER ({both}) AS __last FROM ({numbered})"
    hidden = (_CLOCK, _START, _NUMBER, "__first", "__last")
    return _shown(rows, hidden, _START, f"__last + INTERVAL '{gap}' SECOND")


_QUERIES = {"TUMBLE": _tumble, "HOP": _hop, "CUMULATE": _cumulate, "SESSION": _session}

__all__ = ["window_edits"]
