"""Load of the surviving brokers after each loss of a broker or rack, exactly, without the search's code.

Every partition has one leader and one successor, so nothing needs simulation. If the leader is lost, Kafka elects the
first live in-sync replica of the list. After a plan all replicas are in sync except those on brokers that are down
and those lost with a log directory. With x the broker of the leader of p, and s(p, f) the broker of the first usable
replica of its list that survives the loss f, a surviving broker b carries

    load(f, b) = load(b) + sum over p with x lost in f and s(p, f) = b of what leading p adds to following it

A partition without an s(p, f) is offline. Load is not reduced for lost followers: they come back.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from kreassign.model.plan_facts import WorstLoss
from kreassign.model.text import agreeing, counted, format_load, told_load
from kreassign.planner.arrays import NOWHERE, BoolArray, FloatArray, IndexArray, pairs
from kreassign.planner.check.evaluate import loads_by_role, share_of_each, total_of, whole_numbers
from kreassign.planner.problem.problem import Assignment, Problem, RackRule

ROUNDING = 1e-9
STATES = ("before", "after")
"""Values of `WorstLoss.state`: before and after the plan."""


@dataclass(frozen=True, slots=True, eq=False)
class Losses:
    """All M losses of one broker or one rack; N brokers, R goals that depend on who leads.

    `loads` and `limits` have shape (M, N, R); a lost broker carries 0 and has an infinite limit. `offline` (M) counts
    partitions without a leader.
    """

    names: tuple[str, ...]
    broker_ids: tuple[int, ...]
    goals: tuple[str, ...]
    units: tuple[str, ...]
    loads: FloatArray
    limits: FloatArray
    offline: IndexArray
    means: FloatArray

    @property
    def excess(self) -> float:
        """Sum of loads above limits, over all losses and goals, each in units of the goal's mean per broker."""
        above, known = np.maximum(self.loads - self.limits, 0.0).sum(axis=(0, 1)), self.means > 0
        return float((above[known] / self.means[known]).sum())

    def worst(self, state: str) -> tuple[WorstLoss, ...]:
        """Per goal the loss after which a broker comes nearest to its limit, or exceeds it most."""
        return tuple(self._worst(state, goal) for goal in range(len(self.goals))) if self.names else ()

    def sentences(self) -> tuple[str, ...]:
        """One sentence per goal with an exceeded limit: the worst case, and the number of cases."""
        found = []
        above = self.loads > self.limits * (1 + ROUNDING) + ROUNDING
        for goal, worst in enumerate(self.worst(STATES[1])):
            if count := int(above[:, :, goal].sum()):
                others = f", and {count - 1} cases more" if count > 1 else ""
                load, limit = (format_load(amount, worst.unit) for amount in (worst.load, worst.limit))
                found.append(
                    f"if {worst.lost} is lost, broker {worst.broker} has {worst.goal} {load}, "
                    f"its limit is then {limit}{others}"
                )
        if self.offline.any():
            worst_place = int(np.argmax(self.offline))
            offline = int(self.offline[worst_place])
            found.append(
                f"if {self.names[worst_place]} is lost, "
                f"{counted(offline, 'partition')} {agreeing(offline, 'have')} no replica left"
            )
        return tuple(found)

    def _worst(self, state: str, goal: int) -> WorstLoss:
        loads, limits = self.loads[:, :, goal], self.limits[:, :, goal]
        # Any load exceeds a limit of 0 most; without any load, the first entry will do.
        use = np.divide(loads, limits, out=np.where(loads > 0, np.inf, 0.0), where=limits > 0)
        loss, broker = (int(one) for one in np.unravel_index(int(np.argmax(use)), use.shape))
        mean = float(self.means[goal])
        load, unit = told_load(float(loads[loss, broker]), self.units[goal], mean)
        limit, _ = told_load(float(limits[loss, broker]), self.units[goal], mean)
        return WorstLoss(
            state,
            self.goals[goal],
            self.names[loss],
            self.broker_ids[broker],
            load,
            limit,
            unit,
            int(self.offline[loss]),
        )


def losses(problem: Problem, assignment: Assignment) -> Losses:
    """Compute all losses of a broker, and of a rack unless it is the only one."""
    leaders, seconds, outside = _successors(problem, assignment)
    bands, count = problem.failover_bands, len(problem.brokers)
    lost, names = _lost(problem)
    extra = np.stack([_adds(problem, column) for column in range(len(bands))], axis=1) if bands else np.zeros((0, 0))
    base = _base(problem, assignment, leaders)
    loads = np.repeat(base[None, :, :], len(lost), axis=0)
    brokers = np.flatnonzero(_there(problem))
    rows = np.full(count, NOWHERE)
    if len(brokers) > 1:  # if the only broker is lost, no survivor is left to judge
        rows[brokers] = np.arange(len(brokers))
    offline = np.zeros(len(lost), np.int64)
    for loss_of, heirs in ((rows, seconds), (_rack_rows(problem, int(rows.max()) + 1), outside)):
        _take_over(loads, offline, np.where(leaders == NOWHERE, NOWHERE, loss_of[leaders]), heirs, extra)
    limits = _limits(problem, lost)
    loads[lost] = 0.0
    means = np.array([total_of(problem, band.goal) for band in bands]) / max(1, len(brokers))
    ids = tuple(problem.brokers.ids.tolist())
    goals, units = tuple(band.goal.name for band in bands), tuple(problem.unit_of(band.goal.name) for band in bands)
    return Losses(names, ids, goals, units, loads, limits, offline, means)


def _there(problem: Problem) -> BoolArray:
    """Mask of brokers that stay and are not down, (N,)."""
    stays = problem.brokers.is_live & ~problem.brokers.must_empty
    return stays if problem.gone is None else stays & ~problem.gone.brokers


def _lost_racks(problem: Problem) -> IndexArray:
    """Racks that can be lost: the named ones, unless no broker would be left, or racks do not matter."""
    racks = problem.brokers.racks[_there(problem)]
    known = np.unique(racks[racks != NOWHERE]).astype(np.int64)
    is_only = len(known) < 2 and not (racks == NOWHERE).any()
    return known[:0] if problem.rules.racks is RackRule.NONE or is_only else known


def _lost(problem: Problem) -> tuple[BoolArray, tuple[str, ...]]:
    """Brokers lost in each loss, including those already missing, (M, N); and the names of the losses."""
    there, brokers, racks = _there(problem), problem.brokers, _lost_racks(problem)
    single = np.flatnonzero(there)
    single = single if len(single) > 1 else single[:0]
    of_brokers = np.arange(len(brokers))[None, :] == single[:, None]
    of_racks = brokers.racks[None, :] == racks[:, None]
    names = [f"broker {brokers.ids[place]}" for place in single]
    names += [f"rack {brokers.rack_names[rack]}" for rack in racks.tolist()]
    return np.concatenate([of_brokers, of_racks]) | ~there, tuple(names)


def _rack_rows(problem: Problem, first: int) -> IndexArray:
    """Row of the loss of each broker's rack, NOWHERE without one; (N,)."""
    rows = np.full(len(problem.brokers), NOWHERE)
    for row, rack in enumerate(_lost_racks(problem).tolist()):
        rows[problem.brokers.racks == rack] = first + row
    return rows


def _usable(problem: Problem, assignment: Assignment) -> BoolArray:
    """Mask of replicas of the assignment that may be elected: their broker is up and has its copy, (A,)."""
    now, count = problem.partitions, len(problem.brokers)
    bad = now.is_lost if problem.gone is None else now.is_lost | problem.gone.replicas
    gone = pairs(now.owners[bad], now.replicas[bad], count)
    is_gone = np.isin(pairs(assignment.owners, assignment.replicas, count), gone)
    usable: BoolArray = problem.brokers.is_live[assignment.replicas] & ~is_gone
    return usable


def _successors(problem: Problem, assignment: Assignment) -> tuple[IndexArray, IndexArray, IndexArray]:
    """Broker indices of the leader, its successor if its broker, and if its rack is lost; (P,) each, or NOWHERE."""
    factors, usable, racks = np.diff(assignment.offsets), _usable(problem, assignment), problem.brokers.racks
    leaders, seconds, outside = (np.full(len(factors), NOWHERE) for _ in range(3))
    for place in range(int(factors.max(initial=0))):
        here = np.flatnonzero(factors > place)
        slots = assignment.offsets[here] + place
        here, hosts = here[usable[slots]], assignment.replicas[slots][usable[slots]]
        follows = leaders[here] != NOWHERE
        elsewhere = racks[hosts] != racks[leaders[here]]
        for chosen, mask in ((seconds, follows), (outside, follows & elsewhere), (leaders, ~follows)):
            free = mask & (chosen[here] == NOWHERE)
            chosen[here[free]] = hosts[free]
    return leaders, seconds, outside


def _adds(problem: Problem, column: int) -> FloatArray:
    """Load that leading a partition adds to following it, (P,)."""
    leading, following = loads_by_role(problem.failover_bands[column].goal)
    adds: FloatArray = leading(problem.partitions) - following(problem.partitions)
    return adds


def _base(problem: Problem, assignment: Assignment, leaders: IndexArray) -> FloatArray:
    """Load of every broker before any loss, (N, R)."""
    count, bands = len(problem.brokers), problem.failover_bands
    owners = assignment.owners
    base, led = np.zeros((count, len(bands))), leaders != NOWHERE
    for column, band in enumerate(bands):
        following = loads_by_role(band.goal)[1](problem.partitions)
        base[:, column] = np.bincount(assignment.replicas, following[owners], count)
        base[:, column] += np.bincount(leaders[led], _adds(problem, column)[led], count)
    return base


def _take_over(loads: FloatArray, offline: IndexArray, rows: IndexArray, heirs: IndexArray, extra: FloatArray) -> None:
    """Add takeovers to `loads`: loss `rows[p]` takes the leader of p, and broker `heirs[p]` leads then."""
    concerned = rows != NOWHERE
    orphans = concerned & (heirs == NOWHERE)
    offline += np.bincount(rows[orphans], minlength=len(offline))
    taken = concerned & ~orphans
    count = loads.shape[1]
    cells = rows[taken] * count + heirs[taken]
    for column in range(loads.shape[2]):
        added = np.bincount(cells, extra[taken, column], len(offline) * count)
        loads[:, :, column] += added.reshape(len(offline), count)


def _limits(problem: Problem, lost: BoolArray) -> FloatArray:
    """Limit of each surviving broker: its capacity, else the upper end of its band without the lost ones."""
    tolerance, bands = problem.rules.failover, problem.failover_bands
    limits = np.full((*lost.shape, len(bands)), np.inf)
    for column, band in enumerate(bands):
        capacity = problem.brokers.capacity.get(band.goal.name, np.full(lost.shape[1], np.inf))
        if tolerance is not None and np.isfinite(tolerance):
            parts = np.where(lost, 0.0, share_of_each(problem, band.goal)[None, :])
            whole = parts.sum(axis=1, keepdims=True)
            middle = total_of(problem, band.goal) * np.divide(parts, whole, out=np.zeros_like(parts), where=whole > 0)
            limits[:, :, column] = whole_numbers(band.goal, middle * (1 + tolerance), middle)
        limits[:, :, column] = np.where(np.isfinite(capacity)[None, :], capacity[None, :], limits[:, :, column])
    limits[lost] = np.inf
    return limits
