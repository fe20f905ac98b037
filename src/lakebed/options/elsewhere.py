"""Paimon options that belong to other engines or to features far from here.

They are listed so that a statement written for Flink or for Paimon's Spark connector is answered with a reason rather
than with "unknown option". Most come in families that are refused as a whole, so they need no constant each.
"""

from __future__ import annotations

from typing import Final

from lakebed.options.option import READS, WRITES, FieldOption, Kind, Names, Option
from lakebed.units import MIB

_FLINK: Final = "this tunes Flink jobs and has no meaning here; leave the option out"
_SPARK: Final = "this tunes Paimon's own Spark connector and has no meaning here; leave the option out"
_LOOKUP: Final = "this tunes Paimon's local files for lookups, which are built otherwise here; leave the option out"
_JOIN: Final = "this tunes Flink's lookup join, which does not exist here; leave the option out"
_INDEX: Final = "such indexes are not available in this version; leave the option out"
_BLOB: Final = "blob files are not available in this version; leave the option out"
_ICEBERG: Final = "lakebed writes no Iceberg metadata; let Paimon write tables that Iceberg readers need"
_INTERNAL: Final = "Paimon uses it inside its own jobs; leave the option out"
_OBJECTS: Final = "lakebed keeps only file-store tables; leave the option out"
_PYTHON: Final = "this tunes pypaimon and has no meaning here; leave the option out"
_NATIVE: Final = "lakebed has one way to do it; leave the option out"
_CACHE: Final = "lakebed keeps no cache of blocks; leave the option out"
_JAVA: Final = "Java classes can not be called here; do the work after the write, and set the option to nothing"
_OTHER_FORMAT: Final = "lakebed writes no files of that format; leave the option out"
_OTHER_SETTING: Final = "Paimon knows no such setting; leave the option out"
_NO_LEAVE: Final = "`merge_branch` needs no leave; leave the option out"
_VISIBLE: Final = "a write has compacted what was due when it returns: there is nothing to wait for"
_TUNING: Final = (_NO_LEAVE, _FLINK, _SPARK, _LOOKUP, _JOIN, _PYTHON, _NATIVE, _CACHE)
"""Reasons of options that can change no result."""

SINK_PARALLELISM = Option[int | None](
    "sink.parallelism",
    Kind.INTEGER,
    None,
    "Tasks that write.",
    instead="repartition the rows before writing them",
    tuning=True,
)
SCAN_PARALLELISM = Option[int | None](
    "scan.parallelism",
    Kind.INTEGER,
    None,
    "Tasks that read.",
    instead="set `source.split.target-size` to get more or fewer pieces",
    tuning=True,
)
METADATA_ICEBERG_STORAGE = Option(
    "metadata.iceberg.storage",
    Kind.CHOICE,
    "disabled",
    "Where Iceberg metadata is written next to the table's own.",
    choices=("disabled", "table-location", "hadoop-catalog", "hive-catalog", "rest-catalog"),
    instead=_ICEBERG,
    affects=WRITES,
)
BATCH_SCAN_MODE = Option(
    "batch-scan-mode",
    Kind.CHOICE,
    "none",
    "Which files a batch job of Paimon looks at.",
    choices=("none", "compact"),
    instead=_INTERNAL,
    affects=READS,
)
STREAM_SCAN_MODE = Option(
    "stream-scan-mode",
    Kind.CHOICE,
    "none",
    "Which files a stream of Paimon looks at.",
    choices=("none", "compact-bucket-table", "file-monitor"),
    instead=_INTERNAL,
)
KEY_VALUE_SEQUENCE_NUMBER_ENABLED = Option(
    "key-value.sequence_number.enabled",
    Kind.BOOLEAN,
    False,
    "Return each row's sequence number.",
    instead=_INTERNAL,
    affects=READS,
)


def _plain(
    key: str,
    kind: Kind,
    default: object,
    help_text: str,
    instead: str,
    affects: frozenset[str] = frozenset(),
    *,
    tuning: bool | None = None,
) -> Option[object]:
    is_tuning = instead in _TUNING if tuning is None else tuning
    return Option(key, kind, default, help_text, instead=instead, affects=affects, tuning=is_tuning)


def _family(
    key: str,
    help_text: str,
    instead: str,
    affects: frozenset[str] = frozenset(),
    *,
    tuning: bool | None = None,
) -> FieldOption[object]:
    is_tuning = instead in _TUNING if tuning is None else tuning
    return FieldOption(key, Kind.TEXT, None, help_text, instead=instead, affects=affects, tuning=is_tuning)


_NO_NAMES: Final[Names] = ()

ELSEWHERE: Final[tuple[Option[object], ...]] = (
    _plain("pk-bitmap.index.columns", Kind.LIST, _NO_NAMES, "Columns with a bitmap index.", _INDEX, WRITES),
    _plain("pk-btree.index.columns", Kind.LIST, _NO_NAMES, "Columns with a B-tree index.", _INDEX, WRITES),
    _plain("pk-full-text.index.columns", Kind.LIST, _NO_NAMES, "Columns with a full-text index.", _INDEX, WRITES),
    _plain("pk-multivalue.index.columns", Kind.LIST, _NO_NAMES, "Columns with an index of members.", _INDEX, WRITES),
    _plain("pk-vector.index.columns", Kind.LIST, _NO_NAMES, "Columns with a vector index.", _INDEX, WRITES),
    _family("fields.<field>.pk-vector.index.type", "Type of a column's vector index.", _INDEX),
    _family("global-index.<setting>", "Settings of indexes over a whole table.", _INDEX),
    _family("<type>-index.search-mode", "How far an index is trusted when it does not cover all rows.", _INDEX),
    _family("btree-index.<setting>", "Settings of B-tree indexes over a whole table.", _INDEX, tuning=True),
    _family("bitmap-index.<setting>", "Settings of bitmap indexes over a whole table.", _INDEX, tuning=True),
    _family("multivalue-index.<setting>", "Settings of indexes of members over a whole table.", _INDEX, tuning=True),
    _family("sorted-index.<setting>", "Settings of sorted indexes over a whole table.", _INDEX, tuning=True),
    _family("vector-search.<setting>", "Settings of vector search.", _INDEX),
    _family("metadata.iceberg.<setting>", "Settings of Iceberg metadata.", _ICEBERG),
    _family("format-table.<setting>", "Settings of tables that are plain files.", _OBJECTS),
    _family("materialized-table.<setting>", "Settings of Flink's materialized tables.", _OBJECTS),
    _family("variant.shredding.<setting>", "How members of variant columns are found.", "leave the option out"),
    _family("fields.<field>.map.shared-shredding.max-columns", "Columns of a shredded map.", "leave the option out"),
    _family(
        "fields.<field>.map.shared-shredding.column-placement-policy",
        "Which keys of a shredded map get a column.",
        "leave the option out",
    ),
    _family("data-evolution.<setting>", "Settings of data evolution.", "leave the option out"),
    _family("write.data-evolution.<setting>", "Settings of updates with data evolution.", "leave the option out"),
    _family("chain-table.<setting>", "Settings of chain tables.", "leave the option out"),
    _plain(
        "upsert-key",
        Kind.LIST,
        _NO_NAMES,
        "Columns by which INSERT INTO of Paimon 1.4 replaces rows of a table without a key.",
        "use MERGE INTO, or a table with a primary key",
        WRITES,
    ),
    _plain("blob-external-storage-path", Kind.TEXT, None, "Where large values are put.", _BLOB),
    _plain("blob-external-storage-field", Kind.LIST, _NO_NAMES, "Columns so stored.", _BLOB, READS | WRITES),
    _plain(
        "video-frame-field",
        Kind.LIST,
        _NO_NAMES,
        "Columns whose values are frames of videos, kept in video files.",
        "video files are not available in this version; store the bytes in a BYTES column",
        READS | WRITES,
    ),
    _family("mosaic.<setting>", "Settings of Mosaic files.", _OTHER_FORMAT),
    _family("csv.<setting>", "Other settings of CSV files.", _OTHER_SETTING),
    _family("json.<setting>", "Other settings of JSON files.", _OTHER_SETTING),
    _family("text.<setting>", "Other settings of text files.", _OTHER_SETTING),
    _plain("manifest.sidecar.enabled", Kind.BOOLEAN, None, "Skip manifests by files beside them.", _PYTHON),
    _family("local-cache.<setting>", "A local cache of blocks of files.", _CACHE),
    _plain("scan.native-plan.enabled", Kind.BOOLEAN, False, "Let pypaimon's native part plan reads.", _NATIVE),
    _plain("read.native.enabled", Kind.BOOLEAN, False, "Let pypaimon's native part read.", _NATIVE),
    _plain("write.native.enabled", Kind.BOOLEAN, False, "Let pypaimon's native part write.", _NATIVE),
    _plain("commit.native.enabled", Kind.BOOLEAN, False, "Let pypaimon's native part commit.", _NATIVE),
    _plain("read.parallelism", Kind.INTEGER, None, "Pieces of a read that are read at a time.", _PYTHON),
    _plain("parquet.write-page-index.enabled", Kind.BOOLEAN, None, "Write page indexes in Parquet files.", _PYTHON),
    _plain("parquet.filter.columnindex.enabled", Kind.BOOLEAN, True, "Skip pages by their indexes.", _PYTHON),
    _plain("blob-compaction.enabled", Kind.BOOLEAN, False, "Compact blob files.", _BLOB),
    _plain("blob-write-null-on-missing-file", Kind.BOOLEAN, False, "Store null for lost large values.", _BLOB),
    _plain("blob-write-null-on-fetch-failure", Kind.BOOLEAN, False, "Store null for unreachable values.", _BLOB),
    _plain("blob.copy-buffer-size", Kind.SIZE, 4096, "Memory for copying large values.", _BLOB),
    _family("blob-view.<setting>", "Settings of references to large values.", _BLOB),
    _family("blob-descriptor.<setting>", "Settings of references to large values.", _BLOB),
    _plain(
        "visibility-callback.timeout", Kind.DURATION, 1_800_000, "How long a write so waits.", _VISIBLE, tuning=True
    ),
    _plain("visibility-callback.check-interval", Kind.DURATION, 10_000, "How often it looks.", _VISIBLE, tuning=True),
    _family("commit.callback.<class>.param", "Argument of a commit callback.", _JAVA),
    _family("tag.callback.<class>.param", "Argument of a tag callback.", _JAVA),
    _plain("commit.custom-listeners", Kind.LIST, _NO_NAMES, "Listeners of Flink's committer.", _FLINK, tuning=False),
    _plain("changelog.precommit-compact.thread-num", Kind.INTEGER, None, "Threads that copy small files.", _FLINK),
    _plain(
        "changelog-producer.compaction-interval",
        Kind.DURATION,
        None,
        "Time between full compactions that tell changes.",
        "set `full-compaction.delta-commits`",
    ),
    _plain("changelog.precommit-compact.buffer-size", Kind.SIZE, None, "Memory for copying small files.", _FLINK),
    _plain("branch-merge.enabled", Kind.BOOLEAN, None, "Let branches be merged.", _NO_LEAVE),
    _plain("compaction.bucket-distribution-strategy", Kind.TEXT, "linear", "How buckets go to tasks.", _FLINK),
    _plain("filesystem.job-level-settings.enabled", Kind.BOOLEAN, True, "Use the job's storage settings.", _FLINK),
    _plain("read.shuffle-bucket-with-partition", Kind.BOOLEAN, True, "Send pieces to tasks by partition.", _FLINK),
    _plain("scan.bounded", Kind.BOOLEAN, None, "Whether a read ends.", _FLINK),
    _plain("scan.dedicated-split-generation", Kind.BOOLEAN, False, "Plan a read inside a task.", _FLINK),
    _plain("scan.infer-parallelism", Kind.BOOLEAN, True, "Choose the number of reading tasks by itself.", _FLINK),
    _plain("scan.infer-parallelism.max", Kind.INTEGER, 1024, "Most reading tasks so chosen.", _FLINK),
    _plain("scan.max-snapshot.count", Kind.INTEGER, -1, "Most snapshots read per checkpoint.", _FLINK),
    _plain("scan.max-splits-per-task", Kind.INTEGER, 10, "Pieces planned ahead per task.", _FLINK),
    _family("scan.split-enumerator.<setting>", "How pieces go to tasks.", _FLINK),
    _family("scan.watermark.<setting>", "How sources make watermarks.", _FLINK),
    Option(
        "sink.clustering.sample-factor",
        Kind.INTEGER,
        100,
        "Rows sampled before clustering.",
        minimum=20,
        instead=_FLINK,
        tuning=True,
    ),
    _plain("sink.clustering.sort-in-cluster", Kind.BOOLEAN, True, "Sort within each clustering task.", _FLINK),
    _plain("sink.committer-cpu", Kind.DECIMAL, 1.0, "Cores of the committer.", _FLINK),
    _plain("sink.committer-memory", Kind.SIZE, None, "Memory of the committer.", _FLINK),
    _plain("sink.committer-operator-chaining", Kind.BOOLEAN, True, "Run the committer with the writer.", _FLINK),
    _plain("sink.coordinator-commit.enabled", Kind.BOOLEAN, False, "Commit in the job manager.", _FLINK),
    _plain("sink.cross-partition.managed-memory", Kind.SIZE, 256 * MIB, "Memory of the key index.", _FLINK),
    _plain(
        "sink.key-only-deletes.enabled",
        Kind.BOOLEAN,
        False,
        "Accept deletes with keys alone.",
        "deletes are taken by their keys in any case; leave the option out",
        tuning=True,
    ),
    _plain("sink.managed.writer-buffer-memory", Kind.SIZE, 256 * MIB, "Managed memory of a writer.", _FLINK),
    _plain("sink.operator-uid.suffix", Kind.TEXT, None, "Suffix of operator ids.", _FLINK),
    _plain("sink.savepoint.auto-tag", Kind.BOOLEAN, False, "Create a tag for every savepoint.", _FLINK, tuning=False),
    _plain("sink.use-managed-memory-allocator", Kind.BOOLEAN, False, "Use managed memory for writing.", _FLINK),
    _family("sink.writer-coordinator.<setting>", "How writers learn of existing files.", _FLINK),
    _plain("sink.writer-cpu", Kind.DECIMAL, 1.0, "Cores of a writer.", _FLINK),
    _plain("sink.writer-memory", Kind.SIZE, None, "Memory of a writer.", _FLINK),
    _plain("sink.writer-refresh-detectors", Kind.LIST, _NO_NAMES, "Options that writers re-read.", _FLINK),
    _family("source.checkpoint-align.<setting>", "Align checkpoints with snapshots.", _FLINK),
    _plain("source.operator-uid.suffix", Kind.TEXT, None, "Suffix of operator ids.", _FLINK),
    _plain("unaware-bucket.compaction.parallelism", Kind.INTEGER, None, "Tasks that compact.", _FLINK),
    _plain("unaware-bucket.no-shuffle", Kind.BOOLEAN, False, "Write captured rows where they arrive.", _FLINK),
    _plain("lookup.async", Kind.BOOLEAN, False, "Look up in threads.", _JOIN),
    _plain("lookup.async-thread-number", Kind.INTEGER, 16, "Threads that look up.", _JOIN),
    _plain("lookup.blob-as-descriptor", Kind.BOOLEAN, False, "Keep references to large values.", _JOIN),
    _plain("lookup.bootstrap-parallelism", Kind.INTEGER, 4, "Threads that load the joined table.", _JOIN),
    _plain("lookup.cache", Kind.TEXT, "AUTO", "How much of the joined table is kept.", _JOIN),
    _plain("lookup.cache-rows", Kind.INTEGER, 10_000, "Rows kept in memory.", _JOIN),
    _plain("lookup.cache-spill-compression", Kind.TEXT, "zstd", "Compression of local lookup files.", _LOOKUP),
    _plain("lookup.cache.high-priority-pool-ratio", Kind.DECIMAL, 0.25, "Memory kept for indexes.", _LOOKUP),
    _plain("lookup.continuous.discovery-interval", Kind.DURATION, None, "How often snapshots are sought.", _JOIN),
    _family("lookup.dynamic-partition.<setting>", "How the newest partition is followed.", _JOIN),
    _plain("lookup.hash-load-factor", Kind.DECIMAL, 0.75, "How full a lookup index gets.", _LOOKUP),
    _plain("lookup.merge-buffer-size", Kind.SIZE, 8 * MIB, "Memory for merging one key.", _LOOKUP),
    _plain("lookup.merge-records-threshold", Kind.INTEGER, 1024, "Rows of a key merged in memory.", _LOOKUP),
    _family("lookup.refresh.<setting>", "How the joined table is refreshed.", _JOIN),
    _family("lookup.remote-file.<setting>", "Keep lookup files in the table.", _LOOKUP),
    _plain(
        "legacy-timestamp-mapping.enabled", Kind.BOOLEAN, False, "Read plain timestamps as zoned.", _SPARK, tuning=False
    ),
    _plain("requiredSparkConfsCheck.enabled", Kind.BOOLEAN, True, "Check the session's settings.", _SPARK),
    _plain("write.use-v2-write", Kind.BOOLEAN, False, "Use the newer write interface.", _SPARK),
    _plain("table.discovery-interval", Kind.DURATION, 60_000, "How often new tables are sought.", _FLINK),
)
