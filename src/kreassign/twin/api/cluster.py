"""Describe and change the cluster itself: ApiVersions, DescribeCluster, DescribeQuorum, UnregisterBroker."""

from __future__ import annotations

import re

from kreassign.model import error_codes
from kreassign.twin.access import ANONYMOUS, Operation
from kreassign.twin.api.metadata import cluster_operations, live_brokers, shown_controller
from kreassign.twin.api.request import Handler, Request
from kreassign.twin.controller.topics import METADATA_TOPIC
from kreassign.twin.version import Endpoint
from kreassign.wire import api
from kreassign.wire.api import Message

_SOFTWARE_NAME = re.compile(r"[a-zA-Z0-9](?:[a-zA-Z0-9\-.]*[a-zA-Z0-9])?")
_FEATURES_EPOCH = 1
_FIRST_WITH_NODE, _NO_NODE = 5, -1


def _api_versions(request: Request) -> Message:
    """ApiVersions: which APIs in which versions a node offers, and the features of its cluster.

    Permission: none; answered before a client is authenticated too.

    Behaviour:
    - A version that is not offered gets an answer in version 0 with UNSUPPORTED_VERSION and the range of this API
      alone.
    - Only APIs that the twin has are listed.
    - A client that names its software with other than letters, digits, dots and dashes gets INVALID_REQUEST.
    - Version 5 may say which cluster and which node the client means (KIP-1242), both or neither (INVALID_REQUEST).
      A broker that is not it answers REBOOTSTRAP_REQUIRED, but not before the client is authenticated; a controller
      compares nothing.

    Left out:
    - Features of 3.7 and 3.9 other than metadata.version.
    """
    response = api.API_VERSIONS.response
    if request.version >= 3 and not _is_legal_software_name(request.message):
        return response(error_code=error_codes.INVALID_REQUEST, api_keys=[])
    if request.version >= _FIRST_WITH_NODE and (refusal := _misrouted(request)) != error_codes.NONE:
        return response(error_code=refusal, api_keys=[])
    release = request.cluster.version
    return response(
        api_keys=[
            response.ApiVersion(api_key=key, min_version=low, max_version=high)
            for key, (low, high) in release.all_versions(request.node.endpoint).items()
        ],
        supported_features=[
            response.SupportedFeatureKey(name=feature.name, min_version=feature.low, max_version=feature.high)
            for feature in release.features
            # Clients before version 4 take a lowest level of 0 for an error.
            if feature.low > 0 or request.version >= 4
        ],
        finalized_features_epoch=_FEATURES_EPOCH,
        finalized_features=[
            response.FinalizedFeatureKey(
                name=feature.name, max_version_level=feature.finalized, min_version_level=feature.finalized
            )
            for feature in release.features
            if feature.finalized > 0
        ],
    )


def _misrouted(request: Request) -> int:
    """Compare the cluster and the node that a client means with those that it has reached."""
    cluster_id, node_id = request.message.cluster_id, request.message.node_id
    if (cluster_id is None) != (node_id == _NO_NODE):
        return error_codes.INVALID_REQUEST
    is_here = (cluster_id, node_id) == (request.cluster.cluster_id, request.node.id)
    is_stranger = request.node.listener.users is not None and request.client.principal == ANONYMOUS
    if cluster_id is None or is_here or is_stranger or request.node.endpoint is Endpoint.CONTROLLER:
        return error_codes.NONE
    return error_codes.REBOOTSTRAP_REQUIRED


def _is_legal_software_name(message: Message) -> bool:
    names = (message.client_software_name, message.client_software_version)
    return all(_SOFTWARE_NAME.fullmatch(name) for name in names)


_CLUSTER_RESPONSE = api.DESCRIBE_CLUSTER.response
_ShownNode = tuple[int, str | None, bool]


def _describe_cluster(request: Request) -> Message:
    """DescribeCluster: the nodes of a cluster and its id.

    Permission: none at a broker; ALTER on the cluster at the controller.

    Behaviour:
    - A broker lists the live brokers, with the option of version 2 the fenced ones too; a controller lists controllers.
    - A broker names a live broker drawn at random as controller, as KRaft brokers do.
    - The wrong kind of endpoint is MISMATCHED_ENDPOINT_TYPE, an unknown one UNSUPPORTED_ENDPOINT_TYPE.

    Left out:
    - Nothing.
    """
    if request.at_controller and not request.allows(Operation.ALTER):
        return _cluster_refused(error_codes.CLUSTER_AUTHORIZATION_FAILED, request.denial(Operation.ALTER))
    wanted = request.message.endpoint_type if request.version >= 1 else Endpoint.BROKER.value
    if wanted not in {kind.value for kind in Endpoint}:
        code = error_codes.INVALID_REQUEST if request.version == 0 else error_codes.UNSUPPORTED_ENDPOINT_TYPE
        return _cluster_refused(code, f"Unsupported endpoint type {wanted}")
    if wanted != request.node.endpoint.value:
        code = error_codes.INVALID_REQUEST if request.version == 0 else error_codes.MISMATCHED_ENDPOINT_TYPE
        text = (
            f"The request was sent to an endpoint of type {request.node.endpoint.name}, "
            f"but we wanted an endpoint of type {Endpoint(wanted).name}"
        )
        return _cluster_refused(code, text)
    return _cluster_nodes(request)


def _cluster_refused(code: int, text: str) -> Message:
    return _CLUSTER_RESPONSE(
        error_code=code,
        error_message=text,
        endpoint_type=Endpoint.BROKER.value,  # Whatever the request asked for: Kafka leaves the field as it is.
        cluster_id="",
        controller_id=-1,
        brokers=[],
    )


def _cluster_nodes(request: Request) -> Message:
    controllers: list[_ShownNode] = [(controller, None, False) for controller in request.cluster.controller.node_ids]
    nodes = controllers if request.at_controller else _shown_brokers(request)
    return _CLUSTER_RESPONSE(
        endpoint_type=request.node.endpoint.value,
        cluster_id=request.cluster.cluster_id,
        controller_id=request.cluster.controller.active_id if request.at_controller else shown_controller(request),
        brokers=[
            _CLUSTER_RESPONSE.DescribeClusterBroker(
                broker_id=node_id,
                host=request.address(node_id).host,
                port=request.address(node_id).port,
                rack=rack,
                is_fenced=is_fenced,
            )
            for node_id, rack, is_fenced in nodes
        ],
        authorized_operations=cluster_operations(request),
    )


def _shown_brokers(request: Request) -> list[_ShownNode]:
    with_fenced = request.version >= 2 and request.message.include_fenced_brokers
    brokers = (request.metadata.brokers[broker_id] for broker_id in sorted(request.metadata.brokers))
    return [(broker.broker_id, broker.rack, broker.fenced) for broker in brokers if with_fenced or not broker.fenced]


_QUORUM_RESPONSE = api.DESCRIBE_QUORUM.response


def _describe_quorum(request: Request) -> Message:
    """DescribeQuorum: who votes on the metadata log and how far each node has read it.

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
    if not request.allows(Operation.DESCRIBE):
        text = request.denial(Operation.DESCRIBE)
        return _QUORUM_RESPONSE(
            error_code=error_codes.CLUSTER_AUTHORIZATION_FAILED, error_message=text, topics=[], nodes=[]
        )
    wanted = request.message.topics
    asked = [(topic.topic_name, entry.partition_index) for topic in wanted for entry in topic.partitions]
    code = _quorum_refusal(request, asked)
    topics = [
        _QUORUM_RESPONSE.TopicData(
            topic_name=topic.topic_name,
            partitions=[_quorum_partition(request, entry.partition_index, code) for entry in topic.partitions],
        )
        for topic in wanted
    ]
    controllers = request.cluster.controller.node_ids if code == error_codes.NONE else ()
    return _QUORUM_RESPONSE(topics=topics, nodes=[_quorum_node(request, controller) for controller in controllers])


def _quorum_partition(request: Request, index: int, code: int) -> Message:
    entry = _QUORUM_RESPONSE.TopicData.PartitionData
    if code != error_codes.NONE:
        text = error_codes.error_code(code).text
        empty = {"leader_id": 0, "leader_epoch": 0, "high_watermark": 0, "current_voters": [], "observers": []}
        return entry(partition_index=index, error_code=code, error_message=text, **empty)
    return entry(
        partition_index=index,
        leader_id=request.cluster.controller.active_id,
        leader_epoch=request.cluster.controller.epoch,
        high_watermark=request.metadata.offset,
        current_voters=[_quorum_state(request, controller) for controller in request.cluster.controller.node_ids],
        observers=[_quorum_state(request, broker.broker_id) for broker in live_brokers(request.metadata)],
    )


def _quorum_refusal(request: Request, asked: list[tuple[str, int]]) -> int:
    if asked != [(METADATA_TOPIC, 0)]:
        return error_codes.UNKNOWN_TOPIC_OR_PARTITION
    return (
        error_codes.NONE
        if request.cluster.controller.takes_requests_at(request.node.id)
        else error_codes.NOT_LEADER_OR_FOLLOWER
    )


def _quorum_state(request: Request, node_id: int) -> Message:
    now_ms = request.cluster.wall_ms
    return _QUORUM_RESPONSE.TopicData.PartitionData.ReplicaState(
        replica_id=node_id,
        log_end_offset=request.metadata.offset,
        last_fetch_timestamp=-1 if node_id == request.cluster.controller.active_id else now_ms,
        last_caught_up_timestamp=now_ms,
    )


def _quorum_node(request: Request, node_id: int) -> Message:
    host, port = request.address(node_id)
    listener = _QUORUM_RESPONSE.Node.Listener(name="CONTROLLER", host=host, port=port)
    return _QUORUM_RESPONSE.Node(node_id=node_id, listeners=[listener])


def _unregister_broker(request: Request) -> Message:
    """UnregisterBroker: takes a broker out of the cluster for good.

    Permission: ALTER on the cluster; without it CLUSTER_AUTHORIZATION_FAILED.

    Behaviour:
    - Replica lists, and moves to the broker, go on naming it; it leads nothing and is in sync with nothing any more.
    - A broker that is not registered is BROKER_ID_NOT_REGISTERED.

    Left out:
    - The refusal's text is that of 4.3 whatever the release; 3.9 sends an empty one.
    - A process that runs on unregistered does not shut down; after its next start it registers again.
    """
    response = api.UNREGISTER_BROKER.response
    if not request.allows(Operation.ALTER):
        text = request.denial(Operation.ALTER)
        return response(error_code=error_codes.CLUSTER_AUTHORIZATION_FAILED, error_message=text)
    outcome = request.cluster.controller.unregister_broker(request.message.broker_id)
    # Unlike in most answers the text of a success is empty, not null.
    return response(error_code=outcome.code, error_message=outcome.message or "")


HANDLERS = (
    Handler(api.API_VERSIONS, _api_versions),
    Handler(api.DESCRIBE_CLUSTER, _describe_cluster),
    Handler(api.DESCRIBE_QUORUM, _describe_quorum),
    Handler(api.UNREGISTER_BROKER, _unregister_broker),
)
