"""Bytes that a plan copies from rack to rack: a new replica fetches from the leader that the partition has now.

Kafka's followers always fetch from the leader; only consumers may fetch from followers (KIP-392).
"""

from __future__ import annotations

import numpy as np

from kreassign.model.plan_facts import RackBytes
from kreassign.model.rack_prices import RackPrices
from kreassign.planner.arrays import NOWHERE, IntArray
from kreassign.planner.check.changes import changes_of
from kreassign.planner.problem.cluster import Assignment
from kreassign.planner.problem.problem import Problem


def rack_bytes(problem: Problem, assignment: Assignment, prices: RackPrices) -> tuple[RackBytes, ...]:
    """What is copied from each rack to each, also within one, with its price; by name, unknown racks last.

    Empty if nothing is copied, or no rack is known.
    """
    if not problem.brokers.rack_names:
        return ()
    changes, now = changes_of(problem, assignment), problem.partitions
    owners = changes.owners[changes.added]
    sources = problem.brokers.racks[_leaders(problem)[owners]]
    targets = problem.brokers.racks[assignment.replicas[changes.added]]
    found = []
    for source, target in sorted(set(zip(sources.tolist(), targets.tolist(), strict=True))):
        chosen = (sources == source) & (targets == target)
        amount = int(now.size_bytes[owners[chosen]].sum())
        names = tuple(None if rack == NOWHERE else problem.brokers.rack_names[rack] for rack in (source, target))
        found.append(RackBytes(names[0], names[1], amount, prices.cost(names[0], names[1], amount)))
    return tuple(sorted(found, key=_by_name))


def _by_name(one: RackBytes) -> tuple[bool, str, bool, str]:
    return one.source is None, one.source or "", one.target is None, one.target or ""


def _leaders(problem: Problem) -> IntArray:
    """The broker that leads each partition now: the first of its list that is usable, else the first; (P,)."""
    partitions, brokers = problem.partitions, problem.brokers
    usable = brokers.is_live[partitions.replicas] & ~partitions.is_lost
    if problem.gone is not None:
        usable &= ~problem.gone.replicas
    place = np.where(usable, np.arange(len(usable)), len(usable))
    first = np.minimum.reduceat(place, partitions.offsets[:-1])
    leaders: IntArray = partitions.replicas[np.where(first == len(usable), partitions.offsets[:-1], first)]
    return leaders
