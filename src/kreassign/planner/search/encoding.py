"""From a problem to the arrays of the search, and back to an assignment."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from kreassign.planner.problem.arrays import BoolArray, FloatArray, IndexArray, IntArray
from kreassign.planner.problem.partitions import NOWHERE, Assignment
from kreassign.planner.problem.problem import Budget, Problem, RackRule
from kreassign.planner.search import passes
from kreassign.planner.search.state import EMPTY, GONE, Frame, State, loads_of

SEED = 20_260_101
UNLIMITED = np.inf
HAIR = 1e-10  # so narrow that all bands of two brokers together stay below what the search takes for nothing
TOPIC_WEIGHT = 10.0
NEVER = 1e18  # times as long as without what is written meanwhile


@dataclass(frozen=True, slots=True, eq=False)
class Framed:
    """A problem as the search sees it. `unit_bytes` is what a scaled size of 1.0 stands for."""

    frame: Frame
    state: State
    unit_bytes: float


def framed(problem: Problem) -> Framed:
    """The arrays of a problem, with everything where it is."""
    unit_bytes = _unit_bytes(problem)
    frame = _frame(problem, unit_bytes)
    return Framed(frame, _state(problem, frame, unit_bytes), unit_bytes)


def settled_assignment(problem: Problem, frame: Frame, state: State) -> Assignment:
    """The replica lists that a state stands for, the leader in front.

    What stays keeps its place in the list, and a new replica takes the place of one that leaves.
    """
    _settle(frame, state)
    slots = np.arange(len(state.places))
    leads = state.leaders[frame.owners] == slots
    rank = np.where(leads, -1, slots - frame.offsets[frame.owners])
    kept = state.places >= 0
    order = np.lexsort((rank[kept], frame.owners[kept]))
    chosen = slots[kept][order]
    counts = np.bincount(frame.owners[chosen], minlength=len(problem.partitions))
    offsets = np.concatenate(([0], np.cumsum(counts))).astype(np.int32)
    replicas = state.places[chosen].astype(np.int32)
    stays = replicas == frame.homes[chosen]
    log_dirs = np.where(stays, _dirs_by_slot(problem, frame)[chosen], NOWHERE).astype(np.int32)
    return Assignment(offsets, replicas, log_dirs)


def adopt(search: Framed, assignment: Assignment) -> None:
    """Begin with another plan: its replicas are where it wants them, and are paid for; the homes stay what they are."""
    frame, state = search.frame, search.state
    slots: list[int] = []
    brokers: list[int] = []
    leaders: list[int] = []
    for partition in _different(frame, assignment).tolist():
        span = range(frame.offsets[partition], frame.offsets[partition + 1])
        wanted = assignment.replicas[assignment.offsets[partition] : assignment.offsets[partition + 1]].tolist()
        places = _in_slots(frame.homes[span.start : span.stop].tolist(), wanted)
        slots += span
        brokers += places
        leaders.append(span.start + places.index(wanted[0]))
    # Replicas leave before others arrive, so that the room of brokers is never counted twice.
    order = np.argsort(np.array(brokers, np.int64) >= 0, kind="stable")
    passes.adopt_pass(
        frame, state, np.array(slots, np.int64)[order], np.array(brokers, np.int64)[order], np.array(leaders, np.int64)
    )


def _different(frame: Frame, assignment: Assignment) -> IndexArray:
    """The partitions whose list is another one than at present."""
    spans, counts = np.diff(frame.offsets), np.diff(assignment.offsets)
    same_size = spans == counts
    slots = np.flatnonzero(same_size[frame.owners])
    within = slots - frame.offsets[frame.owners[slots]]
    theirs = assignment.replicas[assignment.offsets[frame.owners[slots]] + within]
    different = ~same_size
    different[frame.owners[slots][theirs != frame.homes[slots]]] = True
    return np.flatnonzero(different & (counts > 0))


def _in_slots(homes: list[int], wanted: list[int]) -> list[int]:
    """Where the replica of each slot goes: home if the list has it, else in the place of one that leaves.

    A slot that has had none stays empty if nothing is left for it: its replica is still to be placed.
    """
    newcomers = iter([broker for broker in wanted if broker not in homes])
    return [
        home if home >= 0 and home in wanted else next(newcomers, EMPTY if home == EMPTY else GONE) for home in homes
    ]


def _settle(frame: Frame, state: State) -> None:
    """Give every replica that is where its partition has one now the slot of that one."""
    brokers = len(frame.racks)
    homes = np.sort(frame.owners.astype(np.int64) * brokers + np.maximum(frame.homes, 0))
    key = frame.owners.astype(np.int64) * brokers + state.places
    strayed = (state.places >= 0) & (state.places != frame.homes) & (key == homes[_nearest(homes, key)])
    for partition in np.unique(frame.owners[strayed]):
        span = slice(frame.offsets[partition], frame.offsets[partition + 1])
        places, own = state.places[span].tolist(), frame.homes[span].tolist()
        leader = places[state.leaders[partition] - span.start]
        newcomers = iter([place for place in places if place >= 0 and place not in own])
        settled = [home if home >= 0 and home in places else EMPTY for home in own]
        settled = [next(newcomers, EMPTY) if place == EMPTY else place for place in settled]
        state.places[span] = settled
        state.leaders[partition] = span.start + settled.index(leader)


def _nearest(ordered: IndexArray, wanted: IndexArray) -> IndexArray:
    return np.minimum(np.searchsorted(ordered, wanted), len(ordered) - 1)


def _dirs_by_slot(problem: Problem, frame: Frame) -> IntArray:
    dirs = np.full(len(frame.owners), NOWHERE, np.int32)
    dirs[frame.homes != EMPTY] = problem.partitions.log_dirs
    return dirs


def _unit_bytes(problem: Problem) -> float:
    partitions = problem.partitions
    total = float((partitions.size_bytes * partitions.wanted_factors.astype(np.int64)).sum())
    return total / max(1, int(problem.brokers.staying.sum())) or 1.0


def _frame(problem: Problem, unit_bytes: float) -> Frame:
    partitions, brokers, rules = problem.partitions, problem.brokers, problem.rules
    spans = np.maximum(partitions.factors, partitions.wanted_factors)
    offsets = np.concatenate(([0], np.cumsum(spans)))
    owners = np.repeat(np.arange(len(partitions)), spans)
    homes = np.full(len(owners), EMPTY, np.int64)
    homes[_present_slots(problem, offsets)] = partitions.replicas
    scale = scales(problem)
    own = _topic_columns(problem)
    as_leader = _scaled([*(band.goal.leader(partitions) for band in problem.bands), *own], scale, len(partitions))
    follower = [band.goal.follower(partitions) for band in problem.bands]
    as_follower = _scaled([*follower, *(column * 0.0 for column in own)], scale, len(partitions))
    return Frame(
        offsets=offsets,
        owners=owners,
        homes=homes,
        lost=_lost(problem, homes, offsets),
        heads=homes[offsets[:-1]],
        as_leader=as_leader,
        as_follower=as_follower,
        role_goals=(as_leader != as_follower).any(axis=0),
        size=partitions.size_bytes / unit_bytes,
        toll=_tolls(problem) / unit_bytes,
        rack_limit=rack_limits(problem).astype(np.int64),
        partition_sets=partitions.broker_sets.astype(np.int64),
        fixed=~partitions.may_move,
        movable=partitions.may_move & rules.between_brokers,
        relead=partitions.may_move & rules.leaders,
        racks=rack_indices(problem).astype(np.int64),
        broker_sets=brokers.broker_sets.astype(np.int64),
        receiving=brokers.receiving,
        staying=brokers.staying,
        leading=brokers.staying & brokers.may_lead,
    )


def _tolls(problem: Problem) -> FloatArray:
    """Bytes that a copy stands for while it catches up with what is written; shape (P,)."""
    partitions, rate = problem.partitions, problem.budget.rate_bytes_per_s
    size: FloatArray = partitions.size_bytes.astype(float)
    if rate is None:
        return size
    left = rate - partitions.write_bytes_per_s
    slowed = np.divide(rate, left, out=np.full(len(size), NEVER), where=left > 0)
    return np.where(size > 0, size * slowed, 0.0)


def _lost(problem: Problem, homes: IndexArray, offsets: IndexArray) -> IndexArray:
    lost = np.full_like(homes, EMPTY)
    slots = _present_slots(problem, offsets)[problem.partitions.is_lost]
    lost[slots] = homes[slots]
    return lost


def _present_slots(problem: Problem, offsets: IndexArray) -> IndexArray:
    factors = problem.partitions.factors
    within = np.arange(len(problem.partitions.replicas)) - np.repeat(problem.partitions.offsets[:-1], factors)
    return (np.repeat(offsets[:-1], factors) + within).astype(np.int64)


def _topic_columns(problem: Problem) -> list[FloatArray]:
    """Topics of which every broker shall lead some partitions are goals of their own: what counts is leading them."""
    names = problem.partitions.topic_names
    return [
        np.array([name == topic for name in names], float)[problem.partitions.topics]
        for topic in sorted(problem.rules.least_topic_leaders)
    ]


def scales(problem: Problem) -> FloatArray:
    """What to multiply loads by: weight over the mean per broker; weight over the need for `_topic_columns`."""
    means = problem.totals / max(1, int(problem.brokers.staying.sum()))
    weights = np.array([band.weight for band in problem.bands])
    least = problem.rules.least_topic_leaders
    needs = [TOPIC_WEIGHT / max(1, least[topic]) for topic in sorted(least)]
    return np.concatenate([weights / np.where(means > 0, means, 1.0), needs])


def _scaled(columns: list[FloatArray], scale: FloatArray, length: int) -> FloatArray:
    stacked = np.stack(columns, axis=1) if columns else np.zeros((length, 0))
    return np.ascontiguousarray(stacked * scale)


def rack_indices(problem: Problem) -> IntArray:
    """A rack per broker: its own, or one that no other has where it names none or racks do not matter."""
    own = len(problem.brokers.rack_names) + np.arange(len(problem.brokers), dtype=np.int32)
    if problem.rules.racks is RackRule.NONE:
        return own
    return np.where(problem.brokers.racks == NOWHERE, own, problem.brokers.racks).astype(np.int32)


def rack_limits(problem: Problem) -> IntArray:
    """How many replicas of each partition may share a rack, shape (P,)."""
    wanted = problem.partitions.wanted_factors
    if problem.rules.racks is RackRule.STRICT:
        return np.ones_like(wanted)
    racks, limits = rack_indices(problem), np.ones_like(wanted)
    for tenant in np.unique(problem.partitions.broker_sets):
        members = problem.brokers.staying & ((tenant == NOWHERE) | (problem.brokers.broker_sets == tenant))
        chosen = problem.partitions.broker_sets == tenant
        limits[chosen] = -(-wanted[chosen] // max(1, len(np.unique(racks[members]))))
    return limits


def _state(problem: Problem, frame: Frame, unit_bytes: float) -> State:
    scale = scales(problem)
    low, high, capacity = _bounds(problem)
    budget, brokers = problem.budget, len(problem.brokers)
    state = State(
        places=frame.homes.copy(),
        leaders=frame.offsets[:-1].copy(),
        lack=np.ascontiguousarray(low * scale),
        room=np.ascontiguousarray(high * scale),
        spare=np.ascontiguousarray(capacity * scale),
        purse=_purse(budget, unit_bytes),
        intake=np.full(brokers, _or_unlimited(budget.bytes_in_per_broker, unit_bytes)),
        outlet=np.full(brokers, _or_unlimited(budget.bytes_out_per_broker, unit_bytes)),
        dice=np.array([SEED], np.int64),
    )
    for margins in (state.lack, state.room, state.spare):
        margins[:] = margins - loads_of(frame, state)
    return state


def refresh(problem: Problem, frame: Frame, state: State) -> None:
    """Compute lack and room anew from where the replicas are."""
    low, high, _ = _bounds(problem)
    loads = loads_of(frame, state)
    state.lack[:] = low * scales(problem) - loads
    state.room[:] = high * scales(problem) - loads


def half_widths(problem: Problem) -> FloatArray:
    """Half of each band, scaled as loads; 0 where there is none, as for the topics of `_topic_columns`."""
    limits = problem.limits
    tolerances = [band.tolerance or 0.0 for band in problem.bands]
    none = np.zeros((len(problem.brokers), len(problem.rules.least_topic_leaders)))
    return np.hstack([limits.mean * tolerances, none]) * scales(problem)


def _bounds(problem: Problem) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Bands, a hair narrower so that rounding does not matter, and capacities; with the topics of `_topic_columns`."""
    limits, least = problem.limits, problem.rules.least_topic_leaders
    leading = problem.brokers.staying & problem.brokers.may_lead
    needs = (
        np.array([np.where(leading, least[topic], 0.0) for topic in sorted(least)]).reshape(len(least), len(leading)).T
    )
    hair = np.minimum(limits.mean.mean(axis=0) * HAIR, (limits.high - limits.low) / 2)
    hair[limits.high >= limits.capacity] = 0.0
    endless = np.full_like(needs, np.inf)
    return (
        np.hstack([np.where(limits.low > 0, limits.low + hair, limits.low), needs]),
        np.hstack([limits.high - hair, endless]),
        np.hstack([limits.capacity, endless]),
    )


def _purse(budget: Budget, unit_bytes: float) -> FloatArray:
    return np.array(
        [
            _or_unlimited(budget.moved_bytes, unit_bytes),
            _or_unlimited(budget.moves, 1.0),
            _or_unlimited(budget.leader_changes, 1.0),
        ]
    )


def _or_unlimited(limit: int | None, unit: float) -> float:
    return UNLIMITED if limit is None else limit / unit


def misplaced(frame: Frame, state: State, *, repair_racks: bool) -> BoolArray:
    """Replicas that cannot stay where they are: on a broker that is to be emptied or dead, or lost, shape (S,).

    With `repair_racks`, of replicas that crowd a rack all but the first in the list go too.
    """
    placed = state.places >= 0
    wrong: BoolArray = placed & (~frame.staying[np.maximum(state.places, 0)] | (state.places == frame.lost))
    if repair_racks:
        wrong |= _crowding(frame, state, placed & ~wrong)
    return wrong


def _crowding(frame: Frame, state: State, counted: BoolArray) -> BoolArray:
    """Replicas beyond the limit of their rack, in the order of the replica lists."""
    slots = np.flatnonzero(counted)
    key = frame.owners[slots].astype(np.int64) * (int(frame.racks.max()) + 1) + frame.racks[state.places[slots]]
    order = np.argsort(key, kind="stable")
    ordered = key[order]
    begins = np.concatenate(([True], ordered[1:] != ordered[:-1])) if len(ordered) else np.zeros(0, bool)
    positions = np.arange(len(ordered))
    within = positions - np.maximum.accumulate(np.where(begins, positions, 0))
    beyond = np.zeros(len(counted), bool)
    beyond[slots[order]] = within >= frame.rack_limit[frame.owners[slots[order]]]
    return beyond
