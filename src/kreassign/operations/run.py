"""Check, preview, execute, resume and cancel a run, under the lease of its cluster.

Everything is checked and measured before anything is sent. The lease is taken before the journal is begun and
released when the run is at rest.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext, suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Protocol

from kreassign.admin import AdminClient
from kreassign.clock import SYSTEM_CLOCK, Clock
from kreassign.errors import ClusterError, InputError, JournalDamaged, JournalLocked, PlanIsMet, machine_reason
from kreassign.executor.client_guard import ClientGuard, Feeling
from kreassign.executor.cluster import permissions
from kreassign.executor.cluster.readings import live_of_two, ongoing_moves, read_log_dirs, read_topics, topic_ids_of
from kreassign.executor.cluster.requests import read_factors
from kreassign.executor.events import CancelRequested, Event, Request, RunStarted, lists_of, topic_ids_of_moves
from kreassign.executor.guards import GuardName, GuardSetting, Reaction, guard_settings
from kreassign.executor.history.run_history import (
    SnapshotKeeper,
    explained_settings,
    history,
    latest_start,
    read_history,
    read_view,
    refuse_if_interrupted_runs,
    refuse_over,
)
from kreassign.executor.instructions import ReplanMoves
from kreassign.executor.journal import (
    Journal,
    cluster_journals,
    first_event,
    post_request,
    refuse_second_run,
    refuse_shared_file_system,
)
from kreassign.executor.lease import Lease, LeasePolicy
from kreassign.executor.maintenance.record import ids_in_maintenance
from kreassign.executor.preflight import RunSettings, agreed, prepare, read_others
from kreassign.executor.preview import RunPreview, preview
from kreassign.executor.progress import ProgressMeter
from kreassign.executor.runner import POLL_S, ReadClients, Replanned, Runner, no_clients
from kreassign.executor.scheduling.windows import opening
from kreassign.executor.state import RunView
from kreassign.executor.throttle_ledger import FoundThrottles
from kreassign.model.authorization import error_text
from kreassign.model.load import MEASURED_S
from kreassign.model.pace import NO_LIMITS, Pace
from kreassign.model.plan import Plan
from kreassign.model.plan_facts import PlanFacts, PlanOrigin, plan_id, refuse_other_cluster
from kreassign.model.reassignment import Replicas, missing_expectations
from kreassign.model.run import Operator, RunHistory
from kreassign.model.text import check_wait, some_of
from kreassign.model.throttle import NO_THROTTLE, ThrottleRates
from kreassign.monitoring.client_signals import asking
from kreassign.operations.approvals import SignedApprovals, approval_for, refuse_spent
from kreassign.operations.connect import Warn, tell_nobody, warn_program, warn_without_topic_ids
from kreassign.operations.journal_waits import wait_of_resume, watch_of_run
from kreassign.operations.leases import Duty, LeaseRequest, leased, refuse_if_leased
from kreassign.operations.list_owners import made_since
from kreassign.operations.mirrors import NOWHERE, all_home, checked_destination, mirror_of
from kreassign.operations.plan_files import PlanFile
from kreassign.operations.run_journals import default_state_dir, keep_facts, this_operator
from kreassign.operations.run_outlook import SHOWN, measured, outages_of, proposed, refuse_drift, warn_of_outlook
from kreassign.operations.text_files import read_text

POLL_INTERVAL_S = POLL_S
"""Seconds between polls of the cluster."""
CONTROLLERS_MS = 5_000
"""For so long controllers may take to say which cluster they are of."""
Show = Callable[[RunHistory], None]
Observer = Callable[[RunView, ProgressMeter], None]
"""Observes a run after each event, in the thread that executes it: must be quick, and keep neither argument."""


class Watch(Protocol):
    """Called when a run begins or is followed; gets its progress until it ends.

    `stop` asks the run for a clean pause, and is safe to call from a signal handler; None if another process executes
    it. The context manager yields the receiver of the progress, or None. When it suppresses a
    KeyboardInterrupt, the run is left as it is and its history so far returned.
    """

    def __call__(self, run_id: str, stop: Callable[[], None] | None) -> AbstractContextManager[Show | None]:
        """Watch this run within a `with` statement."""


def unwatched(run_id: str, stop: Callable[[], None] | None) -> AbstractContextManager[Show | None]:
    """Show no progress."""
    del run_id, stop
    return nullcontext()


AskClients = Callable[[ClientGuard], AbstractContextManager[ReadClients]]
"""Asks clients within a `with` statement, which yields a function that returns the latest readings at once."""


def ask_clients(guard: ClientGuard) -> AbstractContextManager[ReadClients]:
    """Ask clients in the background, as a guard says."""
    return asking(guard, lambda name: read_text(Path(name)))


@dataclass(frozen=True, slots=True)
class RunContext:
    """Environment of a run: where its journal is, how often it polls its cluster, who watches and gets warnings.

    `controllers` take the throttle of brokers that are down, in a KRaft cluster; `operator` is named in the journal.
    `lease` says whether the run must be the only one on its cluster, on any machine. `observers` observe the
    run besides, and `ask_clients` asks clients for it. With `leaves_down`, what an earlier run could not restore on
    brokers that are down keeps no run back: the caller has it restored when they are back. Its journal is kept in
    `journal_to`, too: a folder, bucket or topic (`operations/mirrors.py`); without, where it was kept before, and with
    `none` nowhere else. A process that has a lease of its own changes nothing without that `duty`, either.
    Runs in the state directories `beside` its own keep it back like those there.
    """

    state_dir: Path = field(default_factory=default_state_dir)
    poll_s: float = POLL_INTERVAL_S
    controllers: AdminClient | None = None
    watch: Watch = unwatched
    warn: Warn = warn_program
    operator: Operator = field(default_factory=this_operator)
    lease: LeasePolicy = LeasePolicy.AUTO
    observers: tuple[Observer, ...] = ()
    ask_clients: AskClients = ask_clients
    journal_to: str | None = None
    leaves_down: bool = False
    duty: Duty | None = None
    beside: tuple[Path, ...] = ()

    def __post_init__(self) -> None:
        check_wait("poll_s", self.poll_s)

    @property
    def state_dirs(self) -> tuple[Path, ...]:
        """All state directories with runs of its cluster, its own first."""
        return tuple(dict.fromkeys((self.state_dir, *self.beside)))

    def destination(self, before: str | None = None) -> str | None:
        """Second place of the journal if `before` had one; None for nowhere. Raises InputError."""
        wanted = before if self.journal_to is None else checked_destination(self.journal_to)
        return None if wanted == NOWHERE else wanted


@dataclass(frozen=True, slots=True)
class RunRequest:
    """Plan to execute, and settings.

    `expected` has the replicas that all partitions of the plan must still have; without it, its own file decides.
    `measure_for_s`: with a throttle, how long to measure write rates first; 0 does not.
    `found`: how to treat throttles that others have set. `replan`: whether moves whose destination is lost get another
    one, instead of waiting for it, and none of the brokers to `avoid`. `give_up_after_s`: how long a destination is
    down until it is lost; None is never, or a minute with `replan`. `allow_producer_outage`: whether moves may start
    while which producers with acks=all are refused. `allow_factor_change`: whether replication factors may fall, or
    stay below min.insync.replicas. `approvals`: signed ones without which it does not begin. `clients` says how to ask
    what they feel, for the guard `clients`.
    """

    plan: PlanFile
    throttle: ThrottleRates = NO_THROTTLE
    guards: Mapping[GuardName, Reaction] = field(default_factory=dict)
    pace: Pace = NO_LIMITS
    expected: PlanFile | None = None
    measure_for_s: float = MEASURED_S
    found: FoundThrottles = FoundThrottles.REFUSE
    replan: bool = False
    allow_producer_outage: bool = False
    allow_factor_change: bool = False
    give_up_after_s: float | None = None
    approvals: SignedApprovals | None = None
    clients: ClientGuard | None = None
    avoid: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        check_wait("measure_for_s", self.measure_for_s)

    def settings(self, run_id: str, at_ms: int) -> RunSettings:
        """Settings for the executor, with the id of the run and the time at which it begins."""
        return RunSettings(
            run_id,
            at_ms,
            self.throttle,
            guard_settings(self.guards),
            self.pace,
            self.allow_producer_outage,
            self.allow_factor_change,
            milliseconds(self.give_up_after_s),
            self.clients,
        )


def milliseconds(seconds: float | None) -> int | None:
    """Return the time in ms; None stays None."""
    return None if seconds is None else round(seconds * 1000)


def prepare_run(
    client: AdminClient, request: RunRequest, context: RunContext, clock: Clock = SYSTEM_CLOCK
) -> RunStarted:
    """Check the plan against the cluster and return the run's first event; changes nothing.

    Raises InputError when another run is active or was interrupted on this cluster, or when others have set throttles
    there or move partitions and the operator has not chosen how to treat them; IllegalPlan with all violations.
    Warns about copies that may never end, and moves that will not fit into the hours.
    """
    refuse_unless_free(client, context)
    expected: Replicas = request.plan.expected
    origin = request.plan.origin
    if request.expected is not None:
        expected, origin = _whole(request.expected, request.plan)
    now_ms = clock.now_ms()
    facts = request.plan.facts
    chosen = request.settings(new_run_id(now_ms), now_ms)
    try:
        started = prepare(client, request.plan.plan, chosen, expected=expected, origin=origin)
    except PlanIsMet:
        cluster_id = client.describe_cluster().cluster_id
        raise PlanIsMet(_run_of_plan(context.state_dir, cluster_id, request.plan.plan)) from None
    if facts is not None and facts.cluster_id is not None:
        known = topic_ids_of_moves(started.moves).keys()
        warn_without_topic_ids(context.warn, "the plan", known - facts.topic_ids.keys())
    if request.approvals is not None:
        approval = approval_for(request.approvals, request.plan.plan, started, context.state_dirs)
        started = replace(started, approval=approval)
    started = with_others(client, started, request.found, context)
    if started.rates.is_limited and request.measure_for_s > 0:
        started = measured(client, started, request.measure_for_s, clock, context.warn)
        # A run from elsewhere may have begun meanwhile, whose throttle is no value to restore.
        started = with_others(client, started, request.found, replace(context, warn=tell_nobody))
    warn_of_outlook(started, context.warn)
    return replace(started, replans=request.replan, avoid=request.avoid)


def prepare_as_seen(
    client: AdminClient, request: RunRequest, context: RunContext, seen: RunStarted, clock: Clock = SYSTEM_CLOCK
) -> RunStarted:
    """Check again what somebody has seen, as the decision may have taken long; keep its write rates, measured then.

    Raises Drifted if it would do anything else by now, besides what `prepare_run` raises.
    """
    again = prepare_run(client, replace(request, measure_for_s=0.0), context, clock)
    refuse_drift(seen, again)
    known = {move.topic_partition: move.write_bytes_per_s for move in seen.moves}
    moves = tuple(replace(move, write_bytes_per_s=known[move.topic_partition]) for move in again.moves)
    return replace(again, moves=moves)


def _whole(expected: PlanFile, file: PlanFile) -> tuple[Replicas, PlanOrigin]:
    """The expected replicas, and the origin of a plan with them.

    Raises InputError if they are of another cluster, or unless they cover the plan: the rest would not be compared.
    """
    refuse_other_cluster("the plan is for", file.origin.cluster_id, expected.origin.cluster_id or "")
    if missing := missing_expectations(expected.current, file.plan.replicas):
        raise InputError(
            f"the expected replicas do not name {some_of(missing, SHOWN)}, which the plan moves, so that a change "
            "of theirs would not be noticed. Give the lists of all of its partitions, as "
            "`kreassign plan --current-out` writes them"
        )
    return expected.current, replace(file.origin, cluster_id=file.origin.cluster_id or expected.origin.cluster_id)


def _run_of_plan(state_dir: Path, cluster_id: str, plan: Plan) -> str | None:
    """The latest run here that executed the plan to its end; None if no readable journal has one."""
    for path in reversed(cluster_journals(state_dir, cluster_id)):
        with suppress(JournalDamaged):
            if first_event(path).plan_id == plan_id(plan) and read_history(path).state == "done":
                return path.stem
    return None


def with_others(client: AdminClient, started: RunStarted, found: FoundThrottles, context: RunContext) -> RunStarted:
    """Record in the run how to treat throttles that are set. Warns about those that an earlier run could not restore.

    Raises InputError if the operator has to choose, ClusterError.
    """
    others = read_others(client, started)
    explained = explained_settings(context.state_dirs, started.cluster_id, others.settings).settings
    for one in explained:
        context.warn(f"{one}; it is restored at the end of this run")
    return agreed(started, others, found, [(one.present, one.before) for one in explained])


def start_run(
    client: AdminClient,
    started: RunStarted,
    context: RunContext,
    facts: PlanFacts | None = None,
    clock: Clock = SYSTEM_CLOCK,
) -> RunHistory:
    """Execute a prepared run. Raises InputError when another is active on the cluster, or its approval was used.

    The `facts` of its plan are kept beside its journal, for reports; a run goes on without.
    """
    started = replace(started, operator=context.operator, journal_to=context.destination())
    mirror = None
    if started.journal_to is not None:
        mirror = mirror_of(started.journal_to, client, started.cluster_id, started.run_id, clock)
    with (
        leased(client, _lease_request(started.run_id, started.cluster_id, context), clock) as lease,
        ExitStack() as held,
    ):
        if started.approval is not None:
            refuse_spent(started.approval, context.state_dirs, started.cluster_id)
        journal = held.enter_context(Journal.create(context.state_dir, started, mirror))
        if facts is not None:
            try:
                keep_facts(journal.path, facts)
            except OSError as error:
                context.warn(f"a report of the run will not show why moves are made: {machine_reason(error)}")
        guard = _asked_guard(started)
        return _execute(client, journal, lease, context, clock, guard, lambda runner: runner.start(started))


def _asked_guard(started: RunStarted) -> ClientGuard | None:
    is_off = GuardSetting(GuardName.CLIENTS, Reaction.OFF) in started.guards
    return None if is_off else started.clients


def resume_run(
    client: AdminClient,
    path: Path,
    context: RunContext,
    cancel: Callable[[int], CancelRequested] | None = None,
    *,
    replan: bool = False,
    give_up_after_s: float | None = None,
    clients: ClientGuard | None = None,
    clock: Clock = SYSTEM_CLOCK,
    more: Sequence[Callable[[int], Request]] = (),
) -> RunHistory:
    """Resume the run of this journal; with `cancel` it is cancelled then.

    That request is stored, and processed first, only if resuming is possible. So are `more` of them, after it.
    With `replan`, moves whose destination is lost get another one from now on; a run that began so keeps doing so.
    With `give_up_after_s` a destination is lost after this time from now on, and `clients` are asked as this says;
    without, as before.
    Raises InputError when a process executes a run of its cluster, and where permissions for the remaining work are
    missing.
    """
    refuse_unless_free(client, context, path.stem)
    cluster = client.describe_cluster()
    kept_in = read_view(path).identity.journal_to
    journal_to = context.destination(kept_in)
    asks_lease = context.lease is not LeasePolicy.OFF
    former, mirror = all_home(client, path, kept_in, journal_to, context.warn, clock, asks_lease=asks_lease)
    view = read_view(path)
    if lacking := permissions.lacking_to_go_on(client, view, sorted(live_of_two(client))):
        left = f"run {path.stem} cannot go on, and stays as it was left:"
        raise InputError("\n  - ".join((left, *lacking)))
    wait = wait_of_resume(path.stem, context.warn, clock, is_watched=context.duty is not None)
    start = latest_start(path)
    journal, events = Journal.resume(path, cluster.cluster_id, start.position, on_lock=wait)

    def ask() -> None:
        for one in (*(() if cancel is None else (cancel,)), *more):
            post_request(path, one)

    wanted = replace(_lease_request(path.stem, cluster.cluster_id, context), was_held=view.control.has_had_lease)
    with journal, leased(client, wanted, clock) as lease:
        if mirror is not None:
            journal.keep_in(mirror)
        if former is not None:
            journal.leave(former)
        _warn_without_topic_ids(client, path.stem, first_event(path), context.warn)
        return _execute(
            client,
            journal,
            lease,
            context,
            clock,
            clients or view.client_guard,
            lambda runner: runner.resume(
                events,
                context.operator,
                start.machine,
                replans=replan,
                lost_after_ms=milliseconds(give_up_after_s),
                clients=clients,
                journal_to=journal_to,
                before_anything=ask,
                # A cancellation sends nothing that waits.
                made_since=() if cancel is not None else made_since(client, path, context.state_dirs),
            ),
        )


def _warn_without_topic_ids(client: AdminClient, run_id: str, first: RunStarted, warn: Warn) -> None:
    unnamed = sorted({move.topic_partition.topic for move in first.moves if move.topic_id is None})
    topics, absent, unknown = read_topics(client, unnamed)
    unsure = {*topic_ids_of(topics), *unknown} - absent
    warn_without_topic_ids(warn, f"the journal of run {run_id}", unsure)


def cancel_interrupted_run(
    client: AdminClient, path: Path, context: RunContext, clock: Clock = SYSTEM_CLOCK, *, is_now: bool
) -> RunHistory:
    """Resume the run of this journal and cancel it. Raises InputError if nothing of it is left."""
    refuse_over(read_view(path), "cancel")
    return resume_run(
        client,
        path,
        context,
        lambda number: CancelRequested(clock.now_ms(), number, is_now, context.operator.name),
        clock=clock,
    )


def refuse_unless_free(client: AdminClient, context: RunContext, run_id: str | None = None) -> None:
    """Raise InputError if another run than this one is active on the cluster, or was interrupted there.

    And if journals in the state directory would be shared between machines.
    """
    refuse_shared_file_system(context.state_dir)
    cluster_id = client.describe_cluster().cluster_id
    if context.controllers is not None:
        expect_ours(context.controllers, cluster_id, context.warn)
    live = live_of_two(client) if context.leaves_down else None
    refuse_runs_here(context, cluster_id, run_id, live)
    refuse_if_leased(client, _lease_request(run_id, cluster_id, context))


def expect_ours(controllers: AdminClient, cluster_id: str, warn: Warn) -> None:
    """Raise InputError for controllers of another cluster, which else would show once a broker is down.

    Warns where none answers: they are needed only then. From here on, those of another cluster are sent nothing.
    """
    try:
        named = controllers.describe_cluster(timeout_ms=CONTROLLERS_MS).cluster_id
    except ClusterError as error:
        warn(
            f"the controllers (--bootstrap-controller) could not be asked: {error_text(error)}. Until they can, nobody "
            "takes the throttle of a broker that is down"
        )
    else:
        if named not in {"", cluster_id}:
            raise InputError(
                f"the controllers (--bootstrap-controller) are those of cluster {named}, and the brokers of cluster "
                f"{cluster_id}; name the controllers of that cluster"
            )
    controllers.expect_cluster(cluster_id)


def refuse_runs_here(
    context: RunContext, cluster_id: str, run_id: str | None = None, live: Collection[int] | None = None
) -> None:
    """Raise InputError if another run of these state directories is active on the cluster, or was interrupted there.

    With `live` brokers, settings of others may be left.
    """
    for folder in context.state_dirs:
        refuse_second_run(folder, cluster_id)
        refuse_if_interrupted_runs(folder, cluster_id, run_id, live)


def _lease_request(run_id: str | None, cluster_id: str, context: RunContext) -> LeaseRequest:
    return LeaseRequest(
        run_id or "",
        cluster_id,
        context.state_dir,
        context.lease,
        context.operator,
        context.warn,
        duty=context.duty,
    )


def new_run_id(now_ms: int) -> str:
    """Create an id that sorts by time, also when two runs begin in one second: the latest run is meant without an id.

    Its last eight digits are the millisecond, and then chance: two hosts may begin in one, and the lease takes two runs
    of one id for the same run.
    """
    moment = datetime.fromtimestamp(now_ms / 1000, tz=UTC)
    return f"{moment:%Y%m%dT%H%M%SZ}-{now_ms % 1000 * _PER_MS + secrets.randbelow(_PER_MS):08x}"


_PER_MS = 0x1_0000_0000 // 1000


@dataclass(slots=True)
class _Listener:
    """Turns the events of a run into snapshots in its journal, and into progress for its watcher.

    A view or an observer that fails is dropped: the run goes on.
    """

    warn: Warn
    observers: tuple[Observer, ...] = ()
    keeper: SnapshotKeeper | None = None
    show: Show | None = None

    def listen(self, event: Event, run: RunView) -> None:
        if self.keeper is None:
            return
        meter = self.keeper.follow(event, run)
        for observer in self.observers:
            with ExitStack() as outlived:
                outlived.push(partial(self._drop, observer, run.run_id))
                observer(run, meter)
        if self.show is None:
            return
        with ExitStack() as outlived:
            outlived.push(partial(self._drop, None, run.run_id))
            self.show(history(run, meter, is_active=True))

    def _drop(self, observer: Observer | None, run_id: str, _: object, error: BaseException | None, __: object) -> bool:
        """Drop an observer, or (None) the view, that failed, with a warning; True if the error is handled."""
        if not isinstance(error, Exception):
            return False
        if observer is None:
            self.show = None
            why = f"the progress of run {run_id} is not shown any more, because showing it failed"
            way_on = f"; follow it with `kreassign watch {run_id}`"
        else:
            self.observers = tuple(one for one in self.observers if one is not observer)
            why, way_on = f"run {run_id} is not monitored any more, because that failed", ""
        # A warning may be made an error, and fails like the view then.
        with suppress(Exception):
            self.warn(f"{why}: {error!r}. The run goes on{way_on}")
        return True


def _replanned(client: AdminClient, question: ReplanMoves) -> Replanned:
    from kreassign.operations.plan import replanned  # noqa: PLC0415 - the planner is slow to load, and few runs need it

    return replanned(client, question)


def _execute(
    client: AdminClient,
    journal: Journal,
    lease: Lease,
    context: RunContext,
    clock: Clock,
    guard: ClientGuard | None,
    drive: Callable[[Runner], RunHistory],
) -> RunHistory:
    with _asked(guard, context) as read_clients:
        listener = _Listener(context.warn, context.observers)
        runner = Runner(
            client,
            clock,
            journal,
            listener=listener.listen,
            poll_s=context.poll_s,
            controllers=context.controllers,
            lease=lease,
            replanner=partial(_replanned, client),
            in_maintenance=frozenset if context.lease is LeasePolicy.OFF else partial(ids_in_maintenance, client),
            read_clients=read_clients,
        )
        listener.keeper = SnapshotKeeper(journal, runner.snapshot)
        watch = watch_of_run(journal.path.stem, context.warn, clock)

        def wait(lock: JournalLocked | None) -> None:
            watch.follow(lock)
            if lock is not None:
                runner.wait_for_journal(lock)

        journal.on_lock = wait
        with context.watch(journal.path.stem, runner.request_stop) as listener.show:
            drive(runner)
        return history(runner.run)


@contextmanager
def _asked(guard: ClientGuard | None, context: RunContext) -> Iterator[ReadClients]:
    """Ask clients during the block, and warn at once of what is not known: a mistake shows before anything waits."""
    if guard is None:
        yield no_clients
        return
    with context.ask_clients(guard) as read:
        for reading in read():
            if reading.feeling is Feeling.UNKNOWN:
                context.warn(f"what clients feel is not known: {reading.source}: {reading.seen}")
        yield read


# Predict a prepared run: reads and measures, changes nothing.


def preview_run(
    client: AdminClient, started: RunStarted, request: RunRequest, clock: Clock = SYSTEM_CLOCK
) -> RunPreview:
    """Predict what this run will do; without a throttle, propose one from the traffic of `measure_for_s` seconds.

    Unreadable or unmeasured data is left out. Raises ClusterError when no broker answers.
    """
    receivers = sorted({broker for move in started.moves for broker in move.receiving})
    answer = read_log_dirs(client, receivers, copies_of=())
    planned = {move.topic_partition for move in started.moves}
    others = len(ongoing_moves(client).keys() - planned)
    proposal = None if started.rates.is_limited else proposed(client, started, request.measure_for_s, clock)
    found = preview(started.moves, started.rates, answer.ok, request.plan.facts, others, proposal)
    targets, originals = lists_of(started.moves)
    factors = read_factors(client, targets, originals).sentences
    outages = outages_of(client, targets, started.rates).sentences
    reason = found.reason if started.undoes is None else f"rollback of run {started.undoes}"
    cluster_id = request.plan.origin.cluster_id
    ahead = opening(started.pace.hours, clock.now_ms())
    return replace(found, factors=factors, outages=outages, made_for=cluster_id, reason=reason, opening=ahead)
