"""Actions of a second operator at the same time: each is one request, or a few, as Kafka's own tools would send.

Unless a class says otherwise, recovery undoes nothing: no tool cleans up behind another operator.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from kreassign.errors import InputError
from kreassign.model import ConfigOperation, ConfigResource
from kreassign.model.cluster import ResourceType
from kreassign.model.throttle import BROKER_THROTTLES, TOPIC_THROTTLES
from kreassign.twin.cluster import Twin
from kreassign.twin.controller.configs import AlterConfigs, KeyChange, ResourceChanges
from kreassign.twin.controller.reassignments import AlterReassignments, Target, TopicTargets
from kreassign.twin.controller.topics import CreateTopics, TopicReference, WantedTopic
from kreassign.twin.faults.failures import Fault, need_broker

_PATIENCE_MS = 60_000


@dataclass(frozen=True, slots=True)
class _TopicFault(Fault):
    topic: str

    def check(self, twin: Twin) -> None:
        if self.topic not in twin.metadata.topics:
            raise InputError(f"a fault names topic {self.topic}; the cluster has {sorted(twin.metadata.topics)[:10]}")


@dataclass(frozen=True, slots=True)
class _PartitionFault(_TopicFault):
    partition: int

    def check(self, twin: Twin) -> None:
        _TopicFault.check(self, twin)
        if self.partition not in twin.metadata.topics[self.topic].partitions:
            raise InputError(f"a fault names partition {self.topic}-{self.partition}, which does not exist")


def _change(twin: Twin, changes: Mapping[ConfigResource, Iterable[KeyChange]]) -> None:
    """Change configuration; refusals are ignored, as with an unattended tool."""
    found = ((one, tuple(steps)) for one, steps in changes.items())
    resources = tuple(ResourceChanges(int(one.type), one.name, steps) for one, steps in found if steps)
    twin.controller.alter_configs(AlterConfigs(resources))


def _deletions(twin: Twin, resource: ConfigResource, names: Iterable[str]) -> tuple[KeyChange, ...]:
    """Deletions of those keys that are set."""
    present = twin.metadata.configs.get(resource, {})
    return tuple(KeyChange(ConfigOperation.DELETE, name, None) for name in names if name in present)


@dataclass(frozen=True, slots=True)
class ClearThrottles(Fault):
    """Remove every throttle, of all brokers and topics, as `kafka-reassign-partitions --cancel` and `--verify` do.

    With `broker` only the rates of that broker, as with kafka-configs.
    """

    broker: int | None = None

    def check(self, twin: Twin) -> None:
        """Raise InputError if this twin cannot have the fault."""
        if self.broker is not None:
            need_broker(twin, self.broker)

    def inject(self, twin: Twin) -> None:
        """Remove the throttles."""
        names = {ResourceType.TOPIC: TOPIC_THROTTLES, ResourceType.BROKER: BROKER_THROTTLES}
        mine = ConfigResource.broker(self.broker) if self.broker is not None else None
        owners = [one for one in sorted(twin.metadata.configs) if one.name and mine in (None, one)]
        _change(twin, {one: _deletions(twin, one, names.get(one.type, ())) for one in owners})


@dataclass(frozen=True, slots=True)
class ClearLists(Fault):
    """Delete the lists of throttled replicas of all topics, as Strimzi's Topic Operator does; rates stay."""

    def inject(self, twin: Twin) -> None:
        """Delete the lists."""
        topics = map(ConfigResource.topic, sorted(twin.metadata.topics))
        _change(twin, {one: _deletions(twin, one, TOPIC_THROTTLES) for one in topics})


@dataclass(frozen=True, slots=True)
class SetThrottles(Fault):
    """Another tool throttles its own moves: it sets its rate, bytes per second, on every broker.

    Recovery removes the rates again, even if they were changed meanwhile.
    """

    bytes_per_s: int

    def inject(self, twin: Twin) -> None:
        """Set the rates."""
        steps = tuple(KeyChange(ConfigOperation.SET, name, str(self.bytes_per_s)) for name in BROKER_THROTTLES[:2])
        _change(twin, {ConfigResource.broker(broker): steps for broker in sorted(twin.metadata.brokers)})

    def recover(self, twin: Twin) -> None:
        """Remove the rates."""
        brokers = [ConfigResource.broker(broker) for broker in sorted(twin.metadata.brokers)]
        _change(twin, {one: _deletions(twin, one, BROKER_THROTTLES[:2]) for one in brokers})


@dataclass(frozen=True, slots=True)
class ListReplica(_PartitionFault):
    """Another tool adds a replica to a topic's throttled ones; recovery removes it."""

    broker: int

    def inject(self, twin: Twin) -> None:
        """Add the replica to the list."""
        self._step(twin, ConfigOperation.APPEND)

    def recover(self, twin: Twin) -> None:
        """Remove the replica from the list."""
        self._step(twin, ConfigOperation.SUBTRACT)

    def _step(self, twin: Twin, operation: ConfigOperation) -> None:
        if self.topic in twin.metadata.topics:
            pair = f"{self.partition}:{self.broker}"
            steps = tuple(KeyChange(operation, name, pair) for name in TOPIC_THROTTLES)
            _change(twin, {ConfigResource.topic(self.topic): steps})


@dataclass(frozen=True, slots=True)
class MovePartition(_PartitionFault):
    """Reassign a partition, even if it is being moved already."""

    replicas: tuple[int, ...]

    def check(self, twin: Twin) -> None:
        """Raise InputError if this twin cannot have the fault."""
        _PartitionFault.check(self, twin)
        for broker in self.replicas:
            need_broker(twin, broker)

    def inject(self, twin: Twin) -> None:
        """Reassign the partition."""
        targets = (TopicTargets(self.topic, (Target(self.partition, self.replicas),)),)
        twin.controller.alter_reassignments(AlterReassignments(targets))


@dataclass(frozen=True, slots=True)
class CancelMoves(Fault):
    """Cancel every move in progress."""

    def inject(self, twin: Twin) -> None:
        """Cancel the moves."""
        topics: dict[str, list[Target]] = {}
        for key in sorted(twin.metadata.reassigning):
            topics.setdefault(key.topic, []).append(Target(key.partition, None))
        entries = tuple(TopicTargets(topic, tuple(targets)) for topic, targets in topics.items())
        twin.controller.alter_reassignments(AlterReassignments(entries))


@dataclass(frozen=True, slots=True)
class Recreate(_TopicFault):
    """Delete a topic and create it again, empty, with as many partitions on the same brokers and a new id."""

    def inject(self, twin: Twin) -> None:
        """Delete the topic and create it, unless it is gone."""
        found = twin.metadata.topics.get(self.topic)
        if found is None:
            return
        states = sorted(found.partitions.items())
        # During a move: the former replicas, as far as they are still known.
        lists = tuple(
            (number, tuple(one for one in state.replicas if one not in state.adding)) for number, state in states
        )
        twin.controller.delete_topics([TopicReference(self.topic)], _PATIENCE_MS, frozenset())
        twin.controller.create_topics(CreateTopics((WantedTopic(self.topic, assignments=lists),)))


@dataclass(frozen=True, slots=True)
class Delete(_TopicFault):
    """Delete a topic."""

    def inject(self, twin: Twin) -> None:
        """Delete the topic, unless it is gone."""
        twin.controller.delete_topics([TopicReference(self.topic)], _PATIENCE_MS, frozenset())
