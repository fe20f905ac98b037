"""Rows that are spread over several files: some columns in one, others in another, aligned by position.

An engine that replaces single columns of existing rows (`data-evolution.enabled`) writes files that hold only those,
for the same range of row ids. Of several files with a column the one that was written last counts. The oldest file of a
range stands for all of them: a row of it that is marked as deleted is gone from the others too.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence

from lakebed.errors import Unsupported
from lakebed.lsm.sections import Section, SortedRun
from lakebed.metadata.data_file import DataFile
from lakebed.schema.evolution import map_fields
from lakebed.schema.system_columns import PLACE_FIELDS, ROW_ID, TRACKED_SEQUENCE_NUMBER
from lakebed.schema.table_schema import TableSchema
from lakebed.types.logical import DataField


def stitched_sections(files: Sequence[DataFile], table: str) -> list[Section]:
    """One section for each range of rows, its files as runs from the oldest to the newest, in the order of row ids."""
    ranges: dict[tuple[int, int], list[DataFile]] = defaultdict(list)
    sections: list[Section] = []
    for file in files:
        if file.first_row_id is None:
            sections.append(Section((SortedRun((file,)),)))
        else:
            ranges[file.first_row_id, file.row_count].append(file)
    end = 0
    for (first, count), members in sorted(ranges.items()):
        if first < end:
            raise Unsupported(
                f"table `{table}`: rows from {first} on are spread over files of different ranges, among them "
                f"{members[0].file_name}",
                hint="read the table with the engine that wrote it, and let that one compact it",
            )
        end = first + count
        # Whoever marks rows has to name the same file of a range as the oldest, also where two were written at once.
        members.sort(key=lambda file: (file.max_sequence_number, file.file_name))
        sections.append(Section(tuple(SortedRun((file,)) for file in members)))
    return sections


def columns_by_file(
    section: Section, fields: Sequence[DataField], schema_of: Callable[[int], TableSchema]
) -> list[tuple[DataFile, list[DataField]]]:
    """Which columns to read from which file of a section; every file that gives any."""
    newest_first = section.files[::-1]
    oldest = newest_first[-1]
    chosen: dict[str, list[DataField]] = defaultdict(list)
    for field in fields:
        if field in PLACE_FIELDS or field == ROW_ID:
            owner = oldest
        elif field == TRACKED_SEQUENCE_NUMBER:
            owner = newest_first[0]
        else:
            owner = next((file for file in newest_first if _holds(file, field, schema_of)), oldest)
        chosen[owner.file_name].append(field)
    return [(file, chosen[file.file_name]) for file in newest_first if file.file_name in chosen]


def held_fields(
    file: DataFile, fields: Sequence[DataField], schema_of: Callable[[int], TableSchema]
) -> tuple[DataField, ...]:
    """Those of the columns that a file has values for."""
    return tuple(field for field in fields if _holds(file, field, schema_of))


def refuse_parts_of_rows(files: Sequence[DataFile], table: str) -> None:
    """Raises if a file read alone would show rows without some of their columns."""
    for file in files:
        if file.write_cols is not None:
            raise Unsupported(
                f"table `{table}`: file {file.file_name} holds only some columns of its rows: no change can be read",
                hint="read states of the table, for example with t.at(...), and compare them",
            )


def _holds(file: DataFile, field: DataField, schema_of: Callable[[int], TableSchema]) -> bool:
    name = map_fields([field], schema_of(file.schema_id)).old_name_of(field.name)
    return name is not None and (file.write_cols is None or name in file.write_cols)


__all__ = ["columns_by_file", "held_fields", "refuse_parts_of_rows", "stitched_sections"]
