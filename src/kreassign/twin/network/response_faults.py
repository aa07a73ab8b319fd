"""What may befall answers on their way back: the one place where a conversation is tampered with.

The request has been carried out by then. The TCP server and the in-process transport both get what comes out of here.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, Protocol

from kreassign.wire.api import Api

if TYPE_CHECKING:
    from kreassign.twin.cluster import Twin


class Reply(NamedTuple):
    """What a node sends back: whole frames one after the other, or nothing; and whether it hangs up after that.

    It is sent only after `delay_ms`, and until then nothing else is read from the connection.
    """

    frame: bytes
    is_last: bool = False
    delay_ms: int = 0


class ResponseFault(Protocol):
    """Something that changes answers."""

    def apply(self, twin: Twin, reply: Reply) -> Reply:
        """What comes of an answer."""
        ...


@dataclass(frozen=True, slots=True)
class Lost:
    """The connection breaks in place of the answer."""

    def apply(self, twin: Twin, reply: Reply) -> Reply:
        """Nothing."""
        del twin, reply
        return _HUNG_UP


@dataclass(frozen=True, slots=True)
class Delayed:
    """The answer comes later."""

    by_ms: int

    def apply(self, twin: Twin, reply: Reply) -> Reply:
        """The same, later."""
        del twin
        return reply._replace(delay_ms=reply.delay_ms + self.by_ms)


@dataclass(frozen=True, slots=True)
class Duplicated:
    """The answer comes twice; the second is taken for the answer to the next request."""

    def apply(self, twin: Twin, reply: Reply) -> Reply:
        """The same two times."""
        del twin
        return reply._replace(frame=reply.frame * 2)


@dataclass(frozen=True, slots=True)
class LostInFailover:
    """The controller writes what was asked for, then another one takes over, and the answer never comes."""

    def apply(self, twin: Twin, reply: Reply) -> Reply:
        """Nothing, from a controller that is none any more."""
        del reply
        twin.fail_over()
        return _HUNG_UP


_HUNG_UP = Reply(b"", is_last=True)


@dataclass(frozen=True, slots=True)
class AffectedResponses:
    """Which answers: those of one API or (None) of any, from one node or any."""

    api_key: int | None = None
    node_id: int | None = None

    def __contains__(self, answer: tuple[Api, int]) -> bool:
        api, node_id = answer
        return self.api_key in (None, api.key) and self.node_id in (None, node_id)


class _ActiveFault(NamedTuple):
    fault: ResponseFault
    concerned: AffectedResponses
    hits_once: bool


class ResponseFaults:
    """The disturbances in force."""

    def __init__(self) -> None:
        self._active: list[_ActiveFault] = []

    def add(self, fault: ResponseFault, concerned: AffectedResponses, *, hits_once: bool) -> None:
        """Change the next such answer (`hits_once`), or all of them until it is removed."""
        self._active.append(_ActiveFault(fault, concerned, hits_once))

    def remove(self, fault: ResponseFault, concerned: AffectedResponses) -> None:
        """Leave such answers alone again. Nothing happens if that was not in force, or has hit already."""
        self._active = [one for one in self._active if one[:2] != (fault, concerned)]

    def apply(self, twin: Twin, node_id: int, api: Api, reply: Reply) -> Reply:
        """What comes of a node's answer, all disturbances that concern it taken together."""
        hitting = [one for one in self._active if (api, node_id) in one.concerned]
        self._active = [one for one in self._active if not (one in hitting and one.hits_once)]
        for one in hitting:
            reply = one.fault.apply(twin, reply)
        return reply
