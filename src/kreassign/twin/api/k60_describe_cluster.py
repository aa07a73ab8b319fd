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
from kreassign.twin.api.asked import Asked
from kreassign.twin.api.handler import Handler
from kreassign.twin.api.shown import shown_controller
from kreassign.twin.network.permissions import CLUSTER_OPERATIONS, Operation
from kreassign.twin.setup.version import Endpoint
from kreassign.wire import api
from kreassign.wire.api import Message

_RESPONSE = api.DESCRIBE_CLUSTER.response
_Node = tuple[int, str | None, bool]


def _handle(asked: Asked) -> Message:
    if asked.at_controller and not asked.allows(Operation.ALTER):
        return _refused(asked.message, CLUSTER_AUTHORIZATION_FAILED, asked.denial(Operation.ALTER))
    wanted = asked.message.endpoint_type if asked.version >= 1 else Endpoint.BROKER.value
    if wanted not in {kind.value for kind in Endpoint}:
        code = INVALID_REQUEST if asked.version == 0 else UNSUPPORTED_ENDPOINT_TYPE
        return _refused(asked.message, code, f"Unsupported endpoint type {wanted}")
    if wanted != asked.node.endpoint.value:
        code = INVALID_REQUEST if asked.version == 0 else MISMATCHED_ENDPOINT_TYPE
        text = (
            f"The request was sent to an endpoint of type {asked.node.endpoint.name}, "
            f"but we wanted an endpoint of type {Endpoint(wanted).name}"
        )
        return _refused(asked.message, code, text)
    return _nodes(asked)


def _refused(request: Message, code: int, text: str) -> Message:
    return _RESPONSE(
        error_code=code,
        error_message=text,
        endpoint_type=request.endpoint_type,
        cluster_id="",
        controller_id=-1,
        brokers=[],
    )


def _nodes(asked: Asked) -> Message:
    nodes = _controllers(asked) if asked.at_controller else _brokers(asked)
    return _RESPONSE(
        endpoint_type=asked.node.endpoint.value,
        cluster_id=asked.twin.cluster_id,
        controller_id=asked.twin.controller_id if asked.at_controller else shown_controller(asked),
        brokers=[
            _RESPONSE.DescribeClusterBroker(
                broker_id=node_id,
                host=asked.address(node_id).host,
                port=asked.address(node_id).port,
                rack=rack,
                is_fenced=is_fenced,
            )
            for node_id, rack, is_fenced in nodes
        ],
        authorized_operations=_operations(asked),
    )


def _controllers(asked: Asked) -> list[_Node]:
    return [(controller, None, False) for controller in asked.twin.quorum.ids]


def _brokers(asked: Asked) -> list[_Node]:
    with_fenced = asked.version >= 2 and asked.message.include_fenced_brokers
    brokers = (asked.metadata.brokers[broker_id] for broker_id in sorted(asked.metadata.brokers))
    return [(broker.broker_id, broker.rack, broker.fenced) for broker in brokers if with_fenced or not broker.fenced]


def _operations(asked: Asked) -> set[int] | None:
    if not asked.message.include_cluster_authorized_operations:
        return None
    return asked.allowed_operations(CLUSTER_OPERATIONS) if asked.allows(Operation.DESCRIBE) else set()


HANDLERS = (Handler(api.DESCRIBE_CLUSTER, _handle),)
