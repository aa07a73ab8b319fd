"""The application: the API, the pages, and what is answered when something goes wrong."""

from __future__ import annotations

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

from kreassign.clock import Clock, SystemClock
from kreassign.errors import KreassignError
from kreassign.operations.live_runs import LiveRun
from kreassign.web import api
from kreassign.web.documents import text
from kreassign.web.guard import Access, App, guarded
from kreassign.web.operations import Served
from kreassign.web.pages import Pages
from kreassign.web.problems import HttpError, problem_of
from kreassign.web.records import Problem, run_of
from kreassign.web.sessions import Sessions
from kreassign.web.settings import WebSettings
from kreassign.web.streams import Streams

SYSTEM_CLOCK = SystemClock()


def make_app(settings: WebSettings, clock: Clock = SYSTEM_CLOCK, streams: Streams | None = None) -> App:
    """An ASGI application that serves what the settings say, and to whom. Import it only with kreassign[web]."""
    served, sessions = Served(settings, clock), Sessions(clock)
    streams = streams or Streams()
    access = Access(settings, sessions)
    pages = Pages(settings, served, access, sessions, streams)

    async def stream(request: Request) -> Response:
        if not access.may_read(request):
            raise HttpError(401, "no token", "from here everything needs the header `Authorization: Bearer TOKEN`")
        return await streams.answer(request.path_params["run_id"], served.follower, _document)

    async def answer_problem(request: Request, error: Exception) -> Response:
        return _answer(request, error, pages)

    app = Starlette(
        routes=[
            *api.routes(served, access),
            Route(api.STREAM_PATH, stream, methods=["GET"]),
            *pages.routes(),
            Mount("/static", StaticFiles(packages=[("kreassign.web", "static")])),
        ],
        exception_handlers=dict.fromkeys(
            (HttpError, KreassignError, OSError, HTTPException, Exception), answer_problem
        ),
    )
    return guarded(app, settings)


def _document(live: LiveRun) -> str:
    return text(run_of(live))


def _answer(request: Request, error: Exception, pages: Pages) -> Response:
    problem = _problem(error)
    headers = {"WWW-Authenticate": "Bearer"} if problem.status == 401 else {}
    if isinstance(error, HTTPException) and error.headers:
        headers |= error.headers
    if request.url.path.startswith("/api/"):
        document = text(Problem(problem.title, problem.status, problem.detail))
        return Response(document, problem.status, headers, "application/problem+json")
    answer = pages.problem(problem)
    answer.headers.update(headers)
    return answer


def _problem(error: Exception) -> HttpError:
    match error:
        case HttpError():
            return error
        case KreassignError() | OSError():
            return problem_of(error)
        case HTTPException():
            return HttpError(error.status_code, str(error.detail).lower(), "there is nothing like that here")
        case _:
            return HttpError(500, "a bug of kreassign", "something went wrong that should not; the log says what")
