"""A port to a twin whose answers get lost, come late, or are those of another controller: for some calls, or all."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from typing import Any, cast

from kreassign.admin import AdminClient
from kreassign.errors import OutcomeUnknown, Rejected, Unreachable
from kreassign.executor.cluster.port import ClusterPort
from kreassign.model import Batch, TopicPartition
from kreassign.model.error_codes import error_code

Real = Callable[..., Any]
Answer = Callable[..., Any]
"""What comes back instead: called with the real method and its arguments."""


class OddPort:
    """The client of a twin, but for the answers that a test puts in the way of the calls of a method."""

    def __init__(self, client: AdminClient) -> None:
        self._client = client
        self._answers: dict[str, deque[Answer]] = {}
        self._lasting: dict[str, Answer] = {}
        self.calls: list[tuple[str, tuple[Any, ...], dict[str, Any]]] = []

    @property
    def principal(self) -> str | None:
        """The client's own principal."""
        return self._client.principal

    @property
    def port(self) -> ClusterPort:
        """Port of the executor."""
        return cast(ClusterPort, self)

    def answer(self, method: str, *answers: Answer) -> None:
        """The next calls of the method get these, in turn; those after them the twin's own."""
        self._answers.setdefault(method, deque()).extend(answers)

    def answer_always(self, method: str, answer: Answer) -> None:
        """All calls of the method get this from now on, but for those that another answer waits for."""
        self._lasting[method] = answer

    def __getattr__(self, method: str) -> Real:
        real: Real = getattr(self._client, method)

        def call(*args: Any, **named: Any) -> Any:
            self.calls.append((method, args, named))
            waiting = self._answers.get(method)
            answer = waiting.popleft() if waiting else self._lasting.get(method, as_it_is)
            return answer(real, *args, **named)

        return call


def as_it_is(real: Real, *args: Any, **named: Any) -> Any:
    """The twin's own answer."""
    return real(*args, **named)


def lost_on_the_way_there(real: Real, *args: Any, **named: Any) -> Any:
    """The request never arrives, and nobody can tell."""
    del real, args, named
    raise OutcomeUnknown("the connection broke before the answer came")


def lost_on_the_way_back(real: Real, *args: Any, **named: Any) -> Any:
    """Carry the call out and lose the answer."""
    real(*args, **named)
    raise OutcomeUnknown("the connection broke before the answer came")


def not_reached(real: Real, *args: Any, **named: Any) -> Any:
    """Refuse the connection."""
    del real, args, named
    raise Unreachable("could not connect")


def nothing_listed(real: Real, *args: Any, **named: Any) -> Any:
    """Answer of an inactive controller: no reassignments, and no error."""
    del real, args, named
    return {}


def refused(code: int) -> Answer:
    """The request as a whole is refused."""

    def answer(real: Real, *args: Any, **named: Any) -> Any:
        del real, args, named
        raise refusal(code)

    return answer


def each_refused(code: int, *, is_done: bool = False) -> Answer:
    """Every partition is refused with this code, though it may have been carried out."""

    def answer(real: Real, targets: Iterable[TopicPartition], *rest: Any, **named: Any) -> Batch[TopicPartition, None]:
        if is_done:
            real(targets, *rest, **named)
        return Batch({}, {name: refusal(code, name) for name in targets})

    return answer


def refusal(code: int, item: object = None, api: str = "Test") -> Rejected:
    """Kafka's refusal with this code."""
    known = error_code(code)
    return Rejected(known.text, api=api, code=code, name=known.name, retriable=known.retriable, item=item)
