"""A log as MySQL 8 writes it, put together by hand after the format's description: what MariaDB's logs do not have."""

from __future__ import annotations

import struct
from uuid import UUID

import numpy as np
import pyarrow as pa
import pytest

from lakebed.cdc.sources.mysql.log.compressed import expanded
from lakebed.cdc.sources.mysql.log.events import Kind, Segment, Statement, segment_of, statement
from lakebed.cdc.sources.mysql.log.table_map import LoggedTables
from lakebed.cdc.sources.mysql.log.transactions import Piece, Rows, Transactions
from lakebed.cdc.sources.mysql.server.changes import ChangeReader, TableChanges
from lakebed.errors import CorruptFile, InvalidOption, Unsupported
from lakebed.metadata.source_position import MySqlPosition

SERVER = UUID("3e11fa47-71ca-11e1-9e33-c80aa9429562")


def event(kind: Kind, body: bytes, time_s: int = 1_700_000_000) -> bytes:
    """An event with its header."""
    return struct.pack("<IBIIIH", time_s, kind, 1, 19 + len(body), 0, 0) + body


def gtid(number: int) -> bytes:
    """The id that opens a transaction."""
    return event(Kind.MYSQL_GTID, b"\0" + SERVER.bytes + struct.pack("<Q", number) + bytes(17))


def query(text: str, database: str = "d") -> bytes:
    """A statement."""
    head = struct.pack("<IIBHH", 1, 0, len(database), 0, 4) + b"vars"
    return event(Kind.QUERY, head + database.encode() + b"\0" + text.encode())


def xid() -> bytes:
    """The commit of a transaction."""
    return event(Kind.XID, bytes(8))


def table_map(number: int = 7, *, names: bool = True) -> bytes:
    """Table d.t: id int unsigned, name varchar(10), doc json; id is the key."""
    body = number.to_bytes(6, "little") + b"\0\0" + b"\x01d\0" + b"\x01t\0"
    body += b"\x03" + bytes([3, 15, 245]) + b"\x03" + struct.pack("<H", 40) + b"\x04" + bytes([0b110])
    body += b"\x01\x01\x80" + b"\x02\x01\x2d"  # id is unsigned; utf8mb4_general_ci
    if names:
        body += b"\x04\x0c\x02id\x04name\x03doc"
    body += b"\x08\x01\x00"
    return event(Kind.TABLE_MAP, body)


def row(number: int, name: str | None, document: bytes | None) -> bytes:
    """One row of the table."""
    nulls = (name is None) << 1 | (document is None) << 2
    data = bytes([nulls]) + struct.pack("<I", number)
    if name is not None:
        data += bytes([len(name.encode())]) + name.encode()
    if document is not None:
        data += struct.pack("<I", len(document)) + document
    return data


def rows(kind: Kind, *images: bytes, present: int = 0b111, number: int = 7) -> bytes:
    """A row event of the second version, with extra data that must be passed over."""
    extra = b"\x00\x03x"
    head = number.to_bytes(6, "little") + b"\0\0" + struct.pack("<H", 2 + len(extra)) + extra
    bitmaps = bytes([present]) * (2 if kind == Kind.UPDATE_ROWS else 1)
    return event(kind, head + b"\x03" + bitmaps + b"".join(images))


def segment(*events: bytes) -> Segment:
    """A segment of one file of the log."""
    made = segment_of(list(events))
    made.tables = LoggedTables()
    made.tables.note(made)
    return made


def changes(pieces: list[Piece]) -> list[TableChanges]:
    """The changes of all row pieces."""
    reader = ChangeReader(lambda *_: True, lambda *_: None, (), mariadb=False)
    return [change for piece in pieces if isinstance(piece, Rows) for change in reader.read(piece)]


def take(made: Segment, end: str | None = None) -> tuple[list[Piece], int, Transactions]:
    """The committed pieces of a segment."""
    transactions = Transactions(MySqlPosition(), lambda _: [])
    pieces, stop = transactions.take(made, 0, MySqlPosition.parse(end) if end else None)
    return pieces, stop, transactions


def test_transactions_of_mysql() -> None:
    """BEGIN opens a plain transaction; statements stand alone; the position is a set of numbers."""
    made = segment(
        gtid(1), query("BEGIN"), table_map(),
        rows(Kind.WRITE_ROWS, row(1, "ä", None), row(2**32 - 1, None, None)), xid(),
        gtid(2), query("ALTER TABLE t ADD x int"),
        gtid(3), query("BEGIN"), table_map(),
        rows(Kind.UPDATE_ROWS, row(1, "ä", None), row(1, "b", b"\x05\xff\xff"), row(5, "c", None), row(6, "c", None)),
        rows(Kind.DELETE_ROWS, row(1, "b", b"\x05\xff\xff")), xid(),
    )  # fmt: skip
    pieces, stop, transactions = take(made)
    assert [type(piece) for piece in pieces] == [Rows, Statement, Rows]
    assert stop == len(made)
    assert str(transactions.position) == f"{SERVER}:1-3"
    first, second = changes(pieces)
    assert first.columns["id"].to_pylist() == [1, 2**32 - 1]
    assert first.columns["name"].to_pylist() == ["ä", None]
    assert str(first.description.columns[0].type) == "BIGINT NOT NULL"
    assert str(first.description.columns[1].type) == "VARCHAR(10)"
    assert second.kinds.tolist() == [1, 2, 3, 0, 3]
    assert second.columns["doc"].to_pylist() == [None, "-1", None, None, "-1"]
    assert set(second.times_ms.tolist()) == {1_700_000_000_000}


def test_reading_stops_at_a_position() -> None:
    """What lies past the end is left for the next time."""
    made = segment(*(part for n in (1, 2, 3) for part in (gtid(n), query("BEGIN"), table_map(), xid())))
    pieces, stop, transactions = take(made, f"{SERVER}:1-2")
    assert (pieces, stop) == ([], 8)
    assert str(transactions.position) == f"{SERVER}:1-2"


def test_two_phase_commits_of_mysql() -> None:
    """XA START opens, a prepare event ends the first part; COMMIT brings the rows, ROLLBACK drops them."""
    prepare = event(Kind.XA_PREPARE, b"\0" + struct.pack("<III", 1, 1, 0) + b"a")
    parts = [query("XA START X'61',X'',1"), table_map(), rows(Kind.WRITE_ROWS, row(1, "x", None))]
    opened = segment(gtid(1), *parts, query("XA END X'61',X'',1"), prepare)
    pieces, _, transactions = take(opened)
    assert pieces == []
    pieces, _ = transactions.take(segment(gtid(2), query("XA COMMIT X'61',X'',1")), 0, None)
    assert changes(pieces)[0].columns["id"].to_pylist() == [1]
    _, _, transactions = take(opened)
    pieces, _ = transactions.take(segment(gtid(2), query("XA ROLLBACK X'61',X'',1")), 0, None)
    assert pieces == []


@pytest.mark.parametrize("cut", range(1, 9))
def test_a_transaction_over_several_segments(cut: int) -> None:
    """Wherever a segment ends, nothing comes before the commit, and everything with it."""
    events = [
        gtid(1), query("BEGIN"), table_map(), rows(Kind.WRITE_ROWS, row(1, "a", None)),
        rows(Kind.WRITE_ROWS, row(2, "b", None)), query("SAVEPOINT `s`"), rows(Kind.WRITE_ROWS, row(3, "c", None)),
        query("ROLLBACK TO `s`"), xid(),
    ]  # fmt: skip
    tables = segment(*events).tables
    first, second = segment_of(events[:cut]), segment_of(events[cut:])
    first.tables = second.tables = tables
    transactions = Transactions(MySqlPosition(), lambda _: [])
    assert transactions.take(first, 0, None) == ([], cut)
    assert str(transactions.position) == ""
    pieces, _ = transactions.take(second, 0, None)
    assert [n for change in changes(pieces) for n in change.columns["id"].to_pylist()] == [1, 2]
    assert str(transactions.position) == f"{SERVER}:1"


def test_segments_can_leave_memory() -> None:
    """A segment that was put into a file reads the same."""
    made = segment(gtid(1), query("BEGIN"), table_map(), rows(Kind.WRITE_ROWS, row(1, "a", None)), xid())
    spilled = made.spilled()
    assert isinstance(spilled.bytes.data, np.memmap)
    assert changes([Rows(spilled, np.array([3]))])[0].columns["name"].to_pylist() == ["a"]


def test_what_a_log_lacks_is_said() -> None:
    """Rows without all columns, columns without names, events that hide rows: refused with the setting to change."""
    with pytest.raises(InvalidOption, match="binlog_row_image = 'FULL'"):
        changes([Rows(segment(table_map(), rows(Kind.WRITE_ROWS, row(1, "a", None), present=0b011)), np.array([1]))])
    with pytest.raises(InvalidOption, match="binlog_row_metadata = 'FULL'"):
        changes([Rows(segment(table_map(names=False), rows(Kind.WRITE_ROWS, row(1, "a", None))), np.array([1]))])
    with pytest.raises(Unsupported, match="SET GLOBAL"):
        segment(event(Kind.MYSQL_ANONYMOUS_GTID, bytes(20)))
    with pytest.raises(CorruptFile, match="did not describe"):
        changes([Rows(segment(rows(Kind.WRITE_ROWS, row(1, "a", None), number=99)), np.array([0]))])


def test_bits_beyond_the_last_column_belong_to_nobody() -> None:
    """MySQL sets them where it says which columns a row has, and a column that lacks is still seen."""
    full = rows(Kind.UPDATE_ROWS, row(1, "a", None), row(1, "b", None), present=0b11111111)
    assert changes([Rows(segment(table_map(), full), np.array([1]))])[0].columns["name"].to_pylist() == ["a", "b"]
    with pytest.raises(InvalidOption, match="binlog_row_image = 'FULL'"):
        changes(
            [Rows(segment(table_map(), rows(Kind.WRITE_ROWS, row(1, "a", None), present=0b11111101)), np.array([1]))]
        )


def test_a_two_phase_transaction_in_one_phase() -> None:
    """XA COMMIT ... ONE PHASE: the event that elsewhere prepares is the commit."""
    one_phase = event(Kind.XA_PREPARE, b"\1" + struct.pack("<III", 1, 1, 0) + b"a")
    parts = [query("XA START X'61',X'',1"), table_map(), rows(Kind.WRITE_ROWS, row(1, "x", None))]
    pieces, _, transactions = take(segment(gtid(1), *parts, query("XA END X'61',X'',1"), one_phase))
    assert changes(pieces)[0].columns["id"].to_pylist() == [1]
    assert transactions.prepared == {}


def payload(content: bytes, *, packed: bytes | None = None, compression: int = 0, size: int | None = None) -> bytes:
    """A whole transaction in one event."""
    packed = pa.Codec("zstd").compress(content, asbytes=True) if packed is None else packed
    size = len(packed) if size is None else size
    fields = b"\x02" + (b"\x01\x00" if compression == 0 else b"\x03\xfc" + struct.pack("<H", compression))
    fields += b"\x01\x09\xfe" + struct.pack("<Q", size) + b"\x03\x09\xfe" + struct.pack("<Q", len(content))
    return event(Kind.TRANSACTION_PAYLOAD, fields + b"\x00" + packed)


@pytest.mark.parametrize("piece_bytes", [1, 100, 1 << 20])
@pytest.mark.parametrize("compression", [0, 255])
def test_compressed_transactions(piece_bytes: int, compression: int) -> None:
    """Whatever the size of the pieces, events come out as they went in, between those that were not compressed."""
    inner = [
        query("BEGIN"), table_map(), rows(Kind.WRITE_ROWS, row(1, "a" * 40, None), row(2, "b", None)),
        rows(Kind.DELETE_ROWS, row(1, "a" * 40, None)), xid(),
    ]  # fmt: skip
    packed = None if compression == 0 else b"".join(inner)
    plain = [gtid(2), query("BEGIN"), table_map(), rows(Kind.WRITE_ROWS, row(3, "c", None)), xid()]
    content = b"".join(inner)
    made = segment_of([gtid(1), payload(content, packed=packed, compression=compression), *plain, gtid(3)])
    parts = list(expanded(made, piece_bytes))
    events = [part.bytes.data[low:high].tobytes() for part in parts
              for low, high in zip(part.starts, part.ends, strict=True)]  # fmt: skip
    assert events == [gtid(1), *inner, *plain, gtid(3)]
    assert len(parts) > 1 or piece_bytes > 100


def test_a_segment_without_compressed_parts_stays_as_it_is() -> None:
    """Nothing is copied where nothing is compressed."""
    made = segment_of([gtid(1), query("BEGIN"), xid()])
    assert list(expanded(made, 10)) == [made]


@pytest.mark.parametrize(
    ("broken", "error"),
    [
        (payload(b"", packed=b"no zstd at all"), CorruptFile),
        (payload(query("BEGIN")[:-3]), CorruptFile),
        (payload(query("BEGIN"), size=10**6), CorruptFile),
        (payload(bytes(40)), CorruptFile),
        (payload(b"", compression=7), Unsupported),
    ],
)
def test_compressed_transactions_that_are_broken(broken: bytes, error: type[Exception]) -> None:
    """What can not be unpacked is an error, not a transaction that is missing."""
    with pytest.raises(error, match="compressed"):
        list(expanded(segment_of([gtid(1), broken]), 100))


def difference(operation: int, path: str, value: bytes | None = None) -> bytes:
    """One difference of a JSON value."""
    told = bytes([operation, len(path.encode())]) + path.encode()
    return told if value is None else told + bytes([len(value)]) + value


def partial_rows(*images: bytes) -> bytes:
    """An update whose rows have, after the update, marks before them."""
    head = (7).to_bytes(6, "little") + b"\0\0" + struct.pack("<H", 2)
    return event(Kind.PARTIAL_UPDATE_ROWS, head + b"\x03\xff\xff" + b"".join(images))


def test_updates_that_tell_differences() -> None:
    """Rows with differences, with whole values and without marks, in one event and beside plain events of the table."""
    one, two = b"\x05\x01\x00", b"\x05\x02\x00"
    array = b"\x02" + struct.pack("<HH", 1, 7) + b"\x05\x01\x00"
    made = segment(
        gtid(1), query("BEGIN"), table_map(),
        rows(Kind.UPDATE_ROWS, row(1, "a", array), row(1, "b", array), row(2, "a", None), row(2, "b", one)),
        partial_rows(
            row(1, "b", array), b"\x01\x01" + row(1, "c", difference(1, "$[1]", two) + difference(0, "$[0]", two)),
            row(2, "b", one), b"\x01\x00" + row(2, "c", two),
            row(3, "b", one), b"\x00" + row(3, None, two),
            row(4, "b", array), b"\x01\x01" + row(4, "d", difference(2, "$[0]")),
        ),
        rows(Kind.DELETE_ROWS, row(5, "z", one)), xid(),
    )  # fmt: skip
    pieces, _, _ = take(made)
    (found,) = changes(pieces)
    assert found.kinds.tolist() == [1, 2] * 6 + [3]
    assert found.columns["name"].to_pylist() == ["a", "b", "a", "b", "b", "c", "b", "c", "b", None, "b", "d", "z"]
    assert found.columns["doc"].to_pylist() == [
        "[1]", "[1]", None, "1", "[1]", "[2, 2]", "1", "2", "1", "2", "[1]", "[]", "1",
    ]  # fmt: skip


@pytest.mark.parametrize("path", ["$.x", "$[4]", "$[0].x", "x", "$[", "$[*]"])
def test_differences_that_do_not_fit(path: str) -> None:
    """A path that leads nowhere is an error, not a value that stays as it was."""
    array = b"\x02" + struct.pack("<HH", 1, 7) + b"\x05\x01\x00"
    broken = partial_rows(row(1, "b", array), b"\x01\x01" + row(1, "c", difference(0, path, b"\x05\x02\x00")))
    with pytest.raises(CorruptFile, match="does not fit"):
        changes([Rows(segment(table_map(), broken), np.array([1]))])


def test_statements_tell_the_moment_behind_all_else_that_is_noted() -> None:
    """MySQL notes who and which databases before the fraction of the second."""
    noted = b"\x00" + bytes(4) + b"\x05\x03UTC" + b"\x0b\x02me\x01h" + b"\x0c\x02d\0e\0" + b"\x0d\x40\xe2\x01"
    body = struct.pack("<IIBHH", 1, 0, 1, 0, len(noted)) + noted + b"d\0ALTER TABLE t ADD x int"
    said = statement(segment_of([event(Kind.QUERY, body)]), 0)
    assert (said.micros, said.zone, said.text) == (123456, "UTC", "ALTER TABLE t ADD x int")
    unknown = b"\x0c\xfe\x0d\x40\xe2\x01"  # too many databases to name
    body = struct.pack("<IIBHH", 1, 0, 1, 0, len(unknown)) + unknown + b"d\0ALTER TABLE t ADD x int"
    assert statement(segment_of([event(Kind.QUERY, body)]), 0).micros == 123456


def test_rows_that_run_over_their_event_are_refused() -> None:
    """A length that can not be right is an error, not a wrong value."""
    broken = rows(Kind.WRITE_ROWS, row(1, "a", None)[:5] + b"\x28a")
    with pytest.raises(CorruptFile, match="longer than their event"):
        changes([Rows(segment(table_map(), broken), np.array([1]))])
