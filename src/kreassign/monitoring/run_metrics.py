"""State of a run at one moment, as the values of its metrics. Immutable, since other threads read it. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from kreassign.executor.eta import Interval
from kreassign.executor.guards import GuardName, Reaction
from kreassign.executor.progress import BrokerProgress, ProgressMeter
from kreassign.executor.state import RunView
from kreassign.model.run import AT_REST, MoveStatus, Phase


@dataclass(frozen=True, slots=True)
class RunMetrics:
    """State of a run, for its metrics. Times are ms since the epoch.

    `moves` has every status, even without moves. `left_bytes` is None if the size of any copy is unknown. `throttles`
    are bytes per second by broker, without unlimited brokers. A run `is_held` while an operator or a guard prevents
    starts; `why_held` gives the reason. `verdicts` are those of guards, `problems` other sentences for operators.
    `open_settings` counts settings that the run has changed and not yet restored.
    """

    run_id: str
    cluster_id: str
    plan_id: str
    phase: Phase
    at_ms: int
    started_ms: int
    ended_ms: int | None
    moves: Mapping[MoveStatus, int]
    copied_bytes: int
    left_bytes: int | None
    rate_bytes_per_s: float | None
    end: Interval | None
    why_no_end: str | None
    guards: frozenset[GuardName]
    is_held: bool
    why_held: str | None
    is_cluster_reachable: bool
    brokers: tuple[BrokerProgress, ...]
    throttles: Mapping[int, int]
    open_settings: int
    verdicts: tuple[str, ...]
    problems: tuple[str, ...]


def run_metrics(run: RunView, meter: ProgressMeter) -> RunMetrics:
    """Take the metrics of a run now; the meter has followed it."""
    progress = meter.progress()
    statuses = Counter(record.status for record in run.records.values())
    brokers = meter.brokers()
    rates = ((one.broker, run.rates.of(one.broker)) for one in brokers)
    return RunMetrics(
        run_id=run.run_id,
        cluster_id=run.cluster_id,
        plan_id=run.plan_id,
        phase=progress.phase,
        at_ms=progress.at_ms,
        started_ms=progress.started_ms,
        ended_ms=run.ended_ms,
        moves={status: statuses[status] for status in MoveStatus},
        copied_bytes=progress.overall.done_bytes,
        left_bytes=progress.overall.left_bytes,
        rate_bytes_per_s=progress.overall.rate_bytes_per_s,
        end=progress.end,
        why_no_end=progress.why_no_end,
        guards=frozenset(verdict.guard for verdict in run.verdicts),
        is_held=is_held(run),
        why_held=_why_held(run),
        is_cluster_reachable=run.unreachable_since_ms is None,
        brokers=brokers,
        throttles={broker: rate for broker, rate in rates if rate is not None},
        open_settings=len(run.pending_restores),
        verdicts=tuple(map(str, run.verdicts)),
        problems=(*run.problems, *run.findings),
    )


def is_held(run: RunView) -> bool:
    """True if an operator or a guard prevents starts in a run that is not at rest."""
    holds = run.is_held or any(verdict.reaction is Reaction.HOLD for verdict in run.verdicts)
    return holds and run.phase not in AT_REST


def _why_held(run: RunView) -> str | None:
    if not is_held(run):
        return None
    guards = dict.fromkeys(verdict.guard.value for verdict in run.verdicts if verdict.reaction is Reaction.HOLD)
    paused = [f"an operator paused it; `kreassign resume {run.run_id}` goes on"] if run.is_held else []
    return "; ".join((*paused, *([f"these guards hold it: {', '.join(guards)}"] if guards else [])))
