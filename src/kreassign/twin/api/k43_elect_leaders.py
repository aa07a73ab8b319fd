"""ElectLeaders: makes preferred replicas leaders, or replicas out of sync where nobody leads (KIP-183, KIP-460).

Versions: 0-2.
Permission: ALTER on the cluster; without it CLUSTER_AUTHORIZATION_FAILED at the top and on each partition asked for.

Behaviour:
- Version 0 knows only the preferred election and has no error at the top.
- Null asks for all partitions: those that need no election are left out, their topics are not.
- A time-out of 0 or less is REQUEST_TIMED_OUT for all.
- In ZooKeeper mode only the controller takes the request, and topics without a result are left out.

Left out:
- Nothing.
"""

from __future__ import annotations

from kreassign.model import ElectionType
from kreassign.model.error_codes import CLUSTER_AUTHORIZATION_FAILED
from kreassign.twin.access.permissions import Operation
from kreassign.twin.api.handler import Handler
from kreassign.twin.api.request import Request
from kreassign.twin.controller.decision import Outcome
from kreassign.twin.controller.elections import ElectLeaders, LeadersElected
from kreassign.twin.controller.reassignments import TopicOutcomes
from kreassign.wire import api
from kreassign.wire.api import Message

_RESPONSE = api.ELECT_LEADERS.response
_RESULT = _RESPONSE.ReplicaElectionResult
_FIRST_WITH_TYPE = 1


def _handle(request: Request) -> Message:
    command = _command(request)
    if request.allows(Operation.ALTER):
        return _response(request.cluster.controller.elect_leaders(command))
    refused = Outcome(CLUSTER_AUTHORIZATION_FAILED, request.denial(Operation.ALTER))
    alike = (
        TopicOutcomes(topic, tuple((index, refused) for index in partitions))
        for topic, partitions in command.topics or ()
    )
    return _response(LeadersElected(refused, tuple(alike)))


def _command(request: Request) -> ElectLeaders:
    message = request.message
    topics = message.topic_partitions
    return ElectLeaders(
        message.election_type if request.version >= _FIRST_WITH_TYPE else ElectionType.PREFERRED,
        None if topics is None else tuple((entry.topic, tuple(entry.partitions)) for entry in topics),
        message.timeout_ms,
    )


def _response(answer: LeadersElected) -> Message:
    return _RESPONSE(
        error_code=answer.outcome.code,
        replica_election_results=[
            _RESULT(topic=topic.topic, partition_result=[_partition(index, one) for index, one in topic.outcomes])
            for topic in answer.topics
        ],
    )


def _partition(index: int, outcome: Outcome) -> Message:
    return _RESULT.PartitionResult(partition_id=index, error_code=outcome.code, error_message=outcome.message)


HANDLERS = (Handler(api.ELECT_LEADERS, _handle),)
