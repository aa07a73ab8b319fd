"""What pacing knows of a move, and the limits that it keeps to. Values."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
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
    def rearranging(self) -> tuple[int, ...]:
        """Brokers that only copy between two of their own directories."""
        return tuple(broker for broker, _ in self.log_dirs if broker not in self.destinations)


class EndpointKind(StrEnum):
    """Where what is in flight can be limited; the names are those of the fields of `Caps`."""

    SOURCE = "source"
    DESTINATION = "destination"
    LOG_DIR = "log_dir"
    CLUSTER = "cluster"


class Measure(StrEnum):
    """What is limited there; the names are those of the fields of `Cap`."""

    MOVES = "moves"
    BYTES = "size_bytes"


@dataclass(frozen=True, slots=True)
class Limit:
    """One limit of what is in flight; None is no limit."""

    end: EndpointKind
    measure: Measure
    at_most: int | None


@dataclass(frozen=True, slots=True)
class Cap:
    """At most so many moves and so many bytes in flight at one end; None is no limit."""

    moves: int | None = None
    size_bytes: int | None = None

    def refuses(self, moves: int, size_bytes: int) -> str | None:
        """Which limit these would break, in words, or None."""
        if self.moves is not None and moves > self.moves:
            return f"{self.moves} moves"
        if self.size_bytes is not None and size_bytes > self.size_bytes:
            return f"{self.size_bytes} bytes"
        return None


@dataclass(frozen=True, slots=True)
class Caps:
    """Limits of what is in flight: per source broker, destination broker, log directory, and in the whole cluster.

    A move with several copies counts as one in the cluster and at each destination, and as one per copy at its source.
    """

    source: Cap = Cap()
    destination: Cap = Cap()
    log_dir: Cap = Cap()
    cluster: Cap = Cap()

    def of(self, kind: str) -> Cap:
        """The limit of a kind of end, as `Candidate.ends` names it."""
        return {"source": self.source, "destination": self.destination, "log_dir": self.log_dir}[kind]

    def limited(self, limits: Iterable[Limit]) -> Caps:
        """The same with these limits in place of those that it had there."""
        caps = self
        for limit in limits:
            cap: Cap = getattr(caps, limit.end)
            caps = replace(caps, **{limit.end: replace(cap, **{limit.measure: limit.at_most})})
        return caps


@dataclass(frozen=True, slots=True)
class Waiting:
    """A move that does not start now, and why: a sentence for the operator."""

    topic_partition: TopicPartition
    reason: str


@dataclass(frozen=True, slots=True)
class Choice:
    """What starts now, in this order, and what waits for what."""

    starting: tuple[TopicPartition, ...]
    waiting: tuple[Waiting, ...] = ()
