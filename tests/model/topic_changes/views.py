"""Views to decide upon."""

from __future__ import annotations

from kreassign.model import Partition, Topic, TopicPartition
from kreassign.model.topic_changes import BrokerView, TopicsView

FOO, FOO_0, FOO_1 = "foo", TopicPartition("foo", 0), TopicPartition("foo", 1)


def partition(
    number: int, replicas: tuple[int, ...], *, isr: tuple[int, ...] | None = None, leader: int | None = None
) -> Partition:
    """A partition of foo, with all in sync and the first in the lead unless it is said otherwise."""
    leader = replicas[0] if leader is None else leader
    return Partition(TopicPartition(FOO, number), replicas, replicas if isr is None else isr, leader)


def view(
    *partitions: Partition,
    brokers: tuple[BrokerView, ...] = tuple(BrokerView(number, rack) for number, rack in enumerate("abcabc")),
    sizes_bytes: dict[TopicPartition, int] | None = None,
    ongoing: frozenset[TopicPartition] = frozenset(),
    min_in_sync: int = 1,
) -> TopicsView:
    """A cluster with the topic foo; six brokers in three racks unless it is said otherwise."""
    topic = Topic(FOO, None, is_internal=False, partitions=partitions)
    return TopicsView(
        {broker.id: broker for broker in brokers}, {FOO: topic}, sizes_bytes or {}, ongoing, {FOO: min_in_sync}
    )
