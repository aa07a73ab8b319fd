"""Moves that wait, by the ends that they load: what a full end holds up is not even looked at. Pure but for itself.

A run of a hundred thousand moves decides anew at each look, and mostly a handful can start. So those that wait are
kept by their ends, and only those all of whose ends have room are handed on; the rules themselves are in `choice.py`.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import NamedTuple

from kreassign.executor.scheduling.caps import InFlight
from kreassign.executor.scheduling.order import Order, Rank, ranking
from kreassign.executor.scheduling.saturation import Saturation
from kreassign.executor.scheduling.values import Candidate, Endpoint, Endpoints
from kreassign.model import TopicPartition

_WITHIN: Mapping[Order, Rank] = MappingProxyType({order: ranking(order, {}) for order in Order})
"""The order of moves between the same ends, which does not depend on what is left to do."""


class _Route(NamedTuple):
    """Every move between these ends, the first to start first."""

    ends: Endpoints
    moves: list[Candidate]


class _Closed(NamedTuple):
    """Ends that take nothing on now."""

    counts: InFlight
    busy: Saturation | None

    def has(self, end: Endpoint) -> bool:
        """Whether this end is one of them."""
        return self.counts.is_full(end) or (self.busy is not None and self.busy.is_busy(end))


@dataclass(slots=True)
class Queue:
    """What waits. `left` is how many bytes that is per end, `write_bytes_per_s` what is written to its copies."""

    left: Counter[Endpoint] = field(default_factory=Counter)
    write_bytes_per_s: dict[Endpoint, float] = field(default_factory=dict)
    _moves: dict[TopicPartition, Candidate] = field(default_factory=dict)
    _urgent: Counter[Endpoints] = field(default_factory=Counter)
    _order: Order = Order.MAKESPAN
    _routes: dict[Endpoints, _Route] = field(default_factory=dict)
    _by_end: dict[Endpoint, dict[Endpoints, _Route]] = field(default_factory=dict)

    @property
    def moves(self) -> tuple[Candidate, ...]:
        """All that waits."""
        return tuple(self._moves.values())

    @property
    def destinations(self) -> set[int]:
        """Brokers that get a copy, or another place for the one they have."""
        ends = (end for end, routes in self._by_end.items() if routes and end[0] != "source")
        return {which[0] if isinstance(which, tuple) else which for _, which in ends}

    def __len__(self) -> int:
        return len(self._moves)

    def __iter__(self) -> Iterator[TopicPartition]:
        return iter(self._moves)

    def __contains__(self, name: TopicPartition) -> bool:
        return name in self._moves

    def add(self, move: Candidate) -> None:
        """Let a move wait; one that waits already does so between these ends from now on."""
        self.remove(move.topic_partition)
        self._moves[move.topic_partition] = move
        ends = tuple((kind, which) for kind, which, _, _ in move.ends)
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
        """Forget a move, if it waits."""
        move = self._moves.pop(name, None)
        if move is None:
            return
        ends = tuple((kind, which) for kind, which, _, _ in move.ends)
        route = self._routes[ends]
        del route.moves[bisect_left(route.moves, self._rank(move), key=self._rank)]
        if move.is_urgent:
            self._urgent -= Counter([ends])
        if not route.moves:
            self._close(route)
        self._weigh(move, -1)

    def open_routes(
        self, order: Order, counts: InFlight, busy: Saturation | None = None
    ) -> tuple[Sequence[Candidate], ...]:
        """Lanes none of whose ends is full or busy, and those with something urgent; others would be refused anyway."""
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
        """Within a lane."""
        return _WITHIN[self._order]

    def _possible(self, routes: Mapping[Endpoints, _Route], closed: _Closed) -> Iterator[_Route]:
        """By way of the sources or of the destinations, whichever of them that are not full have fewer lanes.

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

    def _weigh(self, move: Candidate, sign: int) -> None:
        writes = self.write_bytes_per_s
        for kind, which, copies, size_bytes in move.ends:
            self.left[kind, which] += sign * size_bytes
            writes[kind, which] = writes.get((kind, which), 0.0) + sign * copies * move.write_bytes_per_s

    def _close(self, route: _Route) -> None:
        del self._routes[route.ends]
        for end in route.ends:
            del self._by_end[end][route.ends]
