"""Look after a cluster: read it, let the core decide, plan, run, and write down what came of it.

`kreassign.autopilot` decides when; planner, runs, lease, guards and journals of runs know how. The journal of decisions
is the only memory: a process that begins where another one was killed, on any host that has it, reads it and settles
what that one had begun.
With `dry` everything is done but the runs, in a journal of its own.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Self

from kreassign.admin import AdminClient
from kreassign.autopilot.core import (
    EndRun,
    HoldRun,
    Message,
    Order,
    PauseRun,
    PlanRepair,
    ReleaseRun,
    ResumeRun,
    RunRepair,
    SettleRun,
    proposed_message,
    tick,
)
from kreassign.autopilot.detectors import Look
from kreassign.autopilot.events import (
    ApprovalAsked,
    ApprovalsJudged,
    EndAsked,
    Ended,
    Event,
    FindingMoved,
    Name,
    NotPlanned,
    Planned,
    Result,
    RunBegan,
    RunEnded,
    WentOn,
)
from kreassign.autopilot.gates import at_any_time, counts_still, dated, hours_of, may_rehearse, watcher_text
from kreassign.autopilot.lifecycle import State
from kreassign.autopilot.memory import Finding, Memory, memory_of, remember
from kreassign.autopilot.observation import US, Absent, Known, Observation
from kreassign.autopilot.policy import Kind, Level, Policy
from kreassign.clock import SYSTEM_CLOCK, Clock
from kreassign.errors import (
    ClusterBusy,
    ClusterError,
    ExecutionError,
    IllegalPlan,
    Infeasible,
    InputError,
    JournalLocked,
    JournalTaken,
    JournalUnreadable,
    KreassignError,
    MirrorUnavailable,
    PlanIsMet,
    StandsBy,
)
from kreassign.executor.events import (
    CancelRequested,
    HoldRequested,
    PaceRequested,
    ReleaseRequested,
    Request,
    RunStarted,
    ThrottleRequested,
)
from kreassign.executor.history.run_history import explained_settings, history, read_view
from kreassign.executor.journal import ASIDE, first_event, journal_path, post_request, read_events
from kreassign.executor.journal.folder import active_run, make_folder
from kreassign.executor.lease import LeasePolicy
from kreassign.executor.progress import ProgressMeter
from kreassign.executor.state import RunView
from kreassign.model import ElectionType, TopicPartition
from kreassign.model.approvals import ApprovalRequest, ApprovalRule, Changes, ListChange, PlanNow
from kreassign.model.authorization import error_text
from kreassign.model.error_codes import ELECTION_NOT_NEEDED, has_code
from kreassign.model.pace import Cap, Caps, Pace, PaceChange
from kreassign.model.run import RunHistory
from kreassign.model.text import counted, format_seconds, rough_span
from kreassign.model.throttle import ThrottleRates
from kreassign.monitoring.metrics import AutopilotStatus
from kreassign.operations.approvals import (
    SignedApprovals,
    approved_plan,
    changes_of,
    judgement,
    request_of,
    withdraw,
    write_request,
)
from kreassign.operations.autopilot_journal import approval_path, decisions_path, proposal_path
from kreassign.operations.autopilot_keeper import Keeper, Vigil, files_of, kept_likewise
from kreassign.operations.autopilot_lease import AutopilotLease
from kreassign.operations.autopilot_looks import observe, run_of, status_of, with_unread_run
from kreassign.operations.autopilot_plans import Repairs, avoided, kept, plan_repair, rehearsed
from kreassign.operations.broker_changes import sole_change
from kreassign.operations.plan_files import PlanFile
from kreassign.operations.run import LockWatch, RunContext, RunRequest, Show, prepare_run, resume_run, start_run

ELECTION = "election"
"""Stands for a run where only leaders are elected."""

Tell = Callable[[Message], None]
Report = Callable[[AutopilotStatus], None]
"""Gets the status after each look."""

NewRequest = Callable[[int], Request]
"""Makes a request to a run with the number that it gets."""

FEW_AT_A_TIME = Pace(caps=Caps(source=Cap(moves=2), destination=Cap(moves=2)))
"""Moves in flight go to their end, whatever happens meanwhile: so they are few."""

HELD_LONG_S = 900.0
"""A repair that guards hold for so long is told."""

LOCKED_LOOKS = 3
"""Looks that wait for a lock on the journal of a repair; after them it counts as one that cannot be read."""

PAUSE_S = 5.0
"""Time between two steps of an election, in which clients find their leaders."""


class Autopilot:
    """One autopilot of one cluster; use it in a `with` statement.

    It holds the journal of decisions, so that there is one in a state directory, and the lease of autopilots, so that
    one process on any machine looks after the cluster; runs hold the lease of the cluster besides. Without these
    nothing runs.
    """

    def __init__(
        self,
        client: AdminClient,
        policy: Policy,
        context: RunContext,
        tell: Tell,
        clock: Clock = SYSTEM_CLOCK,
        *,
        is_dry: bool = False,
        report: Report = lambda _: None,
        reread: Callable[[], Policy] | None = None,
        vigil: Vigil | None = None,
        lease: AutopilotLease | None = None,
    ) -> None:
        """Open the journal of decisions. Raises StandsBy while another process looks after it; MirrorUnavailable."""
        self._report, self._reread, self._odd_policy = report, reread, ""
        self._client, self._policy, self._tell, self._clock = client, policy, tell, clock
        self._lease = lease or AutopilotLease(client, context.operator, clock)
        # Nothing else lets one act of two that decide alike within a second.
        context = replace(context, lease=LeasePolicy.REQUIRE, leaves_down=True, duty=self._lease)
        self._is_dry = is_dry
        self._cluster_id = client.describe_cluster().cluster_id
        vigil = vigil or Vigil(clock)
        path = decisions_path(context.state_dir, self._cluster_id, is_dry=is_dry)
        try:
            if not is_dry:
                self._lease.take(path.parent, takes_over=not vigil.lost_s)
            keeper = Keeper(client, context, self._cluster_id, clock, vigil, is_dry, self._lease.is_held)
            self._journal, events = keeper.resume()
        except ClusterBusy as error:  # A process here that was suspended lost its lease, and holds the journal.
            self._lease.release()
            raise StandsBy(str(error)) from None
        except BaseException:
            self._lease.release()
            raise
        self.memory: Memory = memory_of(events)
        self._context = context = kept_likewise(context, self.memory)
        self._files = files_of(self._journal.path.parent, events)
        self._runs = {one.run_id for one in events if isinstance(one, RunBegan)}
        self._unsettled = set(self._runs)
        self._refusals: dict[Name, str] = {}
        self._locked_looks = 0
        try:
            self._files.restore()
            keeper.bring_repair(self.memory)
        except BaseException:
            self._journal.close()
            self._lease.release()
            raise
        self._locks = LockWatch("the autopilot", "looks at nothing, and repairs nothing", context.warn, clock)
        self._journal.on_lock, self._is_beside_run = self._wait, False
        self._looked_s = float("-inf")
        observers = (*context.observers, self._look_meanwhile)
        self._watched = replace(context, observers=observers, watch=self._watch_run)
        self._leave_run: Callable[[], None] | None = None
        self._is_broken = False
        self._told_problem = self._told_watcher = ""
        # Messages of decisions that could not be written yet, since another process had locked the journal.
        self._sent: set[tuple[Name | None, bool, str]] = set()
        self._held_since_s: float | None = None
        # Run, and the rate that the policy had for it last.
        self._throttle: tuple[str, int | None] | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._is_kept and not isinstance(error, JournalTaken):
            self._is_beside_run = True  # nothing depends on this event: it is waited for by nobody
            with suppress(KreassignError):
                self._note(Ended(self._clock.now_ms()))
        self._journal.close()
        self._lease.release()

    def watch(self) -> None:
        """Look again and again, until this is interrupted."""
        while True:
            self.look()
            self._lease.rest(self._policy.care.interval)

    @property
    def reach(self) -> str:
        """Sentence about what the process before it has begun, where that is out of reach."""
        if self._is_kept:
            return ""
        return (
            "; what the one before it had begun is in the journals of that one, which are out of reach here: its moves "
            "and throttles are left alone, and waited for. --journal-to keeps journals where both have them"
        )

    def look(self) -> None:
        """Look once, tell what changed, and do what is due, to its end.

        Raises StandsBy once another process has its lease; JournalDamaged, JournalTaken.
        """
        self._lease.keep()
        self._journal.confirm()
        try:
            left = self._run_left()
        except JournalLocked:
            return  # of a moment: the next look reads it
        now = self._observe(left)
        is_elsewhere = left is not None and active_run(self._context.state_dir, self._cluster_id) == left.run_id
        now = replace(now, run=now.run._replace(is_left=not is_elsewhere, is_elsewhere=is_elsewhere))
        if left is None and self.memory.running is not None:
            now = with_unread_run(now, self.memory.running)
        self._clear_up(now)
        self._read_approvals(now)
        order = self._decide(now)
        if not isinstance(now.watcher, Absent) and not isinstance(order, PlanRepair):
            return
        if left is not None and is_elsewhere:
            self._post(order, left)
            return
        match order:
            case PlanRepair(name):
                self._plan(name, now)
            case RunRepair(name, plan_id, at_any_time):
                self._run(name, plan_id, now, at_any_time=at_any_time)
            case ResumeRun():
                self._resume(*(() if left is None else self._changes_by_policy(left)))
            case SettleRun():
                self._looked_s = float("-inf")
                self._resume(_request_of(order, self._clock.now_ms()))
            case EndRun():
                self._resume(_request_of(order, self._clock.now_ms()))
            case _:
                pass  # what is left holds

    def _observe(self, run: RunView | None = None) -> Observation:
        explain = partial(explained_settings, self._context.state_dir, self._cluster_id, left_by=self._runs)
        now = observe(self._client, self._clock.now_ms(), run, explain)
        self._lease.confirm()
        why = watcher_text(now := replace(now, watcher=self._lease.watcher)) or ""
        may_act = any(self._policy.level(kind) in {Level.ASK, Level.ACT} for kind in Kind)
        if may_act and why != self._told_watcher:
            self._context.warn(f"nothing is repaired: {why}" if why else "repairs may run again: no other autopilot")
            self._told_watcher = why
        return now

    def _clear_up(self, now: Observation) -> None:
        """Restore what repairs left on brokers that were down when they ended, and are back."""
        if self.memory.running is not None or not (isinstance(now.lease, Absent) and isinstance(now.watcher, Absent)):
            return
        for run_id in sorted(self._unsettled):
            path = journal_path(self._context.state_dir, self._cluster_id, run_id)
            with suppress(JournalUnreadable):
                run = read_view(path) if path.exists() else None
                if run is None or (run.ended_ms is not None and not run.restorable()):
                    self._unsettled.remove(run_id)
                elif run.ended_ms is not None and run.restorable(now.live):
                    self._restore(path)

    def _restore(self, path: Path) -> None:
        """Restore the settings of a repair that ended; why that is not possible is told once."""
        try:
            left = resume_run(self._client, path, self._context, clock=self._clock).throttle_residue
            said = "" if left else f"run {path.stem} restored what it had left on brokers that were down"
        except (InputError, ClusterError, ExecutionError) as error:
            said = f"what run {path.stem} left on brokers is not restored yet: {error_text(error)}"
        if said != self._told_problem:
            self._context.warn(said)
            self._told_problem = said

    def _read_policy(self) -> None:
        """Follow the policy file; what cannot be read is told once, and the policy before it holds."""
        if self._reread is None:
            return
        try:
            self._policy, self._odd_policy = self._reread(), ""
        except (InputError, OSError) as error:
            if str(error) != self._odd_policy:
                self._odd_policy = str(error)
                self._context.warn(f"the policy that was read before holds: {error}")

    def _decide(self, now: Observation) -> Order | None:
        self._looked_s = self._clock.monotonic_s()
        self._read_policy()
        self._hear()
        last_ms = self.memory.looked_ms
        decision = tick(self.memory, now, self._policy)
        for message in decision.messages:
            # Before it is written down: after a crash in between it is sent twice, instead of never.
            which = (message.name, message.is_over, "" if message.name is None else message.why)
            if which not in self._sent:
                self._tell(message)
                self._sent.add(which)
        for event in decision.events:
            if isinstance(event, WentOn) and last_ms is not None:
                apart = rough_span(abs(now.at_ms - last_ms) / 1000)
                self._context.warn(
                    f"the last look was {apart} ago: what has to last begins "
                    "from scratch after a break of 10 min, so that looks so far apart find nothing of it"
                    if now.at_ms > last_ms
                    else f"the clock was set back by {apart}: what has to last begins from scratch"
                )
            self._note(event)
            if isinstance(event, FindingMoved) and event.state is State.CLOSED:
                self._refusals.pop(event.name, None)
        self._sent.clear()
        self._report(status_of(now, self.memory, self._policy))
        return decision.order

    def _hear(self) -> None:
        """Note what people ask for."""
        for request in self._journal.requests_after(self.memory.last_request):
            self._note(request)

    def _wait(self, lock: JournalLocked | None) -> None:
        """Wait for a journal that others have locked, but let no run wait for that."""
        if lock is not None and self._is_beside_run:
            raise lock
        self._locks.follow(lock)

    def _note(self, event: Event) -> None:
        try:
            self._journal.append(event)
        except MirrorUnavailable:
            # It is written here: the next look goes on from it, once the second place has it, too.
            self.memory = remember(self.memory, event)
            raise
        self.memory = remember(self.memory, event)

    @property
    def _is_kept(self) -> bool:
        """True if the journal is kept in a second place."""
        keeper = self.memory.keeper
        return keeper is not None and keeper.journal_to is not None

    def _keep_files(self, name: Name) -> None:
        """Keep plan, request and signatures of a finding, where the journal is kept in a second place."""
        if self._is_kept:
            for event in tuple(self._files.fresh(self._clock.now_ms(), name)):
                self._note(event)

    def _plan(self, name: Name, now: Observation) -> Repairs | None:
        """Plan, and tell of the plan if it is new; a failure is written down, and told once."""
        before = self.memory.findings[name]
        path = proposal_path(self._journal.path, name)
        try:
            avoid = avoided(self.memory, name, now)
            look = Look(now, self.memory, self._policy)
            fresh = plan_repair(self._client, name, look, self._clock, avoid)
            self._lease.confirm()  # Planning takes minutes, and so does the rehearsal.
            repairs = self._rehearsed(kept(path, before.proposal, fresh, look, avoid), before, look, avoid)
        except ClusterError as error:
            self._fail(name, f"it could not be planned: {error_text(error)}", is_passing=True)
            return None
        except OSError as error:
            self._fail(name, f"its plan could not be written to {path.parent}: {error.strerror}", is_passing=True)
            return None
        except (InputError, Infeasible, IllegalPlan) as error:
            self._fail(name, f"no plan repairs it: {error_text(error)}")
            return None
        self._keep_files(name)
        self._note(repairs.planned)
        if self._policy.level(name.kind) is Level.ASK:
            if self.memory.findings[name].asked is None:
                self._ask(repairs, now)
        elif before.state is not State.PROPOSED:
            is_for_people = self._policy.level(name.kind) is Level.PROPOSE and repairs.plan is not None
            run = shlex.join(("kreassign", "run", str(path), *self._policy.runs.words))
            self._tell(proposed_message(repairs.planned, (run,) if is_for_people else ()))
        return repairs

    def _rehearsed(self, repairs: Repairs, before: Finding, look: Look, avoid: tuple[int, ...]) -> Repairs:
        """The plan with its rehearsal on a twin, made again where that is due, and the plan may run or be signed."""
        planned, level, kind = repairs.planned, look.policy.level(before.name.kind), before.name.kind
        if repairs.plan is None or level not in {Level.ASK, Level.ACT}:
            return repairs
        is_same = before.proposal is not None and before.proposal.plan_id == planned.plan_id
        planned = replace(planned, rehearsal=before.proposal.rehearsal if before.proposal and is_same else None)
        finding, is_to_sign = replace(before, proposal=planned), level is Level.ASK and not (is_same and before.asked)
        if not counts_still(look, finding) and (is_to_sign or may_rehearse(look, finding)):
            is_free = at_any_time(look.policy, kind, is_urgent=before.urgent_ms is not None)
            request = self._run_of(repairs.plan, avoid, at_any_time=is_free)
            fresh = rehearsed(self._client, request, planned.at_ms, self._clock)
            planned = replace(planned, rehearsal=dated(fresh, look, finding))
            self._lease.confirm()
        return replace(repairs, planned=planned)

    # Approvals: the request is a file, and so are the signatures beside it.

    def _ask(self, repairs: Repairs, now: Observation) -> None:
        planned, approvals = repairs.planned, self._policy.approvals
        request = ApprovalRequest(
            self._operator,
            self._cluster_id,
            self._clock.now_ms(),
            self._clock.now_ms() + round(approvals.expire_after * 1000),
            tuple(sorted(now.live)),
            (str(planned.name), planned.sentences[0], *planned.reasons),
            _changes(repairs, now),
        )
        path = approval_path(self._journal.path, planned.name)
        make_folder(path.parent)
        withdraw(path)
        write_request(path, request)
        self._keep_files(planned.name)
        self._note(ApprovalAsked(request.at_ms, planned.name, request.request_id))
        what = f"{planned.name}: {planned.sentences[0]}; {counted(approvals.least, 'approval')} wanted"
        sign = f"kreassign autopilot approve {planned.name.kind} '{planned.name.subject}' --key FILE"
        self._tell(Message(planned.name, what, "; ".join(planned.reasons), (sign, "kreassign autopilot why")))

    def _read_approvals(self, now: Observation) -> None:
        """Judge what people have signed; a request that permits nothing any more is told."""
        for finding in self.memory.open:
            if finding.asked is None or finding.state is not State.PROPOSED or not isinstance(now.partitions, Known):
                continue
            planned = finding.proposal.moves if finding.proposal is not None else ()
            if not now.are_brokers_read or now.unread_topics.keys() & {one.topic for one in planned}:
                continue  # a drift that was not seen makes no approval void
            self._keep_files(finding.name)
            judged = self._judged(finding.name, now)
            before = finding.judged
            if before is None or replace(judged, at_ms=before.at_ms) != before:
                self._note(judged)
                if judged.dead:
                    self._tell(Message(finding.name, f"{finding.name}: its approval is void", judged.dead))

    def _judged(self, name: Name, now: Observation) -> ApprovalsJudged:
        assert isinstance(now.partitions, Known), "what was not read is not judged"
        wanted, asked = self._wanted(name), self.memory.findings[name].asked
        try:
            request = request_of(wanted.request)
            if asked is not None and request.request_id != asked.request_id:
                return ApprovalsJudged(now.at_ms, name, (), "the request that is there is not the one that was asked")
            lists = {one.topic_partition: one.replicas for one in now.partitions.value}
            changes = {one: each._replace(before=lists.get(one, ())) for one, each in request.changes.items()}
            found = judgement(wanted, PlanNow(now.at_ms, self._cluster_id, changes, now.live))
        except (InputError, OSError) as error:
            return ApprovalsJudged(now.at_ms, name, (), lacking=f"approvals could not be read: {error_text(error)}")
        return ApprovalsJudged(now.at_ms, name, found.approved_by, found.dead, found.lacking)

    def _wanted(self, name: Name) -> SignedApprovals:
        approvals = self._policy.approvals
        proposers = (self._operator, *((approvals.proposer,) if approvals.proposer else ()))
        rule = ApprovalRule(approvals.least, approvals.expire_after)
        path = approval_path(self._journal.path, name)
        return SignedApprovals(path, Path(approvals.allowed_signers), rule, proposers)

    @property
    def _operator(self) -> str:
        return self._context.operator.name

    def _request(self, name: Name, plan: PlanFile, avoid: tuple[int, ...], *, at_any_time: bool) -> RunRequest:
        """The run of a repair: where people approved a plan, just that one, and by their approval."""
        run = self._run_of(plan, avoid, at_any_time=at_any_time)
        if self._policy.level(name.kind) is not Level.ASK:
            return run
        wanted = self._wanted(name)
        return replace(run, plan=approved_plan(request_of(wanted.request)), replan=False, approvals=wanted)

    def _run_of(self, plan: PlanFile, avoid: tuple[int, ...], *, at_any_time: bool) -> RunRequest:
        return RunRequest(
            plan,
            ThrottleRates(self._policy.runs.throttle),
            pace=FEW_AT_A_TIME if at_any_time else replace(FEW_AT_A_TIME, hours=self._policy.runs.hours),
            measure_for_s=0.0,
            replan=True,
            avoid=avoid,
            give_up_after_s=self._policy.broker_gone.propose_after,
            clients=self._policy.clients.guard,
        )

    def _fail(self, name: Name, why: str, *, is_passing: bool = False) -> None:
        is_new = why not in {self.memory.findings[name].problem, self._refusals.get(name)}
        # What does not pass within minutes counts as a failure, whose patience grows.
        self._note(NotPlanned(self._clock.now_ms(), name, why, is_passing, is_passing and not is_new))
        self._refusals[name] = why
        if is_new:
            self._tell(Message(name, f"{name}: it is not repaired", why, ("kreassign autopilot why",)))

    def _run(self, name: Name, plan_id: str, now: Observation, *, at_any_time: bool) -> None:
        """Plan once more, and run that if it repairs the same."""
        repairs = self._plan(name, now)
        if repairs is None or repairs.planned.plan_id != plan_id:
            return
        order = RunRepair(name, plan_id, at_any_time)
        if self._is_dry:
            if not self._is_due_still(order):
                return
            self._begin(repairs.planned, "dry-run")
            self._note(RunEnded(self._clock.now_ms(), name, Result.NOT_BEGUN_DRY, repairs.planned.copied_bytes))
            return
        try:
            if repairs.plan is None:
                if self._is_due_still(order):
                    self._elect(repairs.planned)
                return
            avoid = avoided(self.memory, name, now)
            request = self._request(name, repairs.plan, avoid, at_any_time=at_any_time)
            started = prepare_run(self._client, request, self._context, self._clock)
        except (InputError, IllegalPlan, PlanIsMet, ClusterError, ExecutionError) as error:
            if self.memory.running is None:
                self._fail(name, f"its run cannot begin: {error_text(error)}", is_passing=_is_passing(error))
            else:
                self._end(name, Result.FAILED)
            return
        if not self._is_due_still(order):
            return
        self._begin(repairs.planned, started.run_id, at_any_time=at_any_time)
        self._execute(name, started, repairs.plan)

    def _is_due_still(self, order: RunRepair) -> bool:
        """Planning takes minutes, in which people pull the brake, turn it off or lower the level, and brokers die."""
        self._read_policy()
        self._hear()
        return tick(self.memory, self._observe(), self._policy).order == order

    def _begin(self, planned: Planned, run_id: str, *, at_any_time: bool = False) -> None:
        at_ms = self._clock.now_ms()
        self._runs.add(run_id)
        self._unsettled.add(run_id)
        self._refusals.pop(planned.name, None)
        self._note(
            RunBegan(at_ms, planned.name, run_id, planned.copied_bytes, planned.moves, at_any_time, planned.seconds)
        )
        what = "would be repaired now" if self._is_dry else f"is repaired by run {run_id}"
        follow = () if run_id in {ELECTION, "dry-run"} else (f"kreassign watch {run_id}", f"kreassign cancel {run_id}")
        self._tell(Message(planned.name, f"{planned.name}: it {what}", planned.sentences[0], follow))

    def _execute(self, name: Name, started: RunStarted, plan: PlanFile) -> None:
        try:
            ended = start_run(self._client, started, self._watched, plan.facts, self._clock)
        except (InputError, ClusterError, ExecutionError) as error:
            if journal_path(self._context.state_dir, self._cluster_id, started.run_id).exists():
                self._tell_left(name, started.run_id, error)  # The next look goes on with it.
            else:
                self._end(name, Result.NOT_BEGUN, outcome=f"{Result.NOT_BEGUN}: {error_text(error)}")
            return
        self._raise_if_broken(started.run_id)
        self._ended(name, ended)

    def _tell_left(self, name: Name, run_id: str, error: KreassignError) -> None:
        if str(error) != self._told_problem:
            self._told_problem = str(error)
            self._tell(Message(name, f"{name}: its run {run_id} cannot go on", self._told_problem))

    def _look_meanwhile(self, run: RunView, meter: ProgressMeter) -> None:
        """A look during a run, at most once an interval: its order is a request to the run."""
        del meter
        if isinstance(self._lease.watcher, Known):
            if self._leave_run is not None:
                self._leave_run()
            return
        if self._clock.monotonic_s() - self._looked_s < self._policy.care.interval:
            return
        self._is_beside_run = self._is_broken = True
        try:
            self._steer(run)
            self._is_broken = False
        except JournalLocked:
            self._is_broken = False  # The next look makes up for it.
        except (ClusterError, InputError, ExecutionError, OSError) as error:
            self._is_broken = False
            self._context.warn(f"a look beside run {run.run_id} failed, and is made again: {error_text(error)}")
        finally:
            self._is_beside_run = False
            # Nobody foresaw this, and without looks a run hears neither the brake nor a window: it is left, and this
            # process ends. The next one goes on with it.
            if self._is_broken and self._leave_run is not None:
                self._leave_run()

    def _raise_if_broken(self, run_id: str) -> None:
        if self._is_broken:
            raise ExecutionError(
                f"a look beside run {run_id} failed in a way that nobody foresaw, as was warned of. The run is left, "
                "and goes on when the autopilot is started again"
            )

    def _steer(self, run: RunView) -> None:
        self._journal.confirm()
        order = self._decide(self._observe(run))
        act = self.memory.running
        if act is not None:
            self._tell_if_held_long(act.name, run)
        self._post(order, run)
        if isinstance(order, PauseRun) and self._leave_run is not None and not run.in_flight:
            self._leave_run()

    def _post(self, order: Order | None, run: RunView) -> None:
        """Ask the process of a run to do what is ordered, and to keep to its hours; nothing is begun beside a run."""
        path = journal_path(self._context.state_dir, self._cluster_id, run.run_id)
        for request in (*self._changes_by_policy(run), _request_of(order, self._clock.now_ms())):
            if request is not None:
                post_request(path, request)

    def _changes_by_policy(self, run: RunView) -> tuple[NewRequest, ...]:
        """Requests for the hours and the throttle of the policy, which may change during a run."""
        return tuple(one for one in (self._change_of_hours(run), self._change_of_throttle(run)) if one is not None)

    def _change_of_throttle(self, run: RunView) -> NewRequest | None:
        """Request for the rate of the policy where that has changed; what people set for the run stays until then."""
        wanted, at_ms = self._policy.runs.throttle, self._clock.now_ms()
        if self._throttle is None or self._throttle[0] != run.run_id:
            begun = first_event(journal_path(self._context.state_dir, self._cluster_id, run.run_id)).rates
            self._throttle = run.run_id, begun.bytes_per_s if run.rates == begun else wanted
        if self._throttle[1] == wanted:
            return None

        def ask(number: int) -> Request:
            self._throttle = run.run_id, wanted  # Only now: a locked journal takes no request.
            return ThrottleRequested(at_ms, number, wanted)

        return ask

    def _change_of_hours(self, run: RunView) -> NewRequest | None:
        """Request for the hours of the policy; None where the run has them. The policy may change during a run."""
        act, at_ms = self.memory.running, self._clock.now_ms()
        if act is None or run.pace.hours == (hours := hours_of(act, self._policy)):
            return None
        return lambda number: PaceRequested(at_ms, number, PaceChange(hours=hours))

    def _tell_if_held_long(self, name: Name, run: RunView) -> None:
        """Tell once of guards that hold a repair, such as clients whose state nobody can read."""
        why, now_s = None if run.is_held else run.why_held, self._clock.monotonic_s()
        if why is None:
            self._held_since_s = None
        elif self._held_since_s is None:
            self._held_since_s = now_s
        elif now_s - self._held_since_s >= HELD_LONG_S:
            self._held_since_s = float("inf")
            what = f"{name}: its run {run.run_id} is held for {format_seconds(HELD_LONG_S)}"
            self._tell(Message(name, what, why, (f"kreassign status {run.run_id}", f"kreassign cancel {run.run_id}")))

    def _elect(self, planned: Planned) -> None:
        """Elect preferred leaders in steps, under the lease of the cluster."""
        with sole_change(self._client, self._context, "autopilot", self._clock) as confirm:
            self._begin(planned, ELECTION)
            size = self._policy.leaders.step
            failed: dict[TopicPartition, ClusterError] = {}
            for start in range(0, len(planned.moves), size):
                if start and self._stops_election(planned.name):
                    after = f"{Result.STOPPED} after {counted(start, 'leader')}"
                    self._end(planned.name, Result.STOPPED, outcome=after)
                    return
                confirm()
                answer = self._client.elect_leaders(planned.moves[start : start + size], ElectionType.PREFERRED)
                refused = answer.failed.items()
                failed |= {one: error for one, error in refused if not has_code(error, ELECTION_NOT_NEEDED)}
                self._clock.sleep(PAUSE_S)
        if not failed:
            self._end(planned.name, Result.DONE)
            return
        first, error = next(iter(failed.items()))
        leaders = f"{len(failed)} of {counted(len(planned.moves), 'leader')}"
        self._end(planned.name, Result.IN_PART, outcome=f"without {leaders}, such as {first} ({error_text(error)})")

    def _stops_election(self, name: Name) -> bool:
        """A look between two steps of an election; True if the brake, people or others stop it."""
        order = self._decide(self._observe())
        act = self.memory.running
        if act is None or order is None:
            return False
        if not act.is_end_asked:
            self._note(EndAsked(self._clock.now_ms(), name, act.held.why if act.held else "its window closes"))
        return True

    def _ended(self, name: Name, run: RunHistory) -> None:
        if run.ended_ms is None:
            self._lease.refuse()
            self._tell(
                Message(name, f"{name}: its run {run.run_id} is {run.state}", "it goes on by itself when it may")
            )
            return
        events = read_events(journal_path(self._context.state_dir, self._cluster_id, run.run_id))
        people = [one.by for one in events if isinstance(one, CancelRequested) and one.by != US]
        if 2 * sum(one.is_changed_by_others for one in run.moves) > len(run.moves):
            people.append("someone else, by Kafka's own means,")
        moved = tuple(one.topic_partition for one in run.moves if one.submitted_ms is not None)
        cost = "" if run.clients is None else str(run.clients)
        result = Result(run.state)
        is_there = all(one.is_deleted or one.completed_ms is not None for one in run.moves)
        if result is Result.FAILED and is_there and not run.throttle_residue:
            result = Result.DONE  # What is deleted needs no repair.
        self._end(name, result, run.bytes_copied, people[-1] if people else "", cost, moved)

    def _end(
        self,
        name: Name,
        result: Result,
        copied_bytes: int = 0,
        by: str = "",
        cost: str = "",
        moved: tuple[TopicPartition, ...] | None = None,
        outcome: str = "",
    ) -> None:
        act = self.memory.running
        assert act is not None, "only a repair that began ends"
        ended = RunEnded(self._clock.now_ms(), name, result, copied_bytes, by, moved, outcome)
        self._note(ended)
        what = f"{name}: its run {act.run_id} is {ended.text}; {self.memory.acts[-1].account}"
        self._tell(Message(name, what, (by and f"{by} ended it") or cost))

    @contextmanager
    def _watch_run(self, run_id: str, stop: Callable[[], None] | None) -> Iterator[Show | None]:
        self._leave_run = stop
        with self._context.watch(run_id, stop) as show:
            yield show

    def _run_left(self) -> RunView | None:
        """The run of a repair, as its process left it; one that did not begin, or ended, is settled first.

        None also while its journal cannot be read: it runs still for all that is known, and to go on with it fails.
        """
        act = self.memory.running
        if act is None:
            return None
        try:
            run = run_of(self.memory, self._context.state_dir)
        except JournalUnreadable as error:
            self._locked_looks += 1
            if isinstance(error, JournalLocked) and self._locked_looks <= LOCKED_LOOKS:
                raise
            return None
        self._locked_looks = 0
        if run is None:
            path = journal_path(self._context.state_dir, self._cluster_id, act.run_id)
            if path.with_name(f"{path.name}{ASIDE}").exists():
                # Nobody knows what it copied: for budgets and growth it was all.
                self._end(act.name, Result.FAILED, act.copied_bytes, outcome="failed: its journal was set aside")
            else:
                self._end(act.name, Result.NOT_BEGUN)
            return None
        if (ended := history(run)).ended_ms is None:
            return run
        self._ended(act.name, ended)
        return None

    def _resume(self, *requests: NewRequest | None) -> None:
        """Go on with the run that is left; why that is not possible is told once, and tried again at the next look."""
        act = self.memory.running
        assert act is not None, "only a run that is left goes on"
        path = journal_path(self._context.state_dir, self._cluster_id, act.run_id)
        try:
            asked, clients = [one for one in requests if one is not None], self._policy.clients.guard
            ended = resume_run(self._client, path, self._watched, clients=clients, clock=self._clock, more=asked)
        except (InputError, ClusterError, ExecutionError) as error:
            self._tell_left(act.name, act.run_id, error)
            return
        self._told_problem = ""
        self._raise_if_broken(act.run_id)
        self._ended(act.name, ended)


def _is_passing(error: KreassignError) -> bool:
    """True if what kept a run from beginning is no failure of it: the cluster, others, a lock of a moment."""
    is_overtaken = isinstance(error, IllegalPlan) and error.is_overtaken
    return is_overtaken or isinstance(error, ClusterError | ClusterBusy | PlanIsMet | JournalLocked)


def _request_of(order: Order | None, at_ms: int) -> NewRequest | None:
    """The request to a run that an order is; None where it is none."""
    match order:
        case EndRun():
            return lambda number: CancelRequested(at_ms, number, is_now=False, by=US)
        case HoldRun() | SettleRun():
            return lambda number: HoldRequested(at_ms, number, US)
        case ReleaseRun():
            return lambda number: ReleaseRequested(at_ms, number)
    return None


def _changes(repairs: Repairs, now: Observation) -> Changes:
    assert isinstance(now.partitions, Known), "only what was read is planned"
    lists = {one.topic_partition: one.replicas for one in now.partitions.value}
    if repairs.plan is None:
        return {one: ListChange(lists[one], lists[one]) for one in repairs.planned.moves}
    return changes_of(repairs.plan.plan, lists, {})
