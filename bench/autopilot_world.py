"""A cluster whose troubles are drawn by a seed, as values: what an autopilot sees, and what its repairs come to.

Plans are those of the real planner; runs copy at the throttle of the policy, stop after the move in flight when they
are asked to, and fail where a destination goes. Nothing is copied but by them: a broker that comes back with its disk
catches up by itself, and one that comes back empty fills again what is still placed on it.
"""

from __future__ import annotations

import copy
import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from kreassign.autopilot.events import Name, Planned
from kreassign.autopilot.gates import together
from kreassign.autopilot.observation import US, Absent, Asked, Known, Observation, RunSeen, Unknown
from kreassign.autopilot.policy import Policy
from kreassign.autopilot.symptoms import Look
from kreassign.model import NO_LEADER, Broker, LogDir, LogDirReplica, Partition, TopicPartition
from kreassign.model.load import LoadBasis
from kreassign.operations.autopilot_plans import TASKS, planned_of
from kreassign.operations.plan import PlanRequest, make_plan
from kreassign.operations.plan_inputs import Inputs
from kreassign.planner import BrokerFacts, LogDirFacts, PartitionFacts, problem_of

MINUTE, HOUR, DAY = 60.0, 3600.0, 86_400.0
GIGABYTE = 1_000_000_000
DISK_BYTES = 1_000 * GIGABYTE
FOREIGN = TopicPartition("theirs", 0)


class Kind(StrEnum):
    """Kinds of trouble."""

    RESTART = "rolling restart"  # each broker in turn, four minutes
    OUTAGE = "broker gone, and back with its disk"
    LOSS = "broker gone, and back with an empty disk"
    SPLIT = "a rack, or three brokers, not reached"
    OTHERS = "another tool moves"
    UNREAD = "a broker does not answer about its directories"
    BRAKE = "the brake is pulled"


@dataclass(frozen=True, slots=True)
class Trouble:
    """A trouble from one second until another, with its brokers."""

    kind: Kind
    begin_s: float
    end_s: float
    brokers: tuple[int, ...] = ()

    def is_on(self, now_s: float) -> bool:
        """True if it goes on."""
        return self.begin_s <= now_s < self.end_s


EVERY: Mapping[Kind, float] = {
    Kind.RESTART: 14 * DAY, Kind.OUTAGE: 6 * DAY, Kind.LOSS: 30 * DAY, Kind.SPLIT: 30 * DAY, Kind.OTHERS: 10 * DAY,
    Kind.UNREAD: 4 * DAY, Kind.BRAKE: 20 * DAY,
}  # fmt: skip
"""Mean time between two troubles of a kind."""

AWAY = frozenset({Kind.RESTART, Kind.OUTAGE, Kind.LOSS, Kind.SPLIT})
"""Kinds that take brokers away: one at a time, or no copy would be left, whatever anybody does."""


def drawn(seed: int, brokers: int, days: float) -> list[Trouble]:
    """Draw the troubles of a cluster, in the order in which they begin."""
    rng = random.Random(seed)
    found: list[Trouble] = []
    free_s = 0.0
    begins = sorted((at_s, kind) for kind, every_s in EVERY.items() for at_s in _arrivals(rng, every_s, days * DAY))
    for at_s, kind in begins:
        begin_s = max(at_s, free_s) if kind in AWAY else at_s
        new = list(_made(rng, kind, begin_s, brokers))
        found += new
        if kind in AWAY:
            free_s = max(one.end_s for one in new) + 12 * HOUR
    return sorted((one for one in found if one.end_s < days * DAY), key=lambda one: one.begin_s)


def _arrivals(rng: random.Random, every_s: float, until_s: float) -> Iterator[float]:
    at_s = rng.expovariate(1 / every_s)
    while at_s < until_s:
        yield at_s
        at_s += rng.expovariate(1 / every_s)


def _made(rng: random.Random, kind: Kind, begin_s: float, brokers: int) -> Iterator[Trouble]:
    one = (rng.randrange(brokers),)
    match kind:
        case Kind.RESTART:
            for number in range(brokers):
                start_s = begin_s + number * 6 * MINUTE
                yield Trouble(kind, start_s, start_s + 4 * MINUTE, (number,))
        case Kind.OUTAGE:  # most are over within half an hour, some last for days
            lasts_s = min(rng.lognormvariate(7.0, 1.2), 2 * DAY)
            yield Trouble(kind, begin_s, begin_s + lasts_s, one)
        case Kind.LOSS:
            yield Trouble(kind, begin_s, begin_s + rng.uniform(6 * HOUR, 3 * DAY), one)
        case Kind.SPLIT:
            rack = rng.randrange(3)
            gone = tuple(range(rack, brokers, 3)) if rng.random() < 0.5 else tuple(rng.sample(range(brokers), 3))
            yield Trouble(kind, begin_s, begin_s + rng.uniform(20 * MINUTE, 2 * HOUR), gone)
        case Kind.OTHERS:
            yield Trouble(kind, begin_s, begin_s + rng.uniform(20 * MINUTE, 4 * HOUR))
        case Kind.UNREAD:
            yield Trouble(kind, begin_s, begin_s + rng.uniform(2 * MINUTE, 3 * HOUR), one)
        case Kind.BRAKE:
            yield Trouble(kind, begin_s, begin_s + rng.uniform(30 * MINUTE, 6 * HOUR))


@dataclass(slots=True)
class Run:
    """A repair that copies: its moves in order, and how much of them is done."""

    name: Name
    moves: dict[TopicPartition, tuple[int, ...]]
    rate: float
    copied: float = 0.0
    is_held: bool = False
    is_left: bool = False
    is_ending: bool = False
    left: dict[TopicPartition, float] = field(default_factory=dict)

    @property
    def in_flight(self) -> TopicPartition | None:
        """The move that copies now."""
        return next(iter(self.left), None)


class World:
    """A cluster by a seed, at a time that only goes on."""

    def __init__(self, seed: int, days: float) -> None:
        rng = random.Random(f"cluster {seed}")
        self.brokers = rng.choice((9, 12, 15))
        self.troubles = drawn(seed, self.brokers, days)
        self.lists = {TopicPartition("t", number): self._drawn_list(rng) for number in range(self.brokers * 5)}
        mean = rng.uniform(0.3, 0.5) * DISK_BYTES * self.brokers / (3 * len(self.lists))
        self.sizes = {name: rng.uniform(0.5, 1.5) * mean for name in self.lists}
        self.grows = {name: rng.choice((0.0, 0.0, 0.002, 0.006)) for name in self.lists}
        self.now_s = 0.0
        self.run: Run | None = None
        self._seen: tuple[object, Observation] | None = None
        self._day = 0

    def _drawn_list(self, rng: random.Random) -> tuple[int, ...]:
        firsts = rng.sample(range(3), 3)
        return tuple(rack + 3 * rng.randrange(self.brokers // 3) for rack in firsts)

    def on(self, *kinds: Kind) -> list[Trouble]:
        """Troubles of these kinds that go on."""
        return [one for one in self.troubles if one.is_on(self.now_s) and one.kind in kinds]

    @property
    def down(self) -> frozenset[int]:
        """Brokers that are away."""
        return frozenset(broker for one in self.on(*AWAY) for broker in one.brokers)

    def held_bytes(self, broker: int) -> float:
        """Bytes of the replicas that are placed on a broker."""
        return sum(self.sizes[name] for name, replicas in self.lists.items() if broker in replicas)

    @property
    def share_bytes(self) -> float:
        """Bytes that a broker would hold if all held the same."""
        return 3 * sum(self.sizes.values()) / self.brokers

    def go_on(self, seconds: float) -> str | None:
        """Let time pass; the outcome of the run if it ends in it."""
        self.now_s += seconds
        for _ in range(int(self.now_s // DAY) - self._day):
            self._day += 1
            self.sizes = {name: size * (1 + self.grows[name]) for name, size in self.sizes.items()}
        return None if self.run is None else self._copy(self.run, seconds)

    def _copy(self, run: Run, seconds: float) -> str | None:
        live = self.brokers - len(self.down)
        left = seconds * run.rate * max(1, live) / 2
        while run.left:
            name = next(iter(run.left))
            if (set(run.moves[name]) - set(self.lists[name])) & self.down:
                return "failed"
            is_begun = run.left[name] < self._added(name, run.moves[name])
            if not is_begun and (run.is_ending or run.is_held):
                return "cancelled" if run.is_ending else None
            done = min(left, run.left[name])
            run.copied += done
            run.left[name] -= done
            left -= done
            if run.left[name] > 0:
                return None
            del run.left[name]
            self.lists[name] = run.moves[name]
            self._seen = None
        return "done"

    def _added(self, name: TopicPartition, target: tuple[int, ...]) -> float:
        return self.sizes[name] * len(set(target) - set(self.lists[name]))

    # What is seen.

    def look(self) -> Observation:
        """The cluster as the autopilot sees it now."""
        on = tuple(one for one in self.troubles if one.is_on(self.now_s))
        ours = frozenset(self.run.left) if self.run else frozenset()
        key = (on, ours, self._day)
        if self._seen is None or self._seen[0] != key:
            self._seen = key, self._observed(ours)
        # What was computed of it holds at any time, whether or not the run has a process.
        found = copy.copy(self._seen[1])
        run = self.run
        seen = RunSeen() if run is None else RunSeen(US if run.is_held else "", run.is_ending, run.is_left, run.is_left)
        object.__setattr__(found, "run", seen)
        object.__setattr__(found, "at_ms", round(self.now_s * 1000))
        return found

    def _observed(self, ours: frozenset[TopicPartition]) -> Observation:
        down = self.down
        hosts = tuple(Broker(one, f"b{one}", 9092, f"r{one % 3}", one in down) for one in range(self.brokers))
        rows = []
        for name, replicas in self.lists.items():
            isr = tuple(broker for broker in replicas if broker not in down)
            rows.append(Partition(name, replicas, isr, isr[0] if isr else NO_LEADER))
        dirs: dict[int, Asked[tuple[LogDir, ...]]]
        dirs = {one.id: Known((self._directory(one.id),)) for one in hosts if one.id not in down}
        unread = {broker: Unknown("it does not answer") for one in self.on(Kind.UNREAD) for broker in one.brokers}
        theirs = frozenset({FOREIGN}) if self.on(Kind.OTHERS) else frozenset[TopicPartition]()
        brake = Known("somebody pulled it") if self.on(Kind.BRAKE) else Absent()
        return Observation(
            0, "c", Known(hosts), Known(tuple(rows)),
            {**dirs, **{one: why for one, why in unread.items() if one not in down}},
            Known(theirs), Known(()), Known({}), Absent(), brake, ours,
        )  # fmt: skip

    def _directory(self, broker: int) -> LogDir:
        copies = tuple(
            LogDirReplica(name, round(self.sizes[name]), 0, is_future=False)
            for name, replicas in self.lists.items()
            if broker in replicas
        )
        free = max(0, DISK_BYTES - round(self.held_bytes(broker)))
        return LogDir("/d0", None, DISK_BYTES, free, is_cordoned=False, replicas=copies)

    # What is planned, and run.

    def plan(self, name: Name, look: Look) -> tuple[Planned, Mapping[TopicPartition, tuple[int, ...]]]:
        """Plan a repair by the task of its kind. Raises InputError, Infeasible."""
        also = together(look, name)
        *_, task = TASKS[name.kind](name, look, also)
        outcome = make_plan(self._inputs, task, PlanRequest(rate_bytes_per_s=look.policy.runs.throttle))
        return planned_of(name, look.now.at_ms, outcome, (), also), dict(outcome.plan.replicas)

    @property
    def _inputs(self) -> Inputs:
        down = self.down
        hosts = [
            BrokerFacts(
                one, f"r{one % 3}", {"disk": DISK_BYTES}, is_live=one not in down,
                log_dirs=(LogDirFacts("/d0", DISK_BYTES),),
            )
            for one in range(self.brokers)
        ]  # fmt: skip
        rows = [
            PartitionFacts(
                name, replicas, round(self.sizes[name]), log_dirs=("/d0",) * len(replicas),
                isr=tuple(broker for broker in replicas if broker not in down),
            )
            for name, replicas in self.lists.items()
        ]  # fmt: skip
        at_ms = round(self.now_s * 1000)
        return Inputs(problem_of(hosts, rows), "c", "s", at_ms, LoadBasis("snapshot", at_ms, len(rows)))

    def begin(self, name: Name, moves: Mapping[TopicPartition, tuple[int, ...]], policy: Policy) -> None:
        """Begin the run of a plan."""
        left = {one: self._added(one, target) for one, target in moves.items()}
        self.run = Run(name, dict(moves), policy.runs.throttle, left=left)
