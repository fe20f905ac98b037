"""Options of the files themselves: format, compression, size, names, statistics, indexes."""

from __future__ import annotations

from typing import Final

from lakebed.options.option import ON_READ, ON_WRITE, READS_AND_WRITES, WRITES, FieldOption, Kind, Names, Option
from lakebed.units import KIB, LONG_MAX, MIB

_STATS_PATTERN: Final = r"none|counts|full|truncate\([0-9]+\)"
_STATS_FORM: Final = "`none`, `counts`, `full` or `truncate(n)`"
_PATHS: Final = "data files lie under the table's own directory; leave the option out"
_INDEXES: Final = "choose one of `bloom-filter`, `bitmap`, `range-bitmap` and `bsi`"
_LEAVE_OUT: Final = "leave the option out; the result is the same"

FILE_FORMAT = Option(
    "file.format",
    Kind.CHOICE,
    "parquet",
    "Format of new data files. `csv`, `json` and `text` (one column of text) hold no statistics, are slow to read, and "
    "refuse values that they have no text for.",
    choices=("parquet", "orc", "avro", "csv", "json", "text"),
    honoured=True,
    scope=ON_WRITE,
    affects=WRITES,
)
FILE_FORMAT_PER_LEVEL = Option[Names](
    "file.format.per.level",
    Kind.LIST,
    (),
    "Format of data files by level, as in `0:avro,3:parquet`; for tables with a key.",
    pattern=r"[0-9]+:\w+",
    form="levels and formats, such as `0:avro,3:parquet`",
    honoured=True,
    scope=ON_WRITE,
)
FILE_COMPRESSION = Option(
    "file.compression",
    Kind.CHOICE,
    "zstd",
    "Compression of data files; not every format knows every one. Where nothing is said, `csv`, `json` and `text` "
    "files have none.",
    choices=("zstd", "lz4", "snappy", "gzip", "brotli", "zlib", "deflate", "bzip2", "uncompressed", "none", "null"),
    paimon="differs: files of text are not compressed unless it is set",
    honoured=True,
    scope=ON_WRITE,
)
FILE_COMPRESSION_PER_LEVEL = Option[Names](
    "file.compression.per.level",
    Kind.LIST,
    (),
    "Compression of data files by level, as in `0:lz4,1:zstd`; for tables with a key.",
    pattern=r"[0-9]+:\w+",
    form="levels and compressions, such as `0:lz4,1:zstd`",
    honoured=True,
    scope=ON_WRITE,
)
FILE_COMPRESSION_ZSTD_LEVEL = Option(
    "file.compression.zstd-level",
    Kind.INTEGER,
    1,
    "Level of zstd: higher is smaller and slower.",
    minimum=1,
    maximum=22,
    honoured=True,
    scope=ON_WRITE,
)
FILE_BLOCK_SIZE = Option[int | None](
    "file.block-size",
    Kind.SIZE,
    None,
    "Size of a Parquet row group or an ORC stripe; without it, the format decides.",
    honoured=True,
    scope=ON_WRITE,
)
TARGET_FILE_SIZE = Option[int | None](
    "target-file-size",
    Kind.SIZE,
    None,
    "Size at which a writer starts the next data file; without it, 128 mb with a primary key and 256 mb without.",
    honoured=True,
    scope=ON_WRITE,
)
TARGET_FILE_ROW_NUM = Option(
    "target-file-row-num",
    Kind.INTEGER,
    LONG_MAX,
    "Rows after which a writer starts the next data file.",
    minimum=1,
    maximum=LONG_MAX,
    honoured=True,
    scope=ON_WRITE,
)
DATA_FILE_PREFIX = Option(
    "data-file.prefix",
    Kind.TEXT,
    "data-",
    "First part of the names of data files.",
    pattern=r"[^/]*",
    form="a text without `/`",
    honoured=True,
    scope=ON_WRITE,
)
DATA_FILE_THIN_MODE = Option(
    "data-file.thin-mode",
    Kind.BOOLEAN,
    False,
    "Store key columns once instead of twice in files of tables with a key.",
    instead="leave the option out; files with and without the second copy can be mixed",
    tuning=True,
)
DATA_FILE_PATH_DIRECTORY = Option[str | None](
    "data-file.path-directory",
    Kind.TEXT,
    None,
    "Directory inside the table under which all data files lie.",
    immutable=True,
    honoured=True,
)
DATA_FILE_EXTERNAL_PATHS = Option[Names](
    "data-file.external-paths",
    Kind.LIST,
    (),
    "Places outside the table where new data files are put, by a strategy.",
    instead=_PATHS,
    tuning=True,
)
DATA_FILE_EXTERNAL_PATHS_STRATEGY = Option(
    "data-file.external-paths.strategy",
    Kind.CHOICE,
    "none",
    "How one of those places is chosen.",
    choices=("none", "specific-fs", "round-robin", "entropy-inject", "weight-robin"),
    instead=_PATHS,
    affects=WRITES,
)
DATA_FILE_EXTERNAL_PATHS_SPECIFIC_FS = Option[str | None](
    "data-file.external-paths.specific-fs",
    Kind.TEXT,
    None,
    "Scheme of the place to use when one file system is chosen for all.",
    instead=_PATHS,
    tuning=True,
)
DATA_FILE_EXTERNAL_PATHS_WEIGHTS = Option[Names](
    "data-file.external-paths.weights",
    Kind.LIST,
    (),
    "How often each place is chosen.",
    instead=_PATHS,
    tuning=True,
)
INDEX_FILE_IN_DATA_FILE_DIR = Option(
    "index-file-in-data-file-dir",
    Kind.BOOLEAN,
    False,
    "Put index files next to the data files they belong to.",
    immutable=True,
    instead=_PATHS,
    affects=READS_AND_WRITES,
)
FILE_SUFFIX_INCLUDE_COMPRESSION = Option(
    "file.suffix.include.compression",
    Kind.BOOLEAN,
    False,
    "Name the compression in the names of data files, as in `data-1.zst.parquet`.",
    honoured=True,
    scope=ON_WRITE,
)
PARTITION_DEFAULT_NAME = Option(
    "partition.default-name",
    Kind.TEXT,
    "__DEFAULT_PARTITION__",
    "Directory name of partition values that are null or empty.",
    pattern=r"[^/]+",
    form="a text without `/`",
    honoured=True,
)
PARTITION_LEGACY_NAME = Option(
    "partition.legacy-name",
    Kind.BOOLEAN,
    True,
    "Spell dates and times in directory names the older way, as plain numbers.",
    honoured=True,
)
METADATA_STATS_MODE = Option(
    "metadata.stats-mode",
    Kind.TEXT,
    "truncate(16)",
    "Statistics kept about each data file: nothing, counts of nulls, or bounds, whole or cut to a length.",
    pattern=_STATS_PATTERN,
    form=_STATS_FORM,
    honoured=True,
    scope=ON_WRITE,
)
METADATA_STATS_MODE_PER_LEVEL = Option[Names](
    "metadata.stats-mode.per.level",
    Kind.LIST,
    (),
    "Statistics by level, as in `0:none`; for tables with a key.",
    pattern=rf"[0-9]+:({_STATS_PATTERN})",
    form="levels and modes, such as `0:none`",
    honoured=True,
    scope=ON_WRITE,
)
FIELD_STATS_MODE = FieldOption[str | None](
    "fields.<field>.stats-mode",
    Kind.TEXT,
    None,
    "Statistics kept about one column; without it, as for the table.",
    pattern=_STATS_PATTERN,
    form=_STATS_FORM,
    honoured=True,
    scope=ON_WRITE,
)
METADATA_STATS_DENSE_STORE = Option(
    "metadata.stats-dense-store",
    Kind.BOOLEAN,
    True,
    "Leave columns without statistics out of the manifests.",
    honoured=True,
    scope=ON_WRITE,
)
METADATA_STATS_KEEP_FIRST_N_COLUMNS = Option(
    "metadata.stats-keep-first-n-columns",
    Kind.INTEGER,
    -1,
    "Keep statistics for the first columns only; -1 for all.",
    minimum=-1,
    instead="set `fields.<field>.stats-mode` to `none` for the other columns",
    tuning=True,
)
MANIFEST_COMPRESSION = Option(
    "manifest.compression",
    Kind.CHOICE,
    "zstd",
    "Compression of manifests and manifest lists.",
    choices=("zstd", "deflate", "snappy", "null", "bzip2", "xz"),
    honoured_choices=("zstd", "deflate", "snappy", "null"),
    honoured=True,
    instead="not every engine reads such manifests",
)
MANIFEST_FORMAT = Option(
    "manifest.format",
    Kind.CHOICE,
    "avro",
    "Format of manifests and manifest lists.",
    choices=("avro", "orc", "parquet"),
    honoured_choices=("avro",),
    honoured=True,
    instead="every engine reads Avro manifests",
    affects=READS_AND_WRITES,
)
MANIFEST_TARGET_FILE_SIZE = Option(
    "manifest.target-file-size",
    Kind.SIZE,
    8 * MIB,
    "Size at which a manifest is full.",
    honoured=True,
)
MANIFEST_MERGE_MIN_COUNT = Option(
    "manifest.merge-min-count",
    Kind.INTEGER,
    30,
    "Small manifests that must come together before a commit merges them.",
    minimum=1,
    honoured=True,
)
MANIFEST_FULL_COMPACTION_THRESHOLD_SIZE = Option(
    "manifest.full-compaction-threshold-size",
    Kind.SIZE,
    16 * MIB,
    "Size of changed manifests at which a commit rewrites all of them.",
    honoured=True,
)
MANIFEST_DELETE_FILE_DROP_STATS = Option(
    "manifest.delete-file-drop-stats",
    Kind.BOOLEAN,
    False,
    "Leave statistics out of manifest entries that remove a file.",
    instead=_LEAVE_OUT,
    tuning=True,
)
MANIFEST_MERGE_OPTIMIZE_ENABLED = Option(
    "manifest.merge-optimize.enabled",
    Kind.BOOLEAN,
    True,
    "Copy unchanged blocks when manifests are merged.",
    instead=_LEAVE_OUT,
    tuning=True,
)
MANIFEST_SORT_ENABLED = Option(
    "manifest-sort.enabled",
    Kind.BOOLEAN,
    False,
    "Sort manifest entries by partition while committing.",
    instead=_LEAVE_OUT,
    tuning=True,
)
MANIFEST_SORT_MAX_REWRITE_SIZE = Option(
    "manifest-sort.max-rewrite-size",
    Kind.SIZE,
    256 * MIB,
    "Most bytes of manifests that one such sort rewrites.",
    instead=_LEAVE_OUT,
    tuning=True,
)
MANIFEST_SORT_PARTITION_FIELD = Option[str | None](
    "manifest-sort.partition-field",
    Kind.TEXT,
    None,
    "Partition column that manifest entries are sorted by.",
    instead=_LEAVE_OUT,
    tuning=True,
)
FILE_INDEX_BLOOM_FILTER_COLUMNS = Option[Names](
    "file-index.bloom-filter.columns",
    Kind.LIST,
    (),
    "Columns that get a Bloom filter in every data file, by which reads of single values leave files out.",
    honoured=True,
)
FILE_INDEX_BITMAP_COLUMNS = Option[Names](
    "file-index.bitmap.columns",
    Kind.LIST,
    (),
    "Columns that get a bitmap index in every data file: which rows have which value. For columns of few values.",
    honoured=True,
)
FILE_INDEX_RANGE_BITMAP_COLUMNS = Option[Names](
    "file-index.range-bitmap.columns",
    Kind.LIST,
    (),
    "Columns that get an index of ranges in every data file: which rows have values below or above another.",
    honoured=True,
)
FILE_INDEX_BSI_COLUMNS = Option[Names](
    "file-index.bsi.columns",
    Kind.LIST,
    (),
    "Columns of whole numbers, dates or times that get a bit-slice index in every data file.",
    honoured=True,
)
FILE_INDEX_COLUMNS = FieldOption[Names](
    "file-index.<type>.columns",
    Kind.LIST,
    (),
    "Columns that get an index of this type in every data file.",
    instead=_INDEXES,
)
FILE_INDEX_COLUMN_SETTING = FieldOption[str | None](
    "file-index.<type>.<column>.<setting>",
    Kind.TEXT,
    None,
    "A setting of one column's index, such as `fpp` of a Bloom filter.",
    honoured=True,
)
FILE_INDEX_IN_MANIFEST_THRESHOLD = Option(
    "file-index.in-manifest-threshold",
    Kind.SIZE,
    500,
    "Size up to which the indexes of a file are kept in the manifest instead of a file.",
    honoured=True,
)
FILE_INDEX_READ_ENABLED = Option(
    "file-index.read.enabled",
    Kind.BOOLEAN,
    True,
    "Skip files by their indexes while reading.",
    honoured=True,
    scope=ON_READ,
)
PARQUET_ENABLE_DICTIONARY = Option[bool | None](
    "parquet.enable.dictionary",
    Kind.BOOLEAN,
    None,
    "Use dictionary encoding in Parquet files.",
    instead=_LEAVE_OUT,
    tuning=True,
)
ORC_DICTIONARY_KEY_THRESHOLD = Option(
    "orc.dictionary.key.threshold",
    Kind.DECIMAL,
    0.8,
    "Part of distinct values above which ORC files use no dictionary.",
    instead=_LEAVE_OUT,
    tuning=True,
)
ORC_COLUMN_ENCODING_DIRECT = Option[Names](
    "orc.column.encoding.direct",
    Kind.LIST,
    (),
    "Columns that ORC files store without a dictionary.",
    instead=_LEAVE_OUT,
    tuning=True,
)
ORC_TIMESTAMP_LTZ_LEGACY_TYPE = Option(
    "orc.timestamp-ltz.legacy.type",
    Kind.BOOLEAN,
    True,
    "Store zoned timestamps in ORC files as plain ones.",
    instead="use Parquet for tables with zoned timestamps",
    affects=READS_AND_WRITES,
)
CSV_FIELD_DELIMITER = Option(
    "csv.field-delimiter",
    Kind.TEXT,
    ",",
    "Character between the values of a line of a CSV file.",
    immutable=True,
    honoured=True,
)
CSV_LINE_DELIMITER = Option(
    "csv.line-delimiter",
    Kind.TEXT,
    "\n",
    "What ends a line of a CSV file. With the usual line ends, values can not have any in them.",
    immutable=True,
    honoured=True,
)
CSV_QUOTE_CHARACTER = Option(
    "csv.quote-character",
    Kind.TEXT,
    '"',
    "Character around values of CSV files that need it.",
    immutable=True,
    honoured=True,
)
CSV_ESCAPE_CHARACTER = Option(
    "csv.escape-character",
    Kind.TEXT,
    "\\",
    "Character in front of a quote inside of a quoted value of a CSV file.",
    immutable=True,
    honoured=True,
)
CSV_INCLUDE_HEADER = Option(
    "csv.include-header",
    Kind.BOOLEAN,
    False,
    "Begin CSV files with a line of the columns' names.",
    immutable=True,
    honoured=True,
)
CSV_NULL_LITERAL = Option(
    "csv.null-literal",
    Kind.TEXT,
    "",
    "Text that stands for null in CSV files. No value may be spelled so: by default, texts can not be empty.",
    immutable=True,
    honoured=True,
    paimon="differs: a value that would be read as null is refused",
)
CSV_MODE = Option(
    "csv.mode",
    Kind.CHOICE,
    "permissive",
    "What readers of CSV files do with texts that are no values. Here they are always an error.",
    choices=("permissive", "failfast", "dropmalformed"),
    honoured_choices=("permissive", "failfast"),
    instead="a text that is no value is damage, which is never left out",
    honoured=True,
    affects=READS_AND_WRITES,
)
JSON_LINE_DELIMITER = Option(
    "json.line-delimiter",
    Kind.TEXT,
    "\n",
    "What ends a line of a JSON file.",
    immutable=True,
    honoured=True,
)
JSON_IGNORE_PARSE_ERRORS = Option(
    "json.ignore-parse-errors",
    Kind.BOOLEAN,
    False,
    "Read null for texts of JSON files that are no values.",
    instead="a text that is no value is damage, which is never left out",
)
JSON_MAP_NULL_KEY_MODE = Option(
    "json.map-null-key-mode",
    Kind.CHOICE,
    "fail",
    "What becomes of keys of maps that are null.",
    choices=("fail", "drop", "literal"),
    instead="maps have no such keys here; leave the option out",
    tuning=True,
)
JSON_MAP_NULL_KEY_LITERAL = Option(
    "json.map-null-key-literal",
    Kind.TEXT,
    "null",
    "Text of such keys.",
    instead="maps have no such keys here; leave the option out",
    tuning=True,
)
TEXT_LINE_DELIMITER = Option(
    "text.line-delimiter",
    Kind.TEXT,
    "\n",
    "What ends a line of a text file. No value may have it in it.",
    immutable=True,
    honoured=True,
)
FILE_READER_ASYNC_THRESHOLD = Option(
    "file-reader-async-threshold",
    Kind.SIZE,
    10 * MIB,
    "Size above which a file is read in a thread of its own.",
    instead=_LEAVE_OUT,
    tuning=True,
)
LOCAL_KV_DB_BLOCK_SIZE = Option(
    "local-kv-db.block-size",
    Kind.SIZE,
    4 * KIB,
    "Block size of the local store that lookups use.",
    instead=_LEAVE_OUT,
    tuning=True,
)
