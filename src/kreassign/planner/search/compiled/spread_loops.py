"""Loops that spread replicas and leaders of topics (`search/spread.py`), compiled.

No change takes a broker farther from a band.
"""

from __future__ import annotations

from typing import NamedTuple

from kreassign.planner.arrays import IndexArray
from kreassign.planner.search.compiled.compiler import compiled, compiled_part
from kreassign.planner.search.compiled.kernels import (
    NO_BROKER,
    TINY,
    Encoding,
    SlotsByBroker,
    State,
    affordable,
    fits,
    following,
    lead,
    leading,
    load_of,
    may_host,
    may_leave,
    nothing,
    place,
)
from kreassign.planner.search.compiled.loops import exchange, lead_allowed, may_exchange, random_below

# Replicas of each topic.


class Spread(NamedTuple):
    """Numbers of replicas (or leaders) of T topics on N brokers, with their targets: fewest and most."""

    topics: IndexArray  # (P,) topic of each partition
    counts: IndexArray  # (T, N)
    least: IndexArray  # (T, N)
    most: IndexArray  # (T, N)


@compiled
def spread_pass(encoding: Encoding, state: State, spread: Spread, by_broker: SlotsByBroker, attempts: int) -> int:
    """Make every move or exchange that spreads a topic and takes no broker farther from a band; return the number."""
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
            made += try_replica_exchange(encoding, state, spread, by_broker, slot, attempts)
    return made


@compiled_part
def count(spread: Spread, topic: int, origin: int, broker: int) -> None:
    """Count the move of a topic's replica from one broker to another."""
    spread.counts[topic, origin] -= 1
    spread.counts[topic, broker] += 1


@compiled_part
def spread_gain(spread: Spread, topic: int, origin: int, broker: int) -> int:
    """Decrease of the distances from the targets, in replicas, if one moves from `origin` to `broker`."""
    gained = 1 if spread.counts[topic, origin] > spread.most[topic, origin] else 0
    gained += 1 if spread.counts[topic, broker] < spread.least[topic, broker] else 0
    gained -= 1 if spread.counts[topic, origin] <= spread.least[topic, origin] else 0
    gained -= 1 if spread.counts[topic, broker] >= spread.most[topic, broker] else 0
    return gained


@compiled_part
def harmless(encoding: Encoding, state: State, broker: int, added: int, removed: int) -> bool:
    """True if adding and removing these loads takes a broker farther from none of its bands."""
    for goal in range(encoding.loads.shape[1]):
        change = encoding.loads[added, goal] - encoding.loads[removed, goal]
        shortfall, headroom = state.shortfall[broker, goal], state.headroom[broker, goal]
        missed = max(shortfall, 0.0) + max(-headroom, 0.0)
        if max(shortfall - change, 0.0) + max(change - headroom, 0.0) > missed + TINY:
            return False
    return True


@compiled_part
def best_move(encoding: Encoding, state: State, spread: Spread, slot: int) -> int:
    """The broker where a replica serves the spread most, with the fewest of the topic on a tie; or NO_BROKER."""
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
def try_replica_exchange(
    encoding: Encoding, state: State, spread: Spread, by_broker: SlotsByBroker, slot: int, attempts: int
) -> int:
    """Exchange a replica with one of another topic, where a move alone would take a broker out of a band."""
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


# Leaders of each topic.


@compiled
def spread_leaders_pass(
    encoding: Encoding, state: State, spread: Spread, by_broker: SlotsByBroker, attempts: int, keeps_bands: bool
) -> int:
    """Change every leader that spreads those of a topic; return the number.

    With `keeps_bands`, only if no broker gets farther from a band, maybe together with a leader of another topic.
    """
    made = 0
    for partition in range(encoding.offsets.shape[0] - 1):
        leader = state.leaders[partition]
        origin, topic = state.places[leader], spread.topics[partition]
        if origin < 0 or not encoding.may_change_leader[partition]:
            continue
        if spread.counts[topic, origin] <= spread.least[topic, origin]:
            continue
        best, most, fewest = leader, 0, 0
        for slot in range(encoding.offsets[partition], encoding.offsets[partition + 1]):
            broker = state.places[slot]
            if slot == leader or broker < 0 or not lead_allowed(encoding, state, slot):
                continue
            gained, held = spread_gain(spread, topic, origin, broker), spread.counts[topic, broker]
            if gained < 1 or gained < most or (gained == most and held >= fewest):
                continue
            if not keeps_bands or lead_change_harmless(encoding, state, partition, origin, broker):
                best, most, fewest = slot, gained, held
        if best != leader:
            lead(encoding, state, best)
            count(spread, topic, origin, state.places[best])
            made += 1
        elif keeps_bands and spread.counts[topic, origin] > spread.most[topic, origin]:
            made += try_leader_swap(encoding, state, spread, by_broker, partition, attempts)
    return made


@compiled_part
def lead_change_harmless(encoding: Encoding, state: State, partition: int, origin: int, broker: int) -> bool:
    """True if leading can move between these brokers without taking either farther from a band."""
    more, less = leading(partition), following(partition)
    return harmless(encoding, state, origin, less, more) and harmless(encoding, state, broker, more, less)


@compiled_part
def lead_swap_harmless(encoding: Encoding, state: State, broker: int, gets: int, gives: int) -> bool:
    """True if a broker can gain one partition's lead and give away another's without getting farther from a band."""
    for goal in range(encoding.loads.shape[1]):
        change = encoding.loads[leading(gets), goal] - encoding.loads[following(gets), goal]
        change -= encoding.loads[leading(gives), goal] - encoding.loads[following(gives), goal]
        shortfall, headroom = state.shortfall[broker, goal], state.headroom[broker, goal]
        missed = max(shortfall, 0.0) + max(-headroom, 0.0)
        if max(shortfall - change, 0.0) + max(change - headroom, 0.0) > missed + TINY:
            return False
    return True


@compiled_part
def try_leader_swap(
    encoding: Encoding, state: State, spread: Spread, by_broker: SlotsByBroker, partition: int, attempts: int
) -> int:
    """Move leading to a broker, and back from there that of a drawn partition of another topic."""
    leader = state.leaders[partition]
    origin, topic = state.places[leader], spread.topics[partition]
    first, last = by_broker.starts[origin], by_broker.starts[origin + 1]
    for _ in range(attempts if first < last else 0):
        back = by_broker.slots[first + random_below(state, last - first)]
        other = encoding.owners[back]
        second = spread.topics[other]
        there = state.places[state.leaders[other]]
        if state.places[back] != origin or there < 0 or there == origin or second == topic:
            continue
        if not encoding.may_change_leader[other] or not lead_allowed(encoding, state, back):
            continue
        slot = slot_on(encoding, state, partition, there)
        if slot < 0 or not lead_allowed(encoding, state, slot):
            continue
        if spread_gain(spread, topic, origin, there) + spread_gain(spread, second, there, origin) < 1:
            continue
        if not lead_swap_harmless(encoding, state, origin, other, partition):
            continue
        if not lead_swap_harmless(encoding, state, there, partition, other):
            continue
        former = state.leaders[other]
        lead(encoding, state, back)
        if not lead_allowed(encoding, state, slot):  # the budget has only one change left
            lead(encoding, state, former)
            continue
        lead(encoding, state, slot)
        count(spread, topic, origin, there)
        count(spread, second, there, origin)
        return 2
    return 0


@compiled_part
def slot_on(encoding: Encoding, state: State, partition: int, broker: int) -> int:
    """Slot of a partition on a broker, or -1."""
    found = -1
    for slot in range(encoding.offsets[partition], encoding.offsets[partition + 1]):
        if state.places[slot] == broker:
            found = slot
    return found
