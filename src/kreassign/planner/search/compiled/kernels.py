"""Single changes, compiled: what a move or another leader gains, whether it is allowed, and making it.

A change is judged by its *gain*: how much it lessens the sum, over brokers and goals, of what stands outside the
bands. The gain of a change is the sum over the two brokers it touches, each a handful of operations per goal; nothing
is ever recomputed as a whole.
"""

from __future__ import annotations

import numpy as np

from kreassign.planner.arrays import FloatArray
from kreassign.planner.search.compiled.compiler import compiled_part
from kreassign.planner.search.compiled.state import Candidates, Encoding, State

NO_BROKER = -1
TINY = 2e-9
BYTES, MOVES, LEADER_CHANGES = 0, 1, 2  # places in State.budget_left


@compiled_part
def gain(state: State, broker: int, load: FloatArray, sign: float) -> float:
    """What adding `sign` times a load to a broker takes off its distance from the bands; negative if it adds."""
    gained = 0.0
    for goal in range(load.shape[0]):
        change = sign * load[goal]
        shortfall, headroom = state.shortfall[broker, goal], state.headroom[broker, goal]
        gained += max(shortfall, 0.0) + max(-headroom, 0.0) - max(shortfall - change, 0.0) - max(change - headroom, 0.0)
    return gained


@compiled_part
def shift(state: State, broker: int, load: FloatArray, sign: float) -> None:
    """Add `sign` times a load to a broker."""
    for goal in range(load.shape[0]):
        change = sign * load[goal]
        state.shortfall[broker, goal] -= change
        state.headroom[broker, goal] -= change
        state.spare_capacity[broker, goal] -= change


@compiled_part
def fits(state: State, broker: int, load: FloatArray) -> bool:
    """Whether a broker's capacity bears a load more; what is full already may still be given less than nothing."""
    for goal in range(load.shape[0]):
        if load[goal] > 0.0 and load[goal] > state.spare_capacity[broker, goal] + TINY:
            return False
    return True


@compiled_part
def load_of(encoding: Encoding, state: State, slot: int) -> FloatArray:
    """What the replica in a slot brings to its broker, in its present role."""
    partition = encoding.owners[slot]
    load: FloatArray = encoding.follower_load[partition]
    if state.leaders[partition] == slot:
        load = encoding.leader_load[partition]
    return load


@compiled_part
def is_initial(encoding: Encoding, partition: int, broker: int) -> bool:
    """Whether a broker holds a replica of the partition at present, so that placing one there copies nothing."""
    found = False
    for slot in range(encoding.offsets[partition], encoding.offsets[partition + 1]):
        found |= bool(encoding.initial_brokers[slot] == broker)
    return found


@compiled_part
def may_host(encoding: Encoding, state: State, slot: int, broker: int) -> bool:
    """Whether the rules let the replica in a slot live on a broker, given where the others of its partition are."""
    partition = encoding.owners[slot]
    broker_set = encoding.partition_sets[partition]
    if broker_set >= 0 and encoding.broker_sets[broker] != broker_set:
        return False
    if state.leaders[partition] == slot and not encoding.leading[broker]:
        return False
    beside = 0
    for other in range(encoding.offsets[partition], encoding.offsets[partition + 1]):
        place = state.places[other]
        if encoding.lost_on[other] == broker:
            return False
        if other == slot or place < 0:
            continue
        if place == broker:
            return False
        if encoding.racks[place] == encoding.racks[broker]:
            beside += 1
    return bool(beside < encoding.rack_limit[partition])


@compiled_part
def may_leave(encoding: Encoding, state: State, slot: int) -> bool:
    """Whether the replica in a slot may go elsewhere; with it goes the leadership, if it leads."""
    partition = encoding.owners[slot]
    if encoding.pinned[slot] or not encoding.movable[partition]:
        return False
    # A leadership that has left its broker already may go on.
    leads_initially = state.leaders[partition] == slot and state.places[slot] == encoding.initial_leaders[partition]
    return bool(encoding.may_change_leader[partition] or not leads_initially)


@compiled_part
def copy_cost(encoding: Encoding, partition: int, broker: int) -> float:
    """Scaled bytes that a replica on a broker costs: 0 where one is now."""
    return 0.0 if broker < 0 or is_initial(encoding, partition, broker) else encoding.size[partition]


@compiled_part
def affordable(encoding: Encoding, state: State, slot: int, broker: int) -> bool:
    """Whether the budget allows a replica to go to a broker."""
    partition = encoding.owners[slot]
    origin = state.places[slot]
    copied_before = origin >= 0 and not is_initial(encoding, partition, origin)
    copied_after = not is_initial(encoding, partition, broker)
    initial_leader = encoding.initial_leaders[partition]
    leads_initially = state.leaders[partition] == slot and (origin == initial_leader or origin < 0)
    if leads_initially and broker != initial_leader and state.budget_left[LEADER_CHANGES] < 1.0:
        return False
    if not copied_after:
        return True
    size, transfer_cost = encoding.size[partition], encoding.transfer_cost[partition]
    if transfer_cost > state.bytes_in_left[broker] + TINY:
        return False
    if copied_before:
        return True
    return bool(
        size <= state.budget_left[BYTES] + TINY
        and state.budget_left[MOVES] >= 1.0
        and transfer_cost <= state.bytes_out_left[initial_leader] + TINY
    )


@compiled_part
def charge(encoding: Encoding, state: State, slot: int, sign: float) -> None:
    """Charge the budget for a replica where it stands (sign 1), or give it back (sign -1)."""
    partition, place = encoding.owners[slot], state.places[slot]
    if place < 0 or is_initial(encoding, partition, place):
        return
    transfer_cost = sign * encoding.transfer_cost[partition]
    state.budget_left[BYTES] -= sign * encoding.size[partition]
    state.budget_left[MOVES] -= sign
    state.bytes_in_left[place] -= transfer_cost
    state.bytes_out_left[encoding.initial_leaders[partition]] -= transfer_cost


@compiled_part
def charge_leader(encoding: Encoding, state: State, partition: int, sign: float) -> None:
    """Charge the budget for a leader that is not the present one (sign 1), or give it back (sign -1)."""
    place = state.places[state.leaders[partition]]
    if place >= 0 and place != encoding.initial_leaders[partition]:
        state.budget_left[LEADER_CHANGES] -= sign


@compiled_part
def place(encoding: Encoding, state: State, slot: int, broker: int) -> None:
    """Put the replica of a slot on a broker, or nowhere; loads and budget follow."""
    partition, load = encoding.owners[slot], load_of(encoding, state, slot)
    leads = state.leaders[partition] == slot
    if leads:
        charge_leader(encoding, state, partition, -1.0)
    charge(encoding, state, slot, -1.0)
    if state.places[slot] >= 0:
        shift(state, state.places[slot], load, -1.0)
    state.places[slot] = broker
    if broker >= 0:
        shift(state, broker, load, 1.0)
    charge(encoding, state, slot, 1.0)
    if leads:
        charge_leader(encoding, state, partition, 1.0)


@compiled_part
def lead(encoding: Encoding, state: State, slot: int) -> None:
    """Let the replica of a slot lead its partition."""
    partition = encoding.owners[slot]
    charge_leader(encoding, state, partition, -1.0)
    former = state.places[state.leaders[partition]]
    extra = encoding.leader_load[partition] - encoding.follower_load[partition]
    if former >= 0:
        shift(state, former, extra, -1.0)
    state.leaders[partition] = slot
    if state.places[slot] >= 0:
        shift(state, state.places[slot], extra, 1.0)
    charge_leader(encoding, state, partition, 1.0)


# --- destinations ----------------------------------------------------------------------------------------------------


@compiled_part
def brokers_below_band(encoding: Encoding, state: State) -> Candidates:
    """Receivers that stand below a band now."""
    brokers, goals = state.shortfall.shape
    chosen, deficit, positions = np.empty(brokers, np.int64), np.zeros(brokers), np.full(brokers, NO_BROKER)
    largest_shortfall = np.zeros(goals)
    count = 0
    for broker in range(brokers):
        if encoding.receiving[broker] and goals and state.shortfall[broker].max() > TINY:
            chosen[count], positions[broker] = broker, count
            for goal in range(goals):
                deficit[count] += max(state.shortfall[broker, goal], 0.0)
                largest_shortfall[goal] = max(largest_shortfall[goal], state.shortfall[broker, goal])
            count += 1
    return Candidates(chosen[:count], deficit[:count], positions, largest_shortfall)


@compiled_part
def all_receivers(encoding: Encoding) -> Candidates:
    """All receivers, whatever they lack."""
    chosen = np.flatnonzero(encoding.receiving).astype(np.int64)
    positions = np.full(encoding.receiving.shape[0], NO_BROKER)
    return Candidates(chosen, np.full(chosen.shape[0], np.inf), positions, np.zeros(encoding.leader_load.shape[1]))


@compiled_part
def update_deficit(state: State, below: Candidates, broker: int) -> None:
    """Note what a broker lacks after a change, if it is one of these."""
    position = below.positions[broker]
    if position >= 0:
        below.deficit[position] = 0.0
        for goal in range(state.shortfall.shape[1]):
            below.deficit[position] += max(state.shortfall[broker, goal], 0.0)


@compiled_part
def receiving_gain(state: State, broker: int, load: FloatArray) -> float:
    """`gain` of adding a load, with less to compute."""
    gained = 0.0
    for goal in range(load.shape[0]):
        gained += min(max(state.shortfall[broker, goal], 0.0), load[goal])
        gained -= max(load[goal] - max(state.headroom[broker, goal], 0.0), 0.0)
    return gained


@compiled_part
def best_destination(
    encoding: Encoding, state: State, slot: int, candidates: Candidates, bounds: tuple[float, float]
) -> int:
    """The candidate that a replica relieves most.

    `bounds`: by more than the first; the first one found that it relieves by the second will do. The scan starts at
    another candidate for each slot, so that they are served evenly.
    """
    load = load_of(encoding, state, slot)
    best, most = NO_BROKER, bounds[0]
    count = candidates.brokers.shape[0]
    for step in range(count):
        index = (slot + step) % count
        broker = candidates.brokers[index]
        if candidates.deficit[index] <= most or broker == state.places[slot]:
            continue
        gained = receiving_gain(state, broker, load)
        if (
            gained > most
            and fits(state, broker, load)
            and affordable(encoding, state, slot, broker)
            and may_host(encoding, state, slot, broker)
        ):
            best, most = broker, gained
            if gained >= bounds[1]:
                break
    return best


@compiled_part
def most_headroom(encoding: Encoding, state: State, slot: int, candidates: Candidates) -> int:
    """The candidate that stays farthest below the upper ends of its bands with a replica more, if any stays below."""
    load = load_of(encoding, state, slot)
    best, most = NO_BROKER, -TINY
    for broker in candidates.brokers:
        if broker == state.places[slot]:
            continue
        left = np.inf
        for goal in range(load.shape[0]):
            left = min(left, state.headroom[broker, goal] - load[goal])
        if left > most and affordable(encoding, state, slot, broker) and may_host(encoding, state, slot, broker):
            best, most = broker, left
    return best
