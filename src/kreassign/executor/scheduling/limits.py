"""Limit the moves in flight: by the operator's limits, the load that keeps brokers busy, and free space on disks.

A `PacedMove` is a move as pacing sees it: what it copies, and which ends it loads. `InFlight` counts against the
limits, `Saturation` keeps in flight what keeps every broker busy, no more, and `DiskBudget` promises free
space to each copy once. Pure except for their own counts.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from graphlib import CycleError, TopologicalSorter
from math import inf
from types import MappingProxyType
from typing import ClassVar

from kreassign.model import TopicPartition, TopicPartitionReplica
from kreassign.model.pace import Cap, Caps
from kreassign.model.text import format_amount

# A move as pacing sees it.

LogDirKey = tuple[int, str]
"""A log directory: broker and absolute path."""

Endpoint = tuple[str, int | LogDirKey]
"""End that a copy loads, as `PacedMove.ends` names it: source, destination or log directory, and its id."""

Endpoints = tuple[Endpoint, ...]


@dataclass(frozen=True, slots=True)
class PacedMove:
    """A move that waits or is in flight.

    Each of the `destinations` copies `size_bytes` from the broker `source`, the leader; a move that only reorders has
    none. `log_dirs` are the directories that the copies go to, where known; on a broker that is no destination, a copy
    goes there from another directory. Producers write `write_bytes_per_s` to the partition, which every copy has to
    take in as well. Urgent moves repair: the partition has too few replicas in sync, or a disk of it is failing.
    `left_bytes` is what all copies of a move in flight have still to copy, together; None if unknown.
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
        """Size of all its copies together."""
        return self.size_bytes * len(self.destinations)

    @property
    def ends(self) -> tuple[tuple[str, int | LogDirKey, int, int], ...]:
        """Ends that the move loads: kind, id, number of copies, and their bytes."""
        into = tuple(("destination", broker, 1, self.size_bytes) for broker in self.destinations)
        dirs = tuple(("log_dir", place, 1, self.size_bytes) for place in self.log_dirs)
        out = (("source", self.source, len(self.destinations), self.total_bytes),) if self.destinations else ()
        return (*out, *into, *dirs)

    @property
    def endpoints(self) -> Endpoints:
        """Kinds and ids of `ends`."""
        return tuple((kind, which) for kind, which, _, _ in self.ends)

    @property
    def rearranging(self) -> tuple[int, ...]:
        """Brokers that only copy between two of their own directories."""
        return tuple(broker for broker, _ in self.log_dirs if broker not in self.destinations)


def named_log_dirs(moves: Iterable[Endpoints]) -> dict[int, frozenset[str]]:
    """Named directories of those brokers whose copies all go into named directories."""
    named: dict[int, set[str]] = {}
    anywhere: set[int] = set()
    for ends in moves:
        places = [which for _, which in ends if isinstance(which, tuple)]
        for broker, path in places:
            named.setdefault(broker, set()).add(path)
        into = {which for kind, which in ends if kind == "destination" and not isinstance(which, tuple)}
        anywhere |= into - {broker for broker, _ in places}
    return {broker: frozenset(paths) for broker, paths in named.items() if broker not in anywhere}


# Limits of what is in flight: those set by the operator, and what keeps a broker busy.
#
# With no more than that all copies are as fast as can be, fewer replicas are out of sync at a time, less is lost when a
# run is cancelled, and the whole ends no later.


_NONE = Caps()


@dataclass(slots=True)
class InFlight:
    """Counts of copies and bytes per end; grows with each move that starts."""

    caps: Caps
    _moves: Counter[Endpoint] = field(default_factory=Counter)
    _bytes: Counter[Endpoint] = field(default_factory=Counter)
    _cluster_moves: int = 0
    _cluster_bytes: int = 0

    @classmethod
    def of(cls, caps: Caps, moves: Iterable[PacedMove]) -> InFlight:
        """Count these moves."""
        counts = cls(caps)
        for move in moves:
            counts.add(move)
        return counts

    def add(self, move: PacedMove) -> None:
        """Count a move that starts."""
        self._cluster_moves += 1
        self._cluster_bytes += move.total_bytes
        for kind, which, moves, size_bytes in move.ends:
            self._moves[kind, which] += moves
            self._bytes[kind, which] += size_bytes

    @property
    def is_cluster_full(self) -> bool:
        """True at a limit of the cluster: not even the smallest copy may start."""
        return _is_full(self.caps.cluster, self._cluster_moves, self._cluster_bytes)

    def is_full(self, end: Endpoint) -> bool:
        """True at a limit of this end: not even the smallest copy may start."""
        return _is_full(self.caps.of(end[0]), self._moves[end], self._bytes[end])

    def is_closed_to(self, move: PacedMove) -> bool:
        """True if no move between these ends, however small, can start now."""
        ends = move.ends
        return bool(ends) and (self.is_cluster_full or any(self.is_full((kind, which)) for kind, which, _, _ in ends))

    def refuses(self, move: PacedMove) -> str | None:
        """Describe the limit that the move would exceed; None if it fits.

        If nothing is in flight at an end, one move may start there even if it alone exceeds the limit; otherwise it
        would wait for ever.
        """
        if self.caps == _NONE or not move.ends:
            return None
        broken = self.caps.cluster.refuses(self._cluster_moves + 1, self._cluster_bytes + move.total_bytes)
        if broken is not None and self._cluster_moves:
            return f"the cluster has its {broken} in flight"
        for kind, which, moves, size_bytes in move.ends:
            end = (kind, which)
            broken = self.caps.of(kind).refuses(self._moves[end] + moves, self._bytes[end] + size_bytes)
            if broken is not None and self._moves[end]:
                role = "" if isinstance(which, tuple) else f" as a {kind}"
                return f"{_words(which)}{role} has its {broken} in flight"
        return None


def _is_full(cap: Cap, moves: int, size_bytes: int) -> bool:
    return moves > 0 and cap.refuses(moves + 1, size_bytes) is not None


def _words(which: int | LogDirKey) -> str:
    return f"log directory {which[1]} of broker {which[0]}" if isinstance(which, tuple) else f"broker {which}"


@dataclass(frozen=True, slots=True)
class SaturationThreshold:
    """Load that keeps a broker busy: copies to send, or to receive, and bytes left of them."""

    copies: int
    left_bytes: int


@dataclass(slots=True)
class Saturation:
    """Load in flight at each end of the brokers; grows with each move that starts."""

    depends_on_size: ClassVar = False
    enough: SaturationThreshold
    _copies: Counter[Endpoint] = field(default_factory=Counter)
    _left: Counter[Endpoint] = field(default_factory=Counter)
    _others: dict[Endpoint, Counter[Endpoint]] = field(default_factory=dict)

    @classmethod
    def of(cls, enough: SaturationThreshold, moves: Iterable[PacedMove]) -> Saturation:
        """Count these moves."""
        busy = cls(enough)
        for move in moves:
            busy.promise(move)
        return busy

    def promise(self, move: PacedMove) -> None:
        """Count a move that starts."""
        source: Endpoint = ("source", move.source)
        left = move.total_bytes if move.left_bytes is None else move.left_bytes
        for broker in move.destinations:
            destination: Endpoint = ("destination", broker)
            for end, other in ((source, destination), (destination, source)):
                self._copies[end] += 1
                self._left[end] += left // len(move.destinations)
                self._others.setdefault(end, Counter())[other] += 1

    def refuses(self, move: PacedMove) -> str | None:
        """Describe the broker of the move that has enough to do, or None. Urgent moves never wait for this."""
        if move.is_urgent or not move.destinations:
            return None
        if self.is_busy(("source", move.source)):
            return f"broker {move.source} has enough to send"
        busy = next((broker for broker in move.destinations if self.is_busy(("destination", broker))), None)
        return None if busy is None else f"broker {busy} has enough to receive"

    def is_busy(self, end: Endpoint) -> bool:
        """True if a broker has enough to send, or to receive, to be fully used at fair shares.

        A copy gets at least its share of its other end. Where the shares add up to less than one, the broker takes on
        more copies, up to twice as many.
        """
        copies = self._copies[end]
        if copies < self.enough.copies or self._left[end] < self.enough.left_bytes:
            return False
        shares = sum(count / self._copies[other] for other, count in self._others[end].items())
        return shares >= 1 or copies >= 2 * self.enough.copies


# Free space for one more copy, per broker and per log directory.
#
# Usable bytes are what a broker reports as free: the space of old copies is not free until they are deleted, so it
# is never relied on. Bytes that copies in flight still bring are subtracted beforehand, in the directory where they
# are. Where the plan names no directory, Kafka takes that with the fewest replicas (`LogManager.nextLogDirs`), in any
# order of the copies. Which of equals it takes shows at the next inspection: until then the largest copies that a
# directory may get have to fit there together.


@dataclass(slots=True)
class DiskBudget:
    """Bytes that may still be promised at each destination; shrinks with each move that starts.

    An unknown end refuses nothing. `rate_bytes_per_s` is the rate of incoming copies, None for no limit: the
    partition is still written meanwhile. `replica_counts` are of log directories, `places` the
    directories of copies that have arrived in one, and `unplaced` the bytes of each other copy, by broker. Directories
    on one disk are `shared`, each with all of them: what one takes is taken from all. These replicas are `leaving`
    directories with moves in flight, which have fewer once these have ended.

    Each copy is `promised` its room once: a move that is sent again has it already, and is not refused it.
    """

    depends_on_size: ClassVar = True
    free: dict[Endpoint, float]
    rate_bytes_per_s: int | None = None
    replica_counts: dict[LogDirKey, int | None] = field(default_factory=dict)
    places: Mapping[TopicPartitionReplica, str] = field(default_factory=dict)
    unplaced: dict[int, tuple[float, ...]] = field(default_factory=dict)
    shared: Mapping[LogDirKey, tuple[LogDirKey, ...]] = field(default_factory=dict)
    leaving: dict[LogDirKey, set[TopicPartition]] = field(default_factory=dict)
    promised: set[tuple[TopicPartition, Endpoint]] = field(default_factory=set)

    @classmethod
    def after(
        cls,
        usable_bytes: Mapping[Endpoint, float],
        in_flight: Iterable[PacedMove],
        rate_bytes_per_s: int | None = None,
        *,
        replica_counts: Mapping[LogDirKey, int | None] = MappingProxyType({}),
        places: Mapping[TopicPartitionReplica, str] = MappingProxyType({}),
        shared: Mapping[LogDirKey, tuple[LogDirKey, ...]] = MappingProxyType({}),
        leaving: Mapping[LogDirKey, set[TopicPartition]] = MappingProxyType({}),
    ) -> DiskBudget:
        """Space left of `usable_bytes` once `in_flight` has arrived: the size of a move is what it still brings."""
        budget = cls(dict(usable_bytes), rate_bytes_per_s, dict(replica_counts), places, {}, shared, dict(leaving))
        for move in in_flight:
            budget.promise(move)
        return budget

    def copy(self) -> DiskBudget:
        """Independent copy of the budget."""
        return DiskBudget(
            dict(self.free),
            self.rate_bytes_per_s,
            dict(self.replica_counts),
            self.places,
            dict(self.unplaced),
            self.shared,
            {place: set(names) for place, names in self.leaving.items()},
            set(self.promised),
        )

    def promise(self, move: PacedMove) -> None:
        """Subtract what the copies of a move will need, unless they have that already."""
        needed = needed_bytes(move, self.rate_bytes_per_s)
        for end in self._unpromised(move):
            self.promised.add((move.topic_partition, end))
            if isinstance(end[1], int) and self._is_open(end):
                self.unplaced[end[1]] = (*self.unplaced.get(end[1], ()), needed)
                continue
            for each in self._on_disk(end):
                if each in self.free:
                    self.free[each] -= needed
            if isinstance(end[1], tuple) and (count := self.replica_counts.get(end[1])) is not None:
                has_arrived = self.places.get(TopicPartitionReplica(end[1][0], *move.topic_partition)) == end[1][1]
                self.replica_counts[end[1]] = count + (not has_arrived)

    def note_leaving(self, name: TopicPartition, brokers: Iterable[int]) -> None:
        """A move was sent that leaves these brokers: it may have ended before the next one arrives."""
        for broker in brokers:
            if path := self.places.get(TopicPartitionReplica(broker, *name)):
                self.leaving.setdefault((broker, path), set()).add(name)

    def refusing(self, move: PacedMove) -> Endpoint | None:
        """The first end without enough free space for the move."""
        needed = needed_bytes(move, self.rate_bytes_per_s)
        return next((end for end, left in self._left(move, needed) if needed > left), None)

    def refuses(self, move: PacedMove) -> str | None:
        """Describe the end that lacks free space for the move, or None."""
        needed = needed_bytes(move, self.rate_bytes_per_s)
        end, left = next(((end, left) for end, left in self._left(move, needed) if needed > left), (None, 0.0))
        if end is None:
            return None
        has, needs = (format_amount(amount, "B") for amount in (max(0.0, left), needed))
        if has == needs:  # by so little that three digits do not show it
            has, needs = (f"{max(0, int(amount)):,} B" for amount in (left, needed))
        much = f"needs {needs}" if needed < NEVER_BYTES else "never catches up with what is written"
        return f"{_words(end[1])} has {has} left for copies, and this one {much}"

    def _unpromised(self, move: PacedMove) -> Iterator[Endpoint]:
        """Ends of the copies that were promised no room yet, each once: a copy may have arrived where it is to be."""
        ends = dict.fromkeys(self._ends(move))
        return (end for end in ends if (move.topic_partition, end) not in self.promised)

    def _ends(self, move: PacedMove) -> Iterator[Endpoint]:
        """Ends of the copies: log directories, where they are known, else brokers."""
        named = {broker for broker, _ in move.log_dirs}
        for broker in move.destinations:
            if path := self.places.get(TopicPartitionReplica(broker, *move.topic_partition)):
                yield ("log_dir", (broker, path))
            elif broker not in named:
                only = self._places_of(broker)
                yield ("log_dir", only[0]) if len(only) == 1 else ("destination", broker)
        for place in move.log_dirs:
            yield ("log_dir", place)

    def _on_disk(self, end: Endpoint) -> tuple[Endpoint, ...]:
        """The end with all ends on its disk."""
        if isinstance(end[1], int):
            return (end,)
        return tuple(("log_dir", place) for place in self.shared.get(end[1], (end[1],)))

    def _places_of(self, broker: int) -> list[LogDirKey]:
        return [place for place in self.replica_counts if place[0] == broker]

    def _is_open(self, end: Endpoint) -> bool:
        """True if Kafka chooses one of several known directories."""
        return isinstance(end[1], int) and bool(self._places_of(end[1]))

    def _left(self, move: PacedMove, needed: float) -> Iterator[tuple[Endpoint, float]]:
        """Per end that the copies of a move may get, bytes that are left for one of them; the least first."""
        for end in self._unpromised(move):
            broker = end[1] if isinstance(end[1], int) else end[1][0]
            others = self.unplaced.get(broker, ())
            if not self._is_open(end):
                yield end, self.free.get(end, inf) - sum(self._largest(end, others))
                continue
            sizes = (*others, needed)
            ends: list[Endpoint] = [("log_dir", place) for place in self._places_of(broker)]
            rows = [
                (each, self.free.get(each, inf) + needed - sum(largest))
                for each in ends
                if (largest := self._largest(each, sizes))
            ]
            yield from sorted(rows, key=lambda row: row[1])

    def _largest(self, end: Endpoint, sizes: tuple[float, ...]) -> tuple[float, ...]:
        """The most that a directory may get of copies of these sizes, whichever of equals Kafka takes."""
        place = end[1]
        if isinstance(place, int) or place not in self.replica_counts:
            return ()
        counts = {each: n for each in self._places_of(place[0]) if (n := self.replica_counts[each]) is not None}
        if place not in counts or place in self.shared:
            return sizes
        counts[place] -= len(self.leaving.get(place, ()))
        taken = 0
        for _ in sizes:
            fewest = min(counts.values())
            chosen = place if counts[place] == fewest else next(each for each in counts if counts[each] == fewest)
            counts[chosen] += 1
            taken += chosen == place
        return tuple(sorted(sizes, reverse=True)[:taken])


NEVER_BYTES = 2.0**63
"""Size of a copy that never catches up: no disk holds it, and unlike infinity it can be subtracted from itself."""


def needed_bytes(move: PacedMove, rate_bytes_per_s: float | None) -> float:
    """Size of one copy when it has caught up: s + w·s/(r-w); `NEVER_BYTES` where it never does."""
    if rate_bytes_per_s is None or move.size_bytes == 0:
        return float(move.size_bytes)
    gain = rate_bytes_per_s - move.write_bytes_per_s
    return min(move.size_bytes * rate_bytes_per_s / gain, NEVER_BYTES) if gain > 0 else NEVER_BYTES


def find_cycle(waits: Mapping[int, Iterable[int]]) -> tuple[int, ...]:
    """A cycle of full brokers waiting for each other's disk space, from the lowest id on; empty if there is none.

    `waits` has the destinations of the replicas that leave each full broker.
    """
    try:
        TopologicalSorter({broker: sorted(set(to) & waits.keys()) for broker, to in sorted(waits.items())}).prepare()
    except CycleError as error:
        found = error.args[1][:0:-1]  # the first is repeated at the end, and each waits for the one before
        lowest = found.index(min(found))
        return (*found[lowest:], *found[:lowest])
    return ()
