"""What a node answers that is not the active controller: NOT_CONTROLLER, and nothing is done.

Every item of the request is repeated with the refusal, as Kafka makes error responses. In KRaft mode brokers forward
requests to the active controller; in ZooKeeper mode the controller is a broker, and the other brokers refuse.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kreassign.model.error_codes import NONE, NOT_CONTROLLER, error_code
from kreassign.twin.api import refusals
from kreassign.twin.api.refusals import Refuse
from kreassign.twin.api.request import Request
from kreassign.wire import api, kip_179
from kreassign.wire.api import Message


def refusal(request: Request, called: api.Api) -> Message | None:
    """The refusal, if the request is for the active controller alone and this node does not pass it on."""
    controller = request.cluster.controller
    refuse = (_REFUSALS_OF_CONTROLLERS if request.at_controller else _REFUSALS_OF_BROKERS).get(called.key)
    if refuse is None or controller.takes_requests_at(request.node.id):
        return None
    of_controllers = f"The active controller appears to be node {controller.active_id}."
    text = of_controllers if request.at_controller else error_code(NOT_CONTROLLER).text
    return refuse(request, {"error_code": NOT_CONTROLLER, "error_message": text})


def _none_reassigned(request: Request, failed: dict[str, Any]) -> Message:
    """In ZooKeeper mode nothing of the request is repeated."""
    del request
    return api.ALTER_PARTITION_REASSIGNMENTS.response(responses=[], **failed)


def _each_elected(request: Request, failed: dict[str, Any]) -> Message:
    """In ZooKeeper mode only partitions are refused, without a text, and the answer as a whole is fine."""
    response = refusals.BY_KEY[api.ELECT_LEADERS.key](request, {**failed, "error_message": None})
    response.error_code = NONE
    return response


def _refusals(*apis: api.Api) -> dict[int, Refuse]:
    return {known.key: refusals.BY_KEY[known.key] for known in apis}


# ListPartitionReassignments is not among them: a controller that is not active answers from what it has read.
_REFUSALS_OF_CONTROLLERS: Mapping[int, Refuse] = _refusals(
    api.CREATE_TOPICS, api.DELETE_TOPICS, api.ALTER_CONFIGS, api.CREATE_PARTITIONS, api.ELECT_LEADERS,
    api.INCREMENTAL_ALTER_CONFIGS, api.ALTER_PARTITION_REASSIGNMENTS, api.UNREGISTER_BROKER, *kip_179.CHANGES,
)  # fmt: skip

# Configurations can be changed through any broker.
_REFUSALS_OF_BROKERS: Mapping[int, Refuse] = {
    **_refusals(
        api.CREATE_TOPICS, api.DELETE_TOPICS, api.CREATE_PARTITIONS, api.LIST_PARTITION_REASSIGNMENTS, *kip_179.CHANGES
    ),
    api.ELECT_LEADERS.key: _each_elected,
    api.ALTER_PARTITION_REASSIGNMENTS.key: _none_reassigned,
}
