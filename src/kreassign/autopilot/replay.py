"""Play a policy over the journal of past decisions: what it would have repaired, when, and at what cost. Pure.

The findings are those of the journal, as long as they were there; patience, windows, budgets and levels are those of
the policy, and decided by the core. What a repair would have changed is not known: a finding that the journal has for
longer is taken to outlast it. Costs are those of plans in the journal; a finding that was never planned has none.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any, NamedTuple

from kreassign.autopilot.core import PlanRepair, RunRepair, tick
from kreassign.autopilot.events import (
    ApprovalAsked,
    BrokerCame,
    BrokerWent,
    Event,
    Name,
    OthersMoved,
    Planned,
    Rehearsed,
    Result,
    RunBegan,
    RunEnded,
    Silenced,
    TurnedOff,
    TurnedOn,
    WentOn,
)
from kreassign.autopilot.gates import Case, closed_gates
from kreassign.autopilot.lifecycle import State
from kreassign.autopilot.memory import Finding, Memory, remember
from kreassign.autopilot.observation import Absent, Known, Observation
from kreassign.autopilot.policy import Kind, Level, Policy
from kreassign.autopilot.symptoms import NEVER_S, Look, Symptom, level_of, patience_with

FACTS = BrokerWent | BrokerCame | OthersMoved | TurnedOff | TurnedOn | Silenced | WentOn
"""Events that hold whatever the policy is."""


class WouldAct(NamedTuple):
    """A repair that the policy would have begun; its cost in bytes is None if the journal has no plan."""

    at_ms: int
    name: Name
    copied_bytes: int | None


@dataclass(frozen=True, slots=True)
class Replayed:
    """Outcome over the time of a journal.

    `not_repaired` has findings that were proposed and never repaired, with the gates that were closed at the last look.
    """

    from_ms: int
    to_ms: int
    acts: tuple[WouldAct, ...]
    not_repaired: Mapping[Name, Mapping[str, str]]


def replay(events: Sequence[Event], policy: Policy) -> Replayed:
    """Play the policy over the events of a journal, which has at least one."""
    world, memory = Memory(), Memory()
    costs = _costs(events)
    acts: list[WouldAct] = []
    closed: dict[Name, Mapping[str, str]] = {}
    for at_ms, group in groupby(events, key=lambda event: event.at_ms):
        for event in group:
            world = remember(world, event)
            if isinstance(event, FACTS):
                memory = remember(memory, event)
        if memory.running is not None and _is_over(memory, at_ms, policy):
            memory = remember(memory, RunEnded(at_ms, memory.running.name, Result.DONE, memory.running.copied_bytes))
        shown = {one.name: _symptom(one, world, policy) for one in world.open}
        now = _look(at_ms)
        decision = tick(memory, now, policy, shown)
        memory = decision.memory
        match decision.order:
            case PlanRepair(name):
                memory = proposed(memory, _planned(name, at_ms, _cost(costs, name, at_ms)), policy)
            case RunRepair(name, _, at_any_time):
                cost = _cost(costs, name, at_ms)
                memory = remember(memory, RunBegan(at_ms, name, "replayed", cost or 0, (), at_any_time))
                acts.append(WouldAct(at_ms, name, cost))
                closed.pop(name, None)
            case _:
                pass  # runs end by their length
        for finding in (one for one in memory.open if one.state is State.PROPOSED and one.name in shown):
            case = Case(finding, shown[finding.name], *Look(now, memory, policy))
            closed[finding.name] = closed_gates(case) or {"age": "the journal ends before"}
    return Replayed(events[0].at_ms, events[-1].at_ms, tuple(acts), closed)


def proposed(memory: Memory, planned: Planned, policy: Policy) -> Memory:
    """The memory after a plan, and after its request for approval: without one it would be planned at each look."""
    memory = remember(memory, planned)
    is_asked = level_of(planned.name, policy) is not Level.ASK or memory.findings[planned.name].asked is not None
    return memory if is_asked else remember(memory, ApprovalAsked(planned.at_ms, planned.name, "replayed"))


def _planned(name: Name, at_ms: int, cost: int | None) -> Planned:
    """A plan whose rehearsal is taken to be good, as that of the journal is of another time."""
    good = Rehearsed(at_ms, "")
    return Planned(at_ms, name, "replayed", cost or 0, (), rehearsal=good, rehearsal_any_time=good)


def _look(at_ms: int) -> Observation:
    moves: Known[frozenset[Any]] = Known(frozenset())
    return Observation(at_ms, "", Known(()), Known(()), {}, moves, Known(()), Known({}), Absent(), Absent())


def _symptom(finding: Finding, world: Memory, policy: Policy) -> Symptom:
    kind, subject = finding.name
    lasting = patience_with(finding.name, policy)
    if (kind is Kind.DISK_FILLS and _share(finding, world) < policy.disk_fills.propose_share) or (
        kind is Kind.NEW_BROKER and subject in {f"broker {one}" for one in world.drained}
    ):
        lasting = lasting._replace(propose_s=NEVER_S)
    return Symptom(subject, finding.seen, *lasting, finding.since_ms)


def _share(finding: Finding, world: Memory) -> float:
    """Used share of a directory as it was measured last; 1 where it never was."""
    measured = world.disks[-1].disks if world.disks else ()
    shares = (
        one.used_bytes / one.total_bytes
        for one in measured
        if f"broker {one.broker}:{one.path}" == finding.name.subject
    )
    return next(shares, 1.0)


def _is_over(memory: Memory, at_ms: int, policy: Policy) -> bool:
    act = memory.running
    return act is not None and at_ms - act.begun_ms >= act.copied_bytes / policy.runs.throttle * 1000


def _costs(events: Iterable[Event]) -> Mapping[Name, list[Planned]]:
    found: dict[Name, list[Planned]] = {}
    for event in events:
        if isinstance(event, Planned):
            found.setdefault(event.name, []).append(event)
    return found


def _cost(costs: Mapping[Name, list[Planned]], name: Name, at_ms: int) -> int | None:
    """Bytes of the plan that is the nearest in time."""
    near = min(costs.get(name, ()), key=lambda one: abs(one.at_ms - at_ms), default=None)
    return None if near is None else near.copied_bytes
