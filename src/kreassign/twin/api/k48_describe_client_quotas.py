"""DescribeClientQuotas: what clients may take.

Versions: 0-1.
Permission: DESCRIBE_CONFIGS on the cluster; without it CLUSTER_AUTHORIZATION_FAILED.

Behaviour:
- No client has a quota.

Left out:
- Quotas: they cannot be set either.
"""

from __future__ import annotations

from kreassign.model.error_codes import CLUSTER_AUTHORIZATION_FAILED, NONE
from kreassign.twin.access.permissions import Operation
from kreassign.twin.api.handler import Handler
from kreassign.twin.api.request import Request
from kreassign.wire import api
from kreassign.wire.api import Message


def _handle(request: Request) -> Message:
    response = api.DESCRIBE_CLIENT_QUOTAS.response
    if not request.allows(Operation.DESCRIBE_CONFIGS):
        text = request.denial(Operation.DESCRIBE_CONFIGS)
        return response(error_code=CLUSTER_AUTHORIZATION_FAILED, error_message=text, entries=None)
    return response(error_code=NONE, error_message="", entries=[])


HANDLERS = (Handler(api.DESCRIBE_CLIENT_QUOTAS, _handle),)
