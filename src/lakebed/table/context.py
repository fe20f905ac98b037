"""Everything the parts of a table share: where it lives, what it looks like, how it is to behave."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field, replace
from functools import cached_property

import pyarrow as pa

from lakebed.clock import Clock, IdSource
from lakebed.fileio.base import FileIO
from lakebed.lsm.lookup.store import LookupStore
from lakebed.merge import MERGE_ENGINES, MergeEngine
from lakebed.merge.base import MergeOrder, MergeSetup
from lakebed.merge.first_row import FirstRow
from lakebed.merge.folding import seeing_everything
from lakebed.metadata.paths import TablePaths, partition_path
from lakebed.metadata.stores import MetadataStores
from lakebed.options import (
    CHANGELOG_FILE_PREFIX,
    DATA_FILE_PREFIX,
    MANIFEST_COMPRESSION,
    MERGE_ENGINE,
    NUM_LEVELS,
    NUM_SORTED_RUN_COMPACTION_TRIGGER,
    PARTITION_DEFAULT_NAME,
    PARTITION_LEGACY_NAME,
    SEQUENCE_FIELD,
    SEQUENCE_FIELD_SORT_ORDER,
    Options,
)
from lakebed.schema.store import SchemaStore
from lakebed.schema.table_schema import TableSchema
from lakebed.table.bucket_state import BucketStates
from lakebed.table.shown_defaults import shown_defaults
from lakebed.table.views import READ_OPTIMIZED
from lakebed.types.binary_row import decode_row
from lakebed.types.logical import DataField, DataType


@dataclass(slots=True)
class TableMemory:
    """What a handle remembers from one call to the next, so that the next need not read it again. Only hints."""

    bucket_states: BucketStates | None = None
    lookup_store: LookupStore | None = None
    lock: threading.Lock = field(default_factory=threading.Lock)


def merge_setup(schema: TableSchema, options: Options) -> MergeSetup:
    """What a merge engine must know of a table. Partition columns of the key never differ between rows of one key."""
    return MergeSetup(schema.fields, schema.primary_keys, options)


def num_levels(options: Options) -> int:
    """Levels of a bucket, level 0 included."""
    return options[NUM_LEVELS] or options[NUM_SORTED_RUN_COMPACTION_TRIGGER] + 1


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

    @cached_property
    def stores(self) -> MetadataStores:
        """The table's metadata files."""
        return MetadataStores.open(self.fileio, self.paths, self.options[MANIFEST_COMPRESSION])

    @property
    def is_read_optimized(self) -> bool:
        """Whether reads show the highest level only: no merge, and what is not fully compacted yet is left out."""
        return self.view == READ_OPTIMIZED

    @property
    def has_key(self) -> bool:
        """Whether this is a primary-key table."""
        return bool(self.schema.primary_keys)

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
        return MERGE_ENGINES[self.options[MERGE_ENGINE]](merge_setup(self.schema, self.options))

    @cached_property
    def reading_engine(self) -> MergeEngine:
        """The same engine for reads, which see all there is of a key."""
        return seeing_everything(self.merge_engine)

    @cached_property
    def shown_defaults(self) -> dict[str, pa.Scalar]:
        """What reads show in place of null, by column."""
        return shown_defaults(self.schema, self.options)

    @property
    def is_first_row(self) -> bool:
        """Whether the first row of a key stays. Above level 0 every key is there once, so nothing is merged there."""
        return self.has_key and self.options[MERGE_ENGINE] == FirstRow.name

    @property
    def lowest_visible_level(self) -> int:
        """Files below this level are not shown by reads: which of their rows count is known after compaction only."""
        if self.is_read_optimized and self.has_key:
            return num_levels(self.options) - 1
        return 1 if self.is_first_row else 0

    @cached_property
    def _directories(self) -> dict[bytes, str]:
        return {}

    def partition_values(self, partition: bytes) -> dict[str, pa.Scalar]:
        """Values of the partition columns in a manifest's partition row."""
        values = decode_row(partition, self.partition_types)
        return {field.name: value for field, value in zip(self.partition_fields, values, strict=True)}

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
        latest = self.schemas.latest()
        if latest is None or latest.id == self.schema.id:
            return self
        stored = self.schema.options
        own = {key: value for key, value in self.options.raw.items() if stored.get(key) != value}
        return self.with_schema(latest, Options({**latest.options, **own}))

    def with_schema(self, schema: TableSchema, options: Options) -> TableContext:
        """The same table under another schema version."""
        return replace(self, schema=schema, options=options)
