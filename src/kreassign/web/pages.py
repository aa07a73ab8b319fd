"""The pages for people: templates filled with what operations return."""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Callable
from hashlib import sha256
from typing import Any
from urllib.parse import parse_qs

from jinja2 import PackageLoader
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.routing import Route

from kreassign import __version__
from kreassign.executor.scheduling import Order
from kreassign.operations.live_runs import LiveRun
from kreassign.report.environment import page_environment
from kreassign.report.plan_limits import limit_amount, unheeded_sentences
from kreassign.web.api import CALLS, DOCUMENT_PATH, PREFIX
from kreassign.web.documents import text
from kreassign.web.guard import Access, body_of, check_origin, cookie_name
from kreassign.web.operations import Served
from kreassign.web.problems import HttpError
from kreassign.web.records import SHOWN_MOVES, run_of
from kreassign.web.sessions import LONGEST_S, Sessions
from kreassign.web.settings import WebSettings
from kreassign.web.shown import BROKER_COLUMNS, MOVE_COLUMNS, shown, state_text, tone
from kreassign.web.streams import Streams

SHOWN_RUNS = 100
_INLINE_SCRIPT = re.compile(r"<script(?![^>]*\ssrc\s*=)[^>]*>(.*?)</script>", re.DOTALL | re.IGNORECASE)


class Pages:
    """The pages, and what they need."""

    def __init__(
        self, settings: WebSettings, served: Served, access: Access, sessions: Sessions, streams: Streams
    ) -> None:
        self._settings, self._served, self._access = settings, served, access
        self._sessions, self._streams = sessions, streams
        self._templates = page_environment().overlay(loader=PackageLoader("kreassign.web"))
        self._templates.globals |= {"state_text": state_text, "tone": tone}

    def routes(self) -> list[Route]:
        """All of them."""
        return [
            Route("/", self._read(self._index)),
            Route("/runs/{run_id}", self._read(self._run)),
            Route("/runs/{run_id}/live", self._read(self._live)),
            Route("/runs/{run_id}/report", self._read(self._report)),
            Route("/plans", self._read(self._plans)),
            Route("/plans/{name}", self._read(self._plan)),
            Route("/plans/{name}/report", self._read(self._plan_report)),
            Route("/api", self._read(self._api)),
            Route("/metrics", self._read(self._metrics)),
            Route("/login", self._login_form, methods=["GET"]),
            Route("/login", self._login, methods=["POST"]),
            Route("/logout", self._logout, methods=["POST"]),
        ]

    def problem(self, problem: HttpError) -> HTMLResponse:
        """The page that says what went wrong."""
        return self._page("problem.html", problem.status, problem=problem)

    def _page(self, template: str, status: int = 200, **values: Any) -> HTMLResponse:
        content = self._templates.get_template(template).render(
            version=__version__, settings=self._settings, api_prefix=PREFIX, section="", **values
        )
        return HTMLResponse(content, status)

    def _read(self, answer: Callable[[Request], Any]) -> Callable[[Request], Any]:
        """What only those see who may read; browsers of others are led to where they can log in."""

        async def read(request: Request) -> Response:
            if not self._access.may_read(request):
                if "text/html" in request.headers.get("accept", ""):
                    return RedirectResponse("/login", 303)
                raise HttpError(401, "no token", "from here everything needs `Authorization: Bearer TOKEN`")
            found: Response = await answer(request)
            return found

        return read

    async def _index(self, _: Request) -> Response:
        runs = await run_in_threadpool(self._served.runs, SHOWN_RUNS, None)
        clusters = await run_in_threadpool(self._served.clusters)
        names = {one.cluster_id: one.name for one in clusters.clusters if one.name}
        return self._page(
            "index.html", runs=runs.runs, clusters=clusters.clusters, cluster_names=names, shown_runs=SHOWN_RUNS
        )

    async def _run(self, request: Request) -> Response:
        run = await run_in_threadpool(self._served.run, request.path_params["run_id"])
        return self._page(
            "run.html", run=run, shown=shown(run), broker_columns=BROKER_COLUMNS, move_columns=MOVE_COLUMNS,
            shown_moves=SHOWN_MOVES, orders=[order.value for order in Order],
        )  # fmt: skip

    async def _live(self, request: Request) -> Response:
        return await self._streams.answer(request.path_params["run_id"], self._served.follower, _fields)

    async def _report(self, request: Request) -> Response:
        return _report(await run_in_threadpool(self._served.report, request.path_params["run_id"]))

    async def _plan_report(self, request: Request) -> Response:
        return _report(await run_in_threadpool(self._served.plan_report, request.path_params["name"]))

    async def _plans(self, _: Request) -> Response:
        plans = await run_in_threadpool(self._served.plans)
        return self._page("plans.html", plans=plans.plans)

    async def _plan(self, request: Request) -> Response:
        plan = await run_in_threadpool(self._served.plan, request.path_params["name"])
        limits = None if plan.limits is None else [(limit_amount(one), one.source) for one in plan.limits]
        unheeded = list(unheeded_sentences(plan.unknown_goals, plan.uneven_topics))
        return self._page("plan.html", plan=plan, limits=limits, unheeded=unheeded)

    async def _api(self, _: Request) -> Response:
        return self._page("api.html", calls=CALLS, document_path=DOCUMENT_PATH)

    async def _metrics(self, _: Request) -> Response:
        content = await run_in_threadpool(self._served.metrics)
        return Response(content, media_type="text/plain; version=0.0.4")

    # --- sessions of browsers, where reading needs the token ---

    async def _login_form(self, _: Request) -> Response:
        return self._page("login.html", is_wrong=False)

    async def _login(self, request: Request) -> Response:
        check_origin(request, self._settings)
        given = _field(await body_of(request), "token")
        if self._settings.token is None or not self._settings.token.matches(given):
            return self._page("login.html", 401, is_wrong=True)
        answer = RedirectResponse("/", 303)
        answer.set_cookie(
            cookie_name(self._settings), self._sessions.begin(), max_age=LONGEST_S, httponly=True, samesite="strict",
            secure=self._settings.tls is not None, path="/",
        )  # fmt: skip
        return answer

    async def _logout(self, request: Request) -> Response:
        check_origin(request, self._settings)
        name = cookie_name(self._settings)
        self._sessions.close(request.cookies.get(name))
        answer = RedirectResponse("/login", 303)
        answer.delete_cookie(name, path="/", secure=self._settings.tls is not None, httponly=True, samesite="strict")
        return answer


def _fields(live: LiveRun) -> str:
    """What the page of a run shows of it."""
    return text(shown(run_of(live)))


def _report(page: str) -> Response:
    return HTMLResponse(page, headers={"Content-Security-Policy": report_policy(page)})


def _field(body: bytes, name: str) -> str | None:
    """A field of a form."""
    return next(iter(parse_qs(body.decode("utf-8", "replace")).get(name, [])), None)


def report_policy(page: str) -> str:
    """What a report may do: it is a page of its own, with styles and scripts inside, and without this page's rights.

    Just its own scripts run, by their hashes. Sandboxed, it has no origin: it can neither ask for anything here nor see
    what this page stores in the browser.
    """
    hashes = {b64encode(sha256(script.encode()).digest()).decode() for script in _INLINE_SCRIPT.findall(page)}
    scripts = " ".join(f"'sha256-{one}'" for one in sorted(hashes)) or "'none'"
    return (
        f"default-src 'none'; script-src {scripts}; style-src 'unsafe-inline'; img-src data:; font-src data:; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'; sandbox allow-scripts"
    )
