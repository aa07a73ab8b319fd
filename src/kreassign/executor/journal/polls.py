"""Polls of the cluster that showed nothing new, many in one row of a journal. Pure.

A run of a week polls half a million times, and mostly nothing has changed but time. Nothing is sent after such a poll
before another event is written, so the row may wait for that one: a run that dies before has only not polled yet.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator

from kreassign.executor.events import MovesObserved

KIND = "UneventfulPolls"


def is_uneventful(event: MovesObserved) -> bool:
    """Whether a poll showed nothing, or nothing that is written down."""
    return event.absent is None and not (event.observations or event.unread)


def body_of(polls: Iterable[MovesObserved]) -> str:
    """The row of these polls: when each was, and whether it had progress to show."""
    rows = [(poll.at_ms, int(poll.has_progress)) for poll in polls]
    columns = {"at_ms": [at_ms for at_ms, _ in rows], "has_progress": [flag for _, flag in rows]}
    return json.dumps(columns, separators=(",", ":"))


def polls_of(body: str) -> Iterator[MovesObserved]:
    """The polls of a row. Raises ValueError."""
    try:
        fields = json.loads(body)
        for at_ms, has_progress in zip(fields["at_ms"], fields["has_progress"], strict=True):
            yield MovesObserved(int(at_ms), (), has_progress=bool(has_progress))
    except (LookupError, TypeError, ArithmeticError, RecursionError) as error:
        raise ValueError(f"{KIND} cannot be read: {error}") from error
