"""A move as pacing sees it: what it copies, and which ends it loads. Values."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from kreassign.model import TopicPartition

LogDirKey = tuple[int, str]
"""A log directory: broker and absolute path."""

Endpoint = tuple[str, int | LogDirKey]
"""What a copy loads, as `Candidate.ends` names it: a source, a destination or a log directory, and which one."""

Endpoints = tuple[Endpoint, ...]


@dataclass(frozen=True, slots=True)
class Candidate:
    """A move that waits or is in flight.

    Each of the `destinations` copies `size_bytes` from the broker `source`, the leader; a move that only reorders has
    none. `log_dirs` are the directories that the copies go to, where they are known; on a broker that is no
    destination, a copy goes there from another directory. A partition is written at
    `write_bytes_per_s`, which every copy has to take in as well. Urgent is what repairs: the partition has too few
    replicas in sync, or a disk of it is failing. `left_bytes` is what all copies of a move in flight have still to
    copy, together; None where that is not known.
    """

    topic_partition: TopicPartition
    size_bytes: int
    source: int
    destinations: tuple[int, ...]
    log_dirs: tuple[LogDirKey, ...] = ()
    write_bytes_per_s: float = 0.0
    is_urgent: bool = False
    left_bytes: int | None = None

    @property
    def total_bytes(self) -> int:
        """What all its copies take together."""
        return self.size_bytes * len(self.destinations)

    @property
    def ends(self) -> tuple[tuple[str, int | LogDirKey, int, int], ...]:
        """Every kind of end that the move loads: its kind, which one, how many copies, and their bytes."""
        into = tuple(("destination", broker, 1, self.size_bytes) for broker in self.destinations)
        dirs = tuple(("log_dir", place, 1, self.size_bytes) for place in self.log_dirs)
        out = (("source", self.source, len(self.destinations), self.total_bytes),) if self.destinations else ()
        return (*out, *into, *dirs)

    @property
    def endpoints(self) -> Endpoints:
        """The same without the figures."""
        return tuple((kind, which) for kind, which, _, _ in self.ends)

    @property
    def rearranging(self) -> tuple[int, ...]:
        """Brokers that only copy between two of their own directories."""
        return tuple(broker for broker, _ in self.log_dirs if broker not in self.destinations)


def named_log_dirs(moves: Iterable[Endpoints]) -> dict[int, frozenset[str]]:
    """Of the brokers all of whose copies go into directories that are named: those directories."""
    named: dict[int, set[str]] = {}
    anywhere: set[int] = set()
    for ends in moves:
        places = [which for _, which in ends if isinstance(which, tuple)]
        for broker, path in places:
            named.setdefault(broker, set()).add(path)
        into = {which for kind, which in ends if kind == "destination" and not isinstance(which, tuple)}
        anywhere |= into - {broker for broker, _ in places}
    return {broker: frozenset(paths) for broker, paths in named.items() if broker not in anywhere}


class EndpointKind(StrEnum):
    """Where what is in flight can be limited; the names are those of the fields of `Caps`."""

    SOURCE = "source"
    DESTINATION = "destination"
    LOG_DIR = "log_dir"
    CLUSTER = "cluster"
