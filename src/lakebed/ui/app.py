"""The JSON interface and the pages, as an application that any ASGI server runs.

| Request | Answer |
|---|---|
| `GET /api/lake?search=&offset=&limit=` | databases, names of tables |
| `GET /api/summaries?names=a.b,c.d` | a line about each table |
| `GET /api/health` | what is not as it should be, of all tables |
| `GET /api/flows` | what feeds what: syncs, streams, tables, materialized tables, consumers |
| `POST /api/query` `{"sql": …}` | rows of a SELECT |
| `GET /api/tables/NAME` | columns, keys, options, tags, branches |
| `GET /api/tables/NAME/snapshots?before=&limit=` | snapshots, the newest first |
| `GET /api/tables/NAME/timeline?limit=` | the timeline with its picture |
| `GET /api/tables/NAME/lsm?snapshot=&offset=&buckets=&partition=` | files by bucket and level with their picture |
| `GET /api/tables/NAME/rows?where=&snapshot=&limit=` | first rows |
| `GET /api/tables/NAME/changes?since=&limit=` | what changed after a snapshot |
| `GET /api/tables/NAME/diff?before=&after=&limit=` | what differs between two snapshots |
| `GET /api/tables/NAME/why?key.COLUMN=VALUE&snapshot=` | why the row of a key is as it is |
| `GET /api/tables/NAME/health` | what is not as it should be |
| `POST /api/tables/NAME/compact`, `expire`, `tag` | only with `--allow-changes` |
"""

from __future__ import annotations

from collections.abc import Callable
from importlib.resources import files
from typing import Any

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from lakebed.errors import InvalidArgument, LakebedError, NotFound
from lakebed.lake import Lake
from lakebed.ui import facts
from lakebed.ui.guard import Guard, Tokens

_KINDS = {".html": "text/html", ".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}
_LARGEST_REQUEST = 1 << 20


def make_app(
    lake: Lake, tokens: Tokens, hosts: Callable[[], frozenset[str]], *, allow_changes: bool = False
) -> Starlette:
    """The application for a lake; `hosts` are the names under which it may be asked."""
    api = _Api(lake, allow_changes)
    table = "/api/tables/{name}"
    routes = [
        Route("/api/about", api.about),
        Route("/api/lake", api.lake),
        Route("/api/summaries", api.summaries),
        Route("/api/flows", api.flows),
        Route("/api/health", api.health),
        Route("/api/query", api.query, methods=["POST"]),
        Route(table, api.table),
        Route(f"{table}/snapshots", api.snapshots),
        Route(f"{table}/timeline", api.timeline),
        Route(f"{table}/lsm", api.lsm),
        Route(f"{table}/rows", api.rows),
        Route(f"{table}/changes", api.changes),
        Route(f"{table}/diff", api.difference),
        Route(f"{table}/why", api.why),
        Route(f"{table}/health", api.health),
        Route(f"{table}/{{change}}", api.change, methods=["POST"]),
        Route("/", page),
        Route("/static/{file}", static),
    ]
    return Starlette(routes=routes, middleware=[Middleware(Guard, tokens=tokens, hosts=hosts)])


class _Api:
    def __init__(self, lake: Lake, allow_changes: bool) -> None:
        self._lake = lake
        self._allow_changes = allow_changes

    async def about(self, request: Request) -> Response:
        return await _answered(lambda: {"location": self._lake.location, "allow_changes": self._allow_changes})

    async def lake(self, request: Request) -> Response:
        given = request.query_params
        return await _answered(
            lambda: facts.lake_facts(
                self._lake, given.get("search", ""), _number(request, "offset", 0), _number(request, "limit", 100)
            )
        )

    async def summaries(self, request: Request) -> Response:
        names = [name for name in request.query_params.get("names", "").split(",") if name][:200]
        return await _answered(lambda: [facts.table_summary(self._lake, name) for name in names])

    async def flows(self, request: Request) -> Response:
        return await _answered(lambda: facts.flows_of(self._lake))

    async def health(self, request: Request) -> Response:
        name = request.path_params.get("name")
        return await _answered(lambda: facts.health_of(self._lake, name))

    async def why(self, request: Request) -> Response:
        key = {
            column.removeprefix("key."): value
            for column, value in request.query_params.items()
            if column.startswith("key.")
        }
        return await _answered(lambda: facts.why_of(self._lake, _name(request), key, _number(request, "snapshot")))

    async def query(self, request: Request) -> Response:
        body = await _body(request)
        return await _answered(lambda: facts.answer_of(self._lake, str(body.get("sql", ""))))

    async def table(self, request: Request) -> Response:
        return await _answered(lambda: facts.table_facts(self._lake, _name(request)))

    async def snapshots(self, request: Request) -> Response:
        return await _answered(
            lambda: facts.snapshots_of(
                self._lake, _name(request), _number(request, "before"), _number(request, "limit", 50)
            )
        )

    async def timeline(self, request: Request) -> Response:
        def made() -> dict[str, Any]:
            found = facts.timeline_of(self._lake, _name(request), _number(request, "limit", 200))
            return found.to_dict() | {"svg": found.to_svg()}

        return await _answered(made)

    async def lsm(self, request: Request) -> Response:
        def made() -> dict[str, Any]:
            table = self._lake.table(_name(request))
            snapshot = _number(request, "snapshot")
            if snapshot is not None:
                table = table.at(snapshot=snapshot)
            found = table.lsm(
                buckets=max(1, min(_number(request, "buckets", 24), 100)),
                offset=_number(request, "offset", 0),
                partition=request.query_params.get("partition"),
            )
            return found.to_dict() | {"svg": found.to_svg()}

        return await _answered(made)

    async def rows(self, request: Request) -> Response:
        where = request.query_params.get("where", "")
        return await _answered(
            lambda: facts.rows_of(
                self._lake, _name(request), where, _number(request, "snapshot"), _number(request, "limit", 100)
            )
        )

    async def changes(self, request: Request) -> Response:
        return await _answered(
            lambda: facts.changes_of(
                self._lake, _name(request), _number(request, "since"), _number(request, "limit", 200)
            )
        )

    async def difference(self, request: Request) -> Response:
        return await _answered(
            lambda: facts.difference_of(
                self._lake,
                _name(request),
                _number(request, "before", 0),
                _number(request, "after", 0),
                _number(request, "limit", 200),
            )
        )

    async def change(self, request: Request) -> Response:
        body = await _body(request)
        return await _answered(lambda: self._changed(_name(request), request.path_params["change"], body))

    def _changed(self, name: str, change: str, body: dict[str, Any]) -> dict[str, Any]:
        if not self._allow_changes:
            raise _Refused("this server only shows the lake", hint="start it with `lakebed ui --allow-changes`")
        table = self._lake.table(name)
        if change == "compact":
            done = table.compact(full=bool(body.get("full", False)))
            return {"done": "compacted" if done is not None else "nothing was due"}
        if change == "expire":
            return {"done": str(table.expire_snapshots())}
        if change == "tag":
            table.create_tag(str(body["name"]), snapshot=body.get("snapshot"))
            return {"done": f"tagged {body['name']}"}
        raise NotFound(f"there is no change `{change}`", hint="compact, expire or tag")


class _Refused(LakebedError):
    """What this server does not do for anybody."""


async def page(request: Request) -> Response:
    """The one page; what it shows is chosen by the part of its address behind the #."""
    return _file("index.html")


async def static(request: Request) -> Response:
    """A file of the pages."""
    return _file(request.path_params["file"])


def _file(name: str) -> Response:
    # Names of our own only: nothing is ever opened by a path that somebody sent.
    found = {each.name: each for each in files("lakebed.ui").joinpath("static").iterdir()}.get(name)
    kind = _KINDS.get("." + name.rpartition(".")[2])
    if found is None or kind is None:
        return JSONResponse({"error": f"there is no file `{name}`"}, 404)
    return Response(found.read_bytes(), media_type=kind)


async def _answered(make: Callable[[], Any]) -> Response:
    """What a question gives, asked in a thread; an error of ours with its words and what to do."""
    try:
        return JSONResponse(await run_in_threadpool(make))
    except LakebedError as error:
        status = 404 if isinstance(error, NotFound) else 403 if isinstance(error, _Refused) else 400
        return JSONResponse({"error": error.message, "hint": error.hint}, status)


async def _body(request: Request) -> dict[str, Any]:
    if request.headers.get("content-type", "").partition(";")[0] != "application/json":
        return {}
    if int(request.headers.get("content-length", "0")) > _LARGEST_REQUEST:
        return {}
    try:
        body = await request.json()
    except ValueError:
        return {}
    return body if isinstance(body, dict) else {}


def _name(request: Request) -> str:
    return str(request.path_params["name"])


def _number(request: Request, name: str, default: Any = None) -> Any:
    given = request.query_params.get(name, "")
    if not given:
        return default
    if not given.isdecimal() or len(given) > 18:
        raise InvalidArgument(f"`{name}` is a whole number, not `{given}`", hint=f"write {name}=5, or leave it out")
    return int(given)


__all__ = ["make_app"]
