"""States of a finding, and the events from which all that the autopilot remembers follows. Pure.

What a look shows of a finding (`Evidence`) moves it by `STEPS`, a table; results of what was asked for (a plan, a run)
come as events. `remember` folds the events of the journal, so that any process goes on where the last one stopped:

    seen ──▶ told ──▶ proposed ──▶ running ──▶ settling ──▶ closed
                ▲         │           │            │
                └─────────┴───────────┘            └──▶ given up
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from types import MappingProxyType
from typing import Any, NamedTuple

from kreassign.autopilot.policy import Kind
from kreassign.model import TopicPartition
from kreassign.model.text import DAY_MS, HOUR_MS

# The table.


class State(StrEnum):
    """How far a finding has come."""

    SEEN = "seen"  # it may pass
    TOLD = "told"  # it lasts, and people know
    PROPOSED = "proposed"  # a repair is planned
    RUNNING = "running"  # the repair runs
    SETTLING = "settling"  # the repair has run; whether it helped shows after a while
    CLOSED = "closed"  # it is over
    GIVEN_UP = "given up"  # it outlasted its repair: people look into it


class Evidence(StrEnum):
    """The part of a look that moves a finding."""

    GONE = "gone"  # it is not there
    UNKNOWN = "unknown"  # what shows it could not be read
    FRESH = "fresh"  # too young to be told
    LASTING = "lasting"  # told, and too young to be proposed
    RIPE = "ripe"  # due for a proposal


class NextAction(StrEnum):
    """Acts that follow besides the new state."""

    NOTHING = "nothing"
    TELL = "tell"  # that it is there
    TELL_OVER = "tell that it is over"
    PLAN = "plan a repair, where the level says so"
    ACT = "run the repair, where the level says so and all gates are open"
    END_RUN = "end the repair, where that copies less than going on"
    JUDGE = "give up when the settling time is over"


class Step(NamedTuple):
    """Where evidence leads from a state."""

    to: State
    action: NextAction = NextAction.NOTHING


STEPS: Mapping[tuple[State, Evidence], Step] = MappingProxyType({
    (State.SEEN, Evidence.GONE): Step(State.CLOSED),
    (State.SEEN, Evidence.UNKNOWN): Step(State.SEEN),
    (State.SEEN, Evidence.FRESH): Step(State.SEEN),
    (State.SEEN, Evidence.LASTING): Step(State.TOLD, NextAction.TELL),
    (State.SEEN, Evidence.RIPE): Step(State.TOLD, NextAction.TELL),
    (State.TOLD, Evidence.GONE): Step(State.CLOSED, NextAction.TELL_OVER),
    (State.TOLD, Evidence.UNKNOWN): Step(State.TOLD),
    (State.TOLD, Evidence.FRESH): Step(State.TOLD),
    (State.TOLD, Evidence.LASTING): Step(State.TOLD),
    (State.TOLD, Evidence.RIPE): Step(State.TOLD, NextAction.PLAN),
    (State.PROPOSED, Evidence.GONE): Step(State.CLOSED, NextAction.TELL_OVER),
    (State.PROPOSED, Evidence.UNKNOWN): Step(State.PROPOSED),
    (State.PROPOSED, Evidence.FRESH): Step(State.TOLD),
    (State.PROPOSED, Evidence.LASTING): Step(State.TOLD),
    (State.PROPOSED, Evidence.RIPE): Step(State.PROPOSED, NextAction.ACT),
    (State.RUNNING, Evidence.GONE): Step(State.RUNNING, NextAction.END_RUN),
    (State.RUNNING, Evidence.UNKNOWN): Step(State.RUNNING),
    (State.RUNNING, Evidence.FRESH): Step(State.RUNNING),
    (State.RUNNING, Evidence.LASTING): Step(State.RUNNING),
    (State.RUNNING, Evidence.RIPE): Step(State.RUNNING),
    (State.SETTLING, Evidence.GONE): Step(State.CLOSED, NextAction.TELL_OVER),
    (State.SETTLING, Evidence.UNKNOWN): Step(State.SETTLING),
    (State.SETTLING, Evidence.FRESH): Step(State.SETTLING, NextAction.JUDGE),
    (State.SETTLING, Evidence.LASTING): Step(State.SETTLING, NextAction.JUDGE),
    (State.SETTLING, Evidence.RIPE): Step(State.SETTLING, NextAction.JUDGE),
    (State.CLOSED, Evidence.GONE): Step(State.CLOSED),
    (State.CLOSED, Evidence.UNKNOWN): Step(State.CLOSED),
    (State.CLOSED, Evidence.FRESH): Step(State.SEEN),
    (State.CLOSED, Evidence.LASTING): Step(State.SEEN),
    (State.CLOSED, Evidence.RIPE): Step(State.SEEN),
    (State.GIVEN_UP, Evidence.GONE): Step(State.CLOSED, NextAction.TELL_OVER),
    (State.GIVEN_UP, Evidence.UNKNOWN): Step(State.GIVEN_UP),
    (State.GIVEN_UP, Evidence.FRESH): Step(State.GIVEN_UP),
    (State.GIVEN_UP, Evidence.LASTING): Step(State.GIVEN_UP),
    (State.GIVEN_UP, Evidence.RIPE): Step(State.GIVEN_UP),
})  # fmt: skip

OPEN = frozenset(State) - {State.CLOSED}

# Events: facts in the past tense, as the journal has them. Add fields with defaults, add classes; rename nothing.


class Name(NamedTuple):
    """Which finding: its kind, and what it is about (`broker 3`, `broker 3:/data/d0`, `cluster`)."""

    kind: Kind
    subject: str

    def __str__(self) -> str:
        return f"{self.kind} {self.subject}"


@dataclass(frozen=True, slots=True)
class Began:
    """The first event of a journal: whose it is."""

    at_ms: int
    cluster_id: str


@dataclass(frozen=True, slots=True)
class WentOn:
    """Looks went on after a break, during which nobody knows what happened: all evidence begins again."""

    at_ms: int


@dataclass(frozen=True, slots=True)
class Looked:
    """The cluster was looked at; written now and then, as a sign of life."""

    at_ms: int


@dataclass(frozen=True, slots=True)
class BrokerWent:
    """A broker is not live any more."""

    at_ms: int
    broker: int


@dataclass(frozen=True, slots=True)
class BrokerCame:
    """A broker is live again."""

    at_ms: int
    broker: int


@dataclass(frozen=True, slots=True)
class ReplicasHeld:
    """These brokers hold replicas, whether they are live or not; written when others do than before."""

    at_ms: int
    brokers: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class OthersMoved:
    """Others move partitions or have set throttles; written at most every few minutes while that goes on."""

    at_ms: int
    what: str


class DiskUse(NamedTuple):
    """Bytes used in a log directory, and its size."""

    broker: int
    path: str
    used_bytes: int
    total_bytes: int


@dataclass(frozen=True, slots=True)
class DisksMeasured:
    """Use of log directories, once an hour: their growth follows."""

    at_ms: int
    disks: tuple[DiskUse, ...]


@dataclass(frozen=True, slots=True)
class FindingMoved:
    """A finding came into this state, for this reason; `seen` is the sentence about it.

    `since_ms` is from when on it is there, where that is earlier than the look that showed it first.
    """

    at_ms: int
    name: Name
    state: State
    why: str
    seen: str
    since_ms: int | None = None


@dataclass(frozen=True, slots=True)
class Planned:
    """A repair was planned: an id of its content, its cost, and what speaks for acting now and against it."""

    at_ms: int
    name: Name
    plan_id: str
    copied_bytes: int
    moves: tuple[TopicPartition, ...]
    sentences: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class NotPlanned:
    """A repair could not be planned, or begun; `is_passing` if the cluster did not answer, or refused for now."""

    at_ms: int
    name: Name
    why: str
    is_passing: bool = False


@dataclass(frozen=True, slots=True)
class ApprovalAsked:
    """People are asked to sign the proposal of a finding: this request."""

    at_ms: int
    name: Name
    request_id: str


@dataclass(frozen=True, slots=True)
class ApprovalsJudged:
    """Signatures were read: those that count, why the request permits nothing any more, and what is lacking."""

    at_ms: int
    name: Name
    approved_by: tuple[str, ...]
    dead: str = ""
    lacking: str = ""


class ClosedGate(NamedTuple):
    """A gate that keeps a repair from running: its name, and why it is closed and what opens it."""

    gate: str
    why: str


@dataclass(frozen=True, slots=True)
class GatesJudged:
    """The gates that are closed for the repair of a finding; none is closed where it may run."""

    at_ms: int
    name: Name
    closed: tuple[ClosedGate, ...]


@dataclass(frozen=True, slots=True)
class RunBegan:
    """The run of a repair is about to begin, in windows or `at_any_time`; written before anything is sent."""

    at_ms: int
    name: Name
    run_id: str
    copied_bytes: int
    moves: tuple[TopicPartition, ...]
    at_any_time: bool = False


@dataclass(frozen=True, slots=True)
class DigestTold:
    """The daily digest was told."""

    at_ms: int


@dataclass(frozen=True, slots=True)
class EndAsked:
    """The autopilot asks the run of a repair to end once its moves in flight are done."""

    at_ms: int
    name: Name
    why: str


@dataclass(frozen=True, slots=True)
class HoldAsked:
    """The autopilot asks the run of a repair to start nothing, for this reason; without one, to go on."""

    at_ms: int
    name: Name
    why: str


@dataclass(frozen=True, slots=True)
class RunEnded:
    """The run of a repair is at rest, with its last state; `by` says who ended it, if people did."""

    at_ms: int
    name: Name
    outcome: str
    copied_bytes: int
    by: str = ""


@dataclass(frozen=True, slots=True)
class TurnedOff:
    """An operator turned acting off until then. Requests have numbers, as those to runs do."""

    at_ms: int
    number: int
    until_ms: int
    by: str
    why: str


@dataclass(frozen=True, slots=True)
class TurnedOn:
    """An operator turned acting on again."""

    at_ms: int
    number: int
    by: str


@dataclass(frozen=True, slots=True)
class Silenced:
    """An operator wants nothing done about a finding until then."""

    at_ms: int
    number: int
    kind: Kind
    subject: str
    until_ms: int
    by: str
    why: str


Request = TurnedOff | TurnedOn | Silenced
Event = (
    Began | WentOn | Looked | BrokerWent | BrokerCame | ReplicasHeld | OthersMoved | DisksMeasured | FindingMoved
    | Planned | NotPlanned | ApprovalAsked | ApprovalsJudged | GatesJudged | RunBegan | EndAsked | HoldAsked | RunEnded
    | TurnedOff | TurnedOn | Silenced | DigestTold
)  # fmt: skip

# Memory: what the events come to.


@dataclass(frozen=True, slots=True)
class Finding:
    """A finding, and how far it has come.

    `since_ms` is from when on it was there without a break; `steady_ms` from when on two plans were the same.
    `not_before_ms` is the end of its back-off after `failures`; `silence` says who wants nothing done until when.
    `asked` is the request for approval of the `proposal`, and `judged` its signatures; a new proposal needs a new one.
    `gates` are those that were closed when they were written down last, while it waits for its repair.
    """

    name: Name
    state: State
    since_ms: int
    state_ms: int
    seen: str
    why: str = ""
    proposal: Planned | None = None
    steady_ms: int = 0
    failures: int = 0
    not_before_ms: int = 0
    problem: str = ""
    silence: Silenced | None = None
    asked: ApprovalAsked | None = None
    judged: ApprovalsJudged | None = None
    gates: GatesJudged | None = None


class Act(NamedTuple):
    """A repair that ran, or runs (`ended_ms` is None)."""

    name: Name
    run_id: str
    begun_ms: int
    copied_bytes: int
    moves: tuple[TopicPartition, ...]
    ended_ms: int | None = None
    outcome: str = ""
    is_end_asked: bool = False
    held: str = ""
    at_any_time: bool = False

    def runs_since(self, at_ms: int) -> bool:
        """True if it ran after this time, or runs."""
        return self.ended_ms is None or self.ended_ms > at_ms


class Outage(NamedTuple):
    """A time for which a broker was down."""

    broker: int
    from_ms: int
    to_ms: int


@dataclass(frozen=True, slots=True)
class Memory:
    """All that the autopilot remembers of a cluster.

    `drained` has brokers that others emptied while they were live, with the time; one that holds replicas again is not.
    """

    cluster_id: str = ""
    looked_ms: int | None = None
    findings: Mapping[Name, Finding] = field(default_factory=dict)
    away: Mapping[int, int] = field(default_factory=dict)
    outages: tuple[Outage, ...] = ()
    held: ReplicasHeld | None = None
    drained: Mapping[int, int] = field(default_factory=dict)
    disks: tuple[DisksMeasured, ...] = ()
    others: OthersMoved | None = None
    acts: tuple[Act, ...] = ()
    off: TurnedOff | None = None
    digest_ms: int | None = None
    last_request: int = 0

    @property
    def open(self) -> tuple[Finding, ...]:
        """Findings that are not closed, the most urgent first."""
        found = (one for one in self.findings.values() if one.state in OPEN)
        return tuple(sorted(found, key=lambda one: (one.name.kind.urgency, one.since_ms, one.name.subject)))

    @property
    def running(self) -> Act | None:
        """The repair that runs."""
        return next((one for one in self.acts if one.ended_ms is None), None)


BACK_OFF_MS = (HOUR_MS, 4 * HOUR_MS, DAY_MS)
"""Waiting time after the first, second and each further failure."""

SOON_MS = 300_000
"""Waiting time after a plan or a run for which the cluster did not answer: that is no failure of the repair."""

SILENT_MS = DAY_MS
"""How long a finding rests after people ended its repair."""

KEPT_MS = 8 * DAY_MS
"""Acts that are older count for nothing: budgets and rest take a week."""

DISKS_KEPT_MS = 12 * HOUR_MS
"""Growth is that of the last hours."""


def remember(memory: Memory, event: Event) -> Memory:
    """The memory after an event."""
    return TAKEN_IN[type(event)](memory, event)


def memory_of(events: Iterable[Event]) -> Memory:
    """The memory after all events of a journal."""
    memory = Memory()
    for event in events:
        memory = remember(memory, event)
    return memory


def _with(memory: Memory, finding: Finding) -> Memory:
    return replace(memory, findings={**memory.findings, finding.name: finding})


def _changed(memory: Memory, **fields: Any) -> Memory:
    """The running repair with other fields."""
    acts = (one if one.ended_ms is not None else one._replace(**fields) for one in memory.acts)
    return replace(memory, acts=tuple(acts))


def _went_on(memory: Memory, event: WentOn) -> Memory:
    findings = {
        name: replace(one, since_ms=event.at_ms, steady_ms=event.at_ms) for name, one in memory.findings.items()
    }
    away = dict.fromkeys(memory.away, event.at_ms)
    return replace(memory, looked_ms=event.at_ms, findings=findings, away=away)


def _measured(memory: Memory, event: DisksMeasured) -> Memory:
    kept = [one for one in memory.disks if one.at_ms > event.at_ms - DISKS_KEPT_MS]
    return replace(memory, disks=(*kept, event))


def _began(memory: Memory, event: RunBegan) -> Memory:
    acts = [one for one in memory.acts if one.runs_since(event.at_ms - KEPT_MS)]
    begun = Act(event.name, event.run_id, event.at_ms, event.copied_bytes, event.moves, at_any_time=event.at_any_time)
    acts.append(begun)
    waited = replace(memory.findings[event.name], problem="", asked=None, gates=None)
    finding = replace(waited, state=State.RUNNING, state_ms=event.at_ms)
    return _with(replace(memory, acts=tuple(acts)), finding)


def _came(memory: Memory, event: BrokerCame) -> Memory:
    since = memory.away.get(event.broker, event.at_ms)
    away = {broker: at_ms for broker, at_ms in memory.away.items() if broker != event.broker}
    outages = (*memory.outages, Outage(event.broker, since, event.at_ms))
    return replace(memory, away=away, outages=outages)


def _held(memory: Memory, event: ReplicasHeld) -> Memory:
    before = memory.held or event
    lost = set(before.brokers) - set(event.brokers) - memory.away.keys()
    ours = {one.name for one in memory.acts if one.runs_since(before.at_ms)}
    drained = {one for one in lost if Name(Kind.BROKER_GONE, f"broker {one}") not in ours}
    kept = {one: at_ms for one, at_ms in memory.drained.items() if one not in event.brokers}
    return replace(memory, held=event, drained=kept | dict.fromkeys(drained, event.at_ms))


def _moved(memory: Memory, event: FindingMoved) -> Memory:
    before = memory.findings.get(event.name)
    if before is None or before.state is State.CLOSED:
        since_ms = event.at_ms if event.since_ms is None else event.since_ms
        silence = None if before is None else before.silence
        begun = Finding(event.name, event.state, since_ms, event.at_ms, event.seen, event.why, silence=silence)
        return _with(memory, begun)
    moved = replace(before, state=event.state, state_ms=event.at_ms, seen=event.seen, why=event.why)
    return _with(memory, _unproposed(moved) if event.state in {State.TOLD, State.CLOSED} else moved)


def _unproposed(finding: Finding) -> Finding:
    return replace(finding, proposal=None, asked=None, judged=None)


def _planned(memory: Memory, event: Planned) -> Memory:
    before = memory.findings[event.name]
    is_same = before.proposal is not None and before.proposal.plan_id == event.plan_id
    proposed = replace(
        before,
        state=State.PROPOSED,
        state_ms=before.state_ms if before.state is State.PROPOSED else event.at_ms,
        proposal=event,
        steady_ms=before.steady_ms if is_same else event.at_ms,
        asked=before.asked if is_same else None,
        problem="",
    )
    return _with(memory, proposed)


def _asked(memory: Memory, event: ApprovalAsked) -> Memory:
    return _with(memory, replace(memory.findings[event.name], asked=event, judged=None))


def _judged(memory: Memory, event: ApprovalsJudged) -> Memory:
    finding = memory.findings[event.name]
    return _with(memory, replace(finding, judged=event, asked=None if event.dead else finding.asked))


def _not_planned(memory: Memory, event: NotPlanned) -> Memory:
    told = replace(memory.findings[event.name], state=State.TOLD, state_ms=event.at_ms)
    if event.is_passing:
        soon = replace(told, not_before_ms=event.at_ms + SOON_MS, problem=event.why)
        return _with(memory, _unproposed(soon))
    return _with(memory, _failed(told, event.at_ms, event.why))


def _failed(finding: Finding, at_ms: int, problem: str) -> Finding:
    wait_ms = BACK_OFF_MS[min(finding.failures, len(BACK_OFF_MS) - 1)]
    failed = replace(finding, failures=finding.failures + 1, not_before_ms=at_ms + wait_ms, problem=problem)
    return _unproposed(failed)


def _silenced(memory: Memory, event: Silenced) -> Memory:
    name = Name(event.kind, event.subject)
    finding = memory.findings.get(name) or Finding(name, State.CLOSED, event.at_ms, event.at_ms, "")
    return _with(replace(memory, last_request=event.number), replace(finding, silence=event))


def _ended(memory: Memory, event: RunEnded) -> Memory:
    act = next(one for one in memory.acts if one.ended_ms is None)
    memory = _changed(memory, ended_ms=event.at_ms, outcome=event.outcome, copied_bytes=event.copied_bytes)
    finding = replace(_unproposed(memory.findings[event.name]), state_ms=event.at_ms)
    if event.outcome == "done":
        finding = replace(finding, state=State.SETTLING, failures=0, not_before_ms=0)
    elif act.is_end_asked:
        finding = replace(finding, state=State.TOLD)
    elif event.by:
        why = f"{event.by} ended its run {act.run_id}"
        silence = Silenced(event.at_ms, 0, *event.name, event.at_ms + SILENT_MS, event.by, why)
        finding = replace(finding, state=State.TOLD, silence=silence)
    else:
        problem = f"its run {act.run_id} is {event.outcome}"
        finding = _failed(replace(finding, state=State.TOLD), event.at_ms, problem)
    return _with(memory, finding)


TAKEN_IN: Mapping[type[Event], Callable[[Memory, Any], Memory]] = MappingProxyType({
    Began: lambda memory, event: replace(memory, cluster_id=event.cluster_id),
    WentOn: _went_on,
    Looked: lambda memory, event: replace(memory, looked_ms=event.at_ms),
    BrokerWent: lambda memory, event: replace(memory, away={**memory.away, event.broker: event.at_ms}),
    BrokerCame: _came,
    ReplicasHeld: _held,
    OthersMoved: lambda memory, event: replace(memory, others=event),
    DisksMeasured: _measured,
    FindingMoved: _moved,
    Planned: _planned,
    NotPlanned: _not_planned,
    ApprovalAsked: _asked,
    ApprovalsJudged: _judged,
    GatesJudged: lambda memory, event: _with(memory, replace(memory.findings[event.name], gates=event)),
    RunBegan: _began,
    EndAsked: lambda memory, _: _changed(memory, is_end_asked=True),
    HoldAsked: lambda memory, event: _changed(memory, held=event.why),
    RunEnded: _ended,
    TurnedOff: lambda memory, event: replace(memory, off=event, last_request=event.number),
    TurnedOn: lambda memory, event: replace(memory, off=None, last_request=event.number),
    Silenced: _silenced,
    DigestTold: lambda memory, event: replace(memory, digest_ms=event.at_ms),
})  # fmt: skip
"""Changes of the memory by each event."""
