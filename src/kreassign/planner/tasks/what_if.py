"""What if: the same cluster under other circumstances, the number of brokers that a load needs, and alternative plans.

`what_if` changes loads, brokers or limits of a problem. `brokers_needed` searches the fewest brokers. `pareto`
returns several plans for one task, none of which is worse than another in everything.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import chain, islice

import numpy as np

from kreassign.errors import Infeasible, InputError
from kreassign.model.closures import Closure
from kreassign.model.plan_facts import plan_id
from kreassign.model.text import counted, format_amount
from kreassign.planner.arrays import NOWHERE
from kreassign.planner.check.cost import predict
from kreassign.planner.check.evaluate import evaluate
from kreassign.planner.goals import GOALS
from kreassign.planner.problem.build import refuse_absurd_sizes
from kreassign.planner.problem.problem import Assignment, Band, Brokers, Problem
from kreassign.planner.results import plan_of
from kreassign.planner.search.search import solve
from kreassign.planner.tasks.tasks import change_factors, drain_brokers

DAYS_PER_MONTH = 30
MOST_TIMES = 1_000_000


@dataclass(frozen=True, slots=True)
class Circumstances:
    """Hypothetical changes of load and brokers.

    `traffic` multiplies rates and CPU; `growth_per_month` (0.05 for 5 % in 30 days, compound) makes rates, CPU and
    sizes grow for `days`. `added` is a number of empty brokers like the median of the present ones, `removed` are ids.
    """

    added: int = 0
    removed: tuple[int, ...] = ()
    traffic: float = 1.0
    growth_per_month: float = 0.0
    days: float = 0.0
    factor: int | None = None

    def __post_init__(self) -> None:
        if self.added < 0 or not self.traffic >= 0 or not self.growth_per_month > -1 or not self.days >= 0:
            raise InputError("brokers to add, traffic and days cannot be negative, and growth must be above -100 %")
        if not max(1.0, self.traffic) * self.grown <= MOST_TIMES:
            raise InputError(f"with this growth and traffic there would be more than {MOST_TIMES:,} times as much")

    @property
    def grown(self) -> float:
        """Growth factor over the days."""
        try:
            return float((1 + self.growth_per_month) ** (self.days / DAYS_PER_MONTH))
        except OverflowError:
            return math.inf


def what_if(problem: Problem, circumstances: Circumstances) -> Problem:
    """Apply the circumstances to the problem. Raises InputError for unknown brokers to remove."""
    grown = circumstances.grown
    problem = scaled(problem, rates=circumstances.traffic * grown, sizes=grown)
    if circumstances.added:
        problem = with_new_brokers(problem, circumstances.added)
    if circumstances.removed:
        problem = drain_brokers(problem, circumstances.removed)
    return problem if circumstances.factor is None else change_factors(problem, circumstances.factor)


def scaled(problem: Problem, *, rates: float = 1.0, sizes: float = 1.0) -> Problem:
    """Multiply all rates and CPU, and all sizes. Raises InputError for more bytes than any cluster has."""
    now = problem.partitions
    size_bytes = now.size_bytes.astype(np.float64) * sizes
    refuse_absurd_sizes(size_bytes, now.factors, now.name, "assume less growth")
    partitions = replace(
        now,
        size_bytes=np.rint(size_bytes).astype(np.int64),
        write_bytes_per_s=now.write_bytes_per_s * rates,
        read_bytes_per_s=now.read_bytes_per_s * rates,
        leader_cpu=now.leader_cpu * rates,
        follower_cpu=now.follower_cpu * rates,
        follower_reads=None if now.follower_reads is None else now.follower_reads * rates,
    )
    return replace(problem, partitions=partitions)


def with_new_brokers(problem: Problem, count: int) -> Problem:
    """Add empty brokers with the next ids, each to the rack that has the fewest by then.

    After the highest id that Kafka allows, the lowest free ids follow.
    """
    brokers = problem.brokers
    present, highest = frozenset(brokers.ids.tolist()), int(brokers.ids.max())
    free = chain(range(highest + 1, min(highest + 1 + count, 2**31)), range(count + len(present)))
    ids = list(islice((one for one in free if one not in present), count))
    racks = brokers.racks.tolist()
    for _ in range(count):
        known = range(len(brokers.rack_names))
        racks.append(min(known, key=lambda rack: (racks.count(rack), rack), default=NOWHERE))
    return replace(problem, brokers=brokers.extended(ids, racks[len(brokers) :], are_open=True))


RIGHT_SIZE_TRIES = 10
ROUNDING = 1e-9
MOST_BROKERS = 10_000
"""Largest plausible cluster: if more are needed, loads or limits are wrong."""


@dataclass(frozen=True, slots=True)
class ResourceNeed:
    """Demand for one resource: `total` load, `limit` per broker (reduced to the usable part), number of brokers."""

    goal: str
    unit: str
    total: float
    limit: float
    brokers: int


@dataclass(frozen=True, slots=True)
class RightSize:
    """`brokers` suffice, as a found placement shows; `needs` has the minimum of each resource alone.

    Only resources with a limit are in `needs`. `unlimited` names loads without a known limit of the brokers, `unknown`
    resources without a known load: neither was counted. `factor` is the largest replication factor, the minimum number
    of brokers however small the load.
    """

    brokers: int
    present: int
    at_most: float
    needs: tuple[ResourceNeed, ...]
    unlimited: tuple[str, ...] = ()
    unknown: tuple[str, ...] = ()
    factor: int = 1


def brokers_needed(problem: Problem, at_most: float = 0.7) -> RightSize:
    """Find the fewest brokers like the present ones, none above `at_most` of any limit; closed brokers do not count.

    All have the median limits. Starts with the need of each resource alone and adds brokers until a placement is found.
    Raises InputError without any limit, Infeasible if a replica is too large for a broker, if even `RIGHT_SIZE_TRIES`
    more brokers than the resources need do not suffice, or they need more than `MOST_BROKERS`.
    """
    if not 0 < at_most <= 1:
        raise InputError(f"brokers cannot be used at {at_most:.0%} of their limits; specify from 1 to 100 %")
    reduced = _reduced(problem, at_most)
    needs = _needs(reduced)
    if not needs:
        raise InputError("no limit of the brokers is known; name some in the goals file, under [capacity]")
    factor = int(problem.partitions.wanted_factors.max(initial=1))
    least = max(*(need.brokers for need in needs), factor, 1)
    if least > MOST_BROKERS:
        most = max(needs, key=lambda need: need.brokers)
        raise Infeasible(
            f"{most.goal} asks for {counted(least, 'broker')}, and more than {MOST_BROKERS:,} are not looked into: "
            "look at the loads (`kreassign load --show`) and at the limits",
            goals=(most.goal,),
        )
    _refuse_too_large(reduced, needs, at_most)
    unlimited, unknown = _not_counted(reduced, needs)
    for count in range(least, least + RIGHT_SIZE_TRIES + 1):
        if _fits(reduced, count, needs):
            present = int(reduced.brokers.staying.sum())
            return RightSize(count, present, at_most, needs, unlimited, unknown, factor)
    raise Infeasible(
        f"no placement was found on {least} to {least + RIGHT_SIZE_TRIES} brokers; more are not looked into: allow "
        "more of each limit (--at-most)"
    )


def _refuse_too_large(problem: Problem, needs: tuple[ResourceNeed, ...], at_most: float) -> None:
    """Raise Infeasible for a partition whose leader exceeds a limit on any broker, however many there are."""
    goals = {band.goal.name: band.goal for band in problem.bands}
    for need in needs:
        loads = goals[need.goal].leader(problem.partitions)
        if len(loads) and (most := float(loads.max())) > need.limit * (1 + ROUNDING):
            name, amounts = problem.partitions.name(int(loads.argmax())), (most, need.limit)
            load, limit = (format_amount(one, need.unit) for one in amounts)
            raise Infeasible(
                f"{name} alone has {load} of {need.goal}, and one broker may have {limit}, {at_most:.0%} of the limit "
                "that is usual here: no number of such brokers carries it",
                goals=(need.goal,),
            )


def _reduced(problem: Problem, at_most: float) -> Problem:
    brokers: Brokers = problem.brokers
    is_closed = brokers.closures != Closure.NONE
    brokers = replace(brokers, must_empty=brokers.must_empty | is_closed)
    capacity = {name: limits * at_most for name, limits in brokers.capacity.items()}
    bands = tuple(Band(band.goal, None) for band in problem.with_limits().bands)
    free = replace(problem.partitions, holds=np.zeros(len(problem.partitions), np.int32))
    return replace(problem, brokers=replace(brokers, capacity=capacity), bands=bands, partitions=free)


def _needs(problem: Problem) -> tuple[ResourceNeed, ...]:
    found = []
    for band, total in zip(problem.bands, problem.totals.tolist(), strict=True):
        limits = problem.brokers.capacity_of(band.goal.name)
        known = problem.brokers.staying & np.isfinite(limits)
        limit = float(np.median(limits[known])) if known.any() else math.inf
        if math.isfinite(limit) and limit > 0:
            unit, count = problem.unit_of(band.goal.name), math.ceil(total / limit - 1e-9)
            found.append(ResourceNeed(band.goal.name, unit, total, limit, count))
    return tuple(found)


def _not_counted(problem: Problem, needs: tuple[ResourceNeed, ...]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Resources without a limit, and resources that are zero everywhere, so unknown."""
    goals = {goal.name: goal for goal in (*GOALS, *(band.goal for band in problem.bands))}
    partitions, counted = problem.partitions, {need.goal for need in needs}
    known = {name for name, goal in goals.items() if goal.leader(partitions).any() or goal.follower(partitions).any()}
    return tuple(name for name in goals if name in known - counted), tuple(name for name in goals if name not in known)


def _fits(problem: Problem, count: int, needs: tuple[ResourceNeed, ...]) -> bool:
    present = _across_racks(problem.brokers)
    sized = drain_brokers(problem, present[count:]) if count < len(present) else problem
    if count > len(present):
        sized = with_new_brokers(problem, count - len(present))
    usual = {need.goal: np.full(len(sized.brokers), need.limit) for need in needs}
    sized = replace(sized, brokers=replace(sized.brokers, capacity={**sized.brokers.capacity, **usual}))
    try:
        found = evaluate(sized, solve(sized).assignment)
    except Infeasible:
        return False
    return found.legal and not found.above_limits


def _across_racks(brokers: Brokers) -> list[int]:
    """Ids of the brokers that stay, one of each rack in turn."""
    taken: Counter[int] = Counter()
    order = []
    for broker, rack in zip(
        brokers.ids[brokers.staying].tolist(), brokers.racks[brokers.staying].tolist(), strict=True
    ):
        order.append((taken[rack], rack, broker))
        taken[rack] += 1
    return [broker for _, _, broker in sorted(order)]


# Several plans for one task, none of which is worse than another in everything.

TOLERANCES = (0.03, 0.05, 0.2, 0.4)
PARTS_OF_BYTES = (0.1, 0.25, 0.5, 0.75)
ANY_RATE = 1e6


@dataclass(frozen=True, slots=True, eq=False)
class Choice:
    """One plan: its variant of the request, its cost, and the widest miss of the bands that it leaves.

    `problem` has the bands of the request, with the rules and the budget of the variant. `undone` is the number of
    sentences on what the request demands and this plan leaves undone.
    """

    id: str
    asked_for: str
    problem: Problem
    assignment: Assignment
    moved_bytes: int
    imbalance: float
    seconds: float
    leader_changes: int
    undone: int = 0

    @property
    def _costs(self) -> tuple[float, ...]:
        return self.moved_bytes, round(self.imbalance, 9), self.seconds, self.leader_changes, self.undone

    def beats(self, other: Choice) -> bool:
        """True if this plan is nowhere worse than the other and somewhere better."""
        return self._costs != other._costs and all(a <= b for a, b in zip(self._costs, other._costs, strict=True))


def pareto(problem: Problem, rate_bytes_per_s: float = ANY_RATE) -> tuple[Choice, ...]:
    """Plans with other bands, fewer bytes, no leader changes, or only leader changes; the fewest bytes first.

    Balance is judged by the bands of the problem. Plans that another plan beats in bytes, balance, time, leader changes
    and what it leaves undone are left out, and so are equal ones.
    """
    found: dict[str, Choice] = {}
    for asked_for, variant in _variants(problem):
        try:
            choice = _choice(problem, variant, asked_for, rate_bytes_per_s)
        except Infeasible:
            continue
        found.setdefault(choice.id, choice)
    kept = [one for one in found.values() if not any(other.beats(one) for other in found.values())]
    return tuple(sorted(kept, key=lambda one: (one.moved_bytes, one.imbalance, one.id)))


def _variants(problem: Problem) -> Iterator[tuple[str, Problem]]:
    yield "as asked", problem
    yield "leaders only", replace(problem, rules=replace(problem.rules, between_brokers=False))
    yield "leaders stay", replace(problem, rules=replace(problem.rules, leaders=False))
    for tolerance in TOLERANCES:
        bands = tuple(replace(band, tolerance=tolerance) if band.tolerance else band for band in problem.bands)
        yield f"bands of ±{tolerance:.0%}", replace(problem, bands=bands)
    whole = evaluate(problem, solve(problem).assignment).moved_bytes
    for part in PARTS_OF_BYTES:
        budget = replace(problem.budget, moved_bytes=int(whole * part))
        yield f"{part:.0%} of the bytes", replace(problem, budget=budget)


def _choice(problem: Problem, variant: Problem, asked_for: str, rate: float) -> Choice:
    assignment = solve(variant).assignment
    found = evaluate(problem, assignment)
    return Choice(
        id=plan_id(plan_of(problem, assignment)),
        asked_for=asked_for,
        problem=replace(problem, rules=variant.rules, budget=variant.budget),
        assignment=assignment,
        moved_bytes=found.moved_bytes,
        imbalance=found.imbalance,
        seconds=predict(problem, assignment, rate).seconds,
        leader_changes=found.leader_changes,
        undone=len(found.unfinished) + len(found.violations),
    )
