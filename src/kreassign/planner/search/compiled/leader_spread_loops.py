"""The loop of `topic_leaders.py`, compiled."""

from __future__ import annotations

from kreassign.planner.search.compiled.compiler import compiled, compiled_part
from kreassign.planner.search.compiled.kernels import TINY, following, lead, leading
from kreassign.planner.search.compiled.loops import lead_allowed, random_below
from kreassign.planner.search.compiled.spread_loops import Spread, count, harmless, spread_gain
from kreassign.planner.search.compiled.state import Encoding, SlotsByBroker, State


@compiled
def spread_leaders_pass(
    encoding: Encoding, state: State, spread: Spread, by_broker: SlotsByBroker, attempts: int, keeps_bands: bool
) -> int:
    """Change every leader that spreads those of a topic; how many changes there were.

    With `keeps_bands` only where no broker gets farther from a band, maybe together with a leader of another topic.
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
            if not keeps_bands or keeps(encoding, state, partition, origin, broker):
                best, most, fewest = slot, gained, held
        if best != leader:
            lead(encoding, state, best)
            count(spread, topic, origin, state.places[best])
            made += 1
        elif keeps_bands and spread.counts[topic, origin] > spread.most[topic, origin]:
            made += try_pair(encoding, state, spread, by_broker, partition, attempts)
    return made


@compiled_part
def keeps(encoding: Encoding, state: State, partition: int, origin: int, broker: int) -> bool:
    """Whether leading may go from one broker to another without taking either farther from a band."""
    more, less = leading(partition), following(partition)
    return harmless(encoding, state, origin, less, more) and harmless(encoding, state, broker, more, less)


@compiled_part
def both_keep(encoding: Encoding, state: State, broker: int, gets: int, gives: int) -> bool:
    """Whether a broker may get the lead of one partition and give that of another without getting farther off."""
    for goal in range(encoding.loads.shape[1]):
        change = encoding.loads[leading(gets), goal] - encoding.loads[following(gets), goal]
        change -= encoding.loads[leading(gives), goal] - encoding.loads[following(gives), goal]
        shortfall, headroom = state.shortfall[broker, goal], state.headroom[broker, goal]
        missed = max(shortfall, 0.0) + max(-headroom, 0.0)
        if max(shortfall - change, 0.0) + max(change - headroom, 0.0) > missed + TINY:
            return False
    return True


@compiled_part
def try_pair(
    encoding: Encoding, state: State, spread: Spread, by_broker: SlotsByBroker, partition: int, attempts: int
) -> int:
    """Let leading go to a broker, and that of a drawn partition of another topic come back from there."""
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
        if not both_keep(encoding, state, origin, other, partition):
            continue
        if not both_keep(encoding, state, there, partition, other):
            continue
        former = state.leaders[other]
        lead(encoding, state, back)
        if not lead_allowed(encoding, state, slot):  # the budget has one change left
            lead(encoding, state, former)
            continue
        lead(encoding, state, slot)
        count(spread, topic, origin, there)
        count(spread, second, there, origin)
        return 2
    return 0


@compiled_part
def slot_on(encoding: Encoding, state: State, partition: int, broker: int) -> int:
    """The slot of a partition on a broker, or -1."""
    found = -1
    for slot in range(encoding.offsets[partition], encoding.offsets[partition + 1]):
        if state.places[slot] == broker:
            found = slot
    return found
