"""Faults of responses on their way back: lost, delayed, duplicated. The request has been executed by then.

This is the only place where a response is changed, for the TCP server and for the in-process transport.
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
        return _CLOSED


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
        return _CLOSED


_CLOSED = Reply(b"", is_last=True)


@dataclass(frozen=True, slots=True)
class AffectedResponses:
    """Which responses are affected: those of one API or (None) any, from one node or any."""

    api_key: int | None = None
    node_id: int | None = None

    def __contains__(self, response: tuple[Api, int]) -> bool:
        api, node_id = response
        return self.api_key in (None, api.key) and self.node_id in (None, node_id)


class _ActiveFault(NamedTuple):
    fault: ResponseFault
    affected: AffectedResponses
    hits_once: bool


class ResponseFaults:
    """The faults that are active."""

    def __init__(self) -> None:
        self._active: list[_ActiveFault] = []

    def add(self, fault: ResponseFault, affected: AffectedResponses, *, hits_once: bool) -> None:
        """Change the next such response (`hits_once`), or all of them until the fault is removed."""
        self._active.append(_ActiveFault(fault, affected, hits_once))

    def remove(self, fault: ResponseFault, affected: AffectedResponses) -> None:
        """Remove a fault. Nothing happens if it is not active, or has hit already."""
        self._active = [one for one in self._active if one[:2] != (fault, affected)]

    def apply(self, controller: FailsOver, node_id: int, api: Api, reply: Reply) -> Reply:
        """The response of a node as the client gets it, after all faults that affect it."""
        hitting = [one for one in self._active if (api, node_id) in one.affected]
        self._active = [one for one in self._active if not (one in hitting and one.hits_once)]
        for one in hitting:
            reply = one.fault.apply(controller, reply)
        return reply
