"""A lake with every kind of table, shown by a server in this process, and a browser to look at it."""

from __future__ import annotations

import http.client
import json
import re
import shutil
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

import pyarrow as pa
import pytest

import lakebed
from lakebed.cdc.checkpoint import CheckpointLock, SyncRecord
from lakebed.cdc.parked import ParkedTables
from lakebed.cdc.progress import ProgressFile, SyncProgress
from lakebed.commit.replay import CommitIdentity
from lakebed.errors import InvalidData
from lakebed.fileio.local import LocalFileIO
from lakebed.metadata.sync_note import SyncedTable, SyncNote, SyncNoteStore
from lakebed.table.writer import TableWriter

HOSTILE = "<img src=x onerror=\"document.title='broken'\">"
"""A value that a careless page would run."""
ENGINES = ("deduplicate", "partial-update", "aggregation", "first-row")


def _stream_into(table: lakebed.Table) -> None:
    """Commits of a stream, and a reader that has not seen the last two."""
    context = table._opened.current()
    for number in (1, 2, 3):
        with TableWriter(context, identity=CommitIdentity("clicks", number)) as writer:
            writer.write(pa.table({"k": [100 + number], "v": [7]}, schema=table.arrow_schema))
    latest = table.latest_snapshot()
    assert latest is not None
    context.stores.consumers.record("dashboard", latest.id - 1)


def _sync_into(lake: lakebed.Lake) -> CheckpointLock:
    """A sync as it leaves its notes, one table followed and one parked; it runs as long as the lock is held."""
    checkpoint = f"{lake.location}/_cdc/shop"
    lock = CheckpointLock.take(checkpoint)
    assert lock is not None
    SyncRecord.now(checkpoint, "postgres", "default", {}).write()
    progress = SyncProgress(
        phase="streaming", batches=3, rows=40, rows_per_second=12.5, lag_bytes=2048, lag_seconds=1.5
    )
    ProgressFile(checkpoint).write(progress)
    ParkedTables(checkpoint).park(
        "default.events", ["public.events"], InvalidData("`x` does not fit", hint="mend it"), None
    )
    followed = {"partial_update": SyncedTable(3, ("public.people",))}
    note = SyncNote("sync", "postgres", 0, keeps_transactions=True, tables=followed)
    SyncNoteStore(LocalFileIO(), f"{lake.location}/default.db").write(note)
    return lock


@pytest.fixture(scope="package")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Iterator[lakebed.Lake]:
    """Tables of all engines, one with deletion vectors, an append table, a materialized one; a stream and a sync."""
    found = lakebed.connect(tmp_path_factory.mktemp("ui") / "lake")
    for engine in ENGINES:
        options = {"bucket": "2", "merge-engine": engine, "num-sorted-run.compaction-trigger": "9"}
        options |= {"changelog-producer": "lookup"} if engine == "first-row" else {"changelog-producer": "none"}
        options |= {"fields.v.aggregate-function": "sum"} if engine == "aggregation" else {}
        options |= {"changelog-producer": "input"} if engine == "deduplicate" else {}
        table = found.create_table(
            engine.replace("-", "_"), {"k": "INT", "v": "INT"}, primary_key=["k"], options=options
        )
        for n in range(4):
            table.write(pa.table({"k": range(n * 5, n * 5 + 20), "v": [n] * 20}, schema=table.arrow_schema))
        table.create_tag("monday", snapshot=2)
    marked = found.create_table(
        "marked",
        {"dt": "STRING", "k": "INT", "v": "STRING"},
        primary_key=["dt", "k"],
        partition_by=["dt"],
        options={"bucket": "1", "deletion-vectors.enabled": "true"},
    )
    for n in range(4):
        rows = {"dt": ["a", "b"] * 10, "k": range(n, n + 20), "v": [HOSTILE] * 20}
        marked.write(pa.table(rows, schema=marked.arrow_schema))
    events = found.create_table("events", {"what": "STRING"}, comment=HOSTILE)
    events.write(pa.table({"what": ["a", None]}, schema=events.arrow_schema))
    _stream_into(found.table("deduplicate"))
    lock = _sync_into(found)
    found.sql("CREATE MATERIALIZED TABLE sums AS SELECT v, count(*) AS n FROM deduplicate GROUP BY v")
    found.refresh("sums")
    yield found
    lock.release()


@dataclass
class Server:
    """The server, and a client that keeps no more than it is told."""

    address: str
    lake: lakebed.Lake
    cookie: str = ""

    @property
    def host(self) -> str:
        """Name and port."""
        return re.search(r"//([^/]+)/", self.address)[1]  # type: ignore[index]

    def request(
        self, path: str, method: str = "GET", body: object = None, **headers: str
    ) -> tuple[int, dict[str, str], bytes]:
        """One request, with exactly these headers."""
        connection = http.client.HTTPConnection(*self.host.split(":"), timeout=60)  # type: ignore[arg-type]
        given = {name.replace("_", "-"): value for name, value in headers.items()}
        sent = None if body is None else json.dumps(body).encode()
        if sent is not None:
            given.setdefault("content-type", "application/json")
        connection.request(method, path, sent, given)
        answer = connection.getresponse()
        found = (answer.status, {name.lower(): value for name, value in answer.getheaders()}, answer.read())
        connection.close()
        return found

    def signed_in(self) -> Server:
        """The same for one who has the cookie."""
        if not self.cookie:
            _, headers, _ = self.request(self.address.partition(self.host)[2])
            self.cookie = headers["set-cookie"].partition(";")[0]
        return self

    def ask(self, path: str, method: str = "GET", body: object = None, **given: object) -> Any:
        """An answer of the interface; what is wrong with it as (status, words, hint)."""
        query = urlencode(given)
        status, _, text = self.request(f"/api/{path}{'?' + query if query else ''}", method, body, cookie=self.cookie)
        found = json.loads(text)
        return found if status == 200 else (status, found["error"], found["hint"])


def served(lake: lakebed.Lake, **options: Any) -> Server:
    """A server of its own; it ends with this process."""
    pytest.importorskip("uvicorn", reason="the extra `ui` is not installed")
    from lakebed.ui.serve import serve

    told: list[str] = []
    is_told = threading.Event()

    def tell(address: str) -> None:
        told.append(address)
        is_told.set()

    threading.Thread(
        target=serve, args=(lake, tell), kwargs={"open_browser": False, **options}, daemon=True, name="lakebed ui"
    ).start()
    assert is_told.wait(60)
    return Server(told[0], lake)


@pytest.fixture
def fresh(lake: lakebed.Lake) -> Server:
    """A server whose token nobody has used."""
    return served(lake)


@pytest.fixture(scope="package")
def server(lake: lakebed.Lake) -> Server:
    """A server, with its cookie."""
    return served(lake).signed_in()


@pytest.fixture(scope="package")
def browser() -> Iterator[Any]:
    """Debian's Chromium."""
    program = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if program is None:
        pytest.skip("no browser: install the package chromium")
    from playwright.sync_api import sync_playwright

    quiet = ("no-sandbox", "disable-gpu", "disable-background-networking", "disable-component-update", "disable-sync")
    with sync_playwright() as playwright:
        found = playwright.chromium.launch(executable_path=program, args=[f"--{each}" for each in quiet])
        yield found
        found.close()
