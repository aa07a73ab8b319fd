"""Decide on a look at a cluster: let the core decide, tell, and write it down; what is written is all that counts.

What cannot be written is not done. Policy, requests of people and files about repairs are followed here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path

from kreassign import errors
from kreassign.admin import AdminClient
from kreassign.autopilot.core import Order, tick
from kreassign.autopilot.events import Ended, Event, FindingMoved, Looked, Name, NotPlanned, RunBegan, State, WentOn
from kreassign.autopilot.facts import SIGN_OF_LIFE_MS
from kreassign.autopilot.gates import watcher_text
from kreassign.autopilot.memory import Memory, memory_of, remember
from kreassign.autopilot.messages import about
from kreassign.autopilot.observation import Observation
from kreassign.autopilot.policy import Kind, Level, Policy
from kreassign.clock import SYSTEM_CLOCK, Clock
from kreassign.executor.history.run_history import explained_settings
from kreassign.executor.journal import journal_path
from kreassign.executor.lease import LeasePolicy
from kreassign.executor.state import RunView
from kreassign.model.text import DAY_MS, rough_span
from kreassign.monitoring.metrics import AutopilotStatus
from kreassign.operations.autopilot_journal import decisions_path
from kreassign.operations.autopilot_keeper import Keeper, Vigil, files_of, kept_likewise
from kreassign.operations.autopilot_lease import AutopilotLease
from kreassign.operations.autopilot_looks import observe, status_of, write_times
from kreassign.operations.autopilot_messages import Tell
from kreassign.operations.journal_waits import LockWatch
from kreassign.operations.run import RunContext

Report = Callable[[AutopilotStatus], None]
"""Gets the status after each look."""

Alive = Callable[[], None]
"""Sign of life of a process that works for minutes: without it for long, it loses its lease."""

WORK_MS = 60_000
"""Planning and rehearsing for longer is written down as a sign of life."""


class Decisions:
    """The journal of decisions, with what it comes to, and the lease without which nothing is decided."""

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
        """Open the journal. Raises StandsBy while another process looks after the cluster; MirrorUnavailable."""
        vigil, lease = vigil or Vigil(clock), lease or AutopilotLease(client, context.operator, clock)
        # Nothing else lets one act of two that decide alike within a second.
        context = replace(context, lease=LeasePolicy.REQUIRE, leaves_down=True, duty=lease)
        self.report, self._reread, self._odd_policy = report, reread, ""
        self.client, self.policy, self.tell, self.clock = client, policy, tell, clock
        self.is_dry, self.lease = is_dry, lease
        self.cluster_id = client.describe_cluster().cluster_id
        path = decisions_path(context.state_dir, self.cluster_id, is_dry=is_dry)
        try:
            if not is_dry:
                lease.take(path.parent, takes_over=not vigil.lost_s)
            keeper = Keeper(client, context, self.cluster_id, clock, vigil, is_dry, lease.is_held)
            self.journal, events = keeper.resume()
        except errors.ClusterBusy as error:  # A process here that was suspended lost its lease, and holds the journal.
            lease.release()
            raise errors.StandsBy(str(error)) from None
        except BaseException:
            lease.release()
            raise
        self.memory: Memory = memory_of(events)
        self.context = kept_likewise(context, self.memory)
        self._files = files_of(self.journal.path.parent, events)
        self.runs = {one.run_id for one in events if isinstance(one, RunBegan)}
        self._refusals: dict[Name, tuple[str, int]] = {}
        try:
            self._files.restore()
            keeper.bring_repair(self.memory)
        except BaseException:
            self.journal.close()
            lease.release()
            raise
        self.locks = LockWatch("the autopilot", "looks at nothing, and repairs nothing", context.warn, clock)
        self.journal.on_lock, self.is_beside_run, self.has_waited = self._wait, False, False
        self.looked_s = float("-inf")
        self._told_watcher = ""
        # Messages of decisions that could not be written yet, since another process had locked the journal.
        self._sent: set[tuple[Name | None, bool, str]] = set()

    def journal_of(self, run_id: str) -> Path:
        """Journal of the run of a repair."""
        return journal_path(self.context.state_dir, self.cluster_id, run_id)

    def observe(self, run: RunView | None = None) -> Observation:
        """Look at the cluster, and at who looks after it."""
        self.has_waited = False  # for the journal, since this look: what it shows may be over
        explain = partial(explained_settings, (self.context.state_dir,), self.cluster_id, left_by=self.runs)
        now = observe(self.client, self.clock.now_ms(), run, explain)
        self.lease.confirm()
        now = replace(now, watcher=self.lease.watcher, write_times=write_times(self.policy, self.clock))
        why = watcher_text(now) or ""
        may_act = any(self.policy.level(kind) in {Level.ASK, Level.ACT} for kind in Kind)
        if may_act and why != self._told_watcher:
            self.context.warn(f"nothing is repaired: {why}" if why else "repairs may run again: no other autopilot")
            self._told_watcher = why
        return now

    def decide(self, now: Observation) -> Order | None:
        """Let the core decide on a look, tell, and write it down; what is to be done follows."""
        self.looked_s = self.clock.monotonic_s()
        self.read_policy()
        self.hear()
        last_ms = self.memory.looked_ms
        decision = tick(self.memory, now, self.policy)
        for message in decision.messages:
            # Before it is written down: after a crash in between it is sent twice, instead of never.
            which = (message.name, message.is_over, "" if message.name is None else message.why)
            if which not in self._sent:
                self.tell(message)
                self._sent.add(which)
        for event in decision.events:
            if isinstance(event, WentOn) and last_ms is not None:
                apart = rough_span(abs(now.at_ms - last_ms) / 1000)
                self.context.warn(
                    f"the last look was {apart} ago: what has to last begins "
                    "from scratch after a break of 10 min, so that looks so far apart find nothing of it"
                    if now.at_ms > last_ms
                    else f"the clock was set back by {apart}: what has to last begins from scratch"
                )
            self.note(event)
        self._sent.clear()
        self.report(status_of(now, self.memory, self.policy))
        return decision.order

    @contextmanager
    def at_work(self) -> Iterator[Alive]:
        """Plan or rehearse for minutes: that is no break between looks, after which all evidence would begin again.

        Call what it yields again and again meanwhile: it keeps the lease. Brokers that went meanwhile went at an
        unknown time. A clock that was set, or stood still, is a break.
        """
        begun_ms, begun_s = self.clock.now_ms(), self.clock.monotonic_s()
        yield self.lease.beat_at_times
        at_ms, last_ms = self.clock.now_ms(), self.memory.looked_ms
        worked_ms = (self.clock.monotonic_s() - begun_s) * 1000
        is_steady = abs(at_ms - begun_ms - worked_ms) < SIGN_OF_LIFE_MS
        if is_steady and worked_ms >= WORK_MS and last_ms is not None and last_ms <= begun_ms:
            self.note(Looked(at_ms, are_read=False, are_moves_read=False))

    def read_policy(self) -> None:
        """Follow the policy file; what cannot be read is told once, and the policy before it holds."""
        if self._reread is None:
            return
        try:
            self.policy, self._odd_policy = self._reread(), ""
        except (errors.InputError, OSError) as error:
            if str(error) != self._odd_policy:
                self._odd_policy = str(error)
                self.context.warn(f"the policy that was read before holds: {error}")

    def hear(self) -> None:
        """Note what people ask for."""
        for request in self.journal.requests_after(self.memory.last_request):
            self.note(request)

    def _wait(self, lock: errors.JournalLocked | None) -> None:
        """Wait for a journal that others have locked, but let no run wait for that."""
        if lock is not None and self.is_beside_run:
            raise lock
        self.has_waited = True
        self.locks.follow(lock)

    def note(self, event: Event) -> None:
        """Write an event down, and remember it. Raises MirrorUnavailable."""
        if isinstance(event, RunBegan) or (isinstance(event, FindingMoved) and event.state is State.CLOSED):
            self._refusals.pop(event.name, None)
        try:
            self.journal.append(event)
        except errors.MirrorUnavailable:
            # It is written here: the next look goes on from it, once the second place has it, too.
            self.memory = remember(self.memory, event)
            raise
        self.memory = remember(self.memory, event)

    def close(self, error: BaseException | None) -> None:
        """Close the journal, with its end unless another process has it, and release the lease."""
        if self.memory.kept_in is not None and not isinstance(error, errors.JournalTaken):
            self.is_beside_run = True  # nothing depends on this event: it is waited for by nobody
            with suppress(errors.KreassignError):
                self.note(Ended(self.clock.now_ms()))
        self.journal.close()
        self.lease.release()

    def keep_files(self, name: Name) -> None:
        """Keep plan, request and signatures of a finding, where the journal is kept in a second place."""
        if self.memory.kept_in is not None:
            for event in tuple(self._files.fresh(self.clock.now_ms(), name)):
                self.note(event)

    def fail(self, name: Name, why: str, *, is_passing: bool = False) -> None:
        """Note that a repair cannot be planned or begun; told when it is new."""
        at_ms, (told, told_ms) = self.clock.now_ms(), self._refusals.get(name, ("", 0))
        # A plan may be good between two refusals: what is refused still is told once a day.
        is_known = why == told and 0 <= at_ms - told_ms < DAY_MS
        is_new = not is_known and (why == told or why != self.memory.findings[name].problem)
        if is_new:
            self.tell(about(name, "it is not repaired", why, ("kreassign autopilot why",)))
        # What does not pass within minutes counts as a failure, whose patience grows.
        self.note(NotPlanned(at_ms, name, why, is_passing, is_passing and not is_new))
        if not is_known:
            self._refusals[name] = (why, at_ms)
