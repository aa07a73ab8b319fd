"""What a node answers that is not the active controller: NOT_CONTROLLER, and nothing is done.

Every item of the request is repeated with the refusal, as Kafka makes error responses. In KRaft mode brokers forward
requests to the active controller; in ZooKeeper mode the controller is a broker, and the other brokers refuse.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from kreassign.model.error_codes import NONE, NOT_CONTROLLER, error_code
from kreassign.twin.api.request import Request
from kreassign.wire import api, kip_179
from kreassign.wire.api import Message

_Refuse = Callable[[Request, dict[str, Any]], Message]
_FIRST_DELETION_BY_ID = 6
_KIP_179 = (kip_179.ALTER_PARTITION_COUNTS, kip_179.ALTER_REPLICATION_FACTORS, kip_179.REASSIGN_PARTITIONS)


def refusal(request: Request, called: api.Api) -> Message | None:
    """The refusal, if the request is for the active controller alone and this node does not pass it on."""
    controller = request.cluster.controller
    refuse = (_REFUSALS_OF_CONTROLLERS if request.at_controller else _REFUSALS_OF_BROKERS).get(called.key)
    if refuse is None or controller.takes_requests_at(request.node.id):
        return None
    of_controllers = f"The active controller appears to be node {controller.active_id}."
    text = of_controllers if request.at_controller else error_code(NOT_CONTROLLER).text
    return refuse(request, {"error_code": NOT_CONTROLLER, "error_message": text})


def _created(request: Request, failed: dict[str, Any]) -> Message:
    entry = api.CREATE_TOPICS.response.CreatableTopicResult
    topics = [entry(name=topic.name, configs=[], **failed) for topic in request.message.topics]
    return api.CREATE_TOPICS.response(topics=topics)


def _deleted(request: Request, failed: dict[str, Any]) -> Message:
    entry, by_id = api.DELETE_TOPICS.response.DeletableTopicResult, request.version >= _FIRST_DELETION_BY_ID
    names = [topic.name for topic in request.message.topics] if by_id else request.message.topic_names
    return api.DELETE_TOPICS.response(responses=[entry(name=name, **failed) for name in names])


def _partitions_created(request: Request, failed: dict[str, Any]) -> Message:
    entry = api.CREATE_PARTITIONS.response.CreatePartitionsTopicResult
    return api.CREATE_PARTITIONS.response(
        results=[entry(name=topic.name, **failed) for topic in request.message.topics]
    )


def _elected(request: Request, failed: dict[str, Any]) -> Message:
    entry = api.ELECT_LEADERS.response.ReplicaElectionResult
    results = [
        entry(
            topic=topic.topic, partition_result=_each(entry.PartitionResult, "partition_id", topic.partitions, failed)
        )
        for topic in request.message.topic_partitions or ()
    ]
    return api.ELECT_LEADERS.response(error_code=NOT_CONTROLLER, replica_election_results=results)


def _reassigned(request: Request, failed: dict[str, Any]) -> Message:
    response = api.ALTER_PARTITION_REASSIGNMENTS.response
    entry, numbered = response.ReassignableTopicResponse, "partition_index"
    topics = [
        entry(
            name=topic.name,
            partitions=_each(
                entry.ReassignablePartitionResponse, numbered, (one.partition_index for one in topic.partitions), failed
            ),
        )
        for topic in request.message.topics
    ]
    return response(responses=topics, **failed)


def _listed(request: Request, failed: dict[str, Any]) -> Message:
    del request
    return api.LIST_PARTITION_REASSIGNMENTS.response(topics=[], **failed)


def _none_reassigned(request: Request, failed: dict[str, Any]) -> Message:
    """In ZooKeeper mode nothing of the request is repeated."""
    del request
    return api.ALTER_PARTITION_REASSIGNMENTS.response(responses=[], **failed)


def _each_elected(request: Request, failed: dict[str, Any]) -> Message:
    """In ZooKeeper mode only partitions are refused, without a text, and the answer as a whole is fine."""
    response = _elected(request, {**failed, "error_message": None})
    response.error_code = NONE
    return response


def _configured(known: api.Api) -> _Refuse:
    def refuse(request: Request, failed: dict[str, Any]) -> Message:
        entry = known.response.AlterConfigsResourceResponse
        resources = request.message.resources
        return known.response(
            responses=[
                entry(resource_type=one.resource_type, resource_name=one.resource_name, **failed) for one in resources
            ]
        )

    return refuse


def _refused_as_a_whole(known: api.Api) -> _Refuse:
    def refuse(request: Request, failed: dict[str, Any]) -> Message:
        del request
        return known.response(topics=[], **failed)

    return refuse


def _each(entry: Callable[..., Message], number: str, numbers: Iterable[int], failed: dict[str, Any]) -> list[Message]:
    return [entry(**{number: one}, **failed) for one in numbers]


_REFUSALS_OF_CONTROLLERS: Mapping[int, _Refuse] = {
    api.CREATE_TOPICS.key: _created,
    api.DELETE_TOPICS.key: _deleted,
    api.ALTER_CONFIGS.key: _configured(api.ALTER_CONFIGS),
    api.CREATE_PARTITIONS.key: _partitions_created,
    api.ELECT_LEADERS.key: _elected,
    api.INCREMENTAL_ALTER_CONFIGS.key: _configured(api.INCREMENTAL_ALTER_CONFIGS),
    api.ALTER_PARTITION_REASSIGNMENTS.key: _reassigned,
    api.LIST_PARTITION_REASSIGNMENTS.key: _listed,
    **{known.key: _refused_as_a_whole(known) for known in _KIP_179},
}

# Configurations can be changed through any broker.
_REFUSALS_OF_BROKERS: Mapping[int, _Refuse] = {
    api.CREATE_TOPICS.key: _created,
    api.DELETE_TOPICS.key: _deleted,
    api.CREATE_PARTITIONS.key: _partitions_created,
    api.ELECT_LEADERS.key: _each_elected,
    api.ALTER_PARTITION_REASSIGNMENTS.key: _none_reassigned,
    api.LIST_PARTITION_REASSIGNMENTS.key: _listed,
    **{known.key: _refused_as_a_whole(known) for known in _KIP_179},
}
