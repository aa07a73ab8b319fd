"""Actions of a second operator at the same time: each is one request, or a few, as Kafka's own tools would send.

Refusals are ignored, as with an unattended tool. No tool cleans up behind another operator.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from kreassign.model import ConfigOperation, ConfigResource
from kreassign.model.cluster import ResourceType, without
from kreassign.model.throttle import BROKER_THROTTLES, TOPIC_THROTTLES
from kreassign.twin.cluster import Twin
from kreassign.twin.controller.configs import AlterConfigs, KeyChange, ResourceChanges
from kreassign.twin.controller.reassignments import AlterReassignments, Target, TopicTargets
from kreassign.twin.controller.topics import CreateTopics, TopicReference, WantedTopic

_PATIENCE_MS = 60_000


def _change(twin: Twin, changes: Mapping[ConfigResource, Iterable[KeyChange]]) -> None:
    found = ((one, tuple(steps)) for one, steps in changes.items())
    resources = tuple(ResourceChanges(int(one.type), one.name, steps) for one, steps in found if steps)
    twin.controller.alter_configs(AlterConfigs(resources))


def _deletions(twin: Twin, resource: ConfigResource, names: Iterable[str]) -> tuple[KeyChange, ...]:
    """Deletions of those keys that are set."""
    present = twin.metadata.configs.get(resource, {})
    return tuple(KeyChange(ConfigOperation.DELETE, name, None) for name in names if name in present)


def clear_throttles(twin: Twin, broker: int | None) -> None:
    """Remove every throttle, of all brokers and topics, as `kafka-reassign-partitions --cancel` and `--verify` do.

    With `broker` only the rates of that broker, as with kafka-configs.
    """
    names = {ResourceType.TOPIC: TOPIC_THROTTLES, ResourceType.BROKER: BROKER_THROTTLES}
    mine = ConfigResource.broker(broker) if broker is not None else None
    owners = [one for one in sorted(twin.metadata.configs) if one.name and mine in (None, one)]
    _change(twin, {one: _deletions(twin, one, names.get(one.type, ())) for one in owners})


def clear_lists(twin: Twin) -> None:
    """Delete the lists of throttled replicas of all topics, as Strimzi's Topic Operator does; rates stay."""
    topics = map(ConfigResource.topic, sorted(twin.metadata.topics))
    _change(twin, {one: _deletions(twin, one, TOPIC_THROTTLES) for one in topics})


def set_throttles(twin: Twin, bytes_per_s: int) -> None:
    """Throttle other moves: set the rate, bytes per second, on every broker."""
    steps = tuple(KeyChange(ConfigOperation.SET, name, str(bytes_per_s)) for name in BROKER_THROTTLES[:2])
    _change(twin, {ConfigResource.broker(broker): steps for broker in sorted(twin.metadata.brokers)})


def remove_rates(twin: Twin, _bytes_per_s: int) -> None:
    """Remove the rates again, even if they were changed meanwhile."""
    brokers = [ConfigResource.broker(broker) for broker in sorted(twin.metadata.brokers)]
    _change(twin, {one: _deletions(twin, one, BROKER_THROTTLES[:2]) for one in brokers})


def list_replica(
    twin: Twin, topic: str, partition: int, broker: int, operation: ConfigOperation = ConfigOperation.APPEND
) -> None:
    """Add a replica to a topic's throttled ones."""
    if topic in twin.metadata.topics:
        steps = tuple(KeyChange(operation, name, f"{partition}:{broker}") for name in TOPIC_THROTTLES)
        _change(twin, {ConfigResource.topic(topic): steps})


def unlist_replica(twin: Twin, topic: str, partition: int, broker: int) -> None:
    """Remove that replica from the lists."""
    list_replica(twin, topic, partition, broker, ConfigOperation.SUBTRACT)


def move(twin: Twin, topic: str, partition: int, replicas: tuple[int, ...]) -> None:
    """Reassign a partition, even if it is being moved already."""
    twin.controller.alter_reassignments(AlterReassignments((TopicTargets(topic, (Target(partition, replicas),)),)))


def cancel_moves(twin: Twin) -> None:
    """Cancel every move in progress."""
    topics: dict[str, list[Target]] = {}
    for key in sorted(twin.metadata.reassigning):
        topics.setdefault(key.topic, []).append(Target(key.partition, None))
    entries = tuple(TopicTargets(topic, tuple(targets)) for topic, targets in topics.items())
    twin.controller.alter_reassignments(AlterReassignments(entries))


def recreate(twin: Twin, topic: str) -> None:
    """Delete a topic and create it again, empty, with as many partitions on the same brokers and a new id."""
    found = twin.metadata.topics.get(topic)
    if found is None:
        return
    states = sorted(found.partitions.items())
    # During a move: the former replicas, as far as they are still known.
    lists = tuple((number, without(state.replicas, state.adding)) for number, state in states)
    delete(twin, topic)
    twin.controller.create_topics(CreateTopics((WantedTopic(topic, assignments=lists),)))


def delete(twin: Twin, topic: str) -> None:
    """Delete a topic, unless it is gone."""
    twin.controller.delete_topics([TopicReference(topic)], _PATIENCE_MS, frozenset())
