"""Runs against a twin in its own virtual time: the whole workflow from plan to verified end, in milliseconds."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import cast

from kreassign.admin import AdminClient, client_settings
from kreassign.clock import Clock
from kreassign.executor.client_guard import ClientGuard
from kreassign.executor.cluster.port import ClusterPort, ConfigPort
from kreassign.executor.events import Event, Request, RunStarted
from kreassign.executor.guards import DEFAULTS, GuardName, Reaction, guard_settings
from kreassign.executor.history.run_history import fold, history
from kreassign.executor.journal import Journal, journal_path, post_request, read_events
from kreassign.executor.lease import NO_LEASE, Lease
from kreassign.executor.preflight import RunSettings, prepare
from kreassign.executor.runner import Listener, Memory, ReadClients, Replanner, Runner, no_clients
from kreassign.executor.state import REPLAN_AFTER_MS, RunView
from kreassign.executor.throttle_ledger import FoundThrottles
from kreassign.model import ConfigResource, TopicPartition
from kreassign.model.pace import NO_LIMITS, Cap, Caps, Order, Pace
from kreassign.model.plan import PartitionAssignment, Plan
from kreassign.model.run import AT_REST, RunHistory
from kreassign.model.throttle import BROKER_THROTTLES, TOPIC_THROTTLES, AdaptiveThrottle, BrokerRate, ThrottleRates
from kreassign.operations.plan import replanned
from kreassign.twin.blueprint import Blueprint, PartitionPlan, TopicPlan
from kreassign.twin.cluster import Twin
from kreassign.twin.core import TwinSettings
from kreassign.twin.replication.partition_logs import Traffic
from kreassign.twin.transport import TwinTransport
from kreassign.twin.version import DEFAULT, kafka_version
from kreassign.wire import api
from tests.twin.asking import MEGABYTES, cluster

POLL_S = 2.0
"""Half as often as a run looks by default, for what a test of hundreds of polls costs is these."""
RATE = MEGABYTES
"""With this throttle a copy of ten megabytes takes some eleven seconds."""
_ASKED_FOR_TOPICS = (api.METADATA, api.DESCRIBE_TOPIC_PARTITIONS)


def tp(number: int, topic: str = "t") -> TopicPartition:
    return TopicPartition(topic, number)


def pace(
    order: Order = Order.MAKESPAN,
    *,
    moves: int | None = None,
    moves_per_broker: int | None = None,
    size_bytes: int | None = None,
    bytes_per_broker: int | None = None,
) -> Pace:
    """A pace with the same limits for what a broker sends and for what it receives."""
    broker = Cap(moves_per_broker, bytes_per_broker)
    return Pace(order, Caps(source=broker, destination=broker, cluster=Cap(moves, size_bytes)))


def _small(blueprint: Blueprint, log_dir_bytes: int) -> Blueprint:
    """The last broker with log directories of this size."""
    *others, last = blueprint.brokers
    dirs = tuple(replace(one, capacity_bytes=log_dir_bytes) for one in last.hardware.log_dirs)
    return replace(blueprint, brokers=(*others, replace(last, hardware=replace(last.hardware, log_dirs=dirs))))


class TwinRig:
    """A test rig: a twin with a topic `t`, a client of it, and the runs that a test makes on it.

    `others` are further topics by name, with the same size and traffic; `release` is that of the brokers.
    """

    def __init__(
        self,
        state_dir: Path,
        replicas: list[list[int]],
        *,
        size_bytes: int = 10 * MEGABYTES,
        write_bytes_per_s: float = 0.0,
        log_dir_bytes: int | None = None,
        others: Mapping[str, list[list[int]]] | None = None,
        brokers: int = 5,
        make_twin: Callable[[Blueprint], Twin] | None = None,
        release: str = DEFAULT.name,
    ) -> None:
        self.state_dir = state_dir
        traffic = Traffic(size_bytes=size_bytes, write_bytes_per_s=write_bytes_per_s)
        topics = tuple(
            TopicPlan(name, tuple(PartitionPlan(tuple(one), traffic) for one in lists))
            for name, lists in {"t": replicas, **(others or {})}.items()
        )
        blueprint = replace(cluster(brokers=brokers), topics=topics)
        whole = blueprint if log_dir_bytes is None else _small(blueprint, log_dir_bytes)
        self.twin = make_twin(whole) if make_twin else Twin(whole, TwinSettings(kafka_version(release)))
        self.transport = TwinTransport(self.twin)
        self.client = self.new_client()
        self.odd_port: ClusterPort | None = None
        self.clock: Clock = self.transport
        self.controllers: ConfigPort | None = None
        self.lease: Lease = NO_LEASE
        self.replanner: Replanner = partial(replanned, self.client)
        self.in_maintenance: Callable[[], Collection[int]] = frozenset
        self.read_clients: ReadClients = no_clients
        self.poll_s = POLL_S
        self.seen: list[Event] = []
        self._deeds: list[tuple[int, Callable[[], object]]] = []
        self.listener: Listener | None = None
        self.runner: Runner | None = None

    def prepared(
        self,
        targets: Mapping[int, tuple[int, ...]],
        *,
        throttle: int | None = RATE,
        guards: Mapping[GuardName, Reaction] = DEFAULTS,
        pace: Pace = NO_LIMITS,
        per_broker: tuple[BrokerRate, ...] = (),
        adaptive: AdaptiveThrottle | None = None,
        replans: bool = False,
        allows_producer_outage: bool = False,
        allows_factor_change: bool = False,
        lost_after_ms: int | None = REPLAN_AFTER_MS,
    ) -> RunStarted:
        plan = Plan(tuple(PartitionAssignment(tp(number), target) for number, target in targets.items()))
        rates = ThrottleRates(throttle, per_broker, adaptive)
        chosen = RunSettings(
            "run-1",
            self.transport.now_ms(),
            rates,
            guard_settings(guards),
            pace,
            allows_producer_outage,
            allows_factor_change,
            lost_after_ms,
        )
        return self.as_found(replace(prepare(self.port, plan, chosen), replans=replans))

    def as_found(self, started: RunStarted) -> RunStarted:
        """The run with what is set now meant to be there, as nobody is asked about it."""
        return replace(started, found=FoundThrottles.RESTORE) if self.throttles else started

    def run(self, started: RunStarted, *asked: Callable[[int], Request]) -> RunHistory:
        """Carry it out; what is `asked` is there before the run begins."""
        with Journal.create(self.state_dir, started) as journal:
            for make in asked:
                post_request(journal.path, make)
            return self.new_runner(journal).start(started)

    def resume(self, run_id: str = "run-1", *, replans: bool = False, clients: ClientGuard | None = None) -> RunHistory:
        journal, events = Journal.resume(self.path(run_id), self.twin.cluster_id)
        with journal:
            return self.new_runner(journal).resume(events, replans=replans, clients=clients)

    def new_client(self) -> AdminClient:
        """Another client of the brokers, with connections of its own."""
        settings = client_settings(bootstrap_servers="broker-0:9092,broker-1:9092")
        return AdminClient.connect(settings, clock=self.transport, transport=self.transport)

    def let_plan_over(self, client: object) -> None:
        """Plan moves again by way of this client."""
        self.replanner = partial(replanned, cast(AdminClient, client))

    def let_reach_controllers(self) -> None:
        """Runs from now on can talk to the controllers."""
        settings = client_settings(bootstrap_controllers=f"controller-{self.twin.controller_id}:9093")
        self.controllers = AdminClient.connect(settings, clock=self.transport, transport=self.transport)

    @property
    def resumed_pace(self) -> Pace:
        """The pace with which a process that resumes the run would go on."""
        return fold(read_events(self.path())).control.pace

    def path(self, run_id: str = "run-1") -> Path:
        return journal_path(self.state_dir, self.twin.cluster_id, run_id)

    def after(self, seconds: float, deed: Callable[[], object]) -> None:
        """Do something so much later in the twin's time."""
        self.twin.schedule(self.transport.now_ms() + round(seconds * 1000), lambda: deed() and None)

    def stop_after(self, seconds: float) -> None:
        """Ask the run that is executed then, if one is, to pause and leave."""
        self.after(seconds, lambda: self.runner and self.runner.request_stop())

    def between_steps(self, seconds: float, deed: Callable[[], object]) -> None:
        """Do something so much later, or soon after, when the run has just taken in an event: it may use a client."""
        self._deeds.append((self.transport.now_ms() + round(seconds * 1000), deed))

    def ask_after(self, seconds: float, make: Callable[[int, int], Request]) -> None:
        """Ask something of the run later: `make` gets the time and the number of the request."""
        due_ms = self.transport.now_ms() + round(seconds * 1000)
        self.after(seconds, lambda: post_request(self.path(), lambda number: make(due_ms, number)))

    @property
    def port(self) -> ClusterPort:
        """Port of runs: the client, unless a test has put something in between."""
        return self.odd_port or self.client

    def new_runner(self, journal: Memory) -> Runner:
        """Runner of a process that writes into this journal; its inputs are `seen`."""

        def listen(event: Event, run: RunView) -> None:
            self.seen.append(event)
            while self._deeds and self._deeds[0][0] <= self.transport.now_ms():
                self._deeds.pop(0)[1]()
            if self.listener is not None:
                self.listener(event, run)

        self.runner = Runner(
            self.port,
            self.clock,
            journal,
            listener=listen,
            controllers=self.controllers,
            lease=self.lease,
            replanner=self.replanner,
            in_maintenance=self.in_maintenance,
            read_clients=self.read_clients,
            poll_s=self.poll_s,
        )
        return self.runner

    def restart_unseen(self, broker: int, behind: int) -> None:
        """Restart a broker while another one is cut off, so that this goes on to call it down."""
        self.twin.stop(broker)
        self.transport.sleep(30)
        self.twin.views.hold_back(behind)
        self.twin.start(broker)
        self.transport.sleep(30)

    def show_differently(self, partition: int) -> None:
        """Let each of the first three brokers show another list of this partition, which has replicas on just these."""
        for broker, replicas in enumerate(((1, 2, 0), (2, 1, 0), (1, 0, 2))):
            self.client.alter_partition_reassignments({tp(partition): replicas}).raise_if_any()
            self.transport.sleep(5)
            for asked in _ASKED_FOR_TOPICS:
                self.twin.views.hold_back(broker, api_key=asked.key)

    def show_alike(self) -> None:
        """Bring the answers of all brokers about topics up to date."""
        for broker in self.twin.processes.ids:
            for asked in _ASKED_FOR_TOPICS:
                self.twin.views.release(broker, asked.key)

    def end_within(self, seconds: float) -> None:
        """Let a run that has not ended so much later fail its test, which would else wait for ever."""

        def fail() -> None:
            run = None if self.runner is None else self.runner.run
            assert run is None or run.phase in AT_REST, f"not at rest after {seconds:g} s: {history(run)}"

        self.after(seconds, fail)

    # --- what the cluster is like ---

    @property
    def replicas(self) -> dict[int, tuple[int, ...]]:
        return {number: state.replicas for number, state in self.twin.metadata.topics["t"].partitions.items()}

    @property
    def throttles(self) -> dict[str, str]:
        """Every throttle that is set, as `resource key` → value."""
        names = (*TOPIC_THROTTLES, *BROKER_THROTTLES)
        return {
            f"{resource} {name}": value
            for resource in (
                *map(ConfigResource.topic, self.twin.metadata.topics),
                *map(ConfigResource.broker, self.twin.processes.ids),
            )
            for name, value in self.twin.metadata.configs.get(resource, {}).items()
            if name in names
        }
