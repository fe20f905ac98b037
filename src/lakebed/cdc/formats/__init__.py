"""Formats of change messages, by name."""

from __future__ import annotations

from collections.abc import Collection
from importlib import import_module
from typing import Final

from lakebed.cdc.formats.base import MessageFormat
from lakebed.errors import InvalidArgument, did_you_mean

MESSAGE_FORMATS: Final = {
    "debezium-json": ("lakebed.cdc.formats.debezium", "DebeziumJson"),
    "canal-json": ("lakebed.cdc.formats.canal", "CanalJson"),
    "maxwell-json": ("lakebed.cdc.formats.maxwell", "MaxwellJson"),
}
"""Module and class of each format."""


def message_format(name: str, modes: Collection[str] = ()) -> MessageFormat:
    """The format of that name; `modes` are those of the type mapping."""
    known = name.strip().lower().replace("_", "-")
    if known not in MESSAGE_FORMATS:
        raise InvalidArgument(f"there is no message format `{name}`", hint=did_you_mean(known, MESSAGE_FORMATS))
    module, class_name = MESSAGE_FORMATS[known]
    kind: type[MessageFormat] = getattr(import_module(module), class_name)
    return kind(modes)


__all__ = ["MESSAGE_FORMATS", "MessageFormat", "message_format"]
