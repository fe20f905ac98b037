"""Which files hold just the rows that a table shows, so that another engine may read them without us.

Nothing may have to be merged, left out, renamed, converted or filled in; rows that are marked as deleted are the one
thing that a reader may be able to see to, so they are its own question.
"""

from __future__ import annotations

from lakebed.definition.context import TableContext
from lakebed.formats import format_of_file
from lakebed.lsm.sections import Section
from lakebed.metadata.data_file import DataFile
from lakebed.read.reader import SplitReader
from lakebed.read.splits import Split, needs_merge
from lakebed.schema.evolution import map_fields


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
    if needs_merge(section) or split.branch:
        return False
    return all(
        format_of_file(file.file_name).name == "parquet"
        and file.external_path is None
        and not (reader.context.has_key and _may_hold_retracts(reader.context, file))
        and map_fields(list(reader.needed), reader.context.schemas.get(file.schema_id)).is_identity
        for file in section.files
    )


def _may_hold_retracts(context: TableContext, file: DataFile) -> bool:
    return file.delete_row_count != 0 or context.may_miscount_retracts(file)
