"""Faults of requests on their way to a node, and of responses on their way back.

A request can be lost before it is executed, or be answered with an error, executed or not. A response can be lost,
delayed or duplicated; its request has been executed by then. This is the only place where that happens, for the TCP
server and for the in-process transport.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, Protocol

from kreassign.wire.api import Api


class Reply(NamedTuple):
    """What a node sends back: whole frames, or nothing; and whether it closes the connection after that.

    It is sent after `delay_ms`, and until then nothing else is read from the connection.
    """

    frame: bytes
    is_last: bool = False
    delay_ms: int = 0


@dataclass(frozen=True, slots=True)
class Dropped:
    """The connection breaks before the request is executed."""


@dataclass(frozen=True, slots=True)
class Refused:
    """The request is answered with an error on everything in it; it is executed only if `is_executed`."""

    code: int
    is_executed: bool = False


RequestFault = Dropped | Refused


class FailsOver(Protocol):
    """A controller, as far as faults of responses need it."""

    def fail_over(self) -> None:
        """Let the next node become the active controller."""
        ...


class ResponseFault(Protocol):
    """Something that changes responses."""

    def apply(self, controller: FailsOver, reply: Reply) -> Reply:
        """The response as the client gets it."""
        ...


@dataclass(frozen=True, slots=True)
class Lost:
    """The connection breaks instead of a response."""

    def apply(self, controller: FailsOver, reply: Reply) -> Reply:
        """No response."""
        del controller, reply
        return CLOSED


@dataclass(frozen=True, slots=True)
class Delayed:
    """The response comes later."""

    by_ms: int

    def apply(self, controller: FailsOver, reply: Reply) -> Reply:
        """The same response, later."""
        del controller
        return reply._replace(delay_ms=reply.delay_ms + self.by_ms)


@dataclass(frozen=True, slots=True)
class Duplicated:
    """The response comes twice; the client takes the second for the response to its next request."""

    def apply(self, controller: FailsOver, reply: Reply) -> Reply:
        """The same response twice."""
        del controller
        return reply._replace(frame=reply.frame * 2)


@dataclass(frozen=True, slots=True)
class LostInFailover:
    """The controller executes the request, then another one takes over, and the response never comes."""

    def apply(self, controller: FailsOver, reply: Reply) -> Reply:
        """No response from a controller that is no longer active."""
        del reply
        controller.fail_over()
        return CLOSED


CLOSED = Reply(b"", is_last=True)
"""The node closes the connection."""


@dataclass(frozen=True, slots=True)
class AffectedResponses:
    """Which requests or responses are affected: those of one API or (None) any, to or from one node or any."""

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
    """The faults that are active."""

    def __init__(self) -> None:
        self._active: list[_ActiveFault] = []

    def add(self, fault: ResponseFault | RequestFault, affected: AffectedResponses, *, hits_once: bool) -> None:
        """Change the next such request or response (`hits_once`), or all of them until the fault is removed."""
        self._active.append(_ActiveFault(fault, affected, hits_once))

    def remove(self, fault: ResponseFault | RequestFault, affected: AffectedResponses) -> None:
        """Remove a fault. Nothing happens if it is not active, or has hit already."""
        self._active = [one for one in self._active if one[:2] != (fault, affected)]

    def before(self, node_id: int, api: Api) -> RequestFault | None:
        """What happens to a request that a node is about to get; of several faults the one that is oldest."""
        for one in self._active:
            if isinstance(one.fault, Dropped | Refused) and (api, node_id) in one.affected:
                if one.hits_once:
                    self._active.remove(one)
                return one.fault
        return None

    def apply(self, controller: FailsOver, node_id: int, api: Api, reply: Reply) -> Reply:
        """The response of a node as the client gets it, after all faults that affect it."""
        if not self._active:
            return reply
        hitting = [one for one in self._active if (api, node_id) in one.affected]
        for one in hitting:
            if not isinstance(one.fault, Dropped | Refused):
                if one.hits_once:
                    self._active.remove(one)
                reply = one.fault.apply(controller, reply)
        return reply
