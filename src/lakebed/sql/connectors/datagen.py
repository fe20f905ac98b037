"""`datagen`: rows that are made up. Row n is a function of n and of the table's name, so a place can be returned to.

All values of a batch are made at once: a counter, mixed with a seed for each column, gives as many random bits as are
needed. Where a batch begins changes nothing in its rows.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from decimal import Decimal

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lakebed.clock import Clock, SystemClock
from lakebed.errors import InvalidOption, Unsupported
from lakebed.sql.connectors.definition import ConnectorDefinition
from lakebed.sql.connectors.options import DURATION, NUMBER, WHOLE, ConnectorOption, refused
from lakebed.sql.connectors.table import ConnectorTable
from lakebed.types.arrow import to_arrow_schema, to_arrow_type
from lakebed.types.logical import AtomicType, DataField, TypeRoot
from lakebed.units import parse_duration

Numbers = npt.NDArray[np.uint64]

_BITS = {TypeRoot.TINYINT: 8, TypeRoot.SMALLINT: 16, TypeRoot.INT: 32, TypeRoot.BIGINT: 64}
_FLOATS = {TypeRoot.FLOAT: float(np.finfo(np.float32).max), TypeRoot.DOUBLE: float(np.finfo(np.float64).max)}
_TEXTS = (TypeRoot.CHAR, TypeRoot.VARCHAR, TypeRoot.BINARY, TypeRoot.VARBINARY)
_MOMENTS = (TypeRoot.TIMESTAMP, TypeRoot.TIMESTAMP_LTZ)
_DAY_MS = 86_400_000
_LETTERS = np.frombuffer(b"0123456789abcdef", np.uint8)
_LENGTH = 100
_MOST_BATCH_ROWS = 1 << 20


def _kind(table: ConnectorTable, column: str) -> str:
    return table.required(f"fields.{column}.kind") if f"fields.{column}.kind" in table.options else "random"


def _check(table: ConnectorTable) -> None:
    for field in table.columns:
        root = field.type.root if isinstance(field.type, AtomicType) else None
        known = (TypeRoot.BOOLEAN, TypeRoot.DECIMAL, TypeRoot.DATE, *_BITS, *_FLOATS, *_TEXTS, *_MOMENTS)
        if root not in known:
            raise Unsupported(
                f"table `{table.full_name}`: connector `datagen` makes no values of type {field.type} "
                f"for column `{field.name}`",
                hint="compute it from other columns: `c AS expression`",
            )
        if _kind(table, field.name) == "sequence":
            _check_sequence(table, field, root)
        else:
            _check_random(table, field)
        _maker(table, field)  # bounds that the type does not hold


def _check_sequence(table: ConnectorTable, field: DataField, root: TypeRoot | None) -> None:
    bounds = [f"fields.{field.name}.{word}" for word in ("start", "end")]
    missing = [name for name in bounds if name not in table.options]
    if missing:
        raise InvalidOption(
            f"table `{table.full_name}`: a sequence needs {' and '.join(f'`{name}`' for name in missing)}",
            hint="give the first and the last value",
        )
    if root not in (*_BITS, *_FLOATS, TypeRoot.DECIMAL, *_TEXTS):
        raise Unsupported(
            f"table `{table.full_name}`: column `{field.name}` of type {field.type} can not be a sequence",
            hint=f"leave `fields.{field.name}.kind` out",
        )
    if table.whole(bounds[0]) > table.whole(bounds[1]):  # type: ignore[operator]
        raise InvalidOption(
            f"table `{table.full_name}`: `{bounds[0]}` is above `{bounds[1]}`", hint="give the smaller number first"
        )


def _check_random(table: ConnectorTable, field: DataField) -> None:
    least, most = (table.option(f"fields.{field.name}.{word}") for word in ("min", "max"))
    if least is not None and most is not None and Decimal(least) > Decimal(most):
        raise InvalidOption(
            f"table `{table.full_name}`: `fields.{field.name}.min` is above `fields.{field.name}.max`",
            hint="give the smaller number first",
        )


def row_count(table: ConnectorTable) -> int | None:
    """How many rows there are; None if they never end. A sequence that is used up ends them as well."""
    found = [table.whole("number-of-rows")]
    for field in table.columns:
        if _kind(table, field.name) == "sequence":
            start, end = (table.whole(f"fields.{field.name}.{word}") for word in ("start", "end"))
            assert start is not None
            assert end is not None
            found.append(end - start + 1)
    known = [each for each in found if each is not None]
    return min(known) if known else None


DATAGEN = ConnectorDefinition(
    "datagen",
    "rows that are made up",
    (
        ConnectorOption("rows-per-second", "how fast rows come; a plain SELECT does not wait", WHOLE, default="10000"),
        ConnectorOption("number-of-rows", "how many rows there are; without it they never end", WHOLE),
        ConnectorOption("fields.#.kind", "`random`, or `sequence`", default="random", choices=("random", "sequence")),
        ConnectorOption("fields.#.min", "the least random number", NUMBER),
        ConnectorOption("fields.#.max", "the greatest random number", NUMBER),
        ConnectorOption("fields.#.max-past", "how far back random times reach", DURATION),
        ConnectorOption("fields.#.length", "the length of random texts", WHOLE, default="100"),
        ConnectorOption("fields.#.start", "the first number of a sequence", WHOLE),
        ConnectorOption("fields.#.end", "the last number of a sequence", WHOLE),
        ConnectorOption("fields.#.null-rate", "how many of the values are null, from 0 to 1", NUMBER, default="0"),
        ConnectorOption("landing.*", "an option of the table of the lake that rows land in"),
        refused("fields.#.var-len", "leave it out: texts have the given length"),
        refused("scan.*", "leave it out: one process makes the rows"),
    ),
    is_source=True,
    check=_check,
    is_bounded=lambda table: row_count(table) is not None,
)


class DatagenReader:
    """Makes the rows of a table from a position: the number of the next row, and when the first one was made."""

    def __init__(self, table: ConnectorTable, *, paced: bool = True, clock: Clock | None = None) -> None:
        self._table = table
        self._clock = clock or SystemClock()
        self._count = row_count(table)
        self._rate = table.whole("rows-per-second") or 0
        self._paced = paced and self._rate > 0
        self._begun: tuple[int, int] | None = None
        """When this reader began, and at which row: it makes up for no time at which it did not run."""
        self._makers = [(field, _maker(table, field)) for field in table.columns]
        self.schema = to_arrow_schema(table.columns)
        """The columns of what it reads."""

    def read(self, position: str | None, limit_rows: int) -> tuple[pa.Table, str, bool]:
        """Rows from a position on, the position after them, and whether they were the last."""
        now = self._clock.now_ms()
        place = {"row": 0, "since_ms": now} if position is None else json.loads(position)
        first, since = int(place["row"]), int(place["since_ms"])
        if self._begun is None:
            self._begun = (now, first)
        size = min(limit_rows, _MOST_BATCH_ROWS)
        if self._paced:
            due = (now - self._begun[0]) * self._rate // 1000 + 1
            size = min(size, max(0, due - (first - self._begun[1])))
        if self._count is not None:
            size = min(size, max(0, self._count - first))
        rows = np.arange(first, first + size, dtype=np.uint64)
        columns = [make(rows, since).cast(self.schema.field(field.name).type) for field, make in self._makers]
        found = pa.Table.from_arrays(columns, schema=self.schema)
        is_end = self._count is not None and first + size >= self._count
        return found, json.dumps({"row": first + size, "since_ms": since}), is_end

    def progress(self, position: str | None) -> tuple[int, int]:
        """Rows that are made, and how many there will be; as many again if they never end."""
        made = 0 if position is None else int(json.loads(position)["row"])
        return made, made if self._count is None else self._count


_Maker = Callable[[Numbers, int], pa.Array]


def _maker(table: ConnectorTable, field: DataField) -> _Maker:
    """What makes the values of a column from numbers of rows, and the time of the first one."""
    assert isinstance(field.type, AtomicType)
    name = field.name
    seed = int.from_bytes(hashlib.sha256(f"{table.full_name}/{name}".encode()).digest()[:8], "little")
    values = _sequence(table, field) if _kind(table, name) == "sequence" else _random(table, field, seed)
    rate = float(table.option(f"fields.{name}.null-rate") or 0)
    if rate <= 0:
        return values

    def some_null(rows: Numbers, since: int) -> pa.Array:
        made = values(rows, since)
        hidden = pa.array(_part(rows, seed + 1) < rate)
        return pa.compute.if_else(hidden, pa.scalar(None, made.type), made)

    return some_null


def _mixed(rows: Numbers, seed: int) -> Numbers:
    """64 random bits for each number: the finisher of splitmix64."""
    with np.errstate(over="ignore"):
        z = rows * np.uint64(0x9E3779B97F4A7C15) + np.uint64(seed & 0xFFFFFFFFFFFFFFFF)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return z ^ (z >> np.uint64(31))


def _part(rows: Numbers, seed: int) -> npt.NDArray[np.float64]:
    """A number from 0 up to 1 for each row."""
    return (_mixed(rows, seed) >> np.uint64(11)).astype(np.float64) / float(1 << 53)


def _sequence(table: ConnectorTable, field: DataField) -> _Maker:
    start = table.whole(f"fields.{field.name}.start")
    assert start is not None
    target = to_arrow_type(field.type)

    def make(rows: Numbers, _: int) -> pa.Array:
        numbers = pa.array(rows.astype(np.int64) + start)
        return numbers.cast(pa.string()).cast(target) if not _is_number(field) else numbers.cast(target)

    return make


def _is_number(field: DataField) -> bool:
    return isinstance(field.type, AtomicType) and field.type.root in (*_BITS, *_FLOATS, TypeRoot.DECIMAL)


def _random(table: ConnectorTable, field: DataField, seed: int) -> _Maker:
    data_type = field.type
    assert isinstance(data_type, AtomicType)
    root = data_type.root
    if root is TypeRoot.BOOLEAN:
        return lambda rows, _: pa.array(_mixed(rows, seed) >> np.uint64(63) == 1)
    if root in _BITS or root is TypeRoot.DECIMAL:
        return _random_whole(table, field, seed)
    if root in _FLOATS:
        least, most = _float_bounds(table, field.name, _FLOATS[root])
        return lambda rows, _: pa.array(least * (1 - (part := _part(rows, seed))) + most * part)
    if root in _TEXTS:
        length = table.whole(f"fields.{field.name}.length") if f"fields.{field.name}.length" in table.options else None
        return _random_text(seed, _length(data_type, length))
    return _random_moment(table, field, seed)


def _length(data_type: AtomicType, given: int | None) -> int:
    if data_type.root in (TypeRoot.CHAR, TypeRoot.BINARY):
        return data_type.length
    return min(given if given is not None else _LENGTH, data_type.length)


def _float_bounds(table: ConnectorTable, name: str, most: float) -> tuple[float, float]:
    least_given, most_given = (table.option(f"fields.{name}.{word}") for word in ("min", "max"))
    return (
        float(least_given) if least_given is not None else -most,
        float(most_given) if most_given is not None else most,
    )


def _random_whole(table: ConnectorTable, field: DataField, seed: int) -> _Maker:
    """Whole numbers between two bounds, both included; for DECIMAL in units of its last digit."""
    data_type = field.type
    assert isinstance(data_type, AtomicType)
    target = to_arrow_type(data_type)
    if data_type.root is TypeRoot.DECIMAL:
        scale, digits = data_type.scale, min(data_type.precision, 18)
        least, most = 1 - 10**digits, 10**digits - 1
    else:
        scale = 0
        least, most = -(1 << (_BITS[data_type.root] - 1)), (1 << (_BITS[data_type.root] - 1)) - 1
    bounds = []
    for word, natural in (("min", least), ("max", most)):
        given = table.option(f"fields.{field.name}.{word}")
        bounds.append(natural if given is None else int(Decimal(given).scaleb(scale)))
    if bounds[0] < least or bounds[1] > most:
        raise InvalidOption(
            f"table `{table.full_name}`: the bounds of column `{field.name}` do not fit into {data_type}",
            hint="give numbers that the type holds",
        )
    low, span = bounds[0], bounds[1] - bounds[0] + 1

    def make(rows: Numbers, _: int) -> pa.Array:
        bits = _mixed(rows, seed)
        with np.errstate(over="ignore"):
            offset = bits if span >= 1 << 64 else bits % np.uint64(span)
            numbers = (offset + np.uint64(low & 0xFFFFFFFFFFFFFFFF)).view(np.int64)
        if data_type.root is not TypeRoot.DECIMAL:
            return pa.array(numbers).cast(target)
        return _as_decimal(numbers, data_type)

    return make


def _as_decimal(numbers: npt.NDArray[np.int64], data_type: AtomicType) -> pa.Array:
    """Numbers of last digits as decimals: 128 bits each, the upper half the sign."""
    halves = np.empty((len(numbers), 2), np.int64)
    halves[:, 0], halves[:, 1] = numbers, numbers >> 63
    return pa.Array.from_buffers(
        pa.decimal128(data_type.precision, data_type.scale), len(numbers), [None, pa.py_buffer(halves.tobytes())]
    )


def _random_text(seed: int, length: int) -> _Maker:
    """Hexadecimal digits, as Flink's."""

    def make(rows: Numbers, _: int) -> pa.Array:
        digits = np.empty((len(rows), length), np.uint8)
        for block in range(0, length, 16):  # 64 bits are sixteen digits
            bits = _mixed(rows, seed + 2 + block)
            for place in range(min(16, length - block)):
                digits[:, block + place] = _LETTERS[(bits >> np.uint64(4 * place)) & np.uint64(15)]
        offsets = (np.arange(len(rows) + 1, dtype=np.int64) * length).astype(np.int32)
        return pa.Array.from_buffers(
            pa.string(), len(rows), [None, pa.py_buffer(offsets.tobytes()), pa.py_buffer(digits.tobytes())]
        )

    return make


def _random_moment(table: ConnectorTable, field: DataField, seed: int) -> _Maker:
    """Times go on with the rows, at their rate, from when the first row was made; up to `max-past` earlier."""
    past_given = table.option(f"fields.{field.name}.max-past")
    past = 0 if past_given is None else parse_duration(past_given)
    rate = max(1, table.whole("rows-per-second") or 1)
    assert isinstance(field.type, AtomicType)
    is_day = field.type.root is TypeRoot.DATE

    def make(rows: Numbers, since: int) -> pa.Array:
        millis = since + (rows.astype(np.int64) * 1000) // rate
        if past:
            millis = millis - (_part(rows, seed) * past).astype(np.int64)
        if is_day:
            return pa.array((millis // _DAY_MS).astype(np.int32)).cast(pa.date32())
        return pa.array(millis).cast(pa.timestamp("ms"))

    return make
