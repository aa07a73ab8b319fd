"""Sequences of commands on several hosts, with an operator who works by hand and hosts that are lost in between.

A sequence is a list of steps by seed: calls of kreassign, each on a host with a state directory of its own; what
happens during the next call, or right now; hosts that are lost with their journals. Each call is judged at its end,
and the whole by `Watch`, which sees every change of the cluster and who made it. At the end somebody does as told: each
interrupted run is resumed, the next run names all that is set still, and one that may remove it leaves nothing.
"""

from __future__ import annotations

import random
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import partial
from itertools import count
from pathlib import Path

from kreassign.admin import AdminClient
from kreassign.errors import ClusterError, ExecutionError, IllegalPlan, InputError
from kreassign.executor.history.run_history import history, read_history
from kreassign.executor.journal import Journal, journal_path, post_request
from kreassign.executor.lease import OFFSETS_TOPIC, LeasePolicy
from kreassign.executor.preflight import RunSettings, prepare
from kreassign.executor.progress import ProgressMeter
from kreassign.executor.state import RunView
from kreassign.executor.throttle_ledger import FoundThrottles
from kreassign.model import ConfigOperation, ConfigResource, NewTopic, TopicPartition
from kreassign.model.plan import PartitionAssignment, Plan
from kreassign.model.run import ENDED, IN_FLIGHT, Operator, RunHistory
from kreassign.model.throttle import BROKER_THROTTLES, TOPIC_THROTTLES, ThrottleRates
from kreassign.operations.maintenance import Way, maintain
from kreassign.operations.plan_files import PlanFile
from kreassign.operations.rollback import RollbackRequest, roll_back
from kreassign.operations.run import RunContext, RunRequest, cancel_interrupted_run, prepare_run, resume_run, start_run
from kreassign.operations.run_journals import LAST, InForce, find_journal
from kreassign.twin import Twin
from kreassign.twin.faults import PlannedFault, draw_faults
from kreassign.twin.metadata import PartitionState
from tests.campaigns import promises
from tests.campaigns.campaign import BrokenError, Caught, Result, Tally, fast_folder
from tests.campaigns.promises import Aftermath
from tests.executor.deaths import Died
from tests.simulation.draw import Scale, draw_moves, draw_twin
from tests.simulation.scene import Scene, asked_in_turn, partitions_of
from tests.simulation.trial import REQUESTS, THROTTLES, Request, answers, minimised
from tests.simulation.watch import CORDON, MIN_ISR, RACE_MS, AddPartition, Configure, Hand, OtherTool, Produce, Watch
from tests.twin.memory_log import MemoryLog

HOSTS = ("host-1", "host-2", "host-3")
POLL_S = 5.0
MB = 1_000_000
SMALL = Scale((0, MB, 100 * MB, 400 * MB), (1_000 * MB, 3_000 * MB, 1_000_000 * MB), 2 * MB)
LEAST_FREE = 0.3
TICK_MS = 60_000
PATIENCE_MS = 5 * TICK_MS
MOST_RESUMED = 20
OTHER_CLUSTER, OTHER_RUN = "another-cluster", "20991231T000000Z-0000"


class Command(StrEnum):
    """A command of kreassign."""

    RUN = "run"
    RESUME = "resume"
    CANCEL = "cancel"
    ROLLBACK = "rollback"
    ENTER = "maintenance enter"
    EXIT = "maintenance exit"


@dataclass(frozen=True, slots=True)
class Call:
    """A command on a host, to its end: of a new run with its settings, of the latest one there, or for a broker."""

    command: Command
    host: str
    plan: Plan = field(default_factory=lambda: Plan(()))
    found: FoundThrottles = FoundThrottles.REFUSE
    rates: ThrottleRates = field(default_factory=ThrottleRates)
    consents: bool = False
    broker: int = 0

    def __str__(self) -> str:
        if self.command is Command.RUN:
            moves, consent = ", ".join(map(str, self.plan.assignments)), " with consent" if self.consents else ""
            return f"{self.host}: run {moves} at {self.rates}, adopts: {self.found}{consent}"
        return f"{self.host}: {self.command}{f' {self.broker}' if 'maintenance' in self.command else ''}"


class Deed(StrEnum):
    """Deeds done to the process of a call."""

    DIE = "dies"
    STOP = "asked to pause"


@dataclass(frozen=True, slots=True)
class Meanwhile:
    """Event at a delay from now, in most cases during the next call."""

    after_ms: int
    what: Hand | PlannedFault | Request | Deed

    def __str__(self) -> str:
        return f"  {self.after_ms} ms later: {self.what}"


@dataclass(frozen=True, slots=True)
class Lost:
    """A host that does not come back, with the journals of its runs."""

    host: str

    def __str__(self) -> str:
        return f"{self.host} is lost"


@dataclass(frozen=True, slots=True)
class Quiet:
    """Time in which nothing is called."""

    for_ms: int

    def __str__(self) -> str:
        return f"{self.for_ms} ms pass"


Step = Call | Meanwhile | Lost | Quiet


@dataclass(frozen=True, slots=True)
class Sequence:
    """The steps of a seed, on the cluster of that seed. `gives_way`: somebody asks for the throttle of others again."""

    seed: int
    steps: tuple[Step, ...]
    has_lease: bool
    gives_way: bool

    def __str__(self) -> str:
        lease, way = "" if self.has_lease else ", no lease", ", gives way" if self.gives_way else ""
        return "\n".join([f"seed {self.seed}{lease}{way}", *map(str, self.steps)])


class Played:
    """A sequence while it happens. `broken` has a sentence per broken promise, `ends` how calls ended."""

    def __init__(self, sequence: Sequence, scene: Scene, folder: Path) -> None:
        self.sequence = sequence
        self.scene = scene
        self.twin = scene.twin
        self.watch = Watch(scene.twin)
        self.ends: Counter[str] = Counter()
        self.lines: list[str] = []
        self.calls: Counter[str] = Counter()
        self.hands: Counter[str] = Counter()
        self.lost: Counter[str] = Counter()
        self._folder = folder
        self._hosts = [*HOSTS]
        self._plans: dict[str, Call] = {}
        self.failures: list[str] = []
        self._begun_ms = self._answered_ms = 0
        self._dies = self._stops = False
        self._call: Call | None = None
        self._requests: list[Request] = []
        self._others: dict[Path, bytes] = {}
        self._entered: dict[int, str] = {}

    @property
    def broken(self) -> tuple[str, ...]:
        return (*self.failures, *self.watch.broken)

    def execute(self) -> None:
        """Take every step, then do as the commands say, until nothing is left to do or a promise is broken."""
        with self.scene.client() as admin:
            replicas = tuple(self.twin.processes.ids[:2])
            self.watch.writer = "the campaign"
            admin.create_topics([NewTopic(OFFSETS_TOPIC, assignments=(replicas,))]).raise_if_any()
            self._begin_on_another_cluster(admin)
        for step in self.sequence.steps:
            match step:
                case Call():
                    self._take(step)
                case Meanwhile(after_ms, what):
                    self.twin.schedule(self.twin.now_ms + after_ms, partial(self._happen, what))
                case Lost(host):
                    if host in self._hosts and len(self._hosts) > 1:
                        self._hosts.remove(host)
                        self.watch.owners.lose(host)
                        self.lost["hosts"] += 1
                        self.lines.append(str(step))
                case Quiet(for_ms):
                    self.twin.advance(for_ms)
            if self.broken:
                return
        self._clear_up()

    # --- what happens ---------------------------------------------------------------------------------------------

    def _happen(self, what: Hand | PlannedFault | Request | Deed) -> None:
        if isinstance(what, PlannedFault):
            # Some are what another tool does.
            with self.watch.by_hand():
                what.inject(self.twin)
            self.watch.trouble_until_ms = self.twin.now_ms + (what.lasts_ms or 0) + RACE_MS
            self.twin.schedule(self.twin.now_ms + (what.lasts_ms or 0), partial(self._recover, what))
        elif isinstance(what, Request):
            self._requests.append(what)
        elif what is Deed.STOP:
            self._stops = True
        elif what is Deed.DIE:
            self._dies = self._call is not None
        elif not isinstance(what, Deed):
            with self.watch.by_hand():
                what.inject(self.twin)
            self.lines.append(f"  {self.twin.now_ms} ms: {what}")
            self.hands[what.kind if isinstance(what, OtherTool) else type(what).__name__] += 1

    def _recover(self, what: PlannedFault) -> None:
        with self.watch.by_hand():
            what.recover(self.twin)

    def _begin_on_another_cluster(self, admin: AdminClient) -> None:
        """Leave an interrupted run of another cluster in every state directory, the latest of all."""
        started = prepare(admin, _probe(self.scene), RunSettings(OTHER_RUN, 0))
        for host in HOSTS:
            with Journal.create(self._folder / host, replace(started, cluster_id=OTHER_CLUSTER)) as journal:
                path = journal.path
            self._others[path] = path.read_bytes()

    # --- calls ----------------------------------------------------------------------------------------------------

    def _take(self, call: Call) -> RunHistory | None:
        """One command, from its start to the end of its process; its run, if it has one."""
        if call.host not in self._hosts:
            return None
        self._call, self._begun_ms, self._answered_ms = call, self.twin.now_ms, self.twin.now_ms
        self._dies = self._stops = False
        self._requests.clear()
        self.watch.begin(
            call.host,
            is_allowed=call.consents or call.command is Command.ROLLBACK,
            of_a_run=call.command not in (Command.ENTER, Command.EXIT),
        )
        self.lines.append(f"{self.twin.now_ms} ms, {call}")
        run, end = None, ""
        with self.scene.client() as admin:
            try:
                run = self._do(admin, call)
                end = run.state if run else "finished"
            except Died:
                end = "died"
            except (InputError, IllegalPlan, ExecutionError) as error:
                end = f"refused: {error}"
            except ClusterError as error:
                end = f"no answer: {error}"
        self._call = None
        self.watch.end()
        self.lines.append(f"{self.twin.now_ms} ms, {end}"[:700])
        self.ends[end.partition(":")[0]] += 1
        self.calls[call.command] += 1
        if run is not None:
            self._judge(call, run)
        return run

    def _context(self, host: str) -> RunContext:
        policy = LeasePolicy.AUTO if self.sequence.has_lease else LeasePolicy.OFF
        return RunContext(
            self._folder / host, POLL_S, operator=Operator("alice", host), lease=policy,
            observers=(self._observe,), warn=self.lines.append,
        )  # fmt: skip

    def _do(self, admin: AdminClient, call: Call) -> RunHistory | None:
        context, clock = self._context(call.host), self.scene.world
        if call.command in (Command.ENTER, Command.EXIT):
            way = Way.ENTER if call.command is Command.ENTER else Way.EXIT
            self._entered.setdefault(call.broker, call.host)
            maintain(admin, (call.broker,), way, context, clock=clock)
            return None
        if call.command is Command.RUN:
            return self._run(admin, call, context)
        path = find_journal(context.state_dir, LAST, InForce(self.twin.cluster_id))
        if call.command is Command.RESUME:
            return resume_run(admin, path, context, clock=clock)
        if call.command is Command.CANCEL:
            return cancel_interrupted_run(admin, path, context, clock, is_now=True)
        begun = self._plans.get(path.stem)
        if begun is None or begun.found in (FoundThrottles.REFUSE, FoundThrottles.REMOVE):
            self.watch.owners.agree(call.host, takes=False)
        else:
            self.watch.owners.agree(call.host, is_kept=begun.found is FoundThrottles.RESTORE)
        return roll_back(admin, RollbackRequest(LAST), context, clock).run

    def _run(self, admin: AdminClient, call: Call, context: RunContext) -> RunHistory:
        request = RunRequest(
            PlanFile(call.plan), call.rates, measure_for_s=0, found=call.found,
            allow_producer_outage=call.consents, allow_factor_change=call.consents,
        )  # fmt: skip
        started = prepare_run(admin, request, context, self.scene.world)
        if call.found is FoundThrottles.REFUSE:
            self.failures += self.watch.not_refused(call.host, call.plan)
        self.watch.owners.agree(
            call.host, takes=call.found is not FoundThrottles.REFUSE, is_kept=call.found is FoundThrottles.RESTORE
        )
        self._plans[started.run_id] = call
        return start_run(admin, started, context, clock=self.scene.world)

    def _observe(self, run: RunView, _meter: ProgressMeter) -> None:
        """After each event: the process dies where it has to, and somebody answers what the run asks for."""
        assert self._call is not None
        if self._dies:
            raise Died
        path = journal_path(self._folder / self._call.host, self.twin.cluster_id, run.run_id)
        lasts_ms = self.twin.now_ms - self._begun_ms
        if lasts_ms > 4 * PATIENCE_MS:
            self.failures.append(f"not at rest after {lasts_ms // TICK_MS} min: {history(run)}")
            raise Died
        if self.twin.now_ms - self._answered_ms >= TICK_MS:
            self._answered_ms = self.twin.now_ms
            wanted = answers(run, lasts_ms, PATIENCE_MS)
            self._requests += [each for each in wanted if self.sequence.gives_way or each is not Request.FASTER]
        for request in self._requests:
            if request in THROTTLES:
                self.watch.ask_for_throttle(self._call.host)
            post_request(path, partial(REQUESTS[request], self.scene.world.now_ms()))
        self._requests.clear()

    # --- what was promised ----------------------------------------------------------------------------------------

    def _judge(self, call: Call, run: RunHistory) -> None:
        """A run at rest: what it says of its moves, and what it left."""
        if run.state not in ENDED:
            return
        metadata = self.twin.metadata
        names = {TopicPartition(move.topic, move.partition) for move in run.moves}
        touched = self.watch.moved_by_others(names, call.host, run.started_ms)
        pending = {TopicPartition(move.topic, move.partition) for move in run.moves if move.status in IN_FLIGHT}
        moving = {name for name in names & metadata.reassigning if self.watch.movers.get(name) == call.host}
        replicas = {state.topic_partition: state.replicas for state in partitions_of(self.twin)}
        after = Aftermath(run, replicas, tuple(moving - pending), is_moved_by_others=bool(touched))
        broken = [*promises.broken(after)]
        begun = self._plans.get(run.run_id)
        if run.state == "done" and begun is not None:
            broken += [
                f"done, and {each} is on {replicas.get(each.topic_partition)}"
                for each in begun.plan.assignments
                if each.topic_partition not in touched and replicas.get(each.topic_partition) != each.replicas
            ]
            broken += [
                f"done, and {each.topic_partition} is in {path} of broker {broker}, not in {wanted}"
                for each in begun.plan.assignments
                if each.topic_partition not in touched
                for broker, wanted in zip(each.replicas, each.log_dirs, strict=False)
                if wanted not in ("any", path := self.twin.replication.readings.log_dir(each.topic_partition, broker))
            ]
        said = " ".join([*run.problems, *run.throttle_residue, *(move.problem or "" for move in run.moves)])
        broken += self.watch.owners.left(call.host, said)
        self.failures += [f"{run.state}: {each}" for each in broken]

    # --- the end --------------------------------------------------------------------------------------------------

    def _clear_up(self) -> None:
        """Resume what was interrupted, wait for all moves, and see that the next run is told all that is left."""
        self.twin.advance(10 * TICK_MS)
        for host in self._hosts:
            self._finish(host)
            if self.broken:
                return
        for broker, host in sorted(self._entered.items()):
            # Without a lease the record is on the machine that was told, and lost with it.
            self._take(Call(Command.EXIT, host if host in self._hosts else self._hosts[0], broker=broker))
            if not self.sequence.has_lease and host not in self._hosts:
                self._happen(Configure(ConfigResource.broker(broker), CORDON, None, ConfigOperation.DELETE))
        # Moves of operators may have filled directories, and the brokers with the record of maintenance went down.
        is_filled = any(broker.failed_dirs for broker in self.twin.metadata.brokers.values())
        has_record = all(state.has_leader for state in self.twin.metadata.topics[OFFSETS_TOPIC].partitions.values())
        if has_record and (
            cordoned := [owner for owner, values in self.twin.metadata.configs.items() if CORDON in values]
        ):
            self.failures.append(f"cordoned after all maintenance was ended: {cordoned}, {self.lines[-1]}")
        self._wait_for_moves()
        self.failures += [
            f"{path} of another cluster was changed" for path, was in self._others.items() if path.read_bytes() != was
        ]
        if not is_filled:
            self._end()

    def _end(self) -> None:
        """The next run names what is still set, and leaves nothing of it if it may remove it; then all is in sync."""
        # Its topic may have fewer replicas in sync than producers need while it moves.
        probe = Call(Command.RUN, self._hosts[0], _probe(self.scene), rates=ThrottleRates(100_000_000), consents=True)
        set_still = self.watch.owners.of()
        run = self._take(probe)
        if set_still:
            refusal = self.lines[-1]
            untold = [str(key) for key in set_still if str(key) not in refusal and key.broker is not None]
            if run is not None or (untold and len(set_still) <= 3):
                self.failures.append(f"still set, and the next run does not name it: {untold or [*set_still]}")
            run = self._take(replace(probe, found=FoundThrottles.REMOVE))
        if run is None or run.state != "done":
            self.failures.append(f"the last run ended otherwise than done: {self.lines[-1]}")
        elif left := self.watch.owners.of():
            self.failures.append(f"set after a run that was to remove all: {left}")
        # An operator's throttle may keep followers behind for as long as it is set.
        self._wait_for_moves()
        if behind := self._behind():
            self.failures.append(f"not in sync at the end: {behind}")
        if not self.broken:
            self.scene.check()

    def _finish(self, host: str) -> None:
        for _ in range(MOST_RESUMED):
            with suppress(InputError):
                path = find_journal(self._folder / host, LAST, InForce(self.twin.cluster_id))
                run = read_history(path)
                if run.state in ENDED and not run.throttle_residue:
                    return
                self._take(Call(Command.RESUME, host))
                self.twin.advance(2 * TICK_MS)
                if self.broken:
                    return
                continue
            return
        raise BrokenError(f"the latest run of {host} did not end: {self.lines[-1]}")

    def _behind(self) -> list[PartitionState]:
        return [state for state in partitions_of(self.twin) if state.has_leader and {*state.isr} != {*state.replicas}]

    def _wait_for_moves(self) -> None:
        """Moves of lost hosts and of operators end by themselves; who waits for too long cancels them."""
        until_ms = self.twin.now_ms + 60 * TICK_MS
        while (self.twin.metadata.reassigning or self._behind()) and self.twin.now_ms < until_ms:
            self.twin.advance(TICK_MS)
        if moving := sorted(self.twin.metadata.reassigning):
            self.watch.writer = "the campaign"
            with self.scene.client() as admin:
                admin.alter_partition_reassignments(dict.fromkeys(moving)).raise_if_any()
            self.twin.advance(TICK_MS)


def _probe(scene: Scene) -> Plan:
    """A move that is possible and not done yet, of the smallest partition: disks may be nearly full."""
    at_rest = (state for state in partitions_of(scene.twin) if state.has_leader and not state.is_reassigning)
    readings = scene.twin.replication.readings
    state = min(at_rest, key=lambda state: readings.size_bytes(state.topic_partition, state.leader) or 0)
    spare = next((broker for broker in scene.twin.processes.ids if broker not in state.replicas), None)
    *kept, last = state.replicas
    return Plan((PartitionAssignment(state.topic_partition, (*kept, spare) if spare is not None else (last, *kept)),))


# --- sequences by seed ----------------------------------------------------------------------------------------------

MOST_CALLS, MOST_DURING, DURING_MS, LONGEST_MS = 6, 3, 25_000, 40_000
UNKNOWN = {"list-replica", "set-throttles", "stale", "stale-answers", "empty-lists", "fill", "unregister"}
COMMANDS = (*[Command.RUN] * 5, Command.RESUME, Command.RESUME, Command.CANCEL, Command.ROLLBACK, Command.ENTER,
            Command.EXIT)  # fmt: skip
FOUND = (
    *[FoundThrottles.REFUSE] * 4, FoundThrottles.REMOVE, *[FoundThrottles.RESTORE] * 2, FoundThrottles.ALONGSIDE,
)  # fmt: skip


def sequence_twin(seed: int, log: MemoryLog) -> Twin:
    """The cluster of a sequence: directories of unequal sizes, some of them hardly larger than the copies."""
    for attempt in count():
        twin = draw_twin(random.Random(f"{seed}:cluster {attempt}"), log, SMALL)
        dirs = [log_dir for broker in twin.processes.ids for log_dir in twin.replication.readings.log_dirs(broker)]
        if all((log_dir.usable_bytes or 0) > LEAST_FREE * (log_dir.total_bytes or 0) for log_dir in dirs):
            return twin
        log.clear()
    raise AssertionError


def draw_sequence(seed: int) -> Sequence:
    """The sequence of a seed, on the twin of that seed."""
    chance = random.Random(f"{seed}:sequence")
    twin = sequence_twin(seed, MemoryLog())
    steps: list[Step] = []
    for _ in range(chance.randint(2, MOST_CALLS)):
        steps += (Meanwhile(0, _by_hand(chance, twin)) for _ in range(chance.choice((0, 0, 1, 2))))
        steps += (_during(chance, twin) for _ in range(chance.randint(0, MOST_DURING)))
        steps.append(_call(chance, twin))
        if chance.random() < 0.15:
            steps.append(Lost(chance.choice(HOSTS)))
        steps.append(Quiet(chance.choice((1_000, 70_000, 90_000, 600_000, 86_400_000))))
    return Sequence(seed, tuple(steps), has_lease=chance.random() < 0.5, gives_way=chance.random() < 0.5)


def _call(chance: random.Random, twin: Twin) -> Call:
    rate = chance.choice((5, 20, 100, None))
    moves = tuple(draw_moves(chance, twin))
    if chance.random() < 0.85:
        factors = {state.topic_partition: len(state.replicas) for state in partitions_of(twin)}
        moves = tuple(each for each in moves if len(each.replicas) == factors[each.topic_partition]) or moves[:1]
    return Call(
        chance.choice(COMMANDS), chance.choice((*HOSTS[:2], HOSTS[0])), Plan(moves), chance.choice(FOUND),
        ThrottleRates(None if rate is None else rate * MB), chance.random() < 0.4, chance.choice(twin.processes.ids),
    )  # fmt: skip


def _during(chance: random.Random, twin: Twin) -> Meanwhile:
    what: Hand | PlannedFault | Request | Deed
    kind = chance.random()
    if kind < 0.5:
        what = _by_hand(chance, twin)
    elif kind < 0.8:
        what = chance.choice((*[Deed.DIE] * 6, Deed.STOP, Deed.STOP, *Request))
    else:
        what = next(fault for fault in iter(lambda: draw_faults(chance, twin, 1, 1)[0], None) if _is_known(fault))
        what = replace(what, at_ms=0, lasts_ms=min(what.lasts_ms or 0, LONGEST_MS))
    return Meanwhile(round(DURING_MS * chance.random() ** 2), what)


def _is_known(fault: PlannedFault) -> bool:
    """True if the change leaves the readings of runs intact: they cannot know the owner of an unseen setting."""
    return fault.kind not in UNKNOWN


def _by_hand(chance: random.Random, twin: Twin) -> Hand:
    """Something that Kafka's own tools do: to settings in most cases, to moves, topics, or what is produced."""
    state, broker = chance.choice(partitions_of(twin)), chance.choice(twin.processes.ids)
    topic, number = state.topic_partition
    replicas = tuple(chance.sample(twin.processes.ids, len(state.replicas)))
    value = str(chance.randint(1, 9) * 1_000_001)
    of_broker = partial(Configure, ConfigResource.broker(broker), chance.choice(BROKER_THROTTLES))
    of_topic = partial(Configure, ConfigResource.topic(topic), chance.choice(TOPIC_THROTTLES))
    append, entry = ConfigOperation.APPEND, f"{chance.randint(90, 99)}:{broker}"
    of_topics = chance.choice((OtherTool(f"recreate:{topic}"), OtherTool(f"delete:{topic}"), AddPartition(topic)))
    return chance.choice((
        of_broker(value), of_broker(value), of_broker(None, ConfigOperation.DELETE), of_topic(entry, append),
        of_topic(entry, append), of_topic("*"), of_topic(None, ConfigOperation.DELETE),
        Configure(ConfigResource.topic(topic), MIN_ISR, str(chance.randint(1, len(replicas)))),
        OtherTool("clear-throttles"), OtherTool(f"clear-throttles:{broker}"), OtherTool("cancel-moves"),
        OtherTool(f"move:{topic}:{number}:{','.join(map(str, replicas))}"),
        AddPartition(topic), of_topics, Produce(state.topic_partition, chance.choice((0.0, 0.5, 5.0)) * MB),
    ))  # fmt: skip


def try_sequence(sequence: Sequence) -> Played:
    """Let a sequence happen and judge it."""
    log = MemoryLog()
    with fast_folder() as folder, asked_in_turn():
        played = Played(sequence, Scene(sequence_twin(sequence.seed, log), log), Path(folder))
        with Caught(played.failures):
            played.execute()
    return played


def play_sequence(seed: int) -> Result:
    """The sequence of a seed; its lines are the smallest one that breaks a promise, and what happened in that."""
    played = try_sequence(draw_sequence(seed))
    counts = {"ends": played.ends, "calls": played.calls, "hands": played.hands, "lost": played.lost}
    end = "broken" if played.broken else "kept"
    lines: tuple[str, ...] = ()
    if played.broken:
        kind = played.broken[0][:20]
        least = minimised(
            played.sequence,
            lambda smaller: any(each.startswith(kind) for each in try_sequence(smaller).broken),
            parts={"steps": 1},
        )
        lines = (*str(least).splitlines(), "so that:", *try_sequence(least).lines)
    return Result(seed, end, played.broken, played.twin.now_ms / 1_000, lines=lines, counts=counts)


def table(tally: Tally) -> str:
    """Table of sequences for the page."""
    ends = ", ".join(f"{count} {end}" for end, count in tally.counts["ends"].most_common())
    calls, hands = tally.counts["calls"], tally.counts["hands"]
    return "\n".join([
        "| What | |",
        "|---|---|",
        f"| sequences, each of a seed of its own | {tally.count} |",
        f"| hours of the clusters | {sum(tally.seconds) / 3_600:.0f} |",
        f"| calls | {calls.total()}: {', '.join(f'{count} {call}' for call, count in calls.most_common())} |",
        f"| how they ended | {ends} |",
        f"| changes by hand | {hands.total()}: {', '.join(f'{count} {kind}' for kind, count in hands.most_common())} |",
        f"| hosts lost with their journals | {tally.counts['lost']['hosts']} |",
        f"| sequences that broke a promise | {tally.failed} |",
    ])  # fmt: skip
