"""Outcomes per item of a response → `Batch`."""

from __future__ import annotations

from collections.abc import Container, Hashable, Iterable
from typing import TypeVar

from kreassign.admin.call import failure
from kreassign.errors import ClusterError, ProtocolViolation
from kreassign.model import Batch
from kreassign.model.error_codes import NONE
from kreassign.wire.api import Api

Key = TypeVar("Key", bound=Hashable)


def outcomes(api: Api, answered: Iterable[tuple[Key, int, str | None]], asked: Iterable[Key] = ()) -> Batch[Key, None]:
    """A batch from (key, code, message); a key that was asked about and not answered is a broken answer."""
    ok: dict[Key, None] = {}
    failed: dict[Key, ClusterError] = {}
    for key, code, message in answered:
        if code == NONE:
            ok[key] = None
        else:
            failed[key] = failure(api, code, message, key)
    return Batch(ok, failed | unanswered(api, asked, {**ok, **failed}))


def unanswered(api: Api, asked: Iterable[Key], answered: Container[Key]) -> dict[Key, ClusterError]:
    """A broken answer as the outcome of every key that was asked about and not answered."""
    return {
        key: ProtocolViolation(f"the answer to {api} says nothing about {key}", item=key, api=api.name)
        for key in asked
        if key not in answered
    }
