"""Single changes, compiled: what a move or another leader relieves, whether it is allowed, and carrying it out.

A change is judged by its *relief*: by how much it lessens the sum, over brokers and goals, of what stands outside the
bands. Relief of a change is the sum over the two brokers it touches, each a handful of operations per goal; nothing
is ever recomputed as a whole.
"""

from __future__ import annotations

import numpy as np

from kreassign.planner.problem.arrays import FloatArray
from kreassign.planner.search.compiled import compiled_part
from kreassign.planner.search.state import Frame, Needy, State

NO_BROKER = -1
TINY = 2e-9
BYTES, MOVES, LEADER_CHANGES = 0, 1, 2  # places in State.purse


@compiled_part
def relief(state: State, broker: int, load: FloatArray, sign: float) -> float:
    """What adding `sign` times a load to a broker takes off its distance from the bands; negative if it adds."""
    gained = 0.0
    for goal in range(load.shape[0]):
        change = sign * load[goal]
        lack, room = state.lack[broker, goal], state.room[broker, goal]
        gained += max(lack, 0.0) + max(-room, 0.0) - max(lack - change, 0.0) - max(change - room, 0.0)
    return gained


@compiled_part
def shift(state: State, broker: int, load: FloatArray, sign: float) -> None:
    """Add `sign` times a load to a broker."""
    for goal in range(load.shape[0]):
        change = sign * load[goal]
        state.lack[broker, goal] -= change
        state.room[broker, goal] -= change
        state.spare[broker, goal] -= change


@compiled_part
def fits(state: State, broker: int, load: FloatArray) -> bool:
    """Whether a broker's capacity bears a load more; what is full already may still be given less than nothing."""
    for goal in range(load.shape[0]):
        if load[goal] > 0.0 and load[goal] > state.spare[broker, goal] + TINY:
            return False
    return True


@compiled_part
def load_of(frame: Frame, state: State, slot: int) -> FloatArray:
    """What the replica in a slot brings to its broker, in its present role."""
    partition = frame.owners[slot]
    load: FloatArray = frame.as_follower[partition]
    if state.leaders[partition] == slot:
        load = frame.as_leader[partition]
    return load


@compiled_part
def is_home(frame: Frame, partition: int, broker: int) -> bool:
    """Whether a broker holds a replica of the partition at present, so that placing one there copies nothing."""
    found = False
    for slot in range(frame.offsets[partition], frame.offsets[partition + 1]):
        found |= bool(frame.homes[slot] == broker)
    return found


@compiled_part
def may_host(frame: Frame, state: State, slot: int, broker: int) -> bool:
    """Whether the rules let the replica in a slot live on a broker, given where the others of its partition are."""
    partition = frame.owners[slot]
    tenant = frame.partition_sets[partition]
    if tenant >= 0 and frame.broker_sets[broker] != tenant:
        return False
    if state.leaders[partition] == slot and not frame.leading[broker]:
        return False
    beside = 0
    for other in range(frame.offsets[partition], frame.offsets[partition + 1]):
        place = state.places[other]
        if frame.lost[other] == broker:
            return False
        if other == slot or place < 0:
            continue
        if place == broker:
            return False
        if frame.racks[place] == frame.racks[broker]:
            beside += 1
    return bool(beside < frame.rack_limit[partition])


@compiled_part
def may_leave(frame: Frame, state: State, slot: int) -> bool:
    """Whether the replica in a slot may go elsewhere; with it goes the leadership, if it leads."""
    partition = frame.owners[slot]
    return bool(frame.movable[partition] and (frame.relead[partition] or state.leaders[partition] != slot))


@compiled_part
def copied(frame: Frame, partition: int, broker: int) -> float:
    """Scaled bytes that a replica on a broker costs: 0 where one is now."""
    return 0.0 if broker < 0 or is_home(frame, partition, broker) else frame.size[partition]


@compiled_part
def affordable(frame: Frame, state: State, slot: int, broker: int) -> bool:
    """Whether the budget allows a replica to go to a broker."""
    partition = frame.owners[slot]
    origin = state.places[slot]
    away_before = origin >= 0 and not is_home(frame, partition, origin)
    away_after = not is_home(frame, partition, broker)
    head = frame.heads[partition]
    leads_at_home = state.leaders[partition] == slot and (origin == head or origin < 0)
    if leads_at_home and broker != head and state.purse[LEADER_CHANGES] < 1.0:
        return False
    if not away_after:
        return True
    size, toll = frame.size[partition], frame.toll[partition]
    if toll > state.intake[broker] + TINY:
        return False
    if away_before:
        return True
    return bool(size <= state.purse[BYTES] + TINY and state.purse[MOVES] >= 1.0 and toll <= state.outlet[head] + TINY)


@compiled_part
def book(frame: Frame, state: State, slot: int, sign: float) -> None:
    """Charge the budget for a replica where it stands (sign 1), or give it back (sign -1)."""
    partition, place = frame.owners[slot], state.places[slot]
    if place < 0 or is_home(frame, partition, place):
        return
    toll = sign * frame.toll[partition]
    state.purse[BYTES] -= sign * frame.size[partition]
    state.purse[MOVES] -= sign
    state.intake[place] -= toll
    state.outlet[frame.heads[partition]] -= toll


@compiled_part
def book_leader(frame: Frame, state: State, partition: int, sign: float) -> None:
    """Charge the budget for a leader that is not the present one (sign 1), or give it back (sign -1)."""
    place = state.places[state.leaders[partition]]
    if place >= 0 and place != frame.heads[partition]:
        state.purse[LEADER_CHANGES] -= sign


@compiled_part
def place(frame: Frame, state: State, slot: int, broker: int) -> None:
    """Put the replica of a slot on a broker, or nowhere; loads and budget follow."""
    partition, load = frame.owners[slot], load_of(frame, state, slot)
    leads = state.leaders[partition] == slot
    if leads:
        book_leader(frame, state, partition, -1.0)
    book(frame, state, slot, -1.0)
    if state.places[slot] >= 0:
        shift(state, state.places[slot], load, -1.0)
    state.places[slot] = broker
    if broker >= 0:
        shift(state, broker, load, 1.0)
    book(frame, state, slot, 1.0)
    if leads:
        book_leader(frame, state, partition, 1.0)


@compiled_part
def lead(frame: Frame, state: State, slot: int) -> None:
    """Let the replica of a slot lead its partition."""
    partition = frame.owners[slot]
    book_leader(frame, state, partition, -1.0)
    former = state.places[state.leaders[partition]]
    extra = frame.as_leader[partition] - frame.as_follower[partition]
    if former >= 0:
        shift(state, former, extra, -1.0)
    state.leaders[partition] = slot
    if state.places[slot] >= 0:
        shift(state, state.places[slot], extra, 1.0)
    book_leader(frame, state, partition, 1.0)


# --- destinations ----------------------------------------------------------------------------------------------------


@compiled_part
def needy_brokers(frame: Frame, state: State) -> Needy:
    """Receivers that stand below a band now."""
    brokers, goals = state.lack.shape
    chosen, hunger, seats = np.empty(brokers, np.int64), np.zeros(brokers), np.full(brokers, NO_BROKER)
    largest = np.zeros(goals)
    count = 0
    for broker in range(brokers):
        if frame.receiving[broker] and goals and state.lack[broker].max() > TINY:
            chosen[count], seats[broker] = broker, count
            for goal in range(goals):
                hunger[count] += max(state.lack[broker, goal], 0.0)
                largest[goal] = max(largest[goal], state.lack[broker, goal])
            count += 1
    return Needy(chosen[:count], hunger[:count], seats, largest)


@compiled_part
def any_receiver(frame: Frame) -> Needy:
    """All receivers, whatever they lack."""
    chosen = np.flatnonzero(frame.receiving).astype(np.int64)
    seats = np.full(frame.receiving.shape[0], NO_BROKER)
    return Needy(chosen, np.full(chosen.shape[0], np.inf), seats, np.zeros(frame.as_leader.shape[1]))


@compiled_part
def weigh(state: State, needy: Needy, broker: int) -> None:
    """Note what a broker lacks after a change, if it is one of these."""
    seat = needy.seats[broker]
    if seat >= 0:
        needy.hunger[seat] = 0.0
        for goal in range(state.lack.shape[1]):
            needy.hunger[seat] += max(state.lack[broker, goal], 0.0)


@compiled_part
def receiving_relief(state: State, broker: int, load: FloatArray) -> float:
    """`relief` of adding a load, with less to compute."""
    gained = 0.0
    for goal in range(load.shape[0]):
        gained += min(max(state.lack[broker, goal], 0.0), load[goal])
        gained -= max(load[goal] - max(state.room[broker, goal], 0.0), 0.0)
    return gained


@compiled_part
def neediest(frame: Frame, state: State, slot: int, candidates: Needy, bounds: tuple[float, float]) -> int:
    """The candidate that a replica relieves most.

    `bounds`: by more than the first; the first one found that it relieves by the second will do. The scan starts at
    another candidate for each slot, so that they are served evenly.
    """
    load = load_of(frame, state, slot)
    best, most = NO_BROKER, bounds[0]
    count = candidates.brokers.shape[0]
    for step in range(count):
        index = (slot + step) % count
        broker = candidates.brokers[index]
        if candidates.hunger[index] <= most or broker == state.places[slot]:
            continue
        gained = receiving_relief(state, broker, load)
        if (
            gained > most
            and fits(state, broker, load)
            and affordable(frame, state, slot, broker)
            and may_host(frame, state, slot, broker)
        ):
            best, most = broker, gained
            if gained >= bounds[1]:
                break
    return best


@compiled_part
def roomiest(frame: Frame, state: State, slot: int, candidates: Needy) -> int:
    """The candidate that stays farthest below the upper ends of its bands with a replica more, if any stays below."""
    load = load_of(frame, state, slot)
    best, most = NO_BROKER, -TINY
    for broker in candidates.brokers:
        if broker == state.places[slot]:
            continue
        left = np.inf
        for goal in range(load.shape[0]):
            left = min(left, state.room[broker, goal] - load[goal])
        if left > most and affordable(frame, state, slot, broker) and may_host(frame, state, slot, broker):
            best, most = broker, left
    return best
