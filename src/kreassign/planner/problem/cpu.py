"""PURE. What replicas cost brokers of their CPU: as measured, else estimated from bytes.

Kafka measures the CPU of a broker, not of a partition. `kreassign load` shares it out to the replicas of the broker, as
parts of its CPU: 1 is all of it. Where no broker measured any, only proportions are known (`model/cpu_costs.py`): they
are enough to even CPU out, and mean nothing beside a limit.
"""

from __future__ import annotations

import numpy as np

from kreassign.model.cpu_costs import CPU_PER_COPY, CPU_PER_READ, CPU_PER_WRITE
from kreassign.planner.arrays import FloatArray
from kreassign.planner.problem.cluster import Partitions


def replica_cpu(
    write: FloatArray, sent: FloatArray, leader: FloatArray | None, follower: FloatArray | None
) -> tuple[FloatArray, FloatArray]:
    """What a partition costs its leader and each follower of their CPU, (P,) each, where NaN or None was not measured.

    Estimates are what bytes cost in proportion to each other. As soon as some CPU is known, they are scaled to it: as
    much CPU for the same bytes as in all partitions that were measured.
    """
    estimates = leader_cost(write, sent), CPU_PER_COPY * write
    measured = [np.full(len(write), np.nan) if one is None else one for one in (leader, follower)]
    known = [~np.isnan(one) for one in measured]
    cost, cpu = (
        sum(float(values[which].sum()) for values, which in zip(of, known, strict=True)) for of in (estimates, measured)
    )
    scale = cpu / cost if cost else 1.0
    found = [np.where(which, one, scale * each) for one, which, each in zip(measured, known, estimates, strict=True)]
    return found[0], found[1]


def leader_cost(write: FloatArray, sent: FloatArray) -> FloatArray:
    """What leading costs of a CPU by what bytes cost, in proportion to other costs."""
    return CPU_PER_WRITE * write + CPU_PER_READ * sent


def cpu_per_cost(partitions: Partitions) -> float:
    """What a unit of cost takes of a CPU, by all that the partitions lead: what is not there yet is estimated by it."""
    cost = float(leader_cost(partitions.write_bytes_per_s, partitions.read_bytes_per_s).sum())
    return float(partitions.leader_cpu.sum()) / cost if cost else 1.0
