"""Serve the page with uvicorn, in this thread, until a signal stops it."""

from __future__ import annotations

import logging
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import uvicorn
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

from kreassign.certificates import listener_context
from kreassign.clock import SYSTEM_CLOCK
from kreassign.errors import InputError, KreassignError, machine_reason
from kreassign.model.run import RunHistory
from kreassign.web import api
from kreassign.web.api import text
from kreassign.web.guard import Access, App, guarded
from kreassign.web.operations import MOST_STREAMS, Served, Streams
from kreassign.web.pages import Pages
from kreassign.web.records import Problem, run_document
from kreassign.web.settings import HttpError, Sessions, WebSettings, problem_of

# The application: API, pages, and answers to errors.


def make_app(settings: WebSettings, streams: Streams) -> App:
    """Create the ASGI application for these settings. Import it only with kreassign[web]."""
    served, sessions = Served(settings), Sessions(SYSTEM_CLOCK)
    access = Access(settings, sessions)
    pages = Pages(settings, served, access, sessions, streams)

    async def stream(request: Request) -> Response:
        access.check_read(request)
        return await streams.answer(request.path_params["run_id"], served.follower, _document)

    async def answer_problem(request: Request, error: Exception) -> Response:
        return _answer(request, error, pages)

    @asynccontextmanager
    async def life(_: Starlette) -> AsyncIterator[None]:
        yield
        await run_in_threadpool(served.runs_here.close)

    app = Starlette(
        lifespan=life,
        routes=[
            *api.routes(served, access),
            Route(api.STREAM_PATH, stream, methods=["GET"]),
            *pages.routes(),
            Mount("/static", StaticFiles(packages=_STATIC)),
        ],
        exception_handlers=dict.fromkeys(
            (HttpError, KreassignError, OSError, HTTPException, Exception), answer_problem
        ),
    )
    return guarded(app, settings)


_STATIC: list[str | tuple[str, str]] = [("kreassign.web", "static"), ("kreassign.report", "templates/shared")]


def _document(live: RunHistory) -> str:
    return text(run_document(live))


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


LAST_S = 2
"""Seconds for open answers after a stop signal: streams would never end."""

MOST_CONNECTIONS = MOST_STREAMS + 100
"""Leaves room for requests of pages beside the streams."""

SILENCE_S = 30


def serve(settings: WebSettings, announce: Callable[[str], None]) -> None:
    """Serve until Ctrl-C or SIGTERM. `announce` gets the address. Raises InputError if the address cannot be used."""
    made = server(settings)
    with listening(settings) as listener:
        announce(settings.address(listener.getsockname()[1]))
        made.run([listener])


def listening(settings: WebSettings) -> socket.socket:
    """Open a socket at the address of the settings. Raises InputError."""
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    try:
        return socket.create_server((settings.host, settings.port), family=family)
    except OSError as error:
        raise InputError(
            f"the page cannot be served on {settings.host}:{settings.port}: {machine_reason(error)}. Specify another "
            "--listen, or port 0 for any that is free"
        ) from error


def server(settings: WebSettings, streams: Streams | None = None) -> uvicorn.Server:
    """Create the server. It ignores headers that claim the client's address. Raises InputError."""
    tls, streams = settings.tls, streams or Streams()
    if tls is not None:
        listener_context(tls.certificate, tls.key)  # names the file that is wrong, which uvicorn does not
    logging.getLogger("uvicorn.error").setLevel(logging.WARNING)
    config = uvicorn.Config(
        make_app(settings, streams), log_config=None, access_log=False, lifespan="on", ws="none",
        http="h11",
        loop="asyncio", server_header=False, proxy_headers=False, limit_concurrency=MOST_CONNECTIONS,
        timeout_keep_alive=SILENCE_S, timeout_graceful_shutdown=LAST_S, h11_max_incomplete_event_size=16_384,
        ssl_certfile=None if tls is None else tls.certificate, ssl_keyfile=None if tls is None else tls.key,
    )  # fmt: skip
    config.load()
    made = uvicorn.Server(config)
    streams.is_ending = lambda: made.should_exit
    return made
