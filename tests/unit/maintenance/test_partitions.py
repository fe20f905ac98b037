"""Partitions: listed, dropped, expired by their values or their age, and marked done."""

from __future__ import annotations

import datetime as dt
import json
import logging
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

import pyarrow as pa
import pytest
from tests.unit.maintenance.expiring_tables import TEN_O_CLOCK, Workshop, shown

from lakebed.errors import InvalidArgument, NotFound, StorageError, Unsupported
from lakebed.maintenance.partition_times import partition_time
from lakebed.metadata.snapshot import CommitKind
from lakebed.table.table import Table

SCHEMA = {"dt": "STRING", "hh": "INT", "v": "INT"}
TODAY = dt.datetime.fromtimestamp(TEN_O_CLOCK / 1000).date()


def partitioned(shop: Workshop, **options: object) -> Table:
    """A table of days and hours."""
    given = {key.replace("__", ".").replace("_", "-"): str(value) for key, value in options.items()}
    return shop.lake.create_table("t", SCHEMA, partition_by=["dt", "hh"], options={"file.format": "avro", **given})


def fill(table: Table, *rows: tuple[str | None, int | None, int]) -> None:
    """One commit of these rows."""
    days, hours, values = zip(*rows, strict=True)
    table.write(pa.table({"dt": pa.array(days, pa.string()), "hh": pa.array(hours, pa.int32()), "v": values}))


def days_ago(number: int) -> str:
    """A day of the test's calendar."""
    return str(TODAY - dt.timedelta(days=number))


def names(table: Table) -> list[str]:
    """Names of the partitions."""
    return [partition.name for partition in table.partitions()]


def test_partitions_are_listed_with_sums() -> None:
    """Rows, files and bytes of each partition, of the latest snapshot or of an earlier one."""
    table = partitioned(Workshop())
    assert table.partitions() == []
    fill(table, ("a", 1, 1), ("a", 1, 2), ("b", None, 3))
    fill(table, ("a", 1, 4))
    first, second = table.partitions()
    assert (first.name, first.values, first.record_count, first.file_count) == (
        "dt=a/hh=1",
        {"dt": "a", "hh": "1"},
        3,
        2,
    )
    assert (second.name, second.values) == ("dt=b/hh=__DEFAULT_PARTITION__", {"dt": "b", "hh": None})
    assert first.size_bytes > 0
    assert first.last_update_ms == TEN_O_CLOCK
    assert first.total_buckets == -1
    assert table.at(snapshot=1).partitions()[0].record_count == 2


def test_partitions_are_dropped_by_all_or_some_columns() -> None:
    """All partitions that agree with a spec go, in one OVERWRITE commit."""
    table = partitioned(Workshop())
    fill(table, ("a", 1, 1), ("a", 2, 2), ("b", 1, 3), ("c", None, 4))
    done = table.drop_partitions([{"dt": "a"}, {"dt": "b", "hh": "1"}])
    assert done.partitions == ({"dt": "a", "hh": "1"}, {"dt": "a", "hh": "2"}, {"dt": "b", "hh": "1"})
    assert done.snapshot is not None
    assert done.snapshot.commit_kind == CommitKind.OVERWRITE
    assert names(table) == ["dt=c/hh=__DEFAULT_PARTITION__"]
    assert table.drop_partitions([{"hh": "__DEFAULT_PARTITION__"}]).partitions == (
        {"dt": "c", "hh": "__DEFAULT_PARTITION__"},
    )
    assert shown(table) == []
    assert table.drop_partitions([{"dt": "a"}]).snapshot is None
    assert len(table.snapshots()) == 3


def test_a_partition_that_is_not_there() -> None:
    """With `if_exists=False` one that is missing keeps all others."""
    table = partitioned(Workshop())
    fill(table, ("a", 1, 1))
    with pytest.raises(NotFound, match="dt=z"):
        table.drop_partitions([{"dt": "a"}, {"dt": "z"}], if_exists=False)
    assert names(table) == ["dt=a/hh=1"]


@pytest.mark.parametrize("specs", [{"dt": "a"}, "dt=a", [{}], [{"v": 1}], [{"hh": "x"}], ["dt=a"]])
def test_wrong_specs_are_refused(specs: Any) -> None:
    """Dicts of partition columns to values of their types, in a list."""
    table = partitioned(Workshop())
    fill(table, ("a", 1, 1))
    with pytest.raises(InvalidArgument):
        table.drop_partitions(specs)
    assert names(table) == ["dt=a/hh=1"]


def test_a_table_without_partitions_has_none_to_drop() -> None:
    """Neither by name, nor by age, nor to mark."""
    table = Workshop().create()
    for action in (
        lambda: table.drop_partitions([{"dt": "a"}]),
        lambda: table.expire_partitions("1 d"),
        lambda: table.mark_partition_done([{"dt": "a"}]),
    ):
        with pytest.raises(InvalidArgument, match="not partitioned"):
            action()


# --- by age ----------------------------------------------------------------------------------------------------------


def test_partitions_expire_by_their_values() -> None:
    """Those whose first column is a day before now minus the time go; what is no day stays."""
    table = partitioned(Workshop())
    fill(table, (days_ago(0), 1, 1), (days_ago(2), 1, 2), (days_ago(3), 5, 3), ("never", 1, 4), (None, 1, 5))
    done = table.expire_partitions("1 d", timestamp_formatter="yyyy-MM-dd")
    assert done.partitions == ({"dt": days_ago(3), "hh": "5"}, {"dt": days_ago(2), "hh": "1"})
    assert len(names(table)) == 3
    assert table.expire_partitions("1 d").partitions == ()


def test_no_more_partitions_expire_than_allowed() -> None:
    """The first by their values go first; batches are commits of their own."""
    table = partitioned(Workshop(), partition__expiration_batch_size=2)
    fill(table, *((days_ago(number), 1, number) for number in range(2, 9)))
    assert [p["dt"] for p in table.expire_partitions("1 d", max_expires=3).partitions] == [
        days_ago(8),
        days_ago(7),
        days_ago(6),
    ]
    assert len(table.snapshots()) == 3
    assert len(table.expire_partitions("1 d").partitions) == 4


def test_partitions_expire_by_a_pattern_of_several_columns() -> None:
    """`$dt $hh` with a format; values that do not fit it never expire."""
    shop = Workshop()
    table = partitioned(shop)
    now = dt.datetime.fromtimestamp(TEN_O_CLOCK / 1000)
    hours = [now - dt.timedelta(hours=number) for number in (0, 2, 5)]
    fill(table, *((f"{hour:%Y-%m-%d}", hour.hour, 1) for hour in hours), ("9999-09-09", 99, 9))
    done = table.expire_partitions("3 h", "yyyy-MM-dd H", "$dt $hh")
    assert done.partitions == ({"dt": f"{hours[2]:%Y-%m-%d}", "hh": str(hours[2].hour)},)


def test_partitions_expire_by_their_last_change() -> None:
    """`update-time` counts from the newest file, whatever the values are."""
    shop = Workshop()
    table = partitioned(shop)
    fill(table, ("x", 1, 1), ("y", 1, 1))
    shop.at(50)
    fill(table, ("y", 1, 2))
    shop.at(70)
    done = table.expire_partitions("1 h", expire_strategy="update-time")
    assert done.partitions == ({"dt": "x", "hh": "1"},)
    with pytest.raises(InvalidArgument, match="update-time"):
        table.expire_partitions("1 h", expire_strategy="update-tim")


def test_the_options_are_the_defaults() -> None:
    """What a call leaves out is as the table says; without any time it is an error."""
    shop = Workshop()
    table = partitioned(
        shop,
        partition__expiration_time="2 d",
        partition__timestamp_pattern="$dt",
        partition__timestamp_formatter="yyyyMMdd",
        partition__expiration_max_num=1,
    )
    old = [days_ago(number).replace("-", "") for number in (4, 3, 1)]
    fill(table, *((day, 1, 1) for day in old))
    assert [p["dt"] for p in table.expire_partitions().partitions] == [old[0]]
    assert [p["dt"] for p in table.expire_partitions().partitions] == [old[1]]
    assert table.expire_partitions().partitions == ()
    with pytest.raises(InvalidArgument, match="expiration_time"):
        shop.lake.create_table("u", SCHEMA, partition_by=["dt"]).expire_partitions()


@pytest.mark.parametrize(
    ("interval", "end_input", "expires"), [("1 h", "false", False), ("0 s", "false", True), ("1 h", "true", True)]
)
def test_a_commit_lets_partitions_expire(interval: str, end_input: str, expires: bool) -> None:
    """After a commit, when a check is due: always without an interval, or at the end of a batch if asked to."""
    table = partitioned(
        Workshop(),
        partition__expiration_time="1 d",
        partition__expiration_check_interval=interval,
        end_input__check_partition_expire=end_input,
    )
    fill(table, (days_ago(0), 1, 1), (days_ago(5), 1, 1))
    assert names(table) == [f"dt={days_ago(0)}/hh=1"] if expires else len(names(table)) == 2


def test_checks_come_once_in_an_interval() -> None:
    """A handle looks again when the interval is over."""
    shop = Workshop()
    table = partitioned(shop, partition__expiration_time="1 d", partition__expiration_check_interval="1 h")
    fill(table, (days_ago(0), 1, 1), (days_ago(5), 1, 1))
    assert len(names(table)) == 2
    shop.at(61)
    fill(table, (days_ago(0), 1, 2))
    assert len(names(table)) == 1
    fill(table, (days_ago(5), 1, 1))
    assert len(names(table)) == 2


def test_options_of_no_use_do_not_fail_a_commit(caplog: pytest.LogCaptureFixture) -> None:
    """The rows are in; the log says why no partition went."""
    table = partitioned(
        Workshop(),
        partition__expiration_time="1 d",
        partition__expiration_check_interval="0 s",
        partition__timestamp_formatter="QQ",
    )
    with caplog.at_level(logging.WARNING):
        fill(table, (days_ago(5), 1, 1))
    assert len(shown(table)) == 1
    assert "QQ" in caplog.text


@pytest.mark.parametrize(
    ("texts", "pattern", "formatter", "expected"),
    [
        (["2024-06-01"], None, None, "2024-06-01 00:00:00"),
        (["2024-6-1 3:04:05.5"], None, None, "2024-06-01 03:04:05"),
        (["2024-02-30"], None, None, "2024-03-01 00:00:00"),
        (["2024-14-01"], None, None, "2025-02-01 00:00:00"),
        (["20240601"], None, None, None),
        (["2024-06-01 10:00"], None, None, None),
        (["99999-01-01"], None, None, None),
        (["20240601"], None, "yyyyMMdd", "2024-06-01 00:00:00"),
        (["20240230"], None, "yyyyMMdd", "2024-02-29 00:00:00"),
        (["20240232"], None, "yyyyMMdd", None),
        (["202406"], None, "yyyyMM", None),
        (["2024061"], None, "yyyyMMdd", None),
        (["20240601", "05"], "$a$b", "yyyyMMddHH", "2024-06-01 05:00:00"),
        (["2024-06-01", "24"], "$a $b:00", "yyyy-MM-dd HH:mm", "2024-06-02 00:00:00"),
        (["2024-06-01", "25"], "$a $b:00", "yyyy-MM-dd HH:mm", None),
        (["2024-06-01", None], "$a $b:00", "yyyy-MM-dd HH:mm", None),
        (["2024-06-01", None], "$a", None, "2024-06-01 00:00:00"),
        (["1st of 6 in 2024"], None, "d'st of 'M' in 'yyyy", "2024-06-01 00:00:00"),
        (["$x"], "$x", None, None),
    ],
)
def test_times_of_partitions(
    texts: list[str | None], pattern: str | None, formatter: str | None, expected: str | None
) -> None:
    """As Java reads them: lenient by default, sharp with a format, and no time where the text does not fit."""
    values = dict(zip("ab", texts, strict=False))
    found = partition_time(values, pattern, formatter)
    assert (found and f"{found:%Y-%m-%d %H:%M:%S}") == expected


def test_longer_names_come_first_in_a_pattern() -> None:
    """`$dt1` is not `$dt` and a 1."""
    assert partition_time({"dt": "x", "dt1": "2024-01-02"}, "$dt1", None) == dt.datetime(2024, 1, 2)


# --- marked done -----------------------------------------------------------------------------------------------------


def test_a_marker_says_that_a_partition_is_done() -> None:
    """A JSON file in the partition with both times; marking again moves the second."""
    shop = Workshop()
    table = partitioned(shop)
    fill(table, ("a b", 1, 1))
    assert table.mark_partition_done([{"dt": "a b", "hh": 1}]) == ["dt=a b/hh=1"]
    path = f"{table.location}/dt=a b/hh=1/_SUCCESS"
    assert json.loads(shop.fileio.read_bytes(path)) == {"creationTime": TEN_O_CLOCK, "modificationTime": TEN_O_CLOCK}
    shop.at(1)
    table.mark_partition_done([{"hh": "1", "dt": "a b"}])
    assert json.loads(shop.fileio.read_bytes(path)) == {
        "creationTime": TEN_O_CLOCK,
        "modificationTime": TEN_O_CLOCK + 60_000,
    }
    assert shown(table) == [("a b", 1, 1)]
    with pytest.raises(InvalidArgument, match="hh"):
        table.mark_partition_done([{"dt": "a b"}])


def test_a_batch_marks_what_it_wrote() -> None:
    """`partition.end-input-to-done` marks the partitions of a commit."""
    shop = Workshop()
    table = partitioned(shop, partition__end_input_to_done="true")
    fill(table, ("a", 1, 1))
    assert shop.fileio.exists(f"{table.location}/dt=a/hh=1/_SUCCESS")


@pytest.mark.parametrize("action", ["done-partition", "mark-event", "custom"])
def test_actions_that_need_others_are_refused(action: str) -> None:
    """There is no metastore, and no Java."""
    table = partitioned(Workshop(), partition__mark_done_action=action)
    with pytest.raises(Unsupported):
        table.mark_partition_done([{"dt": "a", "hh": 1}])


@pytest.fixture
def reports() -> Iterator[tuple[str, list[Any]]]:
    """An address, and what was sent to it; a table named `bad` is answered with a failure."""
    taken: list[Any] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            taken.append(body)
            answer = json.dumps({"result": "FAILED" if body["params"] == "bad" else "SUCCESS"}).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

        def log_message(self, *_: Any) -> None:
            pass

    server = HTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}/", taken
    server.shutdown()
    thread.join()
    server.server_close()


def test_an_address_is_told(reports: tuple[str, list[Any]]) -> None:
    """`http-report` sends table, partition, parameters and place; any answer but success is an error."""
    url, taken = reports
    options = {"partition__mark_done_action": "http-report", "partition__mark_done_action__http__url": url}
    table = partitioned(Workshop(), **options, partition__mark_done_action__http__params="p")
    table.mark_partition_done([{"dt": "a", "hh": 1}])
    assert taken == [{"table": "default.t", "partition": "dt=a/hh=1", "params": "p", "path": table.location}]
    bad = partitioned(Workshop(), **options, partition__mark_done_action__http__params="bad")
    with pytest.raises(StorageError, match="FAILED"):
        bad.mark_partition_done([{"dt": "a", "hh": 1}])
