"""A bucket of real small Parquet files in memory, with a writer in front of it and compaction behind."""

from __future__ import annotations

import itertools
import uuid
from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa

from lakebed.clock import FixedClock
from lakebed.datafiles.read_file import FileReader
from lakebed.datafiles.rolling_writer import FileLayout, RollingWriter, WriteRules
from lakebed.fileio.base import FileIO
from lakebed.fileio.memory import MemoryFileIO
from lakebed.formats import FORMATS
from lakebed.formats.base import WriteSettings
from lakebed.lsm.compaction.merging import PlainMerging
from lakebed.lsm.compaction.plan import CompactionPlan, CompactionResult
from lakebed.lsm.compaction.task import CompactionTask
from lakebed.lsm.levels import Levels
from lakebed.lsm.merge_runs import merge_runs
from lakebed.lsm.sections import SortedRun, cut_sections
from lakebed.lsm.write_buffer import WriteBuffer
from lakebed.merge.base import MergeEngine, MergeOrder
from lakebed.merge.deduplicate import Deduplicate
from lakebed.metadata.data_file import EMPTY_STATS, DataFile, FileSource
from lakebed.schema import system_columns
from lakebed.schema.table_schema import TableSchema
from lakebed.types.binary_row import encode_row
from lakebed.types.key_value import SEQUENCE_NUMBER, VALUE_KIND
from lakebed.types.logical import BIGINT, INT, STRING, DataField
from lakebed.types.row_kind import TEXTS

Change = tuple[str, int, int | None, str | None]
"""Kind and columns of one change: ("+I", key, number, text)."""

KEY_TYPES = (BIGINT,)
SCHEMA = TableSchema.create(
    (DataField(0, "k", BIGINT), DataField(1, "n", INT), DataField(2, "t", STRING)), (), ("k",), {}, None, 0
)
NUM_LEVELS = 6
NOW_MS = 1_700_000_000_000


def described(level: int, size_bytes: int = 1, keys: tuple[int, int] = (1, 1), **changes: Any) -> DataFile:
    """What a manifest says of a file that nobody wrote."""
    low, high = (encode_row([key], KEY_TYPES) for key in keys)
    members: dict[str, Any] = {
        "file_name": f"data-{uuid.uuid4()}.parquet",
        "size_bytes": size_bytes,
        "row_count": 1,
        "min_key": low,
        "max_key": high,
        "key_stats": EMPTY_STATS,
        "value_stats": EMPTY_STATS,
        "min_sequence_number": 0,
        "max_sequence_number": 0,
        "schema_id": 0,
        "level": level,
        "delete_row_count": 0,
    }
    return DataFile(**(members | changes))


def levels_of(*runs: str, num_levels: int) -> Levels:
    """Levels given as `level:size`, newest first, each run a single file."""
    files = []
    for age, text in enumerate(runs):
        level, size = map(int, text.split(":"))
        files.append(described(level, size, max_sequence_number=1000 - age))
    return Levels.of(files, KEY_TYPES, num_levels)


def as_text(levels: Levels, plan: CompactionPlan | None) -> str:
    """A plan as `sizes -> level`."""
    if plan is None:
        return "nothing"
    assert plan.files == levels.files[: len(plan.files)]
    return f"{' '.join(str(file.size_bytes) for file in plan.files)} -> L{plan.output_level}"


class Bucket:
    """Files of one bucket, on whose levels tests can look."""

    def __init__(
        self,
        engine: MergeEngine | None = None,
        *,
        fileio: FileIO | None = None,
        sequence_fields: tuple[str, ...] = (),
        num_levels: int = NUM_LEVELS,
        rows_per_file: int | None = None,
        target_size_bytes: int = 128 << 20,
        batch_rows: int = 65536,
        row_group_rows: int = 65536,
        threads: int = 1,
        force_rewrite: bool = False,
        first_name: int = 0,
    ) -> None:
        self.fileio: FileIO = fileio if fileio is not None else MemoryFileIO(uuid.uuid4().hex)
        self.engine = engine if engine is not None else Deduplicate()
        self.order = MergeOrder(("k",), sequence_fields)
        self.files: list[DataFile] = []
        self.num_levels = num_levels
        self._rules = WriteRules(
            FORMATS["parquet"], WriteSettings(row_group_rows=row_group_rows), target_size_bytes, rows_per_file
        )
        self._reader = FileReader(
            self.fileio,
            lambda _: SCHEMA,
            (system_columns.SEQUENCE_NUMBER, system_columns.VALUE_KIND, *SCHEMA.fields),
            batch_rows=batch_rows,
            use_threads=False,
        )
        self._names = itertools.count(first_name)
        self._next_sequence_number = 0
        self.task = CompactionTask(
            KEY_TYPES,
            PlainMerging(self.order, self.engine, self.read_run),
            self.new_writer,
            self.new_writer,
            target_size_bytes,
            force_rewrite=force_rewrite,
            threads=threads,
        )

    @property
    def levels(self) -> Levels:
        return Levels.of(self.files, KEY_TYPES, self.num_levels)

    def flush(self, changes: Sequence[Change], *, level: int = 0) -> list[DataFile]:
        """Writes changes through a buffer, as one flush; other levels than 0 stand for an earlier compaction."""
        source = FileSource.APPEND if level == 0 else FileSource.COMPACT
        buffer = WriteBuffer(self.order, self.engine, self._next_sequence_number)
        kinds = pa.array([TEXTS.index(change[0]) for change in changes], pa.int8())
        rows = pa.RecordBatch.from_arrays(
            [pa.array(list(column), kind.type) for column, kind in zip(_columns(changes), _ARROW, strict=True)],
            schema=_ARROW,
        )
        buffer.add(rows, kinds)
        self._next_sequence_number += len(changes)
        (run,) = buffer.runs()
        return self.add(pa.concat_batches(run), level, source)

    def add(self, rows: pa.RecordBatch, level: int = 0, source: FileSource = FileSource.APPEND) -> list[DataFile]:
        """Writes rows in key-value shape to files of their own."""
        writer = self.new_writer(level, source)
        writer.write(rows)
        made = writer.close()
        self.files += made
        return made

    def compact(self, plan: CompactionPlan | None) -> CompactionResult:
        """Carries a plan out and takes the result over."""
        assert plan is not None
        result = self.task.run(plan)
        self.files = result.applied_to(self.files)
        return result

    def new_writer(self, level: int, source: FileSource = FileSource.COMPACT) -> RollingWriter:
        return RollingWriter(
            self.fileio,
            _path,
            lambda: f"data-{next(self._names)}.parquet",
            FileLayout(0, SCHEMA.fields, SCHEMA.fields[:1]),
            self._rules,
            FixedClock(NOW_MS),
            level=level,
            source=source,
        )

    def read_run(self, run: SortedRun) -> Iterator[pa.RecordBatch]:
        for file in run.files:
            for _, batch in self._reader.read(_path(file.file_name), file, {}.__getitem__):
                yield batch

    def stored(self, file: DataFile) -> list[Change]:
        """The changes in one file."""
        return _changes(list(self.read_run(SortedRun((file,)))))

    def sequence_numbers(self, file: DataFile) -> dict[int, int]:
        """Sequence number of each key in a file."""
        batches = list(self.read_run(SortedRun((file,))))
        return {
            key: number
            for batch in batches
            for key, number in zip(
                batch.column("k").to_pylist(), batch.column(SEQUENCE_NUMBER).to_pylist(), strict=True
            )
        }

    def merged(self) -> list[Change]:
        """What all files say together, retracts included."""
        batches: list[pa.RecordBatch] = []
        for section in cut_sections(self.files, KEY_TYPES):
            runs = [self.read_run(run) for run in section.runs]
            batches += merge_runs(runs, self.order, self.engine)
        return _changes(batches)

    def rows(self) -> list[tuple[int, int | None, str | None]]:
        """What a reader sees."""
        return [change[1:] for change in self.merged() if change[0] in ("+I", "+U")]

    def on_disk(self) -> set[str]:
        """Names of all files that exist."""
        return {status.name for status in self.fileio.list_recursive("bucket")}


_ARROW = SCHEMA.arrow_schema


def _path(name: str) -> str:
    return f"bucket/{name}"


def _columns(changes: Sequence[Change]) -> list[tuple[Any, ...]]:
    return [tuple(change[i] for change in changes) for i in (1, 2, 3)]


def _changes(batches: Sequence[pa.RecordBatch]) -> list[Change]:
    found: list[Change] = []
    for batch in batches:
        columns = [batch.column(name).to_pylist() for name in (VALUE_KIND, "k", "n", "t")]
        found += [(TEXTS[kind], key, number, text) for kind, key, number, text in zip(*columns, strict=True)]
    return found
