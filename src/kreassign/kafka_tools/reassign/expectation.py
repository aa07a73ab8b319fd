"""Compare the replica lists that a plan expects with what two brokers show."""

from __future__ import annotations

from collections.abc import Mapping

from kreassign.executor.cluster.port import ClusterPort
from kreassign.executor.cluster.readings import partitions_of, topics_of_two
from kreassign.model import TopicPartition
from kreassign.model.reassignment import check_expected


def compare(port: ClusterPort, expected: Mapping[TopicPartition, tuple[int, ...]]) -> None:
    """Raise `Drifted` for lists that differ, and ClusterError where two brokers do not agree on them."""
    topics = topics_of_two(port, {name.topic for name in expected}, only_lists=True)
    for error in topics.unknown.values():
        raise error
    check_expected(expected, {name: one.replicas for name, one in partitions_of(topics.known).items()})
