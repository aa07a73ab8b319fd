"""Which brokers and which topics a user means."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from dataclasses import dataclass

import numpy as np

from kreassign.errors import InputError
from kreassign.planner.arrays import BoolArray
from kreassign.planner.problem.cluster import Brokers, Partitions

INTERNAL = "__"
"""Kafka's own topics begin so."""


def chosen_brokers(brokers: Brokers, ids: Iterable[int]) -> BoolArray:
    """Which brokers are named, shape (N,). Raises InputError for one that is not there, or if none is named."""
    wanted, known = set(ids), brokers.ids.tolist()
    if not wanted:
        raise InputError("specify at least one broker")
    if unknown := sorted(wanted - set(known)):
        raise InputError(
            f"there is no broker {', '.join(map(str, unknown))} in this cluster; it has {', '.join(map(str, known))}"
        )
    return np.isin(brokers.ids, sorted(wanted))


@dataclass(frozen=True, slots=True)
class TopicChoice:
    """All topics, or those named or matching a pattern; without those excluded. Patterns match the whole name."""

    names: tuple[str, ...] = ()
    patterns: tuple[str, ...] = ()
    excluded: tuple[str, ...] = ()

    def of(self, partitions: Partitions) -> BoolArray:
        """Which partitions are chosen, shape (P,).

        Raises InputError for an unknown topic or a pattern that matches none.
        """
        known = partitions.topic_names
        wanted = set(known) if not (self.names or self.patterns) else set()
        if unknown := sorted(set(self.names) - set(known)):
            raise InputError(f"there is no topic {unknown[0]!r} in this cluster{_similar(unknown[0], known)}")
        wanted |= set(self.names)
        for pattern in self.patterns:
            wanted |= matching(pattern, known)
        for pattern in self.excluded:
            wanted -= _excluded(pattern, known)
        return np.array([name in wanted for name in known], bool)[partitions.topics]


def _excluded(pattern: str, known: Collection[str]) -> set[str]:
    """What a pattern excludes. Of Kafka's own topics a cluster may have none yet; any other has to find some."""
    if pattern.startswith(INTERNAL):
        return _found(pattern, known)
    return matching(pattern, known)


def matching(pattern: str, names: Iterable[str]) -> set[str]:
    """The names that a pattern matches as a whole. Raises InputError when it is no pattern, or matches none."""
    found = _found(pattern, names)
    if not found:
        raise InputError(f"no topic matches {pattern!r}; a pattern must match the whole name, as in 'orders.*'")
    return found


def _found(pattern: str, names: Iterable[str]) -> set[str]:
    try:
        compiled = re.compile(pattern)
    except re.error as error:
        raise InputError(f"{pattern!r} is not a regular expression: {error}") from error
    return {name for name in names if compiled.fullmatch(name)}


def _similar(name: str, known: Iterable[str]) -> str:
    near = [one for one in known if name.lower() in one.lower() or one.lower() in name.lower()]
    return f"; did you mean {', '.join(map(repr, near[:3]))}?" if near else ""
