"""Steps, brokers and requests that the tests of control requests share."""

from __future__ import annotations

from kreassign.twin.zookeeper.control_requests import (
    ControlRequest,
    LiveBroker,
    PartitionMessage,
    SendingController,
    build,
)
from kreassign.wire.control import Json, as_json

SENDER = SendingController(0, 3)
TOPIC_ID = "0d6bb0cf-1f5c-4a3e-8a0e-3f4f7cfb2f10"


def live(*broker_ids: int) -> tuple[LiveBroker, ...]:
    """Brokers with racks a, b, a, b … that registered at epoch 90, 91, …"""
    return tuple(
        LiveBroker(one, f"host{one}", 9092 + one, None if one == 0 else "ab"[one % 2], 90 + one) for one in broker_ids
    )


def step(
    *,
    told: tuple[int, ...] = (),
    stopped: tuple[tuple[int, bool], ...] = (),
    topic: str = "foo",
    partition: int = 0,
    leader: int = 1,
    leader_epoch: int = 1,
    is_new: bool = False,
) -> PartitionMessage:
    """A step of the move [1, 2, 3] → [4, 3, 2] of KIP-455."""
    return PartitionMessage(
        topic, TOPIC_ID, partition, 2, leader, leader_epoch, (1, 2, 3), 7, (4, 3, 2, 1), (4,), (1,), is_new, told,
        stopped,
    )  # fmt: skip


def sent(*steps: PartitionMessage, alive: tuple[int, ...] = (0, 1, 2, 3, 4)) -> tuple[ControlRequest, ...]:
    """The requests of one batch."""
    return build(SENDER, steps, live(*alive))


def order(requests: tuple[ControlRequest, ...]) -> list[tuple[str, int]]:
    """Receivers of the requests, in order."""
    return [(request.api.name, request.broker_id) for request in requests]


def body(request: ControlRequest) -> Json:
    """Content of a request."""
    return as_json(request.decode())


def states(request: ControlRequest) -> list[Json]:
    """The partitions of a request about one topic."""
    (topic,) = body(request)["topicStates"]
    found: list[Json] = topic["partitionStates"]
    return found
