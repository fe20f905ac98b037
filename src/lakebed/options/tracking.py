"""Options of deletion vectors, row tracking, large values, chains of tables and change capture."""

from __future__ import annotations

from typing import Final

from lakebed.options.option import ON_READ, ON_WRITE, READS, READS_AND_WRITES, WRITES, FieldOption, Kind, Names, Option
from lakebed.units import LONG_MAX, MIB

_EVOLUTION: Final = "leave the option out; the result is the same"
_BLOBS: Final = "blob files are not available in this version; store the bytes in a BYTES column"
_VECTOR_STORE: Final = "vector files are not available in this version; store vectors in an ARRAY column"
_CHAINS: Final = "chain tables are not available in this version; write into one table"
_CDC: Final = (
    "a sync changes columns before it writes rows, so nothing is waited for; rows that do not fit go by its policy "
    "`incompatible`"
)
_VARIANT: Final = "variant columns are not stored in shredded form here; leave the option out"
_MAPS: Final = "maps are stored as key-value lists here; leave the option out"

DELETION_VECTORS_ENABLED = Option(
    "deletion-vectors.enabled",
    Kind.BOOLEAN,
    False,
    "Mark deleted rows in index files, so that reads need no merge.",
    honoured=True,
    affects=READS_AND_WRITES,
)
DELETION_VECTORS_MERGE_ON_READ = Option(
    "deletion-vectors.merge-on-read",
    Kind.BOOLEAN,
    False,
    "Let reads of a table with deletion vectors see files that are not compacted yet.",
    honoured=True,
    affects=READS,
)
DELETION_VECTORS_BITMAP64 = Option(
    "deletion-vectors.bitmap64",
    Kind.BOOLEAN,
    False,
    "Write deletion vectors with 64-bit positions.",
    honoured=True,
)
DELETION_VECTORS_MODIFIABLE = Option(
    "deletion-vectors.modifiable",
    Kind.BOOLEAN,
    False,
    "Allow deletion vectors to be switched on or off later.",
    honoured=True,
)
DELETION_VECTOR_INDEX_FILE_TARGET_SIZE = Option(
    "deletion-vector.index-file.target-size",
    Kind.SIZE,
    2 * MIB,
    "Size at which a file of deletion vectors is full.",
    honoured=True,
)
ROW_TRACKING_ENABLED = Option(
    "row-tracking.enabled",
    Kind.BOOLEAN,
    False,
    "Give every row of a table without a key an id that stays.",
    immutable=True,
    honoured=True,
    affects=WRITES,
)
ROW_TRACKING_PARTITION_GROUP_ON_COMMIT = Option(
    "row-tracking.partition-group-on-commit",
    Kind.BOOLEAN,
    True,
    "Give the rows of a partition ids without gaps in each commit.",
    honoured=True,
)
DATA_EVOLUTION_ENABLED = Option(
    "data-evolution.enabled",
    Kind.BOOLEAN,
    False,
    "Let writes add or replace columns of existing rows in files of their own.",
    immutable=True,
    honoured=True,
    affects=WRITES,
)
DATA_EVOLUTION_COMPACTION_REWRITE_ROW_IDS = Option(
    "data-evolution.compaction.rewrite-row-ids",
    Kind.BOOLEAN,
    False,
    "Let compactions leave out rows that are marked as deleted; rows beside them get other ids then.",
    honoured=True,
)
DATA_EVOLUTION_REASSIGN_SKIP_CONTIGUOUS_ROW_COUNT = Option(
    "data-evolution.reassign.skip-contiguous-row-count",
    Kind.INTEGER,
    1_000_000_000,
    "Rows whose ids follow one another keep them in `reassign_row_id` if they are more than so many; 0: none do.",
    honoured=True,
)
DATA_EVOLUTION_MERGE_INTO_FILE_PRUNING = Option(
    "data-evolution.merge-into.file-pruning",
    Kind.BOOLEAN,
    True,
    "Skip files that a partial MERGE does not touch.",
    instead=_EVOLUTION,
    tuning=True,
)
DATA_EVOLUTION_MERGE_INTO_SOURCE_PERSIST = Option(
    "data-evolution.merge-into.source-persist",
    Kind.BOOLEAN,
    False,
    "Keep the source of a partial MERGE while it runs.",
    instead=_EVOLUTION,
    tuning=True,
)
DATA_EVOLUTION_ROW_SIDECAR_ENABLED = Option(
    "data-evolution.row-sidecar.enabled",
    Kind.BOOLEAN,
    False,
    "Write a row-wise copy next to each data file.",
    instead=_EVOLUTION,
    tuning=True,
)
BLOB_FIELD = Option[Names](
    "blob-field",
    Kind.LIST,
    (),
    "BYTES columns that are stored in blob files.",
    immutable=True,
    instead=_BLOBS,
    affects=READS_AND_WRITES,
)
BLOB_DESCRIPTOR_FIELD = Option[Names](
    "blob-descriptor-field",
    Kind.LIST,
    (),
    "Columns that hold references to large values kept elsewhere.",
    aliases=("blob.stored-descriptor-fields",),
    immutable=True,
    instead=_BLOBS,
    affects=READS_AND_WRITES,
)
BLOB_VIEW_FIELD = Option[Names](
    "blob-view-field",
    Kind.LIST,
    (),
    "Columns that hold references to large values of another table.",
    immutable=True,
    instead=_BLOBS,
    affects=READS_AND_WRITES,
)
BLOB_AS_DESCRIPTOR = Option(
    "blob-as-descriptor",
    Kind.BOOLEAN,
    False,
    "Exchange references instead of the large values themselves.",
    instead=_BLOBS,
    affects=READS_AND_WRITES,
)
BLOB_TARGET_FILE_SIZE = Option[int | None](
    "blob.target-file-size",
    Kind.SIZE,
    None,
    "Size at which a blob file is full.",
    instead=_BLOBS,
)
BLOB_SPLIT_BY_FILE_SIZE = Option[bool | None](
    "blob.split-by-file-size",
    Kind.BOOLEAN,
    None,
    "Count blob files when a read is cut into pieces.",
    instead=_BLOBS,
)
VECTOR_FIELD = Option[Names](
    "vector-field",
    Kind.LIST,
    (),
    "ARRAY columns that are stored as vectors.",
    instead=_VECTOR_STORE,
    affects=READS_AND_WRITES,
)
VECTOR_FILE_FORMAT = Option[str | None](
    "vector.file.format",
    Kind.TEXT,
    None,
    "Format of files that hold only vectors.",
    instead=_VECTOR_STORE,
    affects=READS_AND_WRITES,
)
VECTOR_TARGET_FILE_SIZE = Option[int | None](
    "vector.target-file-size",
    Kind.SIZE,
    None,
    "Size at which such a file is full.",
    instead=_VECTOR_STORE,
)
FIELD_MAP_STORAGE_LAYOUT = FieldOption(
    "fields.<field>.map.storage-layout",
    Kind.CHOICE,
    "default",
    "Whether a map is stored as key-value lists or as shared columns.",
    choices=("default", "shared-shredding"),
    instead=_MAPS,
    affects=READS_AND_WRITES,
)
VARIANT_SHREDDINGSCHEMA = Option[str | None](
    "variant.shreddingSchema",
    Kind.TEXT,
    None,
    "Members of variant columns that are stored as columns of their own.",
    aliases=("parquet.variant.shreddingSchema",),
    instead=_VARIANT,
    affects=READS,
)
VARIANT_INFERSHREDDINGSCHEMA = Option(
    "variant.inferShreddingSchema",
    Kind.BOOLEAN,
    False,
    "Find such members from the data.",
    instead=_VARIANT,
    affects=READS,
)
CHAIN_TABLE_ENABLED = Option(
    "chain-table.enabled",
    Kind.BOOLEAN,
    False,
    "Read partitions as a chain of a full state and its changes.",
    instead=_CHAINS,
    affects=READS_AND_WRITES,
)
CHAIN_TABLE_CHAIN_PARTITION_KEYS = Option[Names](
    "chain-table.chain-partition-keys",
    Kind.LIST,
    (),
    "Partition columns along which the chain runs.",
    instead=_CHAINS,
)
QUERY_AUTH_ENABLED = Option(
    "query-auth.enabled",
    Kind.BOOLEAN,
    False,
    "Let the catalog decide which rows and columns a user may read.",
    instead="grant rights on the files themselves",
    scope=ON_READ,
    affects=READS,
)
CDC_SCHEMA_CHANGE_RETRY_INTERVAL = Option(
    "cdc.schema-change-retry-interval",
    Kind.DURATION,
    500,
    "Pause between two looks for a schema change that a captured row needs.",
    aliases=("cdc.retry-sleep-time",),
    instead=_CDC,
    scope=ON_WRITE,
)
CDC_SCHEMA_CHANGE_RETRY_MAX_NUM = Option(
    "cdc.schema-change-retry-max-num",
    Kind.INTEGER,
    100,
    "How often such a change is looked for.",
    minimum=0,
    maximum=LONG_MAX,
    instead=_CDC,
    scope=ON_WRITE,
)
CDC_SKIP_CORRUPT_RECORD = Option(
    "cdc.skip-corrupt-record",
    Kind.BOOLEAN,
    False,
    "Leave out captured rows that do not fit the table.",
    instead=_CDC,
    scope=ON_WRITE,
)
CDC_LOG_CORRUPT_RECORD = Option(
    "cdc.log-corrupt-record",
    Kind.BOOLEAN,
    True,
    "Log captured rows that do not fit the table.",
    instead=_CDC,
    scope=ON_WRITE,
)
CDC_UPDATE_AS = Option(
    "cdc.update-as",
    Kind.CHOICE,
    "delete-insert",
    "Whether a captured update is written as `-D`, `+I` or as `-U`, `+U`.",
    choices=("delete-insert", "update"),
    honoured=True,
    scope=ON_WRITE,
    paimon="ours",
)
LAKEBED_CDC_COLUMNS = Option[str | None](
    "lakebed.cdc.columns",
    Kind.TEXT,
    None,
    "Which columns of a source the table's columns follow, as JSON; kept by the sync itself.",
    honoured=True,
    paimon="ours",
)
LAKEBED_CDC_KEEPS = Option[str | None](
    "lakebed.cdc.keeps",
    Kind.TEXT,
    None,
    "What the table keeps of its source's past: `changes`, `history`, or `marks:COLUMN`; kept by the sync itself.",
    honoured=True,
    paimon="ours",
)
LAKEBED_CDC_BACKFILL = Option[str | None](
    "lakebed.cdc.backfill",
    Kind.TEXT,
    None,
    "Values that rows are still to get in columns that a source has added, as JSON; kept by the sync itself.",
    honoured=True,
    paimon="ours",
)
