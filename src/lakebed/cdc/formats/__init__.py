"""Formats of messages, by name: of changes, and of rows."""

from __future__ import annotations

from collections.abc import Collection
from importlib import import_module
from typing import Final

from lakebed.cdc.formats.base import MessageFormat
from lakebed.cdc.formats.reading import AVRO_KEY, Reading
from lakebed.errors import InvalidArgument, did_you_mean

MESSAGE_FORMATS: Final = {
    "debezium-json": ("lakebed.cdc.formats.debezium", "DebeziumJson"),
    "canal-json": ("lakebed.cdc.formats.canal", "CanalJson"),
    "maxwell-json": ("lakebed.cdc.formats.maxwell", "MaxwellJson"),
    "ogg-json": ("lakebed.cdc.formats.ogg", "OggJson"),
    "aws-dms-json": ("lakebed.cdc.formats.aws_dms", "AwsDmsJson"),
    "debezium-avro": ("lakebed.cdc.formats.debezium_avro", "DebeziumAvro"),
    "json": ("lakebed.cdc.formats.rows", "JsonRows"),
    "avro": ("lakebed.cdc.formats.rows", "AvroRows"),
}
"""Module and class of each format."""


def message_format(name: str, modes: Collection[str] = (), reading: Reading | None = None) -> MessageFormat:
    """The format of that name; `modes` are those of the type mapping."""
    kind = format_class(name)
    _check(kind, reading or Reading())
    return kind(modes, reading)


def format_class(name: str) -> type[MessageFormat]:
    """What the format of that name is."""
    known = name.strip().lower().replace("_", "-")
    if known not in MESSAGE_FORMATS:
        raise InvalidArgument(f"there is no message format `{name}`", hint=did_you_mean(known, MESSAGE_FORMATS))
    module, class_name = MESSAGE_FORMATS[known]
    kind: type[MessageFormat] = getattr(import_module(module), class_name)
    return kind


def _check(kind: type[MessageFormat], reading: Reading) -> None:
    """Refuses what is missing, and what nobody would look at."""
    if reading.key is not None and not kind.takes_keys:
        raise InvalidArgument(
            f"`key_format` says nothing of messages of the format `{kind.name}`",
            hint="leave it out: it is for `json` and `avro`, whose messages are rows",
        )
    needs = kind.needs_registry or (reading.key is not None and reading.key.format == AVRO_KEY)
    if needs and reading.registry is None:
        raise InvalidArgument(
            f"the format `{kind.name if kind.needs_registry else AVRO_KEY}` needs a registry of schemas",
            hint="set `registry` to its address, such as http://registry:8081",
        )
    if reading.registry is not None and not needs:
        raise InvalidArgument(
            f"messages of the format `{kind.name}` have no schemas in a registry", hint="leave `registry` out"
        )


__all__ = ["MESSAGE_FORMATS", "MessageFormat", "format_class", "message_format"]
