"""Access control lists of a secure cluster."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from kafka.protocol.admin import (
    ACLOperation,
    ACLPermissionType,
    ACLResourcePatternType,
    ACLResourceType,
    CreateAclsRequest,
    CreateAclsResponse,
    DeleteAclsRequest,
    DeleteAclsResponse,
    DescribeAclsRequest,
    DescribeAclsResponse,
)

from testbed.errors import Refused
from testbed.probe import ask
from testbed.waiting import wait_until

_VERSION = 2


@dataclass(frozen=True, slots=True)
class Permission:
    """Something that a user may do, in Kafka's words: an operation (`DESCRIBE`, `ALTER` …) on a resource.

    The cluster itself is the resource `CLUSTER` with the name `kafka-cluster`.
    """

    operation: str
    resource: Literal["CLUSTER", "TOPIC", "GROUP"] = "CLUSTER"
    name: str = "kafka-cluster"


def allow(port: int, user: str, permission: Permission) -> None:
    """Add an ACL that allows it."""
    creation = CreateAclsRequest.AclCreation(
        resource_type=ACLResourceType[permission.resource],
        resource_name=permission.name,
        resource_pattern_type=ACLResourcePatternType.LITERAL,
        principal=f"User:{user}",
        host="*",
        operation=ACLOperation[permission.operation],
        permission_type=ACLPermissionType.ALLOW,
    )
    answer = ask(port, CreateAclsRequest(creations=[creation]), CreateAclsResponse, _VERSION)
    _check(answer.results[0], user)


def wait_known(port: int, user: str, permission: Permission) -> None:
    """Wait until a broker knows the ACL."""
    request_fields = _filter(user) | {
        "resource_type_filter": ACLResourceType[permission.resource],
        "resource_name_filter": permission.name,
        "operation": ACLOperation[permission.operation],
    }

    def is_known() -> bool:
        answer = ask(port, DescribeAclsRequest(**request_fields), DescribeAclsResponse, _VERSION)
        _check(answer, user)
        return bool(answer.resources)

    wait_until(is_known, what=f"{permission} of {user} at the broker on port {port}")


def withdraw(port: int, user: str) -> None:
    """Delete all ACLs of a user."""
    request = DeleteAclsRequest(filters=[DeleteAclsRequest.DeleteAclsFilter(**_filter(user))])
    answer = ask(port, request, DeleteAclsResponse, _VERSION)
    _check(answer.filter_results[0], user)


def _filter(user: str) -> dict[str, Any]:
    return {
        "resource_type_filter": ACLResourceType.ANY,
        "resource_name_filter": None,
        "pattern_type_filter": ACLResourcePatternType.ANY,
        "principal_filter": f"User:{user}",
        "host_filter": None,
        "operation": ACLOperation.ANY,
        "permission_type": ACLPermissionType.ANY,
    }


def _check(answer: Any, user: str) -> None:
    if answer.error_code:
        raise Refused(f"ACLs of {user}: error {answer.error_code}, {answer.error_message}")
