"""Queue the waiting moves in order, and choose which of them start now. Pure except for the queue itself.

A run of a hundred thousand moves decides again at each observation, and mostly a handful can start. So waiting moves
are kept in route queues: the moves between the same ends, whose order does not depend on what else waits. When one of
its ends is full, a whole route queue is skipped. A decision therefore costs what may start and the number
of route queues, not all waiting moves.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from heapq import heapify, heappop, heappush
from types import MappingProxyType
from typing import ClassVar, NamedTuple, Protocol

from kreassign.executor.scheduling.limits import Endpoint, Endpoints, InFlight, PacedMove, Saturation
from kreassign.model import TopicPartition
from kreassign.model.pace import Order
from kreassign.model.plan import partition_order

Ranked = tuple[bool, int, int, tuple[bytes, int]]
"""Sort key of a move: smaller starts sooner; unique per move."""

Rank = Callable[[PacedMove], Ranked]


def ranking(order: Order, left: Mapping[Endpoint, int]) -> Rank:
    """Sort key of moves, given the bytes left at each end; ties are sorted by topic and partition.

    `makespan` is the rule of the longest processing time: the broker that has most left to send or to receive ends
    last, so none of its moves may be put off, and its longest copy least of all. The order of moves between the same
    ends does not depend on what is left to do.
    """
    keys = _KEYS[order]

    def rank(move: PacedMove) -> Ranked:
        return (not move.is_urgent, *keys(move, left), partition_order(move.topic_partition))

    return rank


def add_left(left: Counter[Endpoint], moves: Iterable[PacedMove]) -> Counter[Endpoint]:
    """Add the bytes that these moves have to copy."""
    for move in moves:
        for kind, which, _, size_bytes in move.ends:
            left[kind, which] += size_bytes
    return left


def _makespan(move: PacedMove, left: Mapping[Endpoint, int]) -> tuple[int, int]:
    return -max((left.get(end, 0) for end in _brokers(move)), default=0), -move.size_bytes


def _relief(move: PacedMove, left: Mapping[Endpoint, int]) -> tuple[int, int]:
    # A move without copies relieves no broker. Its source is not among its ends, so it must not count in a route queue.
    return -left.get(("source", move.source), 0) if move.destinations else 0, -move.size_bytes


_KEYS: Mapping[Order, Callable[[PacedMove, Mapping[Endpoint, int]], tuple[int, int]]] = MappingProxyType(
    {
        Order.MAKESPAN: _makespan,
        Order.RELIEF: _relief,
        Order.SMALL_FIRST: lambda move, _: (move.total_bytes, 0),
        Order.LARGE_FIRST: lambda move, _: (-move.total_bytes, 0),
        Order.NAME: lambda *_: (0, 0),
    }
)


def _brokers(move: PacedMove) -> tuple[Endpoint, ...]:
    """Sending end and receiving ends of its copies."""
    if not move.destinations:
        return ()
    return (("source", move.source), *(("destination", broker) for broker in move.destinations))


RouteQueue = Sequence[PacedMove]
"""Moves in the order in which they start, whatever else waits; at least one."""


class PriorityMerge:
    """Merges route queues by the rank of their moves. `close` after a move skips the rest of its route queue."""

    def __init__(self, routes: Iterable[RouteQueue], rank: Rank) -> None:
        self._rank = rank
        self._next: list[tuple[Ranked, int, int, RouteQueue]] = [
            (rank(route[0]), number, 0, route) for number, route in enumerate(routes)
        ]
        heapify(self._next)
        self._is_closed = False

    def __iter__(self) -> Iterator[PacedMove]:
        while self._next:
            _, number, index, route = heappop(self._next)
            self._is_closed = False
            yield route[index]
            if not self._is_closed and index + 1 < len(route):
                heappush(self._next, (self._rank(route[index + 1]), number, index + 1, route))

    def close(self) -> None:
        """Skip the rest of the route queue that the latest move came from."""
        self._is_closed = True


_WITHIN: Mapping[Order, Rank] = MappingProxyType({order: ranking(order, {}) for order in Order})
"""Order of moves between the same ends, which does not depend on what is left to do."""


class _Route(NamedTuple):
    """All moves between these ends, the first to start first."""

    ends: Endpoints
    moves: list[PacedMove]


class _Closed(NamedTuple):
    """Ends that take no further copy now."""

    counts: InFlight
    busy: Saturation | None

    def has(self, end: Endpoint) -> bool:
        """True if this end is full or busy."""
        return self.counts.is_full(end) or (self.busy is not None and self.busy.is_busy(end))


@dataclass(slots=True)
class Queue:
    """Waiting moves. `left` is their bytes per end, `write_bytes_per_s` the write rate of their copies per end."""

    left: Counter[Endpoint] = field(default_factory=Counter)
    write_bytes_per_s: dict[Endpoint, float] = field(default_factory=dict)
    _moves: dict[TopicPartition, PacedMove] = field(default_factory=dict)
    _urgent: Counter[Endpoints] = field(default_factory=Counter)
    _order: Order = Order.MAKESPAN
    _routes: dict[Endpoints, _Route] = field(default_factory=dict)
    _by_end: dict[Endpoint, dict[Endpoints, _Route]] = field(default_factory=dict)

    @property
    def moves(self) -> tuple[PacedMove, ...]:
        """All waiting moves."""
        return tuple(self._moves.values())

    @property
    def destinations(self) -> set[int]:
        """Brokers that get a copy, or another directory for an existing copy."""
        ends = (end for end, routes in self._by_end.items() if routes and end[0] != "source")
        return {which[0] if isinstance(which, tuple) else which for _, which in ends}

    @property
    def endpoints(self) -> tuple[Endpoints, ...]:
        """Ends of waiting moves, each combination once."""
        return tuple(self._routes)

    def __len__(self) -> int:
        return len(self._moves)

    def __iter__(self) -> Iterator[TopicPartition]:
        return iter(self._moves)

    def __contains__(self, name: TopicPartition) -> bool:
        return name in self._moves

    def add(self, move: PacedMove) -> None:
        """Add a waiting move; one that waits already is replaced."""
        self.remove(move.topic_partition)
        self._moves[move.topic_partition] = move
        ends = move.endpoints
        route = self._routes.get(ends)
        if route is None:
            route = self._routes[ends] = _Route(ends, [])
            for end in ends:
                self._by_end.setdefault(end, {})[ends] = route
        insort(route.moves, move, key=self._rank)
        if move.is_urgent:
            self._urgent[ends] += 1
        self._weigh(move, 1)

    def remove(self, name: TopicPartition) -> None:
        """Remove a move if it waits."""
        move = self._moves.pop(name, None)
        if move is None:
            return
        ends = move.endpoints
        route = self._routes[ends]
        del route.moves[bisect_left(route.moves, self._rank(move), key=self._rank)]
        if move.is_urgent:
            self._urgent -= Counter([ends])
        if not route.moves:
            self._close(route)
        self._weigh(move, -1)

    def open_routes(
        self, order: Order, counts: InFlight, busy: Saturation | None = None
    ) -> tuple[Sequence[PacedMove], ...]:
        """Route queues with no full or busy end, and those with an urgent move; others would be refused anyway."""
        if order is not self._order:
            self._order = order
            for route in self._routes.values():
                route.moves.sort(key=self._rank)
        if counts.is_cluster_full:
            routes: Mapping[Endpoints, _Route] = {(): self._routes[()]} if () in self._routes else {}
        else:
            routes = self._routes
        urgent = {ends: self._routes[ends] for ends in self._urgent}
        found = {route.ends: route for route in self._possible(routes, _Closed(counts, busy))}
        return tuple(route.moves for route in (urgent | found).values())

    @property
    def _rank(self) -> Rank:
        """Sort key within a route queue."""
        return _WITHIN[self._order]

    def _possible(self, routes: Mapping[Endpoints, _Route], closed: _Closed) -> Iterator[_Route]:
        """Search from the sources or the destinations, whichever have fewer route queues at open ends.

        Copies within a broker have neither, and are found by their directories.
        """
        sides = [
            [mine for end, mine in self._by_end.items() if end[0] == kind and not closed.has(end)]
            for kind in ("source", "destination")
        ]
        fewest = min(sides, key=lambda side: sum(map(len, side)))
        local = (mine for end, mine in self._by_end.items() if end[0] == "log_dir")
        found = {ends: route for mine in (*fewest, *local) for ends, route in mine.items() if ends in routes}
        if () in routes:
            found[()] = routes[()]
        return (route for route in found.values() if not any(map(closed.has, route.ends)))

    def _weigh(self, move: PacedMove, sign: int) -> None:
        writes = self.write_bytes_per_s
        for kind, which, copies, size_bytes in move.ends:
            self.left[kind, which] += sign * size_bytes
            writes[kind, which] = writes.get((kind, which), 0.0) + sign * copies * move.write_bytes_per_s

    def _close(self, route: _Route) -> None:
        del self._routes[route.ends]
        for end in route.ends:
            del self._by_end[end][route.ends]


# Which of the waiting moves start now.


@dataclass(frozen=True, slots=True)
class WaitingMove:
    """A move that does not start now, and the reason as a sentence for the operator."""

    topic_partition: TopicPartition
    reason: str


@dataclass(frozen=True, slots=True)
class NextMoves:
    """Moves that start now, in this order, and moves that wait, with reasons."""

    starting: tuple[TopicPartition, ...]
    waiting: tuple[WaitingMove, ...] = ()


class Supply(Protocol):
    """Resource that moves use up: free space on disks, the time until a window closes."""

    depends_on_size: ClassVar[bool]
    """True if it may refuse a move and still accept another one between the same ends."""

    def refuses(self, move: PacedMove) -> str | None:
        """Describe what is lacking for the move, or None."""
        ...

    def promise(self, move: PacedMove) -> None:
        """Subtract what the move needs."""
        ...


def choose_from(merged: PriorityMerge, counts: InFlight, supplies: Iterable[Supply]) -> NextMoves:
    """Go through merged route queues and start each move that the limits and the supplies allow, which it uses up.

    A move that has to wait blocks no other: a later one between other brokers starts in its place. Moves held back by a
    closed end are not reported.
    """
    supplies = tuple(supplies)
    starting, held = [], []
    for move in merged:
        reason, is_final = counts.refuses(move), False
        for supply in supplies if reason is None else ():
            if (reason := supply.refuses(move)) is not None:
                is_final = not supply.depends_on_size
                break
        if reason is None:
            counts.add(move)
            for supply in supplies:
                supply.promise(move)
            starting.append(move.topic_partition)
            continue
        held.append(WaitingMove(move.topic_partition, reason))
        if is_final or counts.is_closed_to(move):
            merged.close()
    return NextMoves(tuple(starting), tuple(held))
