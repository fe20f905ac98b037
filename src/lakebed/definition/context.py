"""Everything the parts of a table share: where it lives, what it looks like, how it is to behave."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from dataclasses import field, fields, replace
from functools import cached_property, wraps
from typing import Any, Concatenate, ParamSpec, TypeVar

import pyarrow as pa

from lakebed.clock import Clock, IdSource
from lakebed.definition.bucket_mode import BucketMode, bucket_mode, lets_rows_wait
from lakebed.definition.elsewhere import SparkJobs
from lakebed.definition.memory import TableMemory
from lakebed.definition.shown_defaults import shown_defaults
from lakebed.errors import InvalidArgument
from lakebed.fileio.base import FileIO
from lakebed.merge import MERGE_ENGINES, MergeEngine
from lakebed.merge.base import MergeOrder, MergeSetup
from lakebed.merge.first_row import FirstRow
from lakebed.merge.folding import seeing_everything
from lakebed.metadata.data_file import DataFile
from lakebed.metadata.deletion_vector import DeletionVectorStore
from lakebed.metadata.paths import TablePaths, partition_path
from lakebed.metadata.snapshot import Snapshot
from lakebed.metadata.stores import MetadataStores
from lakebed.options import (
    CHANGELOG_FILE_PREFIX,
    DATA_FILE_PATH_DIRECTORY,
    DATA_FILE_PREFIX,
    DELETION_VECTORS_ENABLED,
    DELETION_VECTORS_MERGE_ON_READ,
    FIELD_DEFAULT_VALUE,
    LAKEBED_VIEW_HIDDEN_COLUMNS,
    MANIFEST_COMPRESSION,
    MERGE_ENGINE,
    NUM_LEVELS,
    NUM_SORTED_RUN_COMPACTION_TRIGGER,
    PARTITION_DEFAULT_NAME,
    PARTITION_LEGACY_NAME,
    RECORD_LEVEL_EXPIRE_TIME,
    ROW_TRACKING_ENABLED,
    ROWKIND_FIELD,
    SEQUENCE_FIELD,
    SEQUENCE_FIELD_SORT_ORDER,
    SEQUENCE_SNAPSHOT_ORDERING,
    Options,
)
from lakebed.options.later import Later
from lakebed.records import dataclass
from lakebed.schema.column_options import column_mentions
from lakebed.schema.later import judged, under_names_of
from lakebed.schema.store import SchemaStore
from lakebed.schema.system_columns import BUCKET, PLACE_FIELDS, TRACKING_FIELDS, partition_field
from lakebed.schema.table_schema import TableSchema
from lakebed.types.arrow import to_arrow_schema
from lakebed.types.binary_row import decode_row
from lakebed.types.logical import DataField, DataType

_P = ParamSpec("_P")
_T = TypeVar("_T")

_OF_THIS_PROCESS = ("memory", "jobs", "derived")

_MEMORIES: dict[str, TableMemory] = {}
"""Of tables whose contexts came from another process, by the table's place."""


def merge_setup(schema: TableSchema, options: Options) -> MergeSetup:
    """What a merge engine must know of a table. Partition columns of the key never differ between rows of one key."""
    return MergeSetup(schema.fields, schema.primary_keys, options)


def num_levels(options: Options) -> int:
    """Levels of a bucket, level 0 included."""
    return options[NUM_LEVELS] or options[NUM_SORTED_RUN_COMPACTION_TRIGGER] + 1


def once_per_context(work: Callable[Concatenate[TableContext, _P], _T]) -> Callable[Concatenate[TableContext, _P], _T]:
    """For what follows from a context, and a few plain values, alone: worked out once, and kept with the context."""

    @wraps(work)
    def found(context: TableContext, /, *given: _P.args, **named: _P.kwargs) -> _T:
        derived, key = context.derived, (work, given, *named.items())
        if key not in derived:
            derived[key] = work(context, *given, **named)
        kept: _T = derived[key]
        return kept

    return found


@dataclass(frozen=True)
class TableContext:
    """One table under one schema. `options` are the stored ones with the overrides of this handle on top."""

    name: str
    fileio: FileIO
    paths: TablePaths
    schema: TableSchema
    schemas: SchemaStore
    options: Options
    clock: Clock
    ids: IdSource
    view: str = ""
    """The view that was opened instead of the table itself, one of `views`; empty for the table."""
    memory: TableMemory = field(default_factory=TableMemory, compare=False)
    jobs: SparkJobs | None = field(default=None, compare=False, repr=False)
    """How to run work on Spark; None where there is no lake to ask."""
    keeps_schema: bool = False
    """Whether it stays under its schema when a later one is there: what was written under it is folded under it."""
    shows_hidden: bool = False
    """Whether reads merge new files too that others see after compaction only."""
    derived: dict[Hashable, Any] = field(default_factory=dict, init=False, compare=False, repr=False)
    """What `once_per_context` has worked out. A copy with something else in it begins anew."""

    def __getstate__(self) -> dict[str, object]:
        """What another process needs: not what was computed from it, nor what only this process has."""
        return {part.name: getattr(self, part.name) for part in fields(self) if part.name not in _OF_THIS_PROCESS}

    def __setstate__(self, state: dict[str, object]) -> None:
        # Workers live longer than tasks: what one task has learnt of a table is there for the next.
        memory = _MEMORIES.setdefault(str(state["paths"]), TableMemory())
        for name, value in {**state, "memory": memory, "jobs": None, "derived": {}}.items():
            object.__setattr__(self, name, value)

    @cached_property
    def stores(self) -> MetadataStores:
        """The table's metadata files."""
        return MetadataStores.open(self.fileio, self.paths, self.options[MANIFEST_COMPRESSION], self.memory.manifests)

    @cached_property
    def vector_store(self) -> DeletionVectorStore:
        """The table's deletion vectors."""
        return DeletionVectorStore(self.fileio, self.paths)

    @cached_property
    def is_read_optimized(self) -> bool:
        """Whether reads show the highest level only: no merge, and what is not fully compacted yet is left out."""
        return self.view == READ_OPTIMIZED

    @cached_property
    def has_key(self) -> bool:
        """Whether this is a primary-key table."""
        return bool(self.schema.primary_keys)

    @cached_property
    def bucket_mode(self) -> BucketMode:
        """How rows find their buckets."""
        return bucket_mode(self.schema, self.options)

    @cached_property
    def lets_rows_wait(self) -> bool:
        """Whether writes leave the choice of buckets to compaction."""
        return lets_rows_wait(self.schema, self.options)

    @cached_property
    def key_fields(self) -> tuple[DataField, ...]:
        """Key columns within a partition, in key order."""
        return tuple(self.schema.fields_of(self.schema.trimmed_primary_key))

    @cached_property
    def key_types(self) -> list[DataType]:
        """Types of the key columns."""
        return [field.type for field in self.key_fields]

    @cached_property
    def partition_fields(self) -> tuple[DataField, ...]:
        """Partition columns in partition order."""
        return tuple(self.schema.fields_of(self.schema.partition_keys))

    @cached_property
    def partition_types(self) -> list[DataType]:
        """Types of the partition columns."""
        return [field.type for field in self.partition_fields]

    @cached_property
    def merge_order(self) -> MergeOrder:
        """What is one key here, and which of its rows is newer."""
        return MergeOrder(
            tuple(field.name for field in self.key_fields),
            tuple(self.options[SEQUENCE_FIELD] or ()),
            self.options[SEQUENCE_FIELD_SORT_ORDER] == "descending",
        )

    @cached_property
    def merge_engine(self) -> MergeEngine:
        """The engine that folds rows of one key."""
        setup = merge_setup(self.schema, self.options)
        # Rows of one key in one bucket are of one partition: its columns are nothing to merge, whatever the key.
        constant = tuple(dict.fromkeys((*setup.key, *self.schema.partition_keys)))
        return MERGE_ENGINES[self.options[MERGE_ENGINE]](replace(setup, key=constant))

    @cached_property
    def reading_engine(self) -> MergeEngine:
        """The same engine for reads, which see all there is of a key."""
        return seeing_everything(self.merge_engine)

    @cached_property
    def shown_defaults(self) -> dict[str, pa.Scalar]:
        """What reads show in place of null, by column."""
        return shown_defaults(self.schema, self.options)

    @property
    def showing_nulls(self) -> TableContext:
        """The same table without them, for who writes what it has read: a null that is stored stays one."""
        if not self.shown_defaults:
            return self
        defaults = {FIELD_DEFAULT_VALUE.key_for(name) for name in self.shown_defaults}
        kept = {key: value for key, value in self.options.raw.items() if key not in defaults}
        return self.with_schema(self.schema, Options(kept))

    @cached_property
    def is_first_row(self) -> bool:
        """Whether the first row of a key stays."""
        return self.has_key and self.options[MERGE_ENGINE] == FirstRow.name

    def may_miscount_retracts(self, file: DataFile) -> bool:
        """Whether a file may hold retracts although its manifest says that it has none.

        pypaimon takes kinds from a column, but does not count what it writes; compactions do.
        """
        return file.level == 0 and self.options[ROWKIND_FIELD] is not None

    @cached_property
    def has_keys_once(self) -> bool:
        """Whether every key is there once above level 0, so that nothing is merged there.

        Not if first rows may expire: while an expired one is still stored, the next row of its key is the first.
        """
        return self.masks_old_rows or (self.is_first_row and self.options[RECORD_LEVEL_EXPIRE_TIME] is None)

    @cached_property
    def tracks_rows(self) -> bool:
        """Whether every row has an id that stays with it."""
        return self.options[ROW_TRACKING_ENABLED]

    @cached_property
    def hidden_fields(self) -> tuple[DataField, ...]:
        """Columns that are shown only if asked for by name: ids of rows, and where rows lie."""
        tracking = TRACKING_FIELDS if self.tracks_rows and not self.has_key else ()
        hidden = (*tracking, *PLACE_FIELDS, *self.split_fields)
        return tuple(field for field in hidden if field.name not in self.schema.field_names)

    @cached_property
    def split_fields(self) -> tuple[DataField, ...]:
        """Hidden columns that are the same for all rows of a split."""
        return (BUCKET, partition_field(self.partition_fields))

    @cached_property
    def shown_fields(self) -> tuple[DataField, ...]:
        """Columns that a read shows unless it asks for others."""
        if self.view != ROW_TRACKING:
            return tuple(field for field in self.schema.fields if field not in self.kept_fields)
        if not self.tracks_rows:
            raise InvalidArgument(
                f"`{self.name}`: the rows of this table have no ids",
                hint=f"create a table with `{ROW_TRACKING_ENABLED.key}` = `true`",
            )
        return (*self.schema.fields, *TRACKING_FIELDS)

    @cached_property
    def kept_fields(self) -> tuple[DataField, ...]:
        """Columns that a materialized table has for itself."""
        names = self.options[LAKEBED_VIEW_HIDDEN_COLUMNS]
        return tuple(field for field in self.schema.fields if field.name in names) if names else ()

    @cached_property
    def arrow_schema_with_hidden(self) -> pa.Schema:
        """What a filter may look at: the columns of the table, and the hidden ones."""
        return pa.schema([*self.schema.arrow_schema, *to_arrow_schema(self.hidden_fields)])

    @cached_property
    def orders_by_snapshot(self) -> bool:
        """Whether rows of later snapshots are newer, whoever wrote them and whatever numbers they carry."""
        return self.has_key and self.options[SEQUENCE_SNAPSHOT_ORDERING]

    @cached_property
    def masks_old_rows(self) -> bool:
        """Whether compaction marks old rows of a key as deleted: then every key is there once above level 0."""
        return self.has_key and self.options[DELETION_VECTORS_ENABLED]

    @cached_property
    def lowest_visible_level(self) -> int:
        """Files below this level are not shown by reads: which of their rows count is known after compaction only."""
        if self.shows_hidden:
            return 0
        shows_new = not self.masks_old_rows or self.options[DELETION_VECTORS_MERGE_ON_READ]
        return self.lowest_told_level if shows_new else max(1, self.lowest_told_level)

    @cached_property
    def lowest_told_level(self) -> int:
        """Files below this level tell nothing of what changed. Where old rows are masked, what is written counts."""
        if self.is_read_optimized and self.has_key:
            # Of masked files no level is complete without the others, and none of them needs a merge.
            return 1 if self.masks_old_rows else num_levels(self.options) - 1
        return 1 if self.is_first_row else 0

    @cached_property
    def _directories(self) -> dict[bytes, str]:
        return {}

    @cached_property
    def _partition_values(self) -> dict[bytes, Mapping[str, pa.Scalar]]:
        return {}

    def partition_values(self, partition: bytes) -> Mapping[str, pa.Scalar]:
        """Values of the partition columns in a manifest's partition row."""
        # Asked for every file that is read, like directories.
        found = self._partition_values.get(partition)
        if found is None:
            values = decode_row(partition, self.partition_types) if self.partition_fields else []
            names = (field.name for field in self.partition_fields)
            found = self._partition_values[partition] = dict(zip(names, values, strict=True))
        return found

    def partition_directory(self, partition: bytes) -> str:
        """Path of a partition below the table, empty for an unpartitioned table."""
        # Asked for every file, and there are few partitions: worked out once each.
        found = self._directories.get(partition)
        if found is None:
            found = self._directories[partition] = self._directory_of(partition)
        return found

    def _directory_of(self, partition: bytes) -> str:
        return partition_path(
            [field.name for field in self.partition_fields],
            self.partition_types,
            decode_row(partition, self.partition_types),
            default_name=self.options[PARTITION_DEFAULT_NAME],
            legacy=self.options[PARTITION_LEGACY_NAME],
        )

    def bucket_place(self, partition: bytes, bucket: int) -> str:
        """How a bucket is named to people."""
        directory = self.partition_directory(partition)
        return f"{directory}/bucket-{bucket}" if directory else f"bucket-{bucket}"

    def data_file_path(self, partition: bytes, bucket: int, file_name: str) -> str:
        """Where a data file of a bucket lies."""
        return self.paths.data_file(self.partition_directory(partition), bucket, file_name)

    def new_data_file_prefix(self) -> str:
        """Start of the names one writer gives its files; a counter follows."""
        return f"{self.options[DATA_FILE_PREFIX]}{self.ids.new_id()}"

    def new_changelog_file_prefix(self) -> str:
        """As `new_data_file_prefix`, for changelog files."""
        return f"{self.options[CHANGELOG_FILE_PREFIX]}{self.ids.new_id()}"

    def under_latest_schema(self) -> TableContext:
        """The same table under its latest schema, with what this handle has set on top."""
        latest = None if self.keeps_schema else self.schemas.latest()
        if latest is None or latest.id == self.schema.id:
            return self
        stored = self.schema.options
        own = {key: value for key, value in self.options.raw.items() if stored.get(key) != value}
        return self.with_schema(latest, Options({**latest.options, **own}))

    def as_meant_in(self, snapshot: Snapshot | None) -> TableContext:
        """The same table, with rows merged as they were when the snapshot was made.

        Other engines, and a rollback, may leave rows that were written under options with another meaning, and that
        nobody has folded since. Columns are those of this schema.
        """
        if snapshot is None or snapshot.schema_id == self.schema.id:
            return self
        then = self.schemas.get(snapshot.schema_id)
        keys = [verdict.key for verdict in judged(then, self.schema) if verdict.later is Later.COMPACTION]
        if not any(keys):
            return self
        options = under_names_of(then, self.schema)
        meant = {key: value for key, value in self.options.raw.items() if key not in keys}
        meant |= {key: options[key] for key in keys if key in options}
        named = {name for mention in column_mentions(meant) for name in mention.columns}
        return self.with_schema(self.schema, Options(meant)) if named <= set(self.schema.field_names) else self

    def with_schema(self, schema: TableSchema, options: Options) -> TableContext:
        """The same table under another schema version."""
        paths = replace(self.paths, data_directory=options[DATA_FILE_PATH_DIRECTORY])
        return replace(self, paths=paths, schema=schema, options=options)


# ------------------------------------------------------------------------------------------------------------------
# The names of the views that stand behind a table's name, as in `t$audit_log`. What they show is known elsewhere.


READ_OPTIMIZED = "ro"
"""What full compaction has brought to the highest level."""
AUDIT_LOG = "audit_log"
"""Every row with its kind in front."""
BINLOG = "binlog"
"""One row for every change, each column an array of the value, or of the values before and after."""
ROW_TRACKING = "row_tracking"
"""Every row with its id, and the snapshot that last wrote it, behind its columns."""

VIEWS = (READ_OPTIMIZED, AUDIT_LOG, BINLOG, ROW_TRACKING)


__all__ = ["AUDIT_LOG", "BINLOG", "READ_OPTIMIZED", "ROW_TRACKING", "VIEWS"]
