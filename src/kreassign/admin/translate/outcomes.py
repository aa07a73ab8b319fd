"""Entries of a response → `Batch`. Only here: an item that was asked about and is missing from the answer fails.

Silence must never read as "nothing is set" or "nothing is there", so no other module of this package makes a batch,
and none makes one without saying what was asked. What a call is not asked by name is `NOT_NAMED`.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Hashable, Iterable, Mapping
from typing import TypeVar

from kreassign.admin.call import failure, rejection
from kreassign.errors import ClusterError, ProtocolViolation
from kreassign.model import Batch
from kreassign.model.error_codes import NONE
from kreassign.wire.api import Api, Message

Key = TypeVar("Key", bound=Hashable)
Value = TypeVar("Value")

NOT_NAMED = ()
"""What was asked when all were asked for, or a page of what was named: nobody can say what is missing."""


def outcomes(api: Api, answered: Iterable[tuple[Key, int, str | None]], asked: Iterable[Key]) -> Batch[Key, None]:
    """A batch from (key, code, message); a key that was asked about and not answered is a broken answer.

    What is answered beyond what was asked is left out; where nothing is named, all is asked about.
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


def _own_code(entry: Message) -> int:
    return int(entry.error_code)


def readings(
    api: Api,
    answered: Iterable[tuple[Key, Message]],
    value: Callable[[Key, Message], Value],
    asked: Iterable[Key],
    *,
    code: Callable[[Message], int] = _own_code,
) -> Batch[Key, Value]:
    """A batch of what was read, from (key, entry).

    Entries carry `error_code`, and some APIs' an `error_message`; `code` looks elsewhere in an entry, too. As in
    `outcomes`, what nobody asked about is left out.
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
    """What was answered, but for what was answered both ways: then nobody knows."""
    both = {
        key: ProtocolViolation(
            f"the answer to {api} says twice what became of {key}, and not the same", item=key, api=api.name
        )
        for key in ok.keys() & failed.keys()
    }
    plain = {key: value for key, value in ok.items() if key not in both}
    return Batch(plain, {**failed, **both, **unanswered(api, wanted, {**ok, **failed})})


def entry_of(api: Api, answered: Iterable[tuple[Key, Message]], asked: Key) -> Message:
    """The entry about the only item that was asked about; its error code is still to be looked at."""
    found = dict(answered)
    for error in unanswered(api, [asked], found).values():
        raise error
    return found[asked]


def unanswered(api: Api, asked: Iterable[Key], answered: Container[Key]) -> dict[Key, ClusterError]:
    """A broken answer as the outcome of every key that was asked about and not answered."""
    return {
        key: ProtocolViolation(f"the answer to {api} says nothing about {key}", item=key, api=api.name)
        for key in asked
        if key not in answered
    }
