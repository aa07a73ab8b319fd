"""One client's connection to one node: reads requests, asks the handlers, writes answers. Bytes in, bytes out.

The TCP server and the in-process transport both speak through this, so that they cannot differ.
"""

from __future__ import annotations

from enum import Enum, auto
from typing import TYPE_CHECKING

from kreassign.errors import ControllerMoved, ProtocolViolation
from kreassign.model.error_codes import (
    NONE,
    SASL_AUTHENTICATION_FAILED,
    UNSUPPORTED_SASL_MECHANISM,
    UNSUPPORTED_VERSION,
)
from kreassign.twin.api.handler import Handler
from kreassign.twin.api.not_controller import refusal
from kreassign.twin.api.request import Client, Request
from kreassign.twin.api.table import BY_KEY
from kreassign.twin.network.endpoints import Node
from kreassign.twin.network.permissions import ANONYMOUS
from kreassign.twin.network.response_faults import Reply
from kreassign.twin.network.sasl import MECHANISM, Users
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

if TYPE_CHECKING:
    from kreassign.twin.cluster import Twin


class _Stage(Enum):
    """How far a client is with SASL."""

    GREETING = auto()
    TOKENS_IN_MESSAGES = auto()
    BARE_TOKENS = auto()
    DONE = auto()


class Connection:
    """What a node remembers of a connection. Requests are answered in the order in which they come."""

    def __init__(self, twin: Twin, node: Node, connection: str) -> None:
        self._twin = twin
        self._node = node
        self._client = Client(ANONYMOUS, connection)
        self._stage = _Stage.DONE if node.listener.users is None else _Stage.GREETING

    def answer(self, payload: bytes) -> Reply:
        """The answer to a frame's payload; `ProtocolViolation` where a real node would hang up without a word."""
        if self._stage is _Stage.BARE_TOKENS:
            return self._bare_token(payload)
        head = request_head(payload)
        handler = BY_KEY.get(head.api_key)
        offered = self._twin.version.versions(head.api_key, self._node.endpoint)
        if handler is None or offered is None:
            raise ProtocolViolation(f"API {head.api_key} is not offered by {self._node.endpoint.name.lower()}s")
        if not offered.low <= head.version <= offered.high:
            if handler.api is api.API_VERSIONS:
                return Reply(encode_unsupported_version(head.correlation_id, UNSUPPORTED_VERSION, offered))
            raise ProtocolViolation(f"{handler.api} is offered in versions {offered}, not in {head.version}")
        received = decode_request(handler.api, payload)
        if self._stage is not _Stage.DONE:
            return self._authenticating(received)
        request = Request(self._twin, self._node, self._client, received.version, received.message)
        response = self._respond(request, handler)
        reply = Reply(encode_response(received.version, response, received.correlation_id))
        return self._twin.response_faults.apply(self._twin, self._node.id, handler.api, reply)

    def _respond(self, request: Request, handler: Handler) -> Message:
        try:
            return refusal(request, handler.api) or handler.handle(request)
        except ControllerMoved as moved:  # Only found out when it wanted to write.
            refused = refusal(request, handler.api)
            if refused is None:
                raise ProtocolViolation(f"{handler.api} needs a controller, and there is none here") from moved
            return refused

    # --- SASL -------------------------------------------------------------------------------------------------

    def _authenticating(self, received: Received) -> Reply:
        if self._stage is _Stage.GREETING and received.api is api.API_VERSIONS:
            request = Request(self._twin, self._node, self._client, received.version, received.message)
            response = BY_KEY[api.API_VERSIONS.key].handle(request)
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
