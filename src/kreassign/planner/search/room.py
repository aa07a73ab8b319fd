"""Making room where the forced changes alone do not fit: the only way to more changes than the task demands.

A replica that must move goes first to where it exceeds a hard limit least. Then brokers over a limit are relieved: by
what must move anyway; where that is not enough by followers that could stay; and by leaders last. At the end
everything goes back that the limits do not hold out, so each move beyond the task's is needed by itself.
"""

from __future__ import annotations

import numpy as np

from kreassign.planner.arrays import BoolArray, IndexArray
from kreassign.planner.search.compiled import kernels, loops
from kreassign.planner.search.compiled.state import REMOVED, Encoding, SlotsByBroker, State, slots_by_broker
from kreassign.planner.search.encoding import Search, crowding, may_stay_or_go, refresh

RELIEF_THRESHOLDS = (1.0, 0.1, 0.0)
EXCHANGE_ATTEMPTS = 1_500
PINNED_NOWHERE = -3


def make_room(search: Search, unplaced: IndexArray) -> IndexArray:
    """Place these slots whatever the limits, then relieve who is over one; what no rule lets anywhere is returned.

    Whether all limits are kept afterwards is for the caller to see: `is_overfull`.
    """
    state = search.state
    loose = _by_limits(state)._replace(spare_capacity=np.full_like(state.spare_capacity, np.inf))
    loops.fill_pass(search.encoding, loose, unplaced)
    state.spare_capacity[:] = loose.headroom
    relieve(search)
    return unplaced[state.places[unplaced] < 0]


def relieve(search: Search) -> None:
    """Bring brokers below their limits, by as little as does it; what then is away from its broker may go on."""
    state, encoding = search.state, search.encoding
    stay, crowded = np.zeros_like(encoding.may_change_leader), _in_crowds(encoding, state)
    may_lead = search.problem.partitions.may_move & search.problem.rules.leaders
    for pinned, leaders in ((encoding.pinned, stay), (crowded, stay), (crowded, may_lead)):
        if is_overfull(search):
            _relieve(encoding._replace(pinned=pinned, may_change_leader=leaders), state)
    _go_back(search)
    search.encoding = encoding._replace(pinned=encoding.pinned & (state.places == encoding.initial_brokers))


def go_back(search: Search) -> None:
    """Take back every move that neither the task nor a limit demands."""
    encoding = search.encoding
    away = (search.state.places >= 0) & (search.state.places != encoding.initial_brokers)
    if (away & _could_stay(encoding)).any():
        _go_back(search)


def is_overfull(search: Search) -> bool:
    """Whether any broker is over a hard limit."""
    return bool((search.state.spare_capacity < -kernels.TINY).any())


def around(encoding: Encoding, state: State) -> tuple[SlotsByBroker, IndexArray]:
    """The slots on each broker, and all of them, to draw from: without those that stay where they are."""
    if not encoding.pinned.any():
        return slots_by_broker(state.places, len(encoding.racks)), np.arange(len(state.places))
    free = ~encoding.pinned
    masked = np.where(free, state.places, PINNED_NOWHERE)
    return slots_by_broker(masked, len(encoding.racks)), np.flatnonzero(free & (state.places >= 0))


def attempts(encoding: Encoding, partners: IndexArray) -> int:
    """How many exchanges to draw for each broker: no more than there are pairs, where few replicas may move."""
    return min(EXCHANGE_ATTEMPTS, len(partners) ** 2) if encoding.pinned.any() else EXCHANGE_ATTEMPTS


def put_back(search: Search) -> None:
    """After a start with another plan: what copied in the place of a replica that may stay is undone."""
    encoding, state = search.encoding, search.state
    away = encoding.pinned & (state.places != encoding.initial_brokers)
    copied = (state.places >= 0) & (state.places != encoding.initial_brokers)
    heads = encoding.offsets[:-1]
    deposed = encoding.pinned[heads] & (state.leaders != heads) & (state.places[heads] != REMOVED)
    undone = deposed | (_any(encoding, away) & _any(encoding, copied))
    slots = np.flatnonzero(undone[encoding.owners])
    if len(slots):
        loops.adopt_pass(encoding, state, slots, encoding.initial_brokers[slots], heads[undone])


def _any(encoding: Encoding, slots: BoolArray) -> BoolArray:
    """Partitions that have one of these slots, (P,)."""
    result: BoolArray = np.bincount(encoding.owners[slots], minlength=len(encoding.offsets) - 1) > 0
    return result


def _relieve(encoding: Encoding, state: State) -> None:
    hard = _by_limits(state)
    for threshold in RELIEF_THRESHOLDS:
        loops.move_pass(encoding, hard, threshold)
    for threshold in RELIEF_THRESHOLDS:
        if (hard.headroom < -kernels.TINY).any():
            by_broker, partners = around(encoding, state)
            loops.exchange_pass(encoding, hard, by_broker, partners, attempts(encoding, partners), threshold)


def _go_back(search: Search) -> None:
    encoding, state = search.encoding, search.state
    # What could have stayed comes first, or a replica that must move would take its place.
    order = np.lexsort((-encoding.size[encoding.owners], ~_could_stay(encoding)))
    order = order[~may_stay_or_go(search.problem, encoding)[order]]
    while loops.return_pass(encoding, _by_limits(state), order):
        pass
    loops.restore_leaders_pass(encoding, state)
    refresh(search.problem, encoding, state)


def _in_crowds(encoding: Encoding, state: State) -> BoolArray:
    """Replicas of partitions that have too many in a rack now: those could not come back, as their rack is full."""
    initial = encoding.initial_brokers
    partitions = encoding.owners[crowding(encoding, state._replace(places=initial), initial >= 0)]
    result: BoolArray = np.isin(encoding.owners, partitions) & encoding.pinned
    return result


def _could_stay(encoding: Encoding) -> BoolArray:
    """Slots of which the initial broker may hold replicas in the end."""
    initial = encoding.initial_brokers
    result: BoolArray = (initial >= 0) & encoding.staying[np.maximum(initial, 0)]
    return result


def _by_limits(state: State) -> State:
    """The same state with the hard limits in place of the bands: only what exceeds them counts as missed."""
    return state._replace(shortfall=np.full_like(state.shortfall, -np.inf), headroom=state.spare_capacity.copy())
