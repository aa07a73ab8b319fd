"""DescribeAcls: access rules.

Versions: 0-3 on 3.7, 3.9; 1-3 on 4.2, 4.3.
Permission: DESCRIBE on the cluster; without it CLUSTER_AUTHORIZATION_FAILED.

Behaviour:
- Without access rules SECURITY_DISABLED, as from a broker that has no authorizer.

Left out:
- The rules themselves: with a scenario's access rules the list is empty.
"""

from __future__ import annotations

from kreassign.model.error_codes import CLUSTER_AUTHORIZATION_FAILED, NONE, SECURITY_DISABLED
from kreassign.twin.access.permissions import Operation
from kreassign.twin.api.handler import Handler
from kreassign.twin.api.request import Request
from kreassign.wire import api
from kreassign.wire.api import Message


def _handle(request: Request) -> Message:
    if not request.allows(Operation.DESCRIBE):
        return _answer(CLUSTER_AUTHORIZATION_FAILED, request.denial(Operation.DESCRIBE))
    if request.cluster.permissions is None:
        return _answer(SECURITY_DISABLED, "No Authorizer is configured on the broker")
    return _answer(NONE, None)


def _answer(code: int, text: str | None) -> Message:
    return api.DESCRIBE_ACLS.response(error_code=code, error_message=text, resources=[])


HANDLERS = (Handler(api.DESCRIBE_ACLS, _handle),)
