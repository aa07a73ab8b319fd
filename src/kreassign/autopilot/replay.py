"""Play a policy over the journal of past decisions: what it would have repaired, when, and at what cost. Pure.

The findings are those of the journal, as long as they were there; patience, windows, budgets and levels are those of
the policy, and decided by the core. What a repair would have changed is not known: a finding that the journal has for
longer is taken to outlast it. Costs are those of plans in the journal; a finding that was never planned has none.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import groupby
from typing import Any, NamedTuple

from kreassign.autopilot import events
from kreassign.autopilot.core import PlanRepair, RunRepair, symptoms, tick
from kreassign.autopilot.detectors import due_share
from kreassign.autopilot.events import Event, Name, Planned, Rehearsed, Result, State
from kreassign.autopilot.gates import Case, closed_gates
from kreassign.autopilot.memory import Finding, Memory, remember
from kreassign.autopilot.observation import Absent, Known, Observation
from kreassign.autopilot.policy import Kind, Level, Policy
from kreassign.autopilot.symptoms import NEVER_S, Look, Symptom, level_of, patience_with

FACTS = (
    events.BrokerWent | events.BrokerCame | events.OthersMoved | events.TurnedOff | events.TurnedOn | events.Silenced
    | events.WentOn
)  # fmt: skip
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


class Play:
    """A policy that is played, look by look; a run is over when its bytes are copied at the throttle."""

    def __init__(self, policy: Policy, end: str) -> None:
        self._policy, self._end = policy, end
        self.memory = Memory()
        self._acts: list[WouldAct] = []
        self._closed: dict[Name, Mapping[str, str]] = {}

    def note(self, event: Event) -> None:
        """Take in an event."""
        self.memory = remember(self.memory, event)

    def look(
        self, now: Observation, plan: Callable[[Name], Event], shown: Mapping[Name, Symptom] | None = None
    ) -> None:
        """Decide on a look; `plan` makes the event of a plan, or of its failure."""
        act, at_ms = self.memory.running, now.at_ms
        if act is not None and at_ms - act.begun_ms >= act.copied_bytes / self._policy.runs.throttle * 1000:
            self.note(events.RunEnded(at_ms, act.name, Result.DONE, act.copied_bytes))
        decision = tick(self.memory, now, self._policy, shown)
        self.memory = decision.memory
        match decision.order:
            case PlanRepair(name):
                self._propose(plan(name))
            case RunRepair(name, _, at_any_time):
                self._begin(name, at_ms, at_any_time=at_any_time)
        self._judge(Look(now, self.memory, self._policy), shown)

    def _propose(self, planned: Event) -> None:
        """Take in a plan, its rehearsal as good, and its request for approval: else it is planned at each look."""
        if not isinstance(planned, Planned):
            self.note(planned)
            return
        good, name = Rehearsed(planned.at_ms, ""), planned.name
        self.note(replace(planned, rehearsal=good, rehearsal_any_time=good))
        if level_of(name, self._policy) is Level.ASK and self.memory.findings[name].asked is None:
            self.note(events.ApprovalAsked(planned.at_ms, name, "replayed"))

    def _begin(self, name: Name, at_ms: int, *, at_any_time: bool) -> None:
        planned = self.memory.findings[name].proposal
        assert planned is not None, "only what is proposed runs"
        size, also = planned.copied_bytes, planned.also
        self.note(events.RunBegan(at_ms, name, "replayed", size, planned.moves, at_any_time, also=also))
        self._acts.append(WouldAct(at_ms, name, size))
        self._closed.pop(name, None)

    def _judge(self, look: Look, shown: Mapping[Name, Symptom] | None) -> None:
        """Remember which gates keep a proposal, as long as it was never repaired."""
        waiting = [one for one in self.memory.open if one.state is State.PROPOSED]
        if shown is None:
            shown = symptoms(look) if waiting else {}
        for finding in (one for one in waiting if one.name in shown):
            closed = closed_gates(Case(finding, shown[finding.name], *look))
            self._closed[finding.name] = closed or {"age": self._end}

    def played(self, from_ms: int, to_ms: int) -> Replayed:
        """Return the outcome over this time."""
        return Replayed(from_ms, to_ms, tuple(self._acts), self._closed)


def replay(journal: Sequence[Event], policy: Policy) -> Replayed:
    """Play the policy over the events of a journal, which has at least one."""
    world, play, costs = Memory(), Play(policy, "the journal ends before"), _costs(journal)
    for at_ms, group in groupby(journal, key=lambda event: event.at_ms):
        for event in group:
            world = remember(world, event)
            if isinstance(event, FACTS):
                play.note(event)
        shown = {one.name: _symptom(one, world, policy, play.memory.findings.get(one.name)) for one in world.open}
        play.look(_look(at_ms), partial(_planned, costs, at_ms), shown)
    played = play.played(journal[0].at_ms, journal[-1].at_ms)
    acts = (one if one.name in costs else one._replace(copied_bytes=None) for one in played.acts)
    return replace(played, acts=tuple(acts))


def _planned(costs: Mapping[Name, list[Planned]], at_ms: int, name: Name) -> Planned:
    """A plan with the bytes of the one in the journal that is the nearest in time."""
    near = min(costs.get(name, ()), key=lambda one: abs(one.at_ms - at_ms), default=None)
    return Planned(at_ms, name, "replayed", 0 if near is None else near.copied_bytes, ())


def _look(at_ms: int) -> Observation:
    moves: Known[frozenset[Any]] = Known(frozenset())
    return Observation(at_ms, "", Known(()), Known(()), {}, moves, Known(()), Known({}), Absent(), Absent())


def _symptom(finding: Finding, world: Memory, policy: Policy, played: Finding | None) -> Symptom:
    kind, subject = finding.name
    lasting = patience_with(finding.name, policy)
    state = None if played is None else played.state
    if (kind is Kind.DISK_FILLS and _share(finding, world) < due_share(policy.disk_fills, state)) or (
        kind is Kind.NEW_BROKER and subject in {f"broker {one}" for one in world.drained}
    ):
        lasting = lasting._replace(propose_s=NEVER_S)
    return Symptom(subject, finding.seen, *lasting, finding.since_ms)


def _share(finding: Finding, world: Memory) -> float:
    """Used share of a directory as it was measured last; 1 where it never was."""
    about = finding.name.broker, finding.name.path
    measured = world.disks[-1].disks if world.disks else ()
    own = (one for one in measured if (one.broker, one.path) == about)
    return next((one.used_bytes / one.total_bytes for one in own), 1.0)


def _costs(journal: Iterable[Event]) -> Mapping[Name, list[Planned]]:
    found: dict[Name, list[Planned]] = {}
    for event in journal:
        if isinstance(event, Planned):
            found.setdefault(event.name, []).append(event)
    return found
