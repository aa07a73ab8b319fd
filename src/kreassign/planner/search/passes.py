"""The loops of the search over all partitions, compiled; built from the single changes of `kernels.py`."""

from __future__ import annotations

import numpy as np

from kreassign.planner.problem.arrays import IndexArray
from kreassign.planner.search.compiled import compiled, compiled_part
from kreassign.planner.search.kernels import (
    LEADER_CHANGES,
    NO_BROKER,
    TINY,
    any_receiver,
    copied,
    fits,
    is_home,
    lead,
    load_of,
    may_host,
    may_leave,
    neediest,
    needy_brokers,
    place,
    relief,
    roomiest,
    weigh,
)
from kreassign.planner.search.state import EMPTY, GONE, Frame, Residents, State

DICE_FACTOR, DICE_STEP = 6364136223846793005, 1442695040888963407  # Knuth's MMIX generator
KERNELS_DIGEST = "20e29cc9ee8d"
"""Of the source of `kernels.py`. Compiled passes are kept on disk until *this* file changes; see the test of it."""


# --- one change after the other --------------------------------------------------------------------------------------


@compiled
def move_pass(frame: Frame, state: State, worth: float) -> int:
    """Make every move that relieves at least `worth` per scaled byte; how many there were.

    A replica that is away from home already goes elsewhere for nothing.
    """
    needy, receivers = needy_brokers(frame, state), any_receiver(frame)
    moved = 0
    for partition in range(frame.offsets.shape[0] - 1):
        for slot in range(frame.offsets[partition], frame.offsets[partition + 1]):
            origin = state.places[slot]
            if origin < 0 or not may_leave(frame, state, slot):
                continue
            load = load_of(frame, state, slot)
            least = worth * frame.size[partition]
            hoped, whole = 0.0, 0.0
            for goal in range(load.shape[0]):
                hoped += min(load[goal], needy.largest[goal])
                whole += load[goal]
            if least >= hoped + whole and origin == frame.homes[slot]:
                continue
            least = max(least - worth * copied(frame, partition, origin), TINY)
            given = relief(state, origin, load, -1.0)
            if given + hoped <= least:
                continue
            broker = neediest(frame, state, slot, needy, (least - given, hoped - TINY))
            if broker == NO_BROKER and given > least:
                broker = roomiest(frame, state, slot, receivers)
            if broker != NO_BROKER:
                place(frame, state, slot, broker)
                weigh(state, needy, origin)
                weigh(state, needy, broker)
                moved += 1
    return moved


@compiled
def lead_pass(frame: Frame, state: State, worth: float) -> int:
    """Change every leader that relieves at least `worth` of what leading brings; how many there were."""
    changed = 0
    for partition in range(frame.offsets.shape[0] - 1):
        leader = state.leaders[partition]
        if not frame.relead[partition] or state.places[leader] < 0:
            continue
        extra = frame.as_leader[partition] - frame.as_follower[partition]
        given = relief(state, state.places[leader], extra, -1.0)
        best, most = leader, max(worth * extra.sum(), TINY)
        if given + extra.sum() <= most:
            continue
        for slot in range(frame.offsets[partition], frame.offsets[partition + 1]):
            broker = state.places[slot]
            if slot == leader or broker < 0 or not frame.leading[broker]:
                continue
            gained = given + relief(state, broker, extra, 1.0)
            if gained > most and fits(state, broker, extra) and may_relead(frame, state, partition):
                best, most = slot, gained
        if best != leader:
            lead(frame, state, best)
            changed += 1
    return changed


@compiled_part
def may_relead(frame: Frame, state: State, partition: int) -> bool:
    """Whether the budget allows another leader."""
    at_home = state.places[state.leaders[partition]] == frame.heads[partition]
    return bool(not at_home or state.purse[LEADER_CHANGES] >= 1.0)


# --- what must be ----------------------------------------------------------------------------------------------------


@compiled
def place_pass(frame: Frame, state: State, slots: IndexArray, brokers: IndexArray) -> None:
    """Put the replica of each slot on the broker given for it, or nowhere, whatever the rules say."""
    for index in range(slots.shape[0]):
        place(frame, state, slots[index], brokers[index])


@compiled
def adopt_pass(frame: Frame, state: State, slots: IndexArray, brokers: IndexArray, leaders: IndexArray) -> None:
    """Put replicas where another plan has them, and let these slots lead."""
    for index in range(slots.shape[0]):
        place(frame, state, slots[index], brokers[index])
    for index in range(leaders.shape[0]):
        lead(frame, state, leaders[index])


@compiled
def shrink_pass(frame: Frame, state: State, wanted: IndexArray) -> None:
    """Give up replicas down to the wanted numbers; those that are given up already count no more."""
    for partition in range(wanted.shape[0]):
        count = 0
        for slot in range(frame.offsets[partition], frame.offsets[partition + 1]):
            count += int(frame.homes[slot] >= 0 and state.places[slot] != GONE)
        for _ in range(wanted[partition], count):
            slot = most_dispensable(frame, state, partition)
            if state.leaders[partition] == slot and not hand_over(frame, state, partition):
                break
            place(frame, state, slot, GONE)


@compiled_part
def most_dispensable(frame: Frame, state: State, partition: int) -> int:
    """Of the replicas of a partition: one that has no place, or shares its rack, or relieves its broker most."""
    best, most = 0, -np.inf
    for slot in range(frame.offsets[partition], frame.offsets[partition + 1]):
        broker = state.places[slot]
        if broker == GONE:
            continue
        gained = 1e9
        if broker >= 0:
            gained = relief(state, broker, load_of(frame, state, slot), -1.0)
            for other in range(frame.offsets[partition], frame.offsets[partition + 1]):
                neighbour = state.places[other]
                if other != slot and neighbour >= 0 and frame.racks[neighbour] == frame.racks[broker]:
                    gained += 1e3
        gained -= 1e6 if state.leaders[partition] == slot else 0.0
        if gained > most:
            best, most = slot, gained
    return best


@compiled
def demote_pass(frame: Frame, state: State) -> None:
    """Where the leader is on a broker that may not lead, let another lead; where none can, take its place away."""
    for partition in range(frame.offsets.shape[0] - 1):
        broker = state.places[state.leaders[partition]]
        barred = broker >= 0 and not frame.leading[broker] and not frame.fixed[partition]
        if barred and not hand_over(frame, state, partition) and frame.movable[partition]:
            place(frame, state, state.leaders[partition], EMPTY)


@compiled_part
def hand_over(frame: Frame, state: State, partition: int) -> bool:
    """Let the replica lead that is relieved most, of those that have a place and may; False if there is none."""
    extra = frame.as_leader[partition] - frame.as_follower[partition]
    leader = state.leaders[partition]
    best, most, head = leader, -np.inf, frame.heads[partition]
    former = state.places[leader]
    cannot_afford = (former == head or former < 0) and state.purse[LEADER_CHANGES] < 1.0
    for slot in range(frame.offsets[partition], frame.offsets[partition + 1]):
        broker = state.places[slot]
        if slot == leader or broker < 0 or not frame.leading[broker]:
            continue
        if cannot_afford and broker != head:
            continue
        gained = relief(state, broker, extra, 1.0) - (0.0 if fits(state, broker, extra) else 1e6)
        if gained > most:
            best, most = slot, gained
    if best == leader:
        return False
    lead(frame, state, best)
    return True


@compiled
def fill_pass(frame: Frame, state: State, order: IndexArray) -> None:
    """Give every slot of `order` a broker, where the rules, the capacities and the budget allow any."""
    receivers = any_receiver(frame)
    for slot in order:
        needy = needy_brokers(frame, state)
        broker = neediest(frame, state, slot, needy, (TINY, np.inf))
        if broker == NO_BROKER:
            broker = roomiest(frame, state, slot, receivers)
        if broker == NO_BROKER:
            broker = neediest(frame, state, slot, receivers, (-np.inf, np.inf))
        if broker != NO_BROKER:
            place(frame, state, slot, broker)


# --- pairs of changes, where none alone helps ------------------------------------------------------------------------


@compiled_part
def roll(state: State, below: int) -> int:
    """A number from 0 to `below` - 1 from the seeded generator."""
    state.dice[0] = state.dice[0] * DICE_FACTOR + DICE_STEP
    return int(((state.dice[0] >> 33) & 0x7FFFFFFF) % below)


@compiled_part
def exchange_relief(frame: Frame, state: State, one: int, other: int) -> float:
    """Relief of two replicas changing their brokers."""
    difference = load_of(frame, state, other) - load_of(frame, state, one)
    here, there = state.places[one], state.places[other]
    return relief(state, here, difference, 1.0) + relief(state, there, difference, -1.0)


@compiled_part
def exchange_cost(frame: Frame, state: State, one: int, other: int) -> float:
    """Scaled bytes that the same costs; negative where it brings replicas home."""
    here, there = state.places[one], state.places[other]
    first, second = frame.owners[one], frame.owners[other]
    after = copied(frame, first, there) + copied(frame, second, here)
    return after - copied(frame, first, here) - copied(frame, second, there)


@compiled_part
def may_exchange(frame: Frame, state: State, one: int, other: int) -> bool:
    """Whether the rules and capacities allow it."""
    here, there = state.places[one], state.places[other]
    if not (may_leave(frame, state, one) and may_leave(frame, state, other)):
        return False
    if not (may_enter(frame, one, there) and may_enter(frame, other, here)):
        return False
    difference = load_of(frame, state, other) - load_of(frame, state, one)
    if not (fits(state, here, difference) and fits(state, there, -difference)):
        return False
    return may_host(frame, state, one, there) and may_host(frame, state, other, here)


@compiled_part
def may_enter(frame: Frame, slot: int, broker: int) -> bool:
    """Whether a broker takes replicas, or took this one before."""
    return bool(frame.receiving[broker] or (frame.staying[broker] and is_home(frame, frame.owners[slot], broker)))


@compiled_part
def exchange(frame: Frame, state: State, one: int, other: int) -> bool:
    """Carry it out, unless the budget is not enough."""
    here, there = state.places[one], state.places[other]
    place(frame, state, one, there)
    place(frame, state, other, here)
    if overdrawn(state, here, there):
        place(frame, state, one, here)
        place(frame, state, other, there)
        return False
    return True


@compiled_part
def overdrawn(state: State, one: int, other: int) -> bool:
    """Whether more is spent than the budget has."""
    limits = min(state.intake[one], state.intake[other], state.outlet.min(), state.purse.min())
    return bool(limits < -TINY)


@compiled
def exchange_pass(frame: Frame, state: State, residents: Residents, tries: int, worth: float) -> int:
    """Around every broker outside its bands, make the best exchange of so many drawn ones, while any helps."""
    made = 0
    for broker in range(frame.racks.shape[0]):
        first, last = residents.starts[broker], residents.starts[broker + 1]
        while first < last and (max(state.lack[broker].max(), -state.room[broker].min())) > TINY:
            best, partner, most = residents.slots[first], residents.slots[first], 0.0
            for _ in range(tries):
                one = residents.slots[first + roll(state, last - first)]
                other = roll(state, state.places.shape[0])
                if state.places[one] != broker or state.places[other] < 0 or state.places[other] == broker:
                    continue
                gained = exchange_relief(frame, state, one, other)
                if gained <= TINY:
                    continue
                gained -= worth * exchange_cost(frame, state, one, other)
                if gained > most and may_exchange(frame, state, one, other):
                    best, partner, most = one, other, gained
            if most == 0.0 or not exchange(frame, state, best, partner):
                break
            made += 1
    return made


@compiled
def lead_chain_pass(frame: Frame, state: State, residents: Residents, tries: int) -> int:
    """Around every broker outside its bands, change two leaders at once where one alone does not help."""
    made = 0
    for broker in range(frame.racks.shape[0]):
        first, last = residents.starts[broker], residents.starts[broker + 1]
        for _ in range(tries if first < last else 0):
            if role_excess(frame, state, broker) <= TINY:
                break
            slot = residents.slots[first + roll(state, last - first)]
            partition = frame.owners[slot]
            former = state.leaders[partition]
            if state.places[slot] != broker or not frame.relead[partition]:
                continue
            if former == slot:
                span = frame.offsets[partition + 1] - frame.offsets[partition]
                slot = frame.offsets[partition] + roll(state, span)
            made += try_lead_chain(frame, state, residents, slot, broker)
    return made


@compiled_part
def role_excess(frame: Frame, state: State, broker: int) -> float:
    """How far a broker is from its bands in the goals that depend on who leads."""
    most = 0.0
    for goal in range(state.lack.shape[1]):
        if frame.role_goals[goal]:
            most = max(most, state.lack[broker, goal], -state.room[broker, goal])
    return most


@compiled_part
def try_lead_chain(frame: Frame, state: State, residents: Residents, slot: int, broker: int) -> int:
    """Let a slot lead, then make the best second change at the other broker; undo it unless both together help."""
    former = state.leaders[frame.owners[slot]]
    if state.places[slot] < 0 or state.places[former] < 0 or not lead_allowed(frame, state, slot):
        return 0
    first_relief = lead_relief(frame, state, slot)
    middle = state.places[slot] if state.places[former] == broker else state.places[former]
    lead(frame, state, slot)
    best, most = former, -first_relief + TINY
    for index in range(residents.starts[middle], residents.starts[middle + 1]):
        candidate = residents.slots[index]
        partition = frame.owners[candidate]
        if state.places[candidate] != middle or not frame.relead[partition] or partition == frame.owners[slot]:
            continue
        for second in range(frame.offsets[partition], frame.offsets[partition + 1]):
            takes = second == candidate or state.leaders[partition] == candidate
            if takes and state.places[second] >= 0 and lead_allowed(frame, state, second):
                gained = lead_relief(frame, state, second)
                if gained > most:
                    best, most = second, gained
    lead(frame, state, best)
    return int(best != former)


@compiled_part
def lead_relief(frame: Frame, state: State, slot: int) -> float:
    """Relief of another slot leading its partition."""
    partition = frame.owners[slot]
    extra = frame.as_leader[partition] - frame.as_follower[partition]
    former = state.places[state.leaders[partition]]
    return relief(state, former, extra, -1.0) + relief(state, state.places[slot], extra, 1.0)


@compiled_part
def lead_allowed(frame: Frame, state: State, slot: int) -> bool:
    """Whether a slot that does not lead may, by the rules, the capacity and the budget."""
    partition, broker = frame.owners[slot], state.places[slot]
    if state.leaders[partition] == slot or not frame.leading[broker] or not may_relead(frame, state, partition):
        return False
    return fits(state, broker, frame.as_leader[partition] - frame.as_follower[partition])


# --- trimming --------------------------------------------------------------------------------------------------------


@compiled
def return_pass(frame: Frame, state: State, order: IndexArray) -> int:
    """Take back every move that the bands do not need, in the order given; how many there were."""
    returned = 0
    for slot in order:
        partition, origin = frame.owners[slot], state.places[slot]
        if origin < 0 or is_home(frame, partition, origin):
            continue
        load = load_of(frame, state, slot)
        given = relief(state, origin, load, -1.0)
        for other in range(frame.offsets[partition], frame.offsets[partition + 1]):
            home = frame.homes[other]
            if home < 0 or not frame.staying[home] or not fits(state, home, load):
                continue
            if given + relief(state, home, load, 1.0) >= -TINY and may_host(frame, state, slot, home):
                place(frame, state, slot, home)
                returned += 1
                break
    return returned


@compiled
def smaller_pass(frame: Frame, state: State, residents: Residents, tries: int) -> int:
    """Let smaller replicas go in the place of moved ones, where the bands stay as they are; how many there were."""
    made = 0
    for slot in range(state.places.shape[0]):
        home, origin = frame.homes[slot], state.places[slot]
        if home < 0 or origin < 0 or origin == home or is_home(frame, frame.owners[slot], origin):
            continue
        first, last = residents.starts[home], residents.starts[home + 1]
        for _ in range(tries if first < last else 0):
            other = residents.slots[first + roll(state, last - first)]
            if frame.size[frame.owners[other]] >= frame.size[frame.owners[slot]] or state.places[other] != home:
                continue
            if exchange_relief(frame, state, slot, other) < -TINY or exchange_cost(frame, state, slot, other) > -TINY:
                continue
            if not may_exchange(frame, state, slot, other):
                continue
            if exchange(frame, state, slot, other):
                made += 1
                break
    return made
