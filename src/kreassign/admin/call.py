"""One request to a cluster as a value: how to build it for a version, how to read its answer."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Generic, TypeVar

from kreassign.errors import ClusterError, OutcomeUnknown, ProtocolViolation, Rejected
from kreassign.model.error_codes import NONE, REQUEST_TIMED_OUT, error_code
from kreassign.wire.api import Api, Message

Answer = TypeVar("Answer")


def _no_codes(_response: Message) -> Iterable[int]:
    return ()


@dataclass(frozen=True, slots=True)
class Call(Generic[Answer]):
    """A request and the reading of its response.

    `build(version, timeout_ms)` makes the message; it raises `Unsupported` when the version cannot carry what is
    asked. `read(response)` gives model types and raises `Rejected` for a request-level error. `is_write` forbids
    sending the request again after an answer was lost. `routing_codes` are the error codes of a response among
    which NOT_CONTROLLER means: nothing was done, ask the controller.
    """

    api: Api
    build: Callable[[int, int], Message]
    read: Callable[[Message], Answer]
    is_write: bool = False
    routing_codes: Callable[[Message], Iterable[int]] = _no_codes


_SENSELESS = (ArithmeticError, AttributeError, LookupError, TypeError, ValueError)


@contextmanager
def reading(asked: Api) -> Iterator[None]:
    """Let an answer that can be decoded, and whose fields make no sense (null for a list …), be a ProtocolViolation."""
    try:
        yield
    except _SENSELESS as error:
        raise ProtocolViolation(f"the answer to {asked} makes no sense: {error!r}") from error


def rejection(api: Api, code: int, message: str | None, item: object = None) -> Rejected:
    """Kafka's refusal as an error; an absent message becomes the code's default text, as in Kafka's own client.

    `item` is what was refused; None for the request as a whole.
    """
    known = error_code(code)
    return Rejected(
        message or known.text, api=api.name, code=code, name=known.name, retriable=known.retriable, item=item
    )


def failure(api: Api, code: int, message: str | None, item: object = None) -> ClusterError:
    """What an error code says of a request. REQUEST_TIMED_OUT is no refusal: the broker stopped waiting, not doing."""
    refused = rejection(api, code, message, item)
    if code == REQUEST_TIMED_OUT:
        return OutcomeUnknown(refused.message, item=item, api=api.name)
    return refused


def raise_if_failed(api: Api, code: int, message: str | None = None, item: object = None) -> None:
    """Raise the `failure` of any code but NONE."""
    if code != NONE:
        raise failure(api, code, message, item)
