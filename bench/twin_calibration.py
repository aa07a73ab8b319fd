"""Accuracy of a twin's ends of moves: the same throttled plans on four real brokers and on a twin of them.

One client executes each plan on both clusters in the same way. The twin learns how many bytes are in each partition
and what is written to it; all else it has from its own settings. The moves of one plan are compared one by one.
"""

from __future__ import annotations

import statistics
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass, replace

from kreassign.admin import AdminClient, client_settings
from kreassign.clock import Clock, SystemClock
from kreassign.model import TopicPartition
from kreassign.model.throttle import (
    clear_broker_changes,
    clear_topic_changes,
    involved_brokers,
    move_map,
    rate_changes,
    topic_changes,
)
from kreassign.twin.blueprint import PartitionPlan, TopicPlan, small_cluster
from kreassign.twin.cluster import Twin
from kreassign.twin.core import TwinSettings
from kreassign.twin.replication.hardware import ReplicationSettings
from kreassign.twin.replication.partition_logs import Traffic
from kreassign.twin.transport import TwinTransport
from testbed import ClusterSpec, KafkaCluster
from testbed.producing import Producing
from testbed.records import load_topic

MEGABYTE = 1_000_000
BROKERS = 4
LOOK_S = 0.1
RECORD_BYTES = (5_000, 20_000)
BATCH_BYTES = 64_000
LONGEST_S = 300.0
# A quota looks back eleven windows of one second: so long until nothing is left of the case before.
FORGOTTEN_S = 13.0


# --- throttled plans that differ in what bounds them ---------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Partition:
    """One partition: where it is, where it goes, and how much is in it."""

    before: tuple[int, ...]
    target: tuple[int, ...]
    size_bytes: int


@dataclass(frozen=True, slots=True)
class Case:
    """One topic and its plan. `writes_per_s` records of `record_bytes` bytes are written to it in turn meanwhile."""

    name: str
    throttle_bytes_per_s: int
    partitions: tuple[Partition, ...]
    writes_per_s: float = 0.0
    record_bytes: int = 10_000

    @property
    def topic(self) -> str:
        """The name of the topic."""
        return self.name.replace(" ", "-")

    @property
    def targets(self) -> Mapping[TopicPartition, tuple[int, ...]]:
        """The plan."""
        return {TopicPartition(self.topic, number): each.target for number, each in enumerate(self.partitions)}

    @property
    def moved_bytes(self) -> int:
        """Bytes to copy, without those written meanwhile."""
        return sum(each.size_bytes * len(set(each.target) - set(each.before)) for each in self.partitions)


def _each(count: int, megabytes: int, *moves: tuple[tuple[int, ...], tuple[int, ...]]) -> tuple[Partition, ...]:
    """Partitions of one size that take these moves in turn."""
    return tuple(Partition(*moves[number % len(moves)], megabytes * MEGABYTE) for number in range(count))


def _uneven() -> tuple[Partition, ...]:
    sizes = (4, 60, 12, 30, 8, 45, 20, 6, 36, 15, 24, 50)
    return tuple(
        Partition((number % BROKERS,), ((number + 1 + number // BROKERS) % BROKERS,), size * MEGABYTE)
        for number, size in enumerate(sizes)
    )


CASES: tuple[Case, ...] = (
    Case("few big", 5 * MEGABYTE, _each(3, 150, ((0,), (1,)), ((1,), (2,)), ((2,), (3,)))),
    Case("many small", 16 * MEGABYTE, _each(42, 12, ((0,), (3,)), ((1,), (3,)), ((2,), (3,)))),
    Case("uneven", 5 * MEGABYTE, _uneven()),
    Case("leader bound", 8 * MEGABYTE, _each(9, 30, ((0,), (1,)), ((0,), (2,)), ((0,), (3,)))),
    Case("follower bound", 8 * MEGABYTE, _each(9, 30, ((0,), (3,)), ((1,), (3,)), ((2,), (3,)))),
    Case("factor increase", 10 * MEGABYTE, _each(6, 40, ((0,), (0, 1, 2)), ((1,), (1, 2, 3)))),
    Case("live producers", 8 * MEGABYTE, _each(6, 40, ((0, 1), (2, 3)), ((1, 0), (1, 2))), writes_per_s=100),
    Case("higher rate", 20 * MEGABYTE, _each(8, 60, ((0,), (2,)), ((1,), (2,)), ((0,), (3,)), ((1,), (3,)))),
)


# --- both clusters --------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Compared:
    """One case: when each move ended after the plan was submitted, seconds."""

    case: Case
    measured_s: Mapping[TopicPartition, float]
    predicted_s: Mapping[TopicPartition, float]

    @property
    def errors(self) -> list[float]:
        """By how much each prediction is off, as a part of what was measured."""
        return [abs(self.predicted_s[key] / measured - 1) for key, measured in self.measured_s.items()]

    @property
    def total_error(self) -> float:
        """By how much the end of the whole plan was predicted too late, as a part of what was measured."""
        return max(self.predicted_s.values()) / max(self.measured_s.values()) - 1


def measure() -> None:
    """Print the table."""
    print(f"Kafka 4.3.1, {BROKERS} brokers; looked every {LOOK_S:g} s\n")
    print("| plan | throttle MB/s | moves | copied MB | measured s | predicted s | total | median of moves | worst |")
    print("|---|---|---|---|---|---|---|---|---|")
    found = []
    with KafkaCluster.start(ClusterSpec(brokers=BROKERS)) as cluster:
        for case in CASES:
            found.append(_compare(cluster, case))
            print(_row(found[-1]), flush=True)
    every = [error for each in found for error in each.errors]
    totals = [abs(each.total_error) for each in found]
    print(
        f"\nAll {len(every)} moves: median error {statistics.median(every):.1%}, nine in ten within "
        f"{statistics.quantiles(every, n=10)[-1]:.1%}. Totals: median {statistics.median(totals):.1%}, "
        f"worst {max(totals):.1%}."
    )


def _row(each: Compared) -> str:
    case = each.case
    cells = (
        case.name,
        f"{case.throttle_bytes_per_s / MEGABYTE:g}",
        len(each.measured_s),
        f"{case.moved_bytes / MEGABYTE:.0f}",
        f"{max(each.measured_s.values()):.1f}",
        f"{max(each.predicted_s.values()):.1f}",
        f"{each.total_error:+.1%}",
        f"{statistics.median(each.errors):.1%}",
        f"{max(each.errors):.1%}",
    )
    return f"| {' | '.join(map(str, cells))} |"


def _compare(cluster: KafkaCluster, case: Case) -> Compared:
    clock = SystemClock()
    settings = client_settings(bootstrap_servers=cluster.bootstrap_servers)
    with AdminClient.connect(settings) as admin, ExitStack() as while_moving:
        started = clock.monotonic_s()
        _create(cluster, case)
        clock.sleep(FORGOTTEN_S - (clock.monotonic_s() - started))
        sizes = _sizes(admin, case)
        if case.writes_per_s:
            while_moving.enter_context(_producing(cluster, case))
        measured = execute(admin, clock, case)
        while_moving.close()
        admin.delete_topics([case.topic]).raise_if_any()
    return Compared(case, measured, predict(case, sizes))


def _create(cluster: KafkaCluster, case: Case) -> None:
    before = [list(each.before) for each in case.partitions]
    cluster.create_topic(case.topic, before)
    load_topic(
        cluster.bootstrap_servers,
        case.topic,
        {number: each.size_bytes for number, each in enumerate(case.partitions)},
        value_bytes=RECORD_BYTES,
        batch_bytes=BATCH_BYTES,
    )


def _producing(cluster: KafkaCluster, case: Case) -> Producing:
    return Producing(
        cluster.bootstrap_servers,
        case.topic,
        partitions=len(case.partitions),
        records_per_s=case.writes_per_s,
        value_bytes=case.record_bytes,
    )


def _sizes(admin: AdminClient, case: Case) -> dict[TopicPartition, int]:
    """Bytes that each partition takes on disk, which is more than was written to it."""
    held: dict[TopicPartition, int] = {}
    for log_dirs in admin.describe_log_dirs().raise_if_any().values():
        for replica in (replica for log_dir in log_dirs for replica in log_dir.replicas):
            held[replica.topic_partition] = max(replica.size_bytes, held.get(replica.topic_partition, 0))
    return {key: held[key] for key in case.targets}


def execute(admin: AdminClient, clock: Clock, case: Case) -> dict[TopicPartition, float]:
    """Throttle and submit the plan as Kafka's tool does, look until nothing moves; when each move ended, seconds."""
    current = {key: case.partitions[key.partition].before for key in case.targets}
    moves = move_map({}, case.targets, current)
    brokers = involved_brokers(moves)
    throttle = topic_changes(moves) | rate_changes(brokers, case.throttle_bytes_per_s)
    admin.incremental_alter_configs(throttle).raise_if_any()
    started = clock.monotonic_s()
    admin.alter_partition_reassignments(case.targets).raise_if_any()
    ends: dict[TopicPartition, float] = {}
    while len(ends) < len(case.targets):
        clock.sleep(LOOK_S)
        moving = admin.list_partition_reassignments()
        now = clock.monotonic_s() - started
        ends |= {key: now for key in case.targets if key not in moving and key not in ends}
        if now > LONGEST_S:
            raise TimeoutError(f"{case.name}: {sorted(map(str, moving))} still moving after {LONGEST_S:g} s")
    admin.incremental_alter_configs(clear_topic_changes([case.topic]) | clear_broker_changes(brokers)).raise_if_any()
    return ends


def predict(case: Case, sizes: Mapping[TopicPartition, int]) -> dict[TopicPartition, float]:
    """Prediction of a twin with so many bytes in each partition."""
    written = case.writes_per_s * case.record_bytes / len(case.partitions)
    plans = tuple(
        PartitionPlan(
            each.before, Traffic(sizes[TopicPartition(case.topic, number)], written, float(case.record_bytes))
        )
        for number, each in enumerate(case.partitions)
    )
    blueprint = replace(small_cluster(BROKERS, racks=("a", "b", "c")), topics=(TopicPlan(case.topic, plans),))
    twin = Twin(blueprint, TwinSettings(replication=ReplicationSettings(batch_bytes=BATCH_BYTES)))
    transport = TwinTransport(twin)
    address = blueprint.brokers[0].registered_address
    settings = client_settings(bootstrap_servers=f"{address.host}:{address.port}")
    with AdminClient.connect(settings, clock=transport, transport=transport) as admin:
        return execute(admin, transport, case)
