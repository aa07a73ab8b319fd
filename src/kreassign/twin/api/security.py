"""Answer requests about users: SASL logins, SCRAM credentials, ACLs and client quotas.

SaslHandshake, SaslAuthenticate, DescribeUserScramCredentials, DescribeAcls, DescribeClientQuotas. Login is part of the
connection (`connection.py`); the SASL handlers here answer clients that are logged in or need not log in.
"""

from __future__ import annotations

from collections import Counter

from kreassign.model import error_codes
from kreassign.twin.access import Operation
from kreassign.twin.api.request import Handler, Request
from kreassign.twin.refused import SCENARIO_RULES
from kreassign.wire import api
from kreassign.wire.api import Message


def _sasl_handshake(request: Request) -> Message:
    """SaslHandshake: names a SASL mechanism.

    Permission: none.

    Behaviour:
    - On a listener with users: PLAIN is accepted, anything else gets UNSUPPORTED_SASL_MECHANISM and the connection
      ends.
    - After version 0 the tokens come bare, after version 1 in SaslAuthenticate.
    - On a listener without users, and from a client that is authenticated already: ILLEGAL_SASL_STATE.

    Left out:
    - Mechanisms other than PLAIN; authenticating again on the same connection.
    """
    # Reached only if nothing is to be authenticated; before that the connection answers.
    del request
    return api.SASL_HANDSHAKE.response(error_code=error_codes.ILLEGAL_SASL_STATE, mechanisms=[])


def _sasl_authenticate(request: Request) -> Message:
    """SaslAuthenticate: carries the tokens of a SASL mechanism.

    Permission: none.

    Behaviour:
    - The right name and password are answered with no error, wrong ones with SASL_AUTHENTICATION_FAILED and Kafka's
      text, after which the connection ends.
    - From a client that is authenticated already, or need not be: ILLEGAL_SASL_STATE.

    Left out:
    - Sessions that expire: the lifetime is always 0, which means for ever.
    - The pause that a real broker makes before it closes the connection of a client that failed.
    """
    # Reached only if nothing is to be authenticated; before that the connection answers.
    del request
    return api.SASL_AUTHENTICATE.response(
        error_code=error_codes.ILLEGAL_SASL_STATE,
        error_message="SaslAuthenticate request received after successful authentication",
        auth_bytes=b"",
    )


_SCRAM_RESPONSE = api.DESCRIBE_USER_SCRAM_CREDENTIALS.response
_SCRAM_RESULT = _SCRAM_RESPONSE.DescribeUserScramCredentialsResult


def _describe_user_scram_credentials(request: Request) -> Message:
    """DescribeUserScramCredentials: which users can log in with SCRAM.

    Permission: DESCRIBE on the cluster; without it CLUSTER_AUTHORIZATION_FAILED.

    Behaviour:
    - There are no such users: asked for all it is an empty list, and every name asked for is RESOURCE_NOT_FOUND.
    - A controller offers the API and fails: UNKNOWN_SERVER_ERROR on the whole and on every user.
    - A name that is asked for twice is DUPLICATE_RESOURCE, answered once.

    Left out:
    - A real controller does not answer at all when it is asked for all users.
    - SCRAM: the users of a scenario log in with PLAIN.
    """
    if not request.allows(Operation.DESCRIBE):
        text = request.denial(Operation.DESCRIBE)
        return _SCRAM_RESPONSE(error_code=error_codes.CLUSTER_AUTHORIZATION_FAILED, error_message=text, results=[])
    names = [user.name for user in request.message.users or ()]
    if request.at_controller:
        nobody = [
            _SCRAM_RESULT(user="", error_code=error_codes.UNKNOWN_SERVER_ERROR, error_message=None, credential_infos=[])
        ]
        return _SCRAM_RESPONSE(
            error_code=error_codes.UNKNOWN_SERVER_ERROR, error_message=None, results=nobody * len(names)
        )
    results = [_scram_result(name, times) for name, times in Counter(names).items()]
    return _SCRAM_RESPONSE(error_code=error_codes.NONE, error_message="", results=results)


def _scram_result(name: str, times: int) -> Message:
    code, text = error_codes.RESOURCE_NOT_FOUND, f"Attempt to describe a user credential that does not exist: {name}"
    if times > 1:
        code = error_codes.DUPLICATE_RESOURCE
        text = f"Cannot describe SCRAM credentials for the same user twice in a single request: {name}"
    return _SCRAM_RESULT(user=name, error_code=code, error_message=text, credential_infos=[])


def _describe_acls(request: Request) -> Message:
    """DescribeAcls: access rules.

    Permission: DESCRIBE on the cluster; without it CLUSTER_AUTHORIZATION_FAILED.

    Behaviour:
    - Without access rules SECURITY_DISABLED, as from a broker that has no authorizer.

    Left out:
    - The rules themselves: with a scenario's access rules POLICY_VIOLATION. An empty list would be untrue.
    """
    if not request.allows(Operation.DESCRIBE):
        return _acls_answer(error_codes.CLUSTER_AUTHORIZATION_FAILED, request.denial(Operation.DESCRIBE))
    if request.cluster.permissions is None:
        return _acls_answer(error_codes.SECURITY_DISABLED, "No Authorizer is configured on the broker")
    return _acls_answer(error_codes.POLICY_VIOLATION, SCENARIO_RULES)


def _acls_answer(code: int, text: str) -> Message:
    return api.DESCRIBE_ACLS.response(error_code=code, error_message=text, resources=[])


def _describe_client_quotas(request: Request) -> Message:
    """DescribeClientQuotas: what clients may take.

    Permission: DESCRIBE_CONFIGS on the cluster; without it CLUSTER_AUTHORIZATION_FAILED.

    Behaviour:
    - No client has a quota.

    Left out:
    - Quotas: they cannot be set either.
    """
    response = api.DESCRIBE_CLIENT_QUOTAS.response
    if not request.allows(Operation.DESCRIBE_CONFIGS):
        text = request.denial(Operation.DESCRIBE_CONFIGS)
        return response(error_code=error_codes.CLUSTER_AUTHORIZATION_FAILED, error_message=text, entries=None)
    return response(error_code=error_codes.NONE, error_message="", entries=[])


HANDLERS = (
    Handler(api.SASL_HANDSHAKE, _sasl_handshake),
    Handler(api.SASL_AUTHENTICATE, _sasl_authenticate),
    Handler(api.DESCRIBE_USER_SCRAM_CREDENTIALS, _describe_user_scram_credentials),
    Handler(api.DESCRIBE_ACLS, _describe_acls),
    Handler(api.DESCRIBE_CLIENT_QUOTAS, _describe_client_quotas),
)
