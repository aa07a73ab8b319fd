"""Clusters as values, and an autopilot's core that is ticked over them: weeks in milliseconds, without a cluster."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace

from kreassign.autopilot.core import (
    EndRun,
    HoldRun,
    PauseRun,
    PlanRepair,
    ReleaseRun,
    ResumeRun,
    RunRepair,
    SettleRun,
    symptoms,
    tick,
)
from kreassign.autopilot.events import Event, Name, NotPlanned, Planned, Rehearsed, Result, RunBegan, RunEnded, State
from kreassign.autopilot.gains import amount_of
from kreassign.autopilot.gates import resting, together
from kreassign.autopilot.memory import Memory, remember
from kreassign.autopilot.messages import Message
from kreassign.autopilot.observation import NO_RUN, US, Absent, Known, Observation, RunSeen
from kreassign.autopilot.policy import Kind, parse_policy
from kreassign.autopilot.symptoms import Look
from kreassign.model import NO_LEADER, Broker, LogDir, LogDirReplica, Partition, TopicPartition

GIGABYTE = 1_000_000_000
MINUTE, HOUR, DAY = 60, 3600, 86_400


def partition(number: int, replicas: tuple[int, ...], down: frozenset[int], topic: str = "t") -> Partition:
    """A partition whose replicas on live brokers are in sync."""
    isr = tuple(broker for broker in replicas if broker not in down)
    name = TopicPartition(topic, number)
    return Partition(name, replicas, isr, isr[0] if isr else NO_LEADER)


def cluster(
    at_ms: int,
    lists: Iterable[tuple[int, ...]],
    *,
    brokers: int = 9,
    racks: int = 3,
    down: Iterable[int] = (),
    used: Mapping[int, float] | None = None,
    size_bytes: int = GIGABYTE,
) -> Observation:
    """A cluster with a topic t, whose brokers have one directory of a terabyte, half full unless said otherwise."""
    gone = frozenset(down)
    hosts = tuple(Broker(one, f"b{one}", 9092, f"r{one % racks}", one in gone) for one in range(brokers))
    partitions = tuple(partition(number, replicas, gone) for number, replicas in enumerate(lists))
    total = 1000 * GIGABYTE
    dirs = {}
    for host in hosts:
        if host.id not in gone:
            copies = tuple(
                LogDirReplica(one.topic_partition, size_bytes, 0, is_future=False)
                for one in partitions
                if host.id in one.replicas
            )
            free = round(total * (1 - (used or {}).get(host.id, 0.5)))
            dirs[host.id] = Known((LogDir("/d0", None, total, free, is_cordoned=False, replicas=copies),))
    none = Known(frozenset[TopicPartition]())
    return Observation(
        at_ms, "c", Known(hosts), Known(partitions), dirs, none, Known(()), Known({}), Absent(), Absent()
    )  # fmt: skip


class Watched:
    """The core over a world that changes with the time: what it orders is done at once, or as a test says."""

    def __init__(self, policy: str, world: Callable[[float], Observation], *, run_s: float = 600.0) -> None:
        self.policy = parse_policy(policy, "policy.toml")
        self.world, self.run_s = world, run_s
        self.memory = Memory("c")
        self.events: list[Event] = []
        self.messages: list[Message] = []
        self.orders: list[object] = []
        self.now_s = 0.0
        self.impossible: frozenset[Kind] = frozenset()
        self.is_silent = False
        self.result, self.by = Result.DONE, ""
        self.breach, self.is_rehearsed = "", True
        self.moves: tuple[TopicPartition, ...] = ()
        self._ends_s = 0.0
        self.run = NO_RUN

    def note(self, event: Event) -> None:
        self.events.append(event)
        self.memory = remember(self.memory, event)

    def watch(self, seconds: float, every_s: float = 60.0) -> None:
        """Look for so long."""
        end_s = self.now_s + seconds
        while self.now_s < end_s:
            self.look()
            self.now_s += every_s

    def look(self) -> None:
        at_ms = round(self.now_s * 1000)
        act = self.memory.running
        is_over = self.run.is_ending or self.now_s >= self._ends_s
        if act is not None and is_over and not (self.run.held_by or self.run.is_left):
            result = Result.CANCELLED if act.is_end_asked else self.result
            self.note(RunEnded(at_ms, act.name, result, act.copied_bytes, self.by))
        now = self._seen(at_ms)
        decision = tick(self.memory, now, self.policy)
        self.events += decision.events
        self.memory = decision.memory
        self.messages += decision.messages
        self._do(decision.order, now)

    def _seen(self, at_ms: int) -> Observation:
        seen = self.world(self.now_s)
        run = self.run._replace(held_by=seen.run.people or self.run.held_by)
        return replace(seen, at_ms=at_ms, run=run)

    def _planned(self, name: Name, now: Observation) -> Planned:
        """A plan that moves what shows the finding, or a partition, and does not rest, unless a test says otherwise."""
        look = Look(now, self.memory, self.policy)
        also, tired, found = together(look, name), resting(look, name.kind), symptoms(look)
        shown = frozenset[TopicPartition]().union(
            *(found[one].partitions or () for one in (name, *(Name(name.kind, f"broker {broker}") for broker in also)))
        )
        any_one = sorted({one.topic_partition for one in now.placed} - tired)[:1]
        moves = self.moves or tuple(sorted(shown - tired) if shown else any_one)
        rehearsal = Rehearsed(now.at_ms, "rehearsed on a twin", self.breach) if self.is_rehearsed else None
        return Planned(
            now.at_ms, name, str(name), GIGABYTE, moves, ("a plan",), rehearsal=rehearsal, also=also,
            rehearsal_any_time=rehearsal,
        )  # fmt: skip

    def _do(self, order: object, now: Observation) -> None:
        at_ms = now.at_ms
        if order is not None:
            self.orders.append(order)
        match order:
            case PlanRepair(name) if name.kind in self.impossible:
                self.note(NotPlanned(at_ms, name, "no plan repairs it", self.is_silent))
            case PlanRepair(name):
                planned = self._planned(name, now)
                self.note(planned if planned.moves else NotPlanned(at_ms, name, "there is nothing to move"))
            case RunRepair(name):
                planned = self._planned(name, now)
                run_id = f"run-{len(self.memory.acts)}"
                before = amount_of(Look(now, self.memory, self.policy), planned)
                self.note(RunBegan(at_ms, name, run_id, GIGABYTE, planned.moves, also=planned.also, before=before))
                self._ends_s, self.run = self.now_s + self.run_s, NO_RUN
            case EndRun():
                self.run = RunSeen(is_ending=True)
            case PauseRun():
                self.run = self.run._replace(is_left=True, is_at_rest=True)
            case HoldRun() | ReleaseRun():
                self.run = self.run._replace(held_by=US if isinstance(order, HoldRun) else "")
            case SettleRun():
                self.run = RunSeen(US)
            case ResumeRun():
                self.run = NO_RUN
            case None:
                pass

    @property
    def last_look(self) -> Look:
        """The world now, by what is remembered."""
        return Look(self._seen(round(self.now_s * 1000)), self.memory, self.policy)

    @property
    def runs(self) -> list[Name]:
        """Repairs, in order."""
        return [one.name for one in self.events if isinstance(one, RunBegan)]

    @property
    def states(self) -> set[State]:
        """All states in which any finding ever was, by the messages and events of it."""
        return {one.state for one in self.events if hasattr(one, "state")}
