"""The HTTP API: one table of calls, from which routes and the OpenAPI document are generated."""

from __future__ import annotations

import json
import types
from collections.abc import Callable, Mapping
from dataclasses import dataclass, is_dataclass
from enum import Enum
from functools import partial
from typing import Any, TypeVar, Union, get_args, get_origin

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from kreassign import __version__
from kreassign.errors import InputError
from kreassign.model.documents import Json, read_json
from kreassign.model.run import RunHistory
from kreassign.model.text import parse_whole
from kreassign.model.typed_json import JSON_TYPES, Reader, hints_of, names_in, needed_in, to_document
from kreassign.web import previews, records
from kreassign.web.guard import Access, body_of
from kreassign.web.operations import MOST_MOVES, MOST_RUNS, Served
from kreassign.web.settings import HttpError, Role, User
from kreassign.web.tasks import TaskRequest

# Records as JSON texts, JSON as records, and the JSON Schema of both: all from the types of their fields. Pure.

Record = TypeVar("Record")


def text(value: object) -> str:
    """Encode a record, or a document, as one line of JSON without characters that HTML could interpret as markup."""
    found = json.dumps(to_document(value) if is_dataclass(value) else value, separators=(",", ":"))
    return found.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def parsed(kind: type[Record], content: bytes) -> Record:
    """Parse a JSON document as a record. Raises InputError, which names missing or unknown fields."""
    try:
        found = read_json(content.decode("utf-8"))
    except ValueError as error:
        raise InputError(f"the request is no JSON: {error}") from None
    if not isinstance(found, dict):
        raise InputError("the request is no JSON object")
    try:
        record: Record = Reader().record(found, kind)
    except (TypeError, ValueError) as error:
        raise InputError(f"the request does not fit its schema: {error}") from None
    return record


def schema(kind: Any, known: dict[str, Json], *, is_request: bool = False) -> Json:
    """JSON Schema of a type; schemas of records are added to `known` and referenced.

    Answers have every field; requests may leave out those with a default, so that a record of both has two schemas.
    """
    origin, inner = get_origin(kind), get_args(kind)
    of = partial(schema, known=known, is_request=is_request)
    if origin in {Union, types.UnionType}:
        return {"anyOf": [*map(of, inner)]}
    if origin is tuple:
        each = [of(one) for one in inner if one is not Ellipsis]
        return {"type": "array"} | ({"prefixItems": each} if Ellipsis not in inner else {"items": each[0]})
    if origin in {dict, Mapping}:
        return {"type": "object", "additionalProperties": of(inner[1])}
    if kind in JSON_TYPES:
        return {"type": JSON_TYPES[kind]}
    if issubclass(kind, Enum):
        return {"type": "string", "enum": [one.value for one in kind]}
    name = kind.__name__ if is_request else kind.__name__.removesuffix("Request")
    if name not in known:
        known[name] = {}  # a placeholder, for records that refer to it meanwhile
        needed = [one for one, is_needed in needed_in(kind).items() if is_needed]
        known[name] = {
            "type": "object",
            "description": " ".join((kind.__doc__ or "").split()),
            "properties": {one: of(_type_in(kind, one)) for one in names_in(kind)},
            "required": needed if is_request else [*names_in(kind)],
            "additionalProperties": False,
        }
    return {"$ref": f"#/components/schemas/{name}"}


def _type_in(kind: Any, name: str) -> Any:
    """Type of a field, or of a property."""
    return hints_of(kind).get(name) or hints_of(getattr(kind, name).fget)["return"]


PREFIX = "/api/v1"
DOCUMENT_PATH = f"{PREFIX}/openapi.json"
STREAM_PATH = PREFIX + "/runs/{run_id}/stream"
Query = Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Asked:
    """A call as it was made: values of the path and of the query, the request of a POST, and the user of its token."""

    path: Mapping[str, str]
    query: Query
    user: User | None
    content: Any = None


@dataclass(frozen=True, slots=True)
class Call:
    """One call: `ask` gets the served data and what was asked. A POST needs the role `changed_by`."""

    path: str
    summary: str
    answer: type[Any]
    ask: Callable[[Served, Asked], object]
    request: type[Any] | None = None
    query: Mapping[str, str] | None = None
    changed_by: Role = Role.OPERATOR

    @property
    def role(self) -> Role:
        """The role that the call needs."""
        return Role.VIEWER if self.request is None else self.changed_by

    @property
    def method(self) -> str:
        """GET for reading, POST for changes."""
        return "GET" if self.request is None else "POST"

    @property
    def name(self) -> str:
        """Operation id for clients: `pause_run`."""
        parts = [part for part in self.path.split("/") if part]
        return "_".join(part.strip("{}") for part in (self.method.lower(), *parts))


LIMIT = "at most so many; by default 100"

CALLS = (
    Call("/me", "Name and roles of the token's user.", records.Me, lambda _, asked: records.me_of(asked.user)),
    Call("/clusters", "Clusters on which there were runs.", records.Clusters, lambda served, _: served.clusters()),
    Call(
        "/cluster", "The cluster of the page: what to do, and how brokers and topics are loaded.",
        records.ClusterState, lambda served, _: served.cluster(),
    ),
    Call(
        "/runs", "Runs, the newest first.", records.Runs,
        lambda served, asked: served.runs(_number(asked.query, "limit", 100, MOST_RUNS), asked.query.get("cluster_id")),
        query={"limit": LIMIT, "cluster_id": "those of this cluster only"},
    ),
    Call(
        "/runs/{run_id}", "A run as in `kreassign status`, its first moves and partitions of problems.", RunHistory,
        lambda served, asked: served.run(asked.path["run_id"]),
    ),
    Call(
        "/runs/{run_id}/moves", "Moves of a run, in the order of the plan.", records.Moves,
        lambda served, asked: served.moves(
            asked.path["run_id"],
            _number(asked.query, "offset", 0, None),
            _number(asked.query, "limit", 100, MOST_MOVES),
        ),
        query={"offset": "from this one on; by default 0", "limit": LIMIT},
    ),
    Call(
        "/runs/{run_id}/pause", "Pause a run: start no new moves; those in flight continue.", records.Accepted,
        lambda served, asked: served.pause(asked.path["run_id"], asked.user), records.Nothing,
    ),
    Call(
        "/runs/{run_id}/resume", "Let a paused run start moves again; execute one that no process executes.",
        records.Accepted, lambda served, asked: served.resume(asked.path["run_id"], asked.user), records.Nothing,
    ),
    Call(
        "/runs/{run_id}/cancel", "Cancel a run, and restore its throttle.", records.Accepted,
        lambda served, asked: served.cancel(asked.path["run_id"], asked.content, asked.user), records.CancelRequest,
    ),
    Call(
        "/runs/{run_id}/preview-rollback", "Show what a rollback of an ended run would do.", previews.Preview,
        lambda served, asked: served.preview_rollback(asked.path["run_id"]), records.Nothing,
    ),
    Call(
        "/runs/{run_id}/rollback", "Undo a run by another one, as its preview has shown.", records.Begun,
        lambda served, asked: served.roll_back(asked.path["run_id"], asked.content, asked.user), records.StartRequest,
    ),
    Call(
        "/runs/{run_id}/throttle", "Change the throttle of a run.", records.Accepted,
        lambda served, asked: served.throttle(asked.path["run_id"], asked.content), records.ThrottleRequest,
    ),
    Call(
        "/runs/{run_id}/pace", "Change the order and the limits of a run.", records.Accepted,
        lambda served, asked: served.pace(asked.path["run_id"], asked.content), records.PaceRequest,
    ),
    Call("/plans", "Plans of the directory that is served.", records.Plans, lambda served, _: served.plans()),
    Call(
        "/plans", "Plan a task for the cluster as it is, and keep the plan in the directory.", records.Planned,
        lambda served, asked: served.make_plan(asked.content), TaskRequest,
    ),
    Call("/plans/{name}", "A plan in detail.", records.Plan, lambda served, asked: served.plan(asked.path["name"])),
    Call(
        "/plans/{name}/preview", "Check a plan against the cluster, and show what its run would do.", previews.Preview,
        lambda served, asked: served.preview(asked.path["name"], asked.content), previews.PreviewRequest,
    ),
    Call(
        "/plans/{name}/start", "Execute an approved plan, as its preview has shown.", records.Begun,
        lambda served, asked: served.start(asked.path["name"], asked.content, asked.user), records.StartRequest,
    ),
    Call(
        "/plans/{name}/approve", "Approve a plan as it was looked at.", records.Approved,
        lambda served, asked: served.approve(asked.path["name"], asked.content, asked.user), records.ApproveRequest,
        changed_by=Role.APPROVER,
    ),
    Call(
        "/plans/{name}/revoke", "Take the approval of a plan back.", records.Approved,
        lambda served, asked: served.revoke(asked.path["name"]), records.Nothing,
        changed_by=Role.APPROVER,
    ),
)  # fmt: skip
"""All calls that answer with one document."""


def routes(served: Served, access: Access) -> list[Route]:
    """Routes of the API, except the stream."""
    described = text(openapi())

    async def document(request: Request) -> Response:
        access.check_read(request)
        return Response(described, media_type="application/json")

    made = [Route(PREFIX + call.path, _endpoint(call, served, access), methods=[call.method]) for call in CALLS]
    return [*made, Route(DOCUMENT_PATH, document, methods=["GET"])]


def _endpoint(call: Call, served: Served, access: Access) -> Callable[[Request], Any]:
    async def read(request: Request) -> Response:
        access.check_read(request)
        asked = Asked(request.path_params, _query(request, call), access.user(request))
        found = await run_in_threadpool(call.ask, served, asked)
        return Response(text(found), media_type="application/json")

    async def change(request: Request) -> Response:
        assert call.request is not None
        user = access.check_control(request, call.role)
        if request.headers.get("content-type", "").partition(";")[0].strip().lower() != "application/json":
            raise HttpError(415, "no JSON", "a request is a document of type application/json")
        try:
            content = parsed(call.request, await body_of(request) or b"{}")
        except InputError as error:
            raise HttpError(422, "not a request", str(error)) from error
        found = await run_in_threadpool(call.ask, served, Asked(request.path_params, {}, user, content))
        return Response(text(found), media_type="application/json")

    return read if call.request is None else change


def _query(request: Request, call: Call) -> Query:
    known = call.query or {}
    for name, _ in request.query_params.multi_items():
        if name not in known:
            raise HttpError(422, "not a request", f"{call.path} takes no parameter {name!r}")
    return dict(request.query_params)


def _number(query: Query, name: str, default: int, most: int | None) -> int:
    try:
        return default if name not in query else parse_whole(query[name], most=most or 2**31 - 1)
    except ValueError:
        most_text = f" up to {most}" if most else ""
        raise HttpError(422, "not a request", f"{name} is no whole number{most_text}") from None


def openapi() -> Json:
    """Generate the OpenAPI document of the API."""
    known: dict[str, Json] = {}
    problem = {
        "description": "What is wrong.",
        "content": {"application/problem+json": {"schema": schema(records.Problem, known)}},
    }
    paths: dict[str, Json] = {}
    for call in CALLS:
        paths.setdefault(PREFIX + call.path, {})[call.method.lower()] = _operation(call, known, problem)
    paths[STREAM_PATH] = {
        "get": {
            "operationId": "stream_run",
            "summary": "A run in detail, again whenever something changed, as server-sent events.",
            "description": "Events of type `run` have the document of the run as data; `end` is the last one, when no "
            "process executes the run any more.",
            "parameters": _parameters(STREAM_PATH, {}),
            "responses": {
                "200": {"description": "A stream.", "content": {"text/event-stream": {}}},
                "default": problem,
            },
        }
    }
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "kreassign",
            "version": __version__,
            "description": "Runs and plans of kreassign. What changes something needs a token of a user with the "
            "role that the call names, and --allow-control.",
        },
        "paths": paths,
        "components": {
            "schemas": dict(sorted(known.items())),
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
    }


def _operation(call: Call, known: dict[str, Json], problem: Json) -> Json:
    answer = {"description": "Done.", "content": {"application/json": {"schema": schema(call.answer, known)}}}
    found: dict[str, Json] = {
        "operationId": call.name,
        "summary": call.summary,
        "parameters": _parameters(call.path, call.query or {}),
        "responses": {"200": answer, "default": problem},
    }
    if call.request is not None:
        content = {"application/json": {"schema": schema(call.request, known, is_request=True)}}
        found |= {"requestBody": {"required": True, "content": content}, "security": [{"token": []}]}
        found["description"] = f"Needs the role {call.role.value}."
    return found


def _parameters(path: str, query: Mapping[str, str]) -> Json:
    in_path = [part.strip("{}") for part in path.split("/") if part.startswith("{")]
    return [
        *({"name": name, "in": "path", "required": True, "schema": {"type": "string"}} for name in in_path),
        *(
            {"name": name, "in": "query", "description": meaning, "schema": {"type": "string"}}
            for name, meaning in query.items()
        ),
    ]
