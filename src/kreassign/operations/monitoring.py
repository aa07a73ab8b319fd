"""Monitor a run by machine: its metrics on a port, messages to a webhook, and files for Prometheus and Grafana."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from enum import StrEnum
from importlib.resources import files
from pathlib import Path

from kreassign.clock import SYSTEM_CLOCK, Clock
from kreassign.executor.history.run_history import history, read_progress
from kreassign.executor.progress import ProgressMeter
from kreassign.executor.state import RunView
from kreassign.model.run import Phase, RunHistory
from kreassign.monitoring.metrics import AutopilotStatus, exposition, serving_metrics
from kreassign.monitoring.webhooks import LAST_S, NEWS_OF_PHASE, Message, News, Webhook, message, sending
from kreassign.operations.run import Observer, RunContext
from kreassign.operations.run_journals import is_active

EVERY_MS = 1_000
"""Maximum age of metrics; recomputing them costs time in proportion to the moves in flight and in the plan."""

HELD_AGAIN_MS = 60_000
"""Minimum interval between messages about a guard that wavers."""


@dataclass(frozen=True, slots=True)
class Monitoring:
    """Requested monitoring: a port for metrics (0 for any free one, None for none), a webhook."""

    metrics_port: int | None = None
    webhook: Webhook | None = None


@contextmanager
def monitored(
    context: RunContext,
    wanted: Monitoring,
    announce: Callable[[str], None],
    clock: Clock = SYSTEM_CLOCK,
    last_s: float = LAST_S,
    autopilots: Callable[[], Sequence[AutopilotStatus]] | None = None,
) -> Iterator[RunContext]:
    """Yield a context whose runs are monitored during the block.

    `announce` gets the address of the metrics, which are those of `autopilots` too. At the end it waits, for at most
    `last_s` seconds, for messages that are not sent yet, and warns about those that failed. Raises InputError if the
    port is not available.
    """
    with ExitStack() as stack:
        observers: list[Observer] = []
        if wanted.metrics_port is not None:
            latest = LatestMetrics()
            announce(stack.enter_context(serving_metrics(wanted.metrics_port, latest.runs, autopilots)))
            observers.append(latest.observe)
        if wanted.webhook is not None:
            send = stack.enter_context(sending(wanted.webhook, clock, context.warn, last_s))
            observers.append(Newsroom(send).observe)
        yield replace(context, observers=(*context.observers, *observers))


class LatestMetrics:
    """Latest metrics of the run. One thread writes, others read: values are replaced, never changed."""

    def __init__(self) -> None:
        self._latest: RunHistory | None = None

    def observe(self, run: RunView, meter: ProgressMeter) -> None:
        """Update the metrics of a run, if due."""
        known = self._latest
        if known is None or run.phase is not known.state or abs(meter.at_ms - known.measured.at_ms) >= EVERY_MS:
            self._latest = history(run, meter)

    def runs(self) -> tuple[RunHistory, ...]:
        """Metrics of the run; empty before it begins."""
        latest = self._latest
        return () if latest is None else (latest,)


class Newsroom:
    """Detects news about a run, and sends them."""

    def __init__(self, send: Callable[[Message], None]) -> None:
        self._send = send
        self._phase: Phase | None = None
        self._was_held = False
        self._held_ms: int | None = None

    def observe(self, run: RunView, meter: ProgressMeter) -> None:
        """Send what is new."""
        for news in self._news(run, meter.at_ms):
            self._send(message(news, history(run, meter)))

    def _news(self, run: RunView, at_ms: int) -> Iterator[News]:
        held = run.why_held is not None
        if held and not self._was_held and (self._held_ms is None or at_ms - self._held_ms >= HELD_AGAIN_MS):
            self._held_ms = at_ms
            yield News.HELD
        if run.phase is not self._phase and run.phase in NEWS_OF_PHASE:
            yield NEWS_OF_PHASE[run.phase]
        self._phase, self._was_held = run.phase, held


def metrics_of_journals(journals: list[Path]) -> bytes:
    """Metrics page of these runs, in Prometheus' text format. Raises JournalDamaged."""
    return exposition([_metrics_of(path) for path in journals])


def _metrics_of(path: Path) -> RunHistory:
    is_executed = is_active(path)
    run, meter = read_progress(path)
    return history(run if is_executed else run.as_left, meter)


# Files for those who monitor runs: alert rules for Prometheus, a dashboard for Grafana.


class MonitoringFile(StrEnum):
    """Files to print, with their names."""

    ALERTS = "alerts.yaml"
    DASHBOARD = "dashboard.json"


def monitoring_file(which: MonitoringFile) -> str:
    """Text of a file that comes with kreassign."""
    return (files("kreassign.monitoring") / "files" / which).read_text(encoding="utf-8")
