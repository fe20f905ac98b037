"""Connections to a log that outlive a task: the next batch often begins where the last one ended, in the same process.

Opening a connection makes the server search its log files for the position. A kept connection saves that; one that
stands elsewhere is replaced, one that the server has ended connects anew, and nothing depends on there being one.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from lakebed.cdc.sources.mysql.log_reader import LogReader
from lakebed.cdc.sources.mysql.position import MariaDbPosition, MySqlPosition
from lakebed.cdc.sources.mysql.settings import ServerSettings
from lakebed.cleanup import on_failure

_KEPT: dict[tuple[ServerSettings, int], LogReader] = {}


@contextmanager
def borrow_reader(
    settings: ServerSettings, start: MariaDbPosition | MySqlPosition, replica_id: int
) -> Iterator[LogReader]:
    """A reader that stands at a position. It is kept if the work with it goes well."""
    key = (settings, replica_id)
    reader = _KEPT.pop(key, None)
    if reader is not None and str(reader.position) != str(start):
        reader.close()
        reader = None
    if reader is None:
        reader = LogReader(settings, start, replica_id)
    with on_failure(reader.close):
        yield reader
    _KEPT[key] = reader


__all__ = ["borrow_reader"]
