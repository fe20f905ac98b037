"""Every answer of the JSON interface against what the public methods say."""

from __future__ import annotations

import pytest

from .conftest import ENGINES, HOSTILE, Server


def test_the_lake(server: Server) -> None:
    """All tables, by pages and by search, each with a line about it."""
    found = server.ask("lake")
    assert found["tables"] == [f"default.{name}" for name in sorted(server.lake.tables())]
    assert found["count"] == 7
    assert server.ask("lake", offset=5, limit=1)["tables"] == found["tables"][5:6]
    assert server.ask("lake", search="MARK")["tables"] == ["default.marked"]
    lines = server.ask("summaries", names="default.marked,default.nowhere,default.sums")
    assert [line.get("kind") for line in lines] == ["deduplicate", None, "materialized"]
    assert "nowhere" in lines[1]["error"]


@pytest.mark.parametrize("name", [*(each.replace("-", "_") for each in ENGINES), "marked", "events", "sums"])
def test_files_are_those_of_the_table(server: Server, name: str) -> None:
    """The picture holds each file once, where the system table says that it is, at every snapshot."""
    table = server.lake[name]
    for snapshot in table.snapshots():
        drawn = server.ask(f"tables/default.{name}/lsm", snapshot=snapshot.id)
        told = server.lake[f"{name}$files"].at(snapshot=snapshot.id).to_arrow().to_pylist()
        files = {file["name"]: (each, file) for each in drawn["buckets"] for file in each["files"]}
        assert set(files) == {row["file_path"].rpartition("/")[2] for row in told}
        for row in told:
            bucket, file = files[row["file_path"].rpartition("/")[2]]
            assert (bucket["bucket"], file["level"], file["rows"]) == (row["bucket"], row["level"], row["record_count"])
            assert (file["min_key"], file["max_key"]) == (row["min_key"], row["max_key"])
        assert drawn["svg"].count("data-file=") == len(told)


def test_overlap_is_drawn(server: Server) -> None:
    """Files whose keys overlap lie over the same places; others do not."""
    for bucket in server.ask("tables/default.deduplicate/lsm")["buckets"]:
        keys = [
            (int(file["min_key"][1:-1]), int(file["max_key"][1:-1]), file["low"], file["high"])
            for file in bucket["files"]
        ]
        for a in keys:
            for b in keys:
                assert (a[0] <= b[1] and b[0] <= a[1]) == (a[2] <= b[3] and b[2] <= a[3])


def test_a_table(server: Server) -> None:
    """Columns, keys, options, tags."""
    found = server.ask("tables/default.marked")
    assert [column["name"] for column in found["columns"]] == ["dt", "k", "v"]
    assert [column["in_key"] for column in found["columns"]] == [True, True, False]
    assert found["partition_by"] == ["dt"]
    assert found["options"]["deletion-vectors.enabled"] == "true"
    assert found["snapshot"]["id"] == server.lake["marked"].latest_snapshot().id
    assert server.ask("tables/default.nowhere")[0] == 404


def test_snapshots_by_pages(server: Server) -> None:
    """The newest first."""
    numbers = [each.id for each in server.lake["deduplicate"].snapshots()]
    first = server.ask("tables/default.deduplicate/snapshots", limit=3)
    rest = server.ask("tables/default.deduplicate/snapshots", before=first["snapshots"][-1]["id"])
    assert [each["id"] for each in first["snapshots"] + rest["snapshots"]] == numbers[::-1]
    assert (first["more"], rest["more"]) == (True, False)
    assert server.ask("tables/default.deduplicate/timeline")["svg"].count("data-snapshot=") == len(numbers)


def test_rows(server: Server) -> None:
    """With a condition, at a snapshot, nulls apart, texts as they are."""
    found = server.ask("tables/default.deduplicate/rows", where="k < 3 AND v = 0")
    assert sorted(found["rows"]) == [["0", "0"], ["1", "0"], ["2", "0"]]
    assert server.ask("tables/default.deduplicate/rows", snapshot=1)["rows"]
    assert sorted(server.ask("tables/default.events/rows")["rows"], key=str) == [["a"], [None]]
    assert server.ask("tables/default.marked/rows", limit=1)["rows"][0][2] == HOSTILE
    status, said, hint = server.ask("tables/default.deduplicate/rows", where="nothing > 1")
    assert (status, "nothing" in said, bool(hint)) == (404, True, True)
    assert server.ask("tables/default.deduplicate/rows", limit="many")[0] == 400


def test_queries(server: Server) -> None:
    """A SELECT in this process; what is wrong says what to do."""
    found = server.ask("query", "POST", {"sql": "SELECT count(*) AS n FROM deduplicate WHERE k < 5"})
    assert (found["columns"], found["rows"]) == (["n"], [["5"]])
    assert server.ask("query", "POST", {"sql": "SELECT * FROM nowhere"})[0] in (400, 404)
    assert server.ask("query", "POST", {"sql": " "})[0] == 400


def test_changes(server: Server) -> None:
    """What came after a snapshot, and what differs between two."""
    table = server.lake["deduplicate"]
    latest = table.latest_snapshot().id
    found = server.ask("tables/default.deduplicate/changes", since=latest - 1)
    assert (found["until"], found["count"]) == (latest, table.changes(since=latest - 1).num_rows)
    assert server.ask("tables/default.deduplicate/changes", since=latest)["rows"] == []
    found = server.ask("tables/default.deduplicate/diff", before=1, after=latest)
    assert found["count"] == table.diff(1, latest).num_rows


def test_why(server: Server) -> None:
    """Why a row is as it is, for a key that was typed; what is wrong with it says so."""
    found = server.ask("tables/default.aggregation/why", **{"key.k": "7"})
    [row] = found["keys"]
    assert row["row"] == server.lake["aggregation"].why(7)[0].row
    assert len(row["versions"]) == 2
    assert server.ask("tables/default.marked/why", **{"key.k": "7"})[0] == 400
    assert server.ask("tables/default.deduplicate/why", **{"key.k": "seven"})[0] == 400
    assert server.ask("tables/default.events/why")[0] == 400


def test_health(server: Server) -> None:
    """The findings of a table, and those of all."""
    own = server.ask("tables/default.deduplicate/health")
    assert own == server.lake["deduplicate"].health().to_dict()["findings"]
    everything = server.ask("health")
    assert [each for each in everything if each["table"] == "default.deduplicate"] == own
    assert all(each["cure"] for each in everything)


def test_flows(server: Server) -> None:
    """What feeds what: a sync and a stream, their tables, a materialized table, a reader; how far each is behind."""
    found = server.ask("flows")
    edges = {(edge["from"], edge["to"]) for edge in found["edges"]}
    assert edges == {
        ("default.deduplicate", "default.sums"),
        ("default.deduplicate", "dashboard of default.deduplicate"),
        ("stream clicks", "default.deduplicate"),
        ("postgres → default", "default.partial_update"),
        ("postgres → default", "default.events"),
    }
    nodes = {node["name"]: node for node in found["nodes"]}
    assert {name for edge in edges for name in edge} == set(nodes)
    view = nodes["default.sums"]
    assert (view["kind"], view["behind"]["snapshots"], view["suspended"]) == ("materialized", 0, False)
    sync = nodes["postgres → default"]
    assert (sync["state"], sync["lag_seconds"], sync["lag_bytes"], sync["rate"]) == ("running", 1.5, 2048, 12.5)
    assert sync["parked"] == {"default.events": "`x` does not fit"}
    stream = nodes["stream clicks"]["tables"]["default.deduplicate"]
    assert (stream["last_identifier"], stream["commits"], stream["rows"]) == (3, 3, 3)
    reader = nodes["dashboard of default.deduplicate"]
    commits = server.lake.table("deduplicate$commits_metrics").to_arrow().to_pylist()
    unread = [each["bytes_added"] for each in commits if each["snapshot_id"] >= reader["next_snapshot"]]
    assert reader["snapshots_behind"] == 2
    assert reader["bytes_behind"] == sum(unread) > 0


def test_syncs_that_need_somebody(server: Server) -> None:
    """A parked table is told among all that is wrong, with its cure."""
    found = [each for each in server.ask("health") if each["check"] == "sync-parked"]
    assert [(each["table"], each["severity"]) for each in found] == [("default.events", "critical")]
    assert "lakebed cdc resume default.events --checkpoint" in found[0]["cure"]
