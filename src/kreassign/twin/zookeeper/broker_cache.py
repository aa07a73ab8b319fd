"""The cache of a broker: all that it knows of partitions is from the requests of controllers.

It takes nothing from a controller of an older epoch than it has seen, nothing that was meant for an earlier
registration of its own, and no leader of an older epoch than it follows (KIP-380, KIP-570).
"""

from __future__ import annotations

from dataclasses import dataclass, field

from kreassign.model import TopicPartition
from kreassign.model.error_codes import NONE, STALE_BROKER_EPOCH, STALE_CONTROLLER_EPOCH
from kreassign.twin.zookeeper.control_messages import BEING_DELETED
from kreassign.twin.zookeeper.control_requests import ControlRequest
from kreassign.wire.api import Message
from kreassign.wire.control import LEADER_AND_ISR, STOP_REPLICA

ANY_EPOCH = -1


@dataclass(frozen=True, slots=True)
class HostedReplica:
    """A replica of the broker, as LeaderAndIsr describes it."""

    leader: int
    leader_epoch: int
    partition_epoch: int
    isr: tuple[int, ...]
    replicas: tuple[int, ...]
    adding: tuple[int, ...]
    removing: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class CachedPartition:
    """A partition as UpdateMetadata describes it: what the broker answers to clients that ask for metadata."""

    leader: int
    leader_epoch: int
    isr: tuple[int, ...]
    replicas: tuple[int, ...]
    offline: tuple[int, ...]


@dataclass(slots=True)
class BrokerCache:
    """What a broker knows since it registered. `stopped` are replicas that it keeps but does not run."""

    broker_id: int
    broker_epoch: int = ANY_EPOCH
    controller_id: int = -1
    controller_epoch: int = 0
    replicas: dict[TopicPartition, HostedReplica] = field(default_factory=dict)
    stopped: dict[TopicPartition, HostedReplica] = field(default_factory=dict)
    partitions: dict[TopicPartition, CachedPartition] = field(default_factory=dict)
    live: tuple[int, ...] = ()

    def take(self, request: ControlRequest) -> int:
        """Apply a request; the error code that the broker answers. Raises `ProtocolViolation`."""
        message = request.decode()
        if message.controller_epoch < self.controller_epoch:
            return STALE_CONTROLLER_EPOCH
        if ANY_EPOCH < message.broker_epoch < self.broker_epoch:
            return STALE_BROKER_EPOCH
        self.controller_id, self.controller_epoch = message.controller_id, message.controller_epoch
        if request.api_key == LEADER_AND_ISR.key:
            self._have(message)
        elif request.api_key == STOP_REPLICA.key:
            self._give_up(message)
        else:
            self._know(message)
        return NONE

    def _have(self, message: Message) -> None:
        for topic in message.topic_states:
            for state in topic.partition_states:
                key = TopicPartition(topic.topic_name, state.partition_index)
                known = self.replicas.get(key)
                if known is not None and state.leader_epoch < known.leader_epoch:
                    continue
                self.stopped.pop(key, None)
                self.replicas[key] = HostedReplica(
                    state.leader,
                    state.leader_epoch,
                    state.partition_epoch,
                    tuple(state.isr),
                    tuple(state.replicas),
                    tuple(state.adding_replicas),
                    tuple(state.removing_replicas),
                )

    def _give_up(self, message: Message) -> None:
        for topic in message.topic_states:
            for state in topic.partition_states:
                key = TopicPartition(topic.topic_name, state.partition_index)
                known = self.replicas.get(key)
                if known is not None and 0 <= state.leader_epoch < known.leader_epoch:
                    continue
                found = self.replicas.pop(key, None) or self.stopped.get(key)
                if state.delete_partition:
                    self.stopped.pop(key, None)
                elif found is not None:
                    self.stopped[key] = found

    def _know(self, message: Message) -> None:
        self.live = tuple(sorted(broker.id for broker in message.live_brokers))
        for topic in message.topic_states:
            for state in topic.partition_states:
                key = TopicPartition(topic.topic_name, state.partition_index)
                if state.leader == BEING_DELETED:
                    self.partitions.pop(key, None)
                    continue
                self.partitions[key] = CachedPartition(
                    state.leader,
                    state.leader_epoch,
                    tuple(state.isr),
                    tuple(state.replicas),
                    tuple(state.offline_replicas),
                )
