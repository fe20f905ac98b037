"""Options of the changelog: what is recorded of each change, and how old values are found."""

from __future__ import annotations

from typing import Final

from lakebed.options.option import ON_WRITE, WRITES, Kind, Names, Option
from lakebed.units import HOUR_MS, LONG_MAX, MIB

_LOOKUP: Final = "local copies are searched in key order and have no Bloom filter; leave the option out"

CHANGELOG_PRODUCER = Option(
    "changelog-producer",
    Kind.CHOICE,
    "none",
    "What writes changelog files: nothing, a copy of the input, full compactions, or compactions that look up.",
    choices=("none", "input", "full-compaction", "lookup"),
    honoured=True,
    affects=WRITES,
)
CHANGELOG_PRODUCER_ROW_DEDUPLICATE = Option(
    "changelog-producer.row-deduplicate",
    Kind.BOOLEAN,
    False,
    "Record no `-U`, `+U` pair for a row that did not change.",
    honoured=True,
)
CHANGELOG_PRODUCER_ROW_DEDUPLICATE_IGNORE_FIELDS = Option[Names](
    "changelog-producer.row-deduplicate-ignore-fields",
    Kind.LIST,
    (),
    "Columns that do not count when two rows are compared for a change.",
    honoured=True,
)
CHANGELOG_PRODUCER_INPUT_NORMALIZE = Option(
    "changelog-producer.input.normalize",
    Kind.BOOLEAN,
    False,
    "Let an `input` changelog tell what rows change: upserts become `-U`, `+U` pairs, rows that lose are left out.",
    honoured=True,
    paimon="ours",
)
CHANGELOG_PRODUCER_IGNORE_DELETE = Option(
    "changelog-producer.ignore-delete",
    Kind.BOOLEAN,
    False,
    "Leave deletes out of the changelog; the table itself still loses the rows.",
    honoured=True,
    paimon="ours",
)
FULL_COMPACTION_DELTA_COMMITS = Option[int | None](
    "full-compaction.delta-commits",
    Kind.INTEGER,
    None,
    "Commits after which a full compaction is due.",
    minimum=1,
    honoured=True,
)
LOOKUP_WAIT = Option(
    "lookup-wait",
    Kind.BOOLEAN,
    True,
    "Let every commit do the compaction that looks up old values; otherwise it waits until one is due.",
    aliases=("changelog-producer.lookup-wait",),
    honoured=True,
)
FORCE_LOOKUP = Option(
    "force-lookup",
    Kind.BOOLEAN,
    False,
    "Compact with lookups even if nothing else asks for it.",
    immutable=True,
    honoured=True,
)
LOOKUP_COMPACT = Option(
    "lookup-compact",
    Kind.CHOICE,
    "RADICAL",
    "Whether new files are looked up at once or may wait.",
    choices=("RADICAL", "GENTLE"),
    honoured=True,
)
LOOKUP_COMPACT_MAX_INTERVAL = Option[int | None](
    "lookup-compact.max-interval",
    Kind.INTEGER,
    None,
    "New files of a bucket that may wait before gentle lookups are forced; twice the compaction trigger by default.",
    honoured=True,
)
LOOKUP_CACHE_FILE_RETENTION = Option(
    "lookup.cache-file-retention",
    Kind.DURATION,
    HOUR_MS,
    "How long a local lookup file is kept after its last use.",
    honoured=True,
)
LOOKUP_CACHE_MAX_DISK_SIZE = Option(
    "lookup.cache-max-disk-size",
    Kind.SIZE,
    LONG_MAX,
    "Disk space that local lookup files may take.",
    honoured=True,
)
LOOKUP_CACHE_MAX_MEMORY_SIZE = Option(
    "lookup.cache-max-memory-size",
    Kind.SIZE,
    256 * MIB,
    "Memory that lookups may take.",
    honoured=True,
)
LOOKUP_CACHE_BLOOM_FILTER_ENABLED = Option(
    "lookup.cache.bloom.filter.enabled",
    Kind.BOOLEAN,
    True,
    "Give local lookup files a Bloom filter.",
    instead=_LOOKUP,
    tuning=True,
)
LOOKUP_CACHE_BLOOM_FILTER_FPP = Option(
    "lookup.cache.bloom.filter.fpp",
    Kind.DECIMAL,
    0.05,
    "How often such a Bloom filter may be wrong.",
    instead=_LOOKUP,
    tuning=True,
)
CHANGELOG_FILE_FORMAT = Option[str | None](
    "changelog-file.format",
    Kind.CHOICE,
    None,
    "Format of changelog files; without it, that of data files.",
    choices=("parquet", "orc", "avro", "csv", "json", "text"),
    honoured=True,
)
CHANGELOG_FILE_COMPRESSION = Option[str | None](
    "changelog-file.compression",
    Kind.TEXT,
    None,
    "Compression of changelog files; without it, that of data files.",
    honoured=True,
)
CHANGELOG_FILE_STATS_MODE = Option[str | None](
    "changelog-file.stats-mode",
    Kind.TEXT,
    None,
    "Statistics kept about changelog files; without it, those of data files.",
    pattern=r"none|counts|full|truncate\([0-9]+\)",
    form="`none`, `counts`, `full` or `truncate(n)`",
    honoured=True,
)
CHANGELOG_FILE_PREFIX = Option(
    "changelog-file.prefix",
    Kind.TEXT,
    "changelog-",
    "First part of the names of changelog files.",
    honoured=True,
)
CHANGELOG_NUM_RETAINED_MIN = Option[int | None](
    "changelog.num-retained.min",
    Kind.INTEGER,
    None,
    "Fewest changelogs to keep after their snapshots expired; without it, as for snapshots.",
    minimum=1,
    honoured=True,
)
CHANGELOG_NUM_RETAINED_MAX = Option[int | None](
    "changelog.num-retained.max",
    Kind.INTEGER,
    None,
    "Most changelogs to keep; without it, as for snapshots.",
    minimum=1,
    honoured=True,
)
CHANGELOG_TIME_RETAINED = Option[int | None](
    "changelog.time-retained",
    Kind.DURATION,
    None,
    "How long changelogs are kept; without it, as long as snapshots.",
    honoured=True,
)
PRECOMMIT_COMPACT = Option(
    "precommit-compact",
    Kind.BOOLEAN,
    False,
    "Merge the small files of one commit into larger ones before committing.",
    aliases=("changelog.precommit-compact",),
    honoured=True,
    scope=ON_WRITE,
)
DELETE_FORCE_PRODUCE_CHANGELOG = Option(
    "delete.force-produce-changelog",
    Kind.BOOLEAN,
    False,
    "Let deletes reach the changelog even if whole partitions go. They always do: they are written as rows.",
    honoured=True,
    scope=ON_WRITE,
)
