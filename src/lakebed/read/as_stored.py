"""Which files hold just the rows that a table shows, so that another engine may read them without us.

Nothing may have to be merged, left out, renamed, converted or filled in; rows that are marked as deleted are the one
thing that a reader may be able to see to, so they are its own question.
"""

from __future__ import annotations

from collections.abc import Sequence

from lakebed.definition.context import TableContext
from lakebed.formats import format_of_file
from lakebed.lsm.merge_runs import came_one_after_the_other
from lakebed.lsm.sections import Section, SortedRun
from lakebed.merge.deduplicate import Deduplicate
from lakebed.metadata.data_file import DataFile
from lakebed.options import IGNORE_DELETE, MERGE_ENGINE
from lakebed.read.reader import SplitReader
from lakebed.read.splits import Split, needs_merge
from lakebed.records import dataclass
from lakebed.schema.evolution import map_fields
from lakebed.types.logical import DataField, TypeRoot, is_root


def shows_what_is_stored(reader: SplitReader) -> bool:
    """Whether values of the columns that are read stand in files as the table shows them."""
    context = reader.context
    hidden = {field.name for field in context.hidden_fields}
    return (
        not context.shown_defaults
        and not context.is_first_row
        and not any(field.name in hidden for field in reader.needed)
    )


def is_as_stored(reader: SplitReader, split: Split, section: Section) -> bool:
    """Whether the Parquet files of a section hold the rows that the table shows, under the same names and types.

    Rows that vectors of the split mark as deleted are in them, too.
    """
    return not needs_merge(section) and not split.branch and _are_as_stored(reader, section.files, reader.needed)


@dataclass(frozen=True)
class Overlaid:
    """Runs of a section apart: the oldest, most of whose rows are shown as stored, and those that lie over it."""

    base: SortedRun
    newer: Section


def overlaid(reader: SplitReader, split: Split, section: Section) -> Overlaid | None:
    """The section as an old run and newer ones, if all that is shown of the old run are its rows of other keys.

    INVARIANT: that is so only where the newest row is the row of its key, retracts included, and every newer run came
    later; anything else would show rows that are replaced, or hide rows that are not. Keys are compared by whoever
    reads: columns of `key_to_compare` must be read besides.
    """
    context = reader.context
    key = key_to_compare(context)
    if (
        not needs_merge(section)
        or split.branch
        or split.vectors
        or not context.has_key
        or context.masks_old_rows
        or context.orders_by_snapshot
        or context.options[MERGE_ENGINE] != Deduplicate.name
        or context.options[IGNORE_DELETE]
        or context.merge_order.sequence_fields
        or any(is_root(field.type, {TypeRoot.FLOAT, TypeRoot.DOUBLE}) for field in key)
        or not came_one_after_the_other(section)
    ):
        return None
    base, *newer = section.runs
    if sum(file.row_count for file in base.files) < sum(file.row_count for run in newer for file in run.files):
        return None
    if not _are_as_stored(reader, base.files, (*reader.needed, *key)):
        return None
    return Overlaid(base, Section(tuple(newer)))


def key_to_compare(context: TableContext) -> tuple[DataField, ...]:
    """The columns that tell rows of all buckets apart: a key may be gone in one partition and be there in another."""
    names = dict.fromkeys((*context.schema.primary_keys, *context.schema.partition_keys))
    return tuple(context.schema.fields_of(list(names)))


def _are_as_stored(reader: SplitReader, files: Sequence[DataFile], fields: Sequence[DataField]) -> bool:
    return all(
        format_of_file(file.file_name).name == "parquet"
        and file.external_path is None
        and not (reader.context.has_key and _may_hold_retracts(reader.context, file))
        and map_fields(list(dict.fromkeys(fields)), reader.context.schemas.get(file.schema_id)).is_identity
        for file in files
    )


def _may_hold_retracts(context: TableContext, file: DataFile) -> bool:
    return file.delete_row_count != 0 or context.may_miscount_retracts(file)
