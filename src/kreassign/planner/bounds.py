"""The least that any plan would have to copy."""

from __future__ import annotations

from kreassign.planner.thin import ByteProblem


def least_bytes(problem: ByteProblem) -> int:
    """Bytes that every plan which brings all brokers into the band must copy at the least.

    What stands above the band must leave its broker, what is missing below it must arrive, and one copied byte
    does at most one of each: the larger of the two sums. Whole partitions seldom reach it exactly.
    """
    load = dict.fromkeys(problem.broker_ids, 0)
    for partition in problem.partitions:
        for broker in partition.replicas:
            load[broker] += partition.size_bytes
    band = problem.band
    return max(sum(band.above(size) for size in load.values()), sum(band.below(size) for size in load.values()))
