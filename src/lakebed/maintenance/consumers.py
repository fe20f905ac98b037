"""Consumers that are set, cleared and forgotten when they have not been heard of for long."""

from __future__ import annotations

import re

from lakebed.errors import InvalidArgument, NotFound, did_you_mean
from lakebed.metadata.consumer import Consumer
from lakebed.metadata.stores import MetadataStores


def reset_consumer(stores: MetadataStores, consumer_id: str, next_snapshot: int | None) -> None:
    """Lets a consumer go on at a snapshot; without one, it is forgotten."""
    if next_snapshot is not None:
        stores.consumers.record(consumer_id, next_snapshot)
    elif not stores.consumers.delete(consumer_id):
        known = [consumer.id for consumer in stores.consumers.list()]
        raise NotFound(
            f"{stores.paths.branch_root} has no consumer `{consumer_id}`", hint=did_you_mean(consumer_id, known)
        )


def clear_consumers(stores: MetadataStores, including: str | None, excluding: str | None) -> list[str]:
    """Forgets the consumers whose whole id matches the first pattern and not the second; their ids."""
    wanted = _pattern(".*" if including is None else including)
    spared = None if excluding is None else _pattern(excluding)
    found = [
        consumer.id
        for consumer in stores.consumers.list()
        if wanted.fullmatch(consumer.id) and not (spared and spared.fullmatch(consumer.id))
    ]
    return [consumer_id for consumer_id in found if stores.consumers.delete(consumer_id)]


def expire_consumers(stores: MetadataStores, older_than_ms: int) -> list[Consumer]:
    """Forgets the consumers that recorded nothing since that moment: they would hold snapshots for ever."""
    silent = [consumer for consumer in stores.consumers.list() if consumer.modified_ms < older_than_ms]
    return [consumer for consumer in silent if stores.consumers.delete(consumer.id)]


def _pattern(text: str) -> re.Pattern[str]:
    try:
        return re.compile(text)
    except (re.error, TypeError) as error:
        raise InvalidArgument(f"{text!r} is no pattern: {error}", hint="pass a regular expression") from error
