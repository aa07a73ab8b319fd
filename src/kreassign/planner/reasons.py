"""The reason for each change of a plan: the goal that would be missed if this change alone were undone.

Forced changes are named by what forces them. The worth of any other is the growth of the distance from the bands if it
alone is undone after the plan. A change that is worth nothing alone (one half of an exchange) is explained by what it
takes off the distance today; by `together` if that is nothing either, or by `failover` or `topic-spread` if the policy
asks for them.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from kreassign.model.plan_facts import Reason
from kreassign.model.text import told_load
from kreassign.planner.arrays import NOWHERE, BoolArray, BytesArray, FloatArray, IntArray
from kreassign.planner.check.cost import Changes, changes_of
from kreassign.planner.check.evaluate import Evaluation, case_of
from kreassign.planner.check.legality import beyond_task, over_limit
from kreassign.planner.check.racks import rack_excess
from kreassign.planner.goals import DISK, FAILOVER, TOPIC_LEADERS, TOPIC_SPREAD
from kreassign.planner.problem.problem import Assignment, Problem

ROUNDING = 1e-9
CAPACITY = "capacity:"
_NEVER_STAYS = frozenset({"drain", "drain-dirs", "repair", "factor", "cordoned"})

Cause = tuple[str, float, str]
"""Name of the cause of a shift, its amount, and the unit of the amount."""


@dataclass(frozen=True, slots=True, eq=False)
class Shifts:
    """M shifts of load from one broker to another.

    `sources` and `destinations` (M) are broker indices, NOWHERE for a replica that is only added or only removed.
    `loads` (M, R) is the load shifted per band. `leading` (M) is True for a change of leader, False for a copy.
    """

    partitions: IntArray
    sources: IntArray
    destinations: IntArray
    loads: FloatArray
    leading: BoolArray


def reasons_of(problem: Problem, assignment: Assignment, evaluation: Evaluation) -> dict[int, tuple[Reason, ...]]:
    """Reasons for every partition that changes, by its index."""
    changes = changes_of(problem, assignment)
    shifts = _shifts(problem, assignment, changes)
    found: dict[int, list[Reason]] = {int(one): [] for one in np.flatnonzero(changes.differs)}
    worth = _worths(shifts, evaluation)
    forced = _forced(problem, assignment, shifts)
    _add_limits(problem, assignment, changes, shifts, forced)
    for number, partition in enumerate(shifts.partitions.tolist()):
        found[partition] += _as_reason(problem, shifts, number, forced[number], worth[number])
    for place in np.flatnonzero(changes.changes_dir):
        found[int(changes.owners[place])].append(_dir_reason(problem, assignment, changes, int(place)))
    return {
        partition: tuple(one) or (Reason(_last_cause(problem)),)  # only the order of followers differs
        for partition, one in found.items()
    }


def distance_from_band(load: FloatArray, low: FloatArray, high: FloatArray) -> FloatArray:
    """Distance from the band, in the unit of the load; 0 inside, up to rounding."""
    off = np.maximum(np.maximum(load - high, low - load), 0.0)
    return np.where(off > ROUNDING * np.maximum(1.0, np.abs(load)), off, 0.0)


def _shifts(problem: Problem, assignment: Assignment, changes: Changes) -> Shifts:
    """Pair leaving with arriving replicas of each partition, in order; then changes of leader among those that stay."""
    now = problem.partitions
    gone = np.flatnonzero(changes.removed)
    if problem.rules.only_forced:  # of a shrinking list, pair copies with those that could stay
        could_stay = ~problem.leaving[gone]
        gone = gone[np.lexsort((~could_stay, now.owners[gone]))]
    leaving = now.owners[gone], now.replicas[gone]
    arriving = changes.owners[changes.added], assignment.replicas[changes.added]
    heads = assignment.replicas[assignment.offsets[:-1]]
    partitions, sources, destinations = _paired(leaving, arriving)
    as_leader, as_follower = _columns(problem)
    leads = np.where(destinations == NOWHERE, sources == now.replicas[now.offsets[:-1]][partitions],
                     destinations == heads[partitions])  # fmt: skip
    loads = np.where(leads[:, None], as_leader[partitions], as_follower[partitions])
    stays = changes.leader_changes & ~changes.removed[now.offsets[:-1]]
    led = np.flatnonzero(stays & ~changes.added[assignment.offsets[:-1]]).astype(np.int32)
    return Shifts(
        np.append(partitions, led),
        np.append(sources, now.replicas[now.offsets[:-1]][led]),
        np.append(destinations, heads[led]),
        np.concatenate([loads, (as_leader - as_follower)[led]]),
        np.append(np.zeros(len(partitions), bool), np.ones(len(led), bool)),
    )


def _paired(
    leaving: tuple[IntArray, IntArray], arriving: tuple[IntArray, IntArray]
) -> tuple[IntArray, IntArray, IntArray]:
    left = dict(zip(_ranked(leaving[0]), leaving[1].tolist(), strict=True))
    came = dict(zip(_ranked(arriving[0]), arriving[1].tolist(), strict=True))
    keys = sorted(left.keys() | came.keys())
    return (
        np.array([partition for partition, _ in keys], np.int32),
        np.array([left.get(key, NOWHERE) for key in keys], np.int32),
        np.array([came.get(key, NOWHERE) for key in keys], np.int32),
    )


def _ranked(owners: IntArray) -> list[tuple[int, int]]:
    """Each entry with its rank among those of the same partition; entries are sorted by partition."""
    first = np.searchsorted(owners, owners)
    return list(zip(owners.tolist(), (np.arange(len(owners)) - first).tolist(), strict=True))


def _columns(problem: Problem) -> tuple[FloatArray, FloatArray]:
    shape = (len(problem.partitions), len(problem.bands))
    as_leader, as_follower = np.zeros(shape), np.zeros(shape)
    for column, band in enumerate(problem.bands):
        as_leader[:, column] = band.goal.leader(problem.partitions)
        as_follower[:, column] = band.goal.follower(problem.partitions)
    return as_leader, as_follower


def _worths(shifts: Shifts, evaluation: Evaluation) -> list[list[tuple[str, float, str]]]:
    """Goals that each shift serves, the most served (relative to the width of the band) first."""
    width = np.where(np.isfinite(evaluation.high), evaluation.high, 0.0).mean(axis=0)
    undone = _relief(shifts, evaluation, evaluation.after, undo=True)
    today = _relief(shifts, evaluation, evaluation.before, undo=False)
    relief = np.where((undone > 0).any(axis=1, keepdims=True), undone, today)
    relative = np.divide(relief, width, out=np.zeros_like(relief), where=width > 0)
    order = np.argsort(-relative, axis=1, kind="stable")
    means = [evaluation.mean(goal) for goal in range(len(evaluation.goals))]
    return [
        [
            (evaluation.goals[goal], *told_load(float(row[goal]), evaluation.units[goal], means[goal]))
            for goal in ranks
            if row[goal] > 0
        ]
        for row, ranks in zip(relief, order.tolist(), strict=True)
    ]


def _relief(shifts: Shifts, evaluation: Evaluation, load: FloatArray, *, undo: bool) -> FloatArray:
    """Decrease of the distances from the bands by each shift, shape (M, R)."""
    total = np.zeros_like(shifts.loads)
    for brokers, sign in ((shifts.sources, -1.0), (shifts.destinations, 1.0)):
        there = brokers != NOWHERE
        low, high = evaluation.low[brokers], evaluation.high[brokers]
        other = load[brokers] + (-sign if undo else sign) * shifts.loads
        change = distance_from_band(load[brokers], low, high) - distance_from_band(other, low, high)
        total += np.where(there[:, None], -change if undo else change, 0.0)
    return total


def _forced(problem: Problem, assignment: Assignment, shifts: Shifts) -> list[Cause | None]:
    brokers, size = problem.brokers, problem.partitions.size_bytes
    now, may_be_named = problem.partitions, problem.brokers.may_be_named
    lost = set(zip(now.owners[now.is_lost].tolist(), now.replicas[now.is_lost].tolist(), strict=True))
    outside = problem.strays & problem.rules.repair_sets
    strays = set(zip(now.owners[outside].tolist(), now.replicas[outside].tolist(), strict=True))
    drained = _in_drained_dirs(problem)
    present = Assignment.current(problem.partitions)
    repaired = rack_excess(problem, present) - rack_excess(problem, assignment)
    found: list[Cause | None] = []
    for partition, source, destination, leading in zip(
        shifts.partitions.tolist(), shifts.sources.tolist(), shifts.destinations.tolist(), shifts.leading.tolist(),
        strict=True,
    ):  # fmt: skip
        weight = float(size[partition])
        if NOWHERE in (source, destination):
            found.append(("factor", weight, "B"))
        elif not brokers.is_live[source] or (partition, source) in lost:
            found.append(("repair", weight, "B"))
        elif brokers.must_empty[source]:
            found.append(("drain", weight, "B"))
        elif not leading and (partition, source) in drained:
            found.append(("drain-dirs", weight, "B"))
        elif not leading and not may_be_named[source]:
            found.append(("cordoned", weight, "B"))
        elif not leading and (partition, source) in strays:
            found.append(("broker-sets", weight, "B"))
        elif leading and not brokers.may_get_leaders[source]:
            found.append(("demote", 1.0, ""))
        elif leading and _comes_nearer(problem, int(partition), source, destination):
            found.append(("leader-racks", 1.0, ""))
        elif not leading and repaired[partition] > 0 and (problem.rules.repair_racks or not problem.rules.only_forced):
            found.append(("racks", float(repaired[partition]), ""))
        else:
            found.append(None)
    return found


def _in_drained_dirs(problem: Problem) -> set[tuple[int, int]]:
    """Partition and broker of each copy in a log directory to be drained."""
    now, dirs = problem.partitions, problem.log_dirs
    if dirs is None or not problem.rules.between_log_dirs:
        return set()
    chosen = (now.log_dirs != NOWHERE) & dirs.must_empty[now.log_dirs]
    return set(zip(now.owners[chosen].tolist(), now.replicas[chosen].tolist(), strict=True))


def _comes_nearer(problem: Problem, partition: int, source: int, destination: int) -> bool:
    """True if leading goes to a rack that is more preferred for leaders of the topic."""
    names, racks = problem.partitions.topic_names, problem.brokers.racks
    order = problem.rules.leader_racks.get(names[problem.partitions.topics[partition]], ())
    places = {problem.brokers.rack_names.index(rack): place for place, rack in enumerate(order)}
    return places.get(int(racks[destination]), len(order)) < places.get(int(racks[source]), len(order))


def _add_limits(
    problem: Problem, assignment: Assignment, changes: Changes, shifts: Shifts, forced: list[Cause | None]
) -> None:
    """Put the limit that its source would exceed in `forced`, for shifts that the task does not demand."""
    beyond = beyond_task(problem, changes) if problem.rules.only_forced else {}
    if not beyond:
        return
    case = case_of(problem, assignment, changes)
    # From the end of each partition: of the replicas that crowd a rack, the first stay.
    for number in np.flatnonzero(np.isin(shifts.partitions, list(beyond)) & ~shifts.leading)[::-1].tolist():
        partition, source, cause = int(shifts.partitions[number]), int(shifts.sources[number]), forced[number]
        if not beyond[partition] or (cause is not None and cause[0] in _NEVER_STAYS):
            continue
        places = np.arange(assignment.offsets[partition], assignment.offsets[partition + 1])
        limits = [over_limit(case, partition, source, place) for place in places[changes.added[places]].tolist()]
        goal, excess = max((limit for limit in limits if limit), key=lambda one: one[1], default=("", 0.0))
        if goal:
            beyond[partition] -= 1
            forced[number] = f"{CAPACITY}{goal}", excess, problem.unit_of(goal)


def _as_reason(
    problem: Problem,
    shifts: Shifts,
    number: int,
    forced: tuple[str, float, str] | None,
    worth: list[tuple[str, float, str]],
) -> list[Reason]:
    source, destination = (
        None if one[number] == NOWHERE else int(problem.brokers.ids[one[number]])
        for one in (shifts.sources, shifts.destinations)
    )
    leading = bool(shifts.leading[number])
    causes = [forced] if forced else worth or [(_last_cause(problem, leading=leading), 0.0, "")]
    return [Reason(goal, source, destination, amount, unit, leading) for goal, amount, unit in causes]


def _last_cause(problem: Problem, *, leading: bool = False) -> str:
    """The goal behind a change that no band needs: among those that come last, if they are pursued."""
    rules = problem.rules
    last = (FAILOVER, rules.failover), (TOPIC_LEADERS, rules.topic_leaders), (TOPIC_SPREAD, rules.topic_spread)
    pursued = [goal for goal, tolerance in last if tolerance is not None]
    # Copies do not spread leaders; a change of leaders that no band needs most likely evens leaders of topics.
    likely = [goal for goal in pursued if (goal == TOPIC_LEADERS) == leading] or pursued
    return next(iter(likely), "together")


def _dir_reason(problem: Problem, assignment: Assignment, changes: Changes, place: int) -> Reason:
    dirs = problem.log_dirs
    before = problem.partitions.log_dirs[changes.present[place]]
    broker = int(problem.brokers.ids[assignment.replicas[place]])
    drained = dirs is not None and before != NOWHERE and bool(dirs.must_empty[before])
    size: BytesArray = problem.partitions.size_bytes
    other = f"{CAPACITY}{DISK.name}" if problem.rules.only_forced else "log-dirs"
    return Reason("drain-dirs" if drained else other, broker, broker, float(size[changes.owners[place]]), "B")
