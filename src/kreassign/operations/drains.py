"""The drain of brokers that are decommissioned: its plan, and its runs in a state directory."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from kreassign.admin import AdminClient
from kreassign.clock import Clock
from kreassign.errors import InputError, JournalUnreadable, MalformedPlan
from kreassign.executor.brokers import listed_brokers
from kreassign.executor.decommission import Decommission, Drain
from kreassign.executor.events import PlannedMove
from kreassign.executor.history.run_history import journals_of_runs, left_behind, read_history, read_or_name
from kreassign.executor.journal import cluster_journals, first_event, journal_path
from kreassign.model.run import RunHistory
from kreassign.model.snapshot import ClusterSnapshot, SnapshotLogDir
from kreassign.operations.broker_changes import noted_cordons, noted_decommissions
from kreassign.operations.connect import Warn
from kreassign.operations.plan import make_plan
from kreassign.operations.plan_files import PlanFile
from kreassign.operations.plan_inputs import inputs_of_snapshot
from kreassign.operations.plan_tasks import DrainBrokers, ReplaceBrokers
from kreassign.operations.rollback import is_in_place, is_settled
from kreassign.operations.run_journals import kept_facts
from kreassign.operations.snapshot import observe, whole_snapshot
from kreassign.planner.problem.policy import INTERNAL, PlanPolicy, matching
from kreassign.planner.results import stay_sentences


def drain_plan(
    client: AdminClient,
    step: Drain,
    wanted: Decommission,
    successors: Mapping[int, int],
    policy: PlanPolicy,
    clock: Clock,
    warn: Warn,
) -> PlanFile:
    """Plan that moves all replicas off the brokers, to their successors if they have any.

    Raises what `make_plan` raises, InputError.
    """
    seen = observe(client, clock.now_ms(), warn)
    snapshot = whole_snapshot(client, seen, clock, 0, warn)
    kept, policy = _without_staying(snapshot, wanted, policy)
    named = tuple(step.brokers)
    task = ReplaceBrokers(named, tuple(successors[one] for one in named)) if successors else DrainBrokers(named)
    outcome = make_plan(inputs_of_snapshot(kept, policy, "cluster"), task)
    if left := sorted(set(step.partitions).difference(outcome.plan.replicas)):
        raise InputError(
            f"{listed_brokers(step.brokers)} cannot be emptied: {'; '.join(stay_sentences(outcome, left))}"
        )
    return PlanFile(outcome.plan, outcome.facts.expected, outcome.facts)


def _without_staying(
    snapshot: ClusterSnapshot, wanted: Decommission, policy: PlanPolicy
) -> tuple[ClusterSnapshot, PlanPolicy]:
    """The snapshot without topics that may stay, whose bytes are no room, and a policy that does not name them."""
    stays, names = wanted.stays, [topic.name for topic in snapshot.topics]
    for pattern in wanted.may_stay:
        if not pattern.startswith(INTERNAL):  # which this client may not see
            matching(pattern, names)
    held: Counter[tuple[int, str | None]] = Counter()
    for topic in snapshot.topics:
        for one in topic.partitions if stays(topic.name) else ():
            for place in zip(one.replicas, one.log_dirs, one.sizes_bytes, strict=True):
                held[place[:2]] += place[2] or 0
    brokers = tuple(
        replace(one, log_dirs=tuple(_smaller(each, held[one.broker.id, each.path]) for each in one.log_dirs))
        for one in snapshot.brokers
    )
    kept = tuple(topic for topic in snapshot.topics if not stays(topic.name))
    excluded = tuple(one for one in policy.excluded_topics if not _is_of_staying(one, names, stays))
    return replace(snapshot, brokers=brokers, topics=kept), replace(policy, excluded_topics=excluded)


def _smaller(found: SnapshotLogDir, bytes_of_others: int) -> SnapshotLogDir:
    total = found.total_bytes
    return found if total is None else replace(found, total_bytes=max(0, total - bytes_of_others))


def _is_of_staying(pattern: str, names: Iterable[str], stays: Callable[[str], bool]) -> bool:
    """True if a pattern excludes only topics that may stay anyway."""
    excluded = [name for name in names if re.fullmatch(pattern, name)]
    return bool(excluded) and all(map(stays, excluded))


# Runs that drain brokers.

DRAINING = ("drain ", "replace ")
"""Beginnings of the names of `DrainBrokers` and `ReplaceBrokers` in facts."""


def refuse_shared_drains(
    state_dir: Path, cluster_id: str, brokers: Collection[int], unfinished: Collection[str]
) -> None:
    """Raise InputError if an unfinished run drains other brokers besides these: it cannot be called off for some.

    Raises MalformedPlan if the facts of one cannot be read: it may be a drain.
    """
    for run_id, moves in _drains(state_dir, cluster_id, unfinished):
        drained = {broker for move in moves for broker in move.reassignment.removing}
        if run_id in unfinished and not drained.isdisjoint(brokers) and not drained.issubset(brokers):
            ids = ",".join(map(str, sorted(drained.union(brokers))))
            raise InputError(
                f"run {run_id} drains {listed_brokers(drained)} at once, so it is called off for all of them: "
                f"`kreassign decommission {ids} --cancel`"
            )


def interrupted_drains(state_dir: Path, cluster_id: str, brokers: Collection[int]) -> dict[str, bool]:
    """Interrupted, unfinished runs that only drain these brokers: True for those that are to be rolled back then."""
    drains = frozenset(drains_of(state_dir, cluster_id, brokers))
    return {
        found.run_id: isinstance(found, RunHistory) and found.wants_rollback
        for found in left_behind(state_dir, cluster_id)
        if found.run_id in drains
    }


def demanded_rollbacks(
    client: AdminClient, state_dirs: Sequence[Path], cluster_id: str, brokers: Collection[int]
) -> tuple[str, ...]:
    """Drains of these brokers that have ended, of which a guard demanded the rollback, and that are still in place.

    The first of the directories has their journals. No run in any of these has begun to roll them back: their processes
    ended before that. What cannot be read says nothing.
    """
    state_dir = state_dirs[0]
    paths = [journal_path(state_dir, cluster_id, run_id) for run_id in drains_of(state_dir, cluster_id, brokers)]
    demanded = (
        (path, run)
        for path in paths
        # One with a throttle to restore is resumed, as an interrupted drain.
        if isinstance(run := read_or_name(path), RunHistory) and run.wants_rollback and is_settled(run)
    )
    return tuple(
        run.run_id
        for path, run in demanded
        if not _is_rollback_begun(state_dirs, run) and is_in_place(client, path, run, state_dirs)
    )


def _is_rollback_begun(state_dirs: Iterable[Path], undone: RunHistory) -> bool:
    """True if a run that undoes this one has submitted or ended a move."""
    for path in journals_of_runs(state_dirs, undone.cluster_id):
        with suppress(JournalUnreadable):
            moves = read_history(path).moves if first_event(path).undoes == undone.run_id else ()
            if any(move.submitted_ms is not None or move.ended_ms is not None for move in moves):
                return True
    return False


def decommissioned_here(state_dir: Path, cluster_id: str) -> frozenset[int]:
    """Brokers that this state directory cordoned, emptied or unregistered, by its notes and the drains it keeps.

    Raises InputError if a note cannot be read.
    """
    moves = (move for _, moves in _drains(state_dir, cluster_id) for move in moves)
    drained = (broker for move in moves for broker in move.reassignment.removing)
    return noted_cordons(state_dir, cluster_id) | noted_decommissions(state_dir, cluster_id).union(drained)


def drains_of(state_dir: Path, cluster_id: str, brokers: Collection[int]) -> Iterator[str]:
    """Drains of which every move takes a replica off one of these brokers."""
    for run_id, moves in _drains(state_dir, cluster_id):
        if moves and all(set(move.reassignment.removing).intersection(brokers) for move in moves):
            yield run_id


def _drains(
    state_dir: Path, cluster_id: str, unfinished: Collection[str] = ()
) -> Iterator[tuple[str, tuple[PlannedMove, ...]]]:
    """Runs of a plan that drains or replaces brokers, with their moves.

    What cannot be read is left out, unless its run is `unfinished`.
    """
    for path in cluster_journals(state_dir, cluster_id):
        try:
            first = first_event(path)
            facts = kept_facts(path, first.plan_id)
        except (JournalUnreadable, MalformedPlan):
            if path.stem in unfinished:
                raise
            continue
        if facts is not None and facts.task.startswith(DRAINING):
            yield path.stem, first.moves
