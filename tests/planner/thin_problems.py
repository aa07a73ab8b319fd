"""Clusters for the planner's tests: small ones by hand, random ones from Hypothesis."""

from __future__ import annotations

from hypothesis import strategies as st

from kreassign.model import TopicPartition
from kreassign.planner import ByteProblem, PartitionLoad, PlanningBroker

MEGABYTE = 1_000_000


def problem(*lists: tuple[tuple[int, ...], int], brokers: int = 4, racks: str = "") -> ByteProblem:
    """Partitions t-0, t-1, … from (replicas, size in MB); rack of broker i is letter i of `racks`."""
    return ByteProblem(
        brokers=tuple(PlanningBroker(broker, racks[broker] if racks else None) for broker in range(brokers)),
        partitions=tuple(
            PartitionLoad(TopicPartition("t", number), replicas, size * MEGABYTE)
            for number, (replicas, size) in enumerate(lists)
        ),
    )


@st.composite
def problems(draw: st.DrawFn) -> ByteProblem:
    """Up to seven brokers on none to three racks, up to thirty partitions, some of them not to be moved."""
    broker_count = draw(st.integers(1, 7))
    racks = draw(st.sampled_from([None, "ab", "abc"]))
    brokers = tuple(
        PlanningBroker(number * 3, racks[number % len(racks)] if racks else None) for number in range(broker_count)
    )
    ids = [broker.id for broker in brokers]
    replica_lists = st.lists(st.sampled_from(ids), min_size=1, max_size=min(3, broker_count), unique=True).map(tuple)
    rows = draw(
        st.lists(st.tuples(replica_lists, st.integers(0, 10**9), st.integers(0, 9).map(bool)), min_size=0, max_size=30)
    )
    return ByteProblem(
        brokers=brokers,
        partitions=tuple(
            PartitionLoad(TopicPartition("t", number), replicas, size, may_move)
            for number, (replicas, size, may_move) in enumerate(rows)
        ),
        tolerance=draw(st.sampled_from([0.0, 0.05, 0.10, 0.5])),
    )
