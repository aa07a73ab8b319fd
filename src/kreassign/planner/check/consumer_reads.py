"""What each broker sends where consumers fetch from followers (KIP-392): every replica counts where it is.

The rules of the choice: `problem/consumers.py`. Of several followers in a rack without the leader all are counted
alike: Kafka takes the one that has caught up most.
"""

from __future__ import annotations

import numpy as np

from kreassign.planner.arrays import FloatArray, sums
from kreassign.planner.problem.cluster import Assignment
from kreassign.planner.problem.problem import Problem


def bytes_sent(problem: Problem, assignment: Assignment) -> FloatArray:
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
