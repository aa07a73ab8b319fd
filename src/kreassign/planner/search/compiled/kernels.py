"""Arrays of the compiled search, and single changes of them: gain, permission, a move, a leader change.

Loads are scaled so that 1.0 is the mean load of a broker, times the weight of the goal; sizes so that 1.0 is the mean
number of bytes on a broker. A *slot* is a position in a replica list: slots of partition p run from `offsets[p]` to
`offsets[p + 1]`, as many as the larger of its present and its wanted replication factor.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from kreassign.planner.arrays import BoolArray, BytesArray, FloatArray, IndexArray
from kreassign.planner.search.compiled.compiler import compiled_part

# Arrays that stay (`Encoding`), and arrays that the search changes (`State`).

UNPLACED = -1
"""In `State.places`: a replica without a broker yet."""
REMOVED = -2
"""In `State.places`: a replica to be deleted."""
LAGS = -2
"""In `Encoding.lost_on`: the copy is not in sync, so a plan gives it no leadership while another one can lead."""


class Encoding(NamedTuple):
    """Arrays that the search does not change. N brokers, P partitions, S slots, R goals.

    Each further array and dimension adds cost to many calls: 10 % of a search for two arrays.
    """

    offsets: IndexArray  # (P + 1,)
    owners: IndexArray  # (S,) partition of each slot
    initial_brokers: IndexArray  # (S,) broker that holds the replica at present, or UNPLACED
    lost_on: IndexArray  # (S,) broker that lost its copy, or cannot be named, and gets no other; or LAGS, or UNPLACED
    initial_leaders: IndexArray  # (P,) first broker of the present list, or UNPLACED
    senders: IndexArray  # (P,) broker that leads at present: another one if the first is down; or UNPLACED
    loads: (
        FloatArray  # (2 P + 1, R) of partition p: 2 p on its leader's broker, 2 p + 1 on a follower's; the last, none
    )
    role_goals: BoolArray  # (R,) True if the load differs between leader and follower
    size: FloatArray  # (P,)
    transfer_cost: FloatArray  # (P,) bytes of a copy that count for what brokers may receive and send, scaled as sizes
    rack_limit: IndexArray  # (P,) replicas allowed in one rack, and from FULL_RACKS on in how many racks so many
    partition_sets: IndexArray  # (P,)
    lead_rows: IndexArray  # (P,) row of `lead_ranks` for its leader, or FIXED: nothing about it may change
    movable: BoolArray  # (P,) replicas may go elsewhere
    may_change_leader: BoolArray  # (P,) another replica may lead
    pinned: BoolArray  # (S,) the replica stays on its initial broker
    racks: IndexArray  # (N,) brokers without a rack have one each
    broker_sets: IndexArray  # (N,)
    receiving: BoolArray  # (N,)
    staying: BoolArray  # (N,) may hold replicas in the end
    demoted: BoolArray  # (N,) may not even go on leading
    lead_ranks: IndexArray  # (K * N,) row by row, rank of a broker's rack among those preferred for leaders, or NO_RANK


FULL_RACKS = 16
MOST_IN_RACK = (1 << FULL_RACKS) - 1
"""Parts of `Encoding.rack_limit`: the first bit of the number of racks, and the mask of the replicas in one."""

NO_RANK = 1 << 30
"""In `Encoding.lead_ranks`: the broker may not lead."""


FIXED = -1
"""In `Encoding.lead_rows`: nothing about the partition's leader may change."""


class State(NamedTuple):
    """Arrays that the search changes."""

    places: IndexArray  # (S,) broker index, UNPLACED or REMOVED
    leaders: IndexArray  # (P,) slot that leads
    shortfall: FloatArray  # (N, R) load missing to the lower end of the band; negative above it
    headroom: FloatArray  # (N, R) load left to the upper end of the band; negative beyond it
    spare_capacity: FloatArray  # (N, R) load left to the capacity
    budget_left: FloatArray  # (3,) rest of the budget: bytes (scaled as sizes), moves, leader changes
    bytes_in_left: FloatArray  # (N,) bytes that a broker may still receive, scaled as sizes
    bytes_out_left: FloatArray  # (N,) bytes that a leader may still send
    rng_state: BytesArray  # (1,) state of the number generator


class Destinations(NamedTuple):
    """Possible destinations: the first `used[0]` of `brokers`."""

    used: IndexArray  # (1,)
    brokers: IndexArray  # (N,)
    deficit: FloatArray  # (N,) sum of a broker's deficits over goals: an upper bound of any replica's relief
    wants: FloatArray  # (N, R) 1 if a load relieves the broker, -1 if it is over its band, 0 between
    positions: IndexArray  # (N,) index of a broker among these, or UNPLACED
    largest_shortfall: FloatArray  # (R,) largest shortfall of any of them


class SlotsByBroker(NamedTuple):
    """Slots by broker at some time: those of broker b are `slots[starts[b]:starts[b + 1]]`."""

    starts: IndexArray  # (N + 1,)
    slots: IndexArray


def candidates_for(encoding: Encoding) -> Destinations:
    """All receiving brokers as candidates, whatever they lack."""
    brokers, goals = len(encoding.racks), encoding.loads.shape[1]
    receivers = np.flatnonzero(encoding.receiving)
    return Destinations(
        used=np.array([len(receivers)]),
        brokers=np.pad(receivers, (0, brokers - len(receivers))),
        deficit=np.full(brokers, np.inf),
        wants=np.ones((brokers, goals)),
        positions=np.full(brokers, UNPLACED, np.int64),
        largest_shortfall=np.zeros(goals),
    )


def slots_by_broker(places: IndexArray, brokers: int) -> SlotsByBroker:
    """Group the slots by their present broker."""
    slots = np.argsort(places, kind="stable")
    return SlotsByBroker(np.searchsorted(places[slots], np.arange(brokers + 1)), slots)


def loads_of(encoding: Encoding, state: State) -> FloatArray:
    """Compute the load of every broker from scratch, shape (N, R)."""
    brokers, goals = state.shortfall.shape
    placed = np.flatnonzero(state.places >= 0)
    owners, places = encoding.owners[placed], state.places[placed]
    rows = 2 * owners + (state.leaders[owners] != placed)
    loads = np.empty((brokers, goals))
    for goal in range(goals):
        loads[:, goal] = np.bincount(places, encoding.loads[rows, goal], brokers)
    return loads


# Single changes, compiled.
#
# A change is judged by its *gain*: the decrease of the sum, over brokers and goals, of the load outside the bands. It
# is the sum over the two brokers concerned, a handful of operations per goal; nothing is ever recomputed as a whole.
# Added and removed loads are rows of `Encoding.loads`, possibly the zero row.

NO_BROKER = -1
TINY = 4e-10  # below the tolerance of the check, or it would report a miss that the search accepts
UNLIMITED = float("inf")
BYTES, MOVES, LEADER_CHANGES = 0, 1, 2  # indices in State.budget_left


@compiled_part
def gain(encoding: Encoding, state: State, broker: int, added: int, removed: int) -> float:
    """Decrease of a broker's distance from its bands by an added and a removed load; negative if it grows."""
    gained = 0.0
    for goal in range(encoding.loads.shape[1]):
        change = encoding.loads[added, goal] - encoding.loads[removed, goal]
        shortfall, headroom = state.shortfall[broker, goal], state.headroom[broker, goal]
        gained += max(shortfall, 0.0) + max(-headroom, 0.0) - max(shortfall - change, 0.0) - max(change - headroom, 0.0)
    return gained


@compiled_part
def shift(encoding: Encoding, state: State, broker: int, added: int, removed: int) -> None:
    """Add one load to a broker and remove another."""
    for goal in range(encoding.loads.shape[1]):
        change = encoding.loads[added, goal] - encoding.loads[removed, goal]
        state.shortfall[broker, goal] -= change
        state.headroom[broker, goal] -= change
        state.spare_capacity[broker, goal] -= change


@compiled_part
def fits(encoding: Encoding, state: State, broker: int, added: int, removed: int) -> bool:
    """True if a broker's capacity allows the change; a full broker still accepts loads that do not grow."""
    for goal in range(encoding.loads.shape[1]):
        change = encoding.loads[added, goal] - encoding.loads[removed, goal]
        if change > 0.0 and change > state.spare_capacity[broker, goal] + TINY:
            return False
    return True


@compiled_part
def load_of(encoding: Encoding, state: State, slot: int) -> int:
    """Row of the load of a slot's replica in its present role."""
    partition: int = encoding.owners[slot]
    return leading(partition) if state.leaders[partition] == slot else following(partition)


@compiled_part
def leading(partition: int) -> int:
    """Row of the load of a partition's leader."""
    return 2 * partition


@compiled_part
def following(partition: int) -> int:
    """Row of the load of each follower of a partition."""
    return 2 * partition + 1


@compiled_part
def nothing(encoding: Encoding) -> int:
    """Row without any load."""
    rows: int = encoding.loads.shape[0]
    return rows - 1


@compiled_part
def is_initial(encoding: Encoding, partition: int, broker: int) -> bool:
    """True if a broker holds a replica of the partition at present, so that placing one there copies nothing."""
    found = False
    for slot in range(encoding.offsets[partition], encoding.offsets[partition + 1]):
        found |= bool(encoding.initial_brokers[slot] == broker)
    return found


@compiled_part
def may_lead(encoding: Encoding, broker: int) -> bool:
    """True if a broker may lead partitions."""
    return bool(encoding.lead_ranks[broker] < NO_RANK)


@compiled_part
def may_be_given(encoding: Encoding, partition: int, broker: int) -> bool:
    """True if a broker may lead partitions, and its copy of this one is not known to be lost or out of sync."""
    return may_lead(encoding, broker) and not is_behind(encoding, partition, broker)


@compiled_part
def is_behind(encoding: Encoding, partition: int, broker: int) -> bool:
    """True if the copy that a broker holds at present is lost or not in sync: Kafka elects none of those."""
    behind = False
    for slot in range(encoding.offsets[partition], encoding.offsets[partition + 1]):
        lost = encoding.lost_on[slot] == LAGS or encoding.lost_on[slot] == broker
        behind |= bool(lost and encoding.initial_brokers[slot] == broker)
    return behind


@compiled_part
def rank_of(encoding: Encoding, partition: int, broker: int) -> int:
    """Rank of a broker's rack among those preferred for the partition's leader; 0 if none are."""
    return int(encoding.lead_ranks[encoding.lead_rows[partition] * encoding.racks.shape[0] + broker])


@compiled_part
def may_host(encoding: Encoding, state: State, slot: int, broker: int) -> bool:
    """True if the rules allow a slot's replica on a broker, given the partition's other replicas."""
    partition = encoding.owners[slot]
    broker_set = encoding.partition_sets[partition]
    if broker_set >= 0 and encoding.broker_sets[broker] != broker_set:
        return False
    leads = state.leaders[partition] == slot
    if leads:
        if not may_lead(encoding, broker):
            return False
        origin = state.places[slot]
        if origin >= 0 and rank_of(encoding, partition, broker) > rank_of(encoding, partition, origin):
            return False
    beside = 0
    for other in range(encoding.offsets[partition], encoding.offsets[partition + 1]):
        place = state.places[other]
        lags = leads and encoding.lost_on[other] == LAGS and encoding.initial_brokers[other] == broker
        if lags or encoding.lost_on[other] == broker:
            return False
        if other == slot or place < 0:
            continue
        if place == broker:
            return False
        if encoding.racks[place] == encoding.racks[broker]:
            beside += 1
    most = encoding.rack_limit[partition] & MOST_IN_RACK
    if most > 1 and beside == most - 1:
        most -= int(full_racks(encoding, state, slot, most) >= encoding.rack_limit[partition] >> FULL_RACKS)
    return bool(beside < most)


@compiled_part
def full_racks(encoding: Encoding, state: State, slot: int, most: int) -> int:
    """Count racks with so many replicas of a slot's partition, without the slot itself."""
    partition = encoding.owners[slot]
    count = 0
    for one in range(encoding.offsets[partition], encoding.offsets[partition + 1]):
        if one == slot or state.places[one] < 0:
            continue
        rack, before = encoding.racks[state.places[one]], 0
        for other in range(encoding.offsets[partition], one):
            if other != slot and state.places[other] >= 0 and encoding.racks[state.places[other]] == rack:
                before += 1
        count += int(before == most - 1)
    return count


@compiled_part
def may_leave(encoding: Encoding, state: State, slot: int) -> bool:
    """True if a slot's replica may move; if it leads, leadership moves along."""
    partition = encoding.owners[slot]
    if encoding.pinned[slot] or not encoding.movable[partition]:
        return False
    # Leadership that has left its initial broker already may move on.
    leads_initially = state.leaders[partition] == slot and state.places[slot] == encoding.initial_leaders[partition]
    return bool(encoding.may_change_leader[partition] or not leads_initially)


@compiled_part
def copy_cost(encoding: Encoding, partition: int, broker: int) -> float:
    """Scaled bytes of placing a replica on a broker: 0 if the broker has one now."""
    return 0.0 if broker < 0 or is_initial(encoding, partition, broker) else encoding.size[partition]


@compiled_part
def affordable(encoding: Encoding, state: State, slot: int, broker: int) -> bool:
    """True if the budget allows moving a slot's replica to a broker."""
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
        and transfer_cost <= state.bytes_out_left[encoding.senders[partition]] + TINY
    )


@compiled_part
def charge(encoding: Encoding, state: State, slot: int, sign: float) -> None:
    """Charge the budget for a slot's replica in its place (sign 1), or refund it (sign -1)."""
    partition, place = encoding.owners[slot], state.places[slot]
    if place < 0 or is_initial(encoding, partition, place):
        return
    transfer_cost = sign * encoding.transfer_cost[partition]
    state.budget_left[BYTES] -= sign * encoding.size[partition]
    state.budget_left[MOVES] -= sign
    state.bytes_in_left[place] -= transfer_cost
    state.bytes_out_left[encoding.senders[partition]] -= transfer_cost


@compiled_part
def charge_leader(encoding: Encoding, state: State, partition: int, sign: float) -> None:
    """Charge the budget for a changed leader (sign 1), or refund it (sign -1)."""
    place = state.places[state.leaders[partition]]
    if place >= 0 and place != encoding.initial_leaders[partition]:
        state.budget_left[LEADER_CHANGES] -= sign


@compiled_part
def place(encoding: Encoding, state: State, slot: int, broker: int) -> None:
    """Put a slot's replica on a broker, or nowhere; update loads and budget."""
    partition, load = encoding.owners[slot], load_of(encoding, state, slot)
    leads = state.leaders[partition] == slot
    if leads:
        charge_leader(encoding, state, partition, -1.0)
    charge(encoding, state, slot, -1.0)
    if state.places[slot] >= 0:
        shift(encoding, state, state.places[slot], nothing(encoding), load)
    state.places[slot] = broker
    if broker >= 0:
        shift(encoding, state, broker, load, nothing(encoding))
    charge(encoding, state, slot, 1.0)
    if leads:
        charge_leader(encoding, state, partition, 1.0)


@compiled_part
def lead(encoding: Encoding, state: State, slot: int) -> None:
    """Let a slot's replica lead its partition; update loads and budget."""
    partition = encoding.owners[slot]
    charge_leader(encoding, state, partition, -1.0)
    former = state.places[state.leaders[partition]]
    if former >= 0:
        shift(encoding, state, former, following(partition), leading(partition))
    state.leaders[partition] = slot
    if state.places[slot] >= 0:
        shift(encoding, state, state.places[slot], leading(partition), following(partition))
    charge_leader(encoding, state, partition, 1.0)


# --- destinations -----------------------------------------------------------------------------------------------------


@compiled_part
def look_below(encoding: Encoding, state: State, below: Destinations) -> None:
    """Set the candidates to the receivers that are below a band now."""
    brokers, goals = state.shortfall.shape
    for goal in range(goals):
        below.largest_shortfall[goal] = 0.0
    count = 0
    for broker in range(brokers):
        below.positions[broker] = NO_BROKER
        lacks = False
        for goal in range(goals):
            lacks |= state.shortfall[broker, goal] > TINY
        if lacks and encoding.receiving[broker]:
            below.brokers[count], below.positions[broker] = broker, count
            update_deficit(state, below, broker)
            for goal in range(goals):
                below.largest_shortfall[goal] = max(below.largest_shortfall[goal], state.shortfall[broker, goal])
            count += 1
    below.used[0] = count


@compiled_part
def update_deficit(state: State, below: Destinations, broker: int) -> None:
    """Update a broker's deficit after a change, if it is a candidate."""
    position = below.positions[broker]
    if position >= 0:
        below.deficit[position] = 0.0
        for goal in range(state.shortfall.shape[1]):
            lacking, left = state.shortfall[broker, goal], state.headroom[broker, goal]
            below.deficit[position] += max(lacking, 0.0)
            below.wants[position, goal] = 1.0 if lacking > 0.0 else -1.0 if left <= 0.0 else 0.0


@compiled_part
def receiving_gain(encoding: Encoding, state: State, broker: int, load: int) -> float:
    """Return `gain` of adding a load, with less computation."""
    gained = 0.0
    for goal in range(encoding.loads.shape[1]):
        added = encoding.loads[load, goal]
        gained += min(max(state.shortfall[broker, goal], 0.0), added)
        gained -= max(added - max(state.headroom[broker, goal], 0.0), 0.0)
    return gained


@compiled_part
def best_destination(
    encoding: Encoding, state: State, slot: int, candidates: Destinations, bounds: tuple[float, float]
) -> int:
    """The candidate that a replica relieves most, or NO_BROKER.

    `bounds`: the relief must exceed the first; the first candidate with the second is taken at once. The scan starts at
    another candidate for each slot, so that all are served evenly. Most are skipped by an upper bound of their relief,
    which takes a tenth of the time of computing it.
    """
    load = load_of(encoding, state, slot)
    best, most = NO_BROKER, bounds[0]
    count = candidates.used[0]
    index = slot % count - 1 if count else -1
    for _ in range(count):
        index = index + 1 if index + 1 < count else 0
        if candidates.deficit[index] <= most:
            continue
        at_most = 0.0
        for goal in range(encoding.loads.shape[1]):
            at_most += candidates.wants[index, goal] * encoding.loads[load, goal]
        broker = candidates.brokers[index]
        if at_most <= most or broker == state.places[slot]:
            continue
        gained = receiving_gain(encoding, state, broker, load)
        if (
            gained > most
            and fits(encoding, state, broker, load, nothing(encoding))
            and affordable(encoding, state, slot, broker)
            and may_host(encoding, state, slot, broker)
        ):
            best, most = broker, gained
            if gained >= bounds[1]:
                break
    return best


@compiled_part
def most_headroom(encoding: Encoding, state: State, slot: int, candidates: Destinations) -> int:
    """The candidate that stays farthest below the upper ends of its bands with another replica, or NO_BROKER."""
    load = load_of(encoding, state, slot)
    best, most = NO_BROKER, -TINY
    for index in range(candidates.used[0]):
        broker = candidates.brokers[index]
        left = UNLIMITED
        for goal in range(encoding.loads.shape[1]):
            left = min(left, state.headroom[broker, goal] - encoding.loads[load, goal])
            if left <= most:
                break
        if (
            left > most
            and broker != state.places[slot]
            and affordable(encoding, state, slot, broker)
            and may_host(encoding, state, slot, broker)
        ):
            best, most = broker, left
    return best
