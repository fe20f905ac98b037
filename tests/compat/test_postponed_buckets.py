"""Postponed buckets shared with other engines: rows that wait are understood by both sides."""

import re
from pathlib import Path

import fastavro
import pytest
from benchmarks.spark_peers import Worker, available

import lakebed

from .judges import JavaJudge, Judge, Row, assert_same_rows
from .ours import DATABASE, create, open_table, read, write

SCHEMA = {"p": "STRING NOT NULL", "k": "BIGINT NOT NULL", "v": "STRING"}
FIELDS = [("p", "STRING", False), ("k", "BIGINT", False), ("v", "STRING", True)]
WAITING = {"bucket": "-2", "postpone.batch-write-fixed-bucket": "false", "postpone.default-bucket-num": "2"}

DESCRIBED = (
    "row_count", "min_key", "max_key", "value_stats", "min_sequence_number", "max_sequence_number", "level",
    "delete_row_count", "file_source", "value_stats_cols",
)  # fmt: skip
"""What a manifest says of a file, as far as it does not depend on time or chance."""


def rows_of(keys: list[int], word: str) -> list[Row]:
    """Rows of these keys in two partitions."""
    return [{"p": part, "k": key, "v": f"{word}-{part}-{key}"} for key in keys for part in ("a", "b")]


def waiting(root: Path) -> list[str]:
    """Names of the files in which rows wait."""
    return sorted(path.name for path in root.rglob("bucket-postpone/data-*"))


def test_we_place_what_java_wrote(java_judge: JavaJudge, tmp_path: Path) -> None:
    """Rows that Java left waiting come to buckets, in order, and Java reads and goes on with them."""
    java_judge.create(tmp_path, DATABASE, "t", FIELDS, primary_keys=["p", "k"], partition_keys=["p"], options=WAITING)
    java_judge.append(tmp_path, DATABASE, "t", rows_of(list(range(9)), "first"))
    java_judge.append(tmp_path, DATABASE, "t", rows_of([3, 4], "second"))
    java_judge.append(tmp_path, DATABASE, "t", rows_of([0], "gone"), kinds=["-D", "-D"])
    table = open_table(tmp_path, "t")
    assert len(waiting(tmp_path)) == 6
    assert read(table) == []
    table.compact()
    expected = rows_of([1, 2, 5, 6, 7, 8], "first") + rows_of([3, 4], "second")
    assert_same_rows(read(table), expected)
    assert_same_rows(java_judge.read(tmp_path, DATABASE, "t"), expected)
    table.compact(full=True)
    assert_same_rows(java_judge.read(tmp_path, DATABASE, "t"), expected)
    table.expire_snapshots(retain_max=1)
    assert waiting(tmp_path) == []
    assert_same_rows(java_judge.read(tmp_path, DATABASE, "t"), expected)


def test_their_connector_places_what_we_wrote(java_judge: JavaJudge, tmp_path: Path) -> None:
    """Rows that we left waiting are placed by Paimon's own compaction, on Spark, in turns with ours; all agree.

    One commit of upserts waits at a time: the connector takes the rows of several in no order, and deletes for rows,
    whoever wrote them.
    """
    found, missing = available(["paimon"], build=False)
    if not found:
        pytest.skip(f"Paimon's connector for Spark is not at hand: {missing['paimon']}")
    warehouse = tmp_path / "warehouse"
    table = create(warehouse, "t", SCHEMA, primary_key=["p", "k"], partition_by=["p"], options=WAITING)
    expected = rows_of(list(range(9)), "first")
    with Worker("paimon", warehouse) as connector:

        def compact(rows: list[Row]) -> None:
            assert len(waiting(warehouse)) > 0
            answer, _, _ = connector.step("query", text=f"CALL paimon.sys.compact(table => '{DATABASE}.t')")
            assert answer == [[True]]
            assert_same_rows(read(open_table(warehouse, "t")), rows)
            assert_same_rows(java_judge.read(warehouse, DATABASE, "t"), rows)

        write(table, expected)
        compact(expected)
        write(table, rows_of([3, 4, 20], "second"))
        expected = rows_of([0, 1, 2, 5, 6, 7, 8], "first") + rows_of([3, 4, 20], "second")
        compact(expected)
        write(table, rows_of([1, 20], "third"))
        table.compact()
        write(table, rows_of([2, 21], "fourth"))
        expected = rows_of([0, 5, 6, 7, 8], "first") + rows_of([3, 4], "second") + rows_of([1, 20], "third")
        expected += rows_of([2, 21], "fourth")
        compact(expected)


def test_waiting_files_look_alike(java_judge: JavaJudge, tmp_path: Path) -> None:
    """Files in which rows wait have the columns, rows, names and descriptions that Java gives them."""
    made: dict[str, tuple[object, ...]] = {}
    for name in ("java", "ours"):
        keys = {"primary_keys": ["p", "k"], "partition_keys": ["p"]}
        java_judge.create(tmp_path, DATABASE, name, FIELDS, **keys, options=WAITING)
        table = open_table(tmp_path, name)
        rows: list[Row] = [{"p": "a", "k": key, "v": f"v{key}"} for key in (3, 1, 2)]
        if name == "java":
            java_judge.append(tmp_path, DATABASE, name, rows, kinds=["+I", "-D", "+U"])
        else:
            write(table, rows, ["+I", "-D", "+U"])
        (path,) = (tmp_path / "db.db" / name).rglob("bucket-postpone/*")
        with path.open("rb") as file:
            reader = fastavro.reader(file)
            content = (reader.writer_schema, reader.metadata["avro.codec"], list(reader))
        (entry,) = table.with_options({})._opened.current().stores.manifests.read(_manifest(table))
        file_name = re.fullmatch(r"data--u-[0-9a-f-]{36}-s-\d+-w-[0-9a-f-]{36}-0\.avro", entry.file.file_name)
        about = {name: getattr(entry.file, name) for name in DESCRIBED}
        made[name] = (*content, file_name is not None, entry.bucket, entry.total_buckets, about)
        assert file_name is not None
        assert java_judge.read(tmp_path, DATABASE, name) == []
    assert made["ours"] == made["java"]


def _manifest(table: lakebed.Table) -> str:
    """The one manifest of the table's last commit."""
    snapshot = table.latest_snapshot()
    assert snapshot is not None
    (meta,) = table._opened.current().stores.manifest_lists.read(snapshot.delta_manifest_list)
    return meta.file_name


@pytest.mark.parametrize("judge_name", ["java", "pypaimon", "rust"])
def test_judges_read_batches_that_went_to_buckets(
    judge_name: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    """Rows of a batch are in buckets that all engines read, next to rows that wait, which none of them shows."""
    judge: Judge = request.getfixturevalue(f"{judge_name}_judge")
    options = {"bucket": "-2", "postpone.target-row-num-per-bucket": "10"}
    table = create(tmp_path, "t", SCHEMA, primary_key=["p", "k"], partition_by=["p"], options=options)
    write(table, rows_of(list(range(30)), "first"))
    write(table, rows_of(list(range(5)), "second"))
    write(table.with_options({"postpone.batch-write-fixed-bucket": "false"}), rows_of([1, 99], "waiting"))
    assert len(waiting(tmp_path)) == 2
    expected = rows_of(list(range(5)), "second") + rows_of(list(range(5, 30)), "first")
    assert_same_rows(judge.read(tmp_path, DATABASE, "t"), expected)
    assert_same_rows(read(table), expected)
