"""Run repairs: begin one, steer it by looks beside it, go on with one that was left, and settle how it ended."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from kreassign import errors
from kreassign.autopilot.core import EndRun, HoldRun, Order, PauseRun, ReleaseRun, RunRepair, SettleRun, tick
from kreassign.autopilot.events import EndAsked, Name, Planned, Result, RunBegan, RunEnded
from kreassign.autopilot.gains import amount_of
from kreassign.autopilot.gates import hours_of
from kreassign.autopilot.memory import remember
from kreassign.autopilot.messages import about
from kreassign.autopilot.observation import US, Absent, Known, Observation
from kreassign.autopilot.symptoms import Look
from kreassign.executor import events
from kreassign.executor.cluster.port import confirmed_writes
from kreassign.executor.history.run_history import history, read_view
from kreassign.executor.journal import ASIDE, first_event, post_request, read_events
from kreassign.executor.progress import ProgressMeter
from kreassign.executor.state import RunView
from kreassign.model import ElectionType, TopicPartition
from kreassign.model.authorization import error_text
from kreassign.model.error_codes import ELECTION_NOT_NEEDED, has_code
from kreassign.model.pace import PaceChange
from kreassign.model.run import RunHistory
from kreassign.model.text import counted, format_seconds
from kreassign.operations.autopilot_decisions import Decisions
from kreassign.operations.autopilot_looks import run_of
from kreassign.operations.autopilot_plans import avoided
from kreassign.operations.autopilot_proposals import Proposals
from kreassign.operations.broker_changes import sole_change
from kreassign.operations.plan_files import PlanFile
from kreassign.operations.run import Show, prepare_run
from kreassign.operations.whole_runs import resume_whole, start_whole

ELECTION = "election"
"""Stands for a run where only leaders are elected."""

NewRequest = Callable[[int], events.Request]
"""Makes a request to a run with the number that it gets."""

HELD_LONG_S = 900.0
"""A repair that guards hold for so long is told."""

LOCKED_LOOKS = 3
"""Looks that wait for a lock on the journal of a repair; after them it counts as one that cannot be read."""

PAUSE_S = 5.0
"""Time between two steps of an election, in which clients find their leaders."""


class RepairRuns:
    """Runs of one process, by its decisions and proposals."""

    def __init__(self, decisions: Decisions, proposals: Proposals) -> None:
        self._decisions, self._proposals = decisions, proposals
        self._client, self._clock, self._lease = decisions.client, decisions.clock, decisions.lease
        self._context = context = decisions.context
        observers = (*context.observers, self._look_meanwhile)
        self._watched = replace(context, observers=observers, watch=self._watch_run)
        self._unsettled = set(decisions.runs)
        self._leave_run: Callable[[], None] | None = None
        self._is_broken, self._locked_looks, self._told_problem = False, 0, ""
        self._held_since_s: float | None = None
        # Run, and the rate that the policy had for it last.
        self._throttle: tuple[str, int | None] | None = None

    def run(self, name: Name, plan_id: str, now: Observation, *, at_any_time: bool) -> None:
        """Plan once more, and run that if it repairs the same."""
        asked = self._decisions.memory.findings[name].asked
        repairs = self._proposals.plan(name, now)
        if repairs is None or repairs.planned.plan_id != plan_id or not self._proposals.is_signed_still(name, asked):
            return
        planned, plan, is_dry, started = repairs.planned, repairs.plan, self._decisions.is_dry, None
        try:
            if plan is not None and not is_dry:
                avoid = avoided(self._decisions.memory, name, now)
                request = self._proposals.request(name, plan, avoid, at_any_time=at_any_time)
                started = prepare_run(self._client, request, self._context, self._clock)
            if not self._is_due_still(RunRepair(name, plan_id, at_any_time)):
                return
            if plan is None and not is_dry:
                self._elect(planned, now)
                return
        except (errors.InputError, errors.ClusterError, errors.ExecutionError) as error:
            if self._decisions.memory.running is None:
                self._decisions.fail(name, f"its run cannot begin: {error_text(error)}", is_passing=_is_passing(error))
            else:
                self._end(name, Result.FAILED)
            return
        self._begin(planned, "dry-run" if started is None else started.run_id, now, at_any_time=at_any_time)
        if started is None or plan is None:
            self._decisions.note(RunEnded(self._clock.now_ms(), name, Result.NOT_BEGUN_DRY, planned.copied_bytes))
        elif not self._decisions.has_waited:  # else the next look settles it, as not begun
            self._execute(name, started, plan)

    def _is_due_still(self, order: RunRepair) -> bool:
        """Planning takes minutes, in which people pull the brake, turn it off or lower the level, and brokers die."""
        self._decisions.read_policy()
        self._decisions.hear()
        return tick(self._decisions.memory, self._decisions.observe(), self._decisions.policy).order == order

    def _begin(self, planned: Planned, run_id: str, now: Observation, *, at_any_time: bool = False) -> None:
        at_ms = self._clock.now_ms()
        before = amount_of(Look(now, self._decisions.memory, self._decisions.policy), planned)
        self._decisions.runs.add(run_id)
        self._unsettled.add(run_id)
        self._decisions.note(
            RunBegan(
                at_ms, planned.name, run_id, planned.copied_bytes, planned.moves, at_any_time, planned.seconds,
                planned.also, before,
            )
        )  # fmt: skip
        what = "would be repaired now" if self._decisions.is_dry else f"is repaired by run {run_id}"
        follow = () if run_id in {ELECTION, "dry-run"} else (f"kreassign watch {run_id}", f"kreassign cancel {run_id}")
        self._decisions.tell(about(planned.name, f"it {what}", planned.sentences[0], follow))

    def _execute(self, name: Name, started: events.RunStarted, plan: PlanFile) -> None:
        try:
            ended = start_whole(self._client, started, self._watched, plan.facts, clock=self._clock).run
        except (errors.InputError, errors.ClusterError, errors.ExecutionError) as error:
            if self._decisions.journal_of(started.run_id).exists():
                self._tell_left(name, started.run_id, error)  # The next look goes on with it.
            else:
                self._end(name, Result.NOT_BEGUN, outcome=f"{Result.NOT_BEGUN}: {error_text(error)}")
            return
        self._raise_if_broken(started.run_id)
        self._ended(name, ended)

    def _elect(self, planned: Planned, now: Observation) -> None:
        """Elect preferred leaders in steps, under the lease of the cluster."""
        with sole_change(self._client, self._context, "autopilot", self._clock) as confirm:
            client = confirmed_writes(self._client, confirm)
            self._begin(planned, ELECTION, now)
            if self._decisions.has_waited:
                return
            size = self._decisions.policy.leaders.step
            failed: dict[TopicPartition, errors.ClusterError] = {}
            for start in range(0, len(planned.moves), size):
                if start and self._stops_election(planned.name):
                    after = f"{Result.STOPPED} after {counted(start, 'leader')}"
                    self._end(planned.name, Result.STOPPED, outcome=after)
                    return
                answer = client.elect_leaders(planned.moves[start : start + size], ElectionType.PREFERRED)
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
        order = self._decisions.decide(self._decisions.observe())
        while self._decisions.has_waited:  # for the journal: what the look showed may be over
            order = self._decisions.decide(self._decisions.observe())
        act = self._decisions.memory.running
        if act is None or order is None:
            return False
        if not act.is_end_asked:
            why = act.held.why if act.held else "its window closes"
            self._decisions.note(EndAsked(self._clock.now_ms(), name, why))
        return True

    def _ended(self, name: Name, run: RunHistory) -> None:
        if run.ended_ms is None:
            self._lease.refuse()
            is_at_rest = f"its run {run.run_id} is {run.state}"
            self._decisions.tell(about(name, is_at_rest, "it goes on by itself when it may"))
            return
        noted = read_events(self._decisions.journal_of(run.run_id))
        people = [one.by for one in noted if isinstance(one, events.CancelRequested) and one.by != US]
        if 2 * sum(one.is_changed_by_others for one in run.moves) > len(run.moves):
            people.append("someone else, by Kafka's own means,")
        moved = tuple(one.topic_partition for one in run.moves if one.submitted_ms is not None)
        cost = "" if run.clients is None else str(run.clients)
        result = Result(run.state)
        is_there = all(one.is_deleted or one.completed_ms is not None for one in run.moves)
        if result is Result.FAILED and is_there and not run.throttle_residue:
            result = Result.DONE  # What is deleted needs no repair.
        self._end(name, result, run.bytes_copied, cost, by=people[-1] if people else "", moved=moved)

    def _end(self, name: Name, result: Result, copied_bytes: int = 0, cost: str = "", **more: Any) -> None:
        act = self._decisions.memory.running
        assert act is not None, "only a repair that began ends"
        ended = RunEnded(self._clock.now_ms(), name, result, copied_bytes, **more)
        what = f"its run {act.run_id} is {ended.text}; {remember(self._decisions.memory, ended).acts[-1].account}"
        self._decisions.tell(about(name, what, f"{ended.by} ended it" if ended.by else cost))
        self._decisions.note(ended)

    def _tell_left(self, name: Name, run_id: str, error: errors.KreassignError) -> None:
        if str(error) != self._told_problem:
            self._told_problem = str(error)
            self._decisions.tell(about(name, f"its run {run_id} cannot go on", self._told_problem))

    # Looks beside a run, whose orders are requests to it.

    def _look_meanwhile(self, run: RunView, meter: ProgressMeter) -> None:
        """A look during a run, at most once an interval: its order is a request to the run."""
        del meter
        if isinstance(self._lease.watcher, Known):
            if self._leave_run is not None:
                self._leave_run()
            return
        if self._clock.monotonic_s() - self._decisions.looked_s < self._decisions.policy.care.interval:
            return
        self._decisions.is_beside_run = self._is_broken = True
        try:
            self._steer(run)
            self._is_broken = False
            self._decisions.locks.follow(None)
        except (errors.ClusterError, errors.InputError, errors.ExecutionError, OSError) as error:
            self._is_broken = False
            self._hold_without_look(run)
            lock = error if isinstance(error, errors.JournalLocked) else None
            self._decisions.locks.follow(lock)
            if lock is None:
                held = f"run {run.run_id} starts nothing until it succeeds"
                self._context.warn(f"a look beside a run failed, and is made again; {held}: {error_text(error)}")
        finally:
            self._decisions.is_beside_run = False
            # Nobody foresaw this, and without looks a run hears neither the brake nor a window: it is left, and this
            # process ends. The next one goes on with it.
            if self._is_broken and self._leave_run is not None:
                self._leave_run()

    def _hold_without_look(self, run: RunView) -> None:
        """Let the run start nothing until a look succeeds and releases it: without looks it does not hear the brake."""
        hold = _request_of(HoldRun(run.run_id), self._clock.now_ms())
        if hold is not None and not run.control.held_by:
            with suppress(errors.InputError, errors.ExecutionError):  # a run whose journal takes no request holds, too
                post_request(self._decisions.journal_of(run.run_id), hold)

    def _raise_if_broken(self, run_id: str) -> None:
        if self._is_broken:
            raise errors.ExecutionError(
                f"a look beside run {run_id} failed in a way that nobody foresaw, as was warned of. The run is left, "
                "and goes on when the autopilot is started again"
            )

    def _steer(self, run: RunView) -> None:
        self._decisions.journal.confirm()
        order = self._decisions.decide(self._decisions.observe(run))
        act = self._decisions.memory.running
        if act is not None:
            self._tell_if_held_long(act.name, run)
        self.post(order, run)
        if isinstance(order, PauseRun) and self._leave_run is not None and not run.in_flight:
            self._leave_run()

    def post(self, order: Order | None, run: RunView) -> None:
        """Ask the process of a run to do what is ordered, and to keep to its hours; nothing is begun beside a run."""
        path = self._decisions.journal_of(run.run_id)
        for request in (*self.changes_by_policy(run), _request_of(order, self._clock.now_ms())):
            if request is not None:
                post_request(path, request)

    def changes_by_policy(self, run: RunView) -> tuple[NewRequest, ...]:
        """Requests for the hours and the throttle of the policy, which may change during a run."""
        return tuple(one for one in (self._change_of_hours(run), self._change_of_throttle(run)) if one is not None)

    def _change_of_throttle(self, run: RunView) -> NewRequest | None:
        """Request for the rate of the policy where that has changed; what people set for the run stays until then."""
        wanted, at_ms = self._decisions.policy.runs.throttle, self._clock.now_ms()
        if self._throttle is None or self._throttle[0] != run.run_id:
            begun = first_event(self._decisions.journal_of(run.run_id)).rates
            self._throttle = run.run_id, begun.bytes_per_s if run.control.rates == begun else wanted
        if self._throttle[1] == wanted:
            return None

        def ask(number: int) -> events.Request:
            self._throttle = run.run_id, wanted  # Only now: a locked journal takes no request.
            return events.ThrottleRequested(at_ms, number, wanted)

        return ask

    def _change_of_hours(self, run: RunView) -> NewRequest | None:
        """Request for the hours of the policy; None where the run has them. The policy may change during a run."""
        act, at_ms = self._decisions.memory.running, self._clock.now_ms()
        if act is None or run.control.pace.hours == (hours := hours_of(act, self._decisions.policy)):
            return None
        return lambda number: events.PaceRequested(at_ms, number, PaceChange(hours=hours))

    def _tell_if_held_long(self, name: Name, run: RunView) -> None:
        """Tell once of guards that hold a repair, such as clients whose state nobody can read."""
        why, now_s = None if run.control.is_held else run.why_held, self._clock.monotonic_s()
        if why is None:
            self._held_since_s = None
        elif self._held_since_s is None:
            self._held_since_s = now_s
        elif now_s - self._held_since_s >= HELD_LONG_S:
            self._held_since_s = float("inf")
            what = f"its run {run.run_id} is held for {format_seconds(HELD_LONG_S)}"
            commands = tuple(f"kreassign {command} {run.run_id}" for command in ("status", "cancel"))
            self._decisions.tell(about(name, what, why, commands))

    @contextmanager
    def _watch_run(self, run_id: str, stop: Callable[[], None] | None) -> Iterator[Show | None]:
        self._leave_run = stop
        with self._context.watch(run_id, stop) as show:
            yield show

    # What a process before it has left, or this one.

    def run_left(self) -> RunView | None:
        """The run of a repair, as its process left it; one that did not begin, or ended, is settled first.

        None also while its journal cannot be read: it runs still for all that is known, and to go on with it fails.
        """
        act = self._decisions.memory.running
        if act is None:
            return None
        try:
            run = run_of(self._decisions.memory, self._context.state_dir)
        except errors.JournalUnreadable as error:
            self._locked_looks += 1
            if isinstance(error, errors.JournalLocked) and self._locked_looks <= LOCKED_LOOKS:
                raise
            return None
        self._locked_looks = 0
        if run is None:
            path = self._decisions.journal_of(act.run_id)
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

    def settle(self, order: EndRun | SettleRun) -> None:
        """Go on with the run that is left only to end it, or to restore its throttle."""
        self.resume(_request_of(order, self._clock.now_ms()))

    def resume(self, *requests: NewRequest | None) -> None:
        """Go on with the run that is left; why that is not possible is told once, and tried again at the next look."""
        act = self._decisions.memory.running
        assert act is not None, "only a run that is left goes on"
        path = self._decisions.journal_of(act.run_id)
        try:
            asked, clients = [one for one in requests if one is not None], self._decisions.policy.clients.guard
            ended = resume_whole(self._client, path, self._watched, clients=clients, clock=self._clock, more=asked).run
        except (errors.InputError, errors.ClusterError, errors.ExecutionError) as error:
            self._tell_left(act.name, act.run_id, error)
            return
        self._told_problem = ""
        self._raise_if_broken(act.run_id)
        self._ended(act.name, ended)

    def clear_up(self, now: Observation) -> None:
        """Restore what repairs left on brokers that were down when they ended, and are back."""
        if self._decisions.memory.running is not None or not (
            isinstance(now.lease, Absent) and isinstance(now.watcher, Absent)
        ):
            return
        for run_id in sorted(self._unsettled):
            path = self._decisions.journal_of(run_id)
            with suppress(errors.JournalUnreadable):
                run = read_view(path) if path.exists() else None
                if run is None or (run.ended_ms is not None and not run.restorable()):
                    self._unsettled.remove(run_id)
                elif run.ended_ms is not None and run.restorable(now.live):
                    self._restore(path)

    def _restore(self, path: Path) -> None:
        """Restore the settings of a repair that ended; why that is not possible is told once."""
        try:
            left = resume_whole(self._client, path, self._context, clock=self._clock).run.throttle_residue
            said = "" if left else f"run {path.stem} restored what it had left on brokers that were down"
        except (errors.InputError, errors.ClusterError, errors.ExecutionError) as error:
            said = f"what run {path.stem} left on brokers is not restored yet: {error_text(error)}"
        if said != self._told_problem:
            self._context.warn(said)
            self._told_problem = said


def _is_passing(error: errors.KreassignError) -> bool:
    """True if what kept a run from beginning is no failure of it: the cluster, others, a lock of a moment."""
    is_overtaken = isinstance(error, errors.IllegalPlan) and error.is_overtaken
    passing = errors.ClusterError | errors.ClusterBusy | errors.PlanIsMet | errors.JournalLocked
    return is_overtaken or isinstance(error, passing)


def _request_of(order: Order | None, at_ms: int) -> NewRequest | None:
    """The request to a run that an order is; None where it is none."""
    match order:
        case EndRun():
            return lambda number: events.CancelRequested(at_ms, number, is_now=False, by=US)
        case HoldRun() | SettleRun():
            return lambda number: events.HoldRequested(at_ms, number, US)
        case ReleaseRun():
            return lambda number: events.ReleaseRequested(at_ms, number)
    return None
