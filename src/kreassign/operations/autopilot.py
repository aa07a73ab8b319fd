"""Look after a cluster: read it, let the core decide, plan, run, and write down what came of it.

`kreassign.autopilot` decides when; planner, runs, lease, guards and journals of runs know how. The journal of decisions
is the only memory: a process that begins where another one was killed reads it, and settles what that one had begun.
With `dry` everything is done but the runs, in a journal of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Any, Self

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
    proposed_message,
    tick,
)
from kreassign.autopilot.lifecycle import (
    ApprovalAsked,
    ApprovalsJudged,
    Event,
    Memory,
    Name,
    NotPlanned,
    Planned,
    RunBegan,
    RunEnded,
    State,
    memory_of,
    remember,
)
from kreassign.autopilot.observation import Known, Observation
from kreassign.autopilot.policy import Level, Policy
from kreassign.clock import SYSTEM_CLOCK, Clock
from kreassign.errors import ClusterError, ExecutionError, IllegalPlan, Infeasible, InputError, JournalLocked, PlanIsMet
from kreassign.executor.events import CancelRequested, HoldRequested, ReleaseRequested, RunStarted
from kreassign.executor.history.run_history import history, read_view
from kreassign.executor.journal import journal_path, post_request
from kreassign.executor.journal.folder import make_folder
from kreassign.executor.progress import ProgressMeter
from kreassign.executor.state import RunView
from kreassign.model import ElectionType
from kreassign.model.approvals import ApprovalRequest, ApprovalRule, Change, Changes, Present
from kreassign.model.authorization import error_text
from kreassign.model.pace import Cap, Caps, Pace
from kreassign.model.run import RunHistory
from kreassign.model.text import counted, format_amount
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
from kreassign.operations.autopilot_journal import approval_path, open_journal
from kreassign.operations.autopilot_looks import Repairs, avoided, observe, plan_repair, status_of
from kreassign.operations.broker_changes import sole_change
from kreassign.operations.plan_files import PlanFile
from kreassign.operations.run import LockWatch, RunContext, RunRequest, Show, prepare_run, resume_run, start_run

ELECTION = "election"
"""Stands for a run where only leaders are elected."""

Tell = Callable[[Message], None]
Report = Callable[[AutopilotStatus], None]
"""Gets the status after each look."""


FEW_AT_A_TIME = Pace(caps=Caps(source=Cap(moves=2), destination=Cap(moves=2)))
"""Moves in flight go to their end, whatever happens meanwhile: so they are few."""

PAUSE_S = 5.0
"""Time between two steps of an election, in which clients find their leaders."""


class Autopilot:
    """One autopilot of one cluster; use it in a `with` statement.

    It holds the journal of decisions, so that there is one in a state directory; runs hold the lease of the cluster
    besides, so that there is one run on any machine.
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
    ) -> None:
        self._report = report
        self._client, self._policy, self._tell, self._clock = client, policy, tell, clock
        self._context, self._is_dry = context, is_dry
        self._cluster_id = client.describe_cluster().cluster_id
        self._journal, events = open_journal(context.state_dir, self._cluster_id, clock.now_ms(), is_dry=is_dry)
        self.memory: Memory = memory_of(events)
        self._locks = LockWatch("the autopilot", "looks at nothing, and repairs nothing", context.warn, clock)
        self._journal.on_lock, self._is_beside_run = self._wait, False
        self._looked_s = float("-inf")
        observers = (*context.observers, self._look_meanwhile)
        self._watched = replace(context, observers=observers, watch=self._watch_run)
        self._leave_run: Callable[[], None] | None = None
        self._told_problem = ""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._journal.close()

    def watch(self) -> None:
        """Look again and again, until this is interrupted."""
        while True:
            self.look()
            self._clock.sleep(self._policy.care.interval)

    def look(self) -> None:
        """Look once, tell what changed, and do what is due, to its end. Raises JournalDamaged."""
        now = replace(observe(self._client, self._clock.now_ms(), self._run_left()), is_run_left=True)
        self._read_approvals(now)
        match self._decide(now):
            case PlanRepair(name):
                self._plan(name, now)
            case RunRepair(name, plan_id, at_any_time):
                self._run(name, plan_id, now, at_any_time=at_any_time)
            case ResumeRun():
                self._resume()
            case EndRun():
                self._resume(lambda number: CancelRequested(self._clock.now_ms(), number, is_now=False))
            case _:
                pass  # what is left holds

    def _decide(self, now: Observation) -> Order | None:
        self._looked_s = self._clock.monotonic_s()
        for request in self._journal.requests_after(self.memory.last_request):
            self._note(request)
        decision = tick(self.memory, now, self._policy)
        for event in decision.events:
            self._note(event)
        for message in decision.messages:
            self._tell(message)
        self._report(status_of(now, self.memory, self._policy))
        return decision.order

    def _wait(self, lock: JournalLocked | None) -> None:
        """Wait for a journal that others have locked, but let no run wait for that."""
        if lock is not None and self._is_beside_run:
            raise lock
        self._locks.follow(lock)

    def _note(self, event: Event) -> None:
        self._journal.append(event)
        self.memory = remember(self.memory, event)

    def _plan(self, name: Name, now: Observation) -> Repairs | None:
        """Plan, and tell of the plan if it is new; a failure is written down, and told once."""
        before = self.memory.findings[name]
        try:
            avoid = avoided(self.memory, name, now)
            repairs = plan_repair(self._client, name, now, self._policy, self._clock, avoid)
        except ClusterError as error:
            self._fail(name, f"it could not be planned: {error_text(error)}", is_passing=True)
            return None
        except (InputError, Infeasible, IllegalPlan) as error:
            self._fail(name, f"no plan repairs it: {error_text(error)}")
            return None
        self._note(repairs.planned)
        if self._policy.level(name.kind) is Level.ASK:
            if self.memory.findings[name].asked is None:
                self._ask(repairs, now)
        elif before.state is not State.PROPOSED:
            self._tell(proposed_message(repairs.planned))
        return repairs

    # Approvals: the request is a file, and so are the signatures beside it.

    def _ask(self, repairs: Repairs, now: Observation) -> None:
        planned, approvals = repairs.planned, self._policy.approvals
        request = ApprovalRequest(
            self._operator,
            self._cluster_id,
            self._clock.now_ms(),
            self._clock.now_ms() + round(approvals.expire_after * 1000),
            tuple(sorted(now.live)),
            (str(planned.name), *planned.sentences),
            _changes(repairs, now),
        )
        path = approval_path(self._journal.path, planned.name)
        make_folder(path.parent)
        withdraw(path)
        write_request(path, request)
        self._note(ApprovalAsked(request.at_ms, planned.name, request.request_id))
        what = f"{planned.name}: {planned.sentences[0]}; {counted(approvals.least, 'approval')} wanted"
        sign = f"kreassign autopilot approve {planned.name.kind} '{planned.name.subject}' --key FILE"
        self._tell(Message(planned.name, what, "; ".join(planned.sentences[1:]), (sign, "kreassign autopilot why")))

    def _read_approvals(self, now: Observation) -> None:
        """Judge what people have signed; a request that permits nothing any more is told."""
        for finding in self.memory.open:
            if finding.asked is None or finding.state is not State.PROPOSED or not isinstance(now.partitions, Known):
                continue
            judged = self._judged(finding.name, now)
            before = finding.judged
            if before is None or replace(judged, at_ms=before.at_ms) != before:
                self._note(judged)
                if judged.dead:
                    self._tell(Message(finding.name, f"{finding.name}: its approval is void", judged.dead))

    def _judged(self, name: Name, now: Observation) -> ApprovalsJudged:
        assert isinstance(now.partitions, Known), "what was not read is not judged"
        wanted = self._wanted(name)
        try:
            request = request_of(wanted.request)
            lists = {one.topic_partition: one.replicas for one in now.partitions.value}
            changes = {one: each._replace(before=lists.get(one, ())) for one, each in request.changes.items()}
            found = judgement(wanted, Present(now.at_ms, self._cluster_id, changes, now.live))
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
        return f"{self._context.operator.user}@{self._context.operator.host}"

    def _request(self, name: Name, plan: PlanFile, *, at_any_time: bool) -> RunRequest:
        """The run of a repair: where people approved a plan, just that one, and by their approval."""
        is_asked = self._policy.level(name.kind) is Level.ASK
        wanted = self._wanted(name) if is_asked else None
        return RunRequest(
            plan if wanted is None else approved_plan(request_of(wanted.request)),
            ThrottleRates(self._policy.runs.throttle),
            pace=FEW_AT_A_TIME if at_any_time else replace(FEW_AT_A_TIME, hours=self._policy.runs.hours),
            measure_for_s=0.0,
            replan=not is_asked,
            give_up_after_s=self._policy.broker_gone.propose_after,
            approvals=wanted,
            clients=self._policy.clients.guard,
        )

    def _fail(self, name: Name, why: str, *, is_passing: bool = False) -> None:
        is_new = self.memory.findings[name].problem != why
        self._note(NotPlanned(self._clock.now_ms(), name, why, is_passing))
        if is_new:
            self._tell(Message(name, f"{name}: it is not repaired", why, ("kreassign autopilot why",)))

    def _run(self, name: Name, plan_id: str, now: Observation, *, at_any_time: bool) -> None:
        """Plan once more, and run that if it repairs the same."""
        repairs = self._plan(name, now)
        if repairs is None or repairs.planned.plan_id != plan_id:
            return
        if self._is_dry:
            self._begin(repairs.planned, "dry-run")
            self._note(RunEnded(self._clock.now_ms(), name, "not begun in a dry run", repairs.planned.copied_bytes))
            return
        try:
            if repairs.plan is None:
                self._elect(repairs.planned)
                return
            request = self._request(name, repairs.plan, at_any_time=at_any_time)
            started = prepare_run(self._client, request, self._context, self._clock)
        except (InputError, IllegalPlan, PlanIsMet, ClusterError, ExecutionError) as error:
            if self.memory.running is None:
                self._fail(
                    name, f"its run cannot begin: {error_text(error)}", is_passing=isinstance(error, ClusterError)
                )
            else:
                self._end(name, "failed", 0)
            return
        self._begin(repairs.planned, started.run_id, at_any_time=at_any_time)
        self._execute(name, started, repairs.plan)

    def _begin(self, planned: Planned, run_id: str, *, at_any_time: bool = False) -> None:
        at_ms = self._clock.now_ms()
        self._note(RunBegan(at_ms, planned.name, run_id, planned.copied_bytes, planned.moves, at_any_time))
        what = "would be repaired now" if self._is_dry else f"is repaired by run {run_id}"
        follow = () if run_id in {ELECTION, "dry-run"} else (f"kreassign watch {run_id}", f"kreassign cancel {run_id}")
        self._tell(Message(planned.name, f"{planned.name}: it {what}", planned.sentences[0], follow))

    def _execute(self, name: Name, started: RunStarted, plan: PlanFile) -> None:
        try:
            self._ended(name, start_run(self._client, started, self._watched, plan.facts, self._clock))
        except (InputError, ClusterError, ExecutionError) as error:
            self._end(name, f"not begun: {error_text(error)}", 0)

    def _look_meanwhile(self, run: RunView, meter: ProgressMeter) -> None:
        """A look during a run, at most once an interval: its order is a request to the run."""
        del meter
        if self._clock.monotonic_s() - self._looked_s < self._policy.care.interval:
            return
        self._is_beside_run = True
        try:
            self._steer(run)
        except JournalLocked:
            pass  # The next look makes up for it.
        except (ClusterError, InputError, ExecutionError, OSError) as error:
            self._context.warn(f"a look beside run {run.run_id} failed, and is made again: {error_text(error)}")
        finally:
            self._is_beside_run = False

    def _steer(self, run: RunView) -> None:
        order = self._decide(observe(self._client, self._clock.now_ms(), run))
        path, at_ms = journal_path(self._context.state_dir, self._cluster_id, run.run_id), self._clock.now_ms()
        act = self.memory.running
        if act is not None and act.held and not (act.is_end_asked or run.is_held):
            order = HoldRun(run.run_id)  # also where a look before this one failed after it had decided
        match order:
            case PauseRun():
                if self._leave_run is not None and not run.in_flight:
                    self._leave_run()
            case EndRun():
                post_request(path, lambda number: CancelRequested(at_ms, number, is_now=False))
            case HoldRun():
                post_request(path, lambda number: HoldRequested(at_ms, number))
            case ReleaseRun():
                post_request(path, lambda number: ReleaseRequested(at_ms, number))
            case _:
                pass  # nothing is planned or run beside a run

    def _elect(self, planned: Planned) -> None:
        """Elect preferred leaders in steps, under the lease of the cluster."""
        with sole_change(self._client, self._context, "autopilot", self._clock) as confirm:
            self._begin(planned, ELECTION)
            size = self._policy.leaders.step
            for start in range(0, len(planned.moves), size):
                confirm()
                self._client.elect_leaders(planned.moves[start : start + size], ElectionType.PREFERRED)
                self._clock.sleep(PAUSE_S)
        self._end(planned.name, "done", 0)

    def _ended(self, name: Name, run: RunHistory) -> None:
        if run.ended_ms is None:
            self._tell(
                Message(name, f"{name}: its run {run.run_id} is {run.state}", "it goes on by itself when it may")
            )
            return
        problems = [one.problem or "" for one in run.moves]
        by = "an operator" if run.state == "cancelled" or any("someone else" in one for one in problems) else ""
        self._end(name, run.state, run.bytes_copied, by, "" if run.clients is None else str(run.clients))

    def _end(self, name: Name, outcome: str, copied_bytes: int, by: str = "", cost: str = "") -> None:
        act = self.memory.running
        assert act is not None, "only a repair that began ends"
        self._note(RunEnded(self._clock.now_ms(), name, outcome, copied_bytes, "" if act.is_end_asked else by))
        copied = f"{format_amount(copied_bytes, 'B')} copied of {format_amount(act.copied_bytes, 'B')}"
        self._tell(
            Message(name, f"{name}: its run {act.run_id} is {outcome}, {copied}", (by and f"{by} ended it") or cost)
        )

    @contextmanager
    def _watch_run(self, run_id: str, stop: Callable[[], None] | None) -> Iterator[Show | None]:
        self._leave_run = stop
        with self._context.watch(run_id, stop) as show:
            yield show

    def _run_left(self) -> RunView | None:
        """The run of a repair, as its process left it; one that did not begin, or ended, is settled first."""
        act = self.memory.running
        if act is None:
            return None
        path = journal_path(self._context.state_dir, self._cluster_id, act.run_id)
        if act.run_id == ELECTION or not path.exists():
            self._end(act.name, "not begun", 0)
            return None
        run = read_view(path)
        if (ended := history(run)).ended_ms is None:
            return run
        self._ended(act.name, ended)
        return None

    def _resume(self, request: Callable[[int], Any] | None = None) -> None:
        """Go on with the run that is left; why that is not possible is told once, and tried again at the next look."""
        act = self.memory.running
        assert act is not None, "only a run that is left goes on"
        path = journal_path(self._context.state_dir, self._cluster_id, act.run_id)
        try:
            self._ended(act.name, resume_run(self._client, path, self._watched, request, clock=self._clock))
            self._told_problem = ""
        except (InputError, ClusterError, ExecutionError) as error:
            if str(error) != self._told_problem:
                self._told_problem = str(error)
                self._tell(Message(act.name, f"{act.name}: its run {act.run_id} cannot go on", self._told_problem))


def _changes(repairs: Repairs, now: Observation) -> Changes:
    assert isinstance(now.partitions, Known), "only what was read is planned"
    lists = {one.topic_partition: one.replicas for one in now.partitions.value}
    if repairs.plan is None:
        return {one: Change(lists[one], lists[one]) for one in repairs.planned.moves}
    return changes_of(repairs.plan.plan, lists, {})
