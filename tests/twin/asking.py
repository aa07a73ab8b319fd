"""Asking a twin over its own bytes, and small clusters to ask about."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from kreassign.model import TopicPartition
from kreassign.twin.access import ALL_TOPICS, ANONYMOUS, Allow, Operation, Permissions
from kreassign.twin.api.connection import Connection
from kreassign.twin.blueprint import Blueprint, PartitionPlan, TopicPlan, small_cluster
from kreassign.twin.cluster import Twin
from kreassign.twin.core import TwinSettings
from kreassign.twin.replication.partition_logs import Traffic
from kreassign.twin.version import DEFAULT, KafkaVersion
from kreassign.wire.api import Api, Message
from kreassign.wire.codec import PREFIX_BYTES, decode_response, encode_request
from tests.wire.peer import message

MEGABYTES = 1_000_000


def cluster(
    topics: Mapping[str, list[list[int]]] | None = None, *, brokers: int = 4, size_bytes: int = 10 * MEGABYTES
) -> Blueprint:
    """Brokers 0, 1, 2 … on racks a, b, a, b …, two log dirs each, and topics with these replica lists."""
    traffic = Traffic(size_bytes=size_bytes)
    plans = (
        TopicPlan(name, tuple(PartitionPlan(tuple(replicas), traffic) for replicas in lists))
        for name, lists in (topics or {}).items()
    )
    return replace(small_cluster(brokers, racks=("a", "b")), topics=tuple(plans))


def twin(
    topics: Mapping[str, list[list[int]]] | None = None,
    *,
    brokers: int = 4,
    version: KafkaVersion = DEFAULT,
    permissions: Permissions | None = None,
    controllers: int = 1,
) -> Twin:
    """A running twin of such a cluster."""
    return Twin(
        cluster(topics, brokers=brokers), TwinSettings(version, permissions=permissions, controller_count=controllers)
    )


def on_cluster(operation: Operation) -> Allow:
    """Permission of a client without a name."""
    return Allow(ANONYMOUS, operation)


def on_topics(operation: Operation) -> Allow:
    """Permission of such a client, on every topic."""
    return Allow(ANONYMOUS, operation, ALL_TOPICS)


def ask(asked: Twin, api: Api, version: int, *, node: int = 0, **fields: object) -> Message:
    """The response of a node to a request with these fields, on a connection of its own; see `message`."""
    return ask_on(asked.connect(node), api, version, **fields)


def ask_on(conversation: Connection, api: Api, version: int, **fields: object) -> Message:
    """The response on a connection."""
    frame = encode_request(version, message(api.request, fields), 7, "tests")
    reply = conversation.answer(bytes(frame[PREFIX_BYTES:]))
    return decode_response(api, version, bytes(reply.frame[PREFIX_BYTES:]), 7)


def partition(asked: Twin, topic: str, number: int = 0) -> tuple[tuple[int, ...], set[int], int]:
    """Replicas, ISR and leader of a partition, as the controller has them."""
    state = asked.metadata.partition(TopicPartition(topic, number))
    assert state is not None
    return state.replicas, set(state.isr), state.leader
