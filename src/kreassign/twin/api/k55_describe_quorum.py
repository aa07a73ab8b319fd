"""DescribeQuorum: who votes on the metadata log and how far each node has read it.

Versions: 0-1 on 3.7; 0-2 on 3.9, 4.2, 4.3.
Permission: DESCRIBE on the cluster; without it CLUSTER_AUTHORIZATION_FAILED at the top.

Behaviour:
- The active controller is leader, all controllers are voters, the live brokers are observers; all have read all.
- A controller that is not active answers NOT_LEADER_OR_FOLLOWER.
- Asked for anything but __cluster_metadata-0 alone, every partition gets UNKNOWN_TOPIC_OR_PARTITION, and no node is
  named.

Left out:
- Voters that lag or are down; the other controllers always know as much as the active one.
- Directory ids of the controller and the observers are zero.
"""

from __future__ import annotations

from kreassign.model.error_codes import (
    CLUSTER_AUTHORIZATION_FAILED,
    NONE,
    NOT_LEADER_OR_FOLLOWER,
    UNKNOWN_TOPIC_OR_PARTITION,
    error_code,
)
from kreassign.twin.access.permissions import Operation
from kreassign.twin.api.handler import Handler
from kreassign.twin.api.request import Request
from kreassign.wire import api
from kreassign.wire.api import Message

TOPIC = "__cluster_metadata"
_RESPONSE = api.DESCRIBE_QUORUM.response


def _handle(request: Request) -> Message:
    if not request.allows(Operation.DESCRIBE):
        text = request.denial(Operation.DESCRIBE)
        return _RESPONSE(error_code=CLUSTER_AUTHORIZATION_FAILED, error_message=text, topics=[], nodes=[])
    wanted = request.message.topics
    asked = [(topic.topic_name, entry.partition_index) for topic in wanted for entry in topic.partitions]
    code = _refusal(request, asked)
    topics = [
        _RESPONSE.TopicData(
            topic_name=topic.topic_name,
            partitions=[_partition(request, entry.partition_index, code) for entry in topic.partitions],
        )
        for topic in wanted
    ]
    return _RESPONSE(topics=topics, nodes=_nodes(request) if code == NONE else [])


def _partition(request: Request, index: int, code: int) -> Message:
    entry = _RESPONSE.TopicData.PartitionData
    if code != NONE:
        text = error_code(code).text
        empty = {"leader_id": 0, "leader_epoch": 0, "high_watermark": 0, "current_voters": [], "observers": []}
        return entry(partition_index=index, error_code=code, error_message=text, **empty)
    brokers = [broker.broker_id for broker in request.metadata.brokers.values() if not broker.fenced]
    return entry(
        partition_index=index,
        leader_id=request.cluster.controller.active_id,
        leader_epoch=request.cluster.controller.epoch,
        high_watermark=request.metadata.offset,
        current_voters=[_state(request, controller) for controller in request.cluster.controller.node_ids],
        observers=[_state(request, broker) for broker in sorted(brokers)],
    )


def _refusal(request: Request, asked: list[tuple[str, int]]) -> int:
    if asked != [(TOPIC, 0)]:
        return UNKNOWN_TOPIC_OR_PARTITION
    return NONE if request.cluster.controller.takes_requests_at(request.node.id) else NOT_LEADER_OR_FOLLOWER


def _state(request: Request, node_id: int) -> Message:
    now_ms = request.cluster.wall_ms
    return _RESPONSE.TopicData.PartitionData.ReplicaState(
        replica_id=node_id,
        log_end_offset=request.metadata.offset,
        last_fetch_timestamp=-1 if node_id == request.cluster.controller.active_id else now_ms,
        last_caught_up_timestamp=now_ms,
    )


def _nodes(request: Request) -> list[Message]:
    return [_node(request, controller) for controller in request.cluster.controller.node_ids]


def _node(request: Request, node_id: int) -> Message:
    host, port = request.address(node_id)
    listener = _RESPONSE.Node.Listener(name="CONTROLLER", host=host, port=port)
    return _RESPONSE.Node(node_id=node_id, listeners=[listener])


HANDLERS = (Handler(api.DESCRIBE_QUORUM, _handle),)
