"""AlterPartitionReassignments: starts, overrides and cancels moves (KIP-455, KIP-860).

Versions: 0 on 3.7, 3.9; 0-1 on 4.2, 4.3.
Permission: ALTER on the cluster; without it CLUSTER_AUTHORIZATION_FAILED at the top and on each partition.

Behaviour:
- Each partition has its own outcome, in the order of the request; those that are accepted are written as one batch.
- Any node takes the request and forwards it to the controller.
- Version 1 can forbid a change of the replication factor; its response repeats that flag.
- A time-out of 0 or less is REQUEST_TIMED_OUT for all, and nothing is done.
- Entries after the first 10,000 that write a record get UNKNOWN_SERVER_ERROR.
- Completion and overriding follow the release of the twin.
- In ZooKeeper mode only the controller takes the request; it ignores the time-out, lists each partition once,
  and always has an empty text at the top.

Left out:
- Nothing.
"""

from __future__ import annotations

from kreassign.model.error_codes import CLUSTER_AUTHORIZATION_FAILED
from kreassign.twin.access.permissions import Operation
from kreassign.twin.api.handler import Handler
from kreassign.twin.api.request import Request
from kreassign.twin.controller.decision import DONE, Outcome
from kreassign.twin.controller.reassignments import (
    AlterReassignments,
    Target,
    TopicOutcomes,
    TopicTargets,
)
from kreassign.wire import api
from kreassign.wire.api import Message

_RESPONSE = api.ALTER_PARTITION_REASSIGNMENTS.response
_TOPIC = _RESPONSE.ReassignableTopicResponse
_FIRST_WITH_FLAG = 1


def _handle(request: Request) -> Message:
    command = _command(request)
    if not request.allows(Operation.ALTER):
        refused = Outcome(CLUSTER_AUTHORIZATION_FAILED, request.denial(Operation.ALTER))
        alike = (
            TopicOutcomes(entry.topic, tuple((target.partition, refused) for target in entry.targets))
            for entry in command.topics
        )
        return _response(command, refused, tuple(alike))
    answer = request.cluster.controller.alter_reassignments(command)
    return _response(command, answer.outcome, answer.topics)


def _command(request: Request) -> AlterReassignments:
    message = request.message
    return AlterReassignments(
        tuple(
            TopicTargets(
                topic.name,
                tuple(
                    Target(entry.partition_index, None if entry.replicas is None else tuple(entry.replicas))
                    for entry in topic.partitions
                ),
            )
            for topic in message.topics
        ),
        allow_replication_factor_change=request.version < _FIRST_WITH_FLAG or message.allow_replication_factor_change,
        timeout_ms=message.timeout_ms,
    )


def _response(command: AlterReassignments, outcome: Outcome, topics: tuple[TopicOutcomes, ...]) -> Message:
    return _RESPONSE(
        # Responses that are not about single partitions do not repeat the flag.
        allow_replication_factor_change=outcome != DONE or command.allow_replication_factor_change,
        error_code=outcome.code,
        error_message=outcome.message,
        responses=[
            _TOPIC(name=topic.topic, partitions=[_partition(index, one) for index, one in topic.outcomes])
            for topic in topics
        ],
    )


def _partition(index: int, outcome: Outcome) -> Message:
    return _TOPIC.ReassignablePartitionResponse(
        partition_index=index, error_code=outcome.code, error_message=outcome.message
    )


HANDLERS = (Handler(api.ALTER_PARTITION_REASSIGNMENTS, _handle),)
