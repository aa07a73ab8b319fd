"""Refuse all items of a request with the same error, item by item, as Kafka builds error responses.

`not_controller_refusal` is the answer of a node that is not the active controller: NOT_CONTROLLER on every item, and
nothing is executed. In KRaft mode brokers forward requests to the active controller; in ZooKeeper mode the controller
is a broker, and the other brokers refuse.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from kreassign.model import error_codes
from kreassign.twin.api.metadata import metadata_brokers, metadata_failed, shown_controller, topic_partitions_failed
from kreassign.twin.api.request import Handler, Request
from kreassign.twin.refused import REFUSED, SCENARIO_RULES
from kreassign.wire import api
from kreassign.wire.api import Message
from kreassign.wire.codec import refusing


def _refuse(request: Request) -> Message:
    """Answer what the twin does not simulate; where there are access rules, that they stay as they are."""
    row = _ROWS[request.called.key]
    code, text = row.code, row.text
    if code == error_codes.SECURITY_DISABLED and request.cluster.permissions is not None:
        code, text = error_codes.POLICY_VIOLATION, SCENARIO_RULES
    return _item_by_item(request, code, text)


_ROWS = {row.api.key: row for row in REFUSED}
REFUSING = tuple(Handler(row.api, _refuse) for row in REFUSED)
"""The handlers of what the twin offers and does not simulate."""

Refuse = Callable[[Request, int, str | None], Message]
"""Builds the answer in which every item has this error code and text."""
_WITH_ITEMS_AND_TOP = (api.ELECT_LEADERS, api.ALTER_PARTITION_REASSIGNMENTS)
"""APIs that put NOT_CONTROLLER at the top, too; other errors of single items appear only on these items."""


def refuse_all(request: Request, code: int) -> Message | None:
    """The answer with this error code and Kafka's text for it everywhere; None for an API without items."""
    refuse = BY_KEY.get(request.called.key)
    if refuse is None:
        return None
    response = refuse(request, code, error_codes.error_code(code).text)
    if request.called in _WITH_ITEMS_AND_TOP:
        response.error_code = error_codes.NONE
    if request.called is api.ALTER_PARTITION_REASSIGNMENTS:
        response.error_message = None
    return response


def _item_by_item(request: Request, code: int, text: str | None) -> Message:
    return refusing(request.called, request.version, request.message, code, text)


def _as_a_whole(request: Request, code: int, text: str | None) -> Message:
    return request.called.response(error_code=code, error_message=text, topics=[])


def _created(request: Request, code: int, text: str | None) -> Message:
    """Name the topics alone: counts and configuration are those of topics that were created."""
    entry = api.CREATE_TOPICS.response.CreatableTopicResult
    topics = [entry(name=one.name, error_code=code, error_message=text, configs=[]) for one in request.message.topics]
    return api.CREATE_TOPICS.response(topics=topics)


# Read-only APIs about topics, where a permission may be missing.


def _described_topics(request: Request, code: int, text: str | None) -> Message:
    """Refuse the topics but list the brokers: without them a client could not connect to any."""
    response = api.METADATA.response
    wanted = request.message.topics
    names = list(request.metadata.topics) if wanted is None else [topic.name for topic in wanted]
    del text
    return response(
        brokers=metadata_brokers(request),
        cluster_id=request.cluster.cluster_id,
        controller_id=shown_controller(request),
        topics=[metadata_failed(name, code) for name in names],
    )


def _described_partitions(request: Request, code: int, text: str | None) -> Message:
    del text
    names = [topic.name for topic in request.message.topics] or sorted(request.metadata.topics)
    topics = [topic_partitions_failed(name, code) for name in names]
    return api.DESCRIBE_TOPIC_PARTITIONS.response(topics=topics, next_cursor=None)


def _described_configs(request: Request, code: int, text: str | None) -> Message:
    response = _item_by_item(request, code, text)
    for resource in response.results:
        resource.configs = []
    return response


def _described_log_dirs(request: Request, code: int, text: str | None) -> Message:
    """A missing permission stands at the top (before version 3 nowhere), any other error at each directory."""
    del text
    response = api.DESCRIBE_LOG_DIRS.response
    if code == error_codes.CLUSTER_AUTHORIZATION_FAILED:
        return response(error_code=code, results=[])
    entry, unknown_bytes = response.DescribeLogDirsResult, {"total_bytes": -1, "usable_bytes": -1, "is_cordoned": False}
    log_dirs = request.cluster.replication.readings.log_dirs(request.node.id)
    return response(results=[entry(error_code=code, log_dir=one.path, topics=[], **unknown_bytes) for one in log_dirs])


def _listed_offsets(request: Request, code: int, text: str | None) -> Message:
    response = _item_by_item(request, code, text)
    for topic in response.topics:
        for partition in topic.partitions:
            partition.timestamp = -1
    return response


BY_KEY: Mapping[int, Refuse] = {
    api.METADATA.key: _described_topics,
    api.DESCRIBE_CLUSTER.key: _item_by_item,
    api.DESCRIBE_LOG_DIRS.key: _described_log_dirs,
    api.LIST_OFFSETS.key: _listed_offsets,
    api.CREATE_TOPICS.key: _created,
    api.DELETE_TOPICS.key: _item_by_item,
    api.DESCRIBE_CONFIGS.key: _described_configs,
    api.ALTER_CONFIGS.key: _item_by_item,
    api.CREATE_PARTITIONS.key: _item_by_item,
    api.ELECT_LEADERS.key: _item_by_item,
    api.INCREMENTAL_ALTER_CONFIGS.key: _item_by_item,
    api.ALTER_PARTITION_REASSIGNMENTS.key: _item_by_item,
    api.LIST_PARTITION_REASSIGNMENTS.key: _as_a_whole,
    api.DESCRIBE_TOPIC_PARTITIONS.key: _described_partitions,
    api.UNREGISTER_BROKER.key: _item_by_item,
    **{known.key: _as_a_whole for known in api.KIP_179_CHANGES},
}
"""Every API whose requests can be refused this way."""


# Requests for the active controller, at a node that is not the active one.


def not_controller_refusal(request: Request, called: api.Api) -> Message | None:
    """The refusal, if only the active controller takes this request and this node does not forward it; else None."""
    controller = request.cluster.controller
    refuse = (_REFUSALS_OF_CONTROLLERS if request.at_controller else _REFUSALS_OF_BROKERS).get(called.key)
    if refuse is None or controller.takes_requests_at(request.node.id):
        return None
    of_controllers = f"The active controller appears to be node {controller.active_id}."
    text = of_controllers if request.at_controller else error_codes.error_code(error_codes.NOT_CONTROLLER).text
    return refuse(request, error_codes.NOT_CONTROLLER, text)


def _none_reassigned(request: Request, code: int, text: str | None) -> Message:
    """In ZooKeeper mode the response repeats no item of the request."""
    return request.called.response(error_code=code, error_message=text, responses=[])


def _each_elected(request: Request, code: int, text: str | None) -> Message:
    """In ZooKeeper mode only partitions are refused, without a text, and there is no error at the top."""
    del text
    response = _item_by_item(request, code, None)
    response.error_code = error_codes.NONE
    return response


def _refusals_of(*apis: api.Api) -> dict[int, Refuse]:
    return {known.key: BY_KEY[known.key] for known in apis}


# ListPartitionReassignments is not included: an inactive controller answers from what it has read.
_REFUSALS_OF_CONTROLLERS: Mapping[int, Refuse] = _refusals_of(
    api.CREATE_TOPICS, api.DELETE_TOPICS, api.ALTER_CONFIGS, api.CREATE_PARTITIONS, api.ELECT_LEADERS,
    api.INCREMENTAL_ALTER_CONFIGS, api.ALTER_PARTITION_REASSIGNMENTS, api.UNREGISTER_BROKER, *api.KIP_179_CHANGES,
)  # fmt: skip

# Any broker can change configurations.
_REFUSALS_OF_BROKERS: Mapping[int, Refuse] = {
    **_refusals_of(
        api.CREATE_TOPICS,
        api.DELETE_TOPICS,
        api.CREATE_PARTITIONS,
        api.LIST_PARTITION_REASSIGNMENTS,
        *api.KIP_179_CHANGES,
    ),
    api.ELECT_LEADERS.key: _each_elected,
    api.ALTER_PARTITION_REASSIGNMENTS.key: _none_reassigned,
}
