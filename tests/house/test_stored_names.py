"""Names that lie on disk outlive the modules that write them: all of them are written down here.

A name that is changed is a table, a stream or a sync that forgets what it has done. One that is added belongs below.
"""

from __future__ import annotations

import ast
import importlib.util
import re
from pathlib import Path

from lakebed.cdc.batch.batch import POSITION, SOURCE
from lakebed.commit import compaction_note
from lakebed.commit.replay import INSERT_PREFIX, LAST_IDENTIFIER_PREFIX, SYNC_PREFIX, VIEW_PREFIX
from lakebed.commit.sequence_state import MAX_SEQUENCE_NUMBER
from lakebed.fileio.memory import MemoryFileIO
from lakebed.metadata.operation import OWN_OPERATION, WRITER_NAME
from lakebed.metadata.paths import POSTPONE_BUCKET, TablePaths
from lakebed.metadata.sync_note import SyncNote, SyncNoteStore
from lakebed.options import OPTIONS

LAKEBED = Path(__file__).parents[2] / "src" / "lakebed"

PROPERTIES = {
    "lakebed.cdc.",
    "lakebed.cdc.position",
    "lakebed.cdc.source",
    "lakebed.compaction.millis",
    "lakebed.compaction.reason",
    "lakebed.insert.",
    "lakebed.last-identifier.",
    "lakebed.operation",
    "lakebed.view.",
    "sequence.generation.max-sequence-number",
}
"""Of snapshots."""
OWN_OPTIONS = {
    "cdc.update-as",
    "changelog-producer.ignore-delete",
    "changelog-producer.input.normalize",
    "lakebed.cdc.backfill",
    "lakebed.cdc.columns",
    "lakebed.cdc.keeps",
    "lakebed.count-fields",
    "lakebed.one-process-write.max-size",
    "lakebed.parallelism",
    "lakebed.view.definition",
    "lakebed.view.hidden-columns",
    "lakebed.view.query",
    "read.change-feed",
    "sink.rolling-policy.check-interval",
    "sink.rolling-policy.file-size",
    "sink.rolling-policy.rollover-interval",
}
"""Of tables."""
IN_FILES = {"lakebed.crc32", "lakebed.header-crc32", "lakebed.schema-crc32"}
"""In the headers of Avro files."""
MEMBERS = {"lakebedCrc32", "lakebedLastDeltaManifestList"}
"""In files of JSON."""
FORMATS = {"lakebed-kafka", "lakebed-mysql-changes", "lakebed-postgres"}
"""Of Spark's data sources; `lakebed` is that of tables."""
FILES = {"lakebed-lock", "lakebed-parked.json", "lakebed-paused", "lakebed-progress.json", "lakebed-sync.json"}
"""In checkpoints."""
NOT_STORED = {
    "lakebed-binlog-",
    "lakebed-cluster-",
    "lakebed-compaction",
    "lakebed-follow-up",
    "lakebed-index",
    "lakebed-kafka-",
    "lakebed-keys",
    "lakebed-keys-",
    "lakebed-launchers-",
    "lakebed-lineage",
    "lakebed-lineage-of-query",
    "lakebed-metrics",
    "lakebed-lookup",
    "lakebed-request",
    "lakebed-lookup-",
    "lakebed-query",
    "lakebed-query-",
    "lakebed-read",
    "lakebed-replication",
    "lakebed-scratch-",
    "lakebed-sort-",
    "lakebed-spark-",
    "lakebed-spill-",
    "lakebed-",
    "lakebed-kept-keys-",
    "lakebed-log4j2-",
    "lakebed.",
    "lakebed.cli.",
}
"""Threads, beginnings of names of modules, and temporary files that no other run looks for or that are made anew when
they lack. The name of the writer, `lakebed-` and a version, is pinned by itself."""

_LOOKS_STORED = re.compile(r"lakebed([.-][a-z0-9.-]*|[A-Z]\w*)")


def test_properties_of_snapshots() -> None:
    """What a commit, a stream and a sync tell of themselves is found under these keys."""
    of_syncs = {SYNC_PREFIX, POSITION, SOURCE}
    of_queries = {VIEW_PREFIX, INSERT_PREFIX}
    of_compactions = {compaction_note._REASON, compaction_note._MILLIS}
    assert (
        of_syncs | of_queries | of_compactions | {LAST_IDENTIFIER_PREFIX, MAX_SEQUENCE_NUMBER, OWN_OPERATION}
        == PROPERTIES
    )
    assert WRITER_NAME == "lakebed"


def test_own_options() -> None:
    """Options that we store in tables and Paimon does not know."""
    assert {option.key for option in OPTIONS if option.paimon == "ours"} == OWN_OPTIONS


def test_nothing_that_looks_stored_is_missing_here() -> None:
    """Every text of the source that looks like a name of ours is in one of the lists, and all of the lists are used.

    A text that is the name of a module is one only where modules are loaded by name: a property was once renamed with a
    module that happened to be called the same.
    """
    found = {text for text in _texts() if _LOOKS_STORED.fullmatch(text)}
    everything = PROPERTIES | OWN_OPTIONS | IN_FILES | MEMBERS | FORMATS | FILES | NOT_STORED
    pinned = {text for text in everything if _LOOKS_STORED.fullmatch(text)}
    assert {text for text in found if not _is_module(text) or text in pinned} == pinned


def _texts() -> set[str]:
    """All texts of the source but those that only people read, and what is shipped for tests."""
    found = set()
    for path in LAKEBED.rglob("*.py"):
        if path.relative_to(LAKEBED).parts[0] != "testing":
            nodes = ast.walk(ast.parse(path.read_text()))
            found |= {node.value for node in nodes if isinstance(node, ast.Constant) and isinstance(node.value, str)}
    return found


def _is_module(text: str) -> bool:
    try:
        return text.startswith("lakebed.") and importlib.util.find_spec(text) is not None
    except ModuleNotFoundError:
        return False


def test_notes_of_syncs() -> None:
    """Where a sync writes down how far it is."""
    store = SyncNoteStore.beside(MemoryFileIO("notes"), TablePaths("w/shop.db/orders"))
    store.write(SyncNote("a/b", "postgres", 1, True))
    (found,) = store._fileio.list_directory("w/shop.db/.syncs")
    assert found.path == "w/shop.db/.syncs/a%2Fb.json"


def test_files_of_a_table() -> None:
    """Where the files of a table and of a branch lie."""
    main, side = TablePaths("/t"), TablePaths("/t").on_branch("b")
    assert [
        main.schema_file(0),
        main.snapshot_file(1),
        main.latest_hint,
        main.earliest_hint,
        main.expiring_hint,
        main.changelog_file(1),
        main.tag_file("x"),
        main.consumer_file("c"),
        main.manifest_file("m"),
        main.index_file("i"),
        main.statistics_file("s"),
        main.data_file("p=1", 0, "f"),
        main.data_file("", POSTPONE_BUCKET, "f"),
        side.snapshot_file(1),
    ] == [
        "/t/schema/schema-0",
        "/t/snapshot/snapshot-1",
        "/t/snapshot/LATEST",
        "/t/snapshot/EARLIEST",
        "/t/snapshot/EXPIRING",
        "/t/changelog/changelog-1",
        "/t/tag/tag-x",
        "/t/consumer/consumer-c",
        "/t/manifest/m",
        "/t/index/i",
        "/t/statistics/s",
        "/t/p=1/bucket-0/f",
        "/t/bucket-postpone/f",
        "/t/branch/branch-b/snapshot/snapshot-1",
    ]
