"""Hold what a run knows beside its present state: its moves, its throttle, the health of the cluster.

Only the handlers of the table (`machine.py`) change these values, and only `machine.handle` changes the state. `Next`
is what a handler returns; `Row` and `Rows` are the table's rows, which each handler module contributes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any, NamedTuple

from kreassign.executor.events import Event, Operator, PlannedMove
from kreassign.executor.guards import GuardName, Health, Reaction, Verdict
from kreassign.executor.instructions import Instruction
from kreassign.executor.scheduling import NO_LIMITS, Candidate, DiskBudget, Pace, Queue, Saturation, SaturationThreshold
from kreassign.executor.scheduling.limits import LogDirKey, named_log_dirs
from kreassign.executor.state.move import ACTIVE, IN_FLIGHT, MoveRecord, MoveStatus, NextAction
from kreassign.executor.state.phases import New, RunState
from kreassign.executor.throttle_ledger import ConfigKey, ConfigOverride, ConfigValue
from kreassign.executor.throttle_rates import NO_THROTTLE, BrokerTraffic, ThrottleRates
from kreassign.model import ConfigResource, TopicPartition

# The index of unfinished moves: waiting, in flight, or still to be observed.
#
# Kept beside the records, so that the cost of a poll depends on the moves in flight, not on the length of the plan.

Records = dict[TopicPartition, MoveRecord]


@dataclass(slots=True)
class MoveIndex:
    """Three places; an unfinished move is in exactly one of them.

    `queue` has what a poll has shown untouched, `in_flight` what was sent or is under way, `unsettled` what is planned
    and was not seen yet, or was strange.
    """

    queue: Queue = field(default_factory=Queue)
    in_flight: Records = field(default_factory=dict)
    unsettled: Records = field(default_factory=dict)

    @classmethod
    def unseen(cls, records: Iterable[MoveRecord]) -> MoveIndex:
        """Before any of them was observed."""
        index = cls()
        for record in records:
            index.sort(record)
        return index

    def sort(self, record: MoveRecord, action: NextAction = NextAction.NOTHING) -> None:
        """Put a move where it belongs now; one at its end is nowhere."""
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
        """Of the brokers all of whose copies go into directories that are named: those directories."""
        seen = (record for place in (self.in_flight, self.unsettled) for record in place.values())
        return named_log_dirs((*self.queue.endpoints, *(left_of(record).endpoints for record in seen)))

    @property
    def to_observe(self) -> Iterator[TopicPartition]:
        """Moves that may have gone on, or of which nothing is known."""
        replica_locations = (self.in_flight, self.unsettled)
        return (name for place in replica_locations for name, record in place.items() if record.status in ACTIVE)


def candidate(record: MoveRecord) -> Candidate:
    """What pacing wants to know of a move: new replicas copy from the leader."""
    move = record.step
    return Candidate(
        record.name,
        move.size_bytes,
        record.source,
        move.adding,
        _log_dirs(move),
        write_bytes_per_s=move.write_bytes_per_s,
        is_urgent=move.is_urgent,
        left_bytes=sum(record.left_bytes.values()),
    )


def left_of(record: MoveRecord) -> Candidate:
    """The same of a move in flight: the copies that lag, with what is left of the largest; all if unknown."""
    whole = candidate(record)
    left = max(record.left_bytes.values(), default=0)
    destinations = tuple(broker for broker in whole.destinations if broker in record.lagging)
    log_dirs = tuple(place for place in whole.log_dirs if place[0] in record.lagging)
    return replace(whole, size_bytes=left, destinations=destinations, log_dirs=log_dirs)


def left_by_destination(records: Iterable[MoveRecord]) -> dict[int, int]:
    """Bytes still to come in, by broker, for all copies of these moves."""
    left: Counter[int] = Counter()
    for record in records:
        left.update(record.left_bytes)
    return dict(left)


def _log_dirs(move: PlannedMove) -> tuple[LogDirKey, ...]:
    return tuple((target.broker, target.path) for target in move.log_dirs if target.broker in move.receiving)


# Rates of the copies of a run, measured from its polls, and from them the bytes in flight that keep a broker busy.
#
# A broker must not run dry before the next poll, or it stands idle while moves wait; more in flight only makes all its
# copies slower. The measured rate covers whatever limits a broker: a throttle, a network, a disk.

MEASURED_OVER_MS = 5_000
"""The rate of the fastest broker is measured over this long, again and again."""

COPIES = 2
"""Of two copies that end one after the other, one goes on at the full rate until the next poll."""

POLLS = 4
"""What is in flight lasts for so many polls: sizes differ, and a copy may wait for its other end."""

LEAST_BYTES = 128_000_000
"""Where nothing has been measured yet."""

FADING = 0.9
"""Of the most that was ever done between two polls, so much counts at the next one: rates may fall."""


@dataclass(slots=True)
class CopySpeed:
    """What brokers got done lately.

    `fastest_bytes_per_s` is what the fastest one received, None before anything was measured; `most_done_bytes` the
    most that one sent or received between two polls.
    """

    fastest_bytes_per_s: float | None = None
    most_done_bytes: float = 0.0
    _at_ms: int | None = None
    _received: dict[int, int] = field(default_factory=dict)
    _done: Counter[tuple[str, int]] = field(default_factory=Counter)
    _polls: int = 0

    def measure(self, records: Iterable[MoveRecord], at_ms: int) -> None:
        """Take in how far all moves are."""
        if self._at_ms is not None and at_ms - self._at_ms < MEASURED_OVER_MS:
            return
        received: dict[int, int] = {}
        for record in records:
            for broker, size_bytes in record.bytes_received.items():
                received[broker] = received.get(broker, 0) + size_bytes
        if self._at_ms is not None:
            gain = max(
                (size_bytes - self._received.get(broker, 0) for broker, size_bytes in received.items()), default=0
            )
            if gain > 0:
                self.fastest_bytes_per_s = gain * 1000 / (at_ms - self._at_ms)
        self._at_ms, self._received = at_ms, received

    def note_poll(self, before: Iterable[tuple[MoveRecord, dict[int, int]]], *, has_progress: bool = True) -> None:
        """Take in what was copied since the poll before, given what each broker had received of each move then.

        After polls without progress, one that has it shows what was done in all of them; each did its part.
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

    def saturation(self, in_flight: Iterable[Candidate]) -> Saturation:
        """Which brokers have enough to do, given what is in flight."""
        enough = SaturationThreshold(COPIES, max(LEAST_BYTES, int(POLLS * self.most_done_bytes)))
        return Saturation.of(enough, in_flight)


# The run and its parts.


class WindDown(StrEnum):
    """How a run that was cancelled treats moves in flight; nothing else is started."""

    FINISH = "finish"  # they go on to their end
    CANCEL = "cancel"  # they are cancelled (KIP-455)


@dataclass(slots=True)
class RunIdentity:
    """What is given once, when the run starts."""

    run_id: str = ""
    cluster_id: str = ""
    started_ms: int = 0
    plan_id: str = ""
    operators: tuple[Operator, ...] = ()
    """Who started it, then who resumed it, each once."""
    operator: Operator | None = None
    """Who executes it now."""
    reactions: dict[GuardName, Reaction] = field(default_factory=dict)
    """What each guard that is on leads to."""
    rereads_throttle: bool = False
    """Whether the throttle is read again before every batch of moves."""
    guards_to_the_end: bool = False
    """Whether health is checked also while a cancelled run lets its moves finish."""
    rereads_first: bool = False
    """Whether a throttle that was left is read before any of it is set again."""
    allows_producer_outage: bool = False
    """Whether the operator consented to moves while which producers with acks=all are refused."""

    def note(self, operator: Operator | None) -> None:
        """Remember who executes the run from now on."""
        self.operator = operator
        if operator is not None and operator not in self.operators:
            self.operators = (*self.operators, operator)


@dataclass(slots=True)
class Control:
    """What operators, guards and the deadline may change while the run goes on."""

    rates: ThrottleRates = NO_THROTTLE
    pace: Pace = NO_LIMITS
    is_held: bool = False
    """Whether an operator asked to start nothing more for now."""
    wind_down: WindDown | None = None
    wants_rollback: bool = False
    replans: bool = False
    """Whether moves whose destination is lost get another one."""
    last_request: int = 0
    """Number of the last request from another process that was taken in."""
    lease: str = ""
    """How the run stands with the lease of its cluster, in words; "" where nobody asked for one."""


@dataclass(slots=True)
class Moves:
    """Every move of the plan, and which of them wait or are in flight."""

    records: dict[TopicPartition, MoveRecord] = field(default_factory=dict)
    index: MoveIndex = field(default_factory=MoveIndex)
    speed: CopySpeed = field(default_factory=CopySpeed)
    observed_ms: int = 0
    absent: tuple[int, ...] = ()
    """Brokers that get copies and were not live when the moves were last observed."""
    outlook: tuple[str, ...] = ()
    """What the run waits for, and what does not fit into its schedule, as of the last poll."""

    @property
    def active(self) -> tuple[MoveRecord, ...]:
        """Moves that have not ended."""
        return tuple(record for record in self.records.values() if record.status in ACTIVE)

    @property
    def in_flight(self) -> tuple[MoveRecord, ...]:
        """Moves that were sent and have not ended: they go on whether the run observes them or not."""
        return tuple(record for record in self.index.in_flight.values() if record.status in IN_FLIGHT)

    @property
    def are_left(self) -> bool:
        """Whether any move has not ended."""
        return any(record.status in ACTIVE for record in self.records.values())


@dataclass(frozen=True, slots=True)
class Doubt:
    """A setting was read with another value than ours, first at `since_ms`.

    It `is_foreign` once it was read so again later than a stale answer can be: someone else has changed it.
    """

    found: ConfigValue
    since_ms: int
    is_foreign: bool = False


@dataclass(slots=True)
class ThrottleLedger:
    """Which settings the run changed, and what is still to be set or restored."""

    live_brokers: tuple[int, ...] = ()
    before: dict[ConfigKey, str | None] = field(default_factory=dict)
    """What every setting of the throttle was before this run changed it."""
    overrides: dict[ConfigKey, ConfigOverride] = field(default_factory=dict)
    """Every setting that this run ever changed."""
    pending: dict[ConfigKey, ConfigOverride] = field(default_factory=dict)
    """Those that are not known to have their old value again."""
    awaited: frozenset[int] = frozenset()
    """Brokers that are down and whose rates are set when they are back."""
    unset: frozenset[ConfigResource] = frozenset()
    """Topics and brokers that may not have taken their last settings; they are set again."""
    unset_since_ms: int | None = None
    in_force: set[ConfigKey] = field(default_factory=set)
    """Those pending of which the cluster has taken a value of ours: the one from before the run is no more explained
    by what the run did than any other."""
    doubts: dict[ConfigKey, Doubt] = field(default_factory=dict)
    """Pending settings that were read with a value that is not ours."""
    told: dict[ConfigKey, ConfigValue] = field(default_factory=dict)
    """What was said of those that others have changed, so that it is neither said twice nor never."""
    checked_ms: int | None = None
    """When the throttle was last read again."""
    unread: tuple[ConfigResource, ...] = ()
    """Whose settings could not be read then, so that nothing is started."""
    is_lost: bool = False
    """Whether others had changed the throttle of what was in flight when it ended."""
    listed: dict[ConfigKey, set[str]] = field(default_factory=dict)
    """Every entry that this run ever added to a list."""
    rated: dict[ConfigKey, set[str]] = field(default_factory=dict)
    """Every value that this run ever gave a rate."""
    originals: dict[ConfigKey, str | None] = field(default_factory=dict)
    """What settings shall be at the end that others had changed before the run."""
    adopted: dict[ConfigKey, str | None] = field(default_factory=dict)
    """What was left behind by others, and is this run's to restore."""
    is_alongside: bool = False
    """Whether moves of others go on under the rates of this run."""
    left: set[ConfigKey] = field(default_factory=set)
    """Rates that stay at the end, because moves of others still go on."""
    carried: set[ConfigKey] = field(default_factory=set)
    """Settings of brokers that are down that nobody can read back: a controller restored them, or they are lost."""
    due: set[ConfigKey] = field(default_factory=set)
    """Pending settings that are set again, whatever they were set to before: the run was resumed, or someone asked for
    that. Nothing starts before."""
    unseen: set[ConfigKey] = field(default_factory=set)
    """Pending settings that nobody has read since the run was resumed; they are read before they are set again."""
    is_asked_for: bool = False
    """Whether someone asked for a throttle meanwhile: then what others have changed is told, and set again."""
    was_found_changed: bool = False
    """Whether others had changed it when the run was resumed."""

    def forget(self, brokers: Collection[int]) -> tuple[ConfigOverride, ...]:
        """Restore nothing any more on these brokers; what stays there as the run set it."""
        lost = tuple(override for key, override in self.pending.items() if key.broker in brokers)
        for override in lost:
            self.close(override.key)
            self.carried.add(override.key)
        self.awaited = self.awaited.difference(brokers)
        return lost

    def close(self, key: ConfigKey) -> None:
        """Nothing is to be set or restored here any more."""
        del self.pending[key]
        self.doubts.pop(key, None)
        for keys in (self.in_force, self.due, self.unseen):
            keys.discard(key)

    def close_gone(self, topics: Collection[ConfigResource]) -> None:
        """Their settings went with these topics; another one of such a name is none of our business."""
        for key in [key for key in self.pending if key.resource in topics]:
            self.close(key)

    @property
    def adopted_lists(self) -> dict[ConfigKey, str | None]:
        """Lists that others left behind; their entries stay until the end."""
        return {key: value for key, value in self.adopted.items() if key.broker is None}

    @property
    def ever_set(self) -> tuple[ConfigOverride, ...]:
        """Every setting that this run changed, with all that it ever added to lists."""
        return tuple(
            one
            if self.listed.get(key, set()) <= one.our_items
            else replace(one, unconfirmed=(",".join(sorted(self.listed[key])),))
            for key, one in self.overrides.items()
        )

    def with_every_rate(self, override: ConfigOverride) -> ConfigOverride:
        """The override of a rate, of which any value that this run ever gave it may still be there."""
        earlier = self.rated.get(override.key, set()).difference(override.possible_values)
        return replace(override, unconfirmed=(*override.unconfirmed, *sorted(earlier))) if earlier else override

    @property
    def residue(self) -> tuple[str, ...]:
        """A sentence per setting that still has a value of the run."""
        return tuple(str(override) for override in self.pending.values() if override.is_open)


@dataclass(slots=True)
class GuardBreach:
    """What a guard said, first at `from_ms` and last at `last_ms`; from `until_ms` on it said so no more."""

    verdict: Verdict
    from_ms: int
    last_ms: int
    until_ms: int | None = None

    def told(self, *, is_going_on: bool, ahead_ms: int = 0) -> str:
        """A sentence in which what is over does not look like what is so now."""
        if self.until_ms is not None:
            over = f"over, from {time_of_day(self.from_ms + ahead_ms)} to {time_of_day(self.until_ms + ahead_ms)} UTC"
            return f"{self.verdict.guard} ({over}): {self.verdict.seen}"
        if not is_going_on:
            checked = time_of_day(self.last_ms + ahead_ms)
            return f"{self.verdict.guard} (as last checked, {checked} UTC): {self.verdict.seen}"
        return str(self.verdict)


@dataclass(slots=True)
class PassingProblem:
    """Something that was so first at `from_ms`, and is so still, or was last until `until_ms`; so many `times`."""

    text: str
    from_ms: int
    until_ms: int | None = None
    times: int = 1

    def told(self, *, is_going_on: bool, ahead_ms: int = 0) -> str:
        """The same: what is over, or was so when nobody looked any more, does not look like what is so now."""
        begun = time_of_day(self.from_ms + ahead_ms)
        if self.until_ms is not None:
            often = f"{self.times} times " if self.times > 1 else ""
            return f"over, {often}from {begun} to {time_of_day(self.until_ms + ahead_ms)} UTC: {self.text}"
        return self.text if is_going_on else f"when the run was left, since {begun} UTC: {self.text}"


def time_of_day(at_ms: int) -> str:
    """Hours, minutes and seconds in UTC."""
    return f"{datetime.fromtimestamp(at_ms / 1000, tz=UTC):%H:%M:%S}"


@dataclass(slots=True)
class HealthWatch:
    """What health checks found."""

    first: Health | None = None
    checked_ms: int | None = None
    verdicts: tuple[Verdict, ...] = ()
    """What the guards say since the last check."""
    breaches: list[GuardBreach] = field(default_factory=list)
    """Everything that they ever said, also what is over."""
    absent_since_ms: dict[int, int] = field(default_factory=dict)
    """Destinations that are down, and since when."""
    lost: tuple[int, ...] = ()
    """Those that have been down for so long that nothing more is copied to them."""
    replaced: frozenset[int] = frozenset()
    """Brokers whose moves were planned again: whenever they are down, the run goes on without them."""
    disk_budget: DiskBudget = field(default_factory=lambda: DiskBudget({}))
    """Bytes that destinations can still take, as of the last check; nothing is known before the first one."""
    stuck: tuple[TopicPartition, ...] = ()
    """Moves without space on disks while nothing is in flight that could free some."""


@dataclass(slots=True)
class TrafficMeasures:
    """What was measured for a throttle that adapts to the traffic."""

    brokers: dict[int, tuple[int, BrokerTraffic]] = field(default_factory=dict)
    """What each broker carries besides the moves, and when that was measured."""
    writes: dict[TopicPartition, float] = field(default_factory=dict)
    """Bytes per second that producers were last seen to write to partitions that are copied."""
    measured_ms: int | None = None


@dataclass(slots=True)
class Problems:
    """What operators are to know: problems on the way, and what verification found."""

    noted: list[str] = field(default_factory=list)
    """Facts, which stay so: in the past tense."""
    passing: dict[str, dict[str, PassingProblem]] = field(default_factory=dict)
    """What may be over later, by its kind and its text."""
    unset: dict[int, str] = field(default_factory=dict)
    """By broker, why it has no throttle for now."""
    unrestored: tuple[str, ...] = ()
    """Why settings could not be restored; empty once they are."""
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
    problems: Problems = field(default_factory=Problems)
    wall_ahead_ms: int = 0
    """By how much the wall clock is ahead of the time of the events. Only hours of the day are told by it."""

    def note(self, problem: str) -> None:
        """Remember once what happened; it stays so, and is told in the past tense."""
        if problem not in self.problems.noted:
            self.problems.noted.append(problem)

    def note_for_good(self, kind: str, problems: Iterable[str]) -> None:
        """Remember what was wrong and ended the run: that does not pass any more."""
        self.problems.passing.pop(kind, None)
        for problem in problems:
            self.note(problem)

    def tell(self, kind: str, at_ms: int, *texts: str) -> None:
        """Of the problems of a kind these are so now; what was told of it before and is not among them is over."""
        if not texts and kind not in self.problems.passing:
            return
        known = self.problems.passing.setdefault(kind, {})
        for text, problem in known.items():
            if problem.until_ms is None and text not in texts:
                problem.until_ms = at_ms
        for text in texts:
            problem = known.setdefault(text, PassingProblem(text, at_ms, at_ms, 0))
            if problem.until_ms is not None:
                problem.until_ms, problem.times = None, problem.times + 1


# Rows of the table: the handler of an event in a state, and the states to which it may lead.


class Next(NamedTuple):
    """The state that follows and the instructions to execute in it, in order."""

    state: RunState
    instructions: tuple[Instruction, ...] = ()


Handler = Callable[[Run, Any, Any], Next]
"""From the run, its state and the event. Changes what outlives the state; decides, but does not set, the next state."""


class Row(NamedTuple):
    """What to do, and the states to which that may lead."""

    handler: Handler
    leads_to: frozenset[type[RunState]]


Key = tuple[type[RunState], type[Event]]
Rows = Mapping[Key, Row]


def row(handler: Handler, *leads_to: type[RunState]) -> Row:
    """A row that may lead to these states."""
    return Row(handler, frozenset(leads_to))
