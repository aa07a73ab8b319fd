"""How a use case says what it goes on without: in sentences, to whoever called it."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import islice
from typing import Any

from kreassign.model.authorization import error_text

Warn = Callable[[str], None]
"""Takes one warning; what follows its first line are details."""

SHOWN_FAILURES = 3


class KreassignWarning(UserWarning):
    """A use case went on without something that it could do without."""


def warn_program(text: str) -> None:
    """Hand a warning to Python's `warnings`: what programs get that name no `Warn` of their own."""
    warnings.warn(text, KreassignWarning, stacklevel=2)


def warn_without_topic_ids(warn: Warn, what: str, topics: Iterable[str]) -> None:
    """Warn that these topics cannot be told from others of the same name, if there are any: `what` has no ids."""
    names = sorted(set(topics))
    if names:
        shown = ", ".join(names[:SHOWN_FAILURES]) + (", …" if len(names) > SHOWN_FAILURES else "")
        warn(
            f"{what} was made by an older version and does not tell the ids of its topics ({shown}): a topic that was "
            "deleted and recreated since then is not noticed"
        )


def warn_of_failures(warn: Warn, what: str, failed: Mapping[Any, Exception]) -> None:
    """Warn of what could not be read and why, if there is any: a few by name, the others counted, each reason once."""
    if not failed:
        return
    by_reason: dict[str, list[Any]] = {}
    for key, error in failed.items():
        by_reason.setdefault(error_text(error), []).append(key)
    shown = [f"  {_some(keys)}: {reason}" for reason, keys in islice(by_reason.items(), SHOWN_FAILURES)]
    left = sum(map(len, islice(by_reason.values(), SHOWN_FAILURES, None)))
    warn("\n".join((f"{len(failed)} without {what}:", *shown, *([f"  and {left} more"] if left else []))))


def _some(keys: Sequence[Any]) -> str:
    more = f" and {len(keys) - SHOWN_FAILURES} more" if len(keys) > SHOWN_FAILURES else ""
    return ", ".join(map(str, keys[:SHOWN_FAILURES])) + more
