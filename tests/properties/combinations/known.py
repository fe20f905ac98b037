"""Differences that are known and being mended: each with its reason, and gone from here as soon as it is mended.

A history passes over the operations that are named here, so that it goes on to find what is not known yet.
"""

from __future__ import annotations

from collections.abc import Callable

from tests.properties.combinations.machine import Machine, Operation

Avoided = Callable[[Machine, Operation], bool]

_REPLACING = ("overwrite", "truncate", "drop_partition", "rescale", "sql_overwrite")


def _name(operation: Operation) -> str:
    return str(operation.arguments["operation"][0]) if operation.name == "crash" else operation.name


KNOWN: dict[str, Avoided] = {
    "rollback_to_as_latest brings files back that later commits take for deleted": lambda machine, operation: (
        _name(operation) == "rollback_to_as_latest"
    ),
    "rescale reads visible rows only": lambda machine, operation: (
        _name(operation) == "rescale" and machine.meaning.hides
    ),
    "retracts that an engine can not take are accepted": lambda machine, operation: operation.name == "bad_write",
    "options that change what stored rows mean are mutable": lambda machine, operation: (
        operation.name in ("set_option", "write_with_options", "change_type")
    ),
    "waiting rows are numbered when they are placed": lambda machine, operation: (
        machine.meaning.postpones and _name(operation) in ("stream_write", "rescale")
    ),
    "what replaces rows tells no changes": lambda machine, operation: (
        machine.meaning.tells_all and _name(operation) in _REPLACING
    ),
}
"""By reason."""


def avoided(machine: Machine, operation: Operation) -> str | None:
    """The reason to pass over an operation, if there is one."""
    return next((reason for reason, fits in KNOWN.items() if fits(machine, operation)), None)


__all__ = ["KNOWN", "avoided"]
