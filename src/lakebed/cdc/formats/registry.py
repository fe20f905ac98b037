"""A registry of schemas, asked over HTTP for the schema behind the number that stands in front of each Avro message.

A schema never changes under its number, so each is asked for once in a process. A registry that is away is an outage
like others: the batch is tried again. A number that it does not know is the message's fault.
"""

from __future__ import annotations

import base64
import json
import os
import threading
import urllib.error
import urllib.parse
import urllib.request
from contextlib import suppress
from http import HTTPStatus
from http.client import HTTPException
from pathlib import Path
from typing import Any, Final

from lakebed.errors import AccessDenied, InvalidArgument, InvalidData, StorageError
from lakebed.formats.avro.named import Node, parsed_schema
from lakebed.records import dataclass

USER_INFO: Final = "basic.auth.user.info"
"""What Java's clients call user and password among their properties."""
_TIMEOUT_S: Final = 10.0
_MOST_BYTES: Final = 64 << 20
_MOST_REFERENCES: Final = 1000
_ACCEPT: Final = "application/vnd.schemaregistry.v1+json, application/json"

_known: dict[tuple[str, int], Node] = {}
_asking = threading.Lock()


@dataclass(frozen=True, slots=True)
class Registry:
    """Where a registry is (several addresses with commas between them are one), and where user and password stand."""

    url: str
    auth_env: str | None = None
    """An environment variable that holds `user:password`."""
    auth_file: str | None = None
    """A file that does, or that has them in JSON as `basic.auth.user.info`."""

    def __post_init__(self) -> None:
        for address in self.addresses:
            parts = urllib.parse.urlsplit(address)
            if parts.scheme not in ("http", "https") or not parts.netloc:
                raise InvalidArgument(
                    f"`{address.rpartition('@')[2]}` is no address of a schema registry",
                    hint="write it like http://registry:8081",
                )
            if "@" in parts.netloc:
                raise InvalidArgument(
                    "user and password are not taken from a registry's address, which is shown and logged",
                    hint="put user:password into an environment variable and name that in `registry_auth_env`",
                )
        if self.auth_env is not None and self.auth_file is not None:
            raise InvalidArgument(
                "user and password of the registry are given twice",
                hint="give either registry_auth_env or registry_auth_file",
            )

    @property
    def addresses(self) -> list[str]:
        """Each by itself."""
        return [each.strip().rstrip("/") for each in self.url.split(",") if each.strip()]

    def schema(self, number: int) -> Node:
        """The schema of a number."""
        key = (self.url, number)
        with _asking:
            found = _known.get(key)
            if found is None:
                found = _known[key] = self._asked(number)
            return found

    def _asked(self, number: int) -> Node:
        body = self._get(f"/schemas/ids/{number}", f"schema {number}")
        kind = body.get("schemaType") or "AVRO"
        if kind != "AVRO":
            raise InvalidData(f"schema {number} of the registry is of type {kind}", hint="only Avro is read")
        texts: dict[tuple[str, int], str] = {}
        self._collect(body.get("references") or [], texts)
        return parsed_schema(str(body["schema"]), list(texts.values()))

    def _collect(self, references: list[Any], texts: dict[tuple[str, int], str]) -> None:
        """Schemas that others refer to, each behind those that it refers to itself."""
        for each in references:
            key = str(each["subject"]), int(each["version"])
            if key in texts:
                continue
            if len(texts) > _MOST_REFERENCES:
                raise InvalidData("a schema refers to very many others", hint="look at it in the registry")
            path = f"/subjects/{urllib.parse.quote(key[0], safe='')}/versions/{key[1]}"
            body = self._get(path, f"version {key[1]} of subject `{key[0]}`")
            self._collect(body.get("references") or [], texts)
            texts[key] = str(body["schema"])

    def _get(self, path: str, what: str) -> dict[str, Any]:
        """What the first address that answers says."""
        away: Exception | None = None
        for address in self.addresses:
            try:
                return self._answer(address, path, what)
            except StorageError as error:
                away = error
        assert away is not None
        raise away

    def _answer(self, address: str, path: str, what: str) -> dict[str, Any]:
        request = urllib.request.Request(address + path, headers={"Accept": _ACCEPT})
        for name, value in self._login().items():
            request.add_unredirected_header(name, value)  # nobody else is told the password
        try:
            with urllib.request.urlopen(request, timeout=_TIMEOUT_S) as answer:
                body = json.loads(answer.read(_MOST_BYTES))
        except urllib.error.HTTPError as error:
            error.close()
            raise _refused(address, what, error.code) from None
        except (OSError, HTTPException, ValueError) as error:
            why = getattr(error, "reason", None) or error
            raise StorageError(
                f"the schema registry at {address} does not answer: {why}",
                hint="check the address, and that the registry runs; nothing is lost, and it goes on when it answers",
            ) from error
        if not isinstance(body, dict) or "schema" not in body:
            raise StorageError(
                f"what answers at {address} is no schema registry", hint="give the address of its REST interface"
            )
        return body

    def _login(self) -> dict[str, str]:
        if self.auth_env is not None:
            told = os.environ.get(self.auth_env)
            if told is None:
                raise AccessDenied(
                    f"environment variable `{self.auth_env}`, which should hold user:password of the schema registry, "
                    "is not set",
                    hint="set it where the sync runs, workers included",
                )
        elif self.auth_file is not None:
            try:
                told = Path(self.auth_file).read_text()
            except OSError as error:
                raise AccessDenied(
                    f"file {self.auth_file}, which should hold user:password of the schema registry, can not be read",
                    hint="put it where the sync runs, workers included",
                ) from error
        else:
            return {}
        return {"Authorization": "Basic " + base64.b64encode(_user_info(told).encode()).decode()}


def _user_info(told: str) -> str:
    """User and password of a text, or of JSON that has them among properties."""
    if told.lstrip().startswith("{"):
        with suppress(ValueError):
            return str(json.loads(told).get(USER_INFO, ""))
    return told.strip()


def _refused(address: str, what: str, status: int) -> Exception:
    if status == HTTPStatus.NOT_FOUND:
        return InvalidData(
            f"the schema registry at {address} does not know {what}",
            hint="the message was written with another registry, or is none of its format",
        )
    if status in (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN):
        return AccessDenied(
            f"the schema registry at {address} refuses to tell {what} ({status})",
            hint="check user and password: `registry_auth_env` or `registry_auth_file`",
        )
    return StorageError(
        f"the schema registry at {address} answers {status} when asked for {what}",
        hint="look at its log; nothing is lost, and it goes on when it answers",
    )


__all__ = ["USER_INFO", "Registry"]
