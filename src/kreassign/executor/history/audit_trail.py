"""Collect everything that a journal has about a run, for audits and reports. Pure.

A `RunTrail` has arrivals, estimates, calls and breaches, and in its `timeline` the events around them: marks, the
throttle, replicas in sync and a log in sentences, so that one explains the other.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from kreassign.executor import events
from kreassign.executor.guards import Verdict
from kreassign.executor.history.run_history import history
from kreassign.executor.journal.file import kind_of
from kreassign.executor.progress import ProgressMeter, marks, new_sentences
from kreassign.executor.state import Machine, MoveRecord, RunView
from kreassign.model import TopicPartition
from kreassign.model.run import (
    ACTIVE,
    Arrival,
    Breach,
    Call,
    EtaShown,
    InSync,
    LogLine,
    Mark,
    MarkKind,
    RunTrail,
    ThrottleStep,
    Timeline,
)
from kreassign.model.text import format_amount
from kreassign.model.throttle import FOLLOWER_THROTTLED_RATE, LEADER_THROTTLED_RATE

# The audit trail.

PROMISES_AT_MOST = 200
"""Polls whose estimates are kept, spread evenly over the run: the error of an estimate needs no more."""

_ON_THE_WAY = frozenset({events.PlacementState.UNTOUCHED, events.PlacementState.MOVING})


def audit_trail(journaled: Sequence[events.Event]) -> RunTrail:
    """Build the audit trail from these events, in their order."""
    machine = Machine()
    run, meter = machine.view, ProgressMeter(machine.view)
    timeline = _Timeline()
    leaders: dict[TopicPartition, int] = {}
    copy_progress: list[Arrival] = []
    eta_history: list[EtaShown] = []
    asked_of = _promising(journaled)
    for event in journaled:
        machine.replay(event)
        meter.follow(event)
        timeline.follow(event, run)
        copy_progress += _arrivals(run, event, leaders)
        if id(event) in asked_of:
            eta_history += _promises(meter, event.at_ms)
    started = journaled[0] if journaled else None
    return RunTrail(
        history=history(run),
        copy_progress=tuple(copy_progress),
        eta_history=tuple(eta_history),
        calls=tuple(_calls(journaled)),
        breaches=tuple(_breaches(journaled)),
        timeline=timeline.value,
        planned_s=planned_s(started) if isinstance(started, events.RunStarted) else None,
    )


def planned_s(started: events.RunStarted) -> float | None:
    """Seconds that the busiest broker takes at its throttle for the planned copies; None if one has no throttle."""
    sent, received = Counter[int](), Counter[int]()
    for move in started.moves:
        for broker in move.adding:
            received[broker] += move.size_bytes
            sent[move.original[0]] += move.size_bytes
    seconds = [0.0]
    for broker, size in (*sent.items(), *received.items()):
        rate = started.rates.of(broker)
        if rate is None:
            return None
        seconds.append(size / rate)
    return max(seconds)


def _promising(journaled: Iterable[events.Event]) -> set[int]:
    polls = [event for event in journaled if isinstance(event, events.MovesObserved)]
    step = max(1, -(-len(polls) // PROMISES_AT_MOST))
    return {id(event) for event in polls[::step]}


def _arrivals(run: RunView, event: events.Event, leaders: dict[TopicPartition, int]) -> Iterator[Arrival]:
    """Bytes at each new broker of the event's moves; records the leaders seen on the way in `leaders`."""
    match event:
        case events.MovesSubmitted():
            seen: tuple[TopicPartition, ...] = (*event.accepted, *event.unknown)
        case events.MovesObserved():
            seen = tuple(observation.topic_partition for observation in event.observations)
        case _:
            return
    known = (run.records[partition] for partition in seen if partition in run.records)
    for record in known:
        if record.submitted_ms is None:
            continue
        (topic, partition), source = record.name, _source(record, leaders)
        arrived = record.bytes_received
        for broker, done in ((broker, arrived[broker]) for broker in record.move.adding):
            yield Arrival(event.at_ms, topic, partition, broker, source, done, run.present_rates.of(broker))


def _source(record: MoveRecord, leaders: dict[TopicPartition, int]) -> int:
    """Leader of the partition while it moved, where known: at the end another replica may have become leader."""
    observation = record.observation
    if observation is not None and observation.placement in _ON_THE_WAY and observation.leader >= 0:
        leaders[record.name] = observation.leader
    return leaders.get(record.name, record.move.original[0])


def _promises(meter: ProgressMeter, at_ms: int) -> Iterator[EtaShown]:
    now = meter.progress()
    if now.eta_s is not None and now.left_bytes:
        yield EtaShown(at_ms, None, None, now.eta_s)
    for move in meter.moves():
        now_of = move.estimate
        if move.status in ACTIVE and now_of is not None and now_of.eta_s is not None and now_of.left_bytes:
            yield EtaShown(at_ms, *move.topic_partition, now_of.eta_s)


def _calls(journaled: Iterable[events.Event]) -> Iterator[Call]:
    """Every answer in the journal, with the time of the request where journaled."""
    asked_ms: int | None = None
    number = 0
    for event in journaled:
        if isinstance(event, events.SubmissionIntended | events.CancelIntended | events.ThrottleIntended):
            asked_ms = event.at_ms
            continue
        call = _call(event)
        if call is not None:
            number += 1
            yield replace(call, number=number, asked_ms=asked_ms)
            asked_ms = None


def _call(event: events.Event) -> Call | None:
    kind = _KINDS.get(kind_of(event))
    if kind is None:
        return None
    ok, refused, unknown, words = 1, 0, 0, tuple[str, ...]()
    match event:
        case events.MovesSubmitted() | events.MovesCancelled() | events.LeadersElected():
            ok = len(event.elected if isinstance(event, events.LeadersElected) else event.accepted)
            unknown = len(event.unknown) if isinstance(event, events.MovesSubmitted) else 0
            deferred = event.deferred if isinstance(event, events.MovesSubmitted) else ()
            words = tuple(f"{one.topic_partition}: {one.message}" for one in (*event.refused, *deferred))
            refused = len(words)
        case events.ThrottleSet() | events.ThrottleRestored():
            words = (*event.problems, *map(str, event.unwritten))
            ok, refused = int(not words), len(words)
        case events.ConfigsRead():
            ok, refused, words = len(event.values), len(event.problems), event.problems
        case events.MovesObserved():
            ok = len(event.observations)
        case events.ThrottleChecked():
            words = tuple(map(str, event.differ))
            refused, unknown = len(event.differ), len(event.unread)
        case events.MovesReplanned():
            words = tuple(f"{one.topic_partition}: {one.message}" for one in event.refused)
            ok, refused = len(event.targets), len(event.refused)
        case events.HealthObserved():
            ok = len(event.health.live)
        case events.Verified():
            words = event.findings
        case events.CallFailed():
            ok, refused, words = 0, 1, (event.message,)
    return Call(0, kind, None, event.at_ms, ok, refused, unknown, "; ".join(words) or None)


_KINDS = {
    events.MovesSubmitted.__name__: "submit moves",
    events.MovesCancelled.__name__: "cancel moves",
    events.LeadersElected.__name__: "elect leaders",
    events.ThrottleSet.__name__: "set throttle",
    events.ThrottleRestored.__name__: "restore throttle",
    events.ConfigsRead.__name__: "read settings",
    events.ThrottleChecked.__name__: "read throttle again",
    events.MovesObserved.__name__: "observe moves",
    events.MovesReplanned.__name__: "plan moves again",
    events.HealthObserved.__name__: "inspect the cluster",
    events.Verified.__name__: "verify",
    events.CallFailed.__name__: "failed call",
}


def _breaches(journaled: Iterable[events.Event]) -> Iterator[Breach]:
    """Each verdict from its first to its last event; a verdict with other figures is another breach."""
    open_since: dict[str, tuple[int, Verdict]] = {}
    for event in journaled:
        if not isinstance(event, events.VerdictsRecorded):
            continue
        said = {f"{verdict.guard} {verdict.seen}": verdict for verdict in event.verdicts}
        for key in [key for key in open_since if key not in said]:
            yield _breach(*open_since.pop(key), event.at_ms)
        for key, verdict in said.items():
            open_since.setdefault(key, (event.at_ms, verdict))
    for begun, verdict in open_since.values():
        yield _breach(begun, verdict, None)


def _breach(from_ms: int, verdict: Verdict, until_ms: int | None) -> Breach:
    return Breach(verdict.guard.value, verdict.reaction.value, verdict.seen, verdict.advice, from_ms, until_ms)


# The timeline.

RATES = (LEADER_THROTTLED_RATE, FOLLOWER_THROTTLED_RATE)
LOGGED_AT_MOST = 5_000
"""Lines of the log that are kept; the journal of a longer run has the rest."""


@dataclass(slots=True)
class _Timeline:
    """Collects the timeline, event by event."""

    marks: list[Mark] = field(default_factory=list)
    throttle: list[ThrottleStep] = field(default_factory=list)
    in_sync: list[InSync] = field(default_factory=list)
    log: list[LogLine] = field(default_factory=list)
    rates: dict[int, int | None] = field(default_factory=dict)
    out_of_sync: set[TopicPartition] = field(default_factory=set)
    phase: str = ""
    last_ms: int = 0
    was_stopped: bool = False
    verdicts: tuple[str, ...] = ()
    last_told: dict[str, events.Event] = field(default_factory=dict)

    @property
    def value(self) -> Timeline:
        log = tuple(self.log)
        left_out = max(0, len(log) - LOGGED_AT_MOST)
        return Timeline(tuple(self.marks), tuple(self.throttle), tuple(self.in_sync), log[:LOGGED_AT_MOST], left_out)

    def follow(self, event: events.Event, run: RunView) -> None:
        """Follow an event that the run has processed."""
        if isinstance(event, events.RunResumed) and not self.was_stopped:
            self.mark(self.last_ms, MarkKind.KILLED, "the process that executed the run ended without a word")
        for mark in marks(event):
            self.mark(event.at_ms, *mark)
        self.note_guards(event)
        self.note_throttle(event)
        self.note_in_sync(event, run)
        for sentence in new_sentences(event, self.last_told):
            self.log.append(LogLine(event.at_ms, sentence))
        if run.phase.value != self.phase:
            self.phase = run.phase.value
            self.log.append(LogLine(event.at_ms, f"the run is {self.phase}"))
        self.was_stopped = run.phase.value in {"paused", "done", "cancelled", "failed"}
        self.last_ms = event.at_ms

    def mark(self, at_ms: int, kind: MarkKind, text: str) -> None:
        self.marks.append(Mark(at_ms, kind, text))
        self.log.append(LogLine(at_ms, text))

    def note_guards(self, event: events.Event) -> None:
        """Add a mark where a guard gives a new verdict, and one where all guards pass again."""
        if not isinstance(event, events.VerdictsRecorded):
            return
        said = tuple(f"{verdict.guard}: {verdict.seen}" for verdict in event.verdicts)
        names = {one.partition(":")[0] for one in self.verdicts}
        for verdict in event.verdicts:
            if verdict.guard.value not in names:
                self.mark(event.at_ms, MarkKind.GUARD, str(verdict))
        if self.verdicts and not said:
            self.mark(event.at_ms, MarkKind.ALL_CLEAR, "no guard has anything to say any more")
        self.verdicts = said

    def note_throttle(self, event: events.Event) -> None:
        """Add the rates of brokers as they are set; if both directions differ, the lower rate counts."""
        if isinstance(event, events.ThrottleIntended):
            changed = [one for one in event.overrides if one.key.broker is not None and one.key.name in RATES]
            found: dict[int, int | None] = {}
            for one in changed:
                assert one.key.broker is not None
                rate = None if one.value is None else int(one.value)
                known = found.get(one.key.broker)
                found[one.key.broker] = rate if known is None else known if rate is None else min(known, rate)
            self.set_rates(event.at_ms, found)
        elif isinstance(event, events.ThrottleRestored):
            self.set_rates(event.at_ms, dict.fromkeys(self.rates))

    def set_rates(self, at_ms: int, rates: dict[int, int | None]) -> None:
        news = {broker: rate for broker, rate in rates.items() if self.rates.get(broker, -1) != rate}
        self.rates |= news
        self.throttle += [ThrottleStep(at_ms, broker, rate) for broker, rate in news.items()]
        for rate in dict.fromkeys(news.values()):
            brokers = [broker for broker, one in news.items() if one == rate]
            amount = "no limit of the run" if rate is None else format_amount(float(rate), "B/s")
            named = f"broker {brokers[0]}" if len(brokers) == 1 else f"{len(brokers)} brokers"
            self.log.append(LogLine(at_ms, f"throttle of {named}: {amount}"))

    def note_in_sync(self, event: events.Event, run: RunView) -> None:
        if isinstance(event, events.MovesObserved):
            before = len(self.out_of_sync)
            for seen in event.observations:
                record = run.records.get(seen.topic_partition)
                missing = record is not None and set(seen.replicas) - set(seen.isr) - set(record.move.receiving)
                (self.out_of_sync.add if missing else self.out_of_sync.discard)(seen.topic_partition)
            if len(self.out_of_sync) != before or not self.in_sync:
                self.in_sync.append(InSync(event.at_ms, len(self.out_of_sync)))
        elif isinstance(event, events.HealthObserved):
            health = event.health
            troubled = (health.under_replicated.count, health.under_min_isr.count, health.offline.count)
            self.in_sync.append(InSync(event.at_ms, len(self.out_of_sync), *troubled))
