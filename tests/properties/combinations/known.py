"""Differences that are known and being mended: each with its reason, and gone from here as soon as it is mended.

A history passes over the operations that are named here, so that it goes on to find what is not known yet.
"""

from __future__ import annotations

from collections.abc import Callable

from tests.properties.combinations.machine import Machine, Operation

Avoided = Callable[[Machine, Operation], bool]

KNOWN: dict[str, Avoided] = {}
"""By reason."""


def avoided(machine: Machine, operation: Operation) -> str | None:
    """The reason to pass over an operation, if there is one."""
    return next((reason for reason, fits in KNOWN.items() if fits(machine, operation)), None)


__all__ = ["KNOWN", "avoided"]
