"""Nobody but the browser that was given the token sees anything, and nothing is changed unless that was allowed."""

from __future__ import annotations

import pytest

import lakebed

from .conftest import Server, served


def test_nothing_without_the_token(fresh: Server) -> None:
    """Neither pages nor data; the token works once."""
    for path in ("/", "/api/lake", "/api/tables/default.deduplicate", "/static/app.js", "/nowhere"):
        status, _, body = fresh.request(path)
        assert status == 401, path
        assert b"lakebed ui" in body
    token = fresh.address.partition(fresh.host)[2]
    assert fresh.request("/?token=wrong")[0] == 401
    status, headers, _ = fresh.request(token)
    assert (status, headers["location"]) == (303, "/")
    assert {"httponly", "samesite=strict"} <= {part.strip().lower() for part in headers["set-cookie"].split(";")}
    assert fresh.request(token)[0] == 401
    cookie = headers["set-cookie"].partition(";")[0]
    assert fresh.request("/api/lake", cookie=cookie)[0] == 200
    assert fresh.request("/api/lake", cookie=cookie + "x")[0] == 401


@pytest.mark.parametrize("host", ["evil.example", "evil.example:{port}", "127.0.0.1", "127.0.0.1:1", ""])
def test_only_under_its_own_name(server: Server, host: str) -> None:
    """A name of the network that points to this machine gets nothing, not even with the cookie."""
    port = server.host.partition(":")[2]
    assert server.request("/api/lake", cookie=server.cookie, host=host.format(port=port))[0] in (400, 421)


def test_only_from_its_own_pages(server: Server) -> None:
    """Requests that other pages send are refused."""
    for origin in ("http://evil.example", "null", f"https://{server.host}"):
        assert server.request("/api/lake", cookie=server.cookie, origin=origin)[0] == 403
    assert server.request("/api/lake", cookie=server.cookie, sec_fetch_site="cross-site")[0] == 403
    assert server.request("/api/lake", cookie=server.cookie, origin=f"http://{server.host}")[0] == 200


def test_every_answer_forbids_scripts_of_others(server: Server) -> None:
    """Also refusals and errors say which scripts may run."""
    for path in ("/", "/api/lake", "/api/tables/default.nowhere", "/static/nowhere", "/?token=x"):
        _, headers, _ = server.request(path, cookie=server.cookie)
        policy = headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy
        assert headers["x-content-type-options"] == "nosniff"


def test_no_path_outside(server: Server) -> None:
    """Neither files of this machine nor tables that are none."""
    for path in ("../app.py", "..%2fapp.py", "%2e%2e/guard.py", "/etc/passwd", "index.html%00.js", "__init__.py"):
        assert server.request(f"/static/{path}", cookie=server.cookie)[0] == 404, path
    for name in ("..%2F..%2Fetc", "default.%2e%2e", "a.b.c.d", "nowhere.t"):
        assert server.request(f"/api/tables/{name}", cookie=server.cookie)[0] in (400, 404), name


def test_read_only_is_read_only(server: Server) -> None:
    """No route changes anything; a query is a SELECT or nothing."""
    table = server.lake["deduplicate"]
    before = table.latest_snapshot()
    for change in ("compact", "expire", "tag"):
        status, said, hint = server.ask(f"tables/default.deduplicate/{change}", "POST", {"name": "t", "full": True})
        assert (status, "--allow-changes" in hint) == (403, True), said
    for sql in (
        "DELETE FROM deduplicate",
        "INSERT INTO events VALUES ('x')",
        "DROP TABLE events",
        "CALL sys.x()",
    ):
        assert server.ask("query", "POST", {"sql": sql})[0] == 400, sql
    for method in ("PUT", "DELETE", "PATCH"):
        assert server.request("/api/tables/default.deduplicate", method, cookie=server.cookie)[0] == 405
    assert table.latest_snapshot() == before
    assert [each["tag_name"] for each in server.ask("tables/default.deduplicate")["tags"]] == ["monday"]


def test_changes_that_were_allowed(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Compaction, tags and expiry go the way of the public methods."""
    lake = lakebed.connect(tmp_path_factory.mktemp("changing"))
    lake.sql("CREATE TABLE t (k INT, PRIMARY KEY (k) NOT ENFORCED)")
    lake.sql("INSERT INTO t VALUES (1)")
    lake.sql("INSERT INTO t VALUES (2)")
    server = served(lake, allow_changes=True).signed_in()
    assert server.ask("tables/default.t/compact", "POST", {"full": True}) == {"done": "compacted"}
    assert server.ask("tables/default.t/tag", "POST", {"name": "now"}) == {"done": "tagged now"}
    assert "done" in server.ask("tables/default.t/expire", "POST", {})
    assert server.ask("tables/default.t/sing", "POST", {})[0] == 404
    assert [tag["tag_name"] for tag in server.ask("tables/default.t")["tags"]] == ["now"]
    assert len(lake["t$files"].to_arrow()) == 1
