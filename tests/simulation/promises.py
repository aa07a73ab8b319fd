"""What a run has promised, and whether it was kept, once a trial is over. Reads the twin, and changes nothing."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from kreassign.executor.guards import GuardName
from kreassign.executor.history.run_history import RunHistory
from kreassign.executor.journal import read_events
from kreassign.executor.state import ENDED
from kreassign.executor.state.move import IN_FLIGHT, MoveStatus
from kreassign.model import ConfigResource, TopicPartition
from kreassign.model.throttle import BROKER_THROTTLES, TOPIC_THROTTLES
from kreassign.twin import Twin
from kreassign.twin.checkers import check_all
from tests.simulation.incidents import Deed
from tests.simulation.ordeal import Ordeal
from tests.simulation.story import replayed
from tests.simulation.trial import Trial

MOVED_BY_OTHERS = frozenset({"MovePartition", "CancelMoves", "Recreate", "Delete"})
SET_BY_OTHERS = frozenset({"SetThrottles", "ListReplica"})
HARMLESS = frozenset({
    "StepClock", "Suspend", *(one.value for one in (Deed.DIE_WRITTEN, Deed.DIE_UNWRITTEN, Deed.DIE, Deed.STOP)),
})  # fmt: skip

LEFT_THERE = "nothing was restored there"
"""What is told of a setting on a broker that was unregistered, or given up."""

LEASE_LOST = "the lease of the cluster was lost"
"""Whoever is suspended for longer than a session lasts loses it, and says so."""

OUTRUN = f"{GuardName.RATE} (over"
"""Copies that share a throttle may each be slower than their producers, until one of them has ended."""


def broken(ordeal: Ordeal) -> Iterator[str]:
    """A sentence for each promise that was not kept."""
    found, twin, trial = ordeal.outcome.found, ordeal.twin, ordeal.trial
    yield from ordeal.outcome.untrue
    if found is None:
        if ordeal.outcome.attempts:
            yield "it has no journal"
        return
    if found.state not in ENDED:
        yield f"it is {found.state}"
    yield from _journal(ordeal)
    yield from _moves(twin, trial, found)
    yield from _throttle(ordeal)
    problems = [one for one in found.problems if LEASE_LOST not in one or "Suspend" not in trial.kinds]
    problems = [one for one in problems if not one.startswith(OUTRUN)]
    if trial.kinds <= HARMLESS and (found.state != "done" or problems):
        yield f"{found.state} with {problems}, and nothing happened that makes any difference"
    if found.state == "done" and any(move.status != MoveStatus.COMPLETE for move in found.moves):
        yield "told done, and not all of its moves are complete"
    if replayed(ordeal.log) != twin.metadata:
        yield "the metadata log of the cluster tells of another state"
    check_all(twin)


def _journal(ordeal: Ordeal) -> Iterator[str]:
    events = read_events(ordeal.path)
    if any(later.at_ms < before.at_ms for before, later in pairwise(events)):
        yield "times in its journal go back"


def _moves(twin: Twin, trial: Trial, found: RunHistory) -> Iterator[str]:
    if trial.kinds & MOVED_BY_OTHERS:
        return
    targets = {one.topic_partition for one in trial.moves}
    told_moving = {TopicPartition(one.topic, one.partition) for one in found.moves if one.status in IN_FLIGHT}
    if moving := sorted(twin.metadata.reassigning & targets - told_moving):
        yield f"ended, and still moving: {', '.join(map(str, moving))}"
    for one in found.moves:
        state = twin.metadata.partition(TopicPartition(one.topic, one.partition))
        if one.status == MoveStatus.COMPLETE and (state is None or state.replicas != one.target):
            yield f"{one.topic}-{one.partition} is told {one.status}, to be on {one.target}, and is {state}"
        never = one.status == MoveStatus.PLANNED or one.submitted_ms is None
        if never and state is not None and state.replicas not in (one.original, one.target):
            yield f"{one.topic}-{one.partition} was never sent, and went from {one.original} to {state.replicas}"


def _throttle(ordeal: Ordeal) -> Iterator[str]:
    """A run is resumed until nothing is left to restore, so nothing of it may be left, but where it was told to."""
    found = ordeal.outcome.found
    told = found.problems if found is not None else ()
    given_up = set(map(ConfigResource.broker, ordeal.given_up))
    named = " ".join(one for one in told if LEFT_THERE in one)
    left = [
        f"{owner} {name} = {values[name]}"
        for owner, values in sorted(ordeal.twin.metadata.configs.items())
        for name in (*TOPIC_THROTTLES, *BROKER_THROTTLES)
        if name in values and owner not in given_up and f"{name} of {owner} " not in named
    ]
    if left and not ordeal.trial.kinds & SET_BY_OTHERS:
        yield f"throttles left and not told of: {'; '.join(left)}"
    for broker in sorted(ordeal.given_up):
        if f"broker {broker}" not in " ".join(told):
            yield f"broker {broker} was given up, and that is not told"


def broken_going_back(ordeal: Ordeal) -> Iterator[str]:
    """What a rollback after the run did not bring back, though nobody else touched it."""
    found, trial = ordeal.outcome.found, ordeal.trial
    if found is None or found.state not in ENDED or trial.kinds & MOVED_BY_OTHERS:
        return
    skipped = ordeal.roll_back()
    back = ordeal.outcome.rolled_back
    if back is not None and back.state != "done":
        yield f"the rollback is {back.state}: {back.problems}"
    for one in found.moves:
        state = ordeal.twin.metadata.partition(TopicPartition(one.topic, one.partition))
        if state is None or (
            state.replicas != one.original and not any(str(one.partition) in line for line in skipped)
        ):
            yield f"{one.topic}-{one.partition} was on {one.original}, and after the rollback is {state}"
