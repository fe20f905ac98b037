"""Who may ask: only a browser that was given the token, only under the name that the server listens on.

Any page that a browser has open can send requests to this machine, and a name of the network can be made to point to
it. So a request counts only with our cookie, which other sites can not send, under our own name and from our pages.
"""

from __future__ import annotations

import secrets
from collections.abc import Awaitable, Callable
from hmac import compare_digest

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import Request
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

_COOKIE = "lakebed"
_HEADERS = {
    "content-security-policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "cache-control": "no-store",
}
"""Of every answer: no script that is not a file of ours runs, and nothing is kept."""


class Tokens:
    """The token for the first request, good for one browser, and the session that it is exchanged for."""

    def __init__(self) -> None:
        self.token: str | None = secrets.token_urlsafe(24)
        self._sessions: set[str] = set()

    def redeem(self, given: str) -> str | None:
        """A session for the token; None if it is another, or was used."""
        if self.token is None or not compare_digest(given.encode(), self.token.encode()):
            return None
        self.token = None
        session = secrets.token_urlsafe(24)
        self._sessions.add(session)
        return session

    def knows(self, session: str | None) -> bool:
        """Whether a session was begun with the token."""
        return session is not None and any(compare_digest(session.encode(), each.encode()) for each in self._sessions)


class Guard:
    """Stands before all that is served."""

    def __init__(self, app: ASGIApp, tokens: Tokens, hosts: Callable[[], frozenset[str]]) -> None:
        self._app = app
        self._tokens = tokens
        self._hosts = hosts

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answers what may not be asked, hands on the rest."""
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        if scope["type"] != "http":
            return  # nothing here speaks anything else
        refused = self._refused(Request(scope))
        answer: ASGIApp = self._app if refused is None else refused
        await answer(scope, receive, _with_headers(send))

    def _refused(self, request: Request) -> Response | None:
        hosts = self._hosts()
        headers = Headers(scope=request.scope)
        if headers.get("host") not in hosts:
            return PlainTextResponse("this server answers under its own name only\n", 421)
        origin = headers.get("origin")
        if origin is not None and origin not in {f"http://{host}" for host in hosts}:
            return PlainTextResponse("requests of other pages are refused\n", 403)
        if headers.get("sec-fetch-site", "none") not in ("none", "same-origin"):
            return PlainTextResponse("requests of other pages are refused\n", 403)
        if request.url.path == "/" and "token" in request.query_params:
            return self._redeemed(request.query_params["token"], headers)
        if not self._tokens.knows(request.cookies.get(_cookie_name(headers))):
            return PlainTextResponse("open the address that `lakebed ui` printed, with its token\n", 401)
        return None

    def _redeemed(self, token: str, headers: Headers) -> Response:
        session = self._tokens.redeem(token)
        if session is None:
            said = "this token was used, or is another's: start `lakebed ui` again for a new one\n"
            return PlainTextResponse(said, 401)
        # The token leaves the address, so that neither history nor a copied link holds it.
        answer = RedirectResponse("/", 303)
        answer.set_cookie(_cookie_name(headers), session, httponly=True, samesite="strict", path="/")
        return answer


def _cookie_name(headers: Headers) -> str:
    """Browsers share cookies between the ports of a machine: each server has a name of its own."""
    return f"{_COOKIE}-{headers.get('host', '').rpartition(':')[2]}"


def _with_headers(send: Send) -> Callable[[Message], Awaitable[None]]:
    async def sent(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            for name, value in _HEADERS.items():
                headers[name] = value
        await send(message)

    return sent


__all__ = ["Guard", "Tokens"]
