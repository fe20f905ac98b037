"""Gives the rows of a fresh file later sequence numbers.

When somebody else's commit to the same bucket came first, our rows carry numbers that are too small and would lose
against older data. The file is not visible yet, so it is written again with the numbers moved up.
"""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
import pyarrow.compute as pc

from lakebed.datafiles.rolling_writer import FileLayout, WriteRules
from lakebed.fileio.base import FileIO
from lakebed.formats import Written, format_of_file
from lakebed.metadata.data_file import INDEX_SUFFIX, DataFile
from lakebed.types.key_value import SEQUENCE_NUMBER


def restamp(
    fileio: FileIO, old_path: str, new_path: str, file: DataFile, layout: FileLayout, rules: WriteRules, shift: int
) -> DataFile:
    """A copy of the file at `new_path` whose sequence numbers are `shift` larger."""
    data_format = format_of_file(file.file_name)
    written = Written(layout.physical, rules.settings.table_options)
    with (
        fileio.open_input(old_path) as source,
        data_format.open_reader(source, old_path, written) as reader,
        fileio.open_output(new_path) as output,
    ):
        writer = data_format.open_writer(output.stream, layout.physical, rules.settings)
        for _, batch in reader.read(layout.physical):
            position = batch.schema.get_field_index(SEQUENCE_NUMBER)
            moved = pc.add(batch.column(position), pa.scalar(shift, pa.int64()))
            writer.write(batch.set_column(position, batch.schema.field(position), moved))
        writer.close()
    new_name = new_path.rsplit("/", 1)[-1]
    extra_files: tuple[str, ...] = ()
    if file.index_file is not None:
        # The rows are the same, and so are their indexes.
        extra_files = (new_name + INDEX_SUFFIX,)
        index = fileio.read_bytes(f"{old_path.rpartition('/')[0]}/{file.index_file}")
        fileio.write_bytes(new_path + INDEX_SUFFIX, index)
    return replace(
        file,
        file_name=new_name,
        extra_files=extra_files,
        size_bytes=output.size_bytes,
        min_sequence_number=file.min_sequence_number + shift,
        max_sequence_number=file.max_sequence_number + shift,
    )
