"""The search for a plan: passes over one encoded problem, in the order of `PASSES`; then log directories.

Deterministic: the same problem gives the same plan, byte for byte. docs/concepts/planning.md explains each pass.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from kreassign.errors import Infeasible
from kreassign.planner.arrays import BoolArray, FloatArray, IndexArray
from kreassign.planner.problem.holds import Hold, first_names
from kreassign.planner.problem.problem import Assignment, Budget, Problem
from kreassign.planner.search.compiled import kernels, loops
from kreassign.planner.search.compiled.compiler import as_pays
from kreassign.planner.search.compiled.kernels import FIXED, NO_RANK, REMOVED, UNPLACED, Encoding, State
from kreassign.planner.search.encoding import (
    Search,
    adopt,
    copy_of,
    crowding,
    decode,
    encode,
    half_widths,
    lagging,
    misplaced,
    outside_sets,
    put_back,
    refresh,
    scales,
)
from kreassign.planner.search.feasibility import (
    RELIEF_THRESHOLDS,
    by_limits,
    exchange_attempts,
    fill_crowded,
    go_back,
    is_overfull,
    keep_crowded,
    make_room,
    movable_slots,
    refuse_few_leaders,
    refuse_impossible,
    refuse_overfull,
    refuse_unplaced,
    relieve,
    undo_copies_of_start,
)
from kreassign.planner.search.log_dirs import in_log_dirs, keeping_out
from kreassign.planner.search.spread import (
    failover_excess,
    leader_spread,
    missed_leaders,
    spread_failover,
    spread_leaders,
    spread_topics,
)

# The passes.

# Gain per scaled byte: an average replica that lessens the excess and the lack of one goal gains 2.
MOVE_THRESHOLDS = (48.0, 16.0, 6.0, 4.0, 2.5, 1.5, 0.5)
# On a small cluster a replica is a large part of a broker's excess: which replica goes first matters more.
SMALL = 20_000
FINE_MOVE_THRESHOLDS = tuple(64 / 1.3**step for step in range(20))
# Part of the load of leading that a change of leader must gain.
LEADER_THRESHOLDS = (1.5, 1.0, 0.5, 0.2, 0.05, 0.0)
EXCHANGE_THRESHOLDS = (1.0, 0.2, 0.0)
CHAIN_ATTEMPTS = 60
SMALLER_ATTEMPTS = 12
TRIMMING_ROUNDS = 6
# Factors of the bands' widths, for bands that cannot be met; finally 1.
LEVEL_WIDTHS = (8.0, 4.0, 2.8, 2.0, 1.4, 1.0)
LEVEL_THRESHOLDS = (4.0, 2.0, 0.5)


@dataclass(frozen=True, slots=True)
class Pass:
    """One step of the search: its name, its function, and when it runs, in words and as a test of the search so far."""

    name: str
    does: str
    when: str
    applies: Callable[[Search], bool]
    run: Callable[[Search], None]


@dataclass(frozen=True, slots=True, eq=False)
class Solution:
    """A plan and what it leaves open.

    `missed` (N, R) is the distance of every broker from its bands, in the unit of each goal, 0 inside. `undone` are the
    indices of partitions whose forced changes did not fit the budget.
    """

    assignment: Assignment
    missed: FloatArray
    undone: IndexArray


MOST_ROUNDS = 16
"""Searches after which a plan is given up whose replicas find no log directory."""


def unwatched(step: str) -> None:
    """Discard progress messages."""
    del step


def solve(problem: Problem, start: Assignment | None = None, watch: Callable[[str], None] = unwatched) -> Solution:
    """Find the assignment that meets the rules and comes nearest to the bands, with few bytes.

    With `start` the search begins with that assignment; copies still count from the present replicas. `watch` gets the
    name of every pass when it begins. Raises Infeasible if the rules cannot be met; forced changes that do not fit the
    budget are not an error: they stay undone.
    """
    with as_pays(len(problem.partitions.replicas), loops.place_pass):
        posed, barred = problem.with_limits(), np.zeros(0, np.int64)
        for _ in range(MOST_ROUNDS):
            solution = _solve_evicting(keeping_out(posed, barred), start, watch)
            left = posed.leaving & np.isin(problem.partitions.owners, solution.undone)
            settled = in_log_dirs(problem, solution.assignment, left, partial(_inside, watch=watch))
            if settled.is_whole:
                return Solution(settled.assignment, solution.missed[:, : len(problem.bands)], solution.undone)
            # The brokers had room for these, and none of their directories: they stay, or leave for other brokers.
            chosen = np.isin(np.arange(len(posed.partitions)), settled.homeless)
            held, evicted = posed.partitions.held(chosen, Hold.STAYS), posed.evicted | settled.crowded
            posed, start = replace(posed, partitions=held, without_room=evicted), None
            barred = np.union1d(barred, settled.barred)
    chosen[settled.barred // len(problem.brokers)] = True
    chosen[problem.partitions.owners[settled.crowded]] = True
    names = first_names([problem.partitions.name(one) for one in np.flatnonzero(chosen).tolist()])
    raise Infeasible(f"no log directory has room for {names} on the brokers that do", goals=("log directories",))


def _inside(problem: Problem, watch: Callable[[str], None]) -> tuple[Assignment, IndexArray]:
    """Search inside one broker, with its directories as brokers."""
    found = _solve_brokers(problem, watch=watch)
    return found.assignment, found.undone


def _solve_evicting(problem: Problem, start: Assignment | None, watch: Callable[[str], None]) -> Solution:
    """Search a plan; where there is none, say which replicas must leave their broker for want of a log directory."""
    try:
        return _solve_brokers(problem, start, watch)
    except Infeasible as refusal:
        now, evicted = problem.partitions, problem.evicted
        if not evicted.any():
            raise
        names = first_names([now.name(one) for one in now.owners[evicted].tolist()])
        text = f"{names} must leave a drained log directory, and no other one of the broker has room: {refusal}"
        raise Infeasible(text, goals=("log directories",)) from refusal


def _solve_brokers(
    problem: Problem, start: Assignment | None = None, watch: Callable[[str], None] = unwatched
) -> Solution:
    problem = _changeable(problem)
    refuse_impossible(problem)
    search = encode(problem)
    if start is not None:
        adopt(search, start)
    for one in PASSES:
        if one.applies(search):
            watch(f"searching a plan: {one.name.lower()}")
            one.run(search)
    if problem.rules.only_forced:
        go_back(search)
        _hand_over(search)
    refuse_overfull(problem, search.encoding, search.state)
    refuse_few_leaders(problem, search.state)
    missed = _missed(problem, search.state)
    return Solution(decode(search), missed, search.undone)


def _changeable(problem: Problem) -> Problem:
    """Change factors only of partitions that may move and have a live copy to replicate from."""
    partitions = problem.partitions
    reached = partitions.within_reach(problem.brokers.is_live) | (partitions.factors == 0)
    free = reached & partitions.may_move
    if free.all():
        return problem
    wanted = np.where(free | (partitions.factors == 0), partitions.wanted_factors, partitions.factors)
    held = partitions.held(~reached, Hold.OUT_OF_REACH)
    return replace(problem, partitions=replace(held, wanted_factors=wanted.astype(np.int32)))


# --- forced changes ---------------------------------------------------------------------------------------------------


def _force(search: Search) -> None:
    """Make forced changes (drains, dead brokers, racks, factors, leaders); those beyond the budget are `undone`."""
    problem, encoding, state = search.problem, search.encoding, search.state
    if problem.rules.only_forced:
        undo_copies_of_start(search)
    _unplace(search)
    if _barred_leaders(encoding, state).any():
        loops.demote_pass(encoding, state)
    waiting = np.flatnonzero(state.places == UNPLACED)
    before = copy_of(state) if problem.rules.leaves_rest and len(waiting) else None
    unplaced = _fill(search, waiting)
    if problem.rules.only_forced and problem.budget == Budget():
        unplaced = _with_room(search, unplaced)
    else:
        unplaced = fill_crowded(search, unplaced)
    if len(unplaced) and before is not None:
        put_back(state, before)
        unplaced = _most(search, waiting)
    if problem.rules.only_forced and _barred_leaders(encoding, state).any():
        loops.demote_pass(encoding, state)  # to replicas placed only now
    if not problem.may_leave:
        if len(unplaced):
            refuse_unplaced(problem, encoding, state, unplaced)
        return
    if len(unplaced):
        _leave(search, unplaced)
    _leave_for_room(search, np.isin(encoding.owners, encoding.owners[waiting]) | problem.rules.only_forced)


def _leave(search: Search, unplaced: IndexArray) -> None:
    """Leave undone what has no place: a partition stays as it is where half of its change would be wrong.

    Others get the room and the budget that it would have taken.
    """
    encoding, state, stay = search.encoding, search.state, search.undone
    while len(unplaced):
        initial = encoding.initial_brokers[unplaced]
        loops.place_pass(encoding, state, unplaced, np.where(initial >= 0, initial, REMOVED))
        restored, named = _restore_halves(search, unplaced), _named_in_vain(search)
        search.undone = np.union1d(stay, encoding.owners[unplaced])
        _leave_whole(search, named)
        stay = np.union1d(stay, np.union1d(restored, named))
        again = unplaced[~np.isin(encoding.owners[unplaced], stay)]
        if not (len(named) and len(again)):
            return
        loops.place_pass(encoding, state, again, np.full_like(again, UNPLACED))
        loops.fill_pass(encoding, state, again)
        unplaced = again[state.places[again] == UNPLACED]
        search.undone = stay


def _restore_halves(search: Search, unplaced: IndexArray) -> IndexArray:
    """Give partitions with these slots their present lists where half of the change would be wrong; return them."""
    problem, encoding, state = search.problem, search.encoding, search.state
    initial, undone = encoding.initial_brokers[unplaced], np.unique(encoding.owners[unplaced])
    crowded = crowding(encoding, state, (state.places >= 0) & encoding.movable[encoding.owners])
    whole = problem.partitions.wanted_factors < problem.partitions.factors
    whole[encoding.owners[crowded]] = True
    if problem.rules.leaves_rest:
        whole[encoding.owners[unplaced[initial >= 0]]] = True
    # Half a change could leave two replicas in a rack, keep a lost one for one in sync, or change a leader unpaid.
    restored: IndexArray = undone[whole[undone]]
    _restore_lists(search, restored)
    return restored


def _restore_lists(search: Search, partitions: IndexArray) -> IndexArray:
    """Give these partitions the replicas and leaders that they have now; return their slots."""
    encoding = search.encoding
    slots = np.flatnonzero(np.isin(encoding.owners, partitions))
    initial, heads = encoding.initial_brokers[slots], encoding.offsets[:-1][partitions]
    loops.adopt_pass(encoding, search.state, slots, np.where(initial >= 0, initial, REMOVED), heads)
    return slots


def _named_in_vain(search: Search) -> IndexArray:
    """Partitions that may change, with a replica on a broker that no changed list may name."""
    problem, encoding, state = search.problem, search.encoding, search.state
    barred = ~(problem.brokers.may_be_named & problem.brokers.is_live)  # a run refuses lists with a broker that is down
    if problem.gone is not None:
        barred |= problem.gone.brokers
    named = (state.places >= 0) & barred[np.maximum(state.places, 0)]
    partitions: IndexArray = np.unique(encoding.owners[named & encoding.movable[encoding.owners]])
    return partitions


def _leave_whole(search: Search, partitions: IndexArray) -> None:
    """Undo all changes of these partitions, and fix them."""
    problem, encoding = search.problem, search.encoding
    if not len(partitions):
        return
    slots = _restore_lists(search, partitions)
    encoding.lost_on[slots] = UNPLACED
    encoding.movable[partitions] = encoding.may_change_leader[partitions] = False
    encoding.lead_rows[partitions] = FIXED
    chosen = np.isin(np.arange(len(problem.partitions)), partitions)
    search.problem = replace(problem, partitions=problem.partitions.held(chosen, Hold.CORDONED))
    search.undone = np.union1d(search.undone, partitions)


def _leave_for_room(search: Search, chosen: BoolArray) -> None:
    """Leave more where a broker is over a limit: one by one the largest of the chosen that it was to get or lead.

    What came back may need the room that was given away meanwhile.
    """
    problem, encoding, state = search.problem, search.encoding, search.state
    least = np.zeros_like(state.spare_capacity)  # less than nothing where a broker was above a limit already
    if not problem.rules.only_forced:
        above = np.minimum(problem.limits.capacity - problem.present_loads, 0.0)
        least[:, : len(problem.bands)] = above * scales(problem)[: len(problem.bands)]
    while chosen.any():
        full: BoolArray = np.logical_or.reduce(state.spare_capacity < least - kernels.TINY, axis=1)
        over = (state.places >= 0) & full[np.maximum(state.places, 0)]
        came, leaders = over & (state.places != encoding.initial_brokers), state.leaders
        came[leaders] |= over[leaders] & (state.places[leaders] != encoding.initial_leaders)
        came &= chosen
        if not came.any():
            return
        largest = np.argmax(np.where(came, encoding.size[encoding.owners], -1.0))
        _leave_whole(search, encoding.owners[[largest]])


def _fill(search: Search, waiting: IndexArray) -> IndexArray:
    """Place replicas, the largest first; return those without a broker."""
    encoding, state = search.encoding, search.state
    if len(waiting):
        loops.fill_pass(encoding, state, waiting[np.argsort(-encoding.size[encoding.owners[waiting]], kind="stable")])
    return np.flatnonzero(state.places == UNPLACED)


def _with_room(search: Search, unplaced: IndexArray) -> IndexArray:
    """Place the remaining replicas: as followers if they led, or by moving others. Raises Infeasible for limits."""
    if not len(unplaced):
        if is_overfull(search):
            relieve(search)
        return unplaced
    loops.hand_over_pass(search.encoding, search.state, unplaced)
    unplaced = fill_crowded(search, _fill(search, unplaced))
    if not len(unplaced):
        return unplaced
    before, encoding = copy_of(search.state), search.encoding
    left = make_room(search, unplaced)
    if is_overfull(search) and search.problem.rules.leaves_rest:
        search.encoding = encoding
        return unplaced
    if is_overfull(search) and not len(left):
        refuse_unplaced(search.problem, search.encoding, before, unplaced)
    return left


MOST_GROUPS = 32
"""Times that others are asked to make room: enough to find one among a thousand replicas that has none."""


def _most(search: Search, waiting: IndexArray) -> IndexArray:
    """Place as many replicas as find room, first those of partitions with few copies, then small ones; return the rest.

    Where only forced changes count, others make room for them, for all together or for as many as possible. Sizes count
    by their magnitude: those of a live cluster change from minute to minute, and the order of a plan does not.
    """
    problem, encoding, state = search.problem, search.encoding, search.state
    now = problem.partitions
    usable = problem.brokers.is_live[now.replicas] & ~now.is_lost & ~now.lags
    owners = encoding.owners[waiting]
    copies = np.bincount(now.owners[usable], minlength=len(now))[owners]
    magnitudes = np.frexp(now.size_bytes[owners].astype(np.float64))[1]
    order = np.lexsort((magnitudes, copies))
    as_urgent = np.split(waiting[order], np.flatnonzero(np.diff(copies[order])) + 1)
    waiting = np.concatenate([_fill_equals(search, group) for group in as_urgent])
    if not problem.rules.only_forced or problem.budget != Budget():
        return keep_crowded(search, waiting)
    groups, left = [waiting], [waiting[:0]]
    for _ in range(MOST_GROUPS):
        if not groups or not len(group := groups.pop(0)):
            break
        before, encoding = copy_of(state), search.encoding
        unplaced = make_room(search, group)
        if not is_overfull(search):
            left.append(unplaced)
            continue
        put_back(state, before)
        search.encoding = encoding
        if middle := len(group) // 2:
            groups[:0] = group[:middle], group[middle:]
        else:
            left.append(group)
    return keep_crowded(search, np.concatenate([*left, *groups]))


def _fill_equals(search: Search, waiting: IndexArray) -> IndexArray:
    """Place replicas of partitions with equally few copies, where racks stay as crowded last; return the rest."""
    encoding, state = search.encoding, search.state
    for _ in range(2):  # the second time as followers of those that have a place by then
        loops.fill_pass(encoding, state, waiting)
        waiting = waiting[state.places[waiting] == UNPLACED]
        loops.hand_over_pass(encoding, state, waiting)
    return fill_crowded(search, waiting)


def _unplace(search: Search) -> None:
    """Take replicas that cannot stay from their broker, and remove superfluous ones."""
    problem, encoding, state = search.problem, search.encoding, search.state
    if not problem.rules.between_brokers:
        return
    leaving = np.flatnonzero(misplaced(problem, encoding, state))
    if len(leaving):
        loops.place_pass(encoding, state, leaving, np.full_like(leaving, UNPLACED))
    if (problem.partitions.wanted_factors < problem.partitions.factors).any():
        lags, wanted = lagging(problem, encoding), problem.partitions.wanted_factors.astype(np.int64)
        if (strays := outside_sets(encoding)).any():  # these go first, but after those that lag
            slow = np.bincount(encoding.owners[lags], minlength=len(wanted))
            loops.shrink_pass(encoding, state, np.maximum(wanted, problem.partitions.factors - slow), lags)
        loops.shrink_pass(encoding, state, wanted, lags | strays)
        # What goes because it lags does not come back in place of a replica in sync, although that copies nothing.
        gone = lags & (state.places == REMOVED)
        encoding.lost_on[gone] = encoding.initial_brokers[gone]


def _hand_over(search: Search) -> None:
    """Move leaders off brokers that may not lead: an eligible replica may have been placed only now."""
    encoding, state = search.encoding, search.state
    barred = _barred_leaders(encoding, state) & (encoding.lead_rows != FIXED)
    if barred.any():
        loops.hand_over_pass(encoding, state, state.leaders[barred])


def _barred_leaders(encoding: Encoding, state: State) -> BoolArray:
    """Mask of partitions that are led by a broker that may not lead, and that may hand that over, (P,)."""
    hosts = state.places[state.leaders]
    at = np.maximum(hosts, 0)
    barred: BoolArray = (encoding.lead_ranks == NO_RANK)[at] & (hosts >= 0)
    barred &= encoding.demoted[at] | encoding.may_change_leader
    return barred


def _relieve_capacities(search: Search) -> None:
    encoding, state = search.encoding, search.state
    hard = by_limits(state)
    for threshold in RELIEF_THRESHOLDS:
        _change_leaders(encoding, hard)
        loops.move_pass(encoding, hard, threshold)
    for threshold in EXCHANGE_THRESHOLDS:
        if _outside_bands(hard):
            _change_pairs(encoding, hard, threshold)
    refresh(search.problem, encoding, state)


# --- bands ------------------------------------------------------------------------------------------------------------


def _move(search: Search) -> None:
    for threshold in FINE_MOVE_THRESHOLDS if _is_small(search) else MOVE_THRESHOLDS:
        moved = loops.move_pass(search.encoding, search.state, threshold)
        if moved and threshold < 1:
            _change_leaders(search.encoding, search.state)


def _exchange(search: Search) -> None:
    for threshold in EXCHANGE_THRESHOLDS:
        if _outside_bands(search.state):
            _change_pairs(search.encoding, search.state, threshold)


def _trim(search: Search) -> None:
    encoding, state = search.encoding, search.state
    largest_first = np.argsort(-encoding.size[encoding.owners], kind="stable")
    for _ in range(TRIMMING_ROUNDS if _is_small(search) else 1):
        changed = loops.return_pass(encoding, state, largest_first)
        by_broker, _ = movable_slots(encoding, state)
        changed += loops.smaller_pass(encoding, state, by_broker, SMALLER_ATTEMPTS)
        if not changed:
            break


def _is_small(search: Search) -> bool:
    """True if a more thorough search is affordable: few replicas."""
    return len(search.encoding.owners) <= SMALL


def _level(search: Search) -> None:
    # Do not trim afterwards: trimming cannot distinguish one wide miss from many small ones.
    encoding, state = search.encoding, search.state
    for width in LEVEL_WIDTHS:
        extra = (width - 1) * half_widths(search.problem)
        state.shortfall[:] -= extra
        state.headroom[:] = np.minimum(state.headroom + extra, state.spare_capacity)
        if _outside_bands(state):
            for threshold in LEVEL_THRESHOLDS:
                _change_leaders(encoding, state)
                loops.move_pass(encoding, state, threshold)
            _change_pairs(encoding, state, LEVEL_THRESHOLDS[-1])
        refresh(search.problem, encoding, state)


def _spread_failover(search: Search) -> None:
    """Spread failover so that the bands do not worsen it: unless the task forces changes, bands come second."""
    problem, encoding, state = search.problem, search.encoding, search.state
    search.order, left = spread_failover(problem, encoding, state)
    if _pins_leaders(search) and loops.pin_pass(encoding, state):  # a follower came into a preferred rack
        search.order, left = spread_failover(problem, encoding, state)
    present = encode(search.problem)
    if left > failover_excess(problem, encoding, present.state) + kernels.TINY and _may_stay(present):
        put_back(state, present.state)
        search.order, _ = spread_failover(problem, encoding, state)


def _may_stay(search: Search) -> bool:
    """True if the state breaks no rule and leaves no forced change undone."""
    problem, encoding, state, rules = search.problem, search.encoding, search.state, search.problem.rules
    resized = (problem.partitions.wanted_factors != problem.partitions.factors).any()
    return not (
        misplaced(problem, encoding, state).any()
        or is_overfull(search)
        or resized
        or rules.least_topic_leaders
        or rules.leader_racks
        or _barred_leaders(encoding, state).any()
    )


def _spread_leaders(search: Search) -> None:
    """Spread leaders of topics so that the bands do not worsen them: unless a task forces more, bands yield."""
    problem, encoding, state = search.problem, search.encoding, search.state
    present = encode(search.problem)
    allowed = missed_leaders(leader_spread(problem, present.state))
    if spread_leaders(problem, encoding, state, allowed) > allowed and _may_stay(present):
        put_back(state, present.state)
        spread_leaders(problem, encoding, state, allowed)


def _pins_leaders(search: Search) -> bool:
    rules = search.problem.rules
    return bool(rules.leader_racks) and rules.may_change_leaders


def _pin(search: Search) -> None:
    loops.pin_pass(search.encoding, search.state)


def _pin_again(search: Search) -> None:
    if loops.pin_pass(search.encoding, search.state):
        _change_leaders(search.encoding, search.state)


def _change_leaders(encoding: Encoding, state: State) -> None:
    for threshold in LEADER_THRESHOLDS:
        loops.lead_pass(encoding, state, threshold)


def _change_pairs(encoding: Encoding, state: State, threshold: float) -> None:
    """Try two changes at once around brokers that are still outside their bands, then single ones again."""
    by_broker, partners = movable_slots(encoding, state)
    loops.exchange_pass(encoding, state, by_broker, partners, exchange_attempts(encoding, partners), threshold)
    by_broker, _ = movable_slots(encoding, state)
    loops.lead_chain_pass(encoding, state, by_broker, CHAIN_ATTEMPTS)
    if _outside_bands(state):
        loops.move_pass(encoding, state, threshold)
        _change_leaders(encoding, state)


def _outside_bands(state: State) -> bool:
    return bool((state.shortfall > kernels.TINY).any() or (state.headroom < -kernels.TINY).any())


def _has_bands(search: Search) -> bool:
    """True if there is a band, and a replica that may move for it."""
    has_bands = search.problem.bands or search.problem.rules.least_topic_leaders
    return bool(has_bands) and not search.encoding.pinned.all()


def _missed(problem: Problem, state: State) -> FloatArray:
    outside = np.maximum(np.maximum(state.shortfall, -state.headroom), 0.0)[:, : len(problem.bands)]
    return np.where(outside > 2 * kernels.TINY, outside, 0.0) / scales(problem)[: len(problem.bands)]


# --- the order --------------------------------------------------------------------------------------------------------

PASSES: tuple[Pass, ...] = (
    Pass(
        "Forced changes",
        "place what cannot stay: drains, dead brokers, crowded racks, other factors, leaders that may not lead",
        "always",
        lambda _: True,
        _force,
    ),
    Pass(
        "Preferred racks",
        "let a replica lead that is in the rack preferred for it; later passes take no leader into one less preferred",
        "the policy prefers racks for leaders, and the task may change leaders",
        _pins_leaders,
        _pin,
    ),
    Pass(
        "Capacities",
        "bring overfull brokers within their hard limits, whatever that does to the bands; later passes keep it so",
        "a broker is over a limit",
        is_overfull,
        _relieve_capacities,
    ),
    Pass(
        "Leaders",
        "change leaders, which copies nothing",
        "there is a band",
        _has_bands,
        lambda search: _change_leaders(search.encoding, search.state),
    ),
    Pass("Moves", "move single replicas, the most gain per byte first", "there is a band", _has_bands, _move),
    Pass(
        "Pairs",
        "exchange two replicas, or change two leaders, where no single change helps",
        "there is a band, and a broker outside one",
        _has_bands,
        _exchange,
    ),
    Pass("Trimming", "take back what the bands do not need, largest first", "there is a band", _has_bands, _trim),
    Pass(
        "Levelling",
        "bring the farthest brokers nearer, by bands several times as wide",
        "there is a band, and a broker outside one",
        lambda search: _has_bands(search) and _outside_bands(search.state),
        _level,
    ),
    Pass(
        "Topic spread",
        "share out the replicas of each topic, where no broker gets farther from a band by it",
        "the policy asks for it",
        lambda search: search.problem.rules.topic_spread is not None,
        lambda search: spread_topics(search.problem, search.encoding, search.state),
    ),
    Pass(
        "Preferred racks again",
        "let those lead that came into a rack preferred for it",
        "the policy prefers racks for leaders",
        _pins_leaders,
        _pin_again,
    ),
    Pass(
        "Leaders of topics",
        "share out the leaders of each topic, where no broker gets farther from a band by it",
        "the policy asks for it, and the task may change leaders",
        lambda search: search.problem.rules.topic_leaders is not None and search.problem.rules.may_change_leaders,
        _spread_leaders,
    ),
    Pass(
        "Failover",
        "order replicas, and move what the bands leave free, for the loss of one more broker or rack",
        "the policy asks for it, and the task may change what it need not",
        lambda search: search.problem.rules.failover is not None and not search.problem.rules.only_forced,
        _spread_failover,
    ),
)
"""Passes of the search, in order. It runs again inside each broker with several log directories (`in_log_dirs`)."""
