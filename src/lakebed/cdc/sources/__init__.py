"""Sources of changes, by name. Each is loaded when it is asked for: they need packages of their own."""

from __future__ import annotations

from importlib import import_module
from typing import Any, Final

from lakebed.cdc.sources.base import ChangeSource, SourceProgress
from lakebed.errors import InvalidArgument, did_you_mean

CHANGE_SOURCES: Final = {
    "postgres": ("lakebed.cdc.sources.postgres", "PostgresSource"),
    "mysql": ("lakebed.cdc.sources.mysql", "MySqlSource"),
    "kafka": ("lakebed.cdc.sources.kafka", "KafkaSource"),
    "files": ("lakebed.cdc.sources.files", "FilesSource"),
}
"""Module and class of each source."""


def source_class(name: str) -> type[ChangeSource]:
    """The class of the source of that name."""
    if name not in CHANGE_SOURCES:
        raise InvalidArgument(f"there is no source `{name}`", hint=did_you_mean(name, CHANGE_SOURCES))
    module, class_name = CHANGE_SOURCES[name]
    kind: type[ChangeSource] = getattr(import_module(module), class_name)
    return kind


def open_source(name: str, **options: Any) -> ChangeSource:
    """A source by its name, with the arguments of its class."""
    return source_class(name)(**options)


__all__ = ["CHANGE_SOURCES", "ChangeSource", "SourceProgress", "open_source", "source_class"]
