"""Options of commits: who commits, how often it is tried, what counts as a commit."""

from __future__ import annotations

from typing import Final

from lakebed.options.option import ON_WRITE, WRITES, Kind, Names, Option
from lakebed.units import LONG_MAX, SECOND_MS

_HOOKS: Final = "Java classes can not be called from here; do the work after the write has returned"

COMMIT_USER_PREFIX = Option[str | None](
    "commit.user-prefix",
    Kind.TEXT,
    None,
    "First part of the name under which a writer commits.",
    honoured=True,
    scope=ON_WRITE,
)
COMMIT_MAX_RETRIES = Option(
    "commit.max-retries",
    Kind.INTEGER,
    10,
    "How often a commit is tried again after another writer was faster.",
    minimum=0,
    honoured=True,
    scope=ON_WRITE,
)
COMMIT_TIMEOUT = Option[int | None](
    "commit.timeout",
    Kind.DURATION,
    None,
    "How long a commit is tried again at most.",
    honoured=True,
    scope=ON_WRITE,
)
COMMIT_MIN_RETRY_WAIT = Option(
    "commit.min-retry-wait",
    Kind.DURATION,
    10,
    "Pause before the first new try; it doubles from try to try.",
    honoured=True,
    scope=ON_WRITE,
)
COMMIT_MAX_RETRY_WAIT = Option(
    "commit.max-retry-wait",
    Kind.DURATION,
    10 * SECOND_MS,
    "Longest pause between two tries.",
    honoured=True,
    scope=ON_WRITE,
)
COMMIT_FORCE_CREATE_SNAPSHOT = Option(
    "commit.force-create-snapshot",
    Kind.BOOLEAN,
    False,
    "Create a snapshot even if nothing was written.",
    honoured=True,
    scope=ON_WRITE,
)
SNAPSHOT_IGNORE_EMPTY_COMMIT = Option[bool | None](
    "snapshot.ignore-empty-commit",
    Kind.BOOLEAN,
    None,
    "Create no snapshot when nothing was written; without it, batch writes skip and streams do not.",
    honoured=True,
    scope=ON_WRITE,
)
COMMIT_DISCARD_DUPLICATE_FILES = Option(
    "commit.discard-duplicate-files",
    Kind.BOOLEAN,
    False,
    "Leave out files of a commit that the table has already, instead of refusing the commit.",
    instead="commit each file once",
    scope=ON_WRITE,
)
COMMIT_STRICT_MODE_LAST_SAFE_SNAPSHOT = Option[int | None](
    "commit.strict-mode.last-safe-snapshot",
    Kind.INTEGER,
    None,
    "Refuse a commit if other users compacted or overwrote after this snapshot.",
    minimum=-1,
    maximum=LONG_MAX,
    instead="run one writer at a time",
    scope=ON_WRITE,
    affects=WRITES,
)
VISIBILITY_CALLBACK_ENABLED = Option(
    "visibility-callback.enabled",
    Kind.BOOLEAN,
    False,
    "Let a batch write return only when its rows can be seen; not for tables whose rows wait for somebody else's "
    "compaction.",
    honoured=True,
)
COMMIT_CALLBACKS = Option[Names](
    "commit.callbacks",
    Kind.LIST,
    (),
    "Java classes to call after a commit.",
    instead=f"{_HOOKS}; `t.with_options({{'commit.callbacks': ''}})` leaves them out",
    affects=WRITES,
)
