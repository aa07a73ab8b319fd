"""Requests of a controller in ZooKeeper mode to brokers: LeaderAndIsr, UpdateMetadata, StopReplica.

A change becomes messages about partitions; the messages of one batch become at most one request of each kind for each
broker; the broker applies the requests to its cache.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby

from kreassign.model import TopicPartition
from kreassign.model.error_codes import NONE, STALE_BROKER_EPOCH, STALE_CONTROLLER_EPOCH
from kreassign.twin.metadata import (
    BrokerUnfenced,
    ClusterMetadata,
    PartitionChanged,
    PartitionCreated,
    PartitionState,
    Record,
    TopicDeleted,
)
from kreassign.wire.api import Message
from kreassign.wire.control import (
    APIS,
    LEADER_AND_ISR,
    STOP_REPLICA,
    UPDATE_METADATA,
    ControlApi,
    as_json,
    decode_body,
    encode_body,
)

# Messages about changes other than moves: elections, ISRs, new and deleted partitions, restarted brokers.
#
# The controller sends the messages of one tuple at once. Replicas get LeaderAndIsr; a leader that changed the ISR knows
# it already, so only the metadata caches of all brokers are updated (UpdateMetadata).

BEING_DELETED = -2
"""Leader that means: the topic is being deleted."""


@dataclass(frozen=True, slots=True)
class PartitionMessage:
    """A partition's state for the brokers in `recipients`, and the brokers that have to stop their replicas.

    `topic_id` is a UUID in its usual text form. `partition_epoch` is the version of the state znode. `new_replicas` are
    recipients that have no replica yet. `stopped` has brokers and whether they delete their data. Without `recipients`
    there is no LeaderAndIsr, but all brokers still get UpdateMetadata.
    """

    topic: str
    topic_id: str
    partition: int
    controller_epoch: int
    leader: int
    leader_epoch: int
    isr: tuple[int, ...]
    partition_epoch: int
    replicas: tuple[int, ...]
    adding: tuple[int, ...] = ()
    removing: tuple[int, ...] = ()
    is_new: bool = False
    recipients: tuple[int, ...] = ()
    stopped: tuple[tuple[int, bool], ...] = ()


def message_of(
    metadata: ClusterMetadata, partition: PartitionState, controller_epoch: int, told: tuple[int, ...] = ()
) -> PartitionMessage:
    """The message about a partition's present state, for these brokers."""
    topic, number = partition.topic_partition
    return PartitionMessage(
        topic,
        metadata.topics[topic].topic_id,
        number,
        controller_epoch,
        partition.leader,
        partition.leader_epoch,
        partition.isr,
        partition.partition_epoch,
        partition.replicas,
        partition.adding,
        partition.removing,
        recipients=told,
    )


def messages_before(
    metadata: ClusterMetadata, records: Iterable[Record], controller_epoch: int
) -> Iterator[PartitionMessage]:
    """Messages to send before records are applied: the topics that are being deleted."""
    for record in records:
        if isinstance(record, TopicDeleted):
            for partition in metadata.topics[record.name].partitions.values():
                yield replace(message_of(metadata, partition, controller_epoch), leader=BEING_DELETED)


def stopped(step: PartitionMessage, *, delete: bool) -> PartitionMessage:
    """The message that stops every replica of a partition."""
    return replace(step, stopped=tuple((broker, delete) for broker in step.replicas))


def messages_after(
    metadata: ClusterMetadata, records: Iterable[Record], controller_epoch: int
) -> Iterator[PartitionMessage]:
    """Messages to send after records were applied."""
    for record in records:
        match record:
            case PartitionCreated(key):
                yield replace(_to_replicas(metadata, key, controller_epoch), is_new=True)
            case PartitionChanged(key, leader=None):
                yield message_of(metadata, _present(metadata, key), controller_epoch)
            case PartitionChanged(key):
                yield _to_replicas(metadata, key, controller_epoch)
            case BrokerUnfenced(broker):
                for partition in metadata.partitions_on(broker):
                    if broker not in partition.adding:  # its move begins again, with messages of its own
                        yield message_of(metadata, partition, controller_epoch, (broker,))
            case _:
                pass


def full_state_messages(metadata: ClusterMetadata, controller_epoch: int) -> Iterator[PartitionMessage]:
    """Messages of a newly elected controller: the state of all partitions."""
    for _, topic in sorted(metadata.topics.items()):
        for _, partition in sorted(topic.partitions.items()):
            yield _to_replicas(metadata, partition.topic_partition, controller_epoch)


def _to_replicas(metadata: ClusterMetadata, key: TopicPartition, controller_epoch: int) -> PartitionMessage:
    partition = _present(metadata, key)
    active = tuple(broker for broker in partition.replicas if metadata.is_active(broker))
    return message_of(metadata, partition, controller_epoch, active)


def _present(metadata: ClusterMetadata, key: TopicPartition) -> PartitionState:
    partition = metadata.partition(key)
    assert partition is not None
    return partition


# Requests. The messages of one batch are merged as in Kafka's controller: a broker gets at most one request of each
# kind, in which the last message about a partition counts. Requests to brokers that are down are not sent. All brokers
# concerned get LeaderAndIsr first, then all live brokers UpdateMetadata, then brokers that give up replicas
# StopReplica.

EPOCH_WHILE_DELETED = -2
Key = tuple[str, int]
"""Topic and partition."""

_LeaderAndIsr, _Stop, _Update = LEADER_AND_ISR.request, STOP_REPLICA.request, UPDATE_METADATA.request
_Leader = _LeaderAndIsr.LeaderAndIsrLiveLeader
_Told = _LeaderAndIsr.LeaderAndIsrPartitionState
_ToldTopic = _LeaderAndIsr.LeaderAndIsrTopicState
_StoppedTopic = _Stop.StopReplicaTopicState
_Stopped = _StoppedTopic.StopReplicaPartitionState
_Known = _Update.UpdateMetadataPartitionState
_KnownTopic = _Update.UpdateMetadataTopicState
_Alive = _Update.UpdateMetadataBroker
_Endpoint = _Alive.UpdateMetadataEndpoint


@dataclass(frozen=True, slots=True)
class SendingController:
    """The controller that sends a request, and its epoch."""

    controller_id: int
    controller_epoch: int


@dataclass(frozen=True, slots=True)
class LiveBroker:
    """A broker that gets requests: its address, without TLS, and the epoch of its registration."""

    broker_id: int
    host: str
    port: int
    rack: str | None = None
    broker_epoch: int = -1


@dataclass(frozen=True, slots=True)
class ControlVersions:
    """Versions of the controller's requests; they follow from `inter.broker.protocol.version`.

    Only versions of a controller of Kafka 2.6 or later, where requests are grouped by topic and LeaderAndIsr has the
    lists of a move. Kafka 3.4 to 3.9 send the last version of each.
    """

    leader_and_isr: int = LEADER_AND_ISR.max_version
    stop_replica: int = STOP_REPLICA.max_version
    update_metadata: int = UPDATE_METADATA.max_version

    def __post_init__(self) -> None:
        for api, version, first in (
            (LEADER_AND_ISR, self.leader_and_isr, 3),
            (STOP_REPLICA, self.stop_replica, 3),
            (UPDATE_METADATA, self.update_metadata, 5),
        ):
            if not first <= version <= api.max_version:
                raise ValueError(f"{api} is sent in versions {first} to {api.max_version}, not {version}")


@dataclass(frozen=True, slots=True)
class ControlRequest:
    """A request to one broker, as bytes: the body without its header."""

    broker_id: int
    api_key: int
    version: int
    body: bytes

    @property
    def api(self) -> ControlApi:
        """The kind of request: LeaderAndIsr, UpdateMetadata or StopReplica."""
        return APIS[self.api_key]

    def decode(self) -> Message:
        """The message in the body; raises `ProtocolViolation`."""
        return decode_body(self.api, self.version, self.body)


def build(
    sender: SendingController,
    steps: Iterable[PartitionMessage],
    live_brokers: Iterable[LiveBroker],
    versions: ControlVersions | None = None,
) -> tuple[ControlRequest, ...]:
    """The requests of one batch, in sending order; without steps all live brokers learn which brokers are alive."""
    alive = tuple(sorted(live_brokers, key=lambda broker: broker.broker_id))
    batch = _Batch(sender, alive, versions or ControlVersions())
    has_steps = False
    for step in steps:
        batch.add(step)
        has_steps = True
    return (*batch.leader_and_isr(), *batch.update_metadata(is_wanted=not has_steps), *batch.stop_replica())


@dataclass(slots=True)
class _Batch:
    """Pending requests: partitions to host and give up, by broker; metadata for all brokers, by partition."""

    sender: SendingController
    alive: tuple[LiveBroker, ...]
    versions: ControlVersions
    told: dict[int, dict[Key, PartitionMessage]] = field(default_factory=dict)
    stopped: dict[int, dict[Key, tuple[PartitionMessage, bool]]] = field(default_factory=dict)
    known: dict[Key, PartitionMessage] = field(default_factory=dict)

    def add(self, step: PartitionMessage) -> None:
        """Add a step; later steps win, but new replicas stay new, and deletions stay deletions."""
        key = (step.topic, step.partition)
        for broker in step.recipients:
            before = self.told.setdefault(broker, {}).get(key)
            is_new = step.is_new or (before is not None and before.is_new)
            self.told[broker][key] = replace(step, is_new=is_new)
        for broker, delete in step.stopped:
            _, deleted = self.stopped.setdefault(broker, {}).get(key, (step, False))
            self.stopped[broker][key] = (step, delete or deleted)
        if step.recipients or not step.stopped:
            self.known[key] = step

    def leader_and_isr(self) -> Iterator[ControlRequest]:
        """One request to each broker with partitions to host."""
        version = self.versions.leader_and_isr
        for broker in self.alive:
            steps = _sorted(self.told.get(broker.broker_id, {}).values())
            if not steps:
                continue
            leaders = {step.leader for step in steps}
            message = _LeaderAndIsr(
                controller_id=self.sender.controller_id,
                controller_epoch=self.sender.controller_epoch,
                broker_epoch=broker.broker_epoch,
                topic_states=[
                    _ToldTopic(topic_name=name, topic_id=topic_id, partition_states=[_told(one) for one in group])
                    for name, topic_id, group in _by_topic(steps)
                ],
                live_leaders=[
                    _Leader(broker_id=one.broker_id, host_name=one.host, port=one.port)
                    for one in self.alive
                    if one.broker_id in leaders
                ],
            )
            yield _request(broker, LEADER_AND_ISR.key, version, message)

    def update_metadata(self, *, is_wanted: bool) -> Iterator[ControlRequest]:
        """Build one request for all live brokers, if it `is_wanted` or there is metadata to send."""
        if not self.known and not is_wanted:
            return
        alive_ids = {broker.broker_id for broker in self.alive}
        steps = _sorted(self.known.values())
        for broker in self.alive:
            message = _Update(
                controller_id=self.sender.controller_id,
                controller_epoch=self.sender.controller_epoch,
                broker_epoch=broker.broker_epoch,
                topic_states=[
                    _KnownTopic(
                        topic_name=name, topic_id=topic_id, partition_states=[_known(one, alive_ids) for one in group]
                    )
                    for name, topic_id, group in _by_topic(steps)
                ],
                live_brokers=[_alive(one) for one in self.alive],
            )
            yield _request(broker, UPDATE_METADATA.key, self.versions.update_metadata, message)

    def stop_replica(self) -> Iterator[ControlRequest]:
        """One request to each broker with replicas to give up."""
        for broker in self.alive:
            orders = self.stopped.get(broker.broker_id, {})
            if not orders:
                continue
            message = _Stop(
                controller_id=self.sender.controller_id,
                controller_epoch=self.sender.controller_epoch,
                broker_epoch=broker.broker_epoch,
                topic_states=[
                    _StoppedTopic(topic_name=name, partition_states=[_stopped(*orders[name, one]) for one in numbers])
                    for name, numbers in _numbers(orders)
                ],
            )
            yield _request(broker, STOP_REPLICA.key, self.versions.stop_replica, message)


def _request(broker: LiveBroker, api_key: int, version: int, message: Message) -> ControlRequest:
    return ControlRequest(broker.broker_id, api_key, version, encode_body(version, message))


def _sorted(steps: Iterable[PartitionMessage]) -> list[PartitionMessage]:
    return sorted(steps, key=lambda step: (step.topic, step.partition))


def _by_topic(steps: Sequence[PartitionMessage]) -> Iterator[tuple[str, uuid.UUID, list[PartitionMessage]]]:
    for name, group in groupby(steps, key=lambda step: step.topic):
        found = list(group)
        yield name, uuid.UUID(found[0].topic_id), found


def _numbers(orders: Iterable[Key]) -> Iterator[tuple[str, list[int]]]:
    for name, group in groupby(sorted(orders), key=lambda key: key[0]):
        yield name, [number for _, number in group]


def _told(step: PartitionMessage) -> Message:
    return _Told(
        partition_index=step.partition,
        controller_epoch=step.controller_epoch,
        leader=step.leader,
        leader_epoch=step.leader_epoch,
        isr=list(step.isr),
        partition_epoch=step.partition_epoch,
        replicas=list(step.replicas),
        adding_replicas=list(step.adding),
        removing_replicas=list(step.removing),
        is_new=step.is_new,
    )


def _known(step: PartitionMessage, alive_ids: set[int]) -> Message:
    return _Known(
        partition_index=step.partition,
        controller_epoch=step.controller_epoch,
        leader=step.leader,
        leader_epoch=step.leader_epoch,
        isr=list(step.isr),
        zk_version=step.partition_epoch,
        replicas=list(step.replicas),
        offline_replicas=[broker for broker in step.replicas if broker not in alive_ids],
    )


def _stopped(step: PartitionMessage, delete: bool) -> Message:
    leader_epoch = EPOCH_WHILE_DELETED if step.leader == BEING_DELETED else step.leader_epoch
    return _Stopped(partition_index=step.partition, leader_epoch=leader_epoch, delete_partition=delete)


def _alive(broker: LiveBroker) -> Message:
    endpoint = _Endpoint(port=broker.port, host=broker.host, listener="PLAINTEXT", security_protocol=0)
    return _Alive(id=broker.broker_id, endpoints=[endpoint], rack=broker.rack)


def trace_line(time_ms: int, request: ControlRequest) -> str:
    """One request as a line: time, sender, recipient, and body as in Kafka's request log."""
    body = as_json(request.decode())
    line = {
        "time": time_ms,
        "controllerId": body["controllerId"],
        "controllerEpoch": body["controllerEpoch"],
        "to": request.broker_id,
        "api": request.api.name,
        "apiKey": request.api_key,
        "version": request.version,
        "body": body,
    }
    return json.dumps(line, separators=(",", ":"))


# The cache of a broker: its only source on partitions are requests of controllers. It refuses requests of a controller
# with an older epoch than it has seen, requests for an earlier registration of its own, and leaders of an older epoch
# than it follows (KIP-380, KIP-570).

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
    """A partition as UpdateMetadata describes it: the answer of the broker to clients that ask for metadata."""

    leader: int
    leader_epoch: int
    isr: tuple[int, ...]
    replicas: tuple[int, ...]
    offline: tuple[int, ...]


@dataclass(slots=True)
class BrokerCache:
    """A broker's cache since its registration. `stopped` are replicas that it keeps but does not run."""

    broker_id: int
    broker_epoch: int = ANY_EPOCH
    controller_id: int = -1
    controller_epoch: int = 0
    replicas: dict[TopicPartition, HostedReplica] = field(default_factory=dict)
    stopped: dict[TopicPartition, HostedReplica] = field(default_factory=dict)
    partitions: dict[TopicPartition, CachedPartition] = field(default_factory=dict)
    live: tuple[int, ...] = ()

    def take(self, request: ControlRequest) -> int:
        """Apply a request; return the error code of the broker's answer. Raises `ProtocolViolation`."""
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
