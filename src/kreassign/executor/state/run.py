"""State of a run besides its phase: its moves, its throttle, the health of the cluster.

Only the handlers of the table (`machine.py`) change these values, and only `machine.handle` changes the state. `Next`
is what a handler returns; `Row` and `Rows` are the table's rows, which each handler module contributes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any, NamedTuple

from kreassign.executor.client_guard import ClientWatch
from kreassign.executor.events import CallFailed, Event, is_answer
from kreassign.executor.guards import NAMED, GuardName, Health, Reaction, Verdict
from kreassign.executor.instructions import Instruction
from kreassign.executor.scheduling.limits import (
    DiskBudget,
    LogDirKey,
    PacedMove,
    Saturation,
    SaturationThreshold,
    named_log_dirs,
)
from kreassign.executor.scheduling.queue import Queue
from kreassign.executor.state.move import MoveRecord, NextAction
from kreassign.executor.state.phases import New, RunState
from kreassign.executor.state.setting import ThrottleLedger
from kreassign.executor.throttle_rates import BrokerTraffic
from kreassign.model import TopicPartition, TopicPartitionReplica
from kreassign.model.pace import NO_LIMITS, Pace
from kreassign.model.run import ACTIVE, IN_FLIGHT, MoveStatus, Operator
from kreassign.model.text import each_partition
from kreassign.model.throttle import NO_THROTTLE, ThrottleRates

# Index of unfinished moves: waiting, in flight, or still to be observed.
#
# Kept beside the records, so that the cost of a poll depends on the moves in flight, not on the length of the plan.

Records = dict[TopicPartition, MoveRecord]


@dataclass(slots=True)
class MoveIndex:
    """Three places; an unfinished move is in exactly one of them.

    `queue` has moves that a poll has shown untouched, `in_flight` those sent or in progress, `unsettled` planned ones
    that were not observed yet, or in an unexpected state.
    """

    queue: Queue = field(default_factory=Queue)
    in_flight: Records = field(default_factory=dict)
    unsettled: Records = field(default_factory=dict)

    @classmethod
    def unseen(cls, records: Iterable[MoveRecord]) -> MoveIndex:
        """Index before the first observation."""
        index = cls()
        for record in records:
            index.sort(record)
        return index

    def sort(self, record: MoveRecord, action: NextAction = NextAction.NOTHING) -> None:
        """Put a move into its place; a move at its end is in none."""
        name = record.name
        self.queue.remove(name)
        self.in_flight.pop(name, None)
        self.unsettled.pop(name, None)
        if record.status in IN_FLIGHT:
            self.in_flight[name] = record
        elif record.status is MoveStatus.PLANNED and action is NextAction.SUBMIT:
            self.queue.add(candidate(record))
        elif record.status is MoveStatus.PLANNED:
            self.unsettled[name] = record

    @property
    def destinations(self) -> set[int]:
        """Brokers that still have to get a copy."""
        seen = (record for place in (self.in_flight, self.unsettled) for record in place.values())
        return self.queue.destinations.union(broker for record in seen for broker in record.lagging)

    @property
    def named_log_dirs(self) -> dict[int, frozenset[str]]:
        """Named directories of those brokers whose copies all go into named directories."""
        seen = (record for place in (self.in_flight, self.unsettled) for record in place.values())
        return named_log_dirs((*self.queue.endpoints, *(left_of(record).endpoints for record in seen)))

    @property
    def to_observe(self) -> Iterator[TopicPartition]:
        """Moves that may have progressed, or of which nothing is known."""
        replica_locations = (self.in_flight, self.unsettled)
        return (name for place in replica_locations for name, record in place.items() if record.status in ACTIVE)


def candidate(record: MoveRecord) -> PacedMove:
    """A move as pacing sees it: new replicas copy from the leader."""
    move = record.step
    return PacedMove(
        record.name,
        move.size_bytes,
        record.source,
        move.adding,
        tuple((target.broker, target.path) for target in move.log_dirs if target.broker in move.receiving),
        write_bytes_per_s=move.write_bytes_per_s,
        is_urgent=move.is_urgent,
        left_bytes=sum(record.left_bytes.values()),
    )


def left_of(record: MoveRecord) -> PacedMove:
    """Like `candidate` for a move in flight: copies that lag, with the bytes left of the largest; all if unknown."""
    whole = candidate(record)
    left = max(record.left_bytes.values(), default=0)
    destinations = tuple(broker for broker in whole.destinations if broker in record.lagging)
    log_dirs = tuple(place for place in whole.log_dirs if place[0] in record.lagging)
    return replace(whole, size_bytes=left, destinations=destinations, log_dirs=log_dirs)


def startable(record: MoveRecord) -> PacedMove:
    """A move as it starts: all of it, or where it was sent before, what it still lacks."""
    return left_of(record) if record.status is MoveStatus.SENT else candidate(record)


def left_by_destination(records: Iterable[MoveRecord]) -> dict[int, int]:
    """Bytes still to come in, by broker, for all copies of these moves."""
    left: Counter[int] = Counter()
    for record in records:
        left.update(record.left_bytes)
    return dict(left)


def left_by_log_dir(records: Iterable[MoveRecord], places: Mapping[TopicPartitionReplica, str]) -> dict[LogDirKey, int]:
    """Bytes still to come in, by log directory, for the copies of these moves that are in one, or go to a named one."""
    left: Counter[LogDirKey] = Counter()
    for record in records:
        named = {target.broker: target.path for target in record.step.log_dirs}
        for broker, size_bytes in record.left_bytes.items():
            path = named.get(broker) or places.get(TopicPartitionReplica(broker, *record.name))
            if path is not None:
                left[broker, path] += size_bytes
    return dict(left)


# Rates of the copies of a run, measured from its polls, and the bytes in flight that keep a broker busy.
#
# A broker must not run dry before the next poll, or it stands idle while moves wait; more in flight only makes all its
# copies slower. The measured rate covers whatever limits a broker: a throttle, a network, a disk.

MEASURED_OVER_MS = 5_000
"""Window in which the rate of the fastest broker is measured."""

COPIES = 2
"""Of two copies that end one after the other, one continues at the full rate until the next poll."""

POLLS = 4
"""Polls that the bytes in flight last for: sizes differ, and a copy may wait for its other end."""

LEAST_BYTES = 128_000_000
"""Bytes in flight while nothing has been measured."""

FADING = 0.9
"""Share of the largest progress between two polls that counts at the next one: rates may fall."""


@dataclass(slots=True)
class CopySpeed:
    """Recent throughput of brokers.

    `fastest_bytes_per_s` is what the fastest broker received, None before the first measurement; `most_done_bytes` the
    most that a broker sent or received between two polls.
    """

    fastest_bytes_per_s: float | None = None
    most_done_bytes: float = 0.0
    _at_ms: int | None = None
    _received: dict[int, int] = field(default_factory=dict)
    _done: Counter[tuple[str, int]] = field(default_factory=Counter)
    _polls: int = 0

    def measure(self, records: Iterable[MoveRecord], at_ms: int) -> None:
        """Measure the progress of all moves."""
        if self._at_ms is not None and at_ms - self._at_ms < MEASURED_OVER_MS:
            return
        received: Counter[int] = Counter()
        for record in records:
            received.update(record.bytes_received)
        if self._at_ms is not None:
            gain = max(
                (size_bytes - self._received.get(broker, 0) for broker, size_bytes in received.items()), default=0
            )
            if gain > 0:
                self.fastest_bytes_per_s = gain * 1000 / (at_ms - self._at_ms)
        self._at_ms, self._received = at_ms, received

    def note_poll(self, before: Iterable[tuple[MoveRecord, dict[int, int]]], *, has_progress: bool = True) -> None:
        """Add what was copied since the last poll, given the bytes that each broker had received of each move then.

        After polls without progress, a poll with progress covers all of them; each counts for its share.
        """
        self._polls += 1
        for record, had in before:
            source, has = record.source, record.bytes_received
            for broker in record.move.adding:
                gained = max(0, has[broker] - had.get(broker, 0))
                self._done["source", source] += gained
                self._done["destination", broker] += gained
        if has_progress:
            most = max(self._done.values(), default=0) / self._polls
            self.most_done_bytes = max(FADING**self._polls * self.most_done_bytes, most)
            self._done, self._polls = Counter(), 0

    def saturation(self, in_flight: Iterable[PacedMove]) -> Saturation:
        """Brokers that have enough to do, given what is in flight."""
        enough = SaturationThreshold(COPIES, max(LEAST_BYTES, int(POLLS * self.most_done_bytes)))
        return Saturation.of(enough, in_flight)


# The run and its parts.


class WindDown(StrEnum):
    """Treatment of moves in flight in a cancelled run; nothing else is started."""

    FINISH = "finish"  # they finish
    CANCEL = "cancel"  # they are cancelled (KIP-455)


@dataclass(frozen=True, slots=True)
class RunIdentity:
    """Facts fixed at the start of the run, or when another process resumed it."""

    run_id: str = ""
    cluster_id: str = ""
    started_ms: int = 0
    plan_id: str = ""
    operators: tuple[Operator, ...] = ()
    """Operators who started and resumed it, each once."""
    operator: Operator | None = None
    """The present operator."""
    reactions: Mapping[GuardName, Reaction] = field(default_factory=dict)
    """Reaction of each guard that is on."""
    allows_producer_outage: bool = False
    """True if the operator consented to moves while which producers with acks=all are refused."""
    journal_to: str | None = None
    """Where its journal is kept beside its own place; None for nowhere."""
    undoes: str | None = None
    """Id of the run that it rolls back."""

    def led_by(self, operator: Operator | None) -> RunIdentity:
        """Return a copy with the operator of the run from now on."""
        new = () if operator is None or operator in self.operators else (operator,)
        return replace(self, operator=operator, operators=(*self.operators, *new))


@dataclass(frozen=True, slots=True)
class Control:
    """Settings that operators, guards and the deadline may change during the run."""

    rates: ThrottleRates = NO_THROTTLE
    pace: Pace = NO_LIMITS
    held_by: str = ""
    """Name of the person or program that lets no move start; empty if none."""
    wind_down: WindDown | None = None
    wants_rollback: bool = False
    replans: bool = False
    """True if moves whose destination is lost get another one."""
    avoid: tuple[int, ...] = ()
    """Brokers that are no such other destination."""
    lost_after_ms: int | None = None
    """How long a destination is down until it is lost; None for never, unless the run replans."""
    last_request: int = 0
    """Number of the last request from another process that was accepted."""
    lease: str = ""
    """State of the lease of its cluster, in words; "" without one."""
    has_had_lease: bool = False
    """True once the run has had the lease: from then on it changes nothing without."""

    @property
    def is_held(self) -> bool:
        """True while somebody lets no move start."""
        return bool(self.held_by)


@dataclass(slots=True)
class Moves:
    """All moves of the plan, and which of them wait or are in flight."""

    records: dict[TopicPartition, MoveRecord] = field(default_factory=dict)
    index: MoveIndex = field(default_factory=MoveIndex)
    speed: CopySpeed = field(default_factory=CopySpeed)
    observed_ms: int = 0
    absent: tuple[int, ...] = ()
    """Brokers that get copies and were down at the last observation."""
    outlook: tuple[str, ...] = ()
    """Waits, and what does not fit into the schedule, as of the last poll."""

    @property
    def active(self) -> tuple[MoveRecord, ...]:
        """Moves that have not ended."""
        return tuple(record for record in self.records.values() if record.status in ACTIVE)

    @property
    def in_flight(self) -> tuple[MoveRecord, ...]:
        """Moves that were sent and have not ended: they go on whether the run observes them or not."""
        return tuple(record for record in self.index.in_flight.values() if record.status in IN_FLIGHT)

    @property
    def under_way(self) -> tuple[MoveRecord, ...]:
        """Moves in flight without those that the cluster refused for now: these copy nothing until sent again."""
        return tuple(record for record in self.in_flight if not record.is_waiting)

    def copying_with(self, starting: Iterable[TopicPartition]) -> tuple[MoveRecord, ...]:
        """Moves in flight and these that start, each once: some of these may have been sent before."""
        named = {record.name: record for record in self.in_flight}
        return tuple((named | {name: self.records[name] for name in starting}).values())

    @property
    def are_left(self) -> bool:
        """True if any move has not ended."""
        return any(record.status in ACTIVE for record in self.records.values())


@dataclass(slots=True)
class GuardBreach:
    """Verdict of a guard, given from `from_ms` to `last_ms`; over since `until_ms`, None if not."""

    verdict: Verdict
    from_ms: int
    last_ms: int
    until_ms: int | None = None

    def told(self, *, is_going_on: bool, ahead_ms: int = 0) -> str:
        """Describe the breach; a past one carries its start and end."""
        if self.until_ms is not None:
            over = f"over, from {time_of_day(self.from_ms + ahead_ms)} to {time_of_day(self.until_ms + ahead_ms)} UTC"
            return f"{self.verdict.guard} ({over}): {self.verdict.seen}"
        if not is_going_on:
            checked = time_of_day(self.last_ms + ahead_ms)
            return f"{self.verdict.guard} (as last checked, {checked} UTC): {self.verdict.seen}"
        return str(self.verdict)


@dataclass(slots=True)
class PassingProblem:
    """A problem since `from_ms`, over at `until_ms` (None: not over), counted `times`.

    The text about a partition in `of` goes on after its name, and is that of all partitions with the same reason.
    One for all has their names in `partitions`; with `differ` they had it at different times between these two.
    """

    text: str
    from_ms: int
    until_ms: int | None = None
    times: int = 1
    of: TopicPartition | None = None
    differ: bool = False
    partitions: tuple[TopicPartition, ...] = ()

    def told(self, *, is_going_on: bool, ahead_ms: int = 0) -> str:
        """Describe the problem; a past one, or one last seen by an earlier process, carries its times."""
        begun = time_of_day(self.from_ms + ahead_ms)
        if self.until_ms is not None:
            over = time_of_day(self.until_ms + ahead_ms)
            if self.differ:
                often = f"up to {self.times} times" if self.times > 1 else "at times"
                return f"over, {often} between {begun} and {over} UTC: {self.text}"
            often = f"{self.times} times " if self.times > 1 else ""
            return f"over, {often}from {begun} to {over} UTC: {self.text}"
        since = f"since {begun} UTC{' or later' if self.differ else ''}"
        return self.text if is_going_on else f"when the run was left, {since}: {self.text}"


def one_per_reason(problems: Iterable[PassingProblem]) -> Iterator[PassingProblem]:
    """Join those of single partitions for the same reason: a thousand of them are one problem."""
    joined: dict[tuple[str, bool], list[PassingProblem]] = {}
    for problem in problems:
        if problem.of is None:
            yield problem
        else:
            joined.setdefault((problem.text, problem.until_ms is None), []).append(problem)
    for (text, is_open), alike in joined.items():
        names = tuple(problem.of for problem in alike if problem.of is not None)
        yield PassingProblem(
            each_partition(names, NAMED, text),
            min(problem.from_ms for problem in alike),
            None if is_open else max(problem.until_ms or 0 for problem in alike),
            max(problem.times for problem in alike),
            differ=len({(one.from_ms, one.until_ms, is_open or one.times) for one in alike}) > 1,
            partitions=names,
        )


def time_of_day(at_ms: int) -> str:
    """Hours, minutes and seconds in UTC."""
    return f"{datetime.fromtimestamp(at_ms / 1000, tz=UTC):%H:%M:%S}"


@dataclass(slots=True)
class HealthWatch:
    """Findings of the health checks."""

    first: Health | None = None
    checked_ms: int | None = None
    verdicts: tuple[Verdict, ...] = ()
    """Verdicts of the guards at the last check."""
    breaches: list[GuardBreach] = field(default_factory=list)
    """All verdicts so far, including past ones."""
    absent_since_ms: dict[int, int] = field(default_factory=dict)
    """Destinations that are down, and since when."""
    lost: tuple[int, ...] = ()
    """Destinations that have been down for so long that nothing more is copied to them."""
    down: frozenset[int] = frozenset()
    """Destinations that were down at the last check: nothing is started to them."""
    closed: frozenset[int] = frozenset()
    """Brokers that the guard `cordoned` named at the last check, if it holds: nothing is copied to them."""
    refused: frozenset[int] = frozenset()
    """Brokers, closed or not, that Kafka takes in no changed list."""
    to_lead_nothing: frozenset[int] = frozenset()
    """Brokers in maintenance, if the guard `cordoned` holds: no list that gives them leadership is sent."""
    replaced: frozenset[int] = frozenset()
    """Brokers whose moves were planned again: the run goes on without them whenever they are down."""
    disk_budget: DiskBudget = field(default_factory=lambda: DiskBudget({}))
    """Bytes that destinations can still take, as of the last check; empty before the first one."""
    suspected: frozenset[GuardName] = frozenset()
    """Guards that end the run if the next inspection shows the same as the last one."""
    stuck: tuple[TopicPartition, ...] = ()
    """Moves without space on disks while nothing is in flight that could free some."""
    silent_since_ms: int | None = None
    """Time since when the cluster does not answer; None if it does."""

    def note_silence(self, event: Event) -> None:
        """Begin a silence with the call that failed first, and end it with an answer."""
        if isinstance(event, CallFailed):
            if self.silent_since_ms is None:
                self.silent_since_ms = event.at_ms if event.asked_ms is None else event.asked_ms
        elif is_answer(event):
            self.silent_since_ms = None


@dataclass(slots=True)
class TrafficMeasures:
    """Measurements for a throttle that adapts to the traffic."""

    brokers: dict[int, tuple[int, BrokerTraffic]] = field(default_factory=dict)
    """Traffic of each broker besides the moves, and when it was measured."""
    writes: dict[TopicPartition, float] = field(default_factory=dict)
    """Last measured write rates of copied partitions, in bytes per second."""
    measured_ms: int | None = None


@dataclass(slots=True)
class Problems:
    """Problems to report to operators, and findings of the verification."""

    noted: dict[str, dict[TopicPartition, None]] = field(default_factory=dict)
    """Permanent facts, in the past tense, each with the partitions that it is about, none if it is about no single one.
    """
    passing: dict[str, dict[str, PassingProblem]] = field(default_factory=dict)
    """Problems that may pass, by kind and text."""
    unset: dict[int, str] = field(default_factory=dict)
    """Reason for each broker without a throttle for now."""
    unrestored: tuple[str, ...] = ()
    """Why settings could not be restored; empty once they are."""
    unelected: tuple[TopicPartition, ...] = ()
    """Partitions whose preferred leaders could not be elected, for a run that is resumed."""
    findings: tuple[str, ...] = ()


@dataclass(slots=True)
class Run:
    """One run."""

    state: RunState = field(default_factory=New)
    identity: RunIdentity = field(default_factory=RunIdentity)
    control: Control = field(default_factory=Control)
    moves: Moves = field(default_factory=Moves)
    throttle: ThrottleLedger = field(default_factory=ThrottleLedger)
    health: HealthWatch = field(default_factory=HealthWatch)
    traffic: TrafficMeasures = field(default_factory=TrafficMeasures)
    clients: ClientWatch = field(default_factory=ClientWatch)
    problems: Problems = field(default_factory=Problems)
    wall_ahead_ms: int = 0
    """Offset of the wall clock from the time of the events, in ms. Only hours of the day use it."""

    @property
    def present_rates(self) -> ThrottleRates:
        """Its throttle, as far as it is slowed for clients now."""
        return self.control.rates.slowed(self.clients.backoff.percent)

    def note(self, problem: str, *of: TopicPartition) -> None:
        """Record a fact once; it is permanent, and worded in the past tense. It goes on after the name of these."""
        self.problems.noted.setdefault(problem, {}).update(dict.fromkeys(of))

    def note_for_good(self, kind: str, problems: Iterable[str]) -> None:
        """Record the problems that ended the run: they do not pass any more."""
        self.problems.passing.pop(kind, None)
        for problem in problems:
            self.note(problem)

    def tell(self, kind: str, at_ms: int, *texts: str, of: TopicPartition | None = None) -> None:
        """Set the present problems of a kind, and of a partition; earlier ones that are not among them are over."""
        kind = kind if of is None else f"{kind} {of}"
        if not texts and kind not in self.problems.passing:
            return
        known = self.problems.passing.setdefault(kind, {})
        for text, problem in known.items():
            if problem.until_ms is None and text not in texts:
                problem.until_ms = at_ms
        for text in texts:
            # What fails while the cluster is silent began with the silence, whenever it was tried.
            from_ms = at_ms if self.health.silent_since_ms is None else min(at_ms, self.health.silent_since_ms)
            problem = known.setdefault(text, PassingProblem(text, from_ms, at_ms, 0, of))
            if problem.until_ms is not None:
                problem.until_ms, problem.times = None, problem.times + 1


# Rows of the table: the handler of an event in a state, and the states to which it may lead.


class Next(NamedTuple):
    """The next state, and the instructions to execute in it, in order."""

    state: RunState
    instructions: tuple[Instruction, ...] = ()


Handler = Callable[[Run, Any, Any], Next]
"""Takes the run, its state and the event. Changes what outlives the state; returns, without setting, the next state."""


class Row(NamedTuple):
    """A handler, and the states to which it may lead."""

    handler: Handler
    leads_to: frozenset[type[RunState]]


Key = tuple[type[RunState], type[Event]]
Rows = Mapping[Key, Row]


def row(handler: Handler, *leads_to: type[RunState]) -> Row:
    """Row that may lead to these states."""
    return Row(handler, frozenset(leads_to))
