"""What Prometheus reads: the text exposition format 0.0.4. Every family is there, also one without a number yet."""

from __future__ import annotations

from collections.abc import Iterator

from lakebed.metrics.board import Board, Series, Spread
from lakebed.metrics.instruments import Instrument

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"


def exposition(board: Board) -> str:
    """All families of a board."""
    return "".join(f"{line}\n" for instrument, series in board.read() for line in _family(instrument, series))


def _family(instrument: Instrument, series: Series) -> Iterator[str]:
    name = instrument.name
    yield f"# HELP {name} {_escaped(instrument.says)}"
    yield f"# TYPE {name} {instrument.kind}"
    for values, value in sorted(series.items(), key=lambda each: each[0]):
        labels = list(zip(instrument.labels, values, strict=True))
        if not isinstance(value, Spread):
            yield f"{name}{_braces(labels)} {_number(value)}"
            continue
        for bound, count in value.up_to():
            yield f"{name}_bucket{_braces([*labels, ('le', _number(bound))])} {count}"
        yield f"{name}_sum{_braces(labels)} {_number(value.sum)}"
        yield f"{name}_count{_braces(labels)} {value.count}"


def _braces(labels: list[tuple[str, str]]) -> str:
    return "{" + ",".join(f'{name}="{_quoted(value)}"' for name, value in labels) + "}"


def _escaped(text: str) -> str:
    return text.replace("\\", r"\\").replace("\n", r"\n")


def _quoted(value: str) -> str:
    return _escaped(value).replace('"', r"\"")


def _number(value: float) -> str:
    if value == float("inf"):
        return "+Inf"
    return str(int(value)) if value == int(value) else repr(float(value))


__all__ = ["CONTENT_TYPE", "exposition"]
