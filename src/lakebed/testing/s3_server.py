"""A small S3 server on the loopback interface: it counts what it is asked, and misbehaves on request.

It speaks as much of the protocol as our client uses. A real server is seldom away, slow or silent at the moment a test
wants it to be; this one is. What a table costs is told by its log: how many requests there were, and how many had to
wait for another to end.
"""

from __future__ import annotations

import hashlib
import re
import socket
import threading
import time
import uuid
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, unquote, urlsplit
from xml.sax.saxutils import escape, unescape

from lakebed.fileio import FileIO, open_fileio
from lakebed.records import dataclass

BUCKET = "lakebed-test"

_SLOW_DOWN = b"<Error><Code>SlowDown</Code><Message>Please reduce your request rate.</Message></Error>"


@dataclass(frozen=True, slots=True)
class Request:
    """One request that was answered: LIST, GET, HEAD, PUT, POST or DELETE, of which key, from when to when."""

    kind: str
    key: str
    started: float
    ended: float


class RequestLog(list[Request]):
    """Requests in the order in which they ended."""

    @property
    def in_series(self) -> int:
        """The longest chain of requests each of which began after the one before it had ended."""
        longest: list[tuple[float, int]] = []  # by time of end: the longest chain that has ended by then
        best = 0
        for request in sorted(self, key=lambda each: each.ended):
            before = max((length for ended, length in longest if ended <= request.started), default=0)
            best = max(best, before + 1)
            longest.append((request.ended, best))
        return best

    @property
    def kinds(self) -> Counter[str]:
        """How many of each kind."""
        return Counter(request.kind for request in self)

    def __str__(self) -> str:
        first = min((request.started for request in self), default=0.0)
        return "\n".join(
            f"{(each.started - first) * 1000:7.1f} {(each.ended - first) * 1000:7.1f} ms  {each.kind} {each.key}"
            for each in sorted(self, key=lambda each: each.started)
        )


@dataclass(slots=True)
class S3State:
    """The bucket's objects, and how the server should misbehave."""

    url: str = ""
    objects: dict[str, bytes] = field(default_factory=dict)
    uploads: dict[str, dict[int, bytes]] = field(default_factory=dict)
    page_size: int = 1000
    honours_conditions: bool = True
    delay_seconds: float = 0.0
    """Added to each request, however many there are at once."""
    away_until: float = 0.0
    """Until this `time.monotonic()` connections are cut without an answer."""
    slow_down_until: float = 0.0
    """Until this `time.monotonic()` requests are answered with 503 SlowDown."""
    answers_lost: int = 0
    """So many further puts are carried out and then answered with a server error."""
    answers_cut: int = 0
    """So many further puts are carried out, and the connection is cut before the answer."""
    puts_failing: int = 0
    """So many further puts are answered with a server error without being carried out."""
    gets_failing: int = 0
    denies_everything: bool = False
    accepted_keys: frozenset[str] | None = None
    """Access keys that are let in; None for all."""
    log: RequestLog = field(default_factory=RequestLog)
    lock: threading.RLock = field(default_factory=threading.RLock)

    @property
    def requests(self) -> list[str]:
        """Kind and key of what was asked so far, a listing under the word of its method."""
        return [f"{each.kind.replace('LIST', 'GET')} {each.key}" for each in self.log]

    @property
    def options(self) -> dict[str, str]:
        """What a lake or a file system on this server is opened with."""
        return {
            "s3.endpoint": self.url,
            "s3.access-key": "user",
            "s3.secret-key": "very-secret",
            "s3.path-style-access": "true",
            "s3.region": "us-east-1",
        }

    def open(self, path: str = "", **more: str) -> tuple[FileIO, str]:
        """The file system of a path in the bucket, and the path to use with it."""
        return open_fileio(f"s3://{BUCKET}/{path}", self.options | more)

    @contextmanager
    def counted(self) -> Iterator[RequestLog]:
        """What is asked until the end of the block."""
        log = RequestLog()
        with self.lock:
            before = len(self.log)
        yield log
        with self.lock:
            log += self.log[before:]

    def go_away(self, seconds: float) -> None:
        """Cuts all connections for a while."""
        self.away_until = time.monotonic() + seconds


class _S3Handler(BaseHTTPRequestHandler):
    """One connection."""

    protocol_version = "HTTP/1.1"
    wbufsize = -1  # an answer in one packet
    disable_nagle_algorithm = True
    state: S3State

    def log_message(self, *arguments: object) -> None:
        """Says nothing: the log is in `S3State`."""

    def _handle(self) -> None:
        started = time.monotonic()
        parts = urlsplit(self.path)
        query = {name: values[0] for name, values in parse_qs(parts.query, keep_blank_values=True).items()}
        bucket, _, key = unquote(parts.path).lstrip("/").partition("/")
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        state = self.state
        if state.delay_seconds:
            time.sleep(state.delay_seconds)
        with state.lock:
            self._answered(bucket, key, query, body)
            is_listing = not key and self.command == "GET"
            kind, name = ("LIST", query.get("prefix", "")) if is_listing else (self.command, key)
            # Noted before the answer leaves: whoever has it may count at once.
            state.log.append(Request(kind, name, started, time.monotonic()))
        self.wfile.flush()

    do_GET = do_HEAD = do_PUT = do_POST = do_DELETE = _handle  # noqa: N815

    def _answered(self, bucket: str, key: str, query: dict[str, str], body: bytes) -> None:
        state, now = self.state, time.monotonic()
        if now < state.away_until:
            return self._cut()
        if now < state.slow_down_until:
            return self._answer(503, _SLOW_DOWN)
        if state.denies_everything or not self._is_let_in():
            return self._answer(403, b"<Error><Code>AccessDenied</Code></Error>")
        if bucket != BUCKET:
            return self._answer(404, b"<Error><Code>NoSuchBucket</Code></Error>")
        if not key:
            return self._list(query) if self.command == "GET" else self._delete_many(body)
        if "uploads" in query or "uploadId" in query:
            return self._multipart(key, query, body)
        match self.command:
            case "PUT":
                return self._put(key, body)
            case "GET":
                return self._get(key)
            case "HEAD":
                return self._head(key)
        state.objects.pop(key, None)
        return self._answer(204)

    def _is_let_in(self) -> bool:
        accepted = self.state.accepted_keys
        signed = re.search(r"Credential=([^/]+)/", self.headers.get("Authorization", ""))
        return accepted is None or (signed is not None and signed[1] in accepted)

    def _cut(self) -> None:
        self.close_connection = True
        self.connection.shutdown(socket.SHUT_RDWR)

    def _answer(self, status: int, body: bytes = b"", content: bytes = b"", **headers: str) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.send_header("ETag", _version(content))
        self.send_header("Last-Modified", "Tue, 01 Jul 2025 10:00:00 GMT")
        if "Content_Length" not in headers:
            self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def _put(self, key: str, body: bytes) -> None:
        state = self.state
        source = self.headers.get("x-amz-copy-source")
        if source is not None:
            state.objects[key] = state.objects[unquote(source).lstrip("/").partition("/")[2]]
            return self._answer(200, b"<CopyObjectResult><ETag>tag</ETag></CopyObjectResult>")
        if state.puts_failing > 0:
            state.puts_failing -= 1
            return self._answer(500)
        if state.honours_conditions and self.headers.get("If-None-Match") == "*" and key in state.objects:
            return self._answer(412, b"<Error><Code>PreconditionFailed</Code></Error>")
        state.objects[key] = body
        if state.answers_lost > 0:
            state.answers_lost -= 1
            return self._answer(500)
        if state.answers_cut > 0:
            state.answers_cut -= 1
            return self._cut()
        return self._answer(200, content=body)

    def _get(self, key: str) -> None:
        if self.state.gets_failing > 0:
            self.state.gets_failing -= 1
            return self._answer(500)
        data = self.state.objects.get(key)
        if data is None:
            return self._answer(404, b"<Error><Code>NoSuchKey</Code></Error>")
        wanted = re.fullmatch(r"bytes=(\d*)-(\d*)", self.headers.get("Range", ""))
        if wanted is None:
            return self._answer(200, data, data)
        if not wanted[1]:  # the last so many bytes
            start, end = max(0, len(data) - int(wanted[2])), len(data) - 1
        else:
            start, end = int(wanted[1]), min(int(wanted[2] or len(data)), len(data) - 1)
        return self._answer(206, data[start : end + 1], data, Content_Range=f"bytes {start}-{end}/{len(data)}")

    def _head(self, key: str) -> None:
        data = self.state.objects.get(key)
        if data is None:
            return self._answer(404)
        return self._answer(200, content=data, Content_Length=str(len(data)))

    def _delete_many(self, body: bytes) -> None:
        keys = re.findall(r"<Key>(.*?)</Key>", body.decode())
        for key in keys:
            self.state.objects.pop(unescape(key), None)
        deleted = "".join(f"<Deleted><Key>{key}</Key></Deleted>" for key in keys)
        self._answer(200, f"<DeleteResult>{deleted}</DeleteResult>".encode())

    def _multipart(self, key: str, query: dict[str, str], body: bytes) -> None:
        uploads = self.state.uploads
        if self.command == "POST" and "uploads" in query:
            upload = uuid.uuid4().hex
            uploads[upload] = {}
            text = f"<InitiateMultipartUploadResult><UploadId>{upload}</UploadId></InitiateMultipartUploadResult>"
            return self._answer(200, text.encode())
        if self.command == "PUT":
            uploads[query["uploadId"]][int(query["partNumber"])] = body
            return self._answer(200)
        parts = uploads.pop(query["uploadId"], None)
        if parts is None:
            return self._answer(404, b"<Error><Code>NoSuchUpload</Code></Error>")
        if self.command == "POST":
            self.state.objects[key] = b"".join(parts[number] for number in sorted(parts))
        text = "<CompleteMultipartUploadResult><ETag>tag</ETag></CompleteMultipartUploadResult>"
        return self._answer(200, text.encode())

    def _list(self, query: dict[str, str]) -> None:
        prefix, delimiter = query.get("prefix", ""), query.get("delimiter")
        token = query.get("continuation-token") or query.get("start-after", "")
        size = min(self.state.page_size, int(query.get("max-keys", self.state.page_size)))
        keys = sorted(key for key in self.state.objects if key.startswith(prefix) and key > token)
        page, rest = keys[:size], keys[size:]
        contents, prefixes = [], set()
        for key in page:
            head, found, _ = key[len(prefix) :].partition(delimiter) if delimiter else ("", "", "")
            if found:
                prefixes.add(f"{prefix}{head}{found}")
            else:
                contents.append(
                    f"<Contents><Key>{escape(key)}</Key><LastModified>2025-07-01T10:00:00.000Z</LastModified>"
                    f"<ETag>{escape(_version(self.state.objects[key]))}</ETag><Size>{len(self.state.objects[key])}</Size></Contents>"
                )
        more = f"<NextContinuationToken>{escape(page[-1])}</NextContinuationToken>" if rest else ""
        listed = "".join(f"<CommonPrefixes><Prefix>{escape(name)}</Prefix></CommonPrefixes>" for name in prefixes)
        text = f"<ListBucketResult>{''.join(contents)}{listed}{more}</ListBucketResult>"
        self._answer(200, text.encode())


def _version(content: bytes) -> str:
    return f'"{hashlib.md5(content, usedforsecurity=False).hexdigest()}"'


class S3Server:
    """The server itself. `clear` gives it an empty bucket and its manners back."""

    def __init__(self) -> None:
        self._handler = type("Handler", (_S3Handler,), {})
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler)
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True)

    def clear(self) -> S3State:
        """What is in the bucket from now on: nothing."""
        state = S3State(url=f"http://127.0.0.1:{self._server.server_port}")
        self._handler.state = state  # type: ignore[attr-defined]
        return state

    def __enter__(self) -> S3Server:
        self.clear()
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._server.shutdown()
        self._server.server_close()


__all__ = ["BUCKET", "Request", "RequestLog", "S3Server", "S3State"]
