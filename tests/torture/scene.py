"""Real Kafka with one topic under a checked producer, and a run on it: what faults act upon."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

from click.testing import CliRunner

from kreassign.admin import AdminClient, client_settings
from kreassign.cli.main import kreassign
from kreassign.model import NewTopic, TopicPartition
from kreassign.model.plan import PartitionAssignment, Plan
from kreassign.operations.connect import connect
from kreassign.operations.plan_files import write_plan
from testbed import ClusterSpec, KafkaCluster, Listener
from testbed.processes import Finished, ProcessGroup
from testbed.proxy import Interference
from testbed.records import load_topic
from testbed.waiting import wait_until
from tests.real.run_processes import throttles
from tests.torture.small_disk import SmallDisk

BROKERS = 5
PARTITIONS = 12
FACTOR = 3
PARTITION_BYTES = 2_500_000
RATE = "2MB/s"
RECORDS_PER_S, RECORD_BYTES = 20.0, 2_000
IMPATIENT = {"default.api.timeout.ms": "15000", "request.timeout.ms": "10000"}
TOPIC, RECREATED, BYSTANDER = "moved", "recreated", "bystander"
_KREASSIGN = (sys.executable, "-m", "tests.torture.stepped_clock")


@dataclass(slots=True)
class Scene:
    """One cluster for the whole campaign. `run` is the run that goes on.

    `repairs` says what repairs the faults of this leg, and when (by the monotonic clock); `untrue` collects, in
    sentences, what the run did or told that it must not. `lost` are brokers that do not come back before the run is
    over, some of them `unregistered`. `disk` is that of the state directory where it has one of its own.
    """

    cluster: KafkaCluster
    chance: Random
    folder: Path
    group: ProcessGroup
    run: subprocess.Popen[str] | None = None
    run_id: str | None = None
    targets: dict[TopicPartition, tuple[int, ...]] = field(default_factory=dict)
    repairs: list[tuple[float, Callable[[], object]]] = field(default_factory=list)
    untrue: list[str] = field(default_factory=list)
    lost: set[int] = field(default_factory=set)
    unregistered: set[int] = field(default_factory=set)
    begun_s: float = 0.0
    is_proxied: bool = False
    is_cancelled: bool = False
    interference: Interference | None = None
    disk: SmallDisk | None = None

    @property
    def state_dir(self) -> Path:
        """Where the run of this leg has its journal."""
        return self.folder / "state"

    def tell(self, what: str) -> None:
        """Note what was done, and when since the beginning of this leg, for whoever looks into a broken promise."""
        with (self.folder / "told.txt").open("a") as told:
            told.write(f"{time.monotonic() - self.begun_s:.1f} s: {what}\n")

    def interfere(self, interference: Interference | None) -> None:
        """Let the proxy do this to the connections of the run, or nothing."""
        assert self.cluster.proxy is not None
        self.interference = interference
        self.cluster.proxy.interfere(interference)

    def heal(self) -> None:
        """Start what is down, but for the brokers that are lost."""
        self.cluster.heal(without=self.lost)

    def repair_after(self, seconds: float, repair: Callable[[], object]) -> None:
        """Repair a fault some seconds from now, when `repair_due` is called next."""
        self.repairs.append((time.monotonic() + seconds, repair))

    def repair_due(self) -> bool:
        """Repair what is due; whether nothing is left to repair."""
        now_s = time.monotonic()
        due = [repair for at_s, repair in self.repairs if at_s <= now_s]
        self.repairs = [each for each in self.repairs if each[0] > now_s]
        for repair in due:
            repair()
            self.tell("repaired")
        return not self.repairs

    def client(self) -> AdminClient:
        """A second operator's client, which does not wait for long: repairs are due meanwhile."""
        return connect(self.cluster.bootstrap_servers, IMPATIENT)

    def controller(self) -> int:
        """The id of the active KRaft controller."""
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
        servers = self.cluster.bootstrap(Listener.PROXIED if self.is_proxied else Listener.PLAINTEXT)
        where = ("--state-dir", str(self.state_dir), "--bootstrap-server", servers)
        controllers = ("--bootstrap-controller", self.cluster.bootstrap_controllers, "--format", "json")
        self.run = self.group.open([*_KREASSIGN, command, *map(str, arguments), *where, *controllers])

    def status(self) -> dict[str, Any] | None:
        """What the journal tells of the run, None as long as there is none that can be read."""
        words = ["status", "--all", "--state-dir", str(self.state_dir), "--format", "json"]
        result = CliRunner().invoke(kreassign, words)
        runs = json.loads(result.stdout)["runs"] if result.exit_code == 0 else []
        if runs:
            self.run_id = runs[0]["run_id"]
        return runs[0] if runs else None

    def is_running(self) -> bool:
        """Whether the run's process exists."""
        return self.run is not None and self.run.poll() is None

    def moving(self) -> list[TopicPartition]:
        """The moves of this run that are in flight."""
        with self.client() as client:
            return sorted(set(client.list_partition_reassignments()) & set(self.targets))

    def endless(self) -> list[TopicPartition]:
        """Those of them that others overrode in a way in which Kafka never completes them."""
        with self.client() as client:
            ongoing = client.list_partition_reassignments()
        return sorted(name for name, move in ongoing.items() if name in self.targets and move.can_never_complete)

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
        there = sorted(set(self.cluster.brokers) - self.lost)
        return self._written("small-plan.json", {TopicPartition(BYSTANDER, 0): (*there[1:FACTOR], there[0])})

    def _written(self, name: str, targets: Mapping[TopicPartition, tuple[int, ...]]) -> Path:
        path = self.folder / name
        write_plan(path, Plan(tuple(PartitionAssignment(*pair) for pair in targets.items())))
        return path


def opened(cluster: KafkaCluster, chance: Random, folder: Path) -> Scene:
    """Make the topics, with records in each."""
    scene = Scene(cluster, chance, folder, ProcessGroup())
    topics = {TOPIC: PARTITIONS, RECREATED: 2, BYSTANDER: 2}
    with scene.client() as client:
        client.create_topics([_topic(*each) for each in topics.items()]).raise_if_any()
        wait_until(lambda: topics.keys() <= set(client.list_topics()), timeout_s=30, what="topics")
    for name, count in topics.items():
        load_topic(cluster.bootstrap_servers, name, dict.fromkeys(range(count), PARTITION_BYTES))
    return scene


def _topic(name: str, count: int) -> NewTopic:
    lists = tuple(tuple((number + step) % BROKERS for step in range(FACTOR)) for number in range(count))
    return NewTopic(name, assignments=lists, configs={"min.insync.replicas": "2"})


def recreate(client: AdminClient) -> None:
    """Delete the topic that may be recreated, and make it again with the same replicas."""
    client.delete_topics([RECREATED]).raise_if_any()
    wait_until(lambda: RECREATED not in client.list_topics(), timeout_s=60, what=f"{RECREATED} deleted")
    wait_until(
        lambda: not client.create_topics([_topic(RECREATED, 2)]).failed, timeout_s=60, what=f"{RECREATED} created again"
    )


def spec() -> ClusterSpec:
    """Five brokers behind a proxy, and three controllers."""
    return ClusterSpec(brokers=BROKERS, controllers=3, is_proxied=True)
