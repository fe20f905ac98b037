"""Tables with damaged files: a read gives right rows or an error that names a file and a way out, never anything else.

Damage is tried on every kind of file of a table: cut, emptied, replaced, lost, single bits turned over. Bits are
sampled by a fixed seed. All our files carry checksums, so wrong rows are a failure, except where a file is lost of
which nothing else tells for certain. Every kind of table is for `tests/faults/test_bit_flips.py`.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from tests.unit.warehouse_under_test import Warehouse

from lakebed import Table
from lakebed.errors import CorruptFile, FileMissing, NotFound, Unsupported

EXPECTED = (CorruptFile, FileMissing, NotFound, Unsupported)
FLIPS = 40
Read = Callable[[Table], list[dict[str, Any]]]


def _rows(table: Table, start: int) -> pa.Table:
    ids = range(start, start + 40)
    columns = {
        "id": pa.array(ids, pa.int64()),
        "s": [f"text {number % 7} ü" for number in ids],
        "d": pa.array([Decimal(number) / 4 for number in ids], pa.decimal128(10, 2)),
        "a": [[number, None] if number % 3 else None for number in ids],
    }
    return pa.table(columns, schema=table.arrow_schema)


def _table(warehouse: Warehouse, file_format: str, keyed: bool) -> Table:
    table = warehouse.table(
        "t",
        {"id": "BIGINT NOT NULL", "s": "STRING", "d": "DECIMAL(10, 2)", "a": "ARRAY<INT>"},
        primary_key=["id"] if keyed else [],
        options={"file.format": file_format, **({"bucket": "1"} if keyed else {})},
    )
    table.write(_rows(table, 0))
    table.write(_rows(table, 20))
    table.create_tag("first", snapshot=1)
    return table


def _latest(table: Table) -> list[dict[str, Any]]:
    return table.to_arrow().sort_by("id").to_pylist()


def _tagged(table: Table) -> list[dict[str, Any]]:
    return _latest(table.at(tag="first"))


def _changes(table: Table) -> list[dict[str, Any]]:
    return table.changes().to_pylist()


READS: list[Read] = [_latest, _tagged, _changes]


def _damages(content: bytes, seed: int) -> Iterator[tuple[str, bytes | None]]:
    chance = random.Random(seed)
    size = len(content)
    yield "lost", None
    yield "emptied", b""
    yield "replaced", chance.randbytes(size)
    yield "replaced by text", b"hello"
    for kept in sorted({1, size // 4, size // 2, max(size - 9, 1), size - 1} - {0, size}):
        yield f"cut to {kept}", content[:kept]
    for position in sorted(chance.sample(range(size), min(size, FLIPS))):
        flipped = bytearray(content)
        flipped[position] ^= 1 << chance.randrange(8)
        yield f"bit of byte {position} flipped", bytes(flipped)


def _outcome(warehouse: Warehouse, read: Read, right: list[dict[str, Any]]) -> str:
    try:
        rows = read(warehouse.reopened().table("t"))
    except EXPECTED as error:
        names_it = "default.db/t" in error.message or "`default.t`" in error.message
        return "refused" if names_it and error.hint else f"refused without a name or a next step: {error}"
    except UnicodeDecodeError:
        return "wrong rows"  # the rows came, one of them with damaged text in it
    return "right rows" if rows == right else "wrong rows"


def _files(table: Table, pattern: str) -> list[Path]:
    found = sorted(Path(table.location).glob(pattern))
    assert found
    return found


def _outcomes(warehouse: Warehouse, table: Table, pattern: str) -> dict[tuple[str, str, str], str]:
    """What each read gives for each damage of each file."""
    right = {read.__name__: read(table) for read in READS}
    outcomes = {}
    for seed, path in enumerate(_files(table, pattern)):
        content = path.read_bytes()
        for damage, damaged in _damages(content, seed):
            path.unlink() if damaged is None else path.write_bytes(damaged)
            for read in READS:
                outcomes[path.name, damage, read.__name__] = _outcome(warehouse, read, right[read.__name__])
            path.write_bytes(content)
    warehouse.check_bystander()
    assert set(outcomes.values()) <= {"refused", "right rows", "wrong rows"}
    return outcomes


def _but(outcomes: dict[tuple[str, str, str], str], outcome: str, *excused: str) -> list[tuple[str, str, str]]:
    """The cases of an outcome, without those of excused damages."""
    return [case for case, got in outcomes.items() if got == outcome and not any(word in case[1] for word in excused)]


@pytest.mark.parametrize("keyed", [True, False], ids=["keyed", "append"])
def test_damaged_parquet_files(disk: Warehouse, keyed: bool) -> None:
    """Whatever is broken in a Parquet file, its rows are right or refused: checksums are written and checked."""
    table = _table(disk, "parquet", keyed)
    outcomes = _outcomes(disk, table, "bucket-0/data-*")
    assert _but(outcomes, "wrong rows") == []
    name = _files(table, "bucket-0/data-*")[0].name
    for damage in ("lost", "emptied", "replaced", "replaced by text", "cut to 1"):
        assert outcomes[name, damage, "_changes"] == "refused"


@pytest.mark.parametrize("file_format", ["orc", "avro"])
def test_damaged_files_of_other_formats(disk: Warehouse, file_format: str) -> None:
    """Whatever is broken in an ORC or Avro file, its rows are right or refused."""
    table = _table(disk, file_format, keyed=False)
    outcomes = _outcomes(disk, table, "bucket-0/data-*")
    assert _but(outcomes, "wrong rows") == []
    name = _files(table, "bucket-0/data-*")[0].name
    for damage in ("lost", "emptied", "replaced", "replaced by text", "cut to 1"):
        assert outcomes[name, damage, "_latest"] == "refused"


@pytest.mark.parametrize("pattern", ["manifest/manifest-list-*", "manifest/manifest-[!l]*"])
def test_damaged_manifests(disk: Warehouse, pattern: str) -> None:
    """A damaged manifest or manifest list is refused, or the damage lies where it changes no row."""
    table = _table(disk, "parquet", keyed=True)
    outcomes = _outcomes(disk, table, pattern)
    assert _but(outcomes, "wrong rows") == []


@pytest.mark.parametrize("pattern", ["snapshot/snapshot-*", "tag/tag-*", "schema/schema-*"])
def test_damaged_json_files(disk: Warehouse, pattern: str) -> None:
    """A damaged snapshot, tag or schema is refused, or the damage lies in the name of its checksum."""
    table = _table(disk, "parquet", keyed=False)
    outcomes = _outcomes(disk, table, pattern)
    assert _but(outcomes, "wrong rows", "lost") == []
    # Without its last snapshot a table looks as it did before that commit: nothing else records it for certain.
    assert all(name == "snapshot-2" for name, damage, _ in _but(outcomes, "wrong rows") if damage == "lost")


def test_damaged_hints(disk: Warehouse) -> None:
    """Hints only save work: damaged, wrong or lost, all reads are right."""
    table = _table(disk, "parquet", keyed=True)
    outcomes = _outcomes(disk, table, "snapshot/LATEST")
    assert set(outcomes.values()) == {"right rows"}
    hint = _files(table, "snapshot/LATEST")[0]
    for text in ("1", "7", "-1", "99999999999999999999999"):
        hint.write_text(text)
        assert len(_latest(disk.reopened().table("t"))) == 60


@pytest.mark.parametrize(
    ("pattern", "keyed"),
    [
        ("snapshot/snapshot-2", True),
        ("snapshot/snapshot-2", False),
        ("manifest/manifest-list-*", False),
        ("manifest/manifest-[!l]*", True),
        ("schema/schema-0", True),
        ("schema/schema-0", False),
    ],
)
@pytest.mark.parametrize("content", [b"", b"{", b"\x00\xff garbage"])
def test_writing_fails_closed(disk: Warehouse, pattern: str, keyed: bool, content: bytes) -> None:
    """A write that needs a damaged file commits nothing and leaves every file as it is."""
    table = _table(disk, "parquet", keyed)
    rows = _rows(table, 0)
    for path in _files(table, pattern):
        path.write_bytes(content)
    damaged = {path.name for path in _files(table, pattern)}
    for write in (
        lambda: disk.reopened().table("t").write(rows),
        lambda: disk.reopened().table("t").write(rows, overwrite=True),
        lambda: disk.reopened().table("t").truncate(),
    ):
        before = _only_files(disk)
        with pytest.raises(CorruptFile) as raised:
            write()
        assert any(name in str(raised.value) for name in damaged)
        assert _only_files(disk) == before
    disk.check_bystander()


def _only_files(warehouse: Warehouse) -> dict[str, str]:
    return {path: content for path, content in warehouse.contents().items() if content != "directory"}


@pytest.mark.parametrize(
    ("pattern", "content", "texts"),
    [
        ("snapshot/snapshot-2", b"", ["snapshot-2 is damaged", "not valid JSON", "restore this file"]),
        ("schema/schema-0", b"{}", ["schema-0", "restore the file"]),
        ("manifest/manifest-list-*", b"Obj\x01", ["manifest-list-", "is damaged", "restore this file"]),
        ("bucket-0/data-*", b"PAR1", ["/bucket-0/data-", "restore", "roll"]),
        ("bucket-0/data-*", None, ["/bucket-0/data-", "is gone", "open the table again"]),
        ("manifest/manifest-list-*", None, ["manifest-list-"]),
        ("schema/schema-0", None, ["default.t", "does not exist"]),
    ],
)
def test_errors_name_the_file_and_the_way_out(
    disk: Warehouse, pattern: str, content: bytes | None, texts: list[str]
) -> None:
    """The message has the file's path in it, and the hint says what to do."""
    table = _table(disk, "parquet", keyed=False)
    for path in _files(table, pattern):
        path.unlink() if content is None else path.write_bytes(content)
    with pytest.raises(EXPECTED) as raised:
        disk.reopened().table("t").to_arrow()
    for text in texts:
        assert text in str(raised.value)


def test_a_data_file_swapped_for_another(disk: Warehouse) -> None:
    """A sound file of another table, or of the same table, in the place of a data file is noticed."""
    table = _table(disk, "parquet", keyed=False)
    first = _files(table, "bucket-0/data-*")[0]
    other = Path(disk.lake.table("bystander").location).glob("bucket-0/data-*")
    first.write_bytes(next(iter(other)).read_bytes())
    with pytest.raises(CorruptFile, match=first.name):
        table.to_arrow()
    disk.check_bystander()


def test_a_snapshot_of_an_unknown_kind(disk: Warehouse) -> None:
    """A snapshot whose kind of commit is not known is refused rather than guessed at."""
    table = _table(disk, "parquet", keyed=False)
    path = _files(table, "snapshot/snapshot-2")[0]
    members = json.loads(path.read_text())
    assert members.pop("lakebedCrc32")
    path.write_text(json.dumps({**members, "commitKind": "MERGE"}))
    with pytest.raises(CorruptFile, match=r"snapshot-2.*commitKind"):
        disk.reopened().table("t").to_arrow()
