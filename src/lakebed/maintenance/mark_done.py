"""Tells others that partitions are complete: a marker file in the partition, or a message to an address."""

from __future__ import annotations

import contextlib
import json
import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from lakebed.definition.context import TableContext
from lakebed.definition.partition_spec import Overwrite
from lakebed.errors import FileMissing, InvalidArgument, LakebedError, StorageError, Unsupported, did_you_mean
from lakebed.maintenance.partitions import check_partitioned
from lakebed.metadata.json_file import JsonFile
from lakebed.metadata.paths import partition_path
from lakebed.options import (
    PARTITION_DEFAULT_NAME,
    PARTITION_LEGACY_NAME,
    PARTITION_MARK_DONE_ACTION,
    PARTITION_MARK_DONE_ACTION_HTTP_PARAMS,
    PARTITION_MARK_DONE_ACTION_HTTP_URL,
)

_log = logging.getLogger(__name__)
_MARKER = "_SUCCESS"
_TIMEOUT_SECONDS = 30


def mark_done(context: TableContext, specs: Sequence[Mapping[str, Any]]) -> list[str]:
    """Does what the table's option says for each of these partitions; their directories."""
    check_partitioned(context)
    directories = [_directory(context, spec) for spec in specs]
    actions = _actions(context)
    for directory in directories:
        for act in actions:
            act(context, directory)
    return directories


def mark_done_after_commit(context: TableContext, partitions: set[bytes]) -> None:
    """Marks the partitions of a batch job. The commit stands whatever happens."""
    if not context.schema.partition_keys:
        return
    try:
        actions = _actions(context)
        for directory in sorted(context.partition_directory(partition) for partition in partitions):
            for act in actions:
                act(context, directory)
    except LakebedError as error:
        _log.warning("table %s: partitions were not marked done: %s", context.name, error.message)


def _directory(context: TableContext, spec: Mapping[str, Any]) -> str:
    keys = context.schema.partition_keys
    if not isinstance(spec, Mapping) or set(spec) != set(keys):
        raise InvalidArgument(
            f"{spec!r} does not name one partition of table `{context.name}`",
            hint=f"give a value for each of {', '.join(keys)}",
        )
    values = Overwrite.parse(context, dict(spec)).spec or {}
    return partition_path(
        keys,
        context.partition_types,
        [values[key] for key in keys],
        default_name=context.options[PARTITION_DEFAULT_NAME],
        legacy=context.options[PARTITION_LEGACY_NAME],
    )


def _actions(context: TableContext) -> list[Callable[[TableContext, str], None]]:
    names = context.options[PARTITION_MARK_DONE_ACTION]
    for name in names:
        if name in ("done-partition", "mark-event"):
            raise Unsupported(
                f"table `{context.name}`: `{name}` marks partitions in a metastore, and there is none",
                hint=f"set option `{PARTITION_MARK_DONE_ACTION.key}` to {' or '.join(_ACTIONS)}",
            )
        if name not in _ACTIONS:
            raise Unsupported(
                f"table `{context.name}`: partitions can not be marked done by `{name}`",
                hint=did_you_mean(name, _ACTIONS),
            )
    return [_ACTIONS[name] for name in names]


def _write_marker(context: TableContext, directory: str) -> None:
    write_marker(context, f"{context.paths.root}/{directory}/{_MARKER}")


def write_marker(context: TableContext, path: str) -> None:
    """A small JSON file that says when something was done first, and when last."""
    now_ms = context.clock.now_ms()
    created_ms = now_ms
    with contextlib.suppress(FileMissing):
        created_ms = JsonFile(context.fileio.read_bytes(path), path).optional_integer("creationTime") or now_ms
    body = {"creationTime": created_ms, "modificationTime": now_ms}
    context.fileio.overwrite(path, json.dumps(body, indent=2).encode())


def _report(context: TableContext, directory: str) -> None:
    # Not at the top: it takes long to load, and hardly anybody needs it.
    from urllib.error import URLError
    from urllib.request import Request, urlopen

    url = context.options[PARTITION_MARK_DONE_ACTION_HTTP_URL]
    if url is None or not url.startswith(("http://", "https://")):
        raise InvalidArgument(
            f"table `{context.name}`: `http-report` has no address to report to",
            hint=f"set option `{PARTITION_MARK_DONE_ACTION_HTTP_URL.key}`",
        )
    body = {
        "table": context.name,
        "partition": directory,
        "params": context.options[PARTITION_MARK_DONE_ACTION_HTTP_PARAMS],
        "path": context.paths.root,
    }
    request = Request(url, json.dumps(body).encode(), {"Content-Type": "application/json"}, method="POST")
    try:
        with urlopen(request, timeout=_TIMEOUT_SECONDS) as answer:
            result = json.loads(answer.read() or b"{}").get("result")
    except (URLError, OSError, ValueError, AttributeError) as error:
        raise StorageError(f"{url} did not take the report of {directory}: {error}", hint="try again") from error
    if str(result).lower() != "success":
        raise StorageError(f"{url} answered `{result}` to the report of {directory}", hint="look there for the reason")


_ACTIONS: dict[str, Callable[[TableContext, str], None]] = {"success-file": _write_marker, "http-report": _report}
