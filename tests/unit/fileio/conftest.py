"""File systems to run the same tests against, and a small S3 server on the loopback interface.

The server speaks as much of the protocol as the client uses, and can misbehave on request, which a real one does not.
Set LAKEBED_TEST_S3_ENDPOINT (and give it a bucket named `lakebed-test`) to run the suite against another server too.
"""

from __future__ import annotations

import os
import re
import threading
import uuid
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, unquote, urlsplit
from xml.sax.saxutils import escape, unescape

import pytest
from obstore.store import MemoryStore

from lakebed.fileio import FileIO, open_fileio
from lakebed.fileio.object_store import ObjectStoreFileIO

BUCKET = "lakebed-test"


@dataclass
class S3State:
    """The bucket's objects, and how the server should misbehave."""

    url: str = ""
    objects: dict[str, bytes] = field(default_factory=dict)
    uploads: dict[str, dict[int, bytes]] = field(default_factory=dict)
    page_size: int = 1000
    honours_conditions: bool = True
    answers_lost: int = 0  # so many further puts are carried out and then answered with a server error
    puts_failing: int = 0  # so many further puts are answered with a server error without being carried out
    denies_everything: bool = False
    gets_failing: int = 0
    requests: list[str] = field(default_factory=list)
    lock: threading.RLock = field(default_factory=threading.RLock)

    def open(self, path: str = "", **more: str) -> tuple[FileIO, str]:
        options = {
            "s3.endpoint": self.url,
            "s3.access-key": "user",
            "s3.secret-key": "very-secret",
            "s3.path-style-access": "true",
            "s3.region": "us-east-1",
        }
        return open_fileio(f"s3://{BUCKET}/{path}", options | more)


class S3Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize = -1  # an answer in one packet
    state: S3State

    def log_message(self, *arguments: object) -> None:
        pass

    def do_any(self) -> None:
        parts = urlsplit(self.path)
        query = {name: values[0] for name, values in parse_qs(parts.query, keep_blank_values=True).items()}
        bucket, _, key = unquote(parts.path).lstrip("/").partition("/")
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        state = self.state
        with state.lock:
            state.requests.append(f"{self.command} {key}")
            if state.denies_everything:
                return self.answer(403, b"<Error><Code>AccessDenied</Code></Error>")
            if bucket != BUCKET:
                return self.answer(404, b"<Error><Code>NoSuchBucket</Code></Error>")
            if not key:
                return self.list_objects(query) if self.command == "GET" else self.delete_objects(body)
            if "uploads" in query or "uploadId" in query:
                return self.multipart(key, query, body)
            return getattr(self, f"object_{self.command.lower()}")(key, body)

    do_GET = do_HEAD = do_PUT = do_POST = do_DELETE = do_any  # noqa: N815

    def answer(self, status: int, body: bytes = b"", **headers: str) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.send_header("ETag", '"tag"')
        self.send_header("Last-Modified", "Tue, 01 Jul 2025 10:00:00 GMT")
        if "Content_Length" not in headers:
            self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def object_put(self, key: str, body: bytes) -> None:
        state = self.state
        source = self.headers.get("x-amz-copy-source")
        if source is not None:
            state.objects[key] = state.objects[unquote(source).lstrip("/").partition("/")[2]]
            return self.answer(200, b"<CopyObjectResult><ETag>tag</ETag></CopyObjectResult>")
        if state.puts_failing > 0:
            state.puts_failing -= 1
            return self.answer(500)
        if state.honours_conditions and self.headers.get("If-None-Match") == "*" and key in state.objects:
            return self.answer(412, b"<Error><Code>PreconditionFailed</Code></Error>")
        state.objects[key] = body
        if state.answers_lost > 0:
            state.answers_lost -= 1
            return self.answer(500)
        return self.answer(200)

    def object_get(self, key: str, body: bytes) -> None:
        if self.state.gets_failing > 0:
            self.state.gets_failing -= 1
            return self.answer(500)
        data = self.state.objects.get(key)
        if data is None:
            return self.answer(404, b"<Error><Code>NoSuchKey</Code></Error>")
        wanted = re.fullmatch(r"bytes=(\d+)-(\d*)", self.headers.get("Range", ""))
        if wanted is None:
            return self.answer(200, data)
        start, end = int(wanted[1]), min(int(wanted[2] or len(data)), len(data) - 1)
        return self.answer(206, data[start : end + 1], Content_Range=f"bytes {start}-{end}/{len(data)}")

    def object_head(self, key: str, body: bytes) -> None:
        data = self.state.objects.get(key)
        if data is None:
            return self.answer(404)
        return self.answer(200, Content_Length=str(len(data)))

    def object_delete(self, key: str, body: bytes) -> None:
        self.state.objects.pop(key, None)
        self.answer(204)

    def delete_objects(self, body: bytes) -> None:
        keys = re.findall(r"<Key>(.*?)</Key>", body.decode())
        for key in keys:
            self.state.objects.pop(unescape(key), None)
        deleted = "".join(f"<Deleted><Key>{key}</Key></Deleted>" for key in keys)
        self.answer(200, f"<DeleteResult>{deleted}</DeleteResult>".encode())

    def multipart(self, key: str, query: dict[str, str], body: bytes) -> None:
        uploads = self.state.uploads
        if self.command == "POST" and "uploads" in query:
            upload = uuid.uuid4().hex
            uploads[upload] = {}
            text = f"<InitiateMultipartUploadResult><UploadId>{upload}</UploadId></InitiateMultipartUploadResult>"
            return self.answer(200, text.encode())
        if self.command == "PUT":
            uploads[query["uploadId"]][int(query["partNumber"])] = body
            return self.answer(200)
        parts = uploads.pop(query["uploadId"])
        if self.command == "POST":
            self.state.objects[key] = b"".join(parts[number] for number in sorted(parts))
        text = "<CompleteMultipartUploadResult><ETag>tag</ETag></CompleteMultipartUploadResult>"
        return self.answer(200, text.encode())

    def list_objects(self, query: dict[str, str]) -> None:
        prefix, delimiter, token = query.get("prefix", ""), query.get("delimiter"), query.get("continuation-token", "")
        keys = sorted(key for key in self.state.objects if key.startswith(prefix) and key > token)
        page, rest = keys[: self.state.page_size], keys[self.state.page_size :]
        contents, prefixes = [], set()
        for key in page:
            head, found, _ = key[len(prefix) :].partition(delimiter) if delimiter else ("", "", "")
            if found:
                prefixes.add(f"{prefix}{head}{found}")
            else:
                contents.append(
                    f"<Contents><Key>{escape(key)}</Key><LastModified>2025-07-01T10:00:00.000Z</LastModified>"
                    f"<ETag>tag</ETag><Size>{len(self.state.objects[key])}</Size></Contents>"
                )
        more = f"<NextContinuationToken>{escape(page[-1])}</NextContinuationToken>" if rest else ""
        listed = "".join(f"<CommonPrefixes><Prefix>{escape(name)}</Prefix></CommonPrefixes>" for name in prefixes)
        text = f"<ListBucketResult>{''.join(contents)}{listed}{more}</ListBucketResult>"
        self.answer(200, text.encode())


@pytest.fixture(scope="session")
def s3_server() -> Iterator[type[S3Handler]]:
    handler = type("Handler", (S3Handler,), {})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    server.daemon_threads = True
    handler.url = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield handler
    server.shutdown()
    server.server_close()


@pytest.fixture
def s3(s3_server: type[S3Handler]) -> S3State:
    """An empty bucket on a well-behaved server."""
    s3_server.state = S3State(url=s3_server.url)
    return s3_server.state


PLACES = ["local", "memory", "object-store", "s3"]
if os.environ.get("LAKEBED_TEST_S3_ENDPOINT"):
    PLACES.append("s3-elsewhere")


@pytest.fixture(params=PLACES)
def place(request: pytest.FixtureRequest, tmp_path: object) -> tuple[FileIO, str]:
    """Each kind of file system in turn, with a root path that is free."""
    match request.param:
        case "local":
            return open_fileio(str(tmp_path))
        case "memory":
            return open_fileio(f"memory://{uuid.uuid4()}/root")
        case "object-store":
            return ObjectStoreFileIO(MemoryStore()), "root"
        case "s3":
            return request.getfixturevalue("s3").open("root")
    return S3State(url=os.environ["LAKEBED_TEST_S3_ENDPOINT"]).open(f"root-{uuid.uuid4()}")
