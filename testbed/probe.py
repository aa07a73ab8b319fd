"""Asking a node over the Kafka protocol, with one blocking socket per question.

Kept apart from the product on purpose: the product is tested against clusters whose state is known without it.
"""

from __future__ import annotations

import socket
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from kafka.protocol.admin import (
    CreateTopicsRequest,
    CreateTopicsResponse,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    DescribeClusterRequest,
    DescribeClusterResponse,
)
from kafka.protocol.metadata import MetadataRequest, MetadataResponse

from testbed.errors import DoneBefore, NotController, Refused
from testbed.ports import HOST

_KINDS = {3: DoneBefore, 36: DoneBefore, 41: NotController}
"""Errors by their codes: unknown topic or partition, topic already exists, not controller."""
_TIMEOUT_S = 30.0
_CONTROLLERS = 2


@dataclass(frozen=True, slots=True)
class SeenPartition:
    """A partition in a metadata answer; `leader` is -1 while there is none."""

    leader: int
    replicas: tuple[int, ...]
    isr: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Seen:
    """A metadata answer: the live brokers with their racks, the controller (-1 if none), and the topics asked for."""

    brokers: Mapping[int, str | None]
    controller: int
    topics: Mapping[str, tuple[SeenPartition, ...]]


def ask(port: int, request: Any, response_class: Any, version: int, *, timeout_s: float = _TIMEOUT_S) -> Any:
    """Send one request to 127.0.0.1:`port` and return the decoded answer; OSError when there is none."""
    request.API_VERSION = version
    request.with_header(correlation_id=1, client_id="testbed")
    with socket.create_connection((HOST, port), timeout=timeout_s) as connection:
        connection.sendall(request.encode(header=True, framed=True))
        (size,) = struct.unpack(">i", _read(connection, 4))
        return response_class.decode(_read(connection, size), version=version, header=True)


def _read(connection: socket.socket, size: int) -> bytes:
    buffer = bytearray()
    while len(buffer) < size:
        chunk = connection.recv(size - len(buffer))
        if not chunk:
            raise ConnectionError("the node closed the connection")
        buffer += chunk
    return bytes(buffer)


def metadata(port: int, topics: Sequence[str] = ()) -> Seen:
    """Metadata of the cluster from one broker; Refused if it does not know one of the topics."""
    request = MetadataRequest(
        topics=[MetadataRequest.MetadataRequestTopic(name=name) for name in topics], allow_auto_topic_creation=False
    )
    answer = ask(port, request, MetadataResponse, 9)
    return Seen(
        {broker.node_id: broker.rack for broker in answer.brokers},
        answer.controller_id,
        {topic.name: _partitions(topic) for topic in answer.topics},
    )


def _partitions(topic: Any) -> tuple[SeenPartition, ...]:
    _check(topic.name, topic.error_code, None)
    return tuple(
        SeenPartition(partition.leader_id, tuple(partition.replica_nodes), tuple(partition.isr_nodes))
        for partition in sorted(topic.partitions, key=lambda partition: partition.partition_index)
    )


def active_controller(port: int) -> int:
    """The active KRaft controller as one of the controllers knows it, -1 if there is none."""
    request = DescribeClusterRequest(include_cluster_authorized_operations=False, endpoint_type=_CONTROLLERS)
    answer = ask(port, request, DescribeClusterResponse, 1)
    return -1 if answer.error_code else int(answer.controller_id)


def create_topic(
    port: int, name: str, replicas: Sequence[Sequence[int]], *, config: Mapping[str, str] | None = None
) -> None:
    """Create a topic with one partition per replica list. The broker must be, or forward to, the controller."""
    topic_class = CreateTopicsRequest.CreatableTopic
    assignments = [
        topic_class.CreatableReplicaAssignment(partition_index=index, broker_ids=list(brokers))
        for index, brokers in enumerate(replicas)
    ]
    configs = [topic_class.CreatableTopicConfig(name=key, value=value) for key, value in (config or {}).items()]
    topic = topic_class(name=name, num_partitions=-1, replication_factor=-1, assignments=assignments, configs=configs)
    request = CreateTopicsRequest(topics=[topic], timeout_ms=20_000, validate_only=False)
    answer = ask(port, request, CreateTopicsResponse, 5, timeout_s=30)
    _check(name, answer.topics[0].error_code, answer.topics[0].error_message)


def delete_topic(port: int, name: str) -> None:
    """Delete a topic. The broker must be, or forward to, the controller."""
    request = DeleteTopicsRequest(topic_names=[name], timeout_ms=20_000)
    answer = ask(port, request, DeleteTopicsResponse, 4, timeout_s=30)
    _check(name, answer.responses[0].error_code, None)


def ask_zookeeper(port: int, word: str) -> str:
    """The answer of a ZooKeeper server to one of its four-letter words; empty when there is none."""
    try:
        with socket.create_connection((HOST, port), timeout=_TIMEOUT_S) as connection:
            connection.sendall(word.encode())
            return b"".join(iter(lambda: connection.recv(65536), b"")).decode()
    except OSError:
        return ""


def _check(subject: str, error_code: int, message: str | None) -> None:
    if error_code:
        kind = _KINDS.get(error_code, Refused)
        raise kind(f"{subject}: error {error_code}{f', {message}' if message else ''}")
