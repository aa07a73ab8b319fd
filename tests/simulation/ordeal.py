"""Lets a trial happen: a run of kreassign on a twin, resumed until it is over, then judged by what it has promised."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import pairwise
from pathlib import Path

from kreassign.admin import AdminClient
from kreassign.errors import ClusterError, ExecutionError, IllegalPlan, InputError, PlanIsMet
from kreassign.executor import events
from kreassign.executor.events import Event, RunStarted
from kreassign.executor.guards import GuardName, guard_settings
from kreassign.executor.history.run_history import SnapshotKeeper, fold, history, latest_start, read_view
from kreassign.executor.journal import Journal, journal_path, post_request, read_events
from kreassign.executor.lease import (
    GROUP_ID,
    NO_LEASE,
    OFFSETS_TOPIC,
    PROTOCOL_TYPE,
    ClusterLease,
    Lease,
    LeaseHolder,
    LeasePolicy,
)
from kreassign.executor.preflight import RunSettings, prepare
from kreassign.executor.runner import Runner
from kreassign.executor.state import REPLAN_AFTER_MS, RunView
from kreassign.model import ConfigChange, ConfigResource, NewTopic, TopicPartition
from kreassign.model.plan import Plan
from kreassign.model.run import ENDED, IN_FLIGHT, MoveStatus, RunHistory
from kreassign.model.throttle import BROKER_THROTTLES, TOPIC_THROTTLES, ThrottleRates
from kreassign.operations.plan import replanned
from kreassign.operations.rollback import plan_rollback
from kreassign.operations.run_journals import forget_brokers
from kreassign.twin.faults import PlannedFault, schedule_faults
from kreassign.twin.groups import Candidate, MemberClaim
from tests.campaigns import promises
from tests.campaigns.campaign import BrokenError
from tests.campaigns.promises import Aftermath
from tests.executor.deaths import Died
from tests.simulation.draw import settings_of, twin_of
from tests.simulation.scene import Scene, partitions_of
from tests.simulation.trial import (
    FAST,
    HARMLESS,
    LATEST,
    MOVED_BY_OTHERS,
    ONLY_IN_A_STATE,
    REQUESTS,
    SET_BY_OTHERS,
    TICK_MS,
    Deed,
    Happening,
    Incident,
    Request,
    Trial,
    answers,
)
from tests.twin.memory_log import MemoryLog

RUN_ID, OTHER_RUN_ID = "run-1", "run-2"
MB = 1_000_000
POLL_S = 5.0
MOST_ATTEMPTS = 200
FOREIGN_LEASE_MS = 90_000
EVERY_MS = 30_000
"""Snapshots are kept so often, as by the command line."""


@dataclass(slots=True)
class MortalJournal:
    """A journal whose process dies at the next row, before or after it is written, whenever that is due."""

    journal: Journal
    deaths: list[bool]

    def append(self, event: Event) -> None:
        is_written = self.deaths.pop(0) if self.deaths else None
        if is_written is not False:
            self.journal.append(event)
        if is_written is not None:
            raise Died

    def requests_after(self, number: int) -> tuple[events.Request, ...]:
        return self.journal.requests_after(number)


@dataclass(slots=True)
class Outcome:
    """Result of a run. `run` is None where its plan was refused; `attempts` are its processes.

    `incidents` counts what happened before its end, by kind, `in_states` what of that happened in a state; `untrue` has
    sentences about what the run did wrong on its way.
    """

    run: RunHistory | None = None
    attempts: int = 0
    lasted_ms: int = 0
    incidents: Counter[str] = field(default_factory=Counter)
    in_states: int = 0
    untrue: list[str] = field(default_factory=list)
    rolled_back: RunHistory | None = None

    @property
    def is_over(self) -> bool:
        """True if the run has ended and has nothing to restore."""
        return self.run is not None and self.run.state in ENDED and not self.run.throttle_residue


class Ordeal:
    """One trial while it happens."""

    def __init__(self, trial: Trial, folder: Path) -> None:
        log = MemoryLog()
        self.trial = trial
        self.scene = Scene(twin_of(trial, log), log)
        self.twin = self.scene.twin
        self.outcome = Outcome()
        self.given_up: set[int] = set()
        self.path = journal_path(folder, self.twin.cluster_id, RUN_ID)
        self._folder = folder
        self._chance = random.Random(f"{trial.seed}:settings")
        self._settings = settings_of(trial, self._chance)
        self._runner: Runner | None = None
        self._deaths: list[bool] = []
        self._armed = [(incident, incident.entry) for incident in trial.incidents if incident.state]
        self._begun_ms = self._over_ms = 0
        self._step = ""
        self._gives_up = False

    def execute(self) -> None:
        """Begin the run, strike, resume it until it is over; raises what goes wrong in it."""
        ours = self._settings
        with self.scene.client() as admin:
            if ours.has_lease and ours.has_offsets_topic:
                replicas = tuple(self.twin.processes.ids[:2])
                admin.create_topics([NewTopic(OFFSETS_TOPIC, assignments=(replicas,))]).raise_if_any()
            at_ms, guards = self.scene.world.now_ms(), guard_settings(ours.guards)
            asked = RunSettings(
                RUN_ID, at_ms, ours.rates, guards, ours.pace, allows_factor_change=True, lost_after_ms=REPLAN_AFTER_MS
            )
            try:
                started = replace(prepare(admin, Plan(self.trial.moves), asked), replans=ours.replans)
            except (IllegalPlan, PlanIsMet):
                return
        self._begun_ms = self.twin.now_ms
        self._schedule()
        self._bring_to_rest(started)
        self.outcome.lasted_ms = self.twin.now_ms - self._begun_ms
        self.twin.advance_to(max(self.twin.now_ms, self._quiet_ms) + 5 * TICK_MS)
        # A suspension that came after the end of the run would fail the first request of the rollback.
        self.scene.world.sleep(0)

    # --- the run ----------------------------------------------------------------------------------------------

    def _bring_to_rest(self, started: RunStarted) -> None:
        self._tick()
        with Journal.create(self._folder, started) as journal:
            self._attempt(journal, partial(Runner.start, started=started))
        while not self._is_over():
            if self.outcome.attempts > MOST_ATTEMPTS:
                raise BrokenError(f"resumed {MOST_ATTEMPTS} times: {self.outcome.run}")
            self.scene.world.sleep(self._chance.choice((1.0, 30.0, 120.0)))
            start = latest_start(self.path)
            journal, rows = Journal.resume(self.path, self.twin.cluster_id, start.position)
            with journal:
                self._attempt(journal, partial(Runner.resume, journaled=rows, machine=start.machine))

    def _is_over(self) -> bool:
        if self._gives_up:
            self._give_up_a_broker()
        # A process is only killed while it lives: whatever was due is not for the next one.
        self._deaths.clear()
        return self.outcome.is_over

    def _attempt(self, journal: Journal, execute: Callable[[Runner], RunHistory]) -> None:
        """One process of the run, from its start to its end."""
        self.outcome.attempts += 1
        claimed: RunHistory | None = None
        with self.scene.client() as admin:
            controllers = self.scene.controllers() if self._settings.reaches_controllers else None
            try:
                lease = self._lease(admin)
                self._runner = Runner(
                    admin, self.scene.world, MortalJournal(journal, self._deaths), poll_s=POLL_S,
                    controllers=controllers, lease=lease, replanner=partial(replanned, admin),
                    listener=self._listener(journal),
                )  # fmt: skip
                claimed = execute(self._runner)
            except (ClusterError, Died):
                pass
            except (ExecutionError, InputError) as error:
                if "there is nothing to resume" not in str(error):
                    self.outcome.untrue.append(f"could not be resumed: {error}")
            finally:
                self._runner = None
                if controllers is not None:
                    controllers.close()
        self._read_journal()
        if claimed is not None and claimed != self.outcome.run:
            self.outcome.untrue.append("its journal has another run than its process")

    def _read_journal(self) -> None:
        self.outcome.run = history(fold(read_events(self.path)))

    def _listener(self, journal: Journal) -> Callable[[Event, RunView], None]:
        """Keep snapshots after each event, as a process of the command line does, and let incidents happen."""
        ours = self._settings
        every_ms = 0 if ours.keeps_each_step else EVERY_MS
        keeper = SnapshotKeeper(journal, self._snapshot, every_ms=every_ms, every_byte_ms=0)
        self._step = ""

        def listen(event: Event, run: RunView) -> None:
            if ours.keeps_snapshots or ours.keeps_each_step:
                keeper.follow(event, run)
            self._strike_in_state(run)

        return listen

    def _snapshot(self, beside: dict[str, object]) -> str:
        assert self._runner is not None
        return self._runner.snapshot(beside)

    def _lease(self, admin: AdminClient) -> Lease:
        if not self._settings.has_lease:
            return NO_LEASE
        holder = LeaseHolder(RUN_ID, "alice", "here", self.scene.world.now_ms())
        lease = ClusterLease(admin, self.scene.world, holder, LeasePolicy.AUTO)
        lease.take()
        return lease

    # --- what happens to it -----------------------------------------------------------------------------------

    @property
    def _quiet_ms(self) -> int:
        return max(self._begun_ms + self.trial.over_ms, self._over_ms) + 2 * TICK_MS

    def _schedule(self) -> None:
        timed = [incident for incident in self.trial.incidents if not incident.state]
        schedule_faults(self.twin, [each.what for each in timed if isinstance(each.what, PlannedFault)])
        for incident in timed:
            at_ms = self._begun_ms + incident.at_ms
            self.twin.schedule(at_ms, partial(self._note, incident.kind))
            if not isinstance(incident.what, PlannedFault):
                self.twin.schedule(at_ms, partial(self._let_happen, incident.what))

    def _note(self, kind: str) -> None:
        if self.outcome.run is None or self.outcome.run.state not in ENDED:
            self.outcome.incidents[kind] += 1

    def _strike_in_state(self, run: RunView) -> None:
        """Let happen what waits for the state that the run has just entered; a death comes last."""
        before, self._step = self._step, run.step
        if run.step == before:
            return
        armed, self._armed, dies = self._armed, [], False
        for incident, entry in armed:
            if not self._is_its_turn(incident, run):
                self._armed.append((incident, entry))
            elif entry > 1:
                self._armed.append((incident, entry - 1))
            else:
                self._note(incident.kind)
                self.outcome.in_states += 1
                self._over_ms = max(self._over_ms, self.twin.now_ms + incident.lasts_ms)
                dies = dies or incident.what in ONLY_IN_A_STATE
                self._gives_up = self._gives_up or incident.what is Deed.FORGET
                self._let_happen(incident.what)
        if dies:
            raise Died

    def _is_its_turn(self, incident: Incident, run: RunView) -> bool:
        if incident.what is Deed.FORGET and not any(key.broker is not None for key in run.pending_restores):
            return False
        return incident.state == run.step and self.twin.now_ms >= self._begun_ms + incident.at_ms

    def _let_happen(self, what: Happening) -> None:
        if isinstance(what, PlannedFault):
            what.inject(self.twin)
            if what.lasts_ms is not None:
                self.twin.schedule(self.twin.now_ms + what.lasts_ms, partial(what.recover, self.twin))
        elif what is Deed.LOSE_LEASE:
            self._lose_lease()
        elif self._runner is None or what in ONLY_IN_A_STATE:
            return
        elif isinstance(what, Request):
            at_ms = self.scene.world.now_ms()
            post_request(self.path, lambda number: REQUESTS[what](at_ms, number))
        elif what is Deed.STOP:
            self._runner.request_stop()
        else:
            self._deaths.append(what is Deed.DIE_WRITTEN)

    def _lose_lease(self) -> None:
        """The coordinator forgets the run, as when its machine was paused, and another run joins for a while."""
        groups, now_ms, name = self.twin.groups, self.twin.now_ms, OTHER_RUN_ID
        groups.leave(GROUP_ID, "", RUN_ID, now_ms)
        protocols = {name: LeaseHolder(name, "bob", "there", now_ms).encoded()}
        other = Candidate(GROUP_ID, "", name, "", "", 1_800_000, PROTOCOL_TYPE, protocols, may_be_unknown=True)
        joined = groups.join(other, now_ms)
        if joined.group is None:
            return
        groups.sync(MemberClaim(GROUP_ID, joined.group.generation, joined.member_id), {}, now_ms)
        self.twin.schedule(
            now_ms + FOREIGN_LEASE_MS, lambda: groups.leave(GROUP_ID, "", name, self.twin.now_ms) and None
        )

    # --- its operator -----------------------------------------------------------------------------------------

    def _tick(self) -> None:
        """Once a minute the operator looks at the run, and does what it asks for when all trouble is over."""
        if self.outcome.is_over and self._runner is None:
            return
        quiet_for_ms = self.twin.now_ms - self._quiet_ms
        if quiet_for_ms > LATEST * self._settings.patience_ms:
            shown = self._runner and history(self._runner.run)
            raise BrokenError(
                f"not at rest {quiet_for_ms // 60_000} min after all trouble: {shown or self.outcome.run}"
            )
        if quiet_for_ms > 0 and self._runner is not None:
            for request in answers(self._runner.run, quiet_for_ms, self._settings.patience_ms):
                self._let_happen(request)
        self.twin.schedule(self.twin.now_ms + TICK_MS, self._tick)

    def _give_up_a_broker(self) -> None:
        """Take a broker for lost: nothing is restored there any more."""
        self._gives_up = False
        owners = sorted({key.broker for key in read_view(self.path).pending_restores if key.broker is not None})
        if owners:
            broker = random.Random(f"{self.trial.seed}:given up:{len(self.given_up)}").choice(owners)
            forget_brokers(self.path, [broker], self.scene.world)
            self.given_up.add(broker)
            self._read_journal()

    def roll_back(self) -> tuple[str, ...]:
        """Undo the run, undisturbed; the partitions that are left alone, in sentences."""
        assert self.outcome.run is not None
        with self.scene.client() as admin:
            for broker in sorted(self.given_up):
                changes = [ConfigChange.delete(name) for name in BROKER_THROTTLES]
                admin.incremental_alter_configs({ConfigResource.broker(broker): changes}).raise_if_any()
            back = plan_rollback(admin, self.outcome.run)
            if not len(back.plan):
                return back.skipped
            rates, at_ms = ThrottleRates(FAST), self.scene.world.now_ms()
            asked = RunSettings(
                "run-back", at_ms, rates, allows_producer_outage=True, allows_factor_change=True,
                lost_after_ms=REPLAN_AFTER_MS,
            )  # fmt: skip
            started = prepare(admin, back.plan, asked, expected=back.expected)
            with Journal.create(self._folder, started) as journal:
                runner = Runner(admin, self.scene.world, journal, poll_s=POLL_S)
                self.outcome.rolled_back = runner.start(started)
        return back.skipped


# --- what was promised ---------------------------------------------------------------------------------------------

NOT_RESTORED = "nothing was restored there"
"""What is said of a setting on a broker that was unregistered, or given up."""
LEASE_LOST = "the lease of the cluster was lost"
"""A run that is suspended for longer than a session lasts loses it, and says so."""
OUTRUN = f"{GuardName.RATE} (over"
"""Copies that share a throttle may each be slower than their producers, until one of them has ended."""


def broken(ordeal: Ordeal) -> Iterator[str]:
    """A sentence for each promise that was broken. Reads the twin, and changes nothing."""
    run, kinds = ordeal.outcome.run, ordeal.trial.kinds
    yield from ordeal.outcome.untrue
    if run is None:
        if ordeal.outcome.attempts:
            yield "the run has no journal"
        return
    yield from promises.broken(_aftermath(ordeal, run))
    if any(later.at_ms < before.at_ms for before, later in pairwise(read_events(ordeal.path))):
        yield "times in its journal go back"
    problems = [each for each in run.problems if not each.startswith(OUTRUN)]
    problems = [each for each in problems if LEASE_LOST not in each or "suspend" not in kinds]
    if kinds <= HARMLESS and problems:
        yield f"{run.state} with {problems}, and nothing happened that makes any difference"
    if not kinds & MOVED_BY_OTHERS:
        yield from _behind(ordeal, run)
    for broker in sorted(ordeal.given_up):
        if f"broker {broker}" not in " ".join(run.problems):
            yield f"broker {broker} was given up, and that is not said"


def _behind(ordeal: Ordeal, run: RunHistory) -> Iterator[str]:
    """Sentences about live destinations of complete moves that are not in sync."""
    metadata = ordeal.twin.metadata
    for move in run.moves:
        state = metadata.partition(TopicPartition(move.topic, move.partition))
        if state is not None and move.status == MoveStatus.COMPLETE:
            behind = [broker for broker in move.target if broker not in state.isr and metadata.is_active(broker)]
            if behind:
                yield f"called complete, and not in sync on {behind}: {state}"


def _aftermath(ordeal: Ordeal, run: RunHistory) -> Aftermath:
    metadata, kinds = ordeal.twin.metadata, ordeal.trial.kinds
    is_moved_by_others = bool(kinds & MOVED_BY_OTHERS)
    replicas = {state.topic_partition: state.replicas for state in partitions_of(ordeal.twin)}
    in_flight = {TopicPartition(move.topic, move.partition) for move in run.moves if move.status in IN_FLIGHT}
    moving = metadata.reassigning & {move.topic_partition for move in ordeal.trial.moves} - in_flight
    return Aftermath(
        run,
        replicas,
        moving=() if is_moved_by_others else tuple(moving),
        throttles=() if kinds & SET_BY_OTHERS else tuple(_throttles_left(ordeal, run)),
        is_moved_by_others=is_moved_by_others,
        is_harmless=kinds <= HARMLESS,
    )


def _throttles_left(ordeal: Ordeal, run: RunHistory) -> Iterator[str]:
    """A run is resumed until nothing is left to restore: nothing may be left but where it was told to leave it."""
    given_up = set(map(ConfigResource.broker, ordeal.given_up))
    named = " ".join(each for each in run.problems if NOT_RESTORED in each)
    for owner, values in sorted(ordeal.twin.metadata.configs.items()):
        for name in (*TOPIC_THROTTLES, *BROKER_THROTTLES):
            if name in values and owner not in given_up and f"{name} of {owner} " not in named:
                yield f"{owner} {name} = {values[name]}"


def broken_going_back(ordeal: Ordeal) -> Iterator[str]:
    """Changes that a rollback after the run did not bring back, though only the run made them."""
    run = ordeal.outcome.run
    if run is None or run.state not in ENDED or ordeal.trial.kinds & MOVED_BY_OTHERS:
        return
    skipped = ordeal.roll_back()
    back = ordeal.outcome.rolled_back
    if back is not None and back.state != "done":
        yield f"the rollback is {back.state}: {back.problems}"
    for move in run.moves:
        state = ordeal.twin.metadata.partition(TopicPartition(move.topic, move.partition))
        is_skipped = any(str(move.partition) in line for line in skipped)
        if state is None or (state.replicas != move.original and not is_skipped):
            yield f"{move.topic}-{move.partition} was on {move.original}, and after the rollback is {state}"
