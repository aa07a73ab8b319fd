"""Real Kafka with one topic under a checked producer, and a run on it: what faults act upon."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

from kafka import KafkaConsumer

from kreassign.admin import AdminClient, client_settings
from kreassign.errors import KreassignError
from kreassign.executor.journal import find_journals
from kreassign.model import NewTopic, TopicPartition
from kreassign.model.plan import PartitionAssignment, Plan
from kreassign.model.run import MoveStatus, RunHistory
from kreassign.operations.connect import connect
from kreassign.operations.plan_files import write_plan
from kreassign.operations.run_journals import status_or_problem
from testbed import ClusterSpec, KafkaCluster, Listener, Node, NodeFailed, Permission, Refused, Security
from testbed.processes import Finished, ProcessGroup
from testbed.properties import render
from testbed.proxy import Interference
from testbed.records import Ledger, load_topic
from testbed.releases import config_tool
from testbed.waiting import wait_until
from tests.real.run_processes import throttles
from tests.torture.small_disk import SmallDisk

BROKERS = 5
PARTITIONS = 12
FACTOR = 3
PARTITION_BYTES = 2_500_000
RECREATED_PARTITIONS = 2
RATE, LOW_RATE = "1MB/s", "150kB/s"
SMALL_LOG_DIR = "256m"
OPERATOR, LOGIN_S = "alice", 3.0
"""Who a run is that comes in by SASL, and for how long brokers believe its login."""
LOOKING = (Permission("DESCRIBE"), Permission("DESCRIBE", "TOPIC", "*"), Permission("READ", "GROUP", "*"))
CHANGING = (Permission("ALTER"), Permission("ALTER_CONFIGS"), Permission("ALTER_CONFIGS", "TOPIC", "*"),
            Permission("READ", "TOPIC", "*"))  # fmt: skip
IMPATIENT = {"default.api.timeout.ms": "15000", "request.timeout.ms": "10000"}
TOPIC, RECREATED, BYSTANDER = "moved", "recreated", "bystander"
AGAIN_S, TOOL_S = 5.0, 30.0
NOT_YET = (KreassignError, NodeFailed, Refused, OSError, EOFError, subprocess.SubprocessError)
_KREASSIGN = (sys.executable, "-m", "tests.torture.stepped_clock")


class MissedError(Exception):
    """There is nothing to strike now."""


def need(condition: object) -> None:
    """Raise MissedError where what a fault needs is not there."""
    if not condition:
        raise MissedError


@dataclass(slots=True)
class Scene:
    """One cluster for the whole campaign, and one run after the other. `run` is the process that goes on.

    `listener` is that by which the run comes to its brokers, `words` are those of its command, `rate` its throttle.
    `repairs` says what repairs the faults of this run, and when (by the monotonic clock); `untrue` collects, in
    sentences, what the run did or said that it must not, `needless` what was struck and need not be said. `lost` are
    brokers that do not come back before the run is over, some of them `unregistered`. `disk` is that of the state
    directory where it has one of its own, `broker_disk` that of a log dir of `small_broker`.
    """

    cluster: KafkaCluster
    chance: Random
    folder: Path
    group: ProcessGroup
    run: subprocess.Popen[str] | None = None
    targets: dict[TopicPartition, tuple[int, ...]] = field(default_factory=dict)
    repairs: list[tuple[float, Callable[[], object]]] = field(default_factory=list)
    untrue: list[str] = field(default_factory=list)
    lost: set[int] = field(default_factory=set)
    unregistered: set[int] = field(default_factory=set)
    begun_s: float = 0.0
    listener: Listener = Listener.PLAINTEXT
    words: tuple[object, ...] = ()
    rate: str = RATE
    needless: set[str] = field(default_factory=set)
    is_cancelled: bool = False
    was_held: bool = False
    interference: Interference | None = None
    disk: SmallDisk | None = None
    broker_disk: SmallDisk | None = None
    small_broker: Node | None = None

    @property
    def state_dir(self) -> Path:
        return self.folder / "state"

    @property
    def where(self) -> tuple[object, ...]:
        """The options of commands that say where the journal is and where the cluster."""
        return ("--state-dir", self.state_dir, "--bootstrap-server", self.cluster.bootstrap_servers)

    def set(self, folder: Path, listener: Listener) -> None:
        """Set the scene for the next run, whose files are kept in a folder."""
        folder.mkdir()
        self.folder, self.listener, self.rate, self.begun_s = folder, listener, RATE, time.monotonic()
        self.untrue, self.needless, self.is_cancelled, self.was_held = [], set(), False, False

    def tell(self, what: str) -> None:
        """Note what was done, and when since the beginning of this run, to look into a broken promise."""
        with (self.folder / "told.txt").open("a") as file:
            file.write(f"{time.monotonic() - self.begun_s:.1f} s: {what}\n")

    def interfere(self, interference: Interference | None) -> None:
        """Let the proxy do this to the connections of the run, or nothing."""
        assert self.cluster.proxy is not None
        self.interference = interference
        self.cluster.proxy.interfere(interference)

    def heal(self) -> None:
        """Start what is down, but for the brokers that are lost."""
        self.cluster.heal(without=self.lost)

    def nodes(self) -> list[Node]:
        """The running controllers and brokers."""
        nodes = (*self.cluster.controllers.values(), *self.cluster.brokers.values())
        return [node for node in nodes if node.is_running]

    def repair_after(self, seconds: float, repair: Callable[[], object]) -> None:
        """Repair a fault some seconds from now, when `repair_due` is called next."""
        self.repairs.append((time.monotonic() + seconds, repair))

    def repair_due(self) -> bool:
        """Repair what is due; whether nothing is left to repair."""
        now_s = time.monotonic()
        due = [repair for at_s, repair in self.repairs if at_s <= now_s]
        self.repairs = [each for each in self.repairs if each[0] > now_s]
        for repair in due:
            try:
                repair()
                self.tell("repaired")
            except NOT_YET as error:
                # A cluster without its controllers cannot be repaired in every way.
                self.tell(f"not repaired yet: {error}")
                self.repair_after(AGAIN_S, repair)
        return not self.repairs

    def repair_all(self) -> None:
        """Repair now whatever is left to repair, in any case."""
        left, self.repairs = self.repairs, []
        for _, repair in left:
            with suppress(*NOT_YET):
                repair()

    def allow(self, permissions: Iterable[Permission]) -> None:
        """Let the run's user do this besides."""
        for permission in permissions:
            self.cluster.allow(OPERATOR, permission)

    def tool(self, main_class: str, *words: object, command: str | None = None) -> Finished:
        """One of Kafka's own tools, of the release of the brokers; with what its first word must be, if anything."""
        servers = ",".join(node.address() for node in self.cluster.brokers.values() if node.id not in self.lost)
        version = self.cluster.brokers[0].version
        where = (*([command] if command else ()), "--bootstrap-server", servers)
        done = self.cluster.java_tool(main_class, *where, *map(str, words), version=version, timeout_s=TOOL_S)
        output = f"{done.stdout[-500:]} {done.stderr[-500:]}"
        self.tell(f"{main_class.rpartition('.')[2]} {words}: {done.exit_code} {output}")
        return done

    def alter_configs(self, *words: object) -> Finished:
        """`kafka-configs --alter`."""
        return self.tool(config_tool(self.cluster.brokers[0].version), "--alter", *words)

    def close(self) -> None:
        """Leave nothing stopped, spoiled or mounted."""
        if self.run is not None:
            self.run.kill()
            self.run.wait()
        self._close_output()
        self.repair_all()
        if self.disk is not None:
            self.disk.close()
        if self.broker_disk is not None:
            self.broker_disk.close(keep=False)
        self.group.close()

    def client(self) -> AdminClient:
        """A second operator's client, which does not wait for long: repairs are due meanwhile."""
        return connect(self.cluster.bootstrap_servers, IMPATIENT)

    def active_controller(self) -> int:
        settings = client_settings(bootstrap_controllers=self.cluster.bootstrap_controllers)
        with AdminClient.connect(settings) as client:
            return client.describe_cluster().controller_id

    def kreassign(self, command: str, *arguments: object, timeout_s: float = 120) -> Finished:
        """One of our commands, to its end."""
        done = self.group.run([*_KREASSIGN, command, *map(str, arguments)], timeout_s=timeout_s)
        self.tell(f"{command} {arguments}: {done.exit_code}, {done.stderr}")
        return done

    def start(self, command: str, *arguments: object) -> None:
        """`kreassign run` or `kreassign resume`, in the background."""
        self.tell(command)
        where = ("--state-dir", self.state_dir, "--bootstrap-server", self.cluster.bootstrap(self.listener))
        # A run that logs in is a user's; controllers of the testbed know no users.
        way_in: tuple[object, ...] = ("--bootstrap-controller", self.cluster.bootstrap_controllers)
        if self.listener is Listener.SASL_PLAINTEXT:
            own = self.folder / "client.properties"
            properties = self.cluster.client_properties(self.listener, user=OPERATOR, mechanism="SCRAM-SHA-256")
            own.write_text(render(properties))
            way_in = ("--command-config", own)
        words = (command, *arguments, *where, *way_in, "--format", "json")
        self._close_output()
        self.run = self.group.open([*_KREASSIGN, *map(str, words)])

    def _close_output(self) -> None:
        """Close what a process of a run that has ended wrote to."""
        if self.run is not None and self.run.poll() is not None:
            with self.run:
                pass

    def begin(self) -> None:
        self.start("run", "--yes", *self.words)

    def history(self, *, latest: bool = False) -> RunHistory | None:
        """History of the first run, or the `latest`, from its journal; None as long as none can be read."""
        try:
            journals = find_journals(self.state_dir)
            read = map(status_or_problem, reversed(journals) if latest else journals)
            return next((run for run in read if isinstance(run, RunHistory)), None)
        except (KreassignError, OSError, sqlite3.Error):
            return None

    def is_running(self) -> bool:
        return self.run is not None and self.run.poll() is None

    @property
    def process(self) -> subprocess.Popen[str]:
        """The process of the run, while it exists; MissedError once it does not."""
        need(self.is_running())
        assert self.run is not None
        return self.run

    def kill_run(self) -> None:
        """Kill the run, and wait until it is gone."""
        process = self.process
        process.kill()
        process.wait()

    def is_complete(self, partition: TopicPartition) -> bool:
        """True if the move is complete by the journal."""
        run = self.history()
        complete = (move for move in run.moves if move.status == MoveStatus.COMPLETE) if run else ()
        return partition in {TopicPartition(move.topic, move.partition) for move in complete}

    def moving(self, *, with_endless: bool = True) -> list[TopicPartition]:
        """The moves of this run in flight; perhaps without those that others overrode so that they never complete."""
        with self.client() as client:
            moves = client.list_partition_reassignments().items()
        return sorted(
            key for key, move in moves if key in self.targets and (with_endless or not move.can_never_complete)
        )

    def replicas(self, topic: str = TOPIC) -> dict[TopicPartition, tuple[int, ...]]:
        """The replicas of every partition of a topic."""
        with self.client() as client:
            (found,) = client.describe_topics([topic]).raise_if_any().values()
        return {each.topic_partition: each.replicas for each in found.partitions}

    def throttles(self) -> dict[str, str]:
        """Every throttle that is set on a topic or a broker, as `resource key` → value."""
        with self.client() as client:
            return throttles(client, (TOPIC, RECREATED, BYSTANDER), set(self.cluster.brokers) - self.lost)

    def plan(self) -> Path:
        """Draw new replicas for half of the partitions, and for the topic that may be recreated."""
        self.targets = {}
        present = self.replicas() | self.replicas(RECREATED)
        for partition, replicas in sorted(present.items()):
            if self.chance.random() < 0.5 or partition.topic == RECREATED:
                spare = self.chance.choice(sorted(set(self.cluster.brokers) - set(replicas)))
                place = self.chance.randrange(len(replicas))
                self.targets[partition] = (*replicas[:place], spare, *replicas[place + 1 :])
        return self._written("plan.json", self.targets)

    def small_plan(self) -> Path:
        """New replicas of one partition that is not part of the plan, on brokers that are not lost."""
        there, partition = sorted(set(self.cluster.brokers) - self.lost), TopicPartition(BYSTANDER, 0)
        others = ((*there[begin + 1 : begin + FACTOR], there[begin]) for begin in range(len(there) - FACTOR + 1))
        present = self.replicas(BYSTANDER)[partition]
        return self._written("small-plan.json", {partition: next(each for each in others if each != present)})

    def _written(self, name: str, targets: Mapping[TopicPartition, tuple[int, ...]]) -> Path:
        path = self.folder / name
        write_plan(path, Plan(tuple(PartitionAssignment(*pair) for pair in targets.items())), None)
        return path


def opened(cluster: KafkaCluster, chance: Random, folder: Path, *, with_small_log_dir: bool) -> tuple[Scene, Ledger]:
    """Make the topics, with records in each; those of the topic that is moved are in the ledger."""
    scene = Scene(cluster, chance, folder, ProcessGroup())
    if with_small_log_dir:
        scene.small_broker = node = cluster.brokers[max(cluster.brokers)]
        node.stop()
        scene.broker_disk = SmallDisk(node.log_dirs[-1], SMALL_LOG_DIR)
        node.start()
    scene.allow(LOOKING)
    scene.allow(CHANGING)
    topics = {TOPIC: PARTITIONS, RECREATED: RECREATED_PARTITIONS, BYSTANDER: 2}
    with scene.client() as client:
        configs = {"min.insync.replicas": "2"}
        new = [NewTopic(name, assignments=first_replicas(count), configs=configs) for name, count in topics.items()]
        client.create_topics(new).raise_if_any()
        wait_until(lambda: topics.keys() <= set(client.list_topics()), timeout_s=30, what="topics")
    loaded = {
        name: load_topic(cluster.bootstrap_servers, name, dict.fromkeys(range(count), PARTITION_BYTES))
        for name, count in topics.items()
    }
    _make_offsets_topic(cluster)
    return scene, loaded[TOPIC]


def _make_offsets_topic(cluster: KafkaCluster) -> None:
    """Make the offsets topic like the first consumer of a cluster: without it runs have no lease."""
    consumer = KafkaConsumer(
        BYSTANDER, bootstrap_servers=cluster.bootstrap_servers, group_id="torture", metrics_enabled=False
    )
    try:
        wait_until(lambda: bool(consumer.poll(200) or consumer.assignment()), timeout_s=60, what="a consumer")
    finally:
        consumer.close()


def first_replicas(count: int) -> tuple[tuple[int, ...], ...]:
    """First replicas of a topic of so many partitions."""
    return tuple(tuple((number + step) % BROKERS for step in range(FACTOR)) for number in range(count))


def spec(version: str) -> ClusterSpec:
    """Five brokers and three controllers; runs reach brokers, and brokers each other, through proxies."""
    relogin = {"listener.name.sasl_plaintext.scram-sha-256.connections.max.reauth.ms": f"{LOGIN_S * 1000:.0f}"}
    return ClusterSpec(
        version=version, brokers=BROKERS, controllers=3, security=Security.SECURE, is_proxied=True, has_links=True,
        broker_config=relogin,
    )  # fmt: skip
