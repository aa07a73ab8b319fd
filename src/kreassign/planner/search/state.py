"""The arrays that the compiled search works on: what stays (`Frame`) and what it changes (`State`).

Loads are scaled so that 1.0 is what a broker carries on the average, times the weight of the goal; sizes so that 1.0
is the mean number of bytes on a broker. A *slot* is a place in a replica list: slots of partition p run from
`offsets[p]` to `offsets[p + 1]`, as many as the larger of its present and its wanted replication factor.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from kreassign.planner.problem.arrays import BoolArray, BytesArray, FloatArray, IndexArray

EMPTY = -1
"""In `State.places`: a replica that has no broker yet."""
GONE = -2
"""In `State.places`: a replica that is given up."""


class Frame(NamedTuple):
    """What the search does not change. N brokers, P partitions, S slots, R goals."""

    offsets: IndexArray  # (P + 1,)
    owners: IndexArray  # (S,) partition of each slot
    homes: IndexArray  # (S,) broker that holds the replica at present, or EMPTY
    lost: IndexArray  # (S,) broker that lost its copy and cannot be given another, or EMPTY
    heads: IndexArray  # (P,) broker that leads at present
    as_leader: FloatArray  # (P, R) load on the leader's broker
    as_follower: FloatArray  # (P, R) load on each follower's broker
    role_goals: BoolArray  # (R,) whether leading brings another load than following
    size: FloatArray  # (P,)
    toll: FloatArray  # (P,) what a copy takes of what brokers may receive and send, scaled as sizes
    rack_limit: IndexArray  # (P,) replicas allowed in one rack
    partition_sets: IndexArray  # (P,)
    fixed: BoolArray  # (P,) nothing about the partition may change
    movable: BoolArray  # (P,) replicas may go elsewhere
    relead: BoolArray  # (P,) another replica may lead
    racks: IndexArray  # (N,) brokers without a rack have one each
    broker_sets: IndexArray  # (N,)
    receiving: BoolArray  # (N,)
    staying: BoolArray  # (N,) may hold replicas in the end
    leading: BoolArray  # (N,)


class State(NamedTuple):
    """What the search changes."""

    places: IndexArray  # (S,) broker index, EMPTY or GONE
    leaders: IndexArray  # (P,) slot that leads
    lack: FloatArray  # (N, R) how much is missing to the lower end of the band; negative above it
    room: FloatArray  # (N, R) how much is left to the upper end; negative beyond it
    spare: FloatArray  # (N, R) how much is left to the capacity
    purse: FloatArray  # (3,) what is left of the budget: bytes (scaled as sizes), moves, leader changes
    intake: FloatArray  # (N,) bytes that a broker may still receive, scaled as sizes
    outlet: FloatArray  # (N,) bytes that a leader may still send
    dice: BytesArray  # (1,) state of the number generator


class Needy(NamedTuple):
    """Brokers to choose a destination from."""

    brokers: IndexArray
    hunger: FloatArray  # sum over goals of what each lacks: no replica relieves it more
    seats: IndexArray  # (N,) where a broker stands among these, or EMPTY
    largest: FloatArray  # (R,) the most that any of them lacks


class Residents(NamedTuple):
    """The slots on each broker at some time: those of broker b are `slots[starts[b]:starts[b + 1]]`."""

    starts: IndexArray  # (N + 1,)
    slots: IndexArray


def residents_of(places: IndexArray, brokers: int) -> Residents:
    """Who is where now."""
    slots = np.argsort(places, kind="stable")
    return Residents(np.searchsorted(places[slots], np.arange(brokers + 1)), slots)


def loads_of(frame: Frame, state: State) -> FloatArray:
    """The load of every broker, shape (N, R), from scratch."""
    brokers, goals = state.lack.shape
    placed = np.flatnonzero(state.places >= 0)
    owners, places = frame.owners[placed], state.places[placed]
    leads = state.leaders[owners] == placed
    loads = np.empty((brokers, goals))
    for goal in range(goals):
        brought = np.where(leads, frame.as_leader[owners, goal], frame.as_follower[owners, goal])
        loads[:, goal] = np.bincount(places, brought, brokers)
    return loads
