"""Makes a table ready for a change of what its rows mean: folds them under the old meaning first, and says so.

A full compaction leaves one row of each key on the highest level, no retract and no mark: such rows mean the same under
any option that `options.later` calls "compaction first". It is done by whoever changes the table; and where another
engine, or a rollback, has put rows and options together that do not belong together, by the next who writes.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from dataclasses import replace

from lakebed.commit.replay import CommitIdentity
from lakebed.definition.changelog_rules import FULL_COMPACTION, producer
from lakebed.definition.context import TableContext, num_levels
from lakebed.definition.folded import is_folded
from lakebed.errors import CommitConflict, InvalidArgument, InvalidOption, InvalidSchema
from lakebed.metadata.entries import live_files
from lakebed.metadata.paths import POSTPONE_BUCKET
from lakebed.metadata.snapshot import Snapshot
from lakebed.options import BUCKET, COMMIT_USER_PREFIX, NUM_LEVELS, Options
from lakebed.options.later import Later
from lakebed.rewrite import background
from lakebed.rewrite.bucket import Compactor
from lakebed.rewrite.fitting_values import check_values_fit
from lakebed.rewrite.settle import latest_once
from lakebed.rewrite.small_files import AppendCompactor
from lakebed.schema.later import Verdict, judged
from lakebed.schema.table_schema import TableSchema
from lakebed.write.waiting_rows import WaitingRows

_log = logging.getLogger(__name__)

_READ_INSTEAD = "read the rows with VERSION AS OF, and insert them into the table as it is now"


def prepare_change(context: TableContext, before: TableSchema, after: TableSchema) -> None:
    """Does what a change of the schema asks for before it may be published, or refuses it."""
    snapshot = context.stores.snapshots.latest()
    if snapshot is None:
        return
    verdicts = judged(before, after)
    stored = _under(context, before)
    check_values_fit(stored, snapshot, [verdict for verdict in verdicts if verdict.must_fit])
    fold(stored, verdicts, after)
    # Rows may be older than the last change. What they do not bear must not be published: nobody could write after it.
    _check_stored(context, after, hint="write to the table before this change, or copy its rows to a new one")


def fold_stored(context: TableContext) -> None:
    """Folds rows that were written under another meaning than the table has now, if there are any.

    What can not be folded away is refused: whoever has changed the table must change it back.
    """
    snapshot = context.stores.snapshots.latest()
    if snapshot is None or snapshot.schema_id == context.schema.id or context.keeps_schema:
        return
    then = context.schemas.get(snapshot.schema_id)
    hint = f"change it back with the engine that changed it, or copy the rows of snapshot {snapshot.id} to a new table"
    _check_stored(context, context.schema, hint)
    fold(_under(context, then), judged(then, context.schema), context.schema)


def check_may_return(context: TableContext, snapshot: Snapshot) -> None:
    """Raises if the rows of an earlier snapshot can not be those of the table as it is defined now."""
    then = context.schemas.get(snapshot.schema_id)
    verdicts = judged(then, context.schema)
    problem = next((verdict for verdict in verdicts if verdict.later in (Later.EMPTY, Later.NEVER)), None)
    if problem is not None:
        raise InvalidArgument(
            f"table `{context.name}`: after snapshot {snapshot.id} somebody let {problem.what} {problem.step}, so its "
            f"rows can not come back: {problem.reason}",
            hint=_READ_INSTEAD,
        )
    if any(verdict.later is Later.COMPACTION for verdict in verdicts):
        _check_levels(context, snapshot, context.schema, hint=_READ_INSTEAD)
    try:
        check_values_fit(_under(context, then), snapshot, [verdict for verdict in verdicts if verdict.must_fit])
    except InvalidSchema as error:
        raise InvalidArgument(
            f"rows of snapshot {snapshot.id} can not come back: {error.message}", hint=_READ_INSTEAD
        ) from error


def fold(context: TableContext, verdicts: Sequence[Verdict], after: TableSchema) -> None:
    """Folds all rows under the context's schema if a change (to `after`) asks for it, until nothing is left to fold."""
    folding = [verdict for verdict in verdicts if verdict.later is Later.COMPACTION]
    placing = [verdict for verdict in verdicts if verdict.later is Later.PLACING]
    if not folding and not placing:
        return
    context = _with_levels_of(context, after)
    background.wait_for(context.paths.root)
    snapshot = context.stores.snapshots.latest()
    if folding and not _tells_fully(context, context.schema):
        _check_levels(context, snapshot, after)  # a compaction leaves them as high as they are

    def is_ready(snapshot: Snapshot | None) -> bool:
        return not _has_waiting_rows(context, snapshot) and (not folding or is_folded(context, snapshot))

    if not is_ready(snapshot):
        _say(context, (*folding, *placing) if _has_waiting_rows(context, snapshot) else folding)
    latest_once(
        context,
        is_ready,
        lambda: _fold(context, after, fully=bool(folding)),
        CommitConflict(
            f"table `{context.name}`: others write faster than its rows can be folded, which must come before "
            f"{(folding or placing)[0].what} changes",
            hint="stop the writers for a moment, then change it again",
        ),
    )


def _under(context: TableContext, schema: TableSchema) -> TableContext:
    """The table under a schema of its own past, without what a handle has set."""
    return replace(context.with_schema(schema, Options(schema.options)), keeps_schema=True)


def _fold(context: TableContext, after: TableSchema, *, fully: bool) -> None:
    identity = CommitIdentity((context.options[COMMIT_USER_PREFIX] or "") + context.ids.new_id())
    # Partitions that have no buckets yet get as many as the next rows will be written to: others would be refused.
    buckets = Options(after.options)[BUCKET]
    WaitingRows(context, fixed_count=buckets if buckets > 0 else None).place(identity)
    if fully and context.has_key:
        Compactor(context, full=True).run(identity)
    elif fully:
        AppendCompactor(context, full=True).run(identity)


def _say(context: TableContext, verdicts: Iterable[Verdict]) -> None:
    for verdict in verdicts:
        done = "compacted fully" if verdict.later is Later.COMPACTION else "rows that wait are brought to their buckets"
        _log.warning("table `%s`: %s before %s changes, since %s", context.name, done, verdict.what, verdict.reason)


def _has_waiting_rows(context: TableContext, snapshot: Snapshot | None) -> bool:
    return any(entry.bucket == POSTPONE_BUCKET for entry in live_files(context.stores, snapshot))


def _check_stored(context: TableContext, after: TableSchema, hint: str) -> None:
    """Raises if the rows of the latest snapshot can not be those of a table with this schema."""
    snapshot = context.stores.snapshots.latest()
    if snapshot is None or snapshot.schema_id == after.id:
        return
    for verdict in judged(context.schemas.get(snapshot.schema_id), after):
        if verdict.later in (Later.EMPTY, Later.NEVER) and _has_files(context, snapshot):
            raise InvalidOption(
                f"table `{context.name}`: schema {after.id} lets {verdict.what} {verdict.step}, although rows are "
                f"stored: {verdict.reason}",
                hint=hint,
            )


def _with_levels_of(context: TableContext, after: TableSchema) -> TableContext:
    """The table with as many levels as it will have, where full compactions will tell: by what lies on the highest."""
    if not _tells_fully(context, after):
        return context
    levels = {NUM_LEVELS.key: str(num_levels(Options(after.options)))}
    return context.with_schema(context.schema, Options({**context.options.raw, **levels}))


def _tells_fully(context: TableContext, schema: TableSchema) -> bool:
    return context.has_key and producer(Options(schema.options)) == FULL_COMPACTION


def _check_levels(
    context: TableContext, snapshot: Snapshot | None, after: TableSchema, hint: str | None = None
) -> None:
    """Raises if full compactions are to tell of rows, and some lie on a level that the table does not have any more.

    A compaction puts what it merges right below them: on a level that counts as told, and nobody was told.
    """
    if not _tells_fully(context, after):
        return
    count = num_levels(Options(after.options))
    highest = max((entry.file.level for entry in live_files(context.stores, snapshot)), default=0)
    if highest >= count:
        raise InvalidOption(
            f"table `{context.name}`: rows lie on level {highest}, from when there were more levels than {count}, and "
            f"producer `{FULL_COMPACTION}` tells by the highest",
            hint=hint or f"set `{NUM_LEVELS.key}` to {highest + 1} with the same change",
        )


def _has_files(context: TableContext, snapshot: Snapshot) -> bool:
    return bool(live_files(context.stores, snapshot))


__all__ = ["check_may_return", "fold", "fold_stored", "prepare_change"]
