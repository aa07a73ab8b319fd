"""One thing that is wrong with a cluster, and what to do about it, also as commands that can be pasted."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

NAMED = 10
"""So many of a kind are named; the rest is counted."""

Words = tuple[str, ...]
"""A command as its words, without the options that say which cluster is meant."""


@dataclass(frozen=True, slots=True)
class Issue:
    """One thing that is wrong: its kind, of what, what was seen, what to do, and the commands that do it."""

    kind: str
    subject: str
    seen: str
    remedy: str
    commands: tuple[Words, ...] = ()

    def __str__(self) -> str:
        return f"{self.subject}: {self.seen}. {self.remedy}"


def of_many(
    kind: str, names: Iterable[object], seen: str, remedy: str, commands: Sequence[Words] = ()
) -> Iterator[Issue]:
    """One issue of all these partitions, if there are any."""
    found = sorted(map(str, names))
    if found:
        subject = f"{len(found)} partitions" if len(found) > 1 else "1 partition"
        yield Issue(kind, subject, f"{named(found)} {seen}", remedy, tuple(commands))


def named(found: Sequence[object]) -> str:
    """The first of them, and how many more there are."""
    more = f" and {len(found) - NAMED} more" if len(found) > NAMED else ""
    return f"{', '.join(map(str, found[:NAMED]))}{more}"


def plan(*task: str) -> Words:
    """The command that makes a plan for a task, from the cluster as it is."""
    return ("kreassign", "plan", *task, "--out", "plan.json")
