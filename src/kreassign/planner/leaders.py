"""Even numbers of preferred leaders, by reordering replica lists: costs elections, copies nothing."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet

from kreassign.model import TopicPartition

# From the broker to the partition that it can hand over and the broker that then leads it.
_Handovers = dict[int, list[tuple[TopicPartition, int]]]


def spread_leaders(
    replicas: Mapping[TopicPartition, tuple[int, ...]],
    brokers: Sequence[int],
    pinned: AbstractSet[TopicPartition] = frozenset(),
) -> dict[TopicPartition, tuple[int, ...]]:
    """The same replicas in an order that makes the numbers of preferred leaders as even as they can be.

    Leadership is handed along chains of partitions, from a broker with more to one with at least two less, until
    no such chain is left. Partitions in `pinned` keep their order and count all the same.
    """
    lists = dict(replicas)
    counts = Counter(dict.fromkeys(brokers, 0))
    counts.update(order[0] for order in lists.values())
    while chain := _find_chain(lists, counts, pinned):
        for partition, leader in chain:
            counts[lists[partition][0]] -= 1
            counts[leader] += 1
            lists[partition] = _led_by(lists[partition], leader)
    return lists


def _led_by(order: tuple[int, ...], leader: int) -> tuple[int, ...]:
    """The two change places, so that the other followers stay where they are."""
    swapped = {order[0]: leader, leader: order[0]}
    return tuple(swapped.get(broker, broker) for broker in order)


def _find_chain(
    lists: Mapping[TopicPartition, tuple[int, ...]], counts: Mapping[int, int], pinned: AbstractSet[TopicPartition]
) -> list[tuple[TopicPartition, int]]:
    handovers: _Handovers = {broker: [] for broker in counts}
    for partition in sorted(lists.keys() - pinned):
        for follower in lists[partition][1:]:
            handovers[lists[partition][0]].append((partition, follower))
    for giver in sorted(counts, key=lambda broker: (-counts[broker], broker)):
        chain = _shortest_chain(handovers, giver, counts)
        if chain:
            return chain
    return []


def _shortest_chain(handovers: _Handovers, giver: int, counts: Mapping[int, int]) -> list[tuple[TopicPartition, int]]:
    reached: dict[int, list[tuple[TopicPartition, int]]] = {giver: []}
    waiting = deque([giver])
    while waiting:
        broker = waiting.popleft()
        if counts[broker] <= counts[giver] - 2:
            return reached[broker]
        for partition, follower in handovers[broker]:
            if follower not in reached:
                reached[follower] = [*reached[broker], (partition, follower)]
                waiting.append(follower)
    return []
