"""Independent check of a finished plan: its cost, its effect, and all rules.

Shares no code with the search, so that both cannot have the same bug: loads, shares and bands are computed here
from the fields of the problem. Works on whole arrays; a million replicas take seconds.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from kreassign.model.text import format_load, told_load
from kreassign.planner.arrays import NOWHERE, BoolArray, BytesArray, FloatArray, sums
from kreassign.planner.check.case import Case
from kreassign.planner.check.cost import Changes, changes_of
from kreassign.planner.check.legality import above_limits, out_of_reach, unfinished, violations
from kreassign.planner.goals import Column, Goal, PartitionLoads, goal_named, is_goal
from kreassign.planner.problem.problem import Assignment, Problem

# Reads if consumers fetch from followers (KIP-392): every replica counts in its actual place.
#
# For the rules of the choice, see `with_consumer_racks` in `policy.py`. Several followers in a rack without the leader
# count alike, although Kafka takes the one that has caught up most.


def bytes_sent_by_brokers(problem: Problem, assignment: Assignment) -> FloatArray:
    """Bytes/s that each broker sends to consumers and followers, (N,)."""
    now, brokers = problem.partitions, problem.brokers
    whole = now.read_bytes_per_s + now.follower_read_bytes_per_s * (now.factors - 1)
    to_followers = np.minimum(now.write_bytes_per_s * (now.factors - 1), whole)
    consumed = whole - to_followers
    heads, owners = assignment.offsets[:-1], assignment.owners
    racks = brokers.racks[assignment.replicas]
    sent = np.zeros(len(owners))
    led_from = np.ones(len(now))
    for rack, name in enumerate(brokers.rack_names):
        part = np.array([problem.rules.consumer_racks.get(topic, {}).get(name, 0.0) for topic in now.topic_names])
        here = (racks == rack) & (racks[heads][owners] != rack)
        beside = np.bincount(owners[here], minlength=len(now))
        wanted = part[now.topics]
        sent[here] += (wanted * consumed)[owners[here]] / beside[owners[here]]
        led_from -= np.where(beside > 0, wanted, 0.0)
    sent[heads] += to_followers + consumed * np.maximum(led_from, 0.0)
    return sums(assignment.replicas, sent, len(brokers))


# Evaluation: loads, bands, limits and rules, before and after.

ROUNDING = 1e-9
NEAR = 1e-6  # largest distance from a whole number at which a share of counts is one


def _ones(partitions: PartitionLoads) -> FloatArray:
    return np.ones(len(partitions))


def _zeros(partitions: PartitionLoads) -> FloatArray:
    return np.zeros(len(partitions))


# Loads of a copy as leader and as follower; defined again here, independently of the goals.
_LOADS: dict[str, tuple[Column, Column]] = {
    "disk": (lambda p: p.size_bytes.astype(float), lambda p: p.size_bytes.astype(float)),
    "net-in": (lambda p: p.write_bytes_per_s, lambda p: p.write_bytes_per_s),
    "net-out": (lambda p: p.read_bytes_per_s, lambda p: p.follower_read_bytes_per_s),
    "cpu": (lambda p: p.leader_cpu, lambda p: p.follower_cpu),
    "replicas": (_ones, _ones),
    "leaders": (_ones, _zeros),
    "coordinators": (lambda p: p.coordinated_count, _zeros),
    "potential-net-out": (lambda p: p.read_bytes_per_s, lambda p: p.read_bytes_per_s),
}
_COUNTED = frozenset({"replicas", "leaders", "coordinators"})


@dataclass(frozen=True, slots=True)
class Miss:
    """A broker outside the band of a goal: `amount` above (positive) or below (negative) it, in `unit`."""

    broker: int
    goal: str
    amount: float
    unit: str

    def __str__(self) -> str:
        side = "above" if self.amount > 0 else "below"
        return f"broker {self.broker}: {self.goal} is {format_load(abs(self.amount), self.unit)} {side} its band"


@dataclass(frozen=True, slots=True, eq=False)
class Evaluation:
    """Cost and effect of a plan.

    `violations` has a sentence per broken rule; if empty, the plan is legal and its hard goals hold. `unfinished` names
    forced changes (drains, factors, repairs) that are left undone, for a budget or for want of a place, `out_of_reach`
    partitions that no plan can repair, `above_limits` loads that stay above a hard limit, by broker id and goal.
    `before`, `after`, `low` and `high` have shape (brokers, goals); `bytes_in`, `bytes_out` (sent by the present
    leaders) and `peak_bytes` (held once every copy has arrived and none was deleted) one value per broker.
    """

    violations: tuple[str, ...]
    unfinished: tuple[str, ...]
    out_of_reach: tuple[str, ...]
    above_limits: Mapping[tuple[int, str], str]
    broker_ids: tuple[int, ...]
    goals: tuple[str, ...]
    units: tuple[str, ...]
    before: FloatArray
    after: FloatArray
    low: FloatArray
    high: FloatArray
    bytes_in: BytesArray
    bytes_out: BytesArray
    peak_bytes: BytesArray
    moves: int
    leader_changes: int
    partitions: int
    log_dir_moves: int
    log_dir_bytes: int

    @property
    def legal(self) -> bool:
        """True if the plan breaks no rule."""
        return not self.violations

    @property
    def moved_bytes(self) -> int:
        """Bytes that the plan copies from broker to broker."""
        return int(self.bytes_in.sum())

    def misses(self, *, before: bool = False) -> tuple[Miss, ...]:
        """Brokers outside a band after (or before) the plan, by goal, the widest miss first."""
        load = self.before if before else self.after
        above = np.where(load > self.high * (1 + ROUNDING), load - self.high, 0.0)
        below = np.where(load < self.low * (1 - ROUNDING), load - self.low, 0.0)
        off = above + below
        means = [self.mean(goal, before=before) for goal in range(len(self.goals))]
        found = [
            Miss(
                self.broker_ids[broker],
                self.goals[goal],
                *told_load(float(off[broker, goal]), self.units[goal], means[goal]),
            )
            for broker, goal in zip(*np.nonzero(off), strict=True)
        ]
        return tuple(sorted(found, key=lambda miss: (self.goals.index(miss.goal), -abs(miss.amount), miss.broker)))

    def mean(self, goal: int, *, before: bool = False) -> float:
        """Mean load of a goal over the brokers with a share of it; 0.0 if there are none."""
        sharing = self.high[:, goal] > 0
        return float((self.before if before else self.after)[sharing, goal].mean()) if sharing.any() else 0.0

    def spread(self, goal: int, *, before: bool = False) -> tuple[float, float]:
        """Least and greatest load of a broker for a goal, as fractions of the mean; 1.0 if there is no load."""
        load, mean = (self.before if before else self.after)[:, goal], self.mean(goal, before=before)
        return (float(load.min() / mean), float(load.max() / mean)) if mean else (1.0, 1.0)

    @property
    def imbalance(self) -> float:
        """Widest miss of any band, as a fraction of the middle of that band; 0.0 if all are met."""
        middle = (self.low + np.where(np.isfinite(self.high), self.high, self.low)) / 2
        off = np.maximum(self.after - self.high, self.low - self.after)
        wide = np.where(off > ROUNDING * np.maximum(1.0, self.after), off, 0.0)
        relative = np.divide(wide, middle, out=np.where(wide > 0, np.inf, 0.0), where=middle > 0)
        return float(relative.max(initial=0.0))


def evaluate(problem: Problem, assignment: Assignment) -> Evaluation:
    """Evaluate an assignment. Raises InputError if its partitions or brokers are not those of the problem."""
    changes = changes_of(problem, assignment)
    goals = tuple(band.goal for band in problem.bands)
    present = Assignment.current(problem.partitions)
    before, after = (_told_loads(problem, one, goals) for one in (present, assignment))
    low, high = _bands(problem, goals)
    size = problem.partitions.size_bytes
    case = case_of(problem, assignment, changes)
    bytes_in, bytes_out = copied(problem, assignment, changes)
    disk = np.bincount(problem.partitions.replicas, size[problem.partitions.owners], len(problem.brokers))
    return Evaluation(
        violations=violations(case),
        unfinished=unfinished(case),
        out_of_reach=out_of_reach(case),
        above_limits=above_limits(case),
        broker_ids=tuple(problem.brokers.ids.tolist()),
        goals=tuple(goal.name for goal in goals),
        units=tuple(problem.unit_of(goal.name) for goal in goals),
        before=before,
        after=after,
        low=low,
        high=high,
        bytes_in=bytes_in,
        bytes_out=bytes_out,
        peak_bytes=disk.astype(np.int64) + bytes_in,
        moves=int(changes.added.sum()),
        leader_changes=int(changes.leader_changes.sum()),
        partitions=int(changes.differs.sum()),
        log_dir_moves=int(changes.changes_dir.sum()),
        log_dir_bytes=int(size[changes.owners[changes.changes_dir]].sum()),
    )


def case_of(problem: Problem, assignment: Assignment, changes: Changes) -> Case:
    """Collect the input of the rules."""
    limited = _limited(problem)
    columns = tuple(limited.values())
    return Case(
        problem,
        assignment,
        changes,
        tuple(limited),
        before=_loads(problem, Assignment.current(problem.partitions), columns),
        after=_loads(problem, assignment, columns),
        loads=columns,
    )


def copied(problem: Problem, assignment: Assignment, changes: Changes) -> tuple[BytesArray, BytesArray]:
    """Bytes that each broker receives, and sends as present leader; shapes (N,)."""
    count, added = len(problem.brokers), changes.added
    owners = changes.owners[added]
    size = problem.partitions.size_bytes[owners]
    received = np.zeros(count, np.int64)
    sent = np.zeros(count, np.int64)
    np.add.at(received, assignment.replicas[added], size)
    np.add.at(sent, problem.present_leaders[owners], size)
    return received, sent


def loads_by_role(goal: Goal) -> tuple[Column, Column]:
    """Load columns of a goal for a leading and for a following replica."""
    return _LOADS.get(goal.name, (goal.leader, goal.follower))


def _loads(problem: Problem, assignment: Assignment, columns: tuple[tuple[Column, Column], ...]) -> FloatArray:
    count = len(problem.brokers)
    owners = assignment.owners
    leads = np.zeros(len(owners), bool)
    leads[assignment.offsets[:-1]] = True
    loads = np.zeros((count, len(columns)))
    for column, (leading, following) in enumerate(columns):
        weight = np.where(leads, leading(problem.partitions)[owners], following(problem.partitions)[owners])
        loads[:, column] = np.bincount(assignment.replicas, weight, count)
    return loads


def _told_loads(problem: Problem, assignment: Assignment, goals: tuple[Goal, ...]) -> FloatArray:
    """Loads to report: reads count where they go if consumers fetch from followers. Limits are judged without that."""
    loads = _loads(problem, assignment, tuple(map(loads_by_role, goals)))
    for column, goal in enumerate(goals if problem.rules.consumer_racks else ()):
        if goal.name == "net-out":
            loads[:, column] = bytes_sent_by_brokers(problem, assignment)
    return loads


def _limited(problem: Problem) -> dict[str, tuple[Column, Column]]:
    """Loads with a hard limit, with or without a band, as columns for leaders and followers."""
    known = _LOADS | {band.goal.name: loads_by_role(band.goal) for band in problem.bands}
    others = {
        name: loads_by_role(goal_named(name)) for name in problem.brokers.capacity.keys() - known if is_goal(name)
    }
    known |= others
    return {name: known[name] for name in problem.brokers.capacity if name in known}


def _bands(problem: Problem, goals: tuple[Goal, ...]) -> tuple[FloatArray, FloatArray]:
    shape = (len(problem.brokers), len(goals))
    low, high = np.zeros(shape), np.full(shape, np.inf)
    for column, band in enumerate(problem.bands):
        if band.tolerance is not None:
            middle = total_of(problem, band.goal) * share_of_each(problem, band.goal)
            low[:, column] = middle * max(0.0, 1 - band.tolerance)
            high[:, column] = middle * (1 + band.tolerance)
            if band.goal.name in _COUNTED or band.goal.counts:
                low[:, column], high[:, column] = _whole(low[:, column], high[:, column], middle)
    for column, goal in enumerate(goals):
        limit = problem.brokers.capacity.get(goal.name, np.full(shape[0], np.inf))
        high[:, column] = np.minimum(high[:, column], limit)
    return np.minimum(low, high), high


def _whole(low: FloatArray, high: FloatArray, middle: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Round bands of counts to whole numbers: those inside, and always the two next to the middle."""
    least = np.minimum(np.ceil(low - NEAR), np.floor(middle + NEAR))
    return least, np.maximum(np.floor(high + NEAR), np.ceil(middle - NEAR))


def whole_numbers(goal: Goal, high: FloatArray, middle: FloatArray) -> FloatArray:
    """Upper ends of bands around these middles; whole numbers for counts."""
    return _whole(middle, high, middle)[1] if goal.name in _COUNTED or goal.counts else high


def total_of(problem: Problem, goal: Goal) -> float:
    """Load of the whole cluster with the wanted replication factors."""
    leading, following = loads_by_role(goal)
    now = problem.partitions
    return float((leading(now) + following(now) * (now.wanted_factors - 1)).sum())


def share_of_each(problem: Problem, goal: Goal) -> FloatArray:
    """Each broker's target part of the total, (N,): by `shares`, else by capacity, else equal."""
    brokers = problem.brokers
    limit = brokers.capacity.get(goal.name)
    stays = brokers.is_live & ~brokers.must_empty
    if goal.name in brokers.shares:
        part = brokers.shares[goal.name]
    elif limit is not None and np.isfinite(limit[stays]).all():
        part = limit
    else:
        part = np.ones(len(brokers))
    part = np.where(stays, part, 0.0)
    part = part / part.sum() if part.sum() else part
    leading, following = (column(problem.partitions) for column in loads_by_role(goal))
    return _around_kept_leaders(problem, leading, part) if leading.any() and not following.any() else part


def _around_kept_leaders(problem: Problem, leading: FloatArray, part: FloatArray) -> FloatArray:
    """Leave brokers that are given no leaders what they keep leading, and share out the rest by `part`."""
    now, (takes, leads) = problem.partitions, takers_of_leaders(problem)
    kept = sums(now.replicas[leads], leading[now.owners[leads]], len(problem.brokers))
    part = np.where(takes, part, 0.0)
    led_by_others = max(0.0, leading.sum() - kept.sum())
    return np.asarray((kept + part / (part.sum() or 1.0) * led_by_others) / leading.sum())


def takers_of_leaders(problem: Problem) -> tuple[BoolArray, BoolArray]:
    """Brokers that a plan may give leadership, (N,), and the leading replicas that the others keep, (S,)."""
    now, brokers, rules = problem.partitions, problem.brokers, problem.rules
    stays = brokers.is_live & ~brokers.must_empty
    takes = stays & brokers.may_get_leaders & brokers.may_be_named
    takes &= True if problem.gone is None else ~problem.gone.brokers
    eligible = (stays & brokers.may_get_leaders)[now.replicas]
    fixed = ~now.may_move[now.owners]
    if not rules.between_brokers:
        fixed |= ~problem.leaving & (sums(now.owners, eligible, len(now)) == 0)[now.owners]
    if not rules.leaders or rules.only_forced or rules.is_given:
        fixed |= ~problem.leaving & (stays & brokers.may_lead & ~brokers.may_get_leaders)[now.replicas]
    leads = np.arange(len(now.replicas)) == now.offsets[now.owners]
    return takes, leads & fixed & (stays & ~takes)[now.replicas]


# Log directories that stay full under a plan between brokers. Reported so that "nothing to do" does not mislead.

FULL = 0.90
"""Same threshold as in `kreassign doctor`."""

SHOWN_LOG_DIRS = 20


def full_log_dirs(problem: Problem, assignment: Assignment) -> tuple[str, ...]:
    """One sentence per log directory that stays full under a plan without directory changes, fullest first.

    Copies from other brokers do not count: Kafka chooses their directory. Empty if directories or their sizes are
    unknown, or if the plan may change them: then they are among its goals.
    """
    if problem.log_dirs is None or problem.rules.between_log_dirs:
        return ()
    found = list(_full_dir_sentences(problem, assignment))
    more = len(found) - SHOWN_LOG_DIRS
    return tuple(found[:SHOWN_LOG_DIRS]) + ((f"and {more} full log directories more",) if more > 0 else ())


def _full_dir_sentences(problem: Problem, assignment: Assignment) -> Iterator[str]:
    dirs = problem.log_dirs
    assert dirs is not None
    sizes = problem.partitions.size_bytes[assignment.owners]
    placed = assignment.log_dirs != NOWHERE
    held = np.bincount(assignment.log_dirs[placed], sizes[placed], minlength=len(dirs))
    known = np.isfinite(dirs.capacity_bytes) & (dirs.capacity_bytes > 0) & ~dirs.must_empty
    shares = np.divide(held, dirs.capacity_bytes, out=np.zeros(len(dirs)), where=known)
    for place in np.argsort(-shares, kind="stable").tolist():
        if shares[place] < FULL:
            return
        others = known & (dirs.brokers == dirs.brokers[place]) & dirs.may_receive
        others[place] = False
        name = f"log directory {dirs.paths[place]} of broker {problem.brokers.ids[dirs.brokers[place]]}"
        remedy = (
            "and no other one of it has room: it needs more brokers (`kreassign plan add-brokers`) or shorter retention"
        )
        if (emptiest := float(shares[others].min(initial=FULL))) < FULL:
            remedy = f"another one of it {emptiest:.0%}: `kreassign plan disks` moves copies within brokers"
        yield f"{name} holds {shares[place]:.0%} of what it may, {remedy}"
