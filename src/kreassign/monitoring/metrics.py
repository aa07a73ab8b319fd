"""Metrics of runs and autopilots, and the port that serves them. Two tables define them, their page and its reference.

Every metric of a run is a gauge, even copied bytes: cancelling a copy discards its bytes. Each has the label
`cluster_id`, and those of runs `run_id`. Unknown values have no sample, so that no figure is invented: `absent()`
detects them. Names begin with `kreassign_` and end with their unit in the plural, as Prometheus recommends.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from socketserver import TCPServer, ThreadingMixIn
from typing import Any, Generic, NamedTuple, TypeVar
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer, make_server

from prometheus_client import generate_latest
from prometheus_client.metrics_core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from kreassign.errors import InputError, machine_reason
from kreassign.executor.guards import GuardName
from kreassign.model.listeners import FORWARDED, LOCAL_NAMES, is_forwarded, name_of_host
from kreassign.model.run import BrokerProgress, ClientCost, Phase, Progress, RunHistory
from kreassign.model.text import printable

PREFIX = "kreassign_"
RUN_LABELS = ("cluster_id", "run_id")
CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"

Sample = tuple[tuple[str, ...], float | None]
"""Values of a metric's own labels, and its value; None if unknown."""


Source = TypeVar("Source")


@dataclass(frozen=True, slots=True)
class Gauge(Generic[Source]):
    """One metric: its name without the prefix, its meaning, its own labels, and how to read it from its source.

    One whose name ends with `_total` is a counter.
    """

    name: str
    meaning: str
    labels: tuple[str, ...]
    samples: Callable[[Source], Iterable[Sample]]

    @property
    def full_name(self) -> str:
        """Name on the page, with the prefix."""
        return PREFIX + self.name

    def family(self, sources: Iterable[Source], common: tuple[str, ...]) -> Metric:
        """Samples of this metric for all sources; `common` are the fields of a source that label all its metrics."""
        kind = CounterMetricFamily if self.name.endswith("_total") else GaugeMetricFamily
        found = kind(self.full_name, self.meaning, labels=[*common, *self.labels])
        for one in sources:
            of_source = [getattr(one, label) for label in common]
            for labels, value in self.samples(one):
                if value is not None:
                    found.add_metric([printable(text) for text in (*of_source, *labels)], value)
        return found


def _one(read: Callable[[RunHistory], float | None]) -> Callable[[RunHistory], Iterable[Sample]]:
    return lambda run: (((), read(run)),)


def _measured(read: Callable[[Progress], float | None]) -> Callable[[RunHistory], Iterable[Sample]]:
    return _one(lambda run: read(run.measured))


def _clients(read: Callable[[ClientCost], float]) -> Callable[[RunHistory], Iterable[Sample]]:
    return _one(lambda run: None if run.clients is None else read(run.clients))


def _by_broker(read: Callable[[BrokerProgress], float | None]) -> Callable[[RunHistory], Iterable[Sample]]:
    return lambda run: (((str(one.broker),), read(one)) for one in run.measured.brokers)


_BROKER = ("broker",)

METRICS: tuple[Gauge[RunHistory], ...] = (
    Gauge("run_info", "1, with the plan that the run executes.", ("plan_id",),
          lambda run: (((run.plan_id,), 1.0),)),
    Gauge("run_phase", "1 for the phase that the run is in, 0 for all others.", ("phase",),
          lambda run: (((phase.value,), float(run.state is phase)) for phase in Phase)),
    Gauge("run_start_time_seconds", "When the run began, in seconds since the epoch.", (),
          _one(lambda run: run.started_ms / 1000)),
    Gauge("run_end_time_seconds", "When the run ended; no sample before that.", (),
          _one(lambda run: None if run.ended_ms is None else run.ended_ms / 1000)),
    Gauge("run_last_event_time_seconds", "When the run last learnt anything; it polls its cluster all the time.",
          (), _measured(lambda now: now.at_ms / 1000)),
    Gauge("run_moves", "Moves of the plan by state.", ("state",),
          lambda run: (((status.value,), float(count)) for status, count in run.moves_by_state.items())),
    Gauge("run_copied_bytes", "Bytes that reached new replicas, all moves together.", (),
          _measured(lambda now: now.done_bytes)),
    Gauge("run_left_bytes", "Bytes still to copy; no sample while some size is unknown.", (),
          _measured(lambda now: now.left_bytes)),
    Gauge("run_rate_bytes_per_second", "What all copies together get done, over the last 15 s.", (),
          _measured(lambda now: now.rate_bytes_per_s)),
    Gauge("run_eta_earliest_seconds", "Seconds until the earliest end that is expected; no sample without one.",
          (), _measured(lambda now: None if now.end is None else now.end.earliest_s)),
    Gauge("run_eta_expected_seconds", "Seconds until the end that is expected.", (),
          _measured(lambda now: None if now.end is None else now.end.expected_s)),
    Gauge("run_eta_latest_seconds", "Seconds until the latest end that is expected.", (),
          _measured(lambda now: None if now.end is None else now.end.latest_s)),
    Gauge("run_guard_breached", "1 for each guard that is breached now, 0 for the others.", ("guard",),
          lambda run: (((guard.value,), float(guard.value in run.guards)) for guard in GuardName)),
    Gauge("run_rate_percent", "Percent of its rate that a run has; no sample without a guard on clients.", (),
          _clients(lambda cost: cost.percent)),
    Gauge("run_held_for_clients_seconds", "How long the run was held because clients suffered, or did not answer.",
          (),
          _clients(lambda cost: cost.held_ms / 1000)),
    Gauge("run_slowed_for_clients_seconds", "How long copies had less than the rate of the run.", (),
          _clients(lambda cost: cost.slowed_ms / 1000)),
    Gauge("run_held", "1 while an operator or a guard lets no move start.", (),
          _one(lambda run: float(run.why_held is not None))),
    Gauge("run_cluster_reachable", "0 while the cluster does not answer the run.", (),
          _one(lambda run: float(run.silence is None))),
    Gauge("run_problems", "What operators are to know, in sentences of `kreassign status`.", (),
          _one(lambda run: len(run.problems))),
    Gauge("run_open_settings", "Settings of its throttle that the run has changed and not restored.", (),
          _one(lambda run: run.open_settings)),
    Gauge("broker_reassigning_partitions", "Partitions in flight of which the broker sends or gets a copy.",
          _BROKER, _by_broker(lambda one: one.reassigning)),
    Gauge("broker_reassignment_read_bytes_per_second",
          "What is read from the broker for moves, over the last minute.", _BROKER,
          _by_broker(lambda one: one.read_bytes_per_s)),
    Gauge("broker_reassignment_write_bytes_per_second",
          "What moves write to the broker, over the last minute.", _BROKER,
          _by_broker(lambda one: one.written_bytes_per_s)),
    Gauge("broker_log_dir_copy_bytes_per_second",
          "What the broker copies between its log directories, over the last minute.", _BROKER,
          _by_broker(lambda one: one.within_bytes_per_s)),
    Gauge("broker_left_bytes", "Bytes still to arrive at the broker, also of moves that wait.", _BROKER,
          _by_broker(lambda one: one.left_bytes)),
    Gauge("broker_out_of_sync_replicas", "New replicas in flight that have not caught up with their leader.",
          _BROKER, _by_broker(lambda one: one.out_of_sync)),
    Gauge("broker_in_sync_lag_bytes", "What these replicas lack until they are in sync.", _BROKER,
          _by_broker(lambda one: one.lag_bytes)),
    Gauge("broker_throttle_bytes_per_second",
          "What the broker may send, and get, for moves; no sample without a limit.", _BROKER,
          _by_broker(lambda one: one.throttle_bytes_per_s)),
)  # fmt: skip
"""All metrics, in the order of the page."""


# Autopilots: what they found and did, and what keeps them from more.


class RepairAccount(NamedTuple):
    """Promised and achieved bytes and time of a repair; None as long as it runs. Its seconds count pauses, too."""

    kind: str
    run_id: str
    promised_bytes: int
    copied_bytes: int | None
    promised_s: float | None
    spent_s: float | None


@dataclass(frozen=True, slots=True)
class AutopilotStatus:
    """An autopilot after a look: kind and state of open findings, repairs of the last 31 days, and totals.

    `told` has the findings that were told since its journal began, by kind, `ended` the repairs that ended, by kind and
    outcome, and `copied_bytes` what they copied. `blocked` has the gates that keep proposed repairs from running, once
    for each repair.
    """

    cluster_id: str
    looked_ms: int
    findings: tuple[tuple[str, str], ...] = ()
    repairs: tuple[RepairAccount, ...] = ()
    told: Mapping[str, int] = field(default_factory=dict)
    ended: Mapping[tuple[str, str], int] = field(default_factory=dict)
    copied_bytes: int = 0
    day_bytes: int = 0
    week_bytes: int = 0
    blocked: tuple[str, ...] = ()
    is_stopped: bool = False


AUTOPILOT_LABELS = ("cluster_id",)


def _counts(labels: Iterable[tuple[str, ...]]) -> Iterable[Sample]:
    return ((one, float(count)) for one, count in sorted(Counter(labels).items()))


_REPAIR = ("kind", "repair")


def _repairs(read: Callable[[RepairAccount], float | None]) -> Callable[[AutopilotStatus], Iterable[Sample]]:
    return lambda status: (((one.kind, one.run_id), read(one)) for one in status.repairs)


AUTOPILOT_METRICS: tuple[Gauge[AutopilotStatus], ...] = (
    Gauge("autopilot_last_look_time_seconds", "When it last looked at the cluster: its heartbeat.", (),
          lambda one: (((), one.looked_ms / 1000),)),
    Gauge("autopilot_findings", "Open findings.", ("kind", "state"), lambda one: _counts(one.findings)),
    Gauge("autopilot_findings_told_total", "Findings that were told since the journal of decisions began.", ("kind",),
          lambda one: (((kind,), float(count)) for kind, count in one.told.items())),
    Gauge("autopilot_acts_total", "Repairs that ended since then.", ("kind", "outcome"),
          lambda one: ((labels, float(count)) for labels, count in one.ended.items())),
    Gauge("autopilot_copied_bytes_total", "Bytes that repairs copied since then.", (),
          lambda one: (((), float(one.copied_bytes)),)),
    Gauge("autopilot_repair_promised_bytes", "Bytes that a repair of the last 31 days was to copy.", _REPAIR,
          _repairs(lambda one: one.promised_bytes)),
    Gauge("autopilot_repair_copied_bytes", "Bytes that it copied, once it has ended.", _REPAIR,
          _repairs(lambda one: one.copied_bytes)),
    Gauge("autopilot_repair_promised_seconds", "Time that it was to take, without pauses.", _REPAIR,
          _repairs(lambda one: one.promised_s)),
    Gauge("autopilot_repair_spent_seconds", "Time that it took, with pauses, once it has ended.", _REPAIR,
          _repairs(lambda one: one.spent_s)),
    Gauge("autopilot_day_copied_bytes", "Bytes of repairs in 24 hours, as the budget counts them.", (),
          lambda one: (((), one.day_bytes),)),
    Gauge("autopilot_week_copied_bytes", "Bytes of repairs in seven days, as the budget counts them.", (),
          lambda one: (((), one.week_bytes),)),
    Gauge("autopilot_blocked", "Proposed repairs that a gate keeps from running.", ("reason",),
          lambda one: _counts((gate,) for gate in one.blocked)),
    Gauge("autopilot_stopped", "1 while the brake or `kreassign autopilot off` stops all repairs.", (),
          lambda one: (((), float(one.is_stopped)),)),
)  # fmt: skip
"""Metrics of autopilots, in the order of the page."""


class PageCollector(Collector):
    """Collects the metrics of runs, and those of autopilots where there are any (None: this is no page of theirs)."""

    def __init__(self, runs: Sequence[RunHistory], autopilots: Sequence[AutopilotStatus] | None) -> None:
        self._runs, self._autopilots = runs, autopilots

    def collect(self) -> Iterator[Metric]:
        """Return all families, even those without samples, so that scrapers know them from the start."""
        yield from (metric.family(self._runs, RUN_LABELS) for metric in METRICS)
        if self._autopilots is not None:
            yield from (metric.family(self._autopilots, AUTOPILOT_LABELS) for metric in AUTOPILOT_METRICS)


def exposition(runs: Sequence[RunHistory], autopilots: Sequence[AutopilotStatus] | None = None) -> bytes:
    """Render the page of metrics, in Prometheus' text format."""
    return bytes(generate_latest(PageCollector(runs, autopilots)))


# Serve `/metrics` of a run on a local port, in a thread of its own: the run never waits for a client.
#
# It listens on 127.0.0.1 only, and has no token: what a proxy forwards is refused. A browser led here by a foreign name
# (DNS rebinding) sends that name in the header Host, and is refused too.

LOOPBACK = "127.0.0.1"
PATH = "/metrics"
_SLOWEST_S = 10.0
"""Seconds after which a slow client is disconnected."""

Start = Callable[[str, list[tuple[str, str]]], Any]


class _Server(ThreadingMixIn, WSGIServer):
    daemon_threads = True

    def server_bind(self) -> None:
        """Bind without looking up this machine's name, which may take long."""
        TCPServer.server_bind(self)
        self.server_name, self.server_port = LOOPBACK, self.server_address[1]
        self.setup_environ()

    def handle_error(self, *_: Any) -> None:
        """Ignore clients that disconnect in the middle of an answer."""


class _Handler(WSGIRequestHandler):
    timeout = _SLOWEST_S

    def log_message(self, *args: Any) -> None:
        """Log nothing: the terminal belongs to the run."""


@contextmanager
def serving_metrics(
    port: int,
    runs: Callable[[], Sequence[RunHistory]],
    autopilots: Callable[[], Sequence[AutopilotStatus]] | None = None,
) -> Iterator[str]:
    """Serve the metrics of these runs and autopilots during the block; yield the address, with a free port for port 0.

    `runs` and `autopilots` are called in other threads. Raises InputError if the port cannot be used.
    """

    def page() -> bytes:
        return exposition(runs(), None if autopilots is None else autopilots())

    try:
        server = make_server(LOOPBACK, port, _application(page), _Server, _Handler)
    except OSError as error:
        raise InputError(
            f"metrics cannot be served on {LOOPBACK}:{port}: {machine_reason(error)}. Specify another --metrics-port, "
            "or 0 for any that is free"
        ) from error
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    try:
        yield f"http://{LOOPBACK}:{server.server_port}{PATH}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def _application(page: Callable[[], bytes]) -> Callable[[dict[str, Any], Start], Iterable[bytes]]:
    def answer(environ: dict[str, Any], start: Start) -> Iterable[bytes]:
        status, body = _answered(environ, page)
        kind = CONTENT_TYPE if status.startswith("200") else "text/plain; charset=utf-8"
        headers = [("Content-Type", kind), ("Content-Length", str(len(body))), ("X-Content-Type-Options", "nosniff")]
        start(status, headers)
        return [body]

    return answer


def _answered(environ: dict[str, Any], page: Callable[[], bytes]) -> tuple[str, bytes]:
    host = str(environ.get("HTTP_HOST", ""))
    headers = (name.removeprefix("HTTP_").replace("_", "-") for name in environ if name.startswith("HTTP_"))
    if is_forwarded(headers, (), str(environ["SERVER_PROTOCOL"])):
        said = f"{FORWARDED}, and this port has no token; `kreassign web` serves metrics with one\n"
        return "403 Forbidden", said.encode()
    if name_of_host(host) not in LOCAL_NAMES:
        return "421 Misdirected Request", f"ask for http://{LOOPBACK}{PATH} by that name\n".encode()
    if environ["REQUEST_METHOD"] not in {"GET", "HEAD"}:
        return "405 Method Not Allowed", b"metrics can be read only\n"
    if environ["PATH_INFO"] != PATH:
        return "404 Not Found", f"metrics are at {PATH}\n".encode()
    return "200 OK", page()
