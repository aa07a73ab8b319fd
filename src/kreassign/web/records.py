"""What the HTTP API answers with: one class per document, from which its JSON and its schema follow. Pure.

Times are ms since the epoch, sizes bytes, rates bytes per second. What is not known is null.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from kreassign.executor.progress.meter import MoveProgress
from kreassign.operations.approvals import Approval
from kreassign.operations.live_runs import LiveRun, interesting
from kreassign.operations.plan_files import PlanFile
from kreassign.operations.plan_list import PlanSummary
from kreassign.operations.run_list import RunSummary, summary_of

SHOWN_MOVES = 100
SHOWN_CHANGES = 500


@dataclass(frozen=True, slots=True)
class Problem:
    """What went wrong, as in RFC 9457."""

    title: str
    status: int
    detail: str


@dataclass(frozen=True, slots=True)
class Runs:
    """Runs, the newest first."""

    runs: tuple[RunSummary, ...]


@dataclass(frozen=True, slots=True)
class Cluster:
    """A cluster on which there were runs. `active_run` is executed now."""

    cluster_id: str
    run_count: int
    active_run: str | None
    latest_run: RunSummary


@dataclass(frozen=True, slots=True)
class Clusters:
    """Clusters, the one of the newest run first."""

    clusters: tuple[Cluster, ...]


@dataclass(frozen=True, slots=True)
class EtaRange:
    """Seconds from now."""

    earliest_s: float
    expected_s: float
    latest_s: float


@dataclass(frozen=True, slots=True)
class Broker:
    """What the moves of a run are to one broker now."""

    broker: int
    reassigning_partitions: int
    read_bytes_per_s: float | None
    write_bytes_per_s: float | None
    log_dir_copy_bytes_per_s: float | None
    throttle_bytes_per_s: int | None
    left_bytes: int
    out_of_sync_replicas: int
    in_sync_lag_bytes: int


@dataclass(frozen=True, slots=True)
class Move:
    """One move that copies something."""

    topic: str
    partition: int
    original: tuple[int, ...]
    target: tuple[int, ...]
    state: str
    done_bytes: int
    left_bytes: int | None
    rate_bytes_per_s: float | None
    eta_s: float | None
    problem: str | None


@dataclass(frozen=True, slots=True)
class Run:
    """A run in detail. `moves` has those that copy something, the first of them: first those that go on."""

    summary: RunSummary
    phase: str
    at_ms: int
    moves_by_state: dict[str, int]
    left_bytes: int | None
    rate_bytes_per_s: float | None
    eta: EtaRange | None
    why_no_end: str | None
    throttle_bytes_per_s: int | None
    is_throttle_adaptive: bool
    why_held: str | None
    verdicts: tuple[str, ...]
    problems: tuple[str, ...]
    outlook: tuple[str, ...]
    throttle_residue: tuple[str, ...]
    operators: tuple[str, ...]
    lease: str
    brokers: tuple[Broker, ...]
    moves: tuple[Move, ...]


@dataclass(frozen=True, slots=True)
class Moves:
    """Some of the moves of a run that copy something, in the order of the plan, from `offset` on."""

    total: int
    offset: int
    moves: tuple[Move, ...]


@dataclass(frozen=True, slots=True)
class Plans:
    """Plans of the directory that is served."""

    plans: tuple[PlanSummary, ...]


@dataclass(frozen=True, slots=True)
class Change:
    """One partition of a plan; `original` is empty where the plan has no facts."""

    topic: str
    partition: int
    original: tuple[int, ...]
    target: tuple[int, ...]
    size_bytes: int | None
    reasons: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Plan:
    """A plan in detail. `changes` are the first ones; `remaining` is what it leaves undone."""

    summary: PlanSummary
    moves: int | None
    leader_changes: int | None
    least_bytes: int | None
    predicted_s: float | None
    loads: str | None
    remaining: tuple[str, ...]
    changes: tuple[Change, ...]


@dataclass(frozen=True, slots=True)
class Accepted:
    """That a run has taken in what was asked of it."""

    run_id: str
    request: str


@dataclass(frozen=True, slots=True)
class ThrottleRequest:
    """A throttle: `bytes_per_s` for all brokers, or for `brokers` alone; null for no limit."""

    bytes_per_s: int | None
    brokers: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class CancelRequest:
    """How to cancel: `drain` lets moves in flight finish, else they are cancelled too."""

    drain: bool = False


@dataclass(frozen=True, slots=True)
class Nothing:
    """A request without content: an empty object."""


@dataclass(frozen=True, slots=True)
class ApproveRequest:
    """Approve a plan as somebody saw it: `plan_id` is what was looked at."""

    plan_id: str
    approved_by: str
    note: str = ""


@dataclass(frozen=True, slots=True)
class Approved:
    """The approval of a plan; null once it was revoked."""

    name: str
    approval: Approval | None


def clusters_of(runs: tuple[RunSummary, ...]) -> Clusters:
    """The clusters of these runs, of which the newest comes first."""
    counts = Counter(run.cluster_id for run in runs)
    latest: dict[str, RunSummary] = {}
    active: dict[str, str] = {}
    for run in runs:
        latest.setdefault(run.cluster_id, run)
        if run.is_active:
            active[run.cluster_id] = run.run_id
    return Clusters(tuple(Cluster(name, counts[name], active.get(name), run) for name, run in latest.items()))


def run_of(live: LiveRun, shown: int = SHOWN_MOVES) -> Run:
    """A run in detail."""
    found, metrics, progress = live.history, live.metrics, live.progress
    end = progress.end
    return Run(
        summary=summary_of(found, active=live.is_active),
        phase=progress.phase.value,
        at_ms=progress.at_ms,
        moves_by_state={status.value: count for status, count in metrics.moves.items()},
        left_bytes=metrics.left_bytes,
        rate_bytes_per_s=metrics.rate_bytes_per_s,
        eta=None if end is None else EtaRange(end.earliest_s, end.expected_s, end.latest_s),
        why_no_end=progress.why_no_end,
        throttle_bytes_per_s=found.rates.bytes_per_s,
        is_throttle_adaptive=found.rates.adaptive is not None,
        why_held=metrics.why_held,
        verdicts=metrics.verdicts,
        problems=found.problems,
        outlook=progress.outlook,
        throttle_residue=() if live.is_active else found.throttle_residue,
        operators=tuple(map(str, found.operators)),
        lease=found.lease,
        brokers=tuple(
            Broker(
                one.broker, one.reassigning, one.read_bytes_per_s, one.written_bytes_per_s, one.within_bytes_per_s,
                metrics.throttles.get(one.broker), one.left_bytes, one.out_of_sync, one.lag_bytes,
            )
            for one in metrics.brokers
        ),
        moves=tuple(map(move_of, interesting(progress.moves)[:shown])),
    )  # fmt: skip


def move_of(move: MoveProgress) -> Move:
    """One move."""
    estimate = move.estimate
    return Move(
        *move.topic_partition, move.original, move.target, move.status.value, estimate.done_bytes, estimate.left_bytes,
        estimate.rate_bytes_per_s, estimate.eta_s, move.problem,
    )  # fmt: skip


def plan_of(summary: PlanSummary, file: PlanFile) -> Plan:
    """A plan in detail."""
    facts = file.facts
    known = {} if facts is None else {fact.topic_partition: fact for fact in facts.partitions}
    changes = []
    for name, target in list(file.plan.replicas.items())[:SHOWN_CHANGES]:
        fact = known.get(name)
        reasons = () if fact is None else tuple(dict.fromkeys(reason.goal for reason in fact.reasons))
        original = file.expected.get(name, ())
        changes.append(
            Change(name.topic, name.partition, original, target, None if fact is None else fact.size_bytes, reasons)
        )
    totals = None if facts is None else facts.totals
    prediction = None if facts is None else facts.prediction
    return Plan(
        summary=summary,
        moves=None if totals is None else totals.moves,
        leader_changes=None if totals is None else totals.leader_changes,
        least_bytes=None if totals is None else totals.least_bytes,
        predicted_s=None if prediction is None else prediction.seconds,
        loads=None if facts is None or facts.loads is None else str(facts.loads),
        remaining=() if facts is None else facts.remaining,
        changes=tuple(changes),
    )
