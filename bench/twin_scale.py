"""Limits of a twin: its size, and how fast its time passes in a day of moves at four sizes.

Each size runs in a process of its own, so that its memory can be measured. Controller, metadata and replication are
all in it; the wire protocol is not. Seconds are those of the processor, which other work on the machine does not
lengthen. Moves are throttled so that together they take about a day, a fixed number is in flight at a time, and every
partition is written to, so that each end of a move changes what others get.
"""

from __future__ import annotations

import json
import random
import resource
import sys
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass

from bench.process import run
from kreassign.model import TopicPartition
from kreassign.model.throttle import move_map, rate_changes, topic_changes
from kreassign.twin.controller.decision import ControllerContext
from kreassign.twin.controller.leader_and_isr import propose_isr
from kreassign.twin.controller.reassignments import AlterReassignments, Target, TopicTargets, alter_reassignments
from kreassign.twin.metadata import (
    BrokerRegistered,
    BrokerUnfenced,
    ClusterMetadata,
    ConfigChanged,
    LogDirInfo,
    PartitionCreated,
    PartitionState,
    Record,
    TopicCreated,
)
from kreassign.twin.replication.hardware import BrokerHardware, LogDirHardware
from kreassign.twin.replication.partition_logs import Traffic
from kreassign.twin.replication.replication import Replication
from kreassign.twin.replication.state import ReplicaCaughtUp, ReplicaEvent

SIZES = (6_000, 60_000, 300_000, 1_000_000)
REPLICATION_FACTOR = 3
PARTITIONS_PER_TOPIC = 100
REPLICAS_PER_BROKER = 3_333
MOVES = 10_000
IN_FLIGHT = 300
MEAN_BYTES = 10_000_000_000
WRITTEN_BYTES_PER_S = 10_000
THROTTLED_FOR_S = 115_000
"""How long the moves would take if every broker were busy all the time: more than a day, for they are not."""
SEED = 7


@dataclass(frozen=True, slots=True)
class Measured:
    """One size: what it is, what it took to start, and what a day of moves took."""

    replicas: int
    brokers: int
    start_s: float
    start_mib: float
    moves: int
    virtual_h: float
    real_s: float
    peak_mib: float


def measure() -> None:
    """Print the table."""
    print(f"{IN_FLIGHT} moves in flight, controller included, protocol not; seconds of the processor; seed {SEED}\n")
    print("| replicas | brokers | start-up s | MiB after it | moves | simulated h | took s | h per s | peak MiB |")
    print("|---|---|---|---|---|---|---|---|---|")
    for size in SIZES:
        finished = run([sys.executable, "-m", "bench.twin_scale", str(size)])
        found = Measured(**json.loads(finished.output))
        print(
            f"| {found.replicas:,} | {found.brokers} | {found.start_s:.1f} | {found.start_mib:.0f} | {found.moves:,} "
            f"| {found.virtual_h:.1f} | {found.real_s:.1f} | {found.virtual_h / found.real_s:.2f} "
            f"| {finished.peak_mib:.0f} |",
            flush=True,
        )


def main() -> None:
    """Measure one size, given as the only argument, and write the result as JSON."""
    replicas = int(sys.argv[1])
    brokers = max(6, replicas // REPLICAS_PER_BROKER)
    chance = random.Random(SEED)
    started = time.process_time()
    day = Day(replicas // REPLICATION_FACTOR, brokers, chance)
    start_s, start_mib = time.process_time() - started, _peak_mib()
    started = time.process_time()
    moves = day.live()
    real_s = time.process_time() - started
    measured = Measured(
        replicas, brokers, start_s, start_mib, moves, day.replication.now_ms / 3_600_000, real_s, _peak_mib()
    )
    print(json.dumps(asdict(measured)))


class Day:
    """A cluster of equal brokers, and a plan that replaces one replica of many partitions."""

    def __init__(self, partitions: int, brokers: int, chance: random.Random) -> None:
        self._brokers = brokers
        self._chance = chance
        self.metadata = ClusterMetadata()
        self.replication = Replication(dict.fromkeys(range(brokers), _hardware()))
        for record in _log(partitions, brokers):
            self.metadata.apply(record)
        keys = [state.topic_partition for topic in self.metadata.topics.values() for state in topic.partitions.values()]
        sizes = [Traffic(round(chance.lognormvariate(0, 0.7) * MEAN_BYTES), WRITTEN_BYTES_PER_S) for _ in range(100)]
        self.replication.load(self.metadata, dict(zip(keys, chance.choices(sizes, k=len(keys)), strict=True)))
        chosen = chance.sample(keys, min(MOVES, len(keys) // 2))
        self._waiting = [(key, self._target(self._state(key))) for key in chosen]
        self._throttle(len(chosen))

    def live(self) -> int:
        """Execute the plan, as many moves at a time as may be in flight; how many there were."""
        moves = len(self._waiting)
        for _ in range(IN_FLIGHT):
            self._begin_next()
        while self.metadata.reassigning:
            for event in self.replication.advance(self.replication.now_ms + THROTTLED_FOR_S * 1000):
                self._answer(event)
        return moves

    def _target(self, partition: PartitionState) -> tuple[int, ...]:
        others = [broker for broker in range(self._brokers) if broker not in partition.replicas]
        return (*partition.replicas[:-1], self._chance.choice(others))

    def _throttle(self, moves: int) -> None:
        """Throttle as Kafka's tool does. Few moves for many brokers leave most of each budget unused."""
        busy = min(0.75, IN_FLIGHT / self._brokers / 4)
        rate = round(moves * MEAN_BYTES / THROTTLED_FOR_S / self._brokers / busy)
        plan = dict(self._waiting)
        current = {key: self._state(key).replicas for key in plan}
        changes = topic_changes(move_map({}, plan, current)) | rate_changes(range(self._brokers), rate)
        for owner, steps in changes.items():
            for step in steps:
                self._write(ConfigChanged(owner, step.name, step.value))

    def _begin_next(self) -> None:
        if self._waiting:
            (topic, partition), target = self._waiting.pop()
            command = AlterReassignments((TopicTargets(topic, (Target(partition, target),)),))
            self._write(*alter_reassignments(ControllerContext(self.metadata), command).records)

    def _answer(self, event: ReplicaEvent) -> None:
        if isinstance(event, ReplicaCaughtUp):
            self._join(self._state(event.topic_partition), event.broker)
            if event.topic_partition not in self.metadata.reassigning:
                self._begin_next()

    def _join(self, partition: PartitionState, broker: int) -> None:
        self._write(*propose_isr(ControllerContext(self.metadata), partition, (*partition.isr, broker)).records)

    def _state(self, topic_partition: TopicPartition) -> PartitionState:
        return self.metadata.topics[topic_partition.topic].partitions[topic_partition.partition]

    def _write(self, *records: Record) -> None:
        for record in records:
            self.metadata.apply(record)
            self.replication.apply(record, self.metadata)


def _log(partitions: int, brokers: int) -> Iterator[Record]:
    for broker in range(brokers):
        log_dirs = tuple(
            LogDirInfo(log_dir.path, _directory_id(broker, log_dir.path)) for log_dir in _hardware().log_dirs
        )
        yield BrokerRegistered(broker, "host", 9092, None, log_dirs, broker_epoch=1)
        yield BrokerUnfenced(broker)
    for number in range(partitions):
        topic = f"topic-{number // PARTITIONS_PER_TOPIC:05d}"
        partition = number % PARTITIONS_PER_TOPIC
        if partition == 0:
            yield TopicCreated(topic, f"id of {topic}")
        stride = 1 + number // brokers % ((brokers - 1) // 2)
        replicas = tuple((number + place * stride) % brokers for place in range(REPLICATION_FACTOR))
        directories = tuple(_directory_id(broker, f"/d{number % 2}") for broker in replicas)
        key = TopicPartition(topic, partition)
        yield PartitionCreated(key, replicas, replicas, replicas[0], 0, 0, directories)


def _hardware() -> BrokerHardware:
    return BrokerHardware(tuple(LogDirHardware(f"/d{number}", 10**14) for number in range(2)))


def _directory_id(broker: int, path: str) -> str:
    return f"00000000-0000-4000-8000-{broker:06d}{path[-1]:>06}"


def _peak_mib() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


if __name__ == "__main__":
    main()
