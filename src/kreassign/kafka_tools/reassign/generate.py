"""`--generate`: propose an assignment of topics to brokers. Changes nothing in the cluster."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from random import SystemRandom

from kreassign.kafka_tools.failures import ToolError, java_exception
from kreassign.kafka_tools.reassign import messages
from kreassign.kafka_tools.reassign.client import ToolClient
from kreassign.kafka_tools.reassign.log_dirs import current_plan
from kreassign.kafka_tools.reassign.messages import say
from kreassign.kafka_tools.reassign.requests import GenerateRequest
from kreassign.model import Broker, Topic, TopicPartition
from kreassign.model.plan import PartitionAssignment, Plan
from kreassign.model.plan_json import format_plan
from kreassign.model.striped import RandomSource, UsableBroker, place


def generate(client: ToolClient, request: GenerateRequest) -> None:
    """Print where the topics are now and where the striped placer would put them."""
    live = client.brokers()
    topics = known_topics(client.topics(request.topics))
    assigned = {partition.topic_partition: partition.replicas for topic in topics for partition in topic.partitions}
    current = current_plan(client, assigned, live)
    usable = usable_brokers(live, request.brokers, is_rack_aware=request.is_rack_aware)
    proposed = propose(topics, usable, SystemRandom())
    say(messages.candidate(format_plan(current), format_plan(proposed)))


def known_topics(described: Mapping[str, Topic | None]) -> tuple[Topic, ...]:
    """All topics described; raises `ToolError` for the first that does not exist."""
    for name, topic in described.items():
        if topic is None:
            raise ToolError(java_exception("UnknownTopicOrPartitionException", f"Topic {name} not found."))
    return tuple(topic for topic in described.values() if topic is not None)


def usable_brokers(live: Iterable[Broker], wanted: Iterable[int], *, is_rack_aware: bool) -> tuple[UsableBroker, ...]:
    """The wanted brokers that are live, the others silently left out.

    Raises `ToolError` if racks count and only some of these brokers have one.
    """
    ids = frozenset(wanted)
    chosen = tuple(
        UsableBroker(broker.id, broker.rack if is_rack_aware else None) for broker in live if broker.id in ids
    )
    without_rack = sum(broker.rack is None for broker in chosen)
    if is_rack_aware and without_rack not in (0, len(chosen)):
        raise ToolError(
            "Not all brokers have rack information. Add --disable-rack-aware in command line to make replica "
            "assignment without rack information."
        )
    return chosen


def propose(topics: Iterable[Topic], brokers: tuple[UsableBroker, ...], random: RandomSource) -> Plan:
    """New replica lists for all partitions; each topic is placed for itself, as if it were new.

    A topic gets the replication factor of its first partition. Raises `Infeasible` if there are too few brokers.
    """
    assignments: list[PartitionAssignment] = []
    for topic in topics:
        replication_factor = len(topic.partitions[0].replicas)
        placements = place(brokers, len(topic.partitions), replication_factor, random)
        assignments += (
            PartitionAssignment(TopicPartition(topic.name, number), replicas)
            for number, replicas in enumerate(placements)
        )
    return Plan(tuple(assignments))
