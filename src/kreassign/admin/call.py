"""One request to a cluster as a value: builds the message for a version, reads the answer into a `Batch`.

An item that was asked about and is missing from the answer fails: silence must never read as "nothing is set" or
"nothing is there". So every translation makes its batch by `outcomes` or `readings`, which take the items that were
asked about; for a call without named items that is `NOT_NAMED`.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Hashable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from typing import Generic, TypeVar

from kreassign.errors import ClusterError, OutcomeUnknown, ProtocolViolation, Rejected
from kreassign.model import Batch, TopicPartition
from kreassign.model.error_codes import NONE, REQUEST_TIMED_OUT, error_code
from kreassign.wire.api import Api, Message

Answer = TypeVar("Answer")


Confirm = Callable[[], object]
"""Called before each request that changes the cluster is sent, also before it is sent again; raises to prevent that."""


@dataclass(frozen=True, slots=True)
class Call(Generic[Answer]):
    """A request and the reading of its response.

    `build(version, timeout_ms)` makes the message; it raises `Unsupported` when the version cannot carry what is
    asked. `read(response)` gives model types and raises `Rejected` for a request-level error. `is_write` forbids
    sending the request again after an answer was lost. `routing_codes` are the error codes of a response among
    which NOT_CONTROLLER means: nothing was done, ask the controller. `is_answered_by_inactive_controllers`: they give
    no such code, but an answer from what they have read, which may be stale or empty. `is_doubtful(answer)`: a node
    that has not read the metadata yet, or is behind, answers so too; another one is asked before it is believed.
    `join(first, second)` is what both say together: what either has found is there. `confirm` is called before each
    time that the request is sent. A read that `is_brief` is answered at once by a node that answers at all.
    """

    api: Api
    build: Callable[[int, int], Message]
    read: Callable[[Message], Answer]
    is_write: bool = False
    routing_codes: Callable[[Message], Iterable[int]] = lambda _: ()
    is_answered_by_inactive_controllers: bool = False
    is_doubtful: Callable[[Answer], bool] = lambda _: False
    join: Callable[[Answer, Answer], Answer] = lambda _first, second: second
    confirm: Confirm | None = None
    is_brief: bool = False

    def confirmed(self, confirm: Confirm | None) -> Call[Answer]:
        """Return the call with a confirmation of each try."""
        return replace(self, confirm=confirm)


_SENSELESS = (ArithmeticError, AttributeError, LookupError, TypeError, ValueError)


_PRINCIPAL = ContextVar[str | None]("_PRINCIPAL", default=None)
"""The client whose answer is being read, for its refusals; they arise deep in an answer, one by one."""


@contextmanager
def reading_answer(asked: Api, principal: str | None = None) -> Iterator[None]:
    """Raise ProtocolViolation for an answer that decodes but makes no sense (null for a list …).

    Refusals in the answer have the client's `principal`.
    """
    client = _PRINCIPAL.set(principal)
    try:
        yield
    except _SENSELESS as error:
        raise ProtocolViolation(f"the answer to {asked} makes no sense: {error!r}") from error
    finally:
        _PRINCIPAL.reset(client)


def rejection(api: Api, code: int, message: str | None, item: object = None) -> Rejected:
    """Kafka's refusal as an error; an absent message becomes the code's default text, as in Kafka's own client.

    `item` is what was refused; None for the request as a whole.
    """
    known = error_code(code)
    return Rejected(
        message or known.text,
        api=api.name,
        code=code,
        name=known.name,
        retriable=known.retriable,
        item=item,
        principal=_PRINCIPAL.get(),
    )


def failure(api: Api, code: int, message: str | None, item: object = None) -> ClusterError:
    """The error for a code. REQUEST_TIMED_OUT is OutcomeUnknown: the broker stopped waiting, not working."""
    refused = rejection(api, code, message, item)
    if code == REQUEST_TIMED_OUT:
        return OutcomeUnknown(refused.message, item=item, api=api.name)
    return refused


def raise_if_failed(api: Api, code: int, message: str | None = None, item: object = None) -> None:
    """Raise the `failure` of any code but NONE."""
    if code != NONE:
        raise failure(api, code, message, item)


# Entries of a response → `Batch`.

Key = TypeVar("Key", bound=Hashable)
Value = TypeVar("Value")

NOT_NAMED = ()
"""The items of a call about all items, or of one page: none can be missing."""


def outcomes(api: Api, answered: Iterable[tuple[Key, int, str | None]], asked: Iterable[Key]) -> Batch[Key, None]:
    """Make a batch from (key, code, message); a requested key without an answer is a ProtocolViolation.

    Answers about other keys are left out; with `NOT_NAMED` every answer counts.
    """
    ok: dict[Key, None] = {}
    failed: dict[Key, ClusterError] = {}
    wanted = dict.fromkeys(asked)
    for key, code, message in answered:
        if wanted and key not in wanted:
            continue
        if code == NONE:
            ok[key] = None
        else:
            failed[key] = failure(api, code, message, key)
    return _batch(api, wanted, ok, failed)


def readings(
    api: Api,
    answered: Iterable[tuple[Key, Message]],
    value: Callable[[Key, Message], Value],
    asked: Iterable[Key],
    *,
    code: Callable[[Message], int] = lambda entry: int(entry.error_code),
) -> Batch[Key, Value]:
    """Make a batch of values from (key, entry).

    Entries have `error_code`, and with some APIs `error_message`; `code` looks elsewhere in an entry, too. As in
    `outcomes`, answers about other keys are left out.
    """
    ok: dict[Key, Value] = {}
    failed: dict[Key, ClusterError] = {}
    wanted = dict.fromkeys(asked)
    for key, entry in answered:
        if wanted and key not in wanted:
            continue
        refused = code(entry)
        if refused == NONE:
            ok[key] = value(key, entry)
        else:
            failed[key] = rejection(api, refused, getattr(entry, "error_message", None), key)
    return _batch(api, wanted, ok, failed)


def _batch(
    api: Api, wanted: Iterable[Key], ok: Mapping[Key, Value], failed: Mapping[Key, ClusterError]
) -> Batch[Key, Value]:
    """Join both; a key answered with a value and with an error fails, as its state is unknown."""
    both = {
        key: ProtocolViolation(
            f"the answer to {api} says twice what became of {key}, and not the same", item=key, api=api.name
        )
        for key in ok.keys() & failed.keys()
    }
    plain = {key: value for key, value in ok.items() if key not in both}
    return Batch(plain, {**failed, **both, **unanswered(api, wanted, {**ok, **failed})})


def entry_of(api: Api, answered: Iterable[tuple[Key, Message]], asked: Key) -> Message:
    """Return the entry for the only requested item; its error code is not checked here."""
    found = dict(answered)
    for error in unanswered(api, [asked], found).values():
        raise error
    return found[asked]


def unanswered(api: Api, asked: Iterable[Key], answered: Container[Key]) -> dict[Key, ClusterError]:
    """A ProtocolViolation for every requested key without an answer."""
    return {
        key: ProtocolViolation(f"the answer to {api} says nothing about {key}", item=key, api=api.name)
        for key in asked
        if key not in answered
    }


def by_topic(partitions: Iterable[TopicPartition]) -> dict[str, list[int]]:
    """Partition numbers by topic, both sorted; a partition named twice counts once."""
    grouped: dict[str, list[int]] = {}
    for topic, partition in sorted(set(partitions)):
        grouped.setdefault(topic, []).append(partition)
    return grouped


def topic_entries(
    entry: Message, partitions: Iterable[TopicPartition], make: Callable[[TopicPartition], Message]
) -> list[Message]:
    """Entries of a request, one per topic, with what `make` says of each of its partitions."""
    return [
        entry(name=topic, partitions=[make(TopicPartition(topic, number)) for number in numbers])
        for topic, numbers in by_topic(partitions).items()
    ]


def partition_entries(topics: Iterable[Message]) -> Iterator[tuple[TopicPartition, Message]]:
    """The entry of each partition of a response."""
    return ((TopicPartition(topic.name, one.partition_index), one) for topic in topics for one in topic.partitions)


def partition_outcomes(
    api: Api, topics: Iterable[Message], asked: Iterable[TopicPartition]
) -> Batch[TopicPartition, None]:
    """Make the `outcomes` of a response's partitions."""
    entries = partition_entries(topics)
    answered = ((key, one.error_code, getattr(one, "error_message", None)) for key, one in entries)
    return outcomes(api, answered, asked)


def either(first: Batch[Key, Answer], second: Batch[Key, Answer]) -> Batch[Key, Answer]:
    """Join the answers of two nodes: a key that either has found is there; others fail as at the second."""
    found = {**second.ok, **first.ok}
    return Batch(found, {key: error for key, error in {**first.failed, **second.failed}.items() if key not in found})
