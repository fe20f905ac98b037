"""What commands that run until somebody has seen enough share: Ctrl-C, which lets what is under way be finished, and
`--metrics`, which shows their numbers meanwhile."""

from __future__ import annotations

import argparse
import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from lakebed import metrics
from lakebed.cli.command import Parser
from lakebed.errors import InvalidArgument
from lakebed.table.compact_follow import Stop

_VARIABLE = "LAKEBED_METRICS"
_OPENTELEMETRY = "opentelemetry"


@contextmanager
def interruptible() -> Iterator[Stop]:
    """Says to stop once a signal to end came; a second one interrupts."""
    came: list[int] = []

    def end(number: int, frame: FrameType | None) -> None:
        if came:
            raise KeyboardInterrupt
        came.append(number)

    before = {number: signal.signal(number, end) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield Stop(lambda: bool(came))
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


# --- --metrics --------------------------------------------------------------------------------------------------------


def add_metrics(parser: Parser) -> None:
    """Adds the argument."""
    text = (
        "show metrics to Prometheus there, such as at 127.0.0.1:9464 (port 0: one that is free), or record them with "
        f"`{_OPENTELEMETRY}`; default: ${_VARIABLE}, or nothing"
    )
    parser.add_argument("--metrics", metavar="HOST:PORT", help=text)


@contextmanager
def measured(given: argparse.Namespace) -> Iterator[None]:
    """Shows metrics as long as the block runs, if that is asked for, and says where."""
    asked = given.metrics or os.environ.get(_VARIABLE)
    if not asked:
        yield
    elif asked == _OPENTELEMETRY:
        metrics.use_opentelemetry()
        yield
    else:
        with metrics.serve(asked) as endpoint:
            print(f"metrics: {endpoint.url}", file=sys.stderr, flush=True)  # noqa: T201
            yield


def refuse_metrics(given: argparse.Namespace) -> None:
    """Of a run that is over before anybody scrapes it."""
    if given.metrics:
        raise InvalidArgument("--metrics is for runs that go on", hint="add --follow, or leave --metrics out")


__all__ = ["add_metrics", "interruptible", "measured", "refuse_metrics"]
