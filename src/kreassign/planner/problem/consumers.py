"""Consumers that fetch from followers (KIP-392): where the reads of a partition go, as loads of leaders and followers.

With replica.selector.class=RackAwareReplicaSelector on the brokers, and client.rack on a consumer in rack k, the
consumer reads from the leader if that is in k, else from a follower in k if there is one, else from the leader. So of
what is read of a partition, with the part w(k) that consumers in rack k read of it,

    followers send  F = sum of w(k) over the racks that have a follower but not the leader
    the leader      1 - F, besides what it sends to followers

The search knows replicas by their role alone: each follower counts with F / (factor - 1), as replicas are spread now.
`check/consumer_reads.py` counts every replica where it is.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from kreassign.model.cpu_costs import CPU_PER_READ
from kreassign.planner.arrays import NOWHERE, FloatArray
from kreassign.planner.problem.cpu import leader_cost
from kreassign.planner.problem.problem import Problem


def with_consumer_racks(problem: Problem, parts: Mapping[str, Mapping[str, float]]) -> Problem:
    """The problem with reads that go to followers. `parts` has for topics the part of reads of each rack, by name."""
    if not parts:
        return problem
    partitions = problem.partitions
    consumed = np.maximum(partitions.read_bytes_per_s - partitions.write_bytes_per_s * (partitions.factors - 1), 0.0)
    moved = consumed * _followers_part(problem, parts)
    followers = partitions.factors - 1
    cost = leader_cost(partitions.write_bytes_per_s, partitions.read_bytes_per_s)
    # In the unit of what the leader has: of its CPU, what these reads cost of all that leading costs.
    moved_cpu = partitions.leader_cpu * np.divide(CPU_PER_READ * moved, cost, out=np.zeros(len(moved)), where=cost > 0)
    each, each_cpu = (
        np.divide(one, followers, out=np.zeros(len(moved)), where=followers > 0) for one in (moved, moved_cpu)
    )
    return replace(
        problem,
        rules=replace(problem.rules, consumer_racks=parts),
        partitions=replace(
            partitions,
            read_bytes_per_s=partitions.read_bytes_per_s - moved,
            follower_reads=each,
            leader_cpu=np.maximum(partitions.leader_cpu - moved_cpu, 0.0),
            follower_cpu=partitions.follower_cpu + each_cpu,
        ),
    )


def _followers_part(problem: Problem, parts: Mapping[str, Mapping[str, float]]) -> FloatArray:
    """Which part of the reads of each partition goes to its followers, (P,)."""
    partitions, brokers = problem.partitions, problem.brokers
    racks = brokers.racks[partitions.replicas]
    leaders = racks[partitions.offsets[:-1]][partitions.owners]
    weights = np.array([[parts.get(topic, {}).get(rack, 0.0) for rack in brokers.rack_names]
                        for topic in partitions.topic_names]).reshape(len(partitions.topic_names), -1)  # fmt: skip
    away = (racks != NOWHERE) & (racks != leaders)
    width = len(brokers.rack_names)
    served = np.unique(partitions.owners[away].astype(np.int64) * width + racks[away])
    owners = served // width
    found = np.bincount(owners, weights[partitions.topics[owners], served % width], len(partitions))
    return found.astype(np.float64)
