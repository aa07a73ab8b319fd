"""Encode a problem as the arrays of the search, and decode a state to an assignment."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from kreassign.planner.arrays import NOWHERE, BoolArray, FloatArray, IndexArray, IntArray, pairs
from kreassign.planner.problem.problem import ANY_RACKS, Assignment, Problem, RackLimits
from kreassign.planner.search.compiled import loops
from kreassign.planner.search.compiled.kernels import (
    FIXED,
    FULL_RACKS,
    LAGS,
    MOST_IN_RACK,
    NO_RANK,
    REMOVED,
    UNPLACED,
    Encoding,
    State,
    loads_of,
)

SEED = 20_260_101
UNLIMITED = np.inf
ROUNDING_MARGIN = 2e-11  # so narrow that all bands of two brokers together stay below what the search rounds to zero
TOPIC_WEIGHT = 10.0
LEADS = -9  # before any place in the order of a list
NEVER = 1e18  # factor of the transfer cost of a copy that never catches up


@dataclass(slots=True, eq=False)
class Search:
    """A problem, its arrays, and the partitions whose forced changes did not fit the budget.

    `order` (S) is the place of each slot in its list, not counting the leader; None for the order of the slots.
    """

    problem: Problem
    encoding: Encoding
    state: State
    undone: IndexArray
    order: IndexArray | None = None


def encode(problem: Problem) -> Search:
    """Encode a problem, with every replica in its present place."""
    unit_bytes = _unit_bytes(problem)
    encoding = _encoding(problem, unit_bytes)
    state = _state(problem, encoding, unit_bytes)
    if problem.rules.only_forced:
        encoding = encoding._replace(pinned=_staying(problem, encoding, state))
        # With `only_forced`, a broker that is over a limit already is left so: it gets no more, and keeps what it has.
        np.maximum(state.spare_capacity, 0.0, out=state.spare_capacity)
    return Search(problem, encoding, state, np.zeros(0, np.int64))


def decode(search: Search) -> Assignment:
    """Decode a state to replica lists, the leader first.

    Staying replicas keep their place in the list, and a new replica takes the place of one that leaves, unless the
    search has an order of its own.
    """
    problem, encoding, state = search.problem, search.encoding, search.state
    ordered = _places_and_order(search) if search.order is not None else None
    _return_to_slots(encoding, state)
    kept = state.places >= 0
    # 32-bit integers: a plan for millions of replicas takes most of its memory here.
    owners = encoding.owners.astype(np.int32)
    rank = np.arange(len(owners), dtype=np.int32) - encoding.offsets.astype(np.int32)[owners]
    if ordered is not None:
        keys = pairs(encoding.owners, state.places, len(encoding.racks))
        rank[kept] = ordered[1][np.searchsorted(ordered[0], keys[kept])]
    rank[state.leaders] = LEADS
    slots = np.flatnonzero(kept)
    chosen = slots[np.lexsort((rank[slots], owners[slots]))]
    counts = np.bincount(encoding.owners[chosen], minlength=len(problem.partitions))
    offsets = np.concatenate(([0], np.cumsum(counts))).astype(np.int32)
    replicas = state.places[chosen].astype(np.int32)
    stays = replicas == encoding.initial_brokers[chosen]
    log_dirs = np.where(stays, _dirs_by_slot(problem, encoding)[chosen], NOWHERE).astype(np.int32)
    return Assignment(offsets, replicas, log_dirs)


def _places_and_order(search: Search) -> tuple[IndexArray, IndexArray]:
    """Each (partition, broker) as one number, ascending, and its place in the order of the search."""
    kept = np.flatnonzero(search.state.places >= 0)
    keys = pairs(search.encoding.owners, search.state.places, len(search.encoding.racks))[kept]
    ascending = np.argsort(keys)
    places: IndexArray = np.asarray(search.order)[kept[ascending]]
    return keys[ascending], places


def copy_of(state: State) -> State:
    """A copy of all arrays, to return to."""
    return state._replace(**{name: values.copy() for name, values in state._asdict().items()})


def put_back(state: State, before: State) -> None:
    """Set all arrays to what they were."""
    for values, former in zip(state, before, strict=True):
        values[:] = former


def adopt(search: Search, assignment: Assignment) -> None:
    """Start from another plan: place its replicas and charge the budget; the initial brokers stay the same."""
    encoding, state = search.encoding, search.state
    slots: list[int] = []
    brokers: list[int] = []
    leaders: list[int] = []
    for partition in _different(encoding, assignment).tolist():
        span = range(encoding.offsets[partition], encoding.offsets[partition + 1])
        wanted = assignment.list_of(partition).tolist()
        places = _in_slots(encoding.initial_brokers[span.start : span.stop].tolist(), wanted)
        slots += span
        brokers += places
        leaders.append(span.start + places.index(wanted[0]))
    # Remove replicas before adding others, so that no room on a broker is counted twice.
    order = np.argsort(np.array(brokers, np.int64) >= 0, kind="stable")
    loops.adopt_pass(
        encoding,
        state,
        np.array(slots, np.int64)[order],
        np.array(brokers, np.int64)[order],
        np.array(leaders, np.int64),
    )


def _different(encoding: Encoding, assignment: Assignment) -> IndexArray:
    """Indices of the partitions whose list differs from the present one."""
    spans, counts = np.diff(encoding.offsets), np.diff(assignment.offsets)
    same_size = spans == counts
    slots = np.flatnonzero(same_size[encoding.owners])
    within = slots - encoding.offsets[encoding.owners[slots]]
    theirs = assignment.replicas[assignment.offsets[encoding.owners[slots]] + within]
    different = ~same_size
    different[encoding.owners[slots][theirs != encoding.initial_brokers[slots]]] = True
    return np.flatnonzero(different & (counts > 0))


def _in_slots(initial_brokers: list[int], wanted: list[int]) -> list[int]:
    """Target broker of each slot: its initial broker if that is wanted, else a new one.

    An empty slot stays unplaced if no new broker is left for it.
    """
    newcomers = iter([broker for broker in wanted if broker not in initial_brokers])
    return [
        broker if broker >= 0 and broker in wanted else next(newcomers, UNPLACED if broker == UNPLACED else REMOVED)
        for broker in initial_brokers
    ]


def _return_to_slots(encoding: Encoding, state: State) -> None:
    """Return each replica on a present broker of its partition to the slot of the present replica."""
    brokers = len(encoding.racks)
    initial = np.sort(pairs(encoding.owners, np.maximum(encoding.initial_brokers, 0), brokers))
    key = pairs(encoding.owners, state.places, brokers)
    nearest = np.minimum(np.searchsorted(initial, key), len(initial) - 1)
    strayed = (state.places >= 0) & (state.places != encoding.initial_brokers) & (key == initial[nearest])
    for partition in np.unique(encoding.owners[strayed]):
        span = slice(encoding.offsets[partition], encoding.offsets[partition + 1])
        places, own = state.places[span].tolist(), encoding.initial_brokers[span].tolist()
        leader = places[state.leaders[partition] - span.start]
        newcomers = iter([place for place in places if place >= 0 and place not in own])
        settled = [broker if broker >= 0 and broker in places else UNPLACED for broker in own]
        settled = [next(newcomers, UNPLACED) if place == UNPLACED else place for place in settled]
        state.places[span] = settled
        state.leaders[partition] = span.start + settled.index(leader)


def _dirs_by_slot(problem: Problem, encoding: Encoding) -> IntArray:
    dirs = np.full(len(encoding.owners), NOWHERE, np.int32)
    dirs[encoding.initial_brokers != UNPLACED] = problem.partitions.log_dirs
    return dirs


def _unit_bytes(problem: Problem) -> float:
    partitions = problem.partitions
    total = float((partitions.size_bytes * partitions.wanted_factors.astype(np.int64)).sum())
    return total / max(1, int(problem.brokers.staying.sum())) or 1.0


def _encoding(problem: Problem, unit_bytes: float) -> Encoding:
    partitions, brokers, rules = problem.partitions, problem.brokers, problem.rules
    lead_rows, lead_ranks = _pins(problem)
    spans = np.maximum(partitions.factors, partitions.wanted_factors)
    offsets = np.concatenate(([0], np.cumsum(spans)))
    owners = np.repeat(np.arange(len(partitions)), spans)
    initial_brokers = np.full(len(owners), UNPLACED, np.int64)
    initial_brokers[_present_slots(problem, offsets)] = partitions.replicas
    loads = _loads(problem)
    return Encoding(
        offsets=offsets,
        owners=owners,
        initial_brokers=initial_brokers,
        lost_on=_lost_on(problem, initial_brokers, offsets),
        initial_leaders=initial_brokers[offsets[:-1]],
        senders=problem.present_leaders.astype(np.int64),
        loads=loads,
        role_goals=(loads[:-1:2] != loads[1::2]).any(axis=0),
        size=partitions.size_bytes / unit_bytes,
        transfer_cost=_transfer_costs(problem) / unit_bytes,
        rack_limit=_rack_limit(problem),
        partition_sets=partitions.broker_sets.astype(np.int64),
        lead_rows=np.where(partitions.may_move, lead_rows, FIXED),
        movable=partitions.may_move & rules.between_brokers,
        may_change_leader=partitions.may_move & rules.leaders & (not rules.only_forced),
        pinned=np.zeros(len(owners), bool),
        racks=problem.rack_of_broker.astype(np.int64),
        broker_sets=brokers.broker_sets.astype(np.int64),
        receiving=brokers.receiving,
        staying=brokers.staying,
        demoted=~(brokers.staying & brokers.may_lead),
        lead_ranks=np.where(brokers.staying & brokers.may_get_leaders, lead_ranks, NO_RANK).reshape(-1),
    )


def _rack_limit(problem: Problem) -> IndexArray:
    """Limits of the rule as one number per partition; more racks stay full where nothing repairs that."""
    most, full = (one.astype(np.int64) for one in problem.rack_limits)
    if not problem.rules.repair_racks and (full < ANY_RACKS).any():
        racks, partitions = problem.rack_of_broker, problem.partitions
        width = int(racks.max(initial=0)) + 1
        rows, held = np.unique(pairs(partitions.owners, racks[partitions.replicas], width), return_counts=True)
        owners = rows // width
        full = np.maximum(full, np.bincount(owners[held >= most[owners]], minlength=len(most)))
    return most | full << FULL_RACKS


def rack_limits(encoding: Encoding) -> RackLimits:
    """Limits of the racks as the search keeps them."""
    return RackLimits(encoding.rack_limit & MOST_IN_RACK, encoding.rack_limit >> FULL_RACKS)


def rack_excess(encoding: Encoding, places: IndexArray) -> IndexArray:
    """Number of replicas of each partition beyond the limits of its racks, (P,), if they are at these places."""
    slots, limits, width = np.flatnonzero(places >= 0), rack_limits(encoding), int(encoding.racks.max()) + 1
    rows, held = np.unique(pairs(encoding.owners[slots], encoding.racks[places[slots]], width), return_counts=True)
    owners, count = rows // width, len(encoding.rack_limit)
    beyond = np.bincount(owners, np.maximum(0, held - limits.most[owners]), count).astype(np.int64)
    full = np.bincount(owners[held >= limits.most[owners]], minlength=count)
    beyond += np.maximum(full - limits.full, 0).astype(np.int64)
    return beyond


def _pins(problem: Problem) -> tuple[IndexArray, IndexArray]:
    """Row of the rank table for each partition's leader, and ranks of brokers; row 0 prefers no rack."""
    names, brokers, pinned = problem.partitions.topic_names, problem.brokers, problem.rules.leader_racks
    orders = sorted(set(pinned.values()))
    by_topic = np.array([orders.index(pinned[name]) + 1 if name in pinned else 0 for name in names], np.int64)
    ranks = np.zeros((len(orders) + 1, len(brokers)), np.int64)
    for row, racks in enumerate(orders, start=1):
        places = {brokers.rack_names.index(rack): place for place, rack in reversed(list(enumerate(racks)))}
        ranks[row] = [places.get(rack, len(racks)) for rack in brokers.racks.tolist()]
    pins: IndexArray = by_topic[problem.partitions.topics]
    return pins, ranks


def _transfer_costs(problem: Problem) -> FloatArray:
    """Bytes transferred until a copy has caught up with what is written meanwhile; shape (P,)."""
    partitions, rate = problem.partitions, problem.budget.rate_bytes_per_s
    size: FloatArray = partitions.size_bytes.astype(float)
    if rate is None:
        return size
    left = rate - partitions.write_bytes_per_s
    slowed = np.divide(rate, left, out=np.full(len(size), NEVER), where=left > 0)
    return np.where(size > 0, size * slowed, 0.0)


def _lost_on(problem: Problem, initial_brokers: IndexArray, offsets: IndexArray) -> IndexArray:
    lost_on = np.full_like(initial_brokers, UNPLACED)
    present = _present_slots(problem, offsets)
    lost_on[present[problem.partitions.lags]] = LAGS
    heads = offsets[:-1][problem.partitions.factors > 0]
    lost_on[heads] = UNPLACED  # who leads now may lead on, and be given back what this search took
    slots = present[problem.partitions.is_lost | problem.unnamed | problem.evicted]
    lost_on[slots] = initial_brokers[slots]
    return lost_on


def lagging(problem: Problem, encoding: Encoding) -> BoolArray:
    """Mask of replicas that go first when the factor falls (`Claim.LAGGING`), (S,); none where that is not known.

    A copy on a broker that is down lags, whatever the ISR of a moment ago says.
    """
    partitions = problem.partitions
    lags = partitions.lags | partitions.is_lost | ~problem.brokers.is_live[partitions.replicas]
    found = np.zeros(len(encoding.owners), bool)
    found[_present_slots(problem, encoding.offsets)[lags]] = True
    return found


def outside_sets(encoding: Encoding) -> BoolArray:
    """Mask of replicas on a broker that is not of the broker set of their partition, (S,)."""
    wanted = encoding.partition_sets[encoding.owners]
    placed = encoding.initial_brokers >= 0
    result: BoolArray = placed & (wanted >= 0) & (encoding.broker_sets[encoding.initial_brokers] != wanted)
    return result


def _present_slots(problem: Problem, offsets: IndexArray) -> IndexArray:
    factors = problem.partitions.factors
    within = np.arange(len(problem.partitions.replicas)) - np.repeat(problem.partitions.offsets[:-1], factors)
    return (np.repeat(offsets[:-1], factors) + within).astype(np.int64)


def _topic_columns(problem: Problem) -> list[FloatArray]:
    """Load columns of topics of which every broker must lead some partitions: 1 while leading."""
    names = problem.partitions.topic_names
    return [
        np.array([name == topic for name in names], float)[problem.partitions.topics]
        for topic in sorted(problem.rules.least_topic_leaders)
    ]


def scales(problem: Problem) -> FloatArray:
    """Factors of loads: weight over the mean per broker; weight over the need for `_topic_columns`."""
    means = problem.totals / max(1, int(problem.brokers.staying.sum()))
    weights = np.array([band.weight for band in problem.bands])
    least = problem.rules.least_topic_leaders
    needs = [TOPIC_WEIGHT / max(1, least[topic]) for topic in sorted(least)]
    return np.concatenate([weights / np.where(means > 0, means, 1.0), needs])


def _loads(problem: Problem) -> FloatArray:
    """Scaled loads of leaders and followers in alternate rows, and a last row of zeros. Shape (2 P + 1, R)."""
    partitions, own = problem.partitions, _topic_columns(problem)
    loads = np.zeros((2 * len(partitions) + 1, len(problem.bands) + len(own)))
    for column, band in enumerate(problem.bands):
        loads[:-1:2, column] = band.goal.leader(partitions)
        loads[1::2, column] = band.goal.follower(partitions)
    for column, leads in enumerate(own, start=len(problem.bands)):
        loads[:-1:2, column] = leads
    loads *= scales(problem)
    return loads


def _state(problem: Problem, encoding: Encoding, unit_bytes: float) -> State:
    scale = scales(problem)
    low, high, capacity = _bounds(problem)
    budget, brokers = problem.budget, len(problem.brokers)
    state = State(
        places=encoding.initial_brokers.copy(),
        leaders=encoding.offsets[:-1].copy(),
        shortfall=np.ascontiguousarray(low * scale),
        headroom=np.ascontiguousarray(high * scale),
        spare_capacity=np.ascontiguousarray(capacity * scale),
        budget_left=np.array(
            [_or_unlimited(budget.moved_bytes, unit_bytes), *map(_or_unlimited, (budget.moves, budget.leader_changes))]
        ),
        bytes_in_left=np.full(brokers, _or_unlimited(budget.bytes_in_per_broker, unit_bytes)),
        bytes_out_left=np.full(brokers, _or_unlimited(budget.bytes_out_per_broker, unit_bytes)),
        rng_state=np.array([SEED], np.int64),
    )
    for margins in (state.shortfall, state.headroom, state.spare_capacity):
        margins[:] = margins - loads_of(encoding, state)
    return state


def refresh(problem: Problem, encoding: Encoding, state: State) -> None:
    """Recompute shortfall and headroom from the places of the replicas."""
    low, high, _ = _bounds(problem)
    loads = loads_of(encoding, state)
    state.shortfall[:] = low * scales(problem) - loads
    state.headroom[:] = high * scales(problem) - loads


def half_widths(problem: Problem) -> FloatArray:
    """Half the width of each band, scaled like loads; 0 without a band, and for the topics of `_topic_columns`."""
    limits = problem.limits
    tolerances = [band.tolerance or 0.0 for band in problem.bands]
    none = np.zeros((len(problem.brokers), len(problem.rules.least_topic_leaders)))
    return np.hstack([limits.mean * tolerances, none]) * scales(problem)


def _bounds(problem: Problem) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Bands, narrowed against rounding, and capacities; with the topics of `_topic_columns`."""
    limits, least = problem.limits, problem.rules.least_topic_leaders
    leading = problem.brokers.staying & problem.brokers.may_get_leaders
    needs = (
        np.array([np.where(leading, least[topic], 0.0) for topic in sorted(least)]).reshape(len(least), len(leading)).T
    )
    margin = np.minimum(limits.mean.mean(axis=0) * ROUNDING_MARGIN, (limits.high - limits.low) / 2)
    margin[limits.high >= limits.capacity] = 0.0
    endless = np.full_like(needs, np.inf)
    return (
        np.hstack([np.where(limits.low > 0, limits.low + margin, limits.low), needs]),
        np.hstack([limits.high - margin, endless]),
        np.hstack([limits.capacity, endless]),
    )


def _or_unlimited(limit: int | None, unit: float = 1.0) -> float:
    return UNLIMITED if limit is None else limit / unit


def misplaced(problem: Problem, encoding: Encoding, state: State) -> BoolArray:
    """Mask of replicas that must leave and may: on a broker that is dead or to be emptied, or lost, shape (S,).

    If broker sets are repaired, replicas outside of theirs leave too, and if racks are, all but the first in the list
    of the replicas that crowd one.
    """
    placed = state.places >= 0
    wrong: BoolArray = placed & (~encoding.staying[np.maximum(state.places, 0)] | (state.places == encoding.lost_on))
    if problem.rules.repair_sets:
        wrong |= outside_sets(encoding) & (state.places == encoding.initial_brokers)
    if problem.rules.repair_racks:
        wrong |= crowding(encoding, state, placed & ~wrong)
    wrong &= encoding.movable[encoding.owners]
    return wrong


def _staying(problem: Problem, encoding: Encoding, state: State) -> BoolArray:
    """Mask of replicas that the task leaves in place, shape (S,), unless their partition shrinks."""
    leaving = misplaced(problem, encoding, state)
    result: BoolArray = (encoding.initial_brokers >= 0) & ~leaving & ~may_stay_or_go(problem, encoding)
    return result


def may_stay_or_go(problem: Problem, encoding: Encoding) -> BoolArray:
    """Mask of replicas that leave their log directory anyway, so may leave their broker too, shape (S,)."""
    if problem.log_dirs is None or not (problem.rules.between_log_dirs and problem.rules.between_brokers):
        return np.zeros(len(encoding.owners), bool)
    dirs = _dirs_by_slot(problem, encoding)
    result: BoolArray = (dirs != NOWHERE) & problem.log_dirs.must_empty[dirs]
    return result


def crowding(encoding: Encoding, state: State, counted: BoolArray) -> BoolArray:
    """Mask of replicas beyond the limit of their rack, in the order of the replica lists, (S,)."""
    slots = np.flatnonzero(counted)
    key = pairs(encoding.owners[slots], encoding.racks[state.places[slots]], int(encoding.racks.max()) + 1)
    order = np.argsort(key, kind="stable")
    ordered = key[order]
    begins = np.concatenate(([True], ordered[1:] != ordered[:-1])) if len(ordered) else np.zeros(0, bool)
    positions = np.arange(len(ordered))
    within = positions - np.maximum.accumulate(np.where(begins, positions, 0))
    owners, beyond, limits = encoding.owners[slots[order]], np.zeros(len(counted), bool), rack_limits(encoding)
    beyond[slots[order]] = within >= limits.most[owners]
    # Of the racks that are full, those count whose last replica comes first in the list.
    last = np.sort(slots[order][within == limits.most[owners] - 1])
    owners = encoding.owners[last]
    before = np.arange(len(last)) - np.searchsorted(owners, owners)
    beyond[last[before >= limits.full[owners]]] = True
    return beyond
