"""A registry of schemas for tests: what Confluent's REST interface says of schemas by their numbers, and faults.

It keeps its port when it is away, so that it comes back where it was. `message` writes bodies as its clients do.
"""

from __future__ import annotations

import base64
import io
import json
import threading
from collections.abc import Mapping, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Self

from lakebed.testing.ports import free_port


class SchemaRegistry:
    """`with SchemaRegistry() as registry:` answers on 127.0.0.1 until the end."""

    def __init__(self, login: str | None = None) -> None:
        self._login = login
        self._port = free_port()
        self._server: ThreadingHTTPServer | None = None
        self._answers: dict[str, dict[str, Any]] = {}
        self._schemas: dict[int, Any] = {}
        self.asked: list[str] = []
        """Paths that were asked for."""
        self.fails_with: int | None = None
        """A status that is given for an answer."""

    @property
    def url(self) -> str:
        """Its address."""
        return f"http://127.0.0.1:{self._port}"

    def add(
        self, number: int, schema: Any, *, subject: str = "", references: Sequence[str] = (), kind: str | None = None
    ) -> int:
        """A schema under a number, and as the first version of a subject, with the subjects that it refers to."""
        told = [{"name": each, "subject": each, "version": 1} for each in references]
        body = {"schema": json.dumps(schema)} | ({"references": told} if told else {})
        if kind is not None:
            body["schemaType"] = kind
        self._answers[f"/schemas/ids/{number}"] = body
        if subject:
            self._answers[f"/subjects/{subject}/versions/1"] = {**body, "id": number, "subject": subject, "version": 1}
        self._schemas[number] = schema
        return number

    def message(self, number: int, record: Mapping[str, Any]) -> bytes:
        """The body of a message. Logical types are left to the caller: values are those that Avro writes."""
        import fastavro

        parsed = fastavro.parse_schema(_plain(self._schemas[number]), {})
        output = io.BytesIO()
        fastavro.schemaless_writer(output, parsed, record)
        return b"\0" + number.to_bytes(4, "big") + output.getvalue()

    def start(self) -> Self:
        """Answers from now on."""
        server = ThreadingHTTPServer(("127.0.0.1", self._port), _handler(self))
        server.daemon_threads = True
        self._server = server
        threading.Thread(target=server.serve_forever, daemon=True).start()
        return self

    def stop(self) -> None:
        """Is away."""
        server, self._server = self._server, None
        if server is not None:
            server.shutdown()
            server.server_close()

    def answer(self, path: str, authorization: str | None) -> tuple[int, dict[str, Any]]:
        """Status and body for a path."""
        self.asked.append(path)
        if self.fails_with is not None:
            return self.fails_with, {"error_code": self.fails_with, "message": "it fails"}
        if self._login is not None and authorization != "Basic " + base64.b64encode(self._login.encode()).decode():
            return 401, {"error_code": 40101, "message": "who are you"}
        found = self._answers.get(path)
        return (404, {"error_code": 40403, "message": "Schema not found"}) if found is None else (200, found)

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()


def _handler(registry: SchemaRegistry) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            status, body = registry.answer(self.path, self.headers.get("Authorization"))
            data = json.dumps(body).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/vnd.schemaregistry.v1+json")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
            """Says nothing."""

    return Handler


def _plain(schema: Any) -> Any:
    """The schema without logical types."""
    if isinstance(schema, list):
        return [_plain(each) for each in schema]
    if isinstance(schema, dict):
        return {key: _plain(value) for key, value in schema.items() if key != "logicalType"}
    return schema


__all__ = ["SchemaRegistry"]
