"""Our run beside Kafka's own tool on real brokers that are at work: time, what producers feel, what is left behind.

Five brokers of one machine; one topic, whose second replicas all move on by one broker, and back in the next way.
Kafka's tool is used as well as it can be: `--verify`, which takes its throttle away, is called the moment that nothing
moves any more. What brokers show is looked at twice a second by the same client in every way.
"""

from __future__ import annotations

import random
import sys
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from types import TracebackType
from typing import Self

from bench.live_traffic import LiveTraffic
from bench.process import KREASSIGN, run
from kreassign.admin import AdminClient, client_settings
from kreassign.model import ConfigResource, TopicPartition
from kreassign.model.plan import PartitionAssignment, Plan, format_plan
from kreassign.model.throttle import BROKER_THROTTLES, FOLLOWER_THROTTLED_REPLICAS, TOPIC_THROTTLES
from testbed import ClusterSpec, KafkaCluster
from testbed.records import load_topic
from testbed.waiting import wait_until

JAVA_TOOL = "org.apache.kafka.tools.reassign.ReassignPartitionsCommand"
BROKERS, PARTITIONS = 5, 40
MEAN_BYTES = 50_000_000
THROTTLE = 20_000_000
ROUNDS = 3
RECORDS_PER_S, RECORD_BYTES = 200.0, 5_000
TOPIC = "moved"
LOOK_S = 0.5
CALM_S = 13.0
"""Before each way: quotas look back eleven windows of one second."""
LONGEST_S = 240.0


@dataclass(frozen=True, slots=True)
class Way:
    """A way to execute a plan; without a command nothing is moved."""

    name: str
    command: Callable[[KafkaCluster, Path], tuple[str, ...]] | None = None
    ends_with: str = ""


def _ours(*options: str) -> Callable[[KafkaCluster, Path], tuple[str, ...]]:
    def command(cluster: KafkaCluster, plan: Path) -> tuple[str, ...]:
        state = ("--measure-for", "0", "--state-dir", str(plan.parent / "state"))
        return (
            *KREASSIGN,
            "run",
            str(plan),
            "--yes",
            *options,
            *state,
            "--bootstrap-server",
            cluster.bootstrap_servers,
        )

    return command


def _theirs(*options: str) -> Callable[[KafkaCluster, Path], tuple[str, ...]]:
    def command(cluster: KafkaCluster, plan: Path) -> tuple[str, ...]:
        where = ("--bootstrap-server", cluster.bootstrap_servers, "--reassignment-json-file", str(plan))
        return cluster.java_command(JAVA_TOOL, *where, *options)

    return command


WAYS = (
    Way("nothing moves"),
    Way("ours, 20 MB/s", _ours("--throttle", "20MB/s")),
    Way("Kafka's tool, 20 MB/s", _theirs("--execute", "--throttle", str(THROTTLE)), "--verify"),
    Way("ours, no throttle", _ours()),
    Way("Kafka's tool, no throttle", _theirs("--execute"), "--verify"),
)


@dataclass(slots=True)
class Felt:
    """Duration of one way, and the load on brokers and producers. Seconds, milliseconds, entries."""

    moved_s: float = 0.0
    over_s: float = 0.0
    median_ms: float = 0.0
    p99_ms: float = 0.0
    moving: float = 0.0
    under_replicated: float = 0.0
    slowed_in_sync: float = 0.0
    left_behind: int = 0
    tool_cpu_s: float = 0.0


@dataclass(slots=True)
class Observer:
    """Looks at the cluster while a way goes on, inside a `with` block; sums are partitions × seconds."""

    client: AdminClient
    felt: Felt = field(default_factory=Felt)
    has_begun: bool = False
    ended_s: float | None = None
    _stop: threading.Event = field(default_factory=threading.Event)
    _thread: threading.Thread | None = None

    def __enter__(self) -> Self:
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._stop.set()
        if self._thread is not None:
            self._thread.join(LONGEST_S)

    def _watch(self) -> None:
        before_s = time.monotonic()
        while not self._stop.wait(LOOK_S):
            now_s = time.monotonic()
            self._look(now_s, now_s - before_s)
            before_s = now_s

    def _look(self, now_s: float, seconds: float) -> None:
        ongoing = self.client.list_partition_reassignments(None)
        (topic,) = self.client.describe_topics([TOPIC]).raise_if_any().values()
        in_sync = {each.topic_partition: set(each.isr) for each in topic.partitions}
        had = {each.topic_partition: set(each.replicas) for each in topic.partitions}
        begun = self.client.list_partition_reassignments(None)
        for name, move in (*ongoing.items(), *begun.items()):
            had[name] -= set(move.adding)
        self.felt.moving += seconds * len(ongoing)
        self.felt.under_replicated += seconds * sum(bool(had[name] - in_sync[name]) for name in had)
        self.felt.slowed_in_sync += seconds * sum(broker in in_sync[name] for name, broker in self._slowed())
        if ongoing:
            self.has_begun, self.ended_s = True, None
        elif self.has_begun and self.ended_s is None:
            self.ended_s = now_s

    def _slowed(self) -> list[tuple[TopicPartition, int]]:
        """Followers that are listed as throttled."""
        resource = ConfigResource.topic(TOPIC)
        found = self.client.describe_configs([resource], names=[FOLLOWER_THROTTLED_REPLICAS]).raise_if_any()
        entry = found[resource].get(FOLLOWER_THROTTLED_REPLICAS)
        pairs = (each.split(":") for each in ((entry.value if entry else "") or "").split(",") if each)
        return [(TopicPartition(TOPIC, int(partition)), int(broker)) for partition, broker in pairs]


def measure() -> None:
    """Print one row per way: the median of the rounds, least and most."""
    lists = [_lists(number) for number in range(PARTITIONS)]
    chance = random.Random(0)
    sizes = {number: int(MEAN_BYTES * chance.lognormvariate(-0.3, 0.8)) for number in range(PARTITIONS)}
    print(f"{BROKERS} brokers, {PARTITIONS} moves, {sum(sizes.values()) / 1e9:.2f} GB, {ROUNDS} rounds\n")
    found: dict[str, list[Felt]] = defaultdict(list)
    with KafkaCluster.start(ClusterSpec(brokers=BROKERS)) as cluster:
        cluster.create_topic(TOPIC, [list(before) for before, _ in lists])
        load_topic(cluster.bootstrap_servers, TOPIC, sizes)
        settings = client_settings(bootstrap_servers=cluster.bootstrap_servers)
        with AdminClient.connect(settings) as client:
            _warm(cluster)
            for _ in range(ROUNDS):
                for way in WAYS:
                    found[way.name].append(_felt(cluster, client, way, lists))
                    print(way.name, found[way.name][-1], file=sys.stderr, flush=True)
    _print(found)


def _lists(number: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Replicas there and, after the plan, there: leaders stay."""
    leader, step = number % BROKERS, 1 + number // BROKERS % (BROKERS - 1)
    others = [(leader + one) % BROKERS for one in range(1, BROKERS)]
    return (leader, others[step - 1]), (leader, others[step % len(others)])


def _warm(cluster: KafkaCluster) -> None:
    """So that no way pays for compiled code of another, nor producers for that of the brokers."""
    with LiveTraffic(cluster.bootstrap_servers, TOPIC, PARTITIONS, RECORDS_PER_S, RECORD_BYTES):
        time.sleep(CALM_S)


def _felt(
    cluster: KafkaCluster, client: AdminClient, way: Way, lists: list[tuple[tuple[int, ...], tuple[int, ...]]]
) -> Felt:
    time.sleep(CALM_S)
    plan = cluster.folder / "plan.json"
    plan.write_text(format_plan(_plan(client, lists)))
    observer = Observer(client)
    with LiveTraffic(cluster.bootstrap_servers, TOPIC, PARTITIONS, RECORDS_PER_S, RECORD_BYTES) as traffic, observer:
        begun_s = time.monotonic()
        _execute(cluster, way, plan, observer)
        observer.felt.over_s = time.monotonic() - begun_s
    observer.felt.moved_s = (observer.ended_s or begun_s) - begun_s
    observer.felt.median_ms, observer.felt.p99_ms = traffic.percentiles_ms()
    if traffic.failures or not traffic.read:
        raise RuntimeError(f"{way.name}: {traffic.failures} records were refused, {traffic.read} read")
    return observer.felt


def _plan(client: AdminClient, lists: list[tuple[tuple[int, ...], tuple[int, ...]]]) -> Plan:
    """There, or back again, by where the first partition is."""
    (topic,) = client.describe_topics([TOPIC]).raise_if_any().values()
    first = next(each for each in topic.partitions if each.topic_partition.partition == 0)
    side = 1 if first.replicas == lists[0][0] else 0
    assignments = (PartitionAssignment(TopicPartition(TOPIC, number), pair[side]) for number, pair in enumerate(lists))
    return Plan(tuple(assignments))


def _execute(cluster: KafkaCluster, way: Way, plan: Path, observer: Observer) -> None:
    if way.command is None:
        time.sleep(CALM_S)
        return
    observer.felt.tool_cpu_s += run(way.command(cluster, plan)).cpu_s
    wait_until(lambda: observer.ended_s is not None, timeout_s=LONGEST_S, what="the end of the moves")
    observer.felt.left_behind = _left_behind(observer.client)
    if way.ends_with:
        observer.felt.tool_cpu_s += run(_theirs(way.ends_with)(cluster, plan)).cpu_s


def _left_behind(client: AdminClient) -> int:
    """Entries of throttles on the topic's lists and on brokers, now that nothing moves."""
    resources = [ConfigResource.topic(TOPIC), *map(ConfigResource.broker, range(BROKERS))]
    found = client.describe_configs(resources, names=(*TOPIC_THROTTLES, *BROKER_THROTTLES)).raise_if_any()
    entries = [entry for each in found.values() for entry in each.values() if entry.source.name.startswith("DYNAMIC")]
    return sum(len((entry.value or "").split(",")) for entry in entries)


def _print(found: Mapping[str, list[Felt]]) -> None:
    print(
        "| way | moves over, s | throttle gone, s | producers p50 ms | p99 ms | moving, partition·s | under-replicated "
        "| throttled in sync, replica·s | entries left | CPU s of the tool |"
    )
    print("|" + "---|" * 10)
    for name, rounds in found.items():
        cells = [_spread([float(getattr(each, key)) for each in rounds]) for key in Felt.__slots__]
        print(f"| {name} | {' | '.join(cells)} |")


def _spread(values: list[float]) -> str:
    digits = 0 if max(values) >= 100 else 1
    low, middle, high = (f"{value:.{digits}f}" for value in (min(values), median(values), max(values)))
    return middle if low == high else f"{middle} ({low}–{high})"
