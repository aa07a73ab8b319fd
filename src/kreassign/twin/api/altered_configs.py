"""Changes of configuration as both of their APIs carry them: the way to the controller and back."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace

from kreassign.model import ResourceType
from kreassign.model.error_codes import CLUSTER_AUTHORIZATION_FAILED, TOPIC_AUTHORIZATION_FAILED
from kreassign.twin.access.permissions import Operation
from kreassign.twin.api.request import Request
from kreassign.twin.controller.configs import AlterConfigs, ResourceChanges, ResourceOutcome
from kreassign.twin.controller.decision import Outcome, with_default_text
from kreassign.wire.api import Message


def alter(request: Request, resources: Iterable[ResourceChanges], *, replaces: bool) -> tuple[ResourceOutcome, ...]:
    """Have the controller change what the client may change."""
    command = AlterConfigs(
        tuple(resources),
        None if request.at_controller else request.node.id,
        replaces,
        request.message.validate_only,
    )
    denied = {one.owner: refusal for one in command.resources if (refusal := _denial(request, one)) is not None}
    return request.cluster.controller.alter_configs(replace(command, denied=denied))


def response_fields(outcomes: Iterable[ResourceOutcome], entry: Callable[..., Message]) -> list[Message]:
    """The entries of a response."""
    return [
        entry(
            error_code=one.outcome.code,
            error_message=one.outcome.message,
            resource_type=one.type,
            resource_name=one.name,
        )
        for one in outcomes
    ]


def _denial(request: Request, one: ResourceChanges) -> Outcome | None:
    if one.type == ResourceType.TOPIC:
        is_allowed = request.allows(Operation.ALTER_CONFIGS, one.name)
        return None if is_allowed else with_default_text(TOPIC_AUTHORIZATION_FAILED)
    return None if request.allows(Operation.ALTER_CONFIGS) else with_default_text(CLUSTER_AUTHORIZATION_FAILED)
