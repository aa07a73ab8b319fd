"""Execute the machine's instructions, journal every event, and pass it back to the machine.

The order is the promise: an event is in the journal before the machine sees it, and an instruction that changes the
cluster is recorded as an intention before it is sent. All decisions are made elsewhere.

The runner needs a cluster (`ClusterPort`), a journal (`Memory`), and a `Replanner` for moves whose destination is
lost, because planning is not the executor's. `ProgressSampling` bounds how much of the progress of copies is written
down.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Protocol, assert_never

from kreassign.clock import Clock, SteadyTime
from kreassign.errors import ClusterError, InvariantBroken, JournalLocked, OutcomeUnknown, Rejected, Unsupported
from kreassign.executor import events, instructions, throttle_ledger
from kreassign.executor.client_guard import ClientAnswer, ClientGuard
from kreassign.executor.cluster import measurements, observations, requests
from kreassign.executor.cluster.changes import (
    Changed,
    cancel_log_dir_moves,
    change_configs,
    is_final,
    is_for_now,
    may_be_done,
    request_log_dirs,
)
from kreassign.executor.cluster.measurements import TrafficMeter
from kreassign.executor.cluster.observations import OTHER_TOPIC, TOPIC_DELETED, Expectations, FindingKind, verify
from kreassign.executor.cluster.port import ClusterPort, ConfigPort, confirmed_writes
from kreassign.executor.cluster.readings import live_of_two, ongoing_moves, partitions_with, settings_of_two
from kreassign.executor.guards import GuardName, Health, Unread
from kreassign.executor.history.run_history import history, refuse_over
from kreassign.executor.lease import NO_LEASE, Forgone, Held, Lease, LeaseStatus, Taken
from kreassign.executor.state import Machine, RunView
from kreassign.model import NO_LEADER, Batch, ConfigChange, ConfigResource, ElectionType, TopicPartition
from kreassign.model.authorization import error_text, reason_text
from kreassign.model.closures import leading_nothing
from kreassign.model.error_codes import ELECTION_NOT_NEEDED, NO_REASSIGNMENT_IN_PROGRESS, has_code
from kreassign.model.plan_facts import is_another
from kreassign.model.requests import join
from kreassign.model.run import AT_REST, SOMEONE_ELSE, Operator, RunHistory

# Replanning: the planner as a run uses it.


@dataclass(frozen=True, slots=True)
class Replanned:
    """New targets, checked as those of a plan are, and moves without a possible target, with the reason."""

    targets: tuple[events.NewTarget, ...] = ()
    refused: tuple[events.Refusal, ...] = ()


class Replanner(Protocol):
    """Finds other destinations for moves whose own are lost."""

    def __call__(self, question: instructions.ReplanMoves) -> Replanned:
        """Answer each of the moves once. Changes nothing. Raises ClusterError."""
        ...


def no_replanner(question: instructions.ReplanMoves) -> Replanned:
    """Find no destinations."""
    return Replanned(
        refused=tuple(events.Refusal(move.topic_partition, "nobody here can plan") for move in question.moves)
    )


# Sampling of progress: all of it is journaled at first, then as much as the journal may grow.
#
# The progress of a copy changes with every poll, and a run of a week polls half a million times. So progress may take
# `BURST_BYTES` at once and `BYTES_PER_S` from then on (a token bucket): a run of minutes is journaled poll by
# poll, a run with a hundred copies in flight some three times a minute. Any other change is journaled with the poll
# that shows it.

BURST_BYTES = 4_000_000
BYTES_PER_S = 100.0
"""Growth of a journal: 8.6 MB a day."""

POLL_BYTES = 200
"""Size of a poll in a journal, and of each partition in it (compressed; see bench `journal-week`)."""
PARTITION_BYTES = 22

KnownObservations = Mapping[TopicPartition, events.PartitionObservation | None]


@dataclass(slots=True)
class ProgressSampling:
    """Decides, poll by poll, whether progress is journaled."""

    left_bytes: float = BURST_BYTES
    bytes_per_s: float = BYTES_PER_S
    _at_s: float | None = None

    def chosen(
        self, known: KnownObservations, news: tuple[events.PartitionObservation, ...], now_s: float
    ) -> tuple[tuple[events.PartitionObservation, ...], bool]:
        """Return the news of a poll at this (monotonic) time to journal, and whether they include progress."""
        self._refill(now_s)
        changes = tuple(one for one in news if not _is_progress(known.get(one.topic_partition), one))
        if len(changes) == len(news):
            return news, self.left_bytes >= 0
        if self.left_bytes < 0:
            return changes, False
        self.left_bytes -= POLL_BYTES + PARTITION_BYTES * (len(news) - len(changes))
        return news, True

    def _refill(self, now_s: float) -> None:
        passed_s = 0.0 if self._at_s is None else max(0.0, now_s - self._at_s)
        self._at_s = now_s
        self.left_bytes = min(BURST_BYTES, self.left_bytes + self.bytes_per_s * passed_s)


def _is_progress(known: events.PartitionObservation | None, seen: events.PartitionObservation) -> bool:
    """True if only the bytes of copies differ."""
    return known is not None and replace(seen, copies=known.copies) == known


POLL_S = 1.0

CLOCK_STEP_MS = 1_000
"""Difference from the known wall clock that is journaled."""


Listener = Callable[[events.Event, RunView], None]

ReadClients = Callable[[], tuple[ClientAnswer, ...]]
"""Latest readings of how clients feel; returns at once."""


def no_clients() -> tuple[ClientAnswer, ...]:
    """No readings, in a run that asks for none."""
    return ()


class Memory(Protocol):
    """Journal as the runner needs it."""

    def append(self, event: events.Event) -> None:
        """Write an event; it is on disk when this returns."""
        ...

    def requests_after(self, number: int) -> tuple[events.Request, ...]:
        """Requests of other processes since this number."""
        ...


class _NoLeaseError(Exception):
    """The run does not hold the lease, so nothing more is sent. No ClusterError: no change may take it for its own."""


class Runner:
    """Executes one run.

    `listener` gets every new event after the run has processed it; not those read back. `controllers` take the
    throttle of brokers that are down. `lease` is confirmed before each request that changes the cluster. The
    `replanner` finds other destinations for lost ones, in a run that replans. `in_maintenance` returns the brokers that
    get and lead nothing for now, and raises ClusterError if they are unknown. `read_clients` tells how clients feel.
    """

    def __init__(
        self,
        port: ClusterPort,
        clock: Clock,
        journal: Memory,
        *,
        listener: Listener | None = None,
        poll_s: float = POLL_S,
        controllers: ConfigPort | None = None,
        lease: Lease = NO_LEASE,
        replanner: Replanner = no_replanner,
        in_maintenance: Callable[[], Collection[int]] = frozenset,
        read_clients: ReadClients = no_clients,
    ) -> None:
        self._lease = lease
        self._in_maintenance = in_maintenance
        self._read_clients = read_clients
        self._maintained: Collection[int] = ()
        self._replanner = replanner
        self._machine = Machine()
        self._port = confirmed_writes(port, self._confirm)
        self._controllers = None if controllers is None else confirmed_writes(controllers, self._confirm)
        self._time = SteadyTime(clock)
        self._journal = journal
        self._listener = listener
        self._poll_s = poll_s
        self._meter = TrafficMeter(port)
        self._sampling = ProgressSampling()
        self._is_stop_requested = False
        self._checks_factor = True
        self._asked_ms: int | None = None
        """Since when the cluster is asked without an answer or a pause."""

    @property
    def run(self) -> RunView:
        """The run in its present state."""
        return self._machine.view

    def request_stop(self) -> None:
        """Request a clean pause at the next step. Safe to call from a signal handler."""
        self._is_stop_requested = True

    def wait_for_journal(self, lock: JournalLocked) -> None:
        """Keep the lease while another process has locked the journal: called each second.

        Raises JournalLocked once a pause is requested, which cannot be written down: the run stays as it is.
        """
        if self._is_stop_requested:
            raise lock
        self._lease.beat()

    def start(self, started: events.Event) -> RunHistory:
        """Execute a run whose journal holds only this first event. Returns when it is at rest."""
        self._time.begin_after(started.at_ms)
        return self._execute(self._take_in(started))

    def snapshot(self, beside: dict[str, object]) -> str:
        """The run as text (`state/machine.py`), with further data of its reader."""
        return self._machine.snapshot(beside)

    def resume(
        self,
        journaled: Iterable[events.Event],
        operator: Operator | None = None,
        machine: Machine | None = None,
        *,
        replans: bool = False,
        lost_after_ms: int | None = None,
        clients: ClientGuard | None = None,
        journal_to: str | None = None,
        made_since: Iterable[events.Refusal] = (),
        before_anything: Callable[[], object] = lambda: None,
    ) -> RunHistory:
        """Continue a run from the `journaled` events, all or those after `machine`; the `operator` is journaled.

        `before_anything` is called when all checks have passed, and may send a request to the run. If it
        `replans`, moves whose destination is lost get another one, also where the run began without that; with
        `lost_after_ms` a destination is lost after this time, whatever the run began with, and so with `clients`.
        `journal_to` is journaled: where the journal is kept, too; and lists that later runs have `made_since`.

        Raises InputError when nothing is left to do, ClusterError when the cluster does not answer.
        """
        self._machine = machine or self._machine
        self._time.begin_after(self._machine.at_ms)
        for event in journaled:
            self._machine.replay(event)
            self._time.begin_after(event.at_ms)
        refuse_over(self.run, "resume")
        live = tuple(sorted(live_of_two(self._port)))
        resumed = events.RunResumed(
            self._time.now_ms(),
            live,
            operator,
            replans=replans,
            lost_after_ms=lost_after_ms,
            clients=clients,
            journal_to=journal_to,
            made_since=tuple(made_since),
        )
        first = self._happened(resumed)
        before_anything()
        return self._execute(first)

    def _execute(self, first: Iterable[instructions.Instruction]) -> RunHistory:
        todo = deque(first)
        if (status := self._lease.status) is not None and self._machine.accepts(events.LeaseTaken):
            todo = deque(self._happened(self._lease_event(status, events.LeaseLost))) or todo
        while todo:
            if self._is_stop_requested and self._machine.accepts(events.StopRequested):
                todo = deque(self._happened(events.StopRequested(self._time.now_ms())))
                self._is_stop_requested = False
                continue
            self._note_clock()
            todo = self._take_requests(todo)
            todo.extend(self._happened(self._do(todo.popleft())))
        assert self.run.phase in AT_REST, f"no instructions while {self.run.phase}"
        return history(self.run)

    def _take_requests(self, todo: deque[instructions.Instruction]) -> deque[instructions.Instruction]:
        """Process requests of other terminals. Resulting instructions replace the pending ones."""
        for request in self._journal.requests_after(self.run.control.last_request):
            if self._machine.accepts(type(request)):
                # The time of the request is by the requester's clock.
                todo = deque(self._happened(replace(request, at_ms=self._time.now_ms()))) or todo
        return todo

    def _note_clock(self) -> None:
        """Journal the wall clock's offset if it was set."""
        ahead_ms = self._time.ahead_ms()
        if abs(ahead_ms - self.run.wall_ahead_ms) >= CLOCK_STEP_MS and self._machine.accepts(events.ClockStepped):
            self._happened(events.ClockStepped(self._time.now_ms(), ahead_ms))

    def _happened(self, event: events.Event) -> tuple[instructions.Instruction, ...]:
        # TimePassed changes nothing for a reader of the journal.
        if not isinstance(event, events.TimePassed):
            self._journal.append(event)
        return self._take_in(event)

    def _take_in(self, event: events.Event) -> tuple[instructions.Instruction, ...]:
        following = self._machine.handle(event)
        if self._listener is not None:
            self._listener(event, self.run)
        return following

    def _do(self, instruction: instructions.Instruction) -> events.Event:
        asked_ms = self._time.now_ms() if self._asked_ms is None else self._asked_ms
        try:
            event = (
                self._ask(instruction)
                if isinstance(instruction, instructions.ClusterQuery)
                else self._change(instruction)
            )
        except ClusterError as error:
            return events.CallFailed(self._time.now_ms(), error_text(error), asked_ms)
        except _NoLeaseError as error:
            # What was sent before is looked up when the run goes on, as after a crash.
            return events.LeaseLost(self._time.now_ms(), str(error))
        if not isinstance(event, events.TimePassed):
            self._asked_ms = None
        return event

    def _confirm(self) -> None:
        """Raise _NoLeaseError if the run may not change the cluster now."""
        if isinstance(status := self._lease.confirm(), Taken):
            raise _NoLeaseError(status.reason)

    def _ask(self, question: instructions.ClusterQuery) -> events.Event:
        match question:
            case instructions.Wait():
                return self._wait()
            case instructions.RecordVerdicts():
                return events.VerdictsRecorded(self._time.now_ms(), question.verdicts)
            case instructions.ReadConfigs():
                return self._read_configs(question)
            case instructions.Verify():
                return self._verify(question)
            case instructions.ReplanMoves():
                found = self._replanner(question)
                at_ms, who = self._time.now_ms(), question.operator
                return events.MovesReplanned(at_ms, question.lost, found.targets, found.refused, who)
        return self._observe(question)

    def _observe(
        self,
        question: instructions.ObserveMoves
        | instructions.CheckHealth
        | instructions.CheckThrottle
        | instructions.MeasureTraffic
        | instructions.TakeLease,
    ) -> events.Event:
        match question:
            case instructions.TakeLease():
                return self._lease_event(self._lease.retake(), events.LeaseRefused)
            case instructions.CheckThrottle():
                found = requests.check_throttle(self._port, question.overrides, question.topic_ids)
                return events.ThrottleChecked(self._time.now_ms(), found.differ, found.unread, found.gone)
            case instructions.ObserveMoves():
                return self._observe_moves(question)
            case instructions.CheckHealth():
                return events.HealthObserved(self._time.now_ms(), self._inspect(question))
            case instructions.MeasureTraffic():
                return self._measure(question)
        assert_never(question)

    def _inspect(self, question: instructions.CheckHealth) -> Health:
        """Inspect the cluster. While it is unknown which brokers are in maintenance, those that were still count."""
        unread: tuple[Unread, ...] = ()
        try:
            self._maintained = frozenset(self._in_maintenance())
        except ClusterError as error:
            unread = (Unread(GuardName.CORDONED, "which brokers are in maintenance", error_text(error)),)
        health = measurements.inspect_health(self._port, question, self._maintained)
        return replace(health, unread=(*health.unread, *unread), clients=self._read_clients())

    def _change(self, deed: instructions.ClusterChange) -> events.Event:
        """Confirm the lease before an intention is journaled; each request of the change confirms it once more."""
        self._confirm()
        match deed:
            case instructions.SetThrottle():
                self._happened(events.ThrottleIntended(self._time.now_ms(), deed.overrides))
                changed = self._change_configs(throttle_ledger.changes_to_ours(deed.overrides))
                # Kafka takes one change of a key at once, and a copy that starts must be listed first.
                changed = changed.and_then(self._change_configs(throttle_ledger.entries_to_drop(deed.overrides)))
                return events.ThrottleSet(
                    self._time.now_ms(),
                    changed.problems,
                    changed.unwritten,
                    changed.failed,
                    may_pass=bool(changed.problems) and changed.may_pass,
                    may_be_made=changed.may_be_made,
                )
            case instructions.RestoreThrottle():
                changed = self._change_configs(throttle_ledger.changes_to_before(deed.overrides, deed.shared))
                return events.ThrottleRestored(
                    self._time.now_ms(),
                    changed.problems,
                    changed.unwritten,
                    changed.by_controller,
                    changed.unregistered,
                )
            case instructions.SubmitMoves():
                self._happened(events.SubmissionIntended(self._time.now_ms(), tuple(deed.targets)))
                return self._submit(deed)
            case instructions.CancelMoves():
                self._happened(events.CancelIntended(self._time.now_ms(), deed.partitions))
                return self._cancel(deed.partitions)
            case instructions.ElectLeaders():
                return self._elect(deed)
        assert_never(deed)

    def _wait(self) -> events.Event:
        self._time.sleep(self._poll_s)
        self._asked_ms = self._time.now_ms()  # The lease may ask first, and tells nothing of silence.
        status = self._lease.beat()
        if isinstance(status, Taken) and self._machine.accepts(events.LeaseLost):
            return events.LeaseLost(self._time.now_ms(), status.reason)
        return events.TimePassed(self._time.now_ms())

    def _lease_event(
        self, status: LeaseStatus | None, refusal: type[events.LeaseLost | events.LeaseRefused]
    ) -> events.Event:
        """Convert the lease status to an event."""
        at_ms = self._time.now_ms()
        match status:
            case Held():
                return events.LeaseTaken(at_ms, status.generation)
            case Taken():
                return refusal(at_ms, status.reason)
            case Forgone():
                return events.LeaseForgone(at_ms, status.reason)
            case None:
                raise InvariantBroken("a run that has no lease to lose waits for none")

    def _observe_moves(self, instruction: instructions.ObserveMoves) -> events.Event:
        asked = (instruction.moves, instruction.unsent, instruction.producers)
        answers = requests.read_moves(self._port, *asked, sizes=instruction.sizes)
        seen = observations.observe(instruction.moves, answers)
        records = self.run.records
        known = {observation.topic_partition: records[observation.topic_partition].observation for observation in seen}
        chosen, has_progress = self._sampling.chosen(known, observations.news(known, seen), self._time.now_ms() / 1000)
        unread = tuple(events.Refusal(name, why) for name, why in answers.unread.items())
        absent = None if answers.absent == self.run.absent else answers.absent
        return events.MovesObserved(self._time.now_ms(), chosen, unread, has_progress, absent, answers.withheld)

    def _measure(self, question: instructions.MeasureTraffic) -> events.Event:
        # Without measurements a run goes on at its floor rate: no reason to fail.
        at_ms = self._time.now_ms()
        try:
            return events.TrafficMeasured(at_ms, *self._meter.measure(at_ms, question.partitions))
        except ClusterError:
            return events.TrafficMeasured(at_ms, ())

    def _read_configs(self, question: instructions.ReadConfigs) -> events.Event:
        read = requests.read_configs(self._port, question.keys, settings_of_two)
        down = requests.brokers_down(self._port, read.unread)
        problems = (f"{one} {text}" for one, text in read.unread.items() if one not in map(ConfigResource.broker, down))
        # Nothing of the run is in flight when it asks: what is listed, others have begun.
        others_move = question.asks_for_others and bool(ongoing_moves(self._port))
        return events.ConfigsRead(self._time.now_ms(), read.values, tuple(problems), down, read.gone, others_move)

    def _submit(self, deed: instructions.SubmitMoves) -> events.Event:
        placed = request_log_dirs(self._port, deed.log_dirs)
        asked = {name: target for name, target in deed.targets.items() if name not in placed.failed}
        # A list that stays is not sent: it could only undo what others made of it meanwhile, or be refused for a cordon
        # of a broker that has the replica already.
        targets = {name: target for name, target in asked.items() if not self.run.records[name].is_list_staying}
        outcome = self._start(targets, deed.changing_factor)
        refused = (*placed.refused, *_refusals(outcome, is_final))
        return events.MovesSubmitted(
            self._time.now_ms(),
            accepted=(*outcome.ok, *(name for name in asked if name not in targets)),
            refused=refused,
            unknown=(*placed.unknown, *(name for name, error in outcome.failed.items() if may_be_done(error))),
            deferred=(*placed.deferred, *_refusals(outcome, is_for_now)),
            begun=tuple(one.topic_partition for one in refused if one.topic_partition in placed.begun),
        )

    def _start(
        self, targets: Mapping[TopicPartition, tuple[int, ...]], changing_factor: Collection[TopicPartition]
    ) -> Batch[TopicPartition, None]:
        """Start moves; where the number of replicas must stay, the controller checks it, if it can (KIP-860).

        Others may have changed the number since the last poll, and the target would change it back.
        """
        keeping = {name: target for name, target in targets.items() if name not in changing_factor}
        changing = {name: target for name, target in targets.items() if name in changing_factor}
        if self._checks_factor and keeping:
            try:
                kept = self._alter(keeping, may_change_factor=False)
            except Unsupported:  # before Kafka 4.1
                self._checks_factor = False
            else:
                return join([kept, self._alter_rest(changing)])
        return self._alter(targets) if targets else Batch({}, {})

    def _alter_rest(self, targets: Mapping[TopicPartition, tuple[int, ...]]) -> Batch[TopicPartition, None]:
        """Like `_alter`, after other moves were sent, whose answer must not get lost."""
        try:
            return self._alter(targets) if targets else Batch({}, {})
        except ClusterError as error:
            return Batch({}, dict.fromkeys(targets, error))

    def _alter(
        self, targets: Mapping[TopicPartition, tuple[int, ...] | None], *, may_change_factor: bool = True
    ) -> Batch[TopicPartition, None]:
        """Start or cancel moves; an error of the whole request counts for each of them.

        Raises Unsupported where the cluster cannot check the factor, and ClusterError when it cannot be reached.
        """
        try:
            return self._port.alter_partition_reassignments(
                targets, allow_replication_factor_change=may_change_factor, warns_of_overrides=False
            )
        except (OutcomeUnknown, Rejected) as error:
            return Batch({}, dict.fromkeys(targets, error))

    def _cancel(self, partitions: tuple[TopicPartition, ...]) -> events.Event:
        records = self.run.records
        kept = cancel_log_dir_moves(self._port, [records[name].step for name in partitions])
        over = [name for name in partitions if records[name].is_list_over]
        lists = [name for name in partitions if not records[name].is_list_over]
        outcome = self._alter(dict.fromkeys(lists)) if lists else Batch({}, {})
        idle = {name for name, error in outcome.failed.items() if has_code(error, NO_REASSIGNMENT_IN_PROGRESS)}
        refused = tuple(one for one in _refusals(outcome, is_final) if one.topic_partition not in idle)
        return events.MovesCancelled(self._time.now_ms(), tuple(outcome.ok), (*refused, *kept), (*over, *sorted(idle)))

    def _change_configs(self, changes: Mapping[ConfigResource, list[ConfigChange]]) -> Changed:
        return change_configs(self._port, self._controllers, changes)

    def _elect(self, deed: instructions.ElectLeaders) -> events.Event:
        left = tuple(self._left_alone(deed))
        others = {one.topic_partition for one in left}
        spared = self._led_by_none_yet({name: broker for name, broker in deed.leaders.items() if name not in others})
        others.update(spared)
        partitions = tuple(name for name in deed.partitions if name not in others)
        # A missing answer (Kafka 3.9.1 with ZooKeeper sometimes waits though it has elected) is no refusal, and no
        # election either: they are asked for again, and those that it has elected need none then.
        try:
            outcome = self._port.elect_leaders(partitions, ElectionType.PREFERRED) if partitions else Batch({}, {})
        except OutcomeUnknown as error:
            outcome = Batch({}, dict.fromkeys(partitions, error))
        leading = [name for name, error in outcome.failed.items() if has_code(error, ELECTION_NOT_NEEDED)]
        refused = tuple(one for one in _refusals(outcome, lambda _: True) if one.topic_partition not in leading)
        return events.LeadersElected(self._time.now_ms(), (*outcome.ok, *leading), (*left, *refused), spared)

    def _led_by_none_yet(self, leaders: Mapping[TopicPartition, int]) -> tuple[TopicPartition, ...]:
        """Partitions of these whose leader is in maintenance. Raises ClusterError if that is unknown."""
        barred = leading_nothing(leaders.values(), self._in_maintenance() if leaders else ())
        return tuple(name for name, leader in leaders.items() if leader in barred)

    def _left_alone(self, deed: instructions.ElectLeaders) -> Iterator[events.Refusal]:
        """Partitions that others may have moved or made again since: the first of their lists is no choice of the run.

        Other partitions of their topics may move meanwhile.
        """
        known, absent, unknown = partitions_with(self._port, deed.partitions)
        for name in deed.partitions:
            target = self.run.records[name].move.target
            if name in absent:
                yield events.Refusal(name, TOPIC_DELETED)
            elif name in unknown:
                yield events.Refusal(name, error_text(unknown[name]))
            elif is_another(deed.topic_ids.get(name.topic), known[name].topic_id):
                yield events.Refusal(name, OTHER_TOPIC)
            elif others := [one.replicas for one in known[name].partitions if one.replicas != target]:
                moved = f"its replicas are {list(others[0])} and not {list(target)}"
                yield events.Refusal(name, f"{moved}; {SOMEONE_ELSE} changed them, so its leader is left alone")

    def _verify(self, instruction: instructions.Verify) -> events.Event:
        targets = {move.topic_partition: move.target for move in instruction.moves}
        expected = Expectations(
            targets,
            {replica: path for move in instruction.moves for replica, path in move.log_dir_paths.items()},
            overrides=instruction.overrides,
            topic_ids=events.topic_ids_of_moves(instruction.moves),
        )
        facts = requests.read_facts(self._port, expected)
        findings = verify(expected, facts)
        led_by_others = {finding.subject for finding in findings if finding.kind is FindingKind.LEADER}
        # Led by nobody is no matter of who is in maintenance: it is told.
        leaders = {
            name: targets[name][0]
            for name, seen in facts.partitions.items()
            if str(name) in led_by_others and seen.leader != NO_LEADER
        }
        try:
            spared = set(map(str, self._led_by_none_yet(leaders)))
        except ClusterError:  # who is in maintenance is not known: all that was found is told
            spared = set()
        findings = tuple(one for one in findings if one.kind is not FindingKind.LEADER or one.subject not in spared)
        led_by_others -= spared
        names = tuple(name for name in targets if str(name) in led_by_others)
        return events.Verified(self._time.now_ms(), tuple(map(str, findings)), names)


def _refusals(
    outcome: Batch[TopicPartition, None], is_wanted: Callable[[ClusterError], bool]
) -> tuple[events.Refusal, ...]:
    return tuple(events.Refusal(name, reason_text(error)) for name, error in outcome.failed.items() if is_wanted(error))
