"""DescribeUserScramCredentials: which users can log in with SCRAM.

Versions: 0.
Permission: DESCRIBE on the cluster; without it CLUSTER_AUTHORIZATION_FAILED.

Behaviour:
- There are no such users: asked for all it is an empty list, and every name asked for is RESOURCE_NOT_FOUND.
- A controller offers the API and fails: UNKNOWN_SERVER_ERROR on the whole and on every user.
- A name that is asked for twice is DUPLICATE_RESOURCE, answered once.

Left out:
- A real controller does not answer at all when it is asked for all users.
- SCRAM: the users of a scenario log in with PLAIN.
"""

from __future__ import annotations

from collections import Counter

from kreassign.model.error_codes import (
    CLUSTER_AUTHORIZATION_FAILED,
    DUPLICATE_RESOURCE,
    NONE,
    RESOURCE_NOT_FOUND,
    UNKNOWN_SERVER_ERROR,
)
from kreassign.twin.access.permissions import Operation
from kreassign.twin.api.handler import Handler
from kreassign.twin.api.request import Request
from kreassign.wire import api
from kreassign.wire.api import Message

_RESPONSE = api.DESCRIBE_USER_SCRAM_CREDENTIALS.response
_RESULT = _RESPONSE.DescribeUserScramCredentialsResult


def _handle(request: Request) -> Message:
    if not request.allows(Operation.DESCRIBE):
        text = request.denial(Operation.DESCRIBE)
        return _RESPONSE(error_code=CLUSTER_AUTHORIZATION_FAILED, error_message=text, results=[])
    names = [user.name for user in request.message.users or ()]
    if request.at_controller:
        nobody = [_RESULT(user="", error_code=UNKNOWN_SERVER_ERROR, error_message=None, credential_infos=[])]
        return _RESPONSE(error_code=UNKNOWN_SERVER_ERROR, error_message=None, results=nobody * len(names))
    results = [_result(name, times) for name, times in Counter(names).items()]
    return _RESPONSE(error_code=NONE, error_message="", results=results)


def _result(name: str, times: int) -> Message:
    code, text = RESOURCE_NOT_FOUND, f"Attempt to describe a user credential that does not exist: {name}"
    if times > 1:
        code = DUPLICATE_RESOURCE
        text = f"Cannot describe SCRAM credentials for the same user twice in a single request: {name}"
    return _RESULT(user=name, error_code=code, error_message=text, credential_infos=[])


HANDLERS = (Handler(api.DESCRIBE_USER_SCRAM_CREDENTIALS, _handle),)
