"""Requests of a controller in ZooKeeper mode to brokers: LeaderAndIsr, UpdateMetadata, StopReplica.

A change becomes messages about partitions; the messages of one batch become at most one request of each kind for each
broker.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby

from kreassign.model import TopicPartition
from kreassign.twin.metadata import (
    BrokerUnfenced,
    ClusterMetadata,
    PartitionChanged,
    PartitionCreated,
    PartitionState,
    Record,
    TopicDeleted,
)
from kreassign.wire import control
from kreassign.wire.api import Message

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
                yield message_of(metadata, metadata.present(key), controller_epoch)
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
    partition = metadata.present(key)
    active = tuple(broker for broker in partition.replicas if metadata.is_active(broker))
    return message_of(metadata, partition, controller_epoch, active)


# Requests. The messages of one batch are merged as in Kafka's controller: a broker gets at most one request of each
# kind, in which the last message about a partition counts. Requests to brokers that are down are not sent. All brokers
# concerned get LeaderAndIsr first, then all live brokers UpdateMetadata, then brokers that give up replicas
# StopReplica.

EPOCH_WHILE_DELETED = -2
Key = tuple[str, int]
"""Topic and partition."""

_LeaderAndIsr, _Stop, _Update = (
    control.LEADER_AND_ISR.request,
    control.STOP_REPLICA.request,
    control.UPDATE_METADATA.request,
)
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
class ControlRequest:
    """A request to one broker, as bytes: the body without its header.

    Its version is the last one, as that of a controller of Kafka 3.4 to 3.9.
    """

    broker_id: int
    api_key: int
    version: int
    body: bytes

    @property
    def api(self) -> control.ControlApi:
        """The kind of request: LeaderAndIsr, UpdateMetadata or StopReplica."""
        return control.APIS[self.api_key]

    def decode(self) -> Message:
        """The message in the body; raises `ProtocolViolation`."""
        return control.decode_body(self.api, self.version, self.body)


def build(
    sender: SendingController, steps: Iterable[PartitionMessage], live_brokers: Iterable[LiveBroker]
) -> tuple[ControlRequest, ...]:
    """The requests of one batch, in sending order; without steps all live brokers learn which brokers are alive."""
    alive = tuple(sorted(live_brokers, key=lambda broker: broker.broker_id))
    batch = _Batch(sender, alive)
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
        for broker in self.alive:
            steps = _sorted(self.told.get(broker.broker_id, {}).values())
            if not steps:
                continue
            leaders = {step.leader for step in steps}
            yield self._request(
                broker,
                control.LEADER_AND_ISR,
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

    def update_metadata(self, *, is_wanted: bool) -> Iterator[ControlRequest]:
        """Build one request for all live brokers, if it `is_wanted` or there is metadata to send."""
        if not self.known and not is_wanted:
            return
        alive_ids = {broker.broker_id for broker in self.alive}
        steps = _sorted(self.known.values())
        for broker in self.alive:
            yield self._request(
                broker,
                control.UPDATE_METADATA,
                topic_states=[
                    _KnownTopic(
                        topic_name=name, topic_id=topic_id, partition_states=[_known(one, alive_ids) for one in group]
                    )
                    for name, topic_id, group in _by_topic(steps)
                ],
                live_brokers=[_alive(one) for one in self.alive],
            )

    def stop_replica(self) -> Iterator[ControlRequest]:
        """One request to each broker with replicas to give up."""
        for broker in self.alive:
            orders = self.stopped.get(broker.broker_id, {})
            if not orders:
                continue
            yield self._request(
                broker,
                control.STOP_REPLICA,
                topic_states=[
                    _StoppedTopic(topic_name=name, partition_states=[_stopped(*orders[name, one]) for one in numbers])
                    for name, numbers in _numbers(orders)
                ],
            )

    def _request(self, broker: LiveBroker, api: control.ControlApi, **fields: object) -> ControlRequest:
        message = api.request(
            controller_id=self.sender.controller_id,
            controller_epoch=self.sender.controller_epoch,
            broker_epoch=broker.broker_epoch,
            **fields,
        )
        return ControlRequest(broker.broker_id, api.key, api.max_version, control.encode_body(api.max_version, message))


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
    body = control.as_json(request.decode())
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
