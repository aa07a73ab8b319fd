"""A plan as the rules judge it, and why nothing can be copied where it leaves a forced change undone."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields

import numpy as np

from kreassign.model.text import format_load, some_of
from kreassign.planner.arrays import NOWHERE, BoolArray, FloatArray, IndexArray, IntArray
from kreassign.planner.check.cost import Changes
from kreassign.planner.check.racks import rack_excess
from kreassign.planner.goals import Column
from kreassign.planner.problem.holds import SHOWN_EXAMPLES, Hold
from kreassign.planner.problem.problem import Assignment, Problem, RackLimits

ROUNDING = 1e-9


@dataclass(frozen=True, slots=True, eq=False)
class Case:
    """Input of the rules. `before` and `after` are loads with one column per name in `limited`, the hard limits.

    `loads` has the load columns of each of these names for a leader and for a follower.
    """

    problem: Problem
    assignment: Assignment
    changes: Changes
    limited: tuple[str, ...]
    before: FloatArray
    after: FloatArray
    loads: tuple[tuple[Column, Column], ...]

    @property
    def leaders(self) -> IntArray:
        """Broker index of each partition's wanted leader, (P,)."""
        return self.assignment.replicas[self.assignment.offsets[:-1]]

    @property
    def has_budget(self) -> bool:
        """True if there is any limit of what the plan costs."""
        budget = self.problem.budget
        return any(getattr(budget, one.name) is not None for one in fields(budget))

    @property
    def may_leave(self) -> bool:
        """True if forced changes may stay undone: because of a limit, or for want of a place."""
        return self.has_budget or self.problem.rules.leaves_rest

    @property
    def is_up(self) -> BoolArray:
        """Mask of the live brokers, (N,): those that are down are not, also where the plan leaves them as they are."""
        live, gone = self.problem.brokers.is_live, self.problem.gone
        return live if gone is None else live & ~gone.brokers

    def replica(self, place: int) -> str:
        """Partition and broker of one replica, for messages."""
        broker = self.problem.brokers.ids[self.assignment.replicas[place]]
        return f"{self.problem.partitions.name(int(self.changes.owners[place]))}: broker {broker}"

    def amount(self, goal: str, load: float) -> str:
        """Format a load of a goal with its unit."""
        staying = self.problem.brokers.staying
        mean = float(self.after[staying, self.limited.index(goal)].mean()) if staying.any() else 0.0
        return format_load(load, self.problem.unit_of(goal), mean)


def reasons_to_leave(case: Case) -> Callable[[int], str]:
    """Return what says why a partition is left, to follow its sentence; nothing where only a budget leaves changes."""
    problem, now = case.problem, case.problem.partitions
    if not problem.rules.leaves_rest:
        return lambda _: ""
    limits, racks = problem.rack_limits, problem.rack_of_broker
    may_crowd = rack_excess(problem, Assignment.current(now))

    def told(partition: int) -> str:
        if not now.may_move[partition]:
            return f": it {Hold(int(now.holds[partition])).keeps()}"
        if not problem.rules.between_brokers:
            return ": this task copies nothing from broker to broker"
        kept = _kept(case, partition)
        held = np.bincount(racks[kept], minlength=int(racks.max()) + 1)
        missing = int(now.wanted_factors[partition]) - len(kept)
        if missing <= 0:  # one of those that share a rack is to leave it
            held[held.argmax()] -= 1
        crowded = held[racks] >= limits.of(partition, held)
        if missing > 0 and _beyond(limits, partition, held) < may_crowd[partition]:
            crowded[:] = False  # its copies may share racks as they do now
        return _told(case, dict(_barred(case, partition, crowded)), missing)

    return told


def _beyond(limits: RackLimits, partition: int, held: IndexArray) -> int:
    """Number of replicas beyond the limits of the racks, which hold `held`, (R,)."""
    most, full = int(limits.most[partition]), int(limits.full[partition])
    return int(np.maximum(held - most, 0).sum()) + max(0, int((held >= most).sum()) - full)


def _kept(case: Case, partition: int) -> IntArray:
    """Brokers that keep a usable replica of a partition, where it may be."""
    now, hosts = case.problem.partitions, case.assignment.list_of(partition)
    lost = now.list_of(partition)[now.is_lost[now.span(partition)]]
    brokers, wanted = case.problem.brokers, now.broker_sets[partition]
    may_stay = (brokers.staying & brokers.may_be_named)[hosts] & ~np.isin(hosts, lost)
    if case.problem.rules.repair_sets and wanted != NOWHERE:
        may_stay &= brokers.broker_sets[hosts] == wanted
    kept: IntArray = hosts[may_stay]
    return kept


def _barred(case: Case, partition: int, crowded: BoolArray) -> Iterator[tuple[str, BoolArray]]:
    """Brokers that cannot take a copy, (N,) each, by reason."""
    problem, every = case.problem, np.arange(len(case.problem.brokers))
    now, brokers, wanted = problem.partitions, problem.brokers, problem.partitions.broker_sets[partition]
    yield "hold one already", np.isin(every, case.assignment.list_of(partition))
    yield "lost theirs", np.isin(every, now.list_of(partition))
    yield "receive nothing", ~brokers.receiving
    yield "are of another broker set", (wanted != NOWHERE) & (brokers.broker_sets != wanted)
    yield "are in racks that have enough", crowded
    for column, name in enumerate(case.limited):
        load = min(float(role(now)[partition]) for role in case.loads[column])
        most = brokers.capacity[name] * (1 + ROUNDING)
        yield f"have no room ({name})", (load > 0) & (case.after[:, column] + load > most)


def _told(case: Case, barred: dict[str, BoolArray], missing: int) -> str:
    brokers, rest, told = case.problem.brokers, case.problem.brokers.staying & case.is_up, []
    for why, chosen in barred.items():
        if ids := brokers.ids[rest & chosen].tolist():
            told.append(f"{some_of(ids, SHOWN_EXAMPLES)} {why}")
        rest = rest & ~chosen
    if case.has_budget and rest.any():
        return ": beyond the budget"
    if missing <= 1 and rest.any():
        return ": no plan was found in which it fits"
    short = f"not all {missing} copies have a place" if rest.any() else "no broker can take a copy"
    return f": {short} ({'; '.join(told)})"
