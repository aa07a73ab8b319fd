"""The loop of `topic_spread.py`, compiled."""

from __future__ import annotations

from typing import NamedTuple

from kreassign.planner.problem.arrays import FloatArray, IndexArray
from kreassign.planner.search.compiled import compiled, compiled_part
from kreassign.planner.search.kernels import NO_BROKER, TINY, affordable, fits, load_of, may_host, may_leave, place
from kreassign.planner.search.passes import exchange, may_exchange, roll
from kreassign.planner.search.state import Frame, Residents, State

PARTS_DIGEST = "b20c78dec976"
"""Of the sources of `kernels.py` and `passes.py`. Compiled code is kept until *this* file changes; see the test."""


class Spread(NamedTuple):
    """Replicas of T topics on N brokers: how many there are, and the fewest and the most that there shall be."""

    topics: IndexArray  # (P,) topic of each partition
    counts: IndexArray  # (T, N)
    least: IndexArray  # (T, N)
    most: IndexArray  # (T, N)


@compiled
def spread_pass(frame: Frame, state: State, spread: Spread, residents: Residents, tries: int) -> int:
    """Make every move or exchange that spreads a topic and takes no broker farther from a band; how many there were."""
    made = 0
    for slot in range(state.places.shape[0]):
        origin = state.places[slot]
        topic = spread.topics[frame.owners[slot]]
        if origin < 0 or spread.counts[topic, origin] <= spread.least[topic, origin]:
            continue
        if not may_leave(frame, state, slot):
            continue
        broker = best_move(frame, state, spread, slot)
        if broker != NO_BROKER:
            place(frame, state, slot, broker)
            count(spread, topic, origin, broker)
            made += 1
        elif spread.counts[topic, origin] > spread.most[topic, origin]:
            made += try_exchange(frame, state, spread, residents, slot, tries)
    return made


@compiled_part
def count(spread: Spread, topic: int, origin: int, broker: int) -> None:
    """Book a replica of a topic that goes from one broker to another."""
    spread.counts[topic, origin] -= 1
    spread.counts[topic, broker] += 1


@compiled_part
def worth(spread: Spread, topic: int, origin: int, broker: int) -> int:
    """By how many replicas the distances from the limits shrink when one goes from a broker to another."""
    gained = 1 if spread.counts[topic, origin] > spread.most[topic, origin] else 0
    gained += 1 if spread.counts[topic, broker] < spread.least[topic, broker] else 0
    gained -= 1 if spread.counts[topic, origin] <= spread.least[topic, origin] else 0
    gained -= 1 if spread.counts[topic, broker] >= spread.most[topic, broker] else 0
    return gained


@compiled_part
def harmless(state: State, broker: int, load: FloatArray, sign: float) -> bool:
    """Whether adding `sign` times a load takes a broker farther from none of its bands."""
    for goal in range(load.shape[0]):
        change = sign * load[goal]
        lack, room = state.lack[broker, goal], state.room[broker, goal]
        missed = max(lack, 0.0) + max(-room, 0.0)
        if max(lack - change, 0.0) + max(change - room, 0.0) > missed + TINY:
            return False
    return True


@compiled_part
def best_move(frame: Frame, state: State, spread: Spread, slot: int) -> int:
    """The broker where a replica serves the spread most, of equals that with the fewest of the topic; or none."""
    origin, topic, load = state.places[slot], spread.topics[frame.owners[slot]], load_of(frame, state, slot)
    best, most, fewest = NO_BROKER, 0, 0
    if not harmless(state, origin, load, -1.0):
        return best
    for broker in range(frame.racks.shape[0]):
        gained = worth(spread, topic, origin, broker)
        held = spread.counts[topic, broker]
        if broker == origin or gained < 1 or gained < most or (gained == most and held >= fewest):
            continue
        if not frame.receiving[broker] or not harmless(state, broker, load, 1.0):
            continue
        if (
            fits(state, broker, load)
            and affordable(frame, state, slot, broker)
            and may_host(frame, state, slot, broker)
        ):
            best, most, fewest = broker, gained, held
    return best


@compiled_part
def try_exchange(frame: Frame, state: State, spread: Spread, residents: Residents, slot: int, tries: int) -> int:
    """Let a replica change places with one of another topic, where a move alone would take a broker out of a band."""
    origin, topic = state.places[slot], spread.topics[frame.owners[slot]]
    for _ in range(tries):
        other = residents.slots[roll(state, residents.slots.shape[0])]
        broker, second = state.places[other], spread.topics[frame.owners[other]]
        if broker < 0 or broker == origin or second == topic:
            continue
        if worth(spread, topic, origin, broker) + worth(spread, second, broker, origin) < 1:
            continue
        difference = load_of(frame, state, other) - load_of(frame, state, slot)
        if not (harmless(state, origin, difference, 1.0) and harmless(state, broker, difference, -1.0)):
            continue
        if may_exchange(frame, state, slot, other) and exchange(frame, state, slot, other):
            count(spread, topic, origin, broker)
            count(spread, second, broker, origin)
            return 1
    return 0
