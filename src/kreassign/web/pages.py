"""HTML pages: templates filled with the results of operations."""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from hashlib import sha256
from inspect import iscoroutinefunction
from typing import Any
from urllib.parse import parse_qs, quote, urlencode

from jinja2 import PackageLoader
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.routing import Route

from kreassign import __version__
from kreassign.autopilot.events import Name, State, parse_name
from kreassign.autopilot.facts import MISSED_MS
from kreassign.autopilot.gates import WEEK_MS, spent_bytes
from kreassign.autopilot.memory import memory_of
from kreassign.autopilot.policy import Kind
from kreassign.autopilot.story import curve, story
from kreassign.errors import InputError
from kreassign.executor.guards import DEFAULTS, Reaction
from kreassign.executor.scheduling.windows import pace_text
from kreassign.model.cluster import listed_ids
from kreassign.model.pace import Order
from kreassign.model.run import BrokerProgress, MoveHistory, RunHistory
from kreassign.model.text import DAY_MS, format_load, shortened
from kreassign.operations.run_journals import RunSummary, run_summary
from kreassign.operations.skew import BrokerSkew, TopicSpread
from kreassign.report import text as texts
from kreassign.report.page import page_environment
from kreassign.web import records
from kreassign.web.api import CALLS, DOCUMENT_PATH, PREFIX, text
from kreassign.web.guard import Access, body_of, check_origin, cookie_name
from kreassign.web.operations import Served, Streams
from kreassign.web.settings import LONGEST_S, HttpError, Sessions, WebSettings, not_found
from kreassign.web.tasks import CHOICES

# A run as texts of the page: the same ones in the template and later in the stream. Pure.

GOOD, BAD, BUSY, IDLE = "good", "bad", "busy", "idle"
_TONES = {"done": GOOD, "failed": BAD, "cancelled": BAD, "unreadable": BAD, "paused": IDLE}

BROKER_COLUMNS = (
    "Broker", "Reassigning", "Sent", "Received", "Between its directories", "Throttle", "In-sync lag",
    "Out of sync", "Left",
)  # fmt: skip
MOVE_COLUMNS = ("Partition", "From", "To", "State", "Copied", "Rate", "Ends in")


CHART_WIDTH, CHART_HEIGHT = 600, 120
SMOOTHED_MS = 11_000
"""Time over which a rate is taken: copies pass a throttle in bursts, as far apart as its window is long."""


@dataclass(frozen=True, slots=True)
class Chart:
    """A curve as a path of SVG, and what the top and the right of its axes mean; all empty without two moments."""

    path: str = ""
    top: str = ""
    end: str = ""


@dataclass(frozen=True, slots=True)
class ShownRun:
    """A run as texts and table cells.

    `fields` are texts by their name on the page, `fraction` is the copied part, None if unknown. `lists` are sentences,
    `tables` rows of cells, `charts` paths and labels. `tone` is the colour of the state, `stage` what can be done:
    active, left without a process, or ended.
    """

    tone: str
    stage: str
    fraction: float | None
    fields: Mapping[str, str]
    lists: Mapping[str, tuple[str, ...]]
    tables: Mapping[str, tuple[tuple[str, ...], ...]]
    charts: Mapping[str, Chart]


def shown(run: RunHistory) -> ShownRun:
    """Convert a run to texts."""
    summary, progress, is_over = run_summary(run), run.measured, run.ended_ms is not None
    return ShownRun(
        tone=tone(summary.state, is_active=summary.is_active),
        stage="active" if summary.is_active else "left" if summary.can_be_resumed else "ended",
        fraction=_fraction(run),
        fields={
            "state": state_text(summary),
            "moves": f"{texts.format_count(summary.complete_count)} of {texts.format_count(summary.move_count)}",
            "copied": texts.format_bytes(summary.copied_bytes),
            "left": "-" if is_over else texts.format_bytes(progress.left_bytes),
            "rate": "-" if is_over else texts.format_rate(progress.rate_bytes_per_s),
            "eta": eta_text(run),
            "throttle": texts.rates_text(run.rates) or "none",
            "pace": pace_text(run.pace),
            "at": texts.format_time(progress.at_ms),
            "ended": f"ended {texts.format_time(run.ended_ms)}" if is_over else "",
        },
        lists={
            "held": () if run.why_held is None else (run.why_held,),
            "verdicts": run.verdicts,
            "problems": run.problems,
            "outlook": run.outlook,
            "residue": run.throttle_residue,
        },
        tables={
            "brokers": tuple(map(_broker_cells, progress.brokers)),
            "moves": tuple(map(_move_cells, run.by_interest[: records.SHOWN_MOVES])),
        },
        charts=_charts(run),
    )


def _charts(run: RunHistory) -> dict[str, Chart]:
    """Bytes copied since the first look, and the rate at which they were, over time."""
    curve = [(at_ms, done) for at_ms, done in run.measured.curve]
    if len(curve) < 2:
        return {"copied": Chart(), "rate": Chart()}
    whole = run.bytes_copied + (run.measured.left_bytes or 0)
    rates = list(_rates(curve))
    fastest = max(rate for _, rate in rates)
    return {
        "copied": _chart(curve, whole, f"{texts.format_bytes(whole)} in all"),
        "rate": _chart(rates, fastest, f"{texts.format_rate(fastest)} at most"),
    }


def _rates(curve: Sequence[tuple[int, int]]) -> Iterator[tuple[int, float]]:
    """Bytes per second up to each moment, over `SMOOTHED_MS` or since the moment before, whichever is longer."""
    yield curve[0][0], 0.0
    first = 0
    for index, (at_ms, done) in enumerate(curve[1:], 1):
        while first + 1 < index and curve[first + 1][0] <= at_ms - SMOOTHED_MS:
            first += 1
        since_ms, before = curve[first]
        yield at_ms, max(0, done - before) * 1000 / max(1, at_ms - since_ms)


def _chart(points: Sequence[tuple[int, float]], most: float, top: str) -> Chart:
    """Draw an area under these points, times in ms, from 0 to `most`."""
    begin_ms, end_ms = points[0][0], points[-1][0]
    across, up = CHART_WIDTH / max(1, end_ms - begin_ms), CHART_HEIGHT / (most or 1)
    line = " ".join(f"{(at_ms - begin_ms) * across:.1f},{CHART_HEIGHT - value * up:.1f}" for at_ms, value in points)
    path = f"M0,{CHART_HEIGHT} L{line} L{CHART_WIDTH},{CHART_HEIGHT} Z"
    return Chart(path, top, texts.format_duration((end_ms - begin_ms) / 1000))


def tone(state: str, *, is_active: bool) -> str:
    """Colour of a state: by its result, as active, or as without a process."""
    return _TONES.get(state, BUSY if is_active else BAD)


_FINDING_TONES = {State.RUNNING: BUSY, State.SETTLING: GOOD, State.GIVEN_UP: BAD}


def finding_address(cluster_id: str, name: Name, *, is_dry: bool) -> str:
    """Address of the page of a finding."""
    fields = {"cluster": cluster_id, "kind": name.kind.value, "subject": name.subject}
    return f"/finding?{urlencode(fields | ({'dry-run': 'yes'} if is_dry else {}))}"


def name_of(kind: str, subject: str) -> Name:
    """The finding of an address. Raises InputError."""
    if kind not in set(Kind):
        raise InputError(f"there is no kind of finding {shortened(kind)!r}")
    return parse_name(Kind(kind), subject)


def finding_tone(state: State) -> str:
    """Colour of the state of a finding."""
    return _FINDING_TONES.get(state, IDLE)


def state_text(run: RunSummary) -> str:
    """State of the run in words."""
    return texts.run_state(
        run.state,
        is_active=run.is_active,
        is_held=run.is_held,
        has_ended=run.ended_ms is not None,
        in_flight=run.in_flight_count,
    )


def eta_text(run: RunHistory) -> str:
    """Time to the end of a run, or why it is unknown; `-` after its end."""
    if run.ended_ms is not None:
        return "-"
    if run.why_held is not None:
        return "held"  # why, and how it goes on, stands under its own title
    if (end := run.measured.end) is None:
        return run.measured.why_no_end or "calculating"
    between = f" ({texts.format_duration(end.earliest_s)} to {texts.format_duration(end.latest_s)})"
    return texts.format_duration(end.expected_s) + (between if end.latest_s else "")


def _fraction(run: RunHistory) -> float | None:
    if run.measured.left_bytes is None:
        return None
    total = run.bytes_copied + run.measured.left_bytes
    return round(run.bytes_copied / total, 4) if total else 1.0


def _broker_cells(one: BrokerProgress) -> tuple[str, ...]:
    return (
        str(one.broker),
        texts.format_count(one.reassigning),
        texts.format_rate(one.read_bytes_per_s),
        texts.format_rate(one.written_bytes_per_s),
        texts.format_rate(one.within_bytes_per_s),
        "none" if one.throttle_bytes_per_s is None else texts.format_rate(one.throttle_bytes_per_s),
        texts.format_bytes(one.lag_bytes),
        texts.format_count(one.out_of_sync),
        texts.format_bytes(one.left_bytes),
    )


def _move_cells(move: MoveHistory) -> tuple[str, ...]:
    now = move.estimate
    assert now is not None, f"{move.topic_partition} copies nothing"
    return (
        str(move.topic_partition),
        listed_ids(move.original),
        records.destination_text(move.target, records.moved_dirs(move.log_dirs)),
        move.problem or move.status,
        texts.format_bytes(now.done_bytes)
        + ("" if now.left_bytes is None else f" of {texts.format_bytes(now.done_bytes + now.left_bytes)}"),
        texts.format_rate(now.rate_bytes_per_s),
        texts.format_duration(now.eta_s),
    )


# A cluster as texts of its page. Pure.

_SIDES = {"within": "", "above": "▲ ", "below": "▼ "}


def broker_cells(broker: BrokerSkew) -> tuple[tuple[str, str, str], ...]:
    """Amount, multiple of the mean, and tone of each load of a broker."""
    return tuple(
        (
            format_load(load.amount, load.unit),
            "" if load.share is None else f"{_SIDES[load.band]}{load.share:.2f} ×",
            "soft" if load.band == "within" else BAD,
        )
        for load in broker.loads
    )


def fullest_text(topic: TopicSpread) -> tuple[str, str]:
    """The broker that holds most of a topic, with what it holds, and that as a multiple of an even share."""
    if topic.fullest_broker is None:
        return "-", ""
    share = "" if topic.share is None else f"{topic.share:.2f} ×"
    return f"{texts.format_bytes(topic.fullest_bytes)} on broker {topic.fullest_broker}", share


SHOWN_RUNS = 100
_INLINE_SCRIPT = re.compile(r"<script(?![^>]*\ssrc\s*=)[^>]*>(.*?)</script>", re.DOTALL | re.IGNORECASE)


class Pages:
    """The pages, with their data and access control."""

    def __init__(
        self, settings: WebSettings, served: Served, access: Access, sessions: Sessions, streams: Streams
    ) -> None:
        self._settings, self._served, self._access = settings, served, access
        self._sessions, self._streams = sessions, streams
        self._templates = page_environment().overlay(loader=PackageLoader("kreassign.web"))
        self._templates.globals |= {"state_text": state_text, "tone": tone, "finding_tone": finding_tone}

    def routes(self) -> list[Route]:
        """Routes of all pages."""
        return [
            Route("/", self._read(self._index)),
            Route("/cluster", self._read(self._cluster)),
            Route("/autopilot/{cluster_id:path}", self._read(partial(self._autopilot, is_dry=False))),
            Route("/autopilot-dry-run/{cluster_id:path}", self._read(partial(self._autopilot, is_dry=True))),
            Route("/finding", self._read(self._finding)),
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
        """Page that describes a problem."""
        return self._page("problem.html", problem.status, problem=problem)

    def _page(self, template: str, status: int = 200, **values: Any) -> HTMLResponse:
        content = self._templates.get_template(template).render(
            version=__version__, settings=self._settings, api_prefix=PREFIX, section="", **values
        )
        return HTMLResponse(content, status)

    def _read(self, answer: Callable[[Request], Any]) -> Callable[[Request], Any]:
        """Require permission to read; redirect other browsers to the login page. Pages are made in threads."""

        async def read(request: Request) -> Response:
            can_log_in = bool(self._settings.everybody) and "text/html" in request.headers.get("accept", "")
            if can_log_in and not self._access.may_read(request):
                return RedirectResponse("/login", 303)
            self._access.check_read(request)
            is_stream = iscoroutinefunction(answer)
            found: Response = await (answer(request) if is_stream else run_in_threadpool(answer, request))
            return found

        return read

    def _index(self, _: Request) -> Response:
        clusters = self._served.clusters()
        return self._page(
            "index.html", runs=self._served.runs(SHOWN_RUNS, None).runs, clusters=clusters.clusters,
            name_of=self._name_of(clusters), shown_runs=SHOWN_RUNS, pilots=self._served.autopilots(),
        )  # fmt: skip

    def _name_of(self, clusters: records.Clusters | None = None) -> Callable[[str], str]:
        """A cluster as people name it: by its name where it has one, else by its id."""
        named = (self._served.clusters() if clusters is None else clusters).clusters
        names = {one.cluster_id: one.name for one in named if one.name}
        return lambda cluster_id: names.get(cluster_id, cluster_id)

    def _cluster(self, _: Request) -> Response:
        state = self._served.cluster()
        loads = next((broker.loads for broker in state.brokers if broker.loads), ())  # those of a live broker
        return self._page(
            "cluster.html", cluster=state, recommendations=state.recommendations, goals=[load.goal for load in loads],
            broker_cells=broker_cells, fullest=fullest_text, choices=CHOICES, json=text, name_of=self._name_of(),
        )  # fmt: skip

    def _autopilot(self, request: Request, *, is_dry: bool) -> Response:
        cluster_id = request.path_params["cluster_id"]
        memory = memory_of(self._served.decisions(cluster_id, is_dry=is_dry))
        at_ms, off = self._served.clock.now_ms(), memory.off
        silent_ms = at_ms - (memory.looked_ms or 0)
        return self._page(
            "autopilot.html", memory=memory, runs=self._served.runs_of(memory), is_dry=is_dry,
            finding_address=partial(finding_address, cluster_id, is_dry=is_dry),
            name=self._name_of()(cluster_id),
            is_silent=silent_ms > MISSED_MS, silent_s=None if memory.looked_ms is None else silent_ms / 1000,
            off=off if off is not None and off.until_ms > at_ms else None,
            day_bytes=spent_bytes(memory, at_ms, DAY_MS), week_bytes=spent_bytes(memory, at_ms, WEEK_MS),
        )  # fmt: skip

    def _finding(self, request: Request) -> Response:
        asked = request.query_params
        with not_found():
            name = name_of(asked.get("kind", ""), asked.get("subject", ""))
        cluster_id, is_dry = asked.get("cluster", ""), asked.get("dry-run") == "yes"
        events = self._served.decisions(cluster_id, is_dry=is_dry)
        memory = memory_of(events)
        finding, evidence = memory.findings.get(name), curve(events, name)
        if finding is None:
            raise HttpError(404, "not found", f"the autopilot of cluster {cluster_id} never found {name}")
        plan = None if finding.proposal is None else self._served.proposed_plan(cluster_id, name, is_dry=is_dry)
        moves = () if plan is None else tuple(sorted(plan.plan.replicas.items()))
        prediction = None if plan is None or plan.facts is None else plan.facts.prediction
        before = {} if plan is None else plan.expected
        return self._page(
            "finding.html", name=name, is_dry=is_dry, finding=finding, runs=self._served.runs_of(memory),
            at_ms=self._served.clock.now_ms(), cluster_name=self._name_of()(cluster_id),
            back=f"/autopilot{'-dry-run' if is_dry else ''}/{quote(cluster_id)}",
            acts=tuple(one for one in memory.acts if name in one.names), story=story(events, name), evidence=evidence,
            drawn=_chart(evidence.points, 1.0, "") if len(evidence.points) > 1 else Chart(),
            size=(CHART_WIDTH, CHART_HEIGHT),
            moves=[
                (one, listed_ids(before.get(one, ())), listed_ids(after)) for one, after in moves[:records.SHOWN_MOVES]
            ],
            more=max(0, len(moves) - records.SHOWN_MOVES), least_s=None if prediction is None else prediction.least_s,
        )  # fmt: skip

    def _run(self, request: Request) -> Response:
        run = self._served.live(request.path_params["run_id"])
        return self._page(
            "run.html", run=run, shown=shown(run), broker_columns=BROKER_COLUMNS, move_columns=MOVE_COLUMNS,
            shown_moves=records.SHOWN_MOVES, orders=list(Order), size=(CHART_WIDTH, CHART_HEIGHT),
            name_of=self._name_of(),
        )  # fmt: skip

    async def _live(self, request: Request) -> Response:
        return await self._streams.answer(request.path_params["run_id"], self._served.follower, _fields)

    def _report(self, request: Request) -> Response:
        return _report(self._served.report(request.path_params["run_id"]))

    def _plan_report(self, request: Request) -> Response:
        return _report(self._served.plan_report(request.path_params["name"]))

    def _plans(self, _: Request) -> Response:
        return self._page("plans.html", plans=self._served.plans().plans)

    def _plan(self, request: Request) -> Response:
        plan = self._served.plan(request.path_params["name"])
        limits = None if plan.limits is None else [(texts.limit_amount(one), one.source) for one in plan.limits]
        unheeded = list(texts.unheeded_sentences(plan.unknown_goals, plan.uneven_topics))
        return self._page(
            "plan.html", plan=plan, limits=limits, unheeded=unheeded, orders=list(Order), guards=DEFAULTS,
            reactions=list(Reaction), name_of=self._name_of(),
        )  # fmt: skip

    def _api(self, _: Request) -> Response:
        return self._page("api.html", calls=CALLS, document_path=DOCUMENT_PATH)

    def _metrics(self, _: Request) -> Response:
        return Response(self._served.metrics(), media_type="text/plain; version=0.0.4")

    # --- sessions of browsers, if reading needs the token ---

    async def _login_form(self, _: Request) -> Response:
        return self._page("login.html", is_wrong=False)

    async def _login(self, request: Request) -> Response:
        check_origin(request, self._settings)
        (token, *_) = parse_qs((await body_of(request)).decode("utf-8", "replace")).get("token", [None])
        if self._settings.user_of(token) is None:
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


def _fields(live: RunHistory) -> str:
    """Encode the texts of a run's page."""
    return text(shown(live))


def _report(page: str) -> Response:
    return HTMLResponse(page, headers={"Content-Security-Policy": report_policy(page)})


def report_policy(page: str) -> str:
    """Content security policy of a report: a page with its own styles and scripts, without this page's rights.

    Only its own scripts run, by their hashes. Sandboxed, it has no origin: it can neither send requests here nor read
    what this page stores in the browser.
    """
    hashes = {b64encode(sha256(script.encode()).digest()).decode() for script in _INLINE_SCRIPT.findall(page)}
    scripts = " ".join(f"'sha256-{one}'" for one in sorted(hashes)) or "'none'"
    return (
        f"default-src 'none'; script-src {scripts}; style-src 'unsafe-inline'; img-src data:; font-src data:; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'; sandbox allow-scripts"
    )
