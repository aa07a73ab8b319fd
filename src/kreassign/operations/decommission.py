"""Decommission brokers: cordon, drain, prove that they are empty, unregister.

`executor/decommission.py` decides each step from the present state of the cluster, so a later call, after a crash,
on another machine or by another operator, continues where the last one stopped. The drain
is a run like any other, with its journal, its lease and its rollback; one that was interrupted here is resumed.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace
from typing import Protocol

from kreassign.admin import AdminClient
from kreassign.clock import SYSTEM_CLOCK, Clock
from kreassign.errors import ClusterError, ExecutionError, InputError, Rejected
from kreassign.executor.brokers import (
    CORDONED_LOG_DIRS,
    NOT_SHOWN,
    Await,
    Blocked,
    BrokerReading,
    Cordon,
    Finished,
    Readings,
    Steps,
    confirmed,
    cordon_open,
    is_our_cordon,
    listed_brokers,
    read_brokers,
    some_partitions,
)
from kreassign.executor.cluster import permissions
from kreassign.executor.cluster.changes import is_final
from kreassign.executor.cluster.port import confirmed_writes
from kreassign.executor.decommission import Decommission, Drain, Step, Unregister
from kreassign.executor.events import PlannedMove, RunStarted
from kreassign.executor.journal import active_run
from kreassign.executor.maintenance.record import is_record_denied
from kreassign.executor.preview import RunPreview
from kreassign.executor.state import brokers_between
from kreassign.model.closures import REFUSES
from kreassign.model.error_codes import BROKER_ID_NOT_REGISTERED, has_code
from kreassign.model.plan import Plan
from kreassign.model.run import RunHistory
from kreassign.model.text import name_pattern
from kreassign.operations.broker_changes import (
    cordon,
    forget_cordons,
    forget_decommissions,
    note_cordons,
    note_decommissions,
    noted_cordons,
    read_maintenance,
    readable_notes,
    sole_change,
    uncordon_dead,
    validated_cordons,
)
from kreassign.operations.connect import Tell, tell_nobody
from kreassign.operations.decommission_undo import undo_drain
from kreassign.operations.drains import decommissioned_here, demanded_rollbacks, drain_plan, interrupted_drains
from kreassign.operations.plan_files import PlanFile
from kreassign.operations.rollback import Rollback, demand_sentence
from kreassign.operations.run import (
    RunContext,
    RunRequest,
    prepare_run,
    preview_run,
    refuse_runs_here,
    refuse_unless_free,
)
from kreassign.operations.run_journals import find_journal
from kreassign.operations.whole_runs import execute_whole, resume_whole
from kreassign.planner.problem.policy import PlanPolicy

WITHOUT_PLAN = RunRequest(PlanFile(Plan(())))
"""Default settings of a run; its plan is made when it is due."""

NO_POLICY = PlanPolicy()
SHOWN_REASONS = 3
BRIEF_S = 300.0
"""How long a broker may take to delete a replica."""


@dataclass(frozen=True, slots=True)
class DecommissionRequest:
    """Brokers to empty, and how: each by its successor alone, if there are any.

    `run` has the settings of the runs that drain them, except the plan; `policy` is for that plan. `may_stay` are
    patterns for topics whose replicas may stay, such as canaries that a vendor keeps on every broker.
    """

    brokers: tuple[int, ...]
    successors: tuple[int, ...] = ()
    unregisters: bool = False
    run: RunRequest = WITHOUT_PLAN
    policy: PlanPolicy = NO_POLICY
    may_stay: tuple[str, ...] = ()

    @property
    def wanted(self) -> Decommission:
        """The request as the decision about steps takes it. Raises InputError for a pattern that is none."""
        for pattern in self.may_stay:
            name_pattern(pattern)
        return Decommission(self.unregisters, may_stay=self.may_stay)


@dataclass(frozen=True, slots=True)
class DecommissionResult:
    """Outcome of a decommission: steps taken, in words, runs, and the next step.

    `next_step` is a `Finished` with what was checked, or a `Blocked` with the obstacle.
    """

    steps: tuple[str, ...]
    runs: tuple[RunHistory, ...]
    next_step: Step

    @property
    def is_finished(self) -> bool:
        """True if the brokers are empty, and unregistered if requested."""
        return isinstance(self.next_step, Finished)


class RunsOfSteps(Protocol):
    """Executes the runs."""

    def execute(self, plan: PlanFile) -> RunHistory:
        """Execute a plan to its end, or until it is paused."""

    def resume(self, run_id: str) -> RunHistory:
        """Resume an interrupted run."""


@dataclass(frozen=True, slots=True)
class JournalledRuns:
    """Runs of this machine."""

    client: AdminClient
    context: RunContext
    request: DecommissionRequest
    tell: Tell = tell_nobody

    def execute(self, plan: PlanFile) -> RunHistory:
        """Execute a plan, and undo it if one of its guards demands that."""
        request = replace(self.request.run, plan=plan)
        return execute_whole(self.client, request, self.context, undo=self._undo).run

    def resume(self, run_id: str) -> RunHistory:
        """Resume a run of this state directory."""
        path = find_journal(self.context.state_dir, run_id)
        how = self.request.run
        return resume_whole(
            self.client,
            path,
            self.context,
            replan=how.replan,
            give_up_after_s=how.give_up_after_s,
            undo=self._undo,
        ).run

    def _undo(self, found: RunHistory) -> Rollback:
        return undo_drain(self.client, found, self.request.brokers, self.context, self.tell)


def decommission(
    client: AdminClient,
    request: DecommissionRequest,
    context: RunContext,
    tell: Tell = tell_nobody,
    *,
    is_agreed: bool = True,
) -> DecommissionResult:
    """Empty brokers, and unregister them if requested; continues an earlier call.

    Unless that `is_agreed`, nothing is changed: it is checked that there is nothing to do. Returns when that is done,
    when only the operator can go on, or when a run did not end well, or was rolled back. Raises InputError, Infeasible,
    IllegalPlan, ExecutionError, ClusterError.
    """
    executed = JournalledRuns(client, context, request, tell)
    return Decommissioning(client, request, context, executed, SYSTEM_CLOCK, tell, is_agreed=is_agreed).go_on()


@dataclass(frozen=True, slots=True)
class DecommissionPreview:
    """Predicted decommission: its first step, ways for replicas to land on the brokers after that, and the drain.

    `resumed` are interrupted runs that it would resume, `rolled_back` those of them that it would roll back then, since
    a guard demanded that. `demanded_rollbacks` are earlier drains that have ended, and whose demanded rollback was not
    made: it leaves them. `drain` is None if nothing is to be moved, or that is not known yet. Brokers that are
    `unregistered` are down, so that it does that after the drain.
    """

    next_step: Step
    open_ways: tuple[str, ...] = ()
    resumed: tuple[str, ...] = ()
    drain: RunPreview | None = None
    demanded_rollbacks: tuple[str, ...] = ()
    rolled_back: tuple[str, ...] = ()
    unregistered: tuple[int, ...] = ()


def preview_decommission(
    client: AdminClient, request: DecommissionRequest, context: RunContext, clock: Clock = SYSTEM_CLOCK
) -> DecommissionPreview:
    """Predict `decommission` for the present cluster; changes nothing. Raises what planning the drain raises."""
    found = read_brokers(client, request.brokers)
    wanted = _with_maintenance(client, request.wanted, found, context)
    cluster_id = client.describe_cluster().cluster_id
    wanted.refuse_unknown(found, decommissioned_here(context.state_dir, cluster_id))
    step = wanted.next_step(found)
    if isinstance(step, Cordon):
        wanted = _asked_for_cordons(client, wanted, found)
        step = wanted.next_step(found)
    ways = wanted.open_ways(found)
    resumed = interrupted_drains(context.state_dir, cluster_id, request.brokers)
    if not resumed:
        _refuse_to_wait_for_runs_here(step, wanted.without_staying(found), context, cluster_id)
    ahead = _drain_ahead(wanted, found)
    demanded = demanded_rollbacks(client, context.state_dirs, cluster_id, request.brokers)
    rolled_back = tuple(run_id for run_id, wants_rollback in resumed.items() if wants_rollback)
    is_last = isinstance(step, Blocked | Finished | Unregister) or any(one.is_live for one in found.brokers)
    unregistered = request.brokers if request.unregisters and not is_last else ()
    seen = DecommissionPreview(step, ways, tuple(resumed), None, demanded, rolled_back, unregistered)
    if resumed or isinstance(step, Blocked | Finished) or ahead is None:
        return seen
    asked, started = _prepared_drain(client, request, step, ahead, context, clock)
    return replace(seen, drain=preview_run(client, started, asked))


def _refuse_to_wait_for_runs_here(step: Step, found: Readings, context: RunContext, cluster_id: str) -> None:
    """Raise InputError if moves would be waited for that may be of a run here: it keeps the drain back at their end."""
    if isinstance(step, Await) and any(one.arriving or one.leaving for one in found.brokers):
        refuse_runs_here(context, cluster_id)


def _with_maintenance(client: AdminClient, wanted: Decommission, found: Readings, context: RunContext) -> Decommission:
    """The request with the live brokers that maintenance has cordoned, as far as this client may know."""
    live = [one.broker for one in found.brokers if one.cordon is not None]
    if not live:
        return wanted
    try:
        known = read_maintenance(client, context)
    except ClusterError as error:
        if not is_record_denied(error):
            raise
        return wanted
    entered = {**known.doubtful.brokers, **known.record.brokers}
    cordoned = {broker: str(entered[broker]) for broker in live if broker in entered and entered[broker].is_cordoned}
    return replace(wanted, maintained=cordoned)


def _asked_for_cordons(client: AdminClient, wanted: Decommission, found: Readings) -> Decommission:
    """The request with the brokers whose cordon Kafka refuses."""
    asked = validated_cordons(client, found, wanted.uncordoned)
    refused = {broker: why for broker, why in asked.items() if why is not None}
    return replace(wanted, uncordoned={**wanted.uncordoned, **refused})


def _drain_ahead(wanted: Decommission, found: Readings) -> Drain | None:
    """The drain that follows once the brokers are cordoned, if there is one."""
    cordoned = dict.fromkeys((one.broker for one in found.brokers), "")
    step = replace(wanted, uncordoned=cordoned).next_step(found)
    return step if isinstance(step, Drain) else None


def _prepared_drain(
    client: AdminClient, request: DecommissionRequest, step: Step, ahead: Drain, context: RunContext, clock: Clock
) -> tuple[RunRequest, RunStarted]:
    """The run of the drain, as it will be prepared after this step. Raises as planning and preparing do, InputError."""
    asked = replace(request.run, plan=_plan_of(client, request, ahead, context, clock), measure_for_s=0.0)
    started = prepare_run(client, asked, context, clock)
    if isinstance(step, Cordon) and started.pace.is_stepwise:
        _refuse_lists_between(started.moves, step.brokers)
    return asked, started


def _plan_of(
    client: AdminClient, request: DecommissionRequest, step: Drain, context: RunContext, clock: Clock
) -> PlanFile:
    pairs = dict(zip(request.brokers, request.successors, strict=False))
    return drain_plan(client, step, request.wanted, pairs, request.policy, clock, context.warn)


def _refuse_lists_between(moves: Iterable[PlannedMove], cordoned: Collection[int]) -> None:
    """Raise InputError if brokers that will be cordoned stay in a list between two steps of a move."""
    if held := [move.topic_partition for move in moves if not brokers_between(move).isdisjoint(cordoned)]:
        raise InputError(
            f"with --stepwise {some_partitions(held)} would leave {listed_brokers(cordoned)} one after the other, and "
            f"when these are cordoned, {REFUSES}; leave out --stepwise, or decommission the brokers one after the other"
        )


class Decommissioning:
    """One process that takes the steps. It remembers only refusals of the cluster."""

    def __init__(
        self,
        client: AdminClient,
        request: DecommissionRequest,
        context: RunContext,
        executed: RunsOfSteps,
        clock: Clock,
        tell: Tell,
        *,
        is_agreed: bool = True,
    ) -> None:
        self._client = client
        self._request = request
        self._context = context
        self._runs = executed
        self._clock = clock
        self._is_agreed = is_agreed
        self._wanted = request.wanted
        self._steps = Steps(tell, lambda: clock.sleep(context.poll_s))
        self._done: list[RunHistory] = []
        self._warned: set[str] = set()
        self._since_s = 0.0
        self._fewest: dict[frozenset[str], int] = {}
        """The fewest copies on the brokers in the present wait, by the log directories that were not read."""
        self._closed = frozenset[int]()
        """Brokers that were seen cordoned."""
        self._noted = frozenset[int]()
        """Brokers whose cordon this process has noted."""

    def go_on(self) -> DecommissionResult:
        """Take steps until this process can do no more."""
        self._check()
        cluster_id, state_dir = self._client.describe_cluster().cluster_id, self._context.state_dir
        for run_id in demanded_rollbacks(self._client, self._context.state_dirs, cluster_id, self._request.brokers):
            self._context.warn(demand_sentence(run_id))
        for run_id, wants_rollback in interrupted_drains(state_dir, cluster_id, self._request.brokers).items():
            if not self._is_agreed:
                return self._result(NOT_SHOWN)
            then = ", and roll it back: a guard demanded that" if wants_rollback else ""
            self._steps.note(f"resume run {run_id}, which drains {listed_brokers(self._request.brokers)}{then}")
            if blocked := self._after(self._runs.resume(run_id)):
                return self._result(blocked)
        last: Step | None = None
        while True:
            with self._steps:
                found = self._read()
                self._closed |= {one.broker for one in found.brokers if one.is_closed}
                if last is None:
                    self._wanted.refuse_unknown(found, decommissioned_here(state_dir, cluster_id))
                    self._wanted = _with_maintenance(self._client, self._wanted, found, self._context)
                step = self._next_step(found)
                if self._is_agreed or isinstance(step, Await):
                    self._check_first(step, found, last)
                    # Kafka may refuse every cordon: then another step is next.
                    step = self._next_step(found) if isinstance(step, Cordon) else step
                if isinstance(step, Finished):
                    ours = noted_cordons(state_dir, cluster_id).intersection(self._request.brokers)
                    note_decommissions(state_dir, cluster_id, ours)
                    forget_cordons(state_dir, cluster_id, ours)
                if isinstance(step, Blocked | Finished) or not (self._is_agreed or isinstance(step, Await)):
                    return self._result(step if isinstance(step, Blocked | Finished) else NOT_SHOWN)
                if not isinstance(step, Cordon):  # that one is decided again, and told then
                    self._steps.note(str(step))
                if blocked := self._take(step, found, last):
                    return self._result(blocked)
                last = step

    def _take(self, step: Step, found: Readings, last: Step | None) -> Blocked | None:
        match step:
            case Cordon(brokers):
                late = (
                    f"{listed_brokers(brokers)}: no cordon shows, for {BRIEF_S:g} s since it was set: brokers lag, or "
                    "others take it back at once. Look (`kreassign doctor`), then give the command again"
                )
                return self._waited(step, last, found, late) or self._cordon(brokers)
            case Await():
                self._wanted = replace(self._wanted, unread=self._wanted.unread | found.unread_log_dirs)
                late = step.remedy and f"{step.reason}, for {BRIEF_S:g} s now: {step.remedy}"
                return self._waited(step, last, found, late)
            case Drain():
                self._warn_of_open_ways(found)
                return self._drain(step)
            case Unregister(brokers):
                for broker in brokers:
                    self._unregister(broker)
        return None

    def _check(self) -> None:
        brokers, successors = self._request.brokers, self._request.successors
        if not brokers:
            raise InputError("name the brokers to decommission, for example 3,4")
        if successors and len(successors) != len(brokers):
            raise InputError("each broker to replace needs one successor")
        if (run_id := active_run(self._context.state_dir, self._client.describe_cluster().cluster_id)) is not None:
            raise InputError(
                f"run {run_id} is active on this cluster; follow it with `kreassign watch {run_id}`, and give this "
                "command again when it has ended"
            )
        if self._request.unregisters and not self._client.has_quorum():
            raise InputError(
                "this cluster keeps its metadata in ZooKeeper, where a broker that is stopped is registered no longer; "
                "leave out --unregister"
            )

    def _check_first(self, step: Step, found: Readings, last: Step | None) -> None:
        """Check a drain before the cordon, and before moves are waited for: that this client may execute it.

        When nothing moves, also that it can be planned. Raises as planning does, and InputError.
        """
        is_new = step != last and not (isinstance(step, Await) and isinstance(last, Await))
        if not (is_new and isinstance(step, Cordon | Await)):
            return
        moved = self._wanted.without_staying(found)
        _refuse_to_wait_for_runs_here(step, moved, self._context, self._client.describe_cluster().cluster_id)
        due = cordon_open(found, self._wanted.uncordoned)
        if not isinstance(due, Cordon):
            return
        ahead = _drain_ahead(self._wanted, found)
        drained = {name.topic for one in moved.brokers for name in one.replicas if name not in one.leaving}
        topics = drained if self._request.run.throttle.is_limited else set[str]()
        reassigns = ahead is not None or isinstance(step, Await)
        self._refuse_if_lacking(due.brokers, sorted(topics), reassigns=reassigns)
        if any(one.replicas or one.arriving for one in moved.brokers):
            refuse_unless_free(self._client, self._context)
        self._wanted = _asked_for_cordons(self._client, self._wanted, found)
        if ahead is not None:
            quiet, then = replace(self._context, warn=tell_nobody), self._wanted.next_step(found)
            _prepared_drain(self._client, self._request, then, ahead, quiet, self._clock)

    def _keep_open(self, broker: int, refusal: str) -> None:
        self._wanted = replace(self._wanted, uncordoned={**self._wanted.uncordoned, broker: refusal})

    def _refuse_if_lacking(self, brokers: Collection[int], topics: Iterable[str] = (), *, reassigns: bool) -> None:
        if lacking := permissions.lacking_for_brokers(self._client, brokers, reassigns=reassigns, topics=topics):
            refused = f"the decommission of {listed_brokers(self._request.brokers)} cannot go on:"
            raise InputError("\n  - ".join((refused, *lacking)))

    def _waited(self, step: Await | Cordon, last: Step | None, found: Readings, late: str) -> Blocked | None:
        """Wait one poll, or before a cordon that is not the first.

        Return Blocked, if `late`, after BRIEF_S, in a wait for deletions BRIEF_S after the last one.
        """
        if is_new := _end_of(step) != _end_of(last):
            self._fewest.clear()
        if (isinstance(step, Await) and self._are_fewer(found)) or is_new:
            self._since_s = self._clock.monotonic_s()
        elif late and self._clock.monotonic_s() - self._since_s >= BRIEF_S:
            return Blocked(late)
        if step == last or isinstance(step, Await):
            self._clock.sleep(self._context.poll_s)
        return None

    def _are_fewer(self, found: Readings) -> bool:
        """True if the same log directories have never held so few copies in this wait."""
        copies = sum(len(one.copies) for one in found.brokers)
        fewest = self._fewest.setdefault(found.unread_log_dirs, copies)
        self._fewest[found.unread_log_dirs] = min(copies, fewest)
        return copies < fewest

    # --- steps --------------------------------------------------------------------------------------------------

    def _cordon(self, brokers: Collection[int]) -> Blocked | None:
        state_dir, cluster_id = self._context.state_dir, self._client.describe_cluster().cluster_id
        with sole_change(self._client, self._context, "decommission", self._clock) as confirm:
            # The checks took their time: somebody may have cordoned single directories, which are not ours to open.
            step = self._wanted.next_step(self._read())
            due = step.brokers if isinstance(step, Cordon) else ()
            if not (brokers := tuple(broker for broker in due if broker in brokers)):
                return None
            noted = readable_notes(state_dir, cluster_id)
            # A cancel forgets the note, also of a cordon that no reading has shown yet.
            if opened := (self._closed | self._noted.difference(noted)).intersection(brokers):
                return _taken_back(opened)
            self._steps.note(str(Cordon(brokers)))
            # Others that were noted may have been opened since: a later cordon of theirs is not ours.
            elsewhere = sorted(noted.difference(brokers))
            others = read_brokers(self._client, elsewhere).brokers if elsewhere else ()
            not_ours = [one.broker for one in others if one.cordon and not _may_be_ours(one)]
            forget_cordons(state_dir, cluster_id, not_ours)
            for broker in brokers:
                if opened := self._noted.difference(noted_cordons(state_dir, cluster_id)):
                    return _taken_back(opened)
                # Before it is sent: an answer that is lost leaves a cordon that is ours.
                note_cordons(state_dir, cluster_id, (broker,))
                self._noted |= {broker}
                try:
                    refusal = cordon(confirmed_writes(self._client, confirm), broker)
                except (ClusterError, ExecutionError) as error:
                    # One that was noted before may be set already, by a process that died, and not be shown yet.
                    if broker not in noted and (isinstance(error, ExecutionError) or is_final(error)):
                        self._forget_cordon(broker, cluster_id)
                    raise
                if refusal is None:
                    forget_decommissions(state_dir, cluster_id, (broker,), (f"cordon broker {broker}",))
                    continue
                self._keep_open(broker, refusal)
                if broker not in noted:
                    self._forget_cordon(broker, cluster_id)
        return None

    def _forget_cordon(self, broker: int, cluster_id: str) -> None:
        forget_cordons(self._context.state_dir, cluster_id, (broker,))
        self._noted -= {broker}

    def _drain(self, step: Drain) -> Blocked | None:
        """Plan and execute the drain; return the obstacle, if any. Raises what `make_plan` and the run raise."""
        plan = _plan_of(self._client, self._request, step, self._context, self._clock)
        return self._after(self._runs.execute(plan))

    def _unregister(self, broker: int) -> None:
        with sole_change(self._client, self._context, "decommission", self._clock) as confirm:
            # It may hold replicas, or run, by now: Kafka would unregister it all the same.
            found = self._read()
            step = self._next_step(found)
            if not isinstance(step, Unregister) or broker not in step.brokers:
                return
            self._refuse_if_lacking((), reassigns=True)  # unregistering needs the same permission
            if all(one.may_be_cordoned for one in found.brokers):
                self._open_for_namesake(broker)
            # Before it is sent: an answer that is lost does not make the broker unknown to the next call.
            cluster_id = self._client.describe_cluster().cluster_id
            note_decommissions(self._context.state_dir, cluster_id, (broker,))
            try:
                self._client.unregister_broker(broker, confirm=confirm)
            except Rejected as error:
                if not has_code(error, BROKER_ID_NOT_REGISTERED):
                    raise
        forget_cordons(self._context.state_dir, cluster_id, (broker,), (f"unregister broker {broker}",))
        self._wanted = replace(self._wanted, unregistered=self._wanted.unregistered | {broker})

    def _open_for_namesake(self, broker: int) -> None:
        """Delete the cordon, which outlives its broker: a new one with the id would start cordoned."""
        if self._context.controllers is None:
            self._steps.note(
                f"{CORDONED_LOG_DIRS} stays set for the id {broker}, since no controller is known "
                "(--bootstrap-controller): a broker that is started with it is cordoned until `kreassign decommission "
                f"{broker} --cancel`"
            )
            return
        uncordon_dead(self._context.controllers, broker)
        self._steps.note(f"delete {CORDONED_LOG_DIRS} of the id {broker}, for a broker that may get it later")

    # --- around them --------------------------------------------------------------------------------------------

    def _read(self, asked: int | None = None) -> Readings:
        return read_brokers(self._client, self._request.brokers, asked)

    def _next_step(self, found: Readings) -> Step:
        """The next step; a final one only if what other brokers know leads to it, too."""
        step = self._wanted.next_step(found)
        if not isinstance(step, Finished | Unregister):
            return step
        return confirmed(step, found, lambda broker: self._wanted.next_step(self._read(broker)))

    def _after(self, ended: RunHistory) -> Blocked | None:
        """Describe what a run that did not end well, or was to be undone, leaves to the operator."""
        self._done.append(ended)
        # The last copies may arrive before a guard's cancel takes effect: the run is done, and undone then.
        if ended.state == "done" and not (ended.throttle_residue or ended.wants_rollback):
            return None
        stuck = (f"{move.topic}-{move.partition}: {move.problem}" for move in ended.moves if move.problem)
        reasons = (*ended.problems, *stuck, *(f"throttle left behind: {one}" for one in ended.throttle_residue))
        said = "; ".join(reasons[:SHOWN_REASONS])
        return Blocked(
            f"run {ended.run_id}, which drains {listed_brokers(self._request.brokers)}, is {ended.state}"
            f"{said and f' ({said})'}. See to it (`kreassign status {ended.run_id}`), then give the command again"
        )

    def _warn_of_open_ways(self, found: Readings) -> None:
        for sentence in self._wanted.open_ways(found):
            if sentence not in self._warned:
                self._warned.add(sentence)
                self._context.warn(sentence)

    def _result(self, step: Step) -> DecommissionResult:
        return DecommissionResult(tuple(self._steps.taken), tuple(self._done), step)


def _taken_back(brokers: Collection[int]) -> Blocked:
    return Blocked(
        f"the cordon of {listed_brokers(brokers)} was taken back since: somebody called the decommission off, or "
        "opened it for another reason. Ask, then give the command again, which cordons it once more"
    )


def _may_be_ours(one: BrokerReading) -> bool:
    """True if the cordon of a live broker may be ours; settings from before it show none beside closed directories."""
    value = None if one.cordon is None else one.cordon.value
    return is_our_cordon(value) or (not value and one.is_closed)


def _end_of(step: Step | None) -> object:
    """The remedy of a brief wait, whose reason may alternate; else the step itself."""
    return (Await, step.remedy) if isinstance(step, Await) and step.remedy else step
