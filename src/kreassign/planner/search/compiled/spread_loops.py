"""The loop of `topic_spread.py`, compiled."""

from __future__ import annotations

from typing import NamedTuple

from kreassign.planner.arrays import IndexArray
from kreassign.planner.search.compiled.compiler import compiled, compiled_part
from kreassign.planner.search.compiled.kernels import (
    NO_BROKER,
    TINY,
    affordable,
    fits,
    load_of,
    may_host,
    may_leave,
    nothing,
    place,
)
from kreassign.planner.search.compiled.loops import exchange, may_exchange, random_below
from kreassign.planner.search.compiled.state import Encoding, SlotsByBroker, State


class Spread(NamedTuple):
    """Replicas of T topics on N brokers: how many there are, and the fewest and the most that there shall be."""

    topics: IndexArray  # (P,) topic of each partition
    counts: IndexArray  # (T, N)
    least: IndexArray  # (T, N)
    most: IndexArray  # (T, N)


@compiled
def spread_pass(encoding: Encoding, state: State, spread: Spread, by_broker: SlotsByBroker, attempts: int) -> int:
    """Make every move or exchange that spreads a topic and takes no broker farther from a band; how many there were."""
    made = 0
    for slot in range(state.places.shape[0]):
        origin = state.places[slot]
        topic = spread.topics[encoding.owners[slot]]
        if origin < 0 or spread.counts[topic, origin] <= spread.least[topic, origin]:
            continue
        if not may_leave(encoding, state, slot):
            continue
        broker = best_move(encoding, state, spread, slot)
        if broker != NO_BROKER:
            place(encoding, state, slot, broker)
            count(spread, topic, origin, broker)
            made += 1
        elif spread.counts[topic, origin] > spread.most[topic, origin]:
            made += try_exchange(encoding, state, spread, by_broker, slot, attempts)
    return made


@compiled_part
def count(spread: Spread, topic: int, origin: int, broker: int) -> None:
    """Count a replica of a topic that goes from one broker to another."""
    spread.counts[topic, origin] -= 1
    spread.counts[topic, broker] += 1


@compiled_part
def spread_gain(spread: Spread, topic: int, origin: int, broker: int) -> int:
    """By how many replicas the distances from the limits shrink when one goes from a broker to another."""
    gained = 1 if spread.counts[topic, origin] > spread.most[topic, origin] else 0
    gained += 1 if spread.counts[topic, broker] < spread.least[topic, broker] else 0
    gained -= 1 if spread.counts[topic, origin] <= spread.least[topic, origin] else 0
    gained -= 1 if spread.counts[topic, broker] >= spread.most[topic, broker] else 0
    return gained


@compiled_part
def harmless(encoding: Encoding, state: State, broker: int, added: int, removed: int) -> bool:
    """Whether a load that comes and one that goes take a broker farther from none of its bands."""
    for goal in range(encoding.loads.shape[1]):
        change = encoding.loads[added, goal] - encoding.loads[removed, goal]
        shortfall, headroom = state.shortfall[broker, goal], state.headroom[broker, goal]
        missed = max(shortfall, 0.0) + max(-headroom, 0.0)
        if max(shortfall - change, 0.0) + max(change - headroom, 0.0) > missed + TINY:
            return False
    return True


@compiled_part
def best_move(encoding: Encoding, state: State, spread: Spread, slot: int) -> int:
    """The broker where a replica serves the spread most, of equals that with the fewest of the topic; or none."""
    origin, topic, load = state.places[slot], spread.topics[encoding.owners[slot]], load_of(encoding, state, slot)
    best, most, fewest, none = NO_BROKER, 0, 0, nothing(encoding)
    if not harmless(encoding, state, origin, none, load):
        return best
    for broker in range(encoding.racks.shape[0]):
        gained = spread_gain(spread, topic, origin, broker)
        held = spread.counts[topic, broker]
        if broker == origin or gained < 1 or gained < most or (gained == most and held >= fewest):
            continue
        if not encoding.receiving[broker] or not harmless(encoding, state, broker, load, none):
            continue
        if (
            fits(encoding, state, broker, load, none)
            and affordable(encoding, state, slot, broker)
            and may_host(encoding, state, slot, broker)
        ):
            best, most, fewest = broker, gained, held
    return best


@compiled_part
def try_exchange(
    encoding: Encoding, state: State, spread: Spread, by_broker: SlotsByBroker, slot: int, attempts: int
) -> int:
    """Let a replica change places with one of another topic, where a move alone would take a broker out of a band."""
    origin, topic = state.places[slot], spread.topics[encoding.owners[slot]]
    for _ in range(attempts):
        other = by_broker.slots[random_below(state, by_broker.slots.shape[0])]
        broker, second = state.places[other], spread.topics[encoding.owners[other]]
        if broker < 0 or broker == origin or second == topic:
            continue
        if spread_gain(spread, topic, origin, broker) + spread_gain(spread, second, broker, origin) < 1:
            continue
        ours, theirs = load_of(encoding, state, slot), load_of(encoding, state, other)
        if not harmless(encoding, state, origin, theirs, ours) or not harmless(encoding, state, broker, ours, theirs):
            continue
        if may_exchange(encoding, state, slot, other) and exchange(encoding, state, slot, other):
            count(spread, topic, origin, broker)
            count(spread, second, broker, origin)
            return 1
    return 0
