"""The same cluster under other circumstances: other brokers, other traffic, a later day, another factor."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np

from kreassign.errors import InputError
from kreassign.planner.problem.brokers import Brokers
from kreassign.planner.problem.partitions import NOWHERE
from kreassign.planner.problem.problem import Problem
from kreassign.planner.tasks.drain_brokers import drain_brokers
from kreassign.planner.tasks.factors import change_factors

DAYS_PER_MONTH = 30


@dataclass(frozen=True, slots=True)
class Circumstances:
    """What would be different.

    `traffic` multiplies rates and cpu; `growth_per_month` (0.05 for 5 % in 30 days, compound) lets rates, cpu and
    sizes grow for `days`. `added` brokers are empty and like the middle of the present ones, `removed` are ids.
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


def what_if(problem: Problem, circumstances: Circumstances) -> Problem:
    """The problem as it would be. Raises InputError for brokers to remove that are not there."""
    grown = (1 + circumstances.growth_per_month) ** (circumstances.days / DAYS_PER_MONTH)
    problem = scaled(problem, rates=circumstances.traffic * grown, sizes=grown)
    if circumstances.added:
        problem = with_new_brokers(problem, circumstances.added)
    if circumstances.removed:
        problem = drain_brokers(problem, circumstances.removed)
    return problem if circumstances.factor is None else change_factors(problem, circumstances.factor)


def scaled(problem: Problem, *, rates: float = 1.0, sizes: float = 1.0) -> Problem:
    """All rates and cpu, and all sizes, multiplied."""
    now = problem.partitions
    partitions = replace(
        now,
        size_bytes=np.rint(now.size_bytes * sizes).astype(np.int64),
        write_bytes_per_s=now.write_bytes_per_s * rates,
        read_bytes_per_s=now.read_bytes_per_s * rates,
        leader_cpu=now.leader_cpu * rates,
        follower_cpu=now.follower_cpu * rates,
    )
    return replace(problem, partitions=partitions)


def with_new_brokers(problem: Problem, count: int) -> Problem:
    """The same cluster with empty brokers of the next ids, each in the rack that then has the fewest."""
    brokers = problem.brokers
    ids = [*brokers.ids.tolist(), *range(int(brokers.ids.max()) + 1, int(brokers.ids.max()) + 1 + count)]
    racks = brokers.racks.tolist()
    for _ in range(count):
        racks.append(_fullest_need(racks, len(brokers.rack_names)))
    return replace(problem, brokers=_extended(brokers, count, ids, racks))


def _fullest_need(racks: list[int], known: int) -> int:
    return min(range(known), key=lambda rack: (racks.count(rack), rack)) if known else NOWHERE


def _extended(brokers: Brokers, count: int, ids: Iterable[int], racks: Iterable[int]) -> Brokers:
    yes, no = np.ones(count, bool), np.zeros(count, bool)
    return Brokers(
        ids=np.fromiter(ids, np.int32),
        racks=np.fromiter(racks, np.int32),
        rack_names=brokers.rack_names,
        is_live=np.append(brokers.is_live, yes),
        may_receive=np.append(brokers.may_receive, yes),
        may_lead=np.append(brokers.may_lead, yes),
        must_empty=np.append(brokers.must_empty, no),
        broker_sets=np.append(brokers.broker_sets, np.full(count, NOWHERE, np.int32)),
        capacity={name: np.append(one, np.full(count, np.median(one))) for name, one in brokers.capacity.items()},
        shares={name: np.append(one, np.full(count, np.median(one))) for name, one in brokers.shares.items()},
    )
