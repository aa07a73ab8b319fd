"""A client's connection to a node: decode a request, call its handler, encode the response. No input or output.

Shared by the TCP server and the in-process transport, so that they cannot differ. It is also the only place where
faults affect requests and responses: a request can be lost before it is executed, or answered with an error, executed
or not; a response can be lost, delayed or duplicated after its request has been executed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum, auto
from functools import partial
from typing import NamedTuple, Protocol, runtime_checkable

from kreassign.errors import ControllerMoved, ProtocolViolation
from kreassign.model.error_codes import (
    NONE,
    SASL_AUTHENTICATION_FAILED,
    UNSUPPORTED_SASL_MECHANISM,
    UNSUPPORTED_VERSION,
)
from kreassign.twin.access import ANONYMOUS, SASL_MECHANISM, Node, Users
from kreassign.twin.api.handlers import HANDLERS_BY_KEY
from kreassign.twin.api.refusals import not_controller_refusal, refuse_all
from kreassign.twin.api.request import Client, Handler, Request
from kreassign.twin.core import KRaftController, TwinCore
from kreassign.twin.version import NOT_OFFERED
from kreassign.wire import api, codec
from kreassign.wire.api import Api, Message

# Faults of requests and responses in transit.


class Reply(NamedTuple):
    """A node's answer: whole frames, or nothing; and whether it closes the connection after that.

    It is sent after `delay_ms`, and until then nothing else is read from the connection.
    """

    frame: bytes
    is_last: bool = False
    delay_ms: int = 0


Execute = Callable[[Request], Message]
"""Executes a request, and returns the response."""


@runtime_checkable
class RequestFault(Protocol):
    """Something that happens to a request in place of its execution."""

    def meet(self, request: Request, execute: Execute) -> Message | None:
        """The response to the request; None breaks the connection."""
        ...


@dataclass(frozen=True, slots=True)
class Dropped:
    """Break the connection before the request is executed."""

    def meet(self, request: Request, execute: Execute) -> None:
        """Return no response, and execute nothing."""
        del request, execute


@dataclass(frozen=True, slots=True)
class Refused:
    """Answer the request with an error on every item; execute it only if `is_executed`."""

    code: int
    is_executed: bool = False

    def meet(self, request: Request, execute: Execute) -> Message | None:
        """The refusal; an API that has none is executed as always."""
        refused = refuse_all(request, self.code)
        if refused is None:
            return execute(request)
        if self.is_executed:
            execute(request)
        return refused


class ResponseFault(Protocol):
    """A change to responses."""

    def apply(self, controller: KRaftController, reply: Reply) -> Reply:
        """The response as the client gets it."""
        ...


@dataclass(frozen=True, slots=True)
class Lost:
    """Break the connection instead of a response."""

    def apply(self, controller: KRaftController, reply: Reply) -> Reply:
        """Return no response; close the connection."""
        del controller, reply
        return CLOSED


@dataclass(frozen=True, slots=True)
class Delayed:
    """Delay the response."""

    by_ms: int

    def apply(self, controller: KRaftController, reply: Reply) -> Reply:
        """Delay the response `by_ms`."""
        del controller
        return reply._replace(delay_ms=reply.delay_ms + self.by_ms)


@dataclass(frozen=True, slots=True)
class Duplicated:
    """Send the response twice; the client takes the second for the response to its next request."""

    def apply(self, controller: KRaftController, reply: Reply) -> Reply:
        """Send the response twice."""
        del controller
        return reply._replace(frame=reply.frame * 2)


@dataclass(frozen=True, slots=True)
class LostInFailover:
    """Let the controller execute the request, then fail over; the response never comes."""

    def apply(self, controller: KRaftController, reply: Reply) -> Reply:
        """Fail over; return no response."""
        del reply
        controller.fail_over()
        return CLOSED


CLOSED = Reply(b"", is_last=True)
"""No answer: the node closes the connection."""


@dataclass(frozen=True, slots=True)
class AffectedResponses:
    """Affected requests or responses: those of one API or (None) any, to or from one node or any."""

    api_key: int | None = None
    node_id: int | None = None

    def __contains__(self, response: tuple[Api, int]) -> bool:
        api, node_id = response
        return self.api_key in (None, api.key) and self.node_id in (None, node_id)


class _ActiveFault(NamedTuple):
    fault: ResponseFault | RequestFault
    affected: AffectedResponses
    hits_once: bool


class ResponseFaults:
    """The active faults of requests and responses."""

    def __init__(self) -> None:
        self._active: list[_ActiveFault] = []

    def add(self, fault: ResponseFault | RequestFault, affected: AffectedResponses, *, hits_once: bool) -> None:
        """Affect the next matching request or response (`hits_once`), or all of them until the fault is removed."""
        self._active.append(_ActiveFault(fault, affected, hits_once))

    def remove(self, fault: ResponseFault | RequestFault, affected: AffectedResponses) -> None:
        """Remove a fault. Does nothing if the fault is not active, or has hit already."""
        self._active = [one for one in self._active if one[:2] != (fault, affected)]

    def before(self, node_id: int, api: Api) -> RequestFault | None:
        """The fault that affects a request to a node; the oldest of several, None if there is none."""
        for one in self._active:
            if isinstance(one.fault, RequestFault) and (api, node_id) in one.affected:
                if one.hits_once:
                    self._active.remove(one)
                return one.fault
        return None

    def apply(self, controller: KRaftController, node_id: int, api: Api, reply: Reply) -> Reply:
        """The response as the client gets it, after all matching faults."""
        if not self._active:
            return reply
        hitting = [one for one in self._active if (api, node_id) in one.affected]
        for one in hitting:
            if not isinstance(one.fault, RequestFault):
                if one.hits_once:
                    self._active.remove(one)
                reply = one.fault.apply(controller, reply)
        return reply


class _SaslStage(Enum):
    """Stage of a client's SASL authentication."""

    GREETING = auto()
    TOKENS_IN_MESSAGES = auto()
    BARE_TOKENS = auto()
    DONE = auto()


class Connection:
    """The state that a node keeps for a connection. Requests are answered in order of arrival.

    `name` is the connection in Kafka's messages.
    """

    def __init__(self, cluster: TwinCore, faults: ResponseFaults, node: Node, name: str) -> None:
        self._cluster = cluster
        self._faults = faults
        self._node = node
        self._client = Client(ANONYMOUS, name)
        self._stage = _SaslStage.DONE if node.listener.users is None else _SaslStage.GREETING

    def answer(self, payload: bytes) -> Reply:
        """Answer a frame's payload; `ProtocolViolation` if a real node would close the connection."""
        if self._stage is _SaslStage.BARE_TOKENS:
            return self._bare_token(payload)
        head = codec.request_head(payload)
        handler = HANDLERS_BY_KEY.get(head.api_key)
        offered = self._cluster.version.versions(head.api_key, self._node.endpoint)
        if handler is None or offered is None:
            name, _ = NOT_OFFERED.get(head.api_key, (str(head.api_key), ""))
            raise ProtocolViolation(f"API {name} is not offered by {self._node.endpoint.name.lower()}s")
        if not offered.low <= head.version <= offered.high:
            if handler.api is api.API_VERSIONS:
                return Reply(codec.encode_unsupported_version(head.correlation_id, UNSUPPORTED_VERSION, offered))
            raise ProtocolViolation(f"{handler.api} is offered in versions {offered}, not in {head.version}")
        received = codec.decode_request(handler.api, payload, self._cluster.version.longest_list)
        if self._stage is not _SaslStage.DONE:
            return self._authenticate(received)
        fault = self._faults.before(self._node.id, handler.api)
        request, execute = self._request(received), partial(self._executed, handler=handler)
        response = execute(request) if fault is None else fault.meet(request, execute)
        if response is None:
            return CLOSED
        reply = Reply(codec.encode_response(received.version, response, received.correlation_id))
        return self._faults.apply(self._cluster.controller, self._node.id, handler.api, reply)

    def _request(self, received: codec.Received) -> Request:
        return Request(
            self._cluster,
            self._node,
            self._client,
            received.api,
            received.version,
            received.message,
            received.client_id or "",
        )

    def _executed(self, request: Request, handler: Handler) -> Message:
        try:
            return not_controller_refusal(request, handler.api) or handler.handle(request)
        except ControllerMoved as moved:  # Another controller was elected; this one notices when it writes.
            refused = not_controller_refusal(request, handler.api)
            if refused is None:
                raise ProtocolViolation(f"{handler.api} needs a controller, and there is none here") from moved
            return refused

    # --- SASL -------------------------------------------------------------------------------------------------

    def _authenticate(self, received: codec.Received) -> Reply:
        if self._stage is _SaslStage.GREETING and received.api is api.API_VERSIONS:
            response = HANDLERS_BY_KEY[api.API_VERSIONS.key].handle(self._request(received))
            return Reply(codec.encode_response(received.version, response, received.correlation_id))
        if self._stage is _SaslStage.GREETING and received.api is api.SASL_HANDSHAKE:
            return self._handshake(received)
        if self._stage is _SaslStage.TOKENS_IN_MESSAGES and received.api is api.SASL_AUTHENTICATE:
            return self._token(received)
        raise ProtocolViolation(f"{received.api} came before the client was authenticated")

    def _handshake(self, received: codec.Received) -> Reply:
        is_known = received.message.mechanism == SASL_MECHANISM
        response = api.SASL_HANDSHAKE.response(
            error_code=NONE if is_known else UNSUPPORTED_SASL_MECHANISM, mechanisms=[SASL_MECHANISM]
        )
        # After a handshake in version 0 the tokens come bare, after one in version 1 as messages (KIP-152).
        self._stage = _SaslStage.BARE_TOKENS if received.version == 0 else _SaslStage.TOKENS_IN_MESSAGES
        return Reply(codec.encode_response(received.version, response, received.correlation_id), is_last=not is_known)

    def _token(self, received: codec.Received) -> Reply:
        refusal = self._evaluate(bytes(received.message.auth_bytes))
        response = api.SASL_AUTHENTICATE.response(
            error_code=SASL_AUTHENTICATION_FAILED if refusal else NONE,
            error_message=refusal,
            auth_bytes=b"",
            session_lifetime_ms=0,
        )
        frame = codec.encode_response(received.version, response, received.correlation_id)
        return Reply(frame, is_last=refusal is not None)

    def _bare_token(self, token: bytes) -> Reply:
        if (refusal := self._evaluate(token)) is not None:
            raise ProtocolViolation(refusal)
        return Reply(codec.framed(b""))

    def _evaluate(self, token: bytes) -> str | None:
        users = self._node.listener.users
        assert isinstance(users, Users)
        verdict = users.judge(token)
        if verdict.user is not None:
            self._client = Client(f"User:{verdict.user}", self._client.connection)
            self._stage = _SaslStage.DONE
        return verdict.refusal
