"""ListPartitionReassignments: the moves in progress, as the controller knows them (KIP-455).

Versions: 0.
Permission: DESCRIBE on the cluster; without it CLUSTER_AUTHORIZATION_FAILED at the top, with no topics.

Behaviour:
- Null asks for all, an empty list for none. What is unknown or not being moved is left out without an error.
- A controller that is not active answers too, without an error, from what it has read: its list may be old, or empty.
  What is asked of a broker is answered by the controller that it takes for the active one.
- A topic or partition asked for twice is answered twice.
- The time-out is ignored.

Left out:
- Nothing.
"""

from __future__ import annotations

from kreassign.model import OngoingReassignment
from kreassign.model.error_codes import CLUSTER_AUTHORIZATION_FAILED
from kreassign.twin.access.permissions import Operation
from kreassign.twin.api.handler import Handler
from kreassign.twin.api.request import Request
from kreassign.twin.controller.reassignments import list_reassignments
from kreassign.wire import api
from kreassign.wire.api import Message

_RESPONSE = api.LIST_PARTITION_REASSIGNMENTS.response
_TOPIC = _RESPONSE.OngoingTopicReassignment


def _handle(request: Request) -> Message:
    if not request.allows(Operation.DESCRIBE):
        text = request.denial(Operation.DESCRIBE)
        return _RESPONSE(error_code=CLUSTER_AUTHORIZATION_FAILED, error_message=text, topics=[])
    topics = request.message.topics
    wanted = None if topics is None else [(topic.name, topic.partition_indexes) for topic in topics]
    return _RESPONSE(
        error_message=None,
        topics=[
            _TOPIC(name=found.topic, partitions=[_move(index, move) for index, move in found.partitions])
            for found in list_reassignments(request.forwarded_metadata, wanted)
        ],
    )


def _move(index: int, move: OngoingReassignment) -> Message:
    return _TOPIC.OngoingPartitionReassignment(
        partition_index=index,
        replicas=move.replicas,
        adding_replicas=move.adding,
        removing_replicas=move.removing,
    )


HANDLERS = (Handler(api.LIST_PARTITION_REASSIGNMENTS, _handle),)
