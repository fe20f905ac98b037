"""Changes of queries over tables of the lake in sinks: folded, they are the query's result, whatever the tables are."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from decimal import Decimal
from uuid import uuid4

import pyarrow as pa
import pytest

import lakebed
from lakebed.connectors import SinkInsertTarget
from lakebed.connectors.messages import Messages
from lakebed.errors import InvalidArgument, InvalidData, InvalidSchema, LakebedError, Unsupported
from lakebed.sql.session import connector_tables
from lakebed.views.insert import StreamingInsert

KAFKA = "'properties.bootstrap.servers' = '127.0.0.1:1', 'topic' = 't'"
DEBEZIUM = f"'connector' = 'kafka', 'format' = 'debezium-json', {KAFKA}"
_COLUMNS = {"orders": "id INT NOT NULL, cust INT, amount DECIMAL(10, 2)", "customers": "cid INT NOT NULL, name STRING"}
_QUERIES = {
    "rows": "SELECT id, cust, amount FROM orders WHERE amount > 3",
    "groups": "SELECT cust, count(*) AS n, sum(amount) AS total FROM orders GROUP BY cust",
    "join": "SELECT o.id, c.name, o.amount FROM orders o JOIN customers c ON o.cust = c.cid",
    "bag": "SELECT cust FROM orders",
    "outer": "SELECT c.name, o.amount FROM customers c LEFT JOIN orders o ON o.cust = c.cid",
    "union": "SELECT id, cust FROM orders UNION ALL SELECT cid, cid FROM customers",
}
_CHANGES = (
    "INSERT INTO orders VALUES (1, 1, 10), (2, 1, 5), (3, 2, 7), (4, 9, 2)",
    "INSERT INTO customers VALUES (1, 'ann'), (2, 'bo')",
    "INSERT INTO orders VALUES (1, 2, 10), (5, 2, NULL), (3, 2, 8)",
    "DELETE FROM orders WHERE id IN (2, 4)",
    "INSERT INTO customers VALUES (2, 'bob'), (9, NULL)",
)


@pytest.fixture
def lake() -> lakebed.Lake:
    """An empty one in memory."""
    return lakebed.connect(f"memory://{uuid4().hex}/warehouse")


def _tables(lake: lakebed.Lake, producer: str) -> None:
    for name, columns in _COLUMNS.items():
        key = columns.split()[0]
        options = f"'bucket' = '1', 'changelog-producer' = '{producer}'"
        lake.sql(f"CREATE TABLE {name} ({columns}, PRIMARY KEY ({key}) NOT ENFORCED) WITH ({options})")


def _defined(lake: lakebed.Lake, columns: str, options: str, name: str = "s") -> SinkInsertTarget:
    lake.sql(f"CREATE OR REPLACE TABLE {name} ({columns}) WITH ({options})")
    return SinkInsertTarget(connector_tables(lake)["default", name], "n")


def _insert(lake: lakebed.Lake, into: SinkInsertTarget, query: str) -> StreamingInsert:
    return StreamingInsert(lake, "s", query, name="n", database="default", into=into)


def _printing(lake: lakebed.Lake, query: str) -> StreamingInsert:
    found = lake.query(query).arrow().schema
    columns = ", ".join(f"{each.name} {_sql_type(str(each.type))}" for each in found)
    return _insert(lake, _defined(lake, columns, "'connector' = 'print'"), query)


def _sql_type(arrow: str) -> str:
    return {"int32": "INT", "int64": "BIGINT", "string": "STRING"}.get(arrow, "DECIMAL(20, 2)")


def _folded(lines: list[str], rows: Counter[str]) -> None:
    """Adds changes to a bag of rows: what is taken back must be there."""
    for line in lines:
        kind, row = line[:2], line[2:]
        rows[row] += 1 if kind[0] == "+" else -1
        assert rows[row] >= 0, line


def _told(lake: lakebed.Lake) -> None:
    """Changes as a table takes them whose changelog is what comes in."""
    columns = {"id": pa.array([1, 1, 2], pa.int32()), "cust": pa.array([1, 2, 1], pa.int32())}
    amounts = pa.array([Decimal(10), Decimal(11), Decimal(5)], pa.decimal128(10, 2))
    lake.table("orders").write(pa.table({**columns, "amount": amounts, "k": ["-U", "+U", "-D"]}), row_kind="k")


@pytest.mark.parametrize("producer", ["none", "lookup", "input", "full-compaction"])
def test_changes_fold_to_the_result(lake: lakebed.Lake, producer: str, capsys: pytest.CaptureFixture[str]) -> None:
    """For joins, groups, equal rows and unions, step by step; and a sink that begins anew prints the same rows."""
    _tables(lake, producer)
    chosen = _QUERIES if producer == "lookup" else {name: _QUERIES[name] for name in ("groups", "join")}
    inserts = {name: _printing(lake, query) for name, query in chosen.items()}
    sent: dict[str, Counter[str]] = {name: Counter() for name in inserts}
    kinds: Counter[str] = Counter()
    for change in (*_CHANGES[:2], "") if producer == "input" else _CHANGES:
        lake.sql(change) if change else _told(lake)
        for name, each in inserts.items():
            each.step()
            lines = capsys.readouterr().out.splitlines()
            kinds.update(line[:2] for line in lines)
            _folded(lines, sent[name])
            _printing(lake, _QUERIES[name]).step()
            assert +sent[name] == Counter(line[2:] for line in capsys.readouterr().out.splitlines()), (name, change)
    assert {"+I", "-U", "+U", "-D"} <= set(kinds)
    assert inserts["groups"].step().way == "none"


def test_old_rows_stand_before_new_ones(lake: lakebed.Lake, capsys: pytest.CaptureFixture[str]) -> None:
    """-U and +U of one row follow each other; equal rows are new and gone, since none is known to be another."""
    _tables(lake, "lookup")
    lake.sql(_CHANGES[0])
    lake.sql("CREATE TABLE log (v INT)")
    lake.sql("INSERT INTO log VALUES (1), (1), (3)")
    groups, bag = _printing(lake, _QUERIES["groups"]), _printing(lake, "SELECT v FROM log")
    for each in (groups, bag):
        each.step()
    capsys.readouterr()
    lake.sql("UPDATE log SET v = 2 WHERE v = 1")
    lake.sql("INSERT INTO orders VALUES (1, 2, 10)")
    groups.step()
    assert capsys.readouterr().out.splitlines() == [
        "-U[1, 2, 15.00]",
        "+U[1, 1, 5.00]",
        "-U[2, 1, 7.00]",
        "+U[2, 2, 17.00]",
    ]
    bag.step()
    assert capsys.readouterr().out.splitlines() == ["-D[1]", "-D[1]", "+I[2]", "+I[2]"]


def test_sources_of_all_kinds(lake: lakebed.Lake, capsys: pytest.CaptureFixture[str]) -> None:
    """Append tables, materialized tables, a branch of steps in which nothing changes, and a source that goes back."""
    lake.sql("CREATE TABLE log (id INT, v STRING)")
    lake.sql("INSERT INTO log VALUES (1, 'a'), (2, 'b')")
    lake.sql("CREATE MATERIALIZED TABLE counts AS SELECT v, count(*) AS n FROM log GROUP BY v")
    rows, counts = _printing(lake, "SELECT id, v FROM log"), _printing(lake, "SELECT v, n FROM counts WHERE n > 1")
    for each in (rows, counts):
        each.step()
    lake.sql("INSERT INTO log VALUES (3, 'b')")
    lake.refresh("counts")
    capsys.readouterr()
    assert (rows.step().inserted, counts.step().inserted) == (1, 1)
    assert capsys.readouterr().out.splitlines() == ["+I[3, b]", "+I[b, 2]"]
    assert (rows.step().way, counts.step().way) == ("none", "none")
    lake.table("log").rollback_to(1)
    with pytest.raises(Unsupported, match=r"can not go on: what changed in `default\.log`") as raised:
        rows.step()
    assert "start it again" in str(raised.value)


@pytest.mark.parametrize(
    ("columns", "options", "query", "kind", "text"),
    [
        ("a INT", f"'connector' = 'kafka', 'format' = 'json', {KAFKA}", "SELECT id FROM orders", Unsupported, "upsert"),
        ("id INT, PRIMARY KEY (id) NOT ENFORCED", DEBEZIUM, "SELECT cust FROM orders", InvalidArgument, "apart"),
        (
            "id INT, v INT, PRIMARY KEY (id) NOT ENFORCED",
            DEBEZIUM,
            "SELECT id, cust FROM orders UNION ALL SELECT cid, cid FROM customers",
            InvalidArgument,
            "UNION ALL",
        ),
        (
            "id INT, PRIMARY KEY (id) NOT ENFORCED",
            f"'connector' = 'kafka', 'format' = 'maxwell-json', {KAFKA}",
            "SELECT id FROM orders",
            Unsupported,
            "read, not written",
        ),
        (
            "id INT, v MULTISET<INT>, PRIMARY KEY (id) NOT ENFORCED",
            DEBEZIUM,
            "SELECT id FROM orders",
            InvalidSchema,
            "`v`",
        ),
        (
            "id INT, t BIGINT METADATA FROM 'offset', PRIMARY KEY (id) NOT ENFORCED",
            DEBEZIUM,
            "SELECT id FROM orders",
            Unsupported,
            "VIRTUAL",
        ),
        (
            "c INT, v DECIMAL(10, 2), PRIMARY KEY (c) NOT ENFORCED",
            DEBEZIUM,
            "SELECT cust, first(amount) FROM orders GROUP BY cust",
            Unsupported,
            "materialized",
        ),
    ],
)
def test_what_a_topic_does_not_take(
    lake: lakebed.Lake, columns: str, options: str, query: str, kind: type[LakebedError], text: str
) -> None:
    """Refused before anything is sent, without asking the cluster."""
    _tables(lake, "lookup")
    with pytest.raises(kind, match=text):
        _insert(lake, _defined(lake, columns, options), query).check()


def test_what_is_written_is_not_read(lake: lakebed.Lake) -> None:
    """A query over a sink is refused when the pipeline is tried."""
    _tables(lake, "lookup")
    pipeline = lakebed.pipeline(
        lake, "CREATE TABLE p (id INT) WITH ('connector' = 'print'); INSERT INTO customers (cid) SELECT id FROM p"
    )
    with pytest.raises(Unsupported, match="`print` is written, not read"):
        pipeline.check()


def test_a_key_is_never_null(lake: lakebed.Lake) -> None:
    """A null in a column of the key is an error that names it, before anything is sent."""
    _tables(lake, "lookup")
    lake.sql("INSERT INTO orders VALUES (1, NULL, 1)")
    into = _defined(lake, "c INT, n BIGINT, PRIMARY KEY (c) NOT ENFORCED", DEBEZIUM)
    insert = _insert(lake, into, "SELECT cust, count(*) FROM orders GROUP BY cust")
    insert.check()
    into.look = _begun(into.look)  # type: ignore[method-assign]
    with pytest.raises(InvalidData, match="`c`"):
        insert.step()


def _begun(look: Callable[..., object]) -> Callable[..., object]:
    """As if the cluster had answered that nothing was sent."""
    return lambda reads, *, begins: look(reads, begins=False)


def test_messages_of_a_topic(lake: lakebed.Lake) -> None:
    """Keys and values of each format, byte for byte, blocks apart; a changed row is one message."""
    rows = pa.table({"_row_kind": ["+I", "-U", "+U", "-D"], "a": pa.array([1, 2, 2, 3], pa.int32()), "b": list("wxyz")})
    columns = "a INT, b STRING, PRIMARY KEY (a) NOT ENFORCED"
    upsert = f"'connector' = 'upsert-kafka', 'key.format' = 'csv', 'value.format' = 'json', {KAFKA}"

    def sent(columns: str, options: str, rows: pa.Table) -> list[tuple[bytes | None, bytes | None]]:
        _defined(lake, columns, options)
        found = Messages(connector_tables(lake)["default", "s"]).blocks(rows)
        return [pair for block in found for pair in zip(*block, strict=True)]

    assert sent(columns, DEBEZIUM, rows) == [
        (b'{"a":1}', b'{"before":null,"after":{"a":1,"b":"w"},"op":"c"}'),
        (b'{"a":2}', b'{"before":{"a":2,"b":"x"},"after":{"a":2,"b":"y"},"op":"u"}'),
        (b'{"a":3}', b'{"before":{"a":3,"b":"z"},"after":null,"op":"d"}'),
    ]
    last = rows.filter(pa.array([True, False, True, True]))
    assert sent(columns, upsert, last) == [
        (b"1", b'{"a":1,"b":"w"}'),
        (b"2", b'{"a":2,"b":"y"}'),
        (b"3", None),
    ]
    new = pa.table({"_row_kind": ["+I"] * 2, "a": pa.array([1, None], pa.int32()), "b": ["x,y", "z"]})
    plain = f"'connector' = 'kafka', 'format' = 'csv', 'key.fields' = 'b', {KAFKA}"
    assert sent("a INT, b STRING", plain, new) == [(b'{"b":"x,y"}', b'1,"x,y"'), (b'{"b":"z"}', b",z")]
    many = pa.concat_tables([rows.slice(0, 1), *[rows.slice(1, 2)] * 9000])
    assert [len(keys) for keys, _ in Messages(_defined_table(lake, columns)).blocks(many)] == [8193, 808]


def _defined_table(lake: lakebed.Lake, columns: str) -> object:
    _defined(lake, columns, DEBEZIUM)
    return connector_tables(lake)["default", "s"]
