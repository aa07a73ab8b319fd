"""Lets a trial happen: a run of kreassign on a twin, resumed until its end, and asked once all trouble is over."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TypeVar

from kreassign.admin import AdminClient, client_settings
from kreassign.errors import ClusterError, ExecutionError, IllegalPlan
from kreassign.executor.events import (
    CancelRequested,
    Event,
    HoldRequested,
    PaceRequested,
    ReleaseRequested,
    RunStarted,
    ThrottleRequested,
)
from kreassign.executor.events import Request as RequestEvent
from kreassign.executor.guards import GuardName, Reaction
from kreassign.executor.guards.settings import settings
from kreassign.executor.history.run_history import RunHistory, fold, history
from kreassign.executor.history.snapshots import SnapshotKeeper, latest_start, read_view
from kreassign.executor.journal import Journal, journal_path, post_request, read_events
from kreassign.executor.lease import NO_LEASE, ClusterLease, Lease, LeaseHolder, LeasePolicy
from kreassign.executor.lease.lease import GROUP_ID, OFFSETS_TOPIC, PROTOCOL_TYPE
from kreassign.executor.preflight.prepare import RunSettings, prepare
from kreassign.executor.runner import Runner
from kreassign.executor.scheduling import Cap, Caps, Order, Pace, PaceChange
from kreassign.executor.scheduling.limits import EndpointKind, Limit, Measure
from kreassign.executor.state import ENDED, RunView
from kreassign.executor.throttle.adaptive import AdaptiveThrottle
from kreassign.executor.throttle.rates import ThrottleRates
from kreassign.model import ConfigChange, ConfigResource, NewTopic
from kreassign.model.plan import Plan
from kreassign.model.throttle import BROKER_THROTTLES
from kreassign.operations.forget import forget_brokers
from kreassign.operations.replan import replanned
from kreassign.operations.rollback import plan_rollback
from kreassign.twin import TwinTransport
from kreassign.twin.checkers import check_step
from kreassign.twin.faults import PlannedFault, schedule_faults
from kreassign.twin.groups.coordinator import Candidate, Claim
from tests.executor.deaths import Died
from tests.simulation.aims import conditions_of
from tests.simulation.incidents import ONLY_IN_A_STATE, Deed, Incident, Request
from tests.simulation.trial import Trial, twin_of
from tests.twin.memory_log import MemoryLog

MB = 1_000_000
FAST = 200 * MB
POLL_S = 5.0
TICK_MS = 60_000
HURRY_MS, DRAIN_MS, ABANDON_MS, LATEST_MS = 30 * 60_000, 2 * 3_600_000, 4 * 3_600_000, 8 * 3_600_000
"""So long after all trouble is over somebody gives more throttle, cancels, cancels at once, and finds it broken."""
MOST_ATTEMPTS = 200
FOREIGN_LEASE_MS = 90_000
EVERY_MS = 30_000
"""Snapshots are kept so often, as by the command line."""


class NeverEndedError(AssertionError):
    """All trouble was over for hours, and the run did not end."""


@dataclass(slots=True)
class MortalJournal:
    """A journal whose process dies at the next row, before or after it is written, whenever that is due."""

    journal: Journal
    deaths: list[bool]

    def append(self, event: Event) -> None:
        """Write a row, or die."""
        is_written = self.deaths.pop(0) if self.deaths else None
        if is_written is not False:
            self.journal.append(event)
        if is_written is not None:
            raise Died

    def requests_after(self, number: int) -> tuple[RequestEvent, ...]:
        """What others asked for since."""
        return self.journal.requests_after(number)


@dataclass(slots=True)
class Outcome:
    """How a run went. `found` is None where its plan was refused; `attempts` are its processes.

    `struck` counts what happened before its end, by kind, `in_states` what of that happened in a state; `untrue` has
    sentences about what the run did wrong on its way.
    """

    found: RunHistory | None = None
    attempts: int = 0
    lasted_ms: int = 0
    struck: Counter[str] = field(default_factory=Counter)
    in_states: int = 0
    untrue: list[str] = field(default_factory=list)
    rolled_back: RunHistory | None = None


class Ordeal:
    """One trial while it happens."""

    def __init__(self, trial: Trial, folder: Path) -> None:
        self.trial = trial
        self.log = MemoryLog()
        self.twin = twin_of(trial.seed, self.log)
        self.twin.watch(check_step)
        self.outcome = Outcome()
        self._chance = random.Random(f"{trial.seed}:settings")
        self._folder = folder
        self._world = TwinTransport(self.twin)
        self._runner: Runner | None = None
        self._deaths: list[bool] = []
        self._begun_ms = 0
        self._run_id = "run-1"
        self._forced = conditions_of(trial.seed)
        self._has_lease = _unless(self._forced.has_lease, self._chance.random() < 0.4)
        self._reaches_controllers = _unless(self._forced.reaches_controllers, self._chance.random() < 0.5)
        more = random.Random(f"{trial.seed}:more settings")
        self._has_offsets_topic = _unless(self._forced.has_offsets_topic, more.random() < 0.8)
        self._keeps_snapshots = more.random() < 0.5
        self._armed: list[tuple[Incident, int]] = []
        self._over_ms = 0
        self._step = ""
        self._gives_up = False
        self.given_up: set[int] = set()

    def execute(self) -> Outcome:
        """Begin the run, strike, resume it until it is over; raises what goes wrong in it."""
        with self._client() as admin:
            if self._has_lease and self._has_offsets_topic:
                replicas = tuple(self.twin.processes.ids[:2])
                admin.create_topics([NewTopic(OFFSETS_TOPIC, assignments=(replicas,))]).raise_if_any()
            try:
                started = self._prepared(admin)
            except IllegalPlan:
                return self.outcome
        self._begun_ms = self.twin.now_ms
        self._schedule()
        self._bring_to_rest(started)
        self.outcome.lasted_ms = self.twin.now_ms - self._begun_ms
        self.twin.advance_to(max(self.twin.now_ms, self._quiet_ms) + 5 * TICK_MS)
        return self.outcome

    # --- the run ----------------------------------------------------------------------------------------------

    def _client(self) -> AdminClient:
        servers = ",".join(f"broker-{broker}:9092" for broker in self.twin.processes.ids)
        chosen = client_settings({"request.timeout.ms": "5000"}, bootstrap_servers=servers)
        return AdminClient.connect(chosen, clock=self._world, transport=self._world)

    def _controllers(self) -> AdminClient | None:
        if not self._reaches_controllers:
            return None
        servers = ",".join(f"controller-{node}:9093" for node in self.twin.controller.node_ids)
        chosen = client_settings({"request.timeout.ms": "5000"}, bootstrap_controllers=servers)
        return AdminClient.connect(chosen, clock=self._world, transport=self._world)

    def _prepared(self, admin: AdminClient) -> RunStarted:
        chance = self._chance
        forced = self._forced
        adaptive = AdaptiveThrottle(chance.choice((50, 500)) * MB) if chance.random() < 0.15 else None
        rate = None if adaptive or chance.random() < 0.2 else chance.choice((5, 20, 100)) * MB
        guards = {guard: chance.choice(list(Reaction)) for guard in GuardName if chance.random() < 0.2}
        if forced.is_throttled is not None:
            adaptive = AdaptiveThrottle(50 * MB) if forced.is_adaptive else None
            rate = 2 * MB if forced.is_throttled and adaptive is None else None
        if forced.is_guarded is not None:
            guards = {GuardName.FOREIGN_THROTTLE: Reaction.HOLD if forced.is_guarded else Reaction.OFF}
        caps = Caps(cluster=Cap(chance.choice((None, None, 1, 3))), destination=Cap(chance.choice((None, 1))))
        pace = Pace(
            chance.choice(list(Order)),
            caps,
            elections_per_step=_unless(1 if forced.elects_singly else None, chance.choice((1, 100))),
            is_eager=chance.random() < 0.3,
            is_stepwise=chance.random() < 0.2,
        )
        asked = RunSettings(
            self._run_id, self._world.now_ms(), ThrottleRates(rate, adaptive=adaptive), settings(guards), pace
        )
        replans = _unless(forced.replans, chance.random() < 0.25)
        return replace(prepare(admin, Plan(self.trial.moves), asked), replans=replans)

    @property
    def path(self) -> Path:
        """Where the journal is."""
        return journal_path(self._folder, self.twin.cluster_id, self._run_id)

    def told(self) -> RunHistory:
        """What the journal tells."""
        return history(fold(read_events(self.path)))

    def _bring_to_rest(self, started: RunStarted) -> None:
        self._tick()
        with Journal.create(self._folder, started) as journal:
            self._attempt(journal, partial(Runner.start, started=started))
        while not self._is_over():
            if self.outcome.attempts > MOST_ATTEMPTS:
                raise NeverEndedError(f"resumed {MOST_ATTEMPTS} times: {self.outcome.found}")
            self._world.sleep(self._chance.choice((1.0, 30.0, 120.0)))
            start = latest_start(self.path)
            journal, events = Journal.resume(self.path, self.twin.cluster_id, start.position)
            with journal:
                self._attempt(journal, partial(Runner.resume, events=events, machine=start.machine))

    def _is_over(self) -> bool:
        if self._gives_up:
            self._give_up_a_broker()
        found = self.outcome.found
        is_ended = found is not None and found.state in ENDED and not found.throttle_residue
        # A process is only killed while it lives: whatever was due is not for the next one.
        self._deaths.clear()
        return is_ended

    def _attempt(self, journal: Journal, execute: Callable[[Runner], RunHistory]) -> None:
        """One process of the run, from its start to its end."""
        self.outcome.attempts += 1
        said: RunHistory | None = None
        with self._client() as admin:
            controllers = self._controllers()
            try:
                lease = self._lease(admin)
                self._runner = Runner(
                    admin, self._world, MortalJournal(journal, self._deaths), poll_s=POLL_S, controllers=controllers,
                    lease=lease, replanner=partial(replanned, admin), listener=self._listener(journal),
                )  # fmt: skip
                said = execute(self._runner)
            except (ClusterError, Died):
                pass
            except ExecutionError as error:
                if "there is nothing to resume" not in str(error):
                    self.outcome.untrue.append(f"could not be resumed: {error}")
            finally:
                self._runner = None
                if controllers is not None:
                    controllers.close()
        self.outcome.found = self.told()
        if said is not None and said != self.outcome.found:
            self.outcome.untrue.append("its journal tells another run than its process")

    def _listener(self, journal: Journal) -> Callable[[Event, RunView], None]:
        """What looks at the run after each event, as in a process of the command line, and lets incidents happen."""
        every_ms = 0 if self._forced.keeps_each_step else EVERY_MS
        keeper = SnapshotKeeper(journal, self._snapshot, every_ms=every_ms, every_byte_ms=0)
        self._step = ""

        def listen(event: Event, run: RunView) -> None:
            if self._keeps_snapshots or self._forced.keeps_each_step:
                keeper.follow(event, run)
            self._befall_in_state(run)

        return listen

    def _snapshot(self, beside: dict[str, object]) -> str:
        assert self._runner is not None
        return self._runner.snapshot(beside)

    def _give_up_a_broker(self) -> None:
        """As an operator does who takes a broker for lost: nothing is restored there any more."""
        self._gives_up = False
        owners = sorted({key.broker for key in read_view(self.path).pending_restores if key.broker is not None})
        if owners:
            broker = random.Random(f"{self.trial.seed}:given up:{len(self.given_up)}").choice(owners)
            forget_brokers(self.path, [broker], self._world)
            self.given_up.add(broker)
            self.outcome.found = self.told()

    def _lease(self, admin: AdminClient) -> Lease:
        if not self._has_lease:
            return NO_LEASE
        holder = LeaseHolder(self._run_id, "alice", "here", self._world.now_ms())
        lease = ClusterLease(admin, self._world, holder, LeasePolicy.AUTO)
        lease.take()
        return lease

    # --- what happens to it -----------------------------------------------------------------------------------

    @property
    def _quiet_ms(self) -> int:
        return max(self._begun_ms + self.trial.over_ms, self._over_ms) + 2 * TICK_MS

    def _schedule(self) -> None:
        at_a_time = [one for one in self.trial.incidents if not one.state]
        self._armed = [(one, one.entry) for one in self.trial.incidents if one.state]
        schedule_faults(self.twin, [one.what for one in at_a_time if isinstance(one.what, PlannedFault)])
        for one in at_a_time:
            self.twin.schedule(self._begun_ms + one.at_ms, partial(self._note, one.kind))
            if isinstance(one.what, Request):
                self.twin.schedule(self._begun_ms + one.at_ms, partial(self._ask, one.what))
            elif isinstance(one.what, Deed):
                self.twin.schedule(self._begun_ms + one.at_ms, partial(self._befall, one.what))

    def _note(self, kind: str) -> None:
        found = self.outcome.found
        if found is None or found.state not in ENDED:
            self.outcome.struck[kind] += 1

    def _befall_in_state(self, run: RunView) -> None:
        """Let happen what waits for the state that the run has just entered; a death comes last."""
        before, self._step = self._step, run.step
        if run.step == before:
            return
        armed, self._armed, dies = self._armed, [], False
        for one, entry in armed:
            is_its_turn = one.state == run.step and self.twin.now_ms >= self._begun_ms + one.at_ms
            if one.what is Deed.FORGET and not any(key.broker is not None for key in run.pending_restores):
                is_its_turn = False
            if not is_its_turn or entry > 1:
                self._armed.append((one, entry - is_its_turn))
                continue
            self._note(one.kind)
            self.outcome.in_states += 1
            self._over_ms = max(self._over_ms, self.twin.now_ms + one.lasts_ms)
            dies = dies or one.what in ONLY_IN_A_STATE
            self._gives_up = self._gives_up or one.what is Deed.FORGET
            self._let_happen(one)
        if dies:
            raise Died

    def _let_happen(self, one: Incident) -> None:
        if isinstance(one.what, PlannedFault):
            one.what.fault.inject(self.twin)
            if one.what.lasts_ms is not None:
                self.twin.schedule(self.twin.now_ms + one.what.lasts_ms, partial(one.what.fault.recover, self.twin))
        elif isinstance(one.what, Request):
            self._ask(one.what)
        elif one.what not in ONLY_IN_A_STATE:
            self._befall(one.what)

    def _befall(self, deed: Deed) -> None:
        if deed is Deed.LOSE_LEASE:
            self._lose_lease()
        elif self._runner is None:
            return
        elif deed is Deed.STOP:
            self._runner.request_stop()
        else:
            self._deaths.append(deed is Deed.DIE_WRITTEN)

    def _lose_lease(self) -> None:
        """The coordinator forgets the run, as when its machine was paused, and another run joins for a while."""
        groups, now_ms = self.twin.groups, self.twin.now_ms
        groups.leave(GROUP_ID, "", self._run_id, now_ms)
        name = "run-2"
        protocols = {name: LeaseHolder(name, "bob", "there", now_ms).encoded()}
        other = Candidate(GROUP_ID, "", name, "", "", 1_800_000, PROTOCOL_TYPE, protocols, may_be_unknown=True)
        joined = groups.join(other, now_ms)
        if joined.group is None:
            return
        groups.sync(Claim(GROUP_ID, joined.group.generation, joined.member_id), {}, now_ms)
        self.twin.schedule(
            now_ms + FOREIGN_LEASE_MS, lambda: groups.leave(GROUP_ID, "", name, self.twin.now_ms) and None
        )

    def _ask(self, request: Request) -> None:
        """As another terminal asks of a run that a process executes."""
        if self._runner is None:
            return
        at_ms = self._world.now_ms()
        pace = PaceChange(limits=(Limit(EndpointKind.CLUSTER, Measure.MOVES, 1),))
        adaptive = AdaptiveThrottle(FAST)
        make: dict[Request, Callable[[int], RequestEvent]] = {
            Request.HOLD: lambda number: HoldRequested(at_ms, number),
            Request.RELEASE: lambda number: ReleaseRequested(at_ms, number),
            Request.CANCEL: lambda number: CancelRequested(at_ms, number, is_now=False),
            Request.CANCEL_NOW: lambda number: CancelRequested(at_ms, number, is_now=True),
            Request.FASTER: lambda number: ThrottleRequested(at_ms, number, FAST),
            Request.SLOWER: lambda number: ThrottleRequested(at_ms, number, 2 * MB),
            Request.UNTHROTTLED: lambda number: ThrottleRequested(at_ms, number, None),
            Request.ADAPTIVE: lambda number: ThrottleRequested(at_ms, number, None, adaptive=adaptive),
            Request.PACE: lambda number: PaceRequested(at_ms, number, pace),
        }
        post_request(self.path, make[request])

    def _tick(self) -> None:
        """Once a minute an operator looks at the run, and when all trouble is over does what it asks for."""
        found = self.outcome.found
        if found is not None and found.state in ENDED and not found.throttle_residue and self._runner is None:
            return
        quiet_for_ms = self.twin.now_ms - self._quiet_ms
        if quiet_for_ms > LATEST_MS:
            shown = self._runner and history(self._runner.run)
            raise NeverEndedError(f"not at rest {LATEST_MS // 3_600_000} h after all trouble: {shown or found}")
        if quiet_for_ms > 0 and self._runner is not None:
            self._answer(quiet_for_ms)
        self.twin.schedule(self.twin.now_ms + TICK_MS, self._tick)

    def _answer(self, quiet_for_ms: int) -> None:
        assert self._runner is not None
        run = self._runner.run
        if run.is_held:
            self._ask(Request.RELEASE)
        is_late = any(mark < quiet_for_ms <= mark + TICK_MS for mark in (HURRY_MS, DRAIN_MS))
        if is_late or "foreign-throttle" in " ".join(map(str, run.verdicts)):
            self._ask(Request.FASTER)
        if DRAIN_MS < quiet_for_ms <= DRAIN_MS + TICK_MS:
            self._ask(Request.CANCEL)
        if ABANDON_MS < quiet_for_ms <= ABANDON_MS + TICK_MS:
            self._ask(Request.CANCEL_NOW)

    # --- going back -------------------------------------------------------------------------------------------

    def roll_back(self) -> tuple[str, ...]:
        """Undo the run, undisturbed; what was left alone."""
        found = self.outcome.found
        assert found is not None
        with self._client() as admin:
            for broker in sorted(self.given_up):
                changes = [ConfigChange.delete(name) for name in BROKER_THROTTLES]
                admin.incremental_alter_configs({ConfigResource.broker(broker): changes}).raise_if_any()
            back = plan_rollback(admin, found)
            if not len(back.plan):
                return back.skipped
            asked = RunSettings("run-back", self._world.now_ms(), ThrottleRates(FAST))
            started = prepare(admin, back.plan, asked, expected=back.expected)
            with Journal.create(self._folder, started) as journal:
                self.outcome.rolled_back = Runner(admin, self._world, journal, poll_s=POLL_S).start(started)
        return back.skipped


_Setting = TypeVar("_Setting")


def _unless(forced: _Setting | None, drawn: _Setting) -> _Setting:
    """What is forced, or what was drawn where nothing is."""
    return drawn if forced is None else forced
