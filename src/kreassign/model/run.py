"""A run and its moves as plain values: the one shape that all read who do not execute it.

`RunHistory` has what became of a run, and `RunTrail` what happened when. The executor makes both of a journal; status,
metrics, web and reports read them, and keep no shapes of their own.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import ClassVar

from kreassign.model.cluster import TopicPartition
from kreassign.model.pace import NO_LIMITS, Pace
from kreassign.model.throttle import WHOLE, ThrottleRates

REHEARSAL = "rehearsal"
"""Id of every run on a twin that only shows what a plan would do."""


class Phase(StrEnum):
    """Phase of a run."""

    NEW = "new"
    PREPARING = "preparing"
    THROTTLING = "throttling"
    AWAITING_LEASE = "awaiting lease"
    MOVING = "moving"
    ELECTING = "electing"
    RESTORING = "restoring"
    VERIFYING = "verifying"
    DONE = "done"
    CANCELLED = "cancelled"
    FAILED = "failed"
    PAUSED = "paused"


ENDED = frozenset({Phase.DONE, Phase.CANCELLED, Phase.FAILED})
AT_REST = ENDED | {Phase.PAUSED}
OVER = frozenset({Phase.DONE, Phase.CANCELLED})
"""A run that ended so has no moves left, and nothing to restore: it cannot be resumed, and no broker of it given up."""


class MoveStatus(StrEnum):
    """Progress of a move, as known to its run."""

    PLANNED = "planned"
    SENT = "sent"
    MOVING = "moving"
    CANCELLING = "cancelling"
    COMPLETE = "complete"
    CANCELLED = "cancelled"
    FAILED = "failed"


IN_FLIGHT = frozenset({MoveStatus.SENT, MoveStatus.MOVING, MoveStatus.CANCELLING})
ACTIVE = IN_FLIGHT | {MoveStatus.PLANNED}

INTEREST = (
    MoveStatus.MOVING,
    MoveStatus.CANCELLING,
    MoveStatus.SENT,
    MoveStatus.FAILED,
    MoveStatus.PLANNED,
    MoveStatus.CANCELLED,
    MoveStatus.COMPLETE,
)
"""Order in which moves are shown, by their state."""


@dataclass(frozen=True, slots=True)
class Operator:
    """User and host of the process that executes a run, and its command line."""

    user: str
    host: str
    command: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """User and host alone."""
        return f"{self.user}@{self.host}"

    def __str__(self) -> str:
        return f"{self.name}: {' '.join(self.command)}" if self.command else self.name


@dataclass(frozen=True, slots=True)
class LogDirTarget:
    """Log directory of a copy on a broker, and its directory before the run; None if there was no copy."""

    broker: int
    path: str
    before: str | None = None

    @property
    def is_move(self) -> bool:
        """True if the copy moves between two directories of its broker."""
        return self.before is not None and self.before != self.path


@dataclass(frozen=True, slots=True)
class Estimate:
    """Progress, rates and ETA of a copy.

    `rate_bytes_per_s` is the copy rate, `write_bytes_per_s` what producers add meanwhile; each is None until the
    samples span long enough. `eta_s` is None also when the remaining bytes do not shrink.
    """

    done_bytes: int
    left_bytes: int | None
    rate_bytes_per_s: float | None = None
    write_bytes_per_s: float | None = None
    eta_s: float | None = None

    @property
    def fraction(self) -> float | None:
        """Done over total, 0 to 1; None when the total is not known."""
        if self.left_bytes is None:
            return None
        total = self.done_bytes + self.left_bytes
        return self.done_bytes / total if total else 1.0


@dataclass(frozen=True, slots=True)
class Interval:
    """Seconds from now to the earliest, expected and latest end."""

    earliest_s: float
    expected_s: float
    latest_s: float


@dataclass(frozen=True, slots=True)
class BrokerProgress:
    """Effect of a run's moves on one broker now.

    `reassigning` counts partitions in flight of which it sends or gets a copy. Rates are bytes per second of the last
    minute, None until measured: bytes read from it by others, written to it, and copied between its own log
    directories. `left_bytes` is what has still to arrive, also of moves that wait; `out_of_sync` counts its new
    replicas in flight that have not caught up, and `lag_bytes` their lag. `left_to_send_bytes` is what it has still to
    send, and `throttle_bytes_per_s` its rate per direction in the run: None for no limit, and for a throttle
    that follows the traffic.
    """

    broker: int
    reassigning: int
    read_bytes_per_s: float | None
    written_bytes_per_s: float | None
    within_bytes_per_s: float | None
    left_bytes: int
    out_of_sync: int
    lag_bytes: int
    left_to_send_bytes: int = 0
    throttle_bytes_per_s: int | None = None


@dataclass(frozen=True, slots=True)
class Progress:
    """Measurements of a run at one moment: sums of its moves, and when it ends.

    `eta_s` is the expected one of `end`; without an `end`, `why_no_end` has the reason. `brokers` are those that copy
    for it, `recent` the last log sentences, each with its time in ms. `curve` has the copied bytes over time since the
    begin, at a few hundred moments in ms.
    """

    at_ms: int
    done_bytes: int
    left_bytes: int | None
    rate_bytes_per_s: float | None = None
    write_bytes_per_s: float | None = None
    eta_s: float | None = None
    end: Interval | None = None
    why_no_end: str | None = None
    brokers: tuple[BrokerProgress, ...] = ()
    recent: tuple[tuple[int, str], ...] = ()
    curve: tuple[tuple[int, int], ...] = ()

    @property
    def overall(self) -> Estimate:
        """All moves together."""
        return Estimate(self.done_bytes, self.left_bytes, self.rate_bytes_per_s, self.write_bytes_per_s, self.eta_s)


@dataclass(frozen=True, slots=True)
class ClientCost:
    """Cost of clients that suffered to a run: how long it was held and slowed, and the last reason.

    `percent` is the present part of its rate; `unused` is the sum of percents left out, each times its milliseconds.
    """

    percent: int = WHOLE
    held_ms: int = 0
    slowed_ms: int = 0
    unused: int = 0
    reason: str = ""

    def after(self, held_ms: int, passed_ms: int, percent: int) -> ClientCost:
        """Add a time that passed at this percentage, of which it was held for a part."""
        slowed_ms = passed_ms if percent < WHOLE else 0
        return replace(
            self,
            held_ms=self.held_ms + held_ms,
            slowed_ms=self.slowed_ms + slowed_ms,
            unused=self.unused + passed_ms * (WHOLE - percent),
        )

    @property
    def slowdown_percent(self) -> int:
        """Mean of what was left out of the rate while the run was slowed."""
        return round(self.unused / self.slowed_ms) if self.slowed_ms else 0

    def __str__(self) -> str:
        if not self.reason:
            return "clients: it was neither held nor slowed for them"
        slowed = f", {self.slowdown_percent} % slower for {_span(self.slowed_ms)}" if self.slowed_ms else ""
        now = f", at {self.percent} % of its rate now" if self.percent < WHOLE else ""
        return f"clients: held for {_span(self.held_ms)}{slowed}{now}; the last reason: {self.reason}"


NO_COST = ClientCost()


def _span(span_ms: int) -> str:
    minutes, seconds = divmod(round(span_ms / 1000), 60)
    if minutes >= _MINUTES_ALONE or (minutes and not seconds):
        return f"{minutes} min"
    return f"{minutes} min {seconds} s" if minutes else f"{seconds} s"


_MINUTES_ALONE = 10
"""From so many minutes on their seconds are left out."""


WAS_DELETED = "was deleted"
SOMEONE_ELSE = "someone else"
"""Words in the problem of a move that say whose doing it was."""


def blames_others(problem: str | None) -> bool:
    """True if a move failed since somebody else changed or cancelled it."""
    return SOMEONE_ELSE in (problem or "")


@dataclass(frozen=True, slots=True)
class MoveHistory:
    """Outcome of one partition. Times are ms since the epoch; `size_bytes` is that of one copy before the run.

    `ended_ms` is when it was complete, cancelled or failed; None while it has not ended.
    `left` are the lists in which the run left it, or may have: its target, the last step, what cancelling leaves. In
    those `between` it is while its move is in progress.
    `log_dirs` are the copies whose directory the plan names. `topic_id` is None if unknown.
    `former_targets` are earlier targets, in order, before it was planned again because a destination was lost.
    `made_by_others` is the list to which others led it last, as the plan does; () if they never did.
    `estimate` is the progress of its copies; None if it copies nothing, or the run was read without progress.
    """

    topic: str
    partition: int
    original: tuple[int, ...]
    target: tuple[int, ...]
    adding: tuple[int, ...]
    size_bytes: int
    submitted_ms: int | None
    ended_ms: int | None
    bytes_copied: int
    status: MoveStatus
    problem: str | None
    left: tuple[tuple[int, ...], ...] = ()
    between: tuple[tuple[int, ...], ...] = ()
    log_dirs: tuple[LogDirTarget, ...] = ()
    topic_id: str | None = None
    former_targets: tuple[tuple[int, ...], ...] = ()
    estimate: Estimate | None = None
    made_by_others: tuple[int, ...] = ()

    @property
    def topic_partition(self) -> TopicPartition:
        """The partition."""
        return TopicPartition(self.topic, self.partition)

    @property
    def undone_to(self) -> tuple[int, ...]:
        """List to which a rollback takes it: the original, or what others made of it before the run's own steps."""
        return self.made_by_others or self.original

    @property
    def is_deleted(self) -> bool:
        """True if it failed since its partition is no longer there."""
        return WAS_DELETED in (self.problem or "")

    @property
    def is_changed_by_others(self) -> bool:
        """True if it failed since somebody else changed or cancelled it."""
        return blames_others(self.problem)

    @property
    def completed_ms(self) -> int | None:
        """Time at which it was complete; None if it is not, also where it was cancelled or failed."""
        return self.ended_ms if self.status is MoveStatus.COMPLETE else None


@dataclass(frozen=True, slots=True)
class RunHistory:
    """Outcome of a run.

    `state` is its phase: `done`, `cancelled` and `failed` are ends, `paused` was left on purpose; any other
    is going on, or was when its process died. A run that `is_held` goes on, but starts nothing. `verdicts` are the
    present verdicts of the guards; one of them may have ended the run in such a way that it `wants_rollback`.
    `pace` is its present order, limits and hours, `outlook` what it waits for and what will not fit into its hours.
    `was_throttle_kept` unless others are known to have changed the throttle while the run had it set.
    `throttle_residue` has a sentence per setting that the run has left changed; none while a process executes it,
    which restores its `open_settings` at the end. `operators` are those who started and resumed it, each once;
    `plan_id` is that of the plan's facts file. `lease` is the state of the lease of its cluster, "" without one;
    `silence` says since when the cluster does not answer, None if it does. It `is_active` while a process executes
    it. `why_held` says why an operator or guards let nothing start, `guards` names those breached now;
    `open_settings` counts settings that it has changed and not restored. `progress` is None where the run was read
    without. It `can_be_resumed` where no process executes it, and anything is left to do. Its journal is kept in
    `journal_to`, too. A rollback `undoes` the run of this id. `problem_partitions` has all partitions of each problem
    that names only the first.
    """

    run_id: str
    cluster_id: str
    started_ms: int
    ended_ms: int | None
    state: Phase
    rates: ThrottleRates
    moves: tuple[MoveHistory, ...]
    throttle_residue: tuple[str, ...]
    problems: tuple[str, ...]
    is_held: bool = False
    was_throttle_kept: bool = True
    wants_rollback: bool = False
    verdicts: tuple[str, ...] = ()
    pace: Pace = NO_LIMITS
    outlook: tuple[str, ...] = ()
    plan_id: str = ""
    operators: tuple[Operator, ...] = ()
    lease: str = ""
    silence: str | None = None
    is_active: bool = False
    why_held: str | None = None
    guards: tuple[str, ...] = ()
    open_settings: int = 0
    progress: Progress | None = None
    clients: ClientCost | None = None
    can_be_resumed: bool = False
    journal_to: str | None = None
    undoes: str | None = None
    problem_partitions: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    ALSO_SHOWS: ClassVar[tuple[str, ...]] = ("bytes_copied", "moves_by_state")

    @property
    def throttle_bytes_per_s(self) -> int | None:
        """Rate of every broker without one of its own, for reports; None for no limit."""
        return self.rates.bytes_per_s

    @property
    def bytes_copied(self) -> int:
        """Bytes that reached new brokers, summed over all moves."""
        return sum(move.bytes_copied for move in self.moves)

    @property
    def duration_s(self) -> float | None:
        """Seconds from its start to its end; None before that."""
        return None if self.ended_ms is None else (self.ended_ms - self.started_ms) / 1000

    @property
    def about(self) -> tuple[str, ...]:
        """Sentences on its plan, operators, lease and clients, as far as recorded, for `status` and pages."""
        return (
            *((f"plan {self.plan_id}",) if self.plan_id else ()),
            *(f"{'resumed' if number else 'started'} by {operator}" for number, operator in enumerate(self.operators)),
            *((f"lease of the cluster: {self.lease}",) if self.lease else ()),
            *(() if self.clients is None else (str(self.clients),)),
            *(() if self.journal_to is None else (f"journal kept in {self.journal_to}, too",)),
        )

    @property
    def moves_by_state(self) -> dict[MoveStatus, int]:
        """Number of moves by state, of every state."""
        return dict.fromkeys(MoveStatus, 0) | Counter(move.status for move in self.moves)

    @property
    def in_flight_count(self) -> int:
        """Number of moves that were sent and have not ended."""
        return sum(move.status in IN_FLIGHT for move in self.moves)

    @property
    def copying(self) -> tuple[MoveHistory, ...]:
        """Moves that copy something, in the order of the plan."""
        return tuple(move for move in self.moves if move.estimate is not None)

    @property
    def by_interest(self) -> list[MoveHistory]:
        """Moves that copy something, those in progress first."""
        return sorted(self.copying, key=lambda move: (INTEREST.index(move.status), move.topic_partition))

    @property
    def measured(self) -> Progress:
        """Its progress. Raises ValueError for a run that was read without."""
        if self.progress is None:
            raise ValueError(f"run {self.run_id} was read without its progress")
        return self.progress

    def without_end(self, why: str) -> RunHistory:
        """Return a copy without ETAs, with the reason why the run does not end by itself."""
        moves = tuple(
            move if move.estimate is None else replace(move, estimate=replace(move.estimate, eta_s=None))
            for move in self.moves
        )
        return replace(self, moves=moves, progress=replace(self.measured, eta_s=None, end=None, why_no_end=why))


# What happened when.


@dataclass(frozen=True, slots=True)
class Arrival:
    """Bytes of one copy that had arrived at a time, its leader, and the throttle (None: without one).

    A copy between two log directories of a broker has no leader as its source, and is not listed.
    """

    at_ms: int
    topic: str
    partition: int
    broker: int
    source: int
    done_bytes: int
    throttle_bytes_per_s: int | None


@dataclass(frozen=True, slots=True)
class EtaShown:
    """Estimated end of one move, or of all moves if there is no topic, as shown at a time."""

    at_ms: int
    topic: str | None
    partition: int | None
    eta_s: float


@dataclass(frozen=True, slots=True)
class Call:
    """A query or request to the cluster, and its answer. `asked_ms` is known only for changes.

    `ok`, `refused` and `unknown` count partitions, settings or brokers, whichever it concerned.
    """

    number: int
    kind: str
    asked_ms: int | None
    answered_ms: int
    ok: int
    refused: int = 0
    unknown: int = 0
    problem: str | None = None


@dataclass(frozen=True, slots=True)
class Breach:
    """Verdict of a guard and its duration; `until_ms` is None while it lasts at the end of the journal."""

    guard: str
    reaction: str
    seen: str
    advice: str
    from_ms: int
    until_ms: int | None


class MarkKind(StrEnum):
    """Kind of mark on a picture of a run."""

    PAUSED = "paused"
    RELEASED = "released"
    STOPPED = "stopped"
    KILLED = "killed"
    RESUMED = "resumed"
    THROTTLE = "throttle"
    PACE = "pace"
    CANCELLED = "cancelled"
    GUARD = "guard"
    ALL_CLEAR = "all clear"
    REPLANNED = "replanned"
    LEASE_LOST = "lease lost"


@dataclass(frozen=True, slots=True)
class Mark:
    """An event that explains the course of a run."""

    at_ms: int
    kind: MarkKind
    text: str


@dataclass(frozen=True, slots=True)
class ThrottleStep:
    """From this time a broker was limited to this rate in each direction; None for no limit."""

    at_ms: int
    broker: int
    bytes_per_s: int | None


@dataclass(frozen=True, slots=True)
class InSync:
    """Replicas in sync at a time: those of the run's partitions and, where guards inspected, of the whole cluster.

    `moving` counts partitions of the run with a replica out of sync that the run does not add itself.
    """

    at_ms: int
    moving: int
    under_replicated: int | None = None
    under_min_isr: int | None = None
    offline: int | None = None


@dataclass(frozen=True, slots=True)
class LogLine:
    """One line of the log of a run."""

    at_ms: int
    text: str


@dataclass(frozen=True, slots=True)
class Timeline:
    """All events of a run, each part in order of time. `more_lines` of the log are left out."""

    marks: tuple[Mark, ...] = ()
    throttle: tuple[ThrottleStep, ...] = ()
    in_sync: tuple[InSync, ...] = ()
    log: tuple[LogLine, ...] = ()
    more_lines: int = 0


@dataclass(frozen=True, slots=True)
class RunTrail:
    """Everything that a journal has about a run; `planned_s` is its duration at the plan's throttle, if it had one."""

    history: RunHistory
    copy_progress: tuple[Arrival, ...] = ()
    eta_history: tuple[EtaShown, ...] = ()
    calls: tuple[Call, ...] = ()
    breaches: tuple[Breach, ...] = ()
    timeline: Timeline = Timeline()
    planned_s: float | None = None
