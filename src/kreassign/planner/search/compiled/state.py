"""The arrays that the compiled search works on: what stays (`Encoding`) and what it changes (`State`).

Loads are scaled so that 1.0 is what a broker carries on the average, times the weight of the goal; sizes so that 1.0
is the mean number of bytes on a broker. A *slot* is a place in a replica list: slots of partition p run from
`offsets[p]` to `offsets[p + 1]`, as many as the larger of its present and its wanted replication factor.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from kreassign.planner.arrays import BoolArray, BytesArray, FloatArray, IndexArray

UNPLACED = -1
"""In `State.places`: a replica that has no broker yet."""
REMOVED = -2
"""In `State.places`: a replica that is given up."""


class Encoding(NamedTuple):
    """What the search does not change. N brokers, P partitions, S slots, R goals.

    Every array and dimension more costs something at each of many calls: 10 % of a search for two arrays.
    """

    offsets: IndexArray  # (P + 1,)
    owners: IndexArray  # (S,) partition of each slot
    initial_brokers: IndexArray  # (S,) broker that holds the replica at present, or UNPLACED
    lost_on: IndexArray  # (S,) broker that lost its copy and cannot be given another, or UNPLACED
    initial_leaders: IndexArray  # (P,) broker that leads at present
    loads: (
        FloatArray  # (2 P + 1, R) of partition p: 2 p on its leader's broker, 2 p + 1 on a follower's; the last, none
    )
    role_goals: BoolArray  # (R,) whether leading brings another load than following
    size: FloatArray  # (P,)
    transfer_cost: FloatArray  # (P,) what a copy takes of what brokers may receive and send, scaled as sizes
    rack_limit: IndexArray  # (P,) replicas allowed in one rack
    partition_sets: IndexArray  # (P,)
    lead_rows: IndexArray  # (P,) row of `lead_ranks` for its leader, or FIXED: nothing about it may change
    movable: BoolArray  # (P,) replicas may go elsewhere
    may_change_leader: BoolArray  # (P,) another replica may lead
    pinned: BoolArray  # (S,) the replica stays on its initial broker
    racks: IndexArray  # (N,) brokers without a rack have one each
    broker_sets: IndexArray  # (N,)
    receiving: BoolArray  # (N,)
    staying: BoolArray  # (N,) may hold replicas in the end
    lead_ranks: IndexArray  # (K * N,) row by row, how far down the racks preferred for leaders a broker is, or NO_RANK


NO_RANK = 1 << 30
"""In `Encoding.lead_ranks`: the broker may not lead."""


FIXED = -1
"""In `Encoding.lead_rows`."""


class State(NamedTuple):
    """What the search changes."""

    places: IndexArray  # (S,) broker index, UNPLACED or REMOVED
    leaders: IndexArray  # (P,) slot that leads
    shortfall: FloatArray  # (N, R) how much is missing to the lower end of the band; negative above it
    headroom: FloatArray  # (N, R) how much is left to the upper end; negative beyond it
    spare_capacity: FloatArray  # (N, R) how much is left to the capacity
    budget_left: FloatArray  # (3,) what is left of the budget: bytes (scaled as sizes), moves, leader changes
    bytes_in_left: FloatArray  # (N,) bytes that a broker may still receive, scaled as sizes
    bytes_out_left: FloatArray  # (N,) bytes that a leader may still send
    rng_state: BytesArray  # (1,) state of the number generator


class Candidates(NamedTuple):
    """Brokers to choose a destination from: the first `used[0]` ones of `brokers`."""

    used: IndexArray  # (1,)
    brokers: IndexArray  # (N,)
    deficit: FloatArray  # (N,) sum over goals of what each lacks: no replica relieves it more
    wants: FloatArray  # (N, R) 1 where a load relieves it, -1 where it is over its band, 0 between the two
    positions: IndexArray  # (N,) where a broker stands among these, or UNPLACED
    largest_shortfall: FloatArray  # (R,) the most that any of them lacks


class SlotsByBroker(NamedTuple):
    """The slots on each broker at some time: those of broker b are `slots[starts[b]:starts[b + 1]]`."""

    starts: IndexArray  # (N + 1,)
    slots: IndexArray


def candidates_for(encoding: Encoding) -> Candidates:
    """All receivers, whatever they lack."""
    brokers, goals = len(encoding.racks), encoding.loads.shape[1]
    receivers = np.flatnonzero(encoding.receiving)
    return Candidates(
        used=np.array([len(receivers)]),
        brokers=np.pad(receivers, (0, brokers - len(receivers))),
        deficit=np.full(brokers, np.inf),
        wants=np.ones((brokers, goals)),
        positions=np.full(brokers, UNPLACED, np.int64),
        largest_shortfall=np.zeros(goals),
    )


def slots_by_broker(places: IndexArray, brokers: int) -> SlotsByBroker:
    """The slots on each broker now."""
    slots = np.argsort(places, kind="stable")
    return SlotsByBroker(np.searchsorted(places[slots], np.arange(brokers + 1)), slots)


def loads_of(encoding: Encoding, state: State) -> FloatArray:
    """The load of every broker, shape (N, R), from scratch."""
    brokers, goals = state.shortfall.shape
    placed = np.flatnonzero(state.places >= 0)
    owners, places = encoding.owners[placed], state.places[placed]
    rows = 2 * owners + (state.leaders[owners] != placed)
    loads = np.empty((brokers, goals))
    for goal in range(goals):
        loads[:, goal] = np.bincount(places, encoding.loads[rows, goal], brokers)
    return loads
