"""Propose the repair of a finding: plan it, rehearse it, and ask people for their signatures where the policy does."""

from __future__ import annotations

import math
import shlex
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType

from kreassign.admin import AdminClient
from kreassign.autopilot.events import ApprovalAsked, ApprovalsJudged, Name, Rehearsed, State
from kreassign.autopilot.gates import is_restless
from kreassign.autopilot.memory import Finding
from kreassign.autopilot.messages import about, proposed_message
from kreassign.autopilot.observation import Observation
from kreassign.autopilot.policy import Level
from kreassign.autopilot.rehearsals import counts_still, dated, may_rehearse, runs_at_any_time
from kreassign.autopilot.symptoms import Look
from kreassign.clock import Clock
from kreassign.errors import ClusterError, Infeasible, InputError, KreassignError, unforeseen_named
from kreassign.executor.journal.folder import make_folder
from kreassign.executor.scheduling.windows import open_interval
from kreassign.model.approvals import ApprovalRequest, ApprovalRule, Changes, ListChange, PlanNow
from kreassign.model.authorization import error_text
from kreassign.model.load import MEASURED_S
from kreassign.model.pace import Cap, Caps, Pace, Schedule
from kreassign.model.plan import Plan
from kreassign.model.run import MoveHistory, Phase
from kreassign.model.text import counted, rough_span, some_of
from kreassign.model.throttle import ThrottleRates
from kreassign.operations import approvals
from kreassign.operations.autopilot_decisions import Alive, Decisions
from kreassign.operations.autopilot_journal import approval_path, proposal_path
from kreassign.operations.autopilot_plans import SHOWN, Repairs, avoided, kept, plan_repair
from kreassign.operations.connect import tell_nobody
from kreassign.operations.plan_files import PlanFile
from kreassign.operations.report import rehearse
from kreassign.operations.run import RunRequest
from kreassign.operations.snapshot import observe, whole_snapshot

FEW_AT_A_TIME = Pace(caps=Caps(source=Cap(moves=2), destination=Cap(moves=2)))
"""Moves in flight go to their end, whatever happens meanwhile: so they are few."""

NOT_READ: Mapping[str, str] = MappingProxyType({})


class Proposals:
    """Proposals of one process, beside its decisions."""

    def __init__(self, decisions: Decisions) -> None:
        self._decisions = decisions
        self._client, self._clock, self._lease = decisions.client, decisions.clock, decisions.lease

    def plan(self, name: Name, now: Observation) -> Repairs | None:
        """Plan, and tell of the plan if it is new; a failure is written down, and told once."""
        with self._decisions.at_work() as alive:
            return self._proposed(name, now, alive)

    def _proposed(self, name: Name, now: Observation, alive: Alive) -> Repairs | None:
        before = self._decisions.memory.findings[name]
        path = proposal_path(self._decisions.journal.path, name)
        try:
            avoid = avoided(self._decisions.memory, name, now)
            look = Look(now, self._decisions.memory, self._decisions.policy)
            fresh = plan_repair(self._client, name, look, self._clock, avoid, alive)
            self._lease.confirm()  # Planning takes minutes, and so does the rehearsal.
            repairs = self._rehearsed(kept(path, before.proposal, fresh, look, avoid), before, look, avoid, alive)
            self._propose(repairs, before, look)
        except (ClusterError, OSError) as error:
            self._decisions.fail(name, f"it could not be proposed: {error_text(error)}", is_passing=True)
            return None
        except (InputError, Infeasible) as error:
            self._decisions.fail(name, f"no plan repairs it: {error_text(error)}")
            return None
        return repairs

    def _propose(self, repairs: Repairs, before: Finding, look: Look) -> None:
        """Write the proposal down, and tell it, or ask people to sign it. Raises OSError."""
        name, level = before.name, self._decisions.policy.level(before.name.kind)
        self._decisions.keep_files(name)
        if level is not Level.ASK and before.state is not State.PROPOSED:
            path = str(proposal_path(self._decisions.journal.path, name))
            run = shlex.join(("kreassign", "run", path, *self._decisions.policy.runs.words))
            is_for_people = level is Level.PROPOSE and repairs.plan is not None
            self._decisions.tell(proposed_message(repairs.planned, (run,) if is_for_people else ()))
        self._decisions.note(repairs.planned)
        if level is Level.ASK:
            self.read_approvals(look.now, repairs.topic_ids)
            if self._decisions.memory.findings[name].asked is None and not is_restless(look, name):
                self._ask(repairs, look.now)

    def _rehearsed(
        self, repairs: Repairs, before: Finding, look: Look, avoid: tuple[int, ...], alive: Alive
    ) -> Repairs:
        """The plan with its rehearsal on a twin, made again where that is due, and the plan may run or be signed."""
        planned, level = repairs.planned, look.policy.level(before.name.kind)
        if repairs.plan is None or level not in {Level.ASK, Level.ACT}:
            return repairs
        is_same = before.proposal is not None and before.proposal.plan_id == planned.plan_id
        if before.proposal is not None and is_same:
            tried = before.proposal.rehearsal, before.proposal.rehearsal_any_time
            planned = replace(planned, rehearsal=tried[0], rehearsal_any_time=tried[1])
        finding, is_to_sign = replace(before, proposal=planned), level is Level.ASK and not (is_same and before.asked)
        if not counts_still(look, finding) and (is_to_sign or may_rehearse(look, finding)):
            at_any_time = runs_at_any_time(look, finding)
            request = self._run_of(repairs.plan, avoid, at_any_time=at_any_time)
            fresh = rehearsed(self._client, request, planned.at_ms, self._clock, alive)
            # By no clock that was set meanwhile: it would count for as long as that was set ahead.
            ended_ms = look.now.at_ms + round((self._clock.monotonic_s() - self._decisions.looked_s) * 1000)
            planned = planned.rehearsed(dated(fresh, look, finding, ended_ms), at_any_time=at_any_time)
            self._lease.confirm()
        return replace(repairs, planned=planned)

    def _run_of(self, plan: PlanFile, avoid: tuple[int, ...], *, at_any_time: bool) -> RunRequest:
        return RunRequest(
            plan,
            ThrottleRates(self._decisions.policy.runs.throttle),
            pace=FEW_AT_A_TIME if at_any_time else replace(FEW_AT_A_TIME, hours=self._decisions.policy.runs.hours),
            measure_for_s=0.0,
            replan=True,
            avoid=avoid,
            give_up_after_s=self._decisions.policy.broker_gone.propose_after,
            clients=self._decisions.policy.clients.guard,
        )

    # Approvals: the request is a file, and so are the signatures beside it.

    def _ask(self, repairs: Repairs, now: Observation) -> None:
        planned, rule = repairs.planned, self._decisions.policy.approvals
        request = ApprovalRequest(
            self._decisions.context.operator.name,
            self._decisions.cluster_id,
            self._clock.now_ms(),
            self._clock.now_ms() + round(rule.expire_after * 1000),
            tuple(sorted(now.live)),
            (str(planned.name), planned.sentences[0], *planned.reasons),
            _changes(repairs, now),
        )
        path = approval_path(self._decisions.journal.path, planned.name)
        make_folder(path.parent)
        approvals.write_request(path, request)
        what = f"{planned.sentences[0]}; {counted(rule.least, 'approval')} wanted"
        sign = f"kreassign autopilot approve {planned.name.kind} '{planned.name.subject}' --key FILE"
        self._decisions.tell(about(planned.name, what, "; ".join(planned.reasons), (sign, "kreassign autopilot why")))
        self._decisions.keep_files(planned.name)
        self._decisions.note(ApprovalAsked(request.at_ms, planned.name, request.request_id))

    def read_approvals(self, now: Observation, topic_ids: Mapping[str, str] = NOT_READ) -> None:
        """Judge what people have signed; a request that permits nothing any more is told.

        A look reads no `topic_ids`: whether a topic is another one is seen when a plan is made.
        """
        for finding in self._decisions.memory.open:
            if finding.asked is None or finding.state is not State.PROPOSED:
                continue
            planned = finding.proposal.moves if finding.proposal is not None else ()
            if not now.are_brokers_read or now.unread_topics.keys() & {one.topic for one in planned}:
                continue  # a drift that was not seen makes no approval void
            self._decisions.keep_files(finding.name)
            judged = self._judged(finding.name, now, topic_ids)
            before = finding.judged
            if before is None or replace(judged, at_ms=before.at_ms) != before:
                if judged.dead:
                    self._decisions.tell(about(finding.name, "its approval is void", judged.dead))
                self._decisions.note(judged)

    def _judged(self, name: Name, now: Observation, topic_ids: Mapping[str, str]) -> ApprovalsJudged:
        wanted, asked, request = self._wanted(name), self._decisions.memory.findings[name].asked, None
        try:
            with suppress(InputError):
                request = approvals.request_of(wanted.request)
            if request is None or (asked is not None and request.request_id != asked.request_id):
                return ApprovalsJudged(now.at_ms, name, (), "its request is gone, or not the one that was asked")
            lists = {one.topic_partition: one.replicas for one in now.placed}
            changes = {
                one: each._replace(before=lists.get(one, ()), topic_id=topic_ids.get(one.topic))
                for one, each in request.changes.items()
            }
            found = approvals.judgement(wanted, PlanNow(now.at_ms, self._decisions.cluster_id, changes, now.live))
        except (InputError, OSError) as error:
            return ApprovalsJudged(now.at_ms, name, (), lacking=f"approvals could not be read: {error_text(error)}")
        return ApprovalsJudged(now.at_ms, name, found.approved_by, found.dead, found.lacking)

    def _wanted(self, name: Name) -> approvals.SignedApprovals:
        wanted = self._decisions.policy.approvals
        proposers = (self._decisions.context.operator.name, *((wanted.proposer,) if wanted.proposer else ()))
        rule = ApprovalRule(wanted.least, wanted.expire_after)
        path = approval_path(self._decisions.journal.path, name)
        return approvals.SignedApprovals(path, Path(wanted.allowed_signers), rule, proposers)

    def is_signed_still(self, name: Name, asked: ApprovalAsked | None) -> bool:
        """True if people have signed this request as before, where they have to: they take signatures back, too."""
        found = self._decisions.memory.findings[name]
        if self._decisions.policy.level(name.kind) is not Level.ASK:
            return True
        return found.asked == asked and found.judged is not None and not found.judged.lacking

    def request(self, name: Name, plan: PlanFile, avoid: tuple[int, ...], *, at_any_time: bool) -> RunRequest:
        """The run of a repair: where people approved a plan, just that one, and by their approval."""
        run = self._run_of(plan, avoid, at_any_time=at_any_time)
        if self._decisions.policy.level(name.kind) is not Level.ASK:
            return run
        wanted = self._wanted(name)
        approved = approvals.approved_plan(approvals.request_of(wanted.request))
        return replace(run, plan=approved, replan=False, approvals=wanted)


def _changes(repairs: Repairs, now: Observation) -> Changes:
    lists = {one.topic_partition: one.replicas for one in now.placed}
    if repairs.plan is None:
        return {one: ListChange(lists[one], lists[one]) for one in repairs.planned.moves}
    return approvals.changes_of(repairs.plan.plan, lists, repairs.plan.origin.topic_ids)


# Rehearse it on a twin of the cluster: what does not end well there, or cannot be tried, does not begin.

LATE_MS = 2 * 60_000
"""A rehearsal looks once a minute at least: a copy that ends so late in it may have ended in time."""


def rehearsed(
    client: AdminClient, request: RunRequest, at_ms: int, clock: Clock, alive: Callable[[], object] = lambda: None
) -> Rehearsed:
    """Make a run on a twin of the cluster as it is now, from when its window is open. Raises ClusterError.

    A twin has no clients to ask: a run that suffers with them backs off, and takes longer. Partitions that cannot be
    tried keep the others from nothing: the guards of the run hold those of unknown size, and a copy that lags behind
    its writes keeps no other waiting. `alive` is called again and again, since it takes minutes.
    """
    seen = observe(client, clock.now_ms(), tell_nobody)
    alive()
    snapshot = whole_snapshot(client, seen, clock, MEASURED_S, tell_nobody)
    alive()
    now, wanted, rate = dict(snapshot.partitions), request.plan.plan, request.throttle.slowest_bytes_per_s
    unknown = {name for name in wanted.replicas if name not in now or now[name].size_bytes is None}
    most = rate or math.inf
    hot = {name for name in wanted.replicas.keys() - unknown if (now[name].write_bytes_per_s or 0.0) >= most}
    untried = (
        *((f"the size of {some_of(sorted(unknown), SHOWN)} is not known",) if unknown else ()),
        *((f"the throttle is below what is written to {some_of(sorted(hot), SHOWN)}",) if hot else ()),
    )
    tried = tuple(one for one in wanted.assignments if one.topic_partition not in unknown | hot)
    if not tried:
        return _not_rehearsed(at_ms, "; ".join(untried))
    expected = {name: one for name, one in request.plan.expected.items() if name not in unknown | hot}
    request = replace(request, clients=None, plan=replace(request.plan, plan=Plan(tried), expected=expected))
    hours = request.pace.hours
    window = open_interval(hours, snapshot.taken_ms)
    begin_ms = snapshot.taken_ms if window is None else round(max(window.begins_ms, snapshot.taken_ms))
    try:
        with unforeseen_named():
            shown = rehearse(request, replace(snapshot, taken_ms=begin_ms), alive=alive)
    except KreassignError as error:
        return _not_rehearsed(at_ms, " ".join(str(error).split()))
    history = shown.history
    is_done = history.state is Phase.DONE and shown.seconds is not None
    late = [one.topic_partition for one in history.moves if hours.are_limited and _is_late(one, hours)]
    problems = (
        *(() if is_done else history.problems or ("its end is not in sight",)),
        *shown.breaches,
        *((f"{some_of(late, SHOWN)}: the copy ends after the window closes",) if late else ()),
        *shown.outages,
    )
    took = "" if shown.seconds is None else f" after {rough_span(shown.seconds)}"
    left = f" without what cannot be tried ({'; '.join(untried)})" if untried else ""
    text = f"rehearsed on a twin of the cluster{left}: {history.state}{took}"
    if problems:
        return Rehearsed(at_ms, text, f"{text}; {'; '.join(problems[:SHOWN])}")
    return Rehearsed(at_ms, f"{text}, and no guard held it")


def _not_rehearsed(at_ms: int, why: str) -> Rehearsed:
    text = f"it could not be rehearsed on a twin of the cluster: {why}"
    return Rehearsed(at_ms, text, text)


def _is_late(move: MoveHistory, hours: Schedule) -> bool:
    """True if a move is still in flight when the window in which it was sent closes."""
    if move.submitted_ms is None or move.ended_ms is None:
        return False
    window = open_interval(hours, move.submitted_ms)
    return window is not None and move.ended_ms > window.ends_ms + LATE_MS
