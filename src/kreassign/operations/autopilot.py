"""Look after a cluster: read it, let the core decide, plan, run, and write down what came of it.

`kreassign.autopilot` decides when; planner, runs, lease, guards and journals of runs know how. The journal of decisions
is the only memory: a process that begins where another one was killed reads it, and settles what that one had begun.
With `dry` everything is done but the runs, in a journal of its own.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType, TracebackType
from typing import Any, Self, get_args

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
    symptoms,
    tick,
)
from kreassign.autopilot.detectors import Look, astray, use_of
from kreassign.autopilot.gates import GATES, WEEK_MS, Case, closed_gates, spent_bytes, stopped
from kreassign.autopilot.lifecycle import (
    ApprovalAsked,
    ApprovalsJudged,
    Began,
    Event,
    Memory,
    Name,
    NotPlanned,
    Planned,
    Request,
    RunBegan,
    RunEnded,
    Silenced,
    State,
    TurnedOff,
    TurnedOn,
    memory_of,
    remember,
)
from kreassign.autopilot.observation import Absent, Asked, Brake, Known, Observation, Perhaps, Unknown
from kreassign.autopilot.policy import Kind, Level, Policy, parse_policy
from kreassign.autopilot.replay import Replayed, replay
from kreassign.clock import SYSTEM_CLOCK, Clock
from kreassign.errors import ClusterError, ExecutionError, IllegalPlan, Infeasible, InputError, JournalLocked, PlanIsMet
from kreassign.executor.cluster.requests import read_throttles
from kreassign.executor.events import CancelRequested, HoldRequested, ReleaseRequested, RunStarted
from kreassign.executor.history.run_history import history, read_view
from kreassign.executor.journal import Journal, journal_path, post_request, read_events
from kreassign.executor.journal.file import Form
from kreassign.executor.journal.folder import cluster_folder, cluster_of_folder, make_folder
from kreassign.executor.lease import present_holder
from kreassign.executor.maintenance import brokers_in_maintenance
from kreassign.executor.progress import ProgressMeter
from kreassign.executor.state import RunView
from kreassign.model import Broker, ConfigResource, ElectionType, LogDir
from kreassign.model.approvals import ApprovalRequest, ApprovalRule, Change, Changes, Present
from kreassign.model.authorization import error_text
from kreassign.model.distributions import UNKNOWN, balancers, recognise
from kreassign.model.load import MEASURED_S
from kreassign.model.pace import NO_LIMITS
from kreassign.model.run import RunHistory
from kreassign.model.text import DAY_MS, counted, format_amount
from kreassign.model.throttle import ThrottleRates
from kreassign.monitoring.metrics import AutopilotStatus
from kreassign.operations.approvals import (
    SignedApprovals,
    approve_request,
    approved_plan,
    changes_of,
    judgement,
    request_of,
    withdraw,
    write_request,
)
from kreassign.operations.broker_changes import sole_change
from kreassign.operations.plan import PlanRequest, make_plan
from kreassign.operations.plan_files import REQUEST_SUFFIX, PlanFile
from kreassign.operations.plan_inputs import inputs_of_cluster
from kreassign.operations.plan_tasks import (
    AddBrokers,
    BalanceLogDirs,
    DemoteBrokers,
    DrainBrokers,
    Rebalance,
    Repair,
    Task,
)
from kreassign.operations.run import LockWatch, RunContext, RunRequest, Show, prepare_run, resume_run, start_run
from kreassign.operations.run_journals import InForce
from kreassign.operations.snapshot import described_cluster
from kreassign.operations.text_files import read_text
from kreassign.planner.problem.policy import PlanPolicy
from kreassign.planner.results import Outcome

BRAKE = "kreassign-autopilot-off"
"""Broker setting that stops the autopilot, whatever its value: brokers show the values of strange settings to nobody.

`kafka-configs --alter --entity-type brokers --entity-default --add-config kreassign-autopilot-off=true` pulls it.
"""

DECISIONS = Form(
    0x6B726570, Began, MappingProxyType({kind.__name__: kind for kind in get_args(Event)}), (RunBegan, RunEnded),
    get_args(Request), keeps_requests=True,
)  # fmt: skip
"""Journals of autopilots. Requests hold whether a process is there when they are made or not."""

ELECTION = "election"
"""Stands for a run where only leaders are elected."""

Tell = Callable[[Message], None]
Report = Callable[[AutopilotStatus], None]
"""Gets the status after each look."""


def read_policy(path: Path) -> Policy:
    """Read a policy file. Raises InputError, which names file, key, value and what is allowed."""
    return parse_policy(read_text(path), str(path))


# Observe.


def observe(client: AdminClient, at_ms: int, ours: RunView | None = None) -> Observation:
    """Read the cluster; whatever does not answer is unknown in the result. `ours` is the run of the autopilot."""
    cluster = _asked(lambda: described_cluster(client))
    brokers: Asked[tuple[Broker, ...]] = Known(cluster.value.brokers) if isinstance(cluster, Known) else cluster
    live = sorted(one.id for one in brokers.value if not one.is_fenced) if isinstance(brokers, Known) else []
    topics = _asked(client.describe_topics)
    partitions = (
        Known(tuple(each for one in topics.value.ok.values() for each in one.partitions))
        if isinstance(topics, Known)
        else topics
    )
    of_ours = frozenset(() if ours is None else ours.records)
    moving = _asked(client.list_partition_reassignments)
    others = Known(frozenset(moving.value) - of_ours) if isinstance(moving, Known) else moving
    log_dirs = _log_dirs(client, live)
    paths = {one.path for asked in log_dirs.values() if isinstance(asked, Known) for one in asked.value}
    names = {*topics.value.ok, *topics.value.failed} if isinstance(topics, Known) else set()
    distribution = recognise(cluster.value, paths, names) if isinstance(cluster, Known) else UNKNOWN
    return Observation(
        at_ms,
        cluster.value.cluster_id if isinstance(cluster, Known) else "",
        brokers,
        partitions,
        log_dirs,
        others,
        Known(()) if ours is not None else _throttles(client, live),
        _asked(lambda: brokers_in_maintenance(client)),
        Absent() if ours is not None else _lease(client),
        _brake(client),
        of_ours,
        {name: error_text(error) for name, error in topics.value.failed.items()} if isinstance(topics, Known) else {},
        balancers=balancers(distribution, names),
    )


def _asked(ask: Callable[[], Any]) -> Any:
    try:
        return Known(ask())
    except ClusterError as error:
        return Unknown(error_text(error))


def _log_dirs(client: AdminClient, live: list[int]) -> Mapping[int, Asked[tuple[LogDir, ...]]]:
    answer = _asked(lambda: client.describe_log_dirs(live)) if live else Unknown("no broker is live")
    if isinstance(answer, Unknown):
        return dict.fromkeys(live, answer)
    failed = {broker: Unknown(error_text(error)) for broker, error in answer.value.failed.items()}
    return {**{broker: Known(dirs) for broker, dirs in answer.value.ok.items()}, **failed}


def _throttles(client: AdminClient, live: list[int]) -> Asked[tuple[str, ...]]:
    answer = _asked(lambda: read_throttles(client, (), live))
    if isinstance(answer, Unknown):
        return answer
    for resource, error in answer.value.unknown.items():
        return Unknown(f"{resource}: {error_text(error)}")
    return Known(tuple(str(one) for values in answer.value.known.values() for one in values if one.value is not None))


def _lease(client: AdminClient) -> Perhaps[str]:
    holder = _asked(lambda: present_holder(client))
    if isinstance(holder, Unknown):
        return holder
    return Absent() if holder.value is None else Known(str(holder.value))


def _brake(client: AdminClient) -> Perhaps[Brake]:
    place = ConfigResource.all_brokers()
    answer = _asked(lambda: client.describe_configs([place], names=[BRAKE]).raise_if_any())
    if isinstance(answer, Unknown):
        return answer
    is_pulled = BRAKE in answer.value[place]
    text = f"{BRAKE} is set for all brokers; `kafka-configs --alter --delete-config {BRAKE}` releases it"
    return Known(Brake(text)) if is_pulled else Absent()


# Plan: the narrowest task for each kind.

NO_POLICY = PlanPolicy()


def _number(name: Name) -> int:
    return int(name.subject.removeprefix("broker ").partition(":")[0])


def _disk_task(name: Name, now: Observation) -> Task:
    """Other directories of the broker where one has room, else other brokers."""
    path = name.subject.partition(":")[2]
    uses = {broker: [use_of(broker, one) for one in dirs] for broker, dirs in now.directories()}
    beside = [one for one in uses.get(_number(name), []) if one is not None and one.path != path]
    is_roomy = any(one.used_bytes / one.total_bytes < ROOMY for one in beside)
    return BalanceLogDirs() if is_roomy else Rebalance()


ROOMY = 0.7
"""Used share of a directory that can take what another one of its broker has too much."""

TASKS: Mapping[Kind, Callable[[Name, Observation], Task]] = MappingProxyType({
    Kind.BROKER_GONE: lambda name, _: DrainBrokers((_number(name),)),
    Kind.DISK_FILLS: _disk_task,
    Kind.DIRECTORY_FAILED: lambda _, __: Repair(racks=False, replication_factors=False),
    Kind.PLACEMENT: lambda _, __: Repair(),
    Kind.NEW_BROKER: lambda name, _: AddBrokers((_number(name),)),
    Kind.SLOW_BROKER: lambda name, _: DemoteBrokers((_number(name),)),
    Kind.BAND_LEFT: lambda _, __: Rebalance(),
})  # fmt: skip
UNMEASURED = frozenset({Kind.BROKER_GONE, Kind.DIRECTORY_FAILED, Kind.PLACEMENT, Kind.SLOW_BROKER})
"""Kinds whose plans need no write rates: copies that are lost do not wait for loads."""


@dataclass(frozen=True, slots=True)
class Repairs:
    """A plan for a finding, or the partitions whose leaders are elected (`plan` is None)."""

    planned: Planned
    plan: PlanFile | None


def plan_repair(client: AdminClient, name: Name, now: Observation, policy: Policy, clock: Clock) -> Repairs:
    """Plan the repair of a finding by the narrowest task. Raises InputError, Infeasible, IllegalPlan, ClusterError."""
    if name.kind is Kind.LEADERS:
        wrong = tuple(sorted(one.topic_partition for one in astray(now)))
        what = f"elect {counted(len(wrong), 'preferred leader')}, {policy.leaders.step} at a time; nothing is copied"
        return Repairs(Planned(now.at_ms, name, _digest(map(str, wrong)), 0, wrong, (what,)), None)
    measure_for_s = 0.0 if name.kind in UNMEASURED else MEASURED_S
    inputs = inputs_of_cluster(client, NO_POLICY, measure_for_s=measure_for_s, clock=clock, warn=_unheard)
    outcome = make_plan(inputs, TASKS[name.kind](name, now), PlanRequest(rate_bytes_per_s=policy.runs.throttle))
    if not outcome.plan.replicas:
        reasons = "; ".join(outcome.facts.remaining) or "no plan moves anything"
        raise InputError(f"there is nothing to move: {reasons}")
    return Repairs(planned_of(name, now.at_ms, outcome), PlanFile(outcome.plan, outcome.facts.expected, outcome.facts))


def planned_of(name: Name, at_ms: int, outcome: Outcome) -> Planned:
    """The plan of a repair, as it is remembered."""
    copied, prediction = outcome.evaluation.moved_bytes, outcome.facts.prediction
    moves = tuple(sorted(outcome.plan.replicas))
    hours = "" if prediction is None else f", in about {prediction.seconds / 3600:.1f} h"
    what = f"{outcome.facts.task}: {counted(len(moves), 'partition')}, {format_amount(copied, 'B')} to copy{hours}"
    # Destinations differ from look to look with the loads; what is repaired must be the same.
    before = outcome.current.replicas
    left = (f"{one} {sorted(set(before[one]) - set(outcome.plan.replicas[one]))}" for one in moves)
    return Planned(at_ms, name, _digest(left), copied, moves, (what, *outcome.facts.remaining[:3]))


def _digest(lines: Iterable[str]) -> str:
    return hashlib.sha256("\n".join(sorted(lines)).encode()).hexdigest()[:16]


def _unheard(warning: str) -> None:
    """Discard warnings about what was not read: looks name it."""
    del warning


# Act.


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
        self._journal, events = _opened(context.state_dir, self._cluster_id, clock.now_ms(), is_dry=is_dry)
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
            repairs = plan_repair(self._client, name, now, self._policy, self._clock)
        except (InputError, Infeasible, IllegalPlan, ClusterError) as error:
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
            pace=NO_LIMITS if at_any_time else replace(NO_LIMITS, hours=self._policy.runs.hours),
            measure_for_s=0.0,
            replan=not is_asked,
            approvals=wanted,
            clients=self._policy.clients.guard,
        )

    def _fail(self, name: Name, why: str) -> None:
        is_new = self.memory.findings[name].problem != why
        self._note(NotPlanned(self._clock.now_ms(), name, why))
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
                self._fail(name, f"its run cannot begin: {error_text(error)}")
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
            with suppress(JournalLocked):  # The next look makes up for it.
                self._steer(run)
        finally:
            self._is_beside_run = False

    def _steer(self, run: RunView) -> None:
        order = self._decide(observe(self._client, self._clock.now_ms(), run))
        path, at_ms = journal_path(self._context.state_dir, self._cluster_id, run.run_id), self._clock.now_ms()
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


PAUSE_S = 5.0
"""Time between two steps of an election, in which clients find their leaders."""

# The journal, and what other processes do with it.


def decisions_path(state_dir: Path, cluster_id: str, *, is_dry: bool = False) -> Path:
    """Path of the journal of decisions: below the folder of the cluster, so that runs do not take it for theirs."""
    return cluster_folder(state_dir, cluster_id) / ("autopilot-dry-run" if is_dry else "autopilot") / "decisions.sqlite"


def _opened(state_dir: Path, cluster_id: str, at_ms: int, *, is_dry: bool) -> tuple[Journal, tuple[Event, ...]]:
    path = decisions_path(state_dir, cluster_id, is_dry=is_dry)
    if path.exists():
        return Journal.resume(path, cluster_id, form=DECISIONS)
    began = Began(at_ms, cluster_id)
    make_folder(path.parent)
    return Journal.begin(path, began, "the autopilot", DECISIONS), (began,)


def clusters_looked_after(state_dir: Path, *, is_dry: bool = False) -> tuple[str, ...]:
    """Ids of the clusters whose journals of decisions are in the state directory."""
    folder = decisions_path(state_dir, "", is_dry=is_dry).parent.name
    return tuple(cluster_of_folder(path.parents[1]) for path in sorted(state_dir.glob(f"*/{folder}/decisions.sqlite")))


def looked_after(state_dir: Path, here: InForce, *, is_dry: bool = False) -> str:
    """Id of the cluster in force; where none is named, of the only one with an autopilot in the state directory.

    Raises InputError where there is none, where several could be meant, or the cluster that is named did not answer.
    """
    if here.why is not None:
        raise InputError(f"nobody knows which cluster is meant: {here.why}")
    known = clusters_looked_after(state_dir, is_dry=is_dry)
    if here.cluster_id is None and len(known) == 1:
        return known[0]
    if here.cluster_id is None:
        what = "several clusters are" if known else "no cluster is"
        raise InputError(f"{what} looked after by {state_dir}; name the cluster (--bootstrap-server) or --state-dir")
    if here.cluster_id not in known:
        what = "has been looked at by a dry run" if is_dry else "is looked after"
        raise InputError(f"no autopilot in {state_dir}: cluster {here.cluster_id} is not one that {what} from there")
    return here.cluster_id


def approval_path(journal: Path, name: Name) -> Path:
    """Path of the request for approval of a finding's repair, in a folder beside the journal of decisions."""
    subject = hashlib.sha256(name.subject.encode()).hexdigest()[:8]
    return journal.parent / "approvals" / f"{name.kind}-{subject}{REQUEST_SUFFIX}"


def _changes(repairs: Repairs, now: Observation) -> Changes:
    assert isinstance(now.partitions, Known), "only what was read is planned"
    lists = {one.topic_partition: one.replicas for one in now.partitions.value}
    if repairs.plan is None:
        return {one: Change(lists[one], lists[one]) for one in repairs.planned.moves}
    return changes_of(repairs.plan.plan, lists, {})


def approve(
    state_dir: Path, cluster_id: str, name: Name, key: Path, user: str, *, is_dry: bool = False
) -> ApprovalRequest:
    """Sign the proposal of a finding, and return what was signed. Raises InputError if none is asked for."""
    finding = remembered(state_dir, cluster_id, is_dry=is_dry).findings.get(name)
    if finding is None or finding.asked is None:
        raise InputError(
            f"the autopilot asks for no approval of {name}; `kreassign autopilot status` shows its findings"
        )
    path = approval_path(_journal(state_dir, cluster_id, is_dry=is_dry), name)
    approve_request(path, key, user)
    return request_of(path)


def replayed(state_dir: Path, cluster_id: str, policy: Policy, *, is_dry: bool = False) -> Replayed:
    """Play a policy over the journal of decisions of a cluster. Raises InputError without one, JournalDamaged."""
    return replay(read_events(_journal(state_dir, cluster_id, is_dry=is_dry), DECISIONS), policy)


def remembered(state_dir: Path, cluster_id: str, *, is_dry: bool = False) -> Memory:
    """Return the memory of a cluster's autopilot. Raises InputError without one, JournalDamaged."""
    return memory_of(read_events(_journal(state_dir, cluster_id, is_dry=is_dry), DECISIONS))


def turn_off(state_dir: Path, cluster_id: str, for_s: float, by: str, why: str, clock: Clock = SYSTEM_CLOCK) -> None:
    """Let the autopilot act on nothing for a while; it holds a repair that runs. Raises InputError without one."""
    at_ms = clock.now_ms()
    _post(state_dir, cluster_id, lambda number: TurnedOff(at_ms, number, at_ms + round(for_s * 1000), by, why))


def turn_on(state_dir: Path, cluster_id: str, by: str, clock: Clock = SYSTEM_CLOCK) -> None:
    """Let the autopilot act again. Raises InputError without one."""
    _post(state_dir, cluster_id, lambda number: TurnedOn(clock.now_ms(), number, by))


def silence(
    state_dir: Path, cluster_id: str, name: Name, for_s: float, by: str, why: str, clock: Clock = SYSTEM_CLOCK
) -> None:
    """Let the autopilot do nothing about a finding for a while. Raises InputError without one."""
    at_ms = clock.now_ms()
    until_ms = at_ms + round(for_s * 1000)
    _post(state_dir, cluster_id, lambda number: Silenced(at_ms, number, *name, until_ms, by, why))


def _post(state_dir: Path, cluster_id: str, make: Callable[[int], Request]) -> None:
    post_request(_journal(state_dir, cluster_id), make, DECISIONS)


def _journal(state_dir: Path, cluster_id: str, *, is_dry: bool = False) -> Path:
    path = decisions_path(state_dir, cluster_id, is_dry=is_dry)
    if not path.exists():
        raise InputError(
            f"no autopilot has looked after cluster {cluster_id} with this state directory: {path} is not there; "
            "begin with `kreassign autopilot watch POLICY`"
        )
    return path


@dataclass(frozen=True, slots=True)
class Reasons:
    """A finding, with each gate: None if it is open, else what keeps it closed."""

    name: Name
    state: State
    seen: str
    gates: Mapping[str, str | None]


def status_of(now: Observation, memory: Memory, policy: Policy) -> AutopilotStatus:
    """The status after a look, as metrics have it."""
    shown = symptoms(Look(now, memory, policy))
    proposed = (one for one in memory.open if one.state is State.PROPOSED and one.name in shown)
    blocked = (gate for one in proposed for gate in closed_gates(Case(one, shown[one.name], now, memory, policy)))
    return AutopilotStatus(
        memory.cluster_id,
        now.at_ms,
        tuple((one.name.kind.value, one.state.value) for one in memory.open),
        tuple((one.name.kind.value, one.outcome or "running") for one in memory.acts),
        spent_bytes(memory, now.at_ms, DAY_MS),
        spent_bytes(memory, now.at_ms, WEEK_MS),
        tuple(blocked),
        stopped(now, memory) is not None,
    )


def why(client: AdminClient, policy: Policy, memory: Memory, clock: Clock = SYSTEM_CLOCK) -> Iterator[Reasons]:
    """Each open finding with all gates, by a look of now; changes and writes nothing."""
    now = observe(client, clock.now_ms())
    decision = tick(memory, now, policy)
    shown = symptoms(Look(now, decision.memory, policy))
    for finding in decision.memory.open:
        symptom = shown.get(finding.name)
        if symptom is None:
            yield Reasons(finding.name, finding.state, finding.seen, {"evidence": "it is not seen now"})
            continue
        case = Case(finding, symptom, now, decision.memory, policy)
        yield Reasons(finding.name, finding.state, symptom.seen, {name: gate(case) for name, gate in GATES.items()})
