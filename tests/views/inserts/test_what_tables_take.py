"""Which queries a streaming INSERT follows into which tables; what it can not is refused before anything starts."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.views.inserts.targets import insert

import lakebed
from lakebed.errors import InvalidArgument, InvalidData, LakebedError, Unsupported
from lakebed.lake import Lake

_PLAIN = "(id BIGINT, v STRING)"
_KEYED = "(id BIGINT NOT NULL, v STRING, PRIMARY KEY (id) NOT ENFORCED) WITH ('bucket' = '1'{})"
_DEDUPLICATE = _KEYED.format("")
_FIRST = ", 'merge-engine' = 'first-row'"
_PARTIAL = ", 'merge-engine' = 'partial-update'"
_MAX = ", 'merge-engine' = 'aggregation', 'fields.v.aggregate-function' = 'max'"
_HOURS = "(at TIMESTAMP({}) NOT NULL, n BIGINT, PRIMARY KEY (at) NOT ENFORCED) WITH ('bucket' = '1')"
_ORDERS, _EVENTS = "SELECT id, note FROM orders", "SELECT oid, kind FROM events"

_TAKEN = {
    "the same key": (_DEDUPLICATE, _ORDERS),
    "a key of another type": (_DEDUPLICATE.replace("BIGINT", "STRING"), _ORDERS),
    "a grouping": (_DEDUPLICATE, "SELECT cust, max(note) FROM orders GROUP BY cust"),
    "values that depend on the order": (_DEDUPLICATE, "SELECT cust, first(note) FROM orders GROUP BY cust"),
    "an order of appended rows": (_KEYED.format(", 'sequence.field' = 'v'"), _EVENTS),
    "appended rows": (_PLAIN, _EVENTS),
    "appended rows once": (_PLAIN, "SELECT DISTINCT oid, kind FROM events WHERE qty > 1"),
    "joins of appended rows": (_PLAIN, "SELECT e.oid, f.kind FROM events e JOIN events f ON e.oid = f.oid"),
    "first rows of appended ones": (_KEYED.format(_FIRST), _EVENTS),
    "first rows of groups": (_KEYED.format(_FIRST), "SELECT oid, max(kind) FROM events GROUP BY oid"),
    "first rows, nothing taken back": (_KEYED.format(_FIRST + ", 'ignore-delete' = 'true'"), _ORDERS),
    "columns of appended rows": (_KEYED.format(_PARTIAL), "SELECT oid, max(kind) FROM events GROUP BY oid"),
    "columns of a left join": (
        _KEYED.format(_PARTIAL),
        "SELECT e.oid, f.kind FROM events e LEFT JOIN events f ON e.oid = f.oid",
    ),
    "columns, and rows that go": (
        _KEYED.format(_PARTIAL + ", 'partial-update.remove-record-on-delete' = 'true'"),
        f"{_ORDERS} UNION ALL SELECT cid, name FROM customers",
    ),
    "the greatest of appended rows": (_KEYED.format(_MAX), _EVENTS),
    "the greatest, nothing taken back": (_KEYED.format(_MAX + ", 'fields.v.ignore-retract' = 'true'"), _ORDERS),
    "moments": (_HOURS.format(3), "SELECT at, count(*) FROM orders GROUP BY at"),
    "hours": (_HOURS.format(0), "SELECT date_trunc('hour', at), count(*) FROM orders GROUP BY date_trunc('hour', at)"),
}

_REFUSED: dict[str, tuple[str, str, type[LakebedError], str, str]] = {
    "another key": (
        _DEDUPLICATE,
        "SELECT cust, note FROM orders",
        InvalidArgument,
        r"\(id\) is not known .* told apart by orders\.id",
        r"group by \(id\)",
    ),
    "a key that is computed": (_DEDUPLICATE, "SELECT id % 5, note FROM orders", InvalidArgument, "not known", "group"),
    "a key that is cut": (
        _HOURS.format(0),
        "SELECT at, count(*) FROM orders GROUP BY at",
        InvalidArgument,
        "at",
        "key",
    ),
    "appended rows of one key": (_DEDUPLICATE, _EVENTS, InvalidArgument, "may be equal", "sequence.field"),
    "a union": (
        _DEDUPLICATE,
        f"{_ORDERS} UNION ALL SELECT cid, name FROM customers",
        InvalidArgument,
        "UNION ALL may give a key twice",
        "one INSERT for each part",
    ),
    "rows that change": (_PLAIN, _ORDERS, Unsupported, "without a primary key", "materialized table"),
    "a left join": (
        _PLAIN,
        "SELECT e.oid, f.kind FROM events e LEFT JOIN events f ON e.oid = f.oid",
        Unsupported,
        "without a primary key",
        "materialized table",
    ),
    "first rows that go": (_KEYED.format(_FIRST), _ORDERS, Unsupported, "takes none back", "ignore-delete"),
    "columns that go": (_KEYED.format(_PARTIAL), _ORDERS, Unsupported, "may go", "remove-record-on-delete"),
    "groups that go": (
        _KEYED.format(_PARTIAL),
        "SELECT oid, max(kind) FROM events GROUP BY oid HAVING max(kind) > 'a'",
        Unsupported,
        "may go",
        "sequence groups",
    ),
    "the greatest": (_KEYED.format(_MAX), _ORDERS, Unsupported, "function `max` of column `v`", "ignore-retract"),
    "limit": (_DEDUPLICATE, f"{_ORDERS} LIMIT 3", Unsupported, "LIMIT", "insert from that"),
    "one group": (_DEDUPLICATE, "SELECT count(*), 'x' FROM orders", Unsupported, "one group", "materialized table"),
    "an order and a condition": (
        _DEDUPLICATE,
        "SELECT cust, first(note) FROM orders GROUP BY cust HAVING count(*) > 1",
        Unsupported,
        "`first` may depend on the order of rows",
        "materialized table",
    ),
    "sums of what depends on an order": (
        _KEYED.format(", 'merge-engine' = 'aggregation', 'fields.v.aggregate-function' = 'last_value'"),
        "SELECT cust, first(note) FROM orders GROUP BY cust",
        Unsupported,
        "order of rows",
        "materialized table",
    ),
    "Spark alone": (_DEDUPLICATE, "SELECT id, soundex(note) FROM orders", Unsupported, "soundex", "otherwise"),
    "no fixed value": (_DEDUPLICATE, "SELECT id, uuid() FROM orders", Unsupported, "another value each time", "store"),
    "too few columns": (_DEDUPLICATE, "SELECT id FROM orders", InvalidData, "1 values for 2 columns", "list"),
    "itself": (_DEDUPLICATE, "SELECT id, v FROM t", Unsupported, "never end", "another table"),
    "a past state": (
        _DEDUPLICATE,
        "SELECT id, note FROM orders VERSION AS OF 1",
        Unsupported,
        "fixed state",
        "VERSION AS OF",
    ),
    "kinds of rows in a column": (
        _KEYED.format(", 'rowkind.field' = 'v'"),
        _ORDERS,
        Unsupported,
        "says what rows do",
        "rowkind.field",
    ),
}


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    """Two tables with a key and one without."""
    found = lakebed.connect(str(tmp_path))
    keyed = {"bucket": "1", "changelog-producer": "lookup"}
    columns = {"id": "BIGINT NOT NULL", "cust": "INT", "note": "STRING", "at": "TIMESTAMP(3)"}
    found.create_table("orders", columns, primary_key=["id"], options=keyed)
    found.create_table("customers", {"cid": "INT NOT NULL", "name": "STRING"}, primary_key=["cid"], options=keyed)
    found.create_table("events", {"oid": "BIGINT", "kind": "STRING", "qty": "INT"})
    found["orders"].write([{"id": 1, "cust": 1, "note": "a", "at": None}])
    return found


@pytest.mark.parametrize("name", _TAKEN)
def test_what_is_taken(lake: Lake, name: str) -> None:
    """Queries whose changes the table can take are."""
    table, query = _TAKEN[name]
    lake.sql(f"CREATE TABLE t {table}")
    insert(lake, "t", query).check()


@pytest.mark.parametrize("name", _REFUSED)
def test_what_is_refused(lake: Lake, name: str) -> None:
    """Others are refused, with the reason and what to do; the table stays as it is."""
    table, query, error, message, hint = _REFUSED[name]
    lake.sql(f"CREATE TABLE t {table}")
    with pytest.raises(error, match=message) as said:
        insert(lake, "t", query).check()
    assert hint.replace("\\", "") in str(said.value.hint)
    with pytest.raises(error):
        insert(lake, "t", query).step()
    assert lake["t"].latest_snapshot() is None


def test_lists_of_columns(lake: Lake) -> None:
    """Values go by position or by the list, in the types of the columns; other columns are null."""
    lake.sql("CREATE TABLE t (v STRING, id INT NOT NULL, w DOUBLE, PRIMARY KEY (id) NOT ENFORCED)")
    with pytest.raises(InvalidArgument, match="column `id` of its primary key gets no value"):
        insert(lake, "t", "SELECT note FROM orders", "v").check()
    insert(lake, "t", "SELECT id, id FROM orders", "id", "v").step()
    assert lake["t"].to_arrow().to_pylist() == [{"v": "1", "id": 1, "w": None}]


def test_a_value_that_the_column_does_not_take(lake: Lake) -> None:
    """It is refused when it comes, and nothing of the step is stored."""
    lake.sql("CREATE TABLE t (id TINYINT NOT NULL, v STRING NOT NULL, PRIMARY KEY (id) NOT ENFORCED)")
    each = insert(lake, "t", _ORDERS)
    each.step()
    lake["orders"].write([{"id": 2, "cust": 1, "note": None, "at": None}])
    with pytest.raises(InvalidData, match="v"):
        each.step()
    lake["orders"].write(
        [{"id": 2, "cust": 1, "note": "x", "at": None}, {"id": 2000, "cust": 1, "note": "x", "at": None}]
    )
    with pytest.raises(LakebedError):
        each.step()
    assert lake["t"].count() == 1
    lake.sql("DELETE FROM orders WHERE id = 2000")
    assert each.step().inserted == 1


def test_a_materialized_table_is_not_written(lake: Lake) -> None:
    """Its rows are those of its query."""
    lake.materialize("v", _ORDERS)
    with pytest.raises(InvalidArgument, match="is a materialized table"):
        insert(lake, "v", _ORDERS).check()


def test_explain(lake: Lake) -> None:
    """Each part of the query has its word, and what is sent is said."""
    lake.sql(f"CREATE TABLE t {_DEDUPLICATE}")
    text = insert(lake, "t", "SELECT cust, max(note) FROM orders GROUP BY cust").explain()
    assert text.splitlines() == [
        "insert x into default.t: incremental, in this process",
        "sends: +U",
        "project          incremental    row by row",
        "  group by cust  affected keys  groups with a change, before and after",
        "    orders       changes        changelog of `lookup`",
    ]
