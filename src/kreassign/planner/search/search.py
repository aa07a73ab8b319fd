"""The search for a plan: what must be, then leaders, then moves by relief per byte, then pairs, then trimming.

Deterministic: the same problem gives the same plan, byte for byte. docs/concepts/planning.md explains the order.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from kreassign.planner.problem.arrays import FloatArray, IndexArray
from kreassign.planner.problem.partitions import Assignment
from kreassign.planner.problem.problem import Budget, Problem
from kreassign.planner.search import kernels, passes
from kreassign.planner.search.disks import in_log_dirs
from kreassign.planner.search.encoding import (
    Framed,
    adopt,
    framed,
    half_widths,
    misplaced,
    refresh,
    scales,
    settled_assignment,
)
from kreassign.planner.search.feasibility import refuse_impossible, refuse_overfull, refuse_unplaced
from kreassign.planner.search.state import EMPTY, GONE, Frame, Residents, State, residents_of
from kreassign.planner.search.topic_spread import spread_topics

# Relief per scaled byte: a replica of average proportions that lessens an excess and a want of one goal is worth 2.
MOVE_WORTHS = (48.0, 16.0, 6.0, 4.0, 2.5, 1.5, 0.5)
# Part of what leading brings that a change of leader must relieve.
LEAD_WORTHS = (1.5, 1.0, 0.5, 0.2, 0.05, 0.0)
EXCHANGE_WORTHS = (1.0, 0.2, 0.0)
EXCHANGE_TRIES = 1_500
CHAIN_TRIES = 60
SMALLER_TRIES = 12
# Bands several times as wide, for what cannot be met; in the end as they are.
LEVEL_WIDTHS = (8.0, 4.0, 2.8, 2.0, 1.4, 1.0)
LEVEL_WORTHS = (4.0, 2.0, 0.5)


@dataclass(frozen=True, slots=True, eq=False)
class Solution:
    """A plan and what remains.

    `missed` (N, R) is the distance of every broker from its bands, in the unit of each goal, 0 inside. `undone` are
    the indices of partitions of which a forced change did not fit into the budget.
    """

    assignment: Assignment
    missed: FloatArray
    undone: IndexArray


def solve(problem: Problem, begin: Assignment | None = None) -> Solution:
    """The assignment that meets the rules and comes nearest to the bands, at few bytes.

    With `begin` the search starts from that assignment; what counts as copied is still what is not there now.
    Raises Infeasible when the rules cannot be met; a budget that is too small for what must be is no such rule: what
    does not fit remains as it is.
    """
    assignment, missed, undone = _solved(problem, begin)
    return Solution(in_log_dirs(problem, assignment, lambda inner: _solved(inner)[0]), missed, undone)


def _solved(problem: Problem, begin: Assignment | None = None) -> tuple[Assignment, FloatArray, IndexArray]:
    refuse_impossible(problem)
    search = framed(problem)
    if begin is not None:
        adopt(search, begin)
    undone = _force(problem, search)
    _relieve_capacities(problem, search)
    if problem.bands or problem.rules.least_topic_leaders:
        _balance(search.frame, search.state)
        _level(problem, search)
    spread_topics(problem, search.frame, search.state)
    refuse_overfull(problem, search.frame, search.state)
    missed = _missed(problem, search.state)
    return settled_assignment(problem, search.frame, search.state), missed, undone


# --- what must be ----------------------------------------------------------------------------------------------------


def _force(problem: Problem, search: Framed) -> IndexArray:
    """Drains, dead brokers, racks, factors, leaders that may not lead. Returns the partitions left undone."""
    frame, state = search.frame, search.state
    if problem.rules.between_brokers:
        wrong = misplaced(frame, state, repair_racks=problem.rules.repair_racks) & frame.movable[frame.owners]
        leaving = np.flatnonzero(wrong)
        if len(leaving):
            passes.place_pass(frame, state, leaving, np.full_like(leaving, EMPTY))
        if (problem.partitions.wanted_factors < problem.partitions.factors).any():
            passes.shrink_pass(frame, state, problem.partitions.wanted_factors.astype(np.int64))
    if _barred_leaders(frame, state):
        passes.demote_pass(frame, state)
    waiting = np.flatnonzero(state.places == EMPTY)
    if not len(waiting):
        return waiting
    largest_first = waiting[np.argsort(-frame.size[frame.owners[waiting]], kind="stable")]
    passes.fill_pass(frame, state, largest_first)
    unplaced = np.flatnonzero(state.places == EMPTY)
    if len(unplaced) and problem.budget == Budget():
        refuse_unplaced(problem, frame, state, unplaced)
    homes = frame.homes[unplaced]
    passes.place_pass(frame, state, unplaced, np.where(homes >= 0, homes, GONE))
    undone = np.unique(frame.owners[unplaced])
    _give_way(frame, state, undone)
    return undone


def _give_way(frame: Frame, state: State, undone: IndexArray) -> None:
    """New replicas go again that were put into a rack from which another was to leave, and then could not."""
    for partition in undone.tolist():
        slots = np.arange(frame.offsets[partition], frame.offsets[partition + 1])
        for slot in slots[(state.places[slots] >= 0) & (state.places[slots] != frame.homes[slots])]:
            others = state.places[slots[(slots != slot) & (state.places[slots] >= 0)]]
            beside = int((frame.racks[others] == frame.racks[state.places[slot]]).sum())
            if beside >= frame.rack_limit[partition] and slot != state.leaders[partition]:
                home = frame.homes[slot]
                passes.place_pass(frame, state, np.array([slot]), np.array([home if home >= 0 else GONE]))


def _barred_leaders(frame: Frame, state: State) -> bool:
    """Whether any partition is led from a broker that may not lead."""
    hosts = state.places[state.leaders]
    return bool((~frame.leading[np.maximum(hosts, 0)] & (hosts >= 0)).any())


def _relieve_capacities(problem: Problem, search: Framed) -> None:
    """Bring overfull brokers within their capacities, whatever that does to the bands; later changes keep it so."""
    frame, state = search.frame, search.state
    if not (state.spare < -kernels.TINY).any():
        return
    hard = state._replace(lack=np.full_like(state.lack, -np.inf), room=state.spare.copy())
    for worth in (1.0, 0.1, 0.0):
        _balance_leaders(frame, hard)
        passes.move_pass(frame, hard, worth)
    for worth in EXCHANGE_WORTHS:
        if _outside(hard):
            _pair(frame, hard, worth)
    refresh(problem, frame, state)


# --- what shall be ---------------------------------------------------------------------------------------------------


def _balance(frame: Frame, state: State) -> None:
    _balance_leaders(frame, state)
    for worth in MOVE_WORTHS:
        moved = passes.move_pass(frame, state, worth)
        if moved and worth < 1:
            _balance_leaders(frame, state)
    for worth in EXCHANGE_WORTHS:
        if _outside(state):
            _pair(frame, state, worth)
    _trim(frame, state)


def _level(problem: Problem, search: Framed) -> None:
    """Where a band cannot be met, bring the farthest brokers nearer: the same for bands several times as wide.

    The sum of what is missed does not tell whether one broker misses much or many miss a little. Nothing is trimmed
    afterwards, because trimming cannot tell either.
    """
    frame, state = search.frame, search.state
    if not _outside(state):
        return
    for width in LEVEL_WIDTHS:
        extra = (width - 1) * half_widths(problem)
        state.lack[:] -= extra
        state.room[:] = np.minimum(state.room + extra, state.spare)
        if _outside(state):
            for worth in LEVEL_WORTHS:
                _balance_leaders(frame, state)
                passes.move_pass(frame, state, worth)
            _pair(frame, state, LEVEL_WORTHS[-1])
        refresh(problem, frame, state)


def _balance_leaders(frame: Frame, state: State) -> None:
    for worth in LEAD_WORTHS:
        passes.lead_pass(frame, state, worth)


def _pair(frame: Frame, state: State, worth: float) -> None:
    """Two changes at once around the brokers that are still outside their bands, then single ones again."""
    passes.exchange_pass(frame, state, _residents(frame, state), EXCHANGE_TRIES, worth)
    passes.lead_chain_pass(frame, state, _residents(frame, state), CHAIN_TRIES)
    if _outside(state):
        passes.move_pass(frame, state, worth)
        _balance_leaders(frame, state)


def _trim(frame: Frame, state: State) -> None:
    largest_first = np.argsort(-frame.size[frame.owners], kind="stable")
    passes.return_pass(frame, state, largest_first)
    passes.smaller_pass(frame, state, _residents(frame, state), SMALLER_TRIES)


def _residents(frame: Frame, state: State) -> Residents:
    return residents_of(state.places, len(frame.racks))


def _outside(state: State) -> bool:
    return bool((state.lack > kernels.TINY).any() or (state.room < -kernels.TINY).any())


def _missed(problem: Problem, state: State) -> FloatArray:
    outside = np.maximum(np.maximum(state.lack, -state.room), 0.0)[:, : len(problem.bands)]
    return np.where(outside > 2 * kernels.TINY, outside, 0.0) / scales(problem)[: len(problem.bands)]
