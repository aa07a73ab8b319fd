"""DescribeCluster: the nodes of a cluster and its id.

Versions: 0-1 on 3.7, 3.9; 0-2 on 4.2, 4.3.
Permission: none at a broker; ALTER on the cluster at the controller.

Behaviour:
- A broker lists the live brokers, with the option of version 2 the fenced ones too; a controller lists controllers.
- A broker names a live broker drawn at random as controller, as KRaft brokers do.
- The wrong kind of endpoint is MISMATCHED_ENDPOINT_TYPE, an unknown one UNSUPPORTED_ENDPOINT_TYPE.

Left out:
- Nothing.
"""

from __future__ import annotations

from kreassign.model.error_codes import (
    CLUSTER_AUTHORIZATION_FAILED,
    INVALID_REQUEST,
    MISMATCHED_ENDPOINT_TYPE,
    UNSUPPORTED_ENDPOINT_TYPE,
)
from kreassign.twin.access.permissions import CLUSTER_OPERATIONS, Operation
from kreassign.twin.api.handler import Handler
from kreassign.twin.api.request import Request
from kreassign.twin.api.shown import shown_controller
from kreassign.twin.version import Endpoint
from kreassign.wire import api
from kreassign.wire.api import Message

_RESPONSE = api.DESCRIBE_CLUSTER.response
_Node = tuple[int, str | None, bool]


def _handle(request: Request) -> Message:
    if request.at_controller and not request.allows(Operation.ALTER):
        return _refused(CLUSTER_AUTHORIZATION_FAILED, request.denial(Operation.ALTER))
    wanted = request.message.endpoint_type if request.version >= 1 else Endpoint.BROKER.value
    if wanted not in {kind.value for kind in Endpoint}:
        code = INVALID_REQUEST if request.version == 0 else UNSUPPORTED_ENDPOINT_TYPE
        return _refused(code, f"Unsupported endpoint type {wanted}")
    if wanted != request.node.endpoint.value:
        code = INVALID_REQUEST if request.version == 0 else MISMATCHED_ENDPOINT_TYPE
        text = (
            f"The request was sent to an endpoint of type {request.node.endpoint.name}, "
            f"but we wanted an endpoint of type {Endpoint(wanted).name}"
        )
        return _refused(code, text)
    return _nodes(request)


def _refused(code: int, text: str) -> Message:
    return _RESPONSE(
        error_code=code,
        error_message=text,
        endpoint_type=Endpoint.BROKER.value,  # Whatever was asked for: Kafka leaves the field as it is.
        cluster_id="",
        controller_id=-1,
        brokers=[],
    )


def _nodes(request: Request) -> Message:
    nodes = _controllers(request) if request.at_controller else _brokers(request)
    return _RESPONSE(
        endpoint_type=request.node.endpoint.value,
        cluster_id=request.cluster.cluster_id,
        controller_id=request.cluster.controller.active_id if request.at_controller else shown_controller(request),
        brokers=[
            _RESPONSE.DescribeClusterBroker(
                broker_id=node_id,
                host=request.address(node_id).host,
                port=request.address(node_id).port,
                rack=rack,
                is_fenced=is_fenced,
            )
            for node_id, rack, is_fenced in nodes
        ],
        authorized_operations=_operations(request),
    )


def _controllers(request: Request) -> list[_Node]:
    return [(controller, None, False) for controller in request.cluster.controller.node_ids]


def _brokers(request: Request) -> list[_Node]:
    with_fenced = request.version >= 2 and request.message.include_fenced_brokers
    brokers = (request.metadata.brokers[broker_id] for broker_id in sorted(request.metadata.brokers))
    return [(broker.broker_id, broker.rack, broker.fenced) for broker in brokers if with_fenced or not broker.fenced]


def _operations(request: Request) -> set[int] | None:
    if not request.message.include_cluster_authorized_operations:
        return None
    return request.allowed_operations(CLUSTER_OPERATIONS) if request.allows(Operation.DESCRIBE) else set()


HANDLERS = (Handler(api.DESCRIBE_CLUSTER, _handle),)
