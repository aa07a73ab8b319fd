"""What happened to a run, when: marks, its throttle as it was, replicas in sync, and a log in sentences. Pure.

An audit trail says how much arrived; this says what happened meanwhile, so that one explains the other.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from kreassign.executor.event_words import MarkKind, marks, sentences
from kreassign.executor.events import (
    Event,
    HealthObserved,
    MovesObserved,
    RunResumed,
    ThrottleIntended,
    ThrottleRestored,
    VerdictsRecorded,
)
from kreassign.executor.state import Machine, RunView
from kreassign.model import TopicPartition
from kreassign.model.amount import format_amount
from kreassign.model.throttle import FOLLOWER_THROTTLED_RATE, LEADER_THROTTLED_RATE

RATES = (LEADER_THROTTLED_RATE, FOLLOWER_THROTTLED_RATE)
LOGGED_AT_MOST = 5_000
"""So many lines of the log are kept; a longer run has them in its journal."""


@dataclass(frozen=True, slots=True)
class Mark:
    """Something that explains why a run went as it did."""

    at_ms: int
    kind: MarkKind
    text: str


@dataclass(frozen=True, slots=True)
class ThrottleStep:
    """From then on a broker might send and receive so much for the run; None for no limit."""

    at_ms: int
    broker: int
    bytes_per_s: int | None


@dataclass(frozen=True, slots=True)
class InSync:
    """How replicas were at a time. Of the run's own partitions and, where guards looked, of the whole cluster.

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
    """Everything that happened, each part in the order of time. `more_lines` of the log are left out."""

    marks: tuple[Mark, ...]
    throttle: tuple[ThrottleStep, ...]
    in_sync: tuple[InSync, ...]
    log: tuple[LogLine, ...]
    more_lines: int = 0


def timeline(events: Iterable[Event]) -> Timeline:
    """What these events, in this order, say."""
    follower = _Follower()
    for event in events:
        follower.follow(event)
    log = tuple(follower.log)
    return Timeline(
        tuple(follower.marks),
        tuple(follower.throttle),
        tuple(follower.in_sync),
        log[:LOGGED_AT_MOST],
        max(0, len(log) - LOGGED_AT_MOST),
    )


@dataclass(slots=True)
class _Follower:
    """Takes in one event after the other."""

    machine: Machine = field(default_factory=Machine)
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

    def follow(self, event: Event) -> None:
        if isinstance(event, RunResumed) and not self.was_stopped:
            self.mark(self.last_ms, MarkKind.KILLED, "the process that executed the run ended without a word")
        self.machine.replay(event)
        run = self.machine.view
        for mark in marks(event):
            self.mark(event.at_ms, *mark)
        self.note_guards(event)
        self.note_throttle(event)
        self.note_in_sync(event, run)
        for sentence in sentences(event):
            self.log.append(LogLine(event.at_ms, sentence))
        if run.phase.value != self.phase:
            self.phase = run.phase.value
            self.log.append(LogLine(event.at_ms, f"the run is {self.phase}"))
        self.was_stopped = run.phase.value in {"paused", "done", "cancelled", "failed"}
        self.last_ms = event.at_ms

    def mark(self, at_ms: int, kind: MarkKind, text: str) -> None:
        self.marks.append(Mark(at_ms, kind, text))
        self.log.append(LogLine(at_ms, text))

    def note_guards(self, event: Event) -> None:
        """A mark where a guard says what none said before, and one where all are content again."""
        if not isinstance(event, VerdictsRecorded):
            return
        said = tuple(f"{verdict.guard}: {verdict.seen}" for verdict in event.verdicts)
        names = {one.partition(":")[0] for one in self.verdicts}
        for verdict in event.verdicts:
            if verdict.guard.value not in names:
                self.mark(event.at_ms, MarkKind.GUARD, str(verdict))
        if self.verdicts and not said:
            self.mark(event.at_ms, MarkKind.ALL_CLEAR, "no guard has anything to say any more")
        self.verdicts = said

    def note_throttle(self, event: Event) -> None:
        """The rates of brokers as they are written; where both ways of a broker differ, the lower one counts."""
        if isinstance(event, ThrottleIntended):
            changed = [one for one in event.overrides if one.key.broker is not None and one.key.name in RATES]
            found: dict[int, int | None] = {}
            for one in changed:
                assert one.key.broker is not None
                rate = None if one.value is None else int(one.value)
                known = found.get(one.key.broker)
                found[one.key.broker] = rate if known is None else known if rate is None else min(known, rate)
            self.set_rates(event.at_ms, found)
        elif isinstance(event, ThrottleRestored):
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

    def note_in_sync(self, event: Event, run: RunView) -> None:
        if isinstance(event, MovesObserved):
            before = len(self.out_of_sync)
            for seen in event.observations:
                record = run.records.get(seen.topic_partition)
                missing = record is not None and set(seen.replicas) - set(seen.isr) - set(record.move.receiving)
                (self.out_of_sync.add if missing else self.out_of_sync.discard)(seen.topic_partition)
            if len(self.out_of_sync) != before or not self.in_sync:
                self.in_sync.append(InSync(event.at_ms, len(self.out_of_sync)))
        elif isinstance(event, HealthObserved):
            health = event.health
            troubled = (health.under_replicated.count, health.under_min_isr.count, health.offline.count)
            self.in_sync.append(InSync(event.at_ms, len(self.out_of_sync), *troubled))
