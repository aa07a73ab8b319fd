"""One client's connection to one node: decodes requests, calls handlers, encodes responses. Bytes in, bytes out.

The TCP server and the in-process transport both use this, so that they cannot differ.
"""

from __future__ import annotations

from enum import Enum, auto
from typing import Protocol

from kreassign.errors import ControllerMoved, ProtocolViolation
from kreassign.model.error_codes import (
    NONE,
    SASL_AUTHENTICATION_FAILED,
    UNSUPPORTED_SASL_MECHANISM,
    UNSUPPORTED_VERSION,
)
from kreassign.twin.access.endpoints import Node
from kreassign.twin.access.permissions import ANONYMOUS
from kreassign.twin.access.sasl import MECHANISM, Users
from kreassign.twin.api.handler import Handler
from kreassign.twin.api.not_controller import refusal
from kreassign.twin.api.refusals import refusing
from kreassign.twin.api.request import Client, Request, ServedCluster
from kreassign.twin.api.response_faults import CLOSED, Dropped, Refused, Reply, ResponseFaults
from kreassign.twin.api.table import BY_KEY
from kreassign.wire import api
from kreassign.wire.api import Message
from kreassign.wire.codec import (
    Received,
    decode_request,
    encode_response,
    encode_unsupported_version,
    request_head,
)
from kreassign.wire.frame import framed


class ConnectedCluster(ServedCluster, Protocol):
    """A cluster whose requests and responses may be lost, and more, on their way."""

    response_faults: ResponseFaults


class _Stage(Enum):
    """How far a client is with SASL."""

    GREETING = auto()
    TOKENS_IN_MESSAGES = auto()
    BARE_TOKENS = auto()
    DONE = auto()


class Connection:
    """The state that a node keeps for a connection. Requests are answered in the order in which they come.

    `name` is how Kafka's messages show the connection.
    """

    def __init__(self, cluster: ConnectedCluster, node: Node, name: str) -> None:
        self._cluster = cluster
        self._node = node
        self._client = Client(ANONYMOUS, name)
        self._stage = _Stage.DONE if node.listener.users is None else _Stage.GREETING

    def answer(self, payload: bytes) -> Reply:
        """The response to a frame's payload; `ProtocolViolation` where a real node would close the connection."""
        if self._stage is _Stage.BARE_TOKENS:
            return self._bare_token(payload)
        head = request_head(payload)
        handler = BY_KEY.get(head.api_key)
        offered = self._cluster.version.versions(head.api_key, self._node.endpoint)
        if handler is None or offered is None:
            raise ProtocolViolation(f"API {head.api_key} is not offered by {self._node.endpoint.name.lower()}s")
        if not offered.low <= head.version <= offered.high:
            if handler.api is api.API_VERSIONS:
                return Reply(encode_unsupported_version(head.correlation_id, UNSUPPORTED_VERSION, offered))
            raise ProtocolViolation(f"{handler.api} is offered in versions {offered}, not in {head.version}")
        received = decode_request(handler.api, payload)
        if self._stage is not _Stage.DONE:
            return self._authenticate(received)
        fault = self._cluster.response_faults.before(self._node.id, handler.api)
        if isinstance(fault, Dropped):
            return CLOSED
        response = self._respond(self._request(received), handler, fault)
        reply = Reply(encode_response(received.version, response, received.correlation_id))
        return self._cluster.response_faults.apply(self._cluster.controller, self._node.id, handler.api, reply)

    def _request(self, received: Received) -> Request:
        return Request(
            self._cluster,
            self._node,
            self._client,
            received.api,
            received.version,
            received.message,
            received.client_id or "",
        )

    def _respond(self, request: Request, handler: Handler, fault: Refused | None) -> Message:
        refused = None if fault is None else refusing(request, fault.code)
        if fault is None or refused is None:
            return self._executed(request, handler)
        if fault.is_executed:
            self._executed(request, handler)
        return refused

    def _executed(self, request: Request, handler: Handler) -> Message:
        try:
            return refusal(request, handler.api) or handler.handle(request)
        except ControllerMoved as moved:  # Another controller was elected, which this one finds out when it writes.
            refused = refusal(request, handler.api)
            if refused is None:
                raise ProtocolViolation(f"{handler.api} needs a controller, and there is none here") from moved
            return refused

    # --- SASL -------------------------------------------------------------------------------------------------

    def _authenticate(self, received: Received) -> Reply:
        if self._stage is _Stage.GREETING and received.api is api.API_VERSIONS:
            response = BY_KEY[api.API_VERSIONS.key].handle(self._request(received))
            return Reply(encode_response(received.version, response, received.correlation_id))
        if self._stage is _Stage.GREETING and received.api is api.SASL_HANDSHAKE:
            return self._handshake(received)
        if self._stage is _Stage.TOKENS_IN_MESSAGES and received.api is api.SASL_AUTHENTICATE:
            return self._token(received)
        raise ProtocolViolation(f"{received.api} came before the client was authenticated")

    def _handshake(self, received: Received) -> Reply:
        is_known = received.message.mechanism == MECHANISM
        response = api.SASL_HANDSHAKE.response(
            error_code=NONE if is_known else UNSUPPORTED_SASL_MECHANISM, mechanisms=[MECHANISM]
        )
        # After a handshake in version 0 the tokens come as they are, after one in version 1 as messages (KIP-152).
        self._stage = _Stage.BARE_TOKENS if received.version == 0 else _Stage.TOKENS_IN_MESSAGES
        return Reply(encode_response(received.version, response, received.correlation_id), is_last=not is_known)

    def _token(self, received: Received) -> Reply:
        refusal = self._evaluate(bytes(received.message.auth_bytes))
        response = api.SASL_AUTHENTICATE.response(
            error_code=SASL_AUTHENTICATION_FAILED if refusal else NONE,
            error_message=refusal,
            auth_bytes=b"",
            session_lifetime_ms=0,
        )
        frame = encode_response(received.version, response, received.correlation_id)
        return Reply(frame, is_last=refusal is not None)

    def _bare_token(self, token: bytes) -> Reply:
        if (refusal := self._evaluate(token)) is not None:
            raise ProtocolViolation(refusal)
        return Reply(framed(b""))

    def _evaluate(self, token: bytes) -> str | None:
        users = self._node.listener.users
        assert isinstance(users, Users)
        verdict = users.judge(token)
        if verdict.user is not None:
            self._client = Client(f"User:{verdict.user}", self._client.connection)
            self._stage = _Stage.DONE
        return verdict.refusal
