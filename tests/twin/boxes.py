"""Small clusters whose copies move in time, with numbers that can be reckoned by hand."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from kreassign.model import ConfigResource, TopicPartition
from kreassign.model.throttle import (
    FOLLOWER_THROTTLED_RATE,
    FOLLOWER_THROTTLED_REPLICAS,
    LEADER_THROTTLED_RATE,
    LEADER_THROTTLED_REPLICAS,
)
from kreassign.twin import metadata
from kreassign.twin.replication.hardware import BrokerHardware, LogDirHardware, ReplicationSettings
from kreassign.twin.replication.partition_logs import Traffic
from kreassign.twin.replication.replication import Replication
from kreassign.twin.replication.state import ReplicaCaughtUp, ReplicaEvent, ReplicaFellBehind

MB = 1_000_000
SECOND = 1000
TOPIC = "t"
AT_ONCE = ReplicationSettings(
    quota_window_ms=9 * 10**18, fetch_backoff_ms=0, response_bytes=0, batch_bytes=0, fetch_start_ms=0, join_ms=0
)
"""Nothing but bytes takes time, and throttles are kept to the byte."""
Told = tuple[int, ReplicaEvent]


def tp(partition: int, topic: str = TOPIC) -> TopicPartition:
    """A partition of the only topic."""
    return TopicPartition(topic, partition)


def broker(
    *, net: int = 100, read: int = 100, write: int = 100, capacity: int = 10_000, log_dirs: int = 2
) -> BrokerHardware:
    """Speeds in MB per second, capacity per directory in MB."""
    return BrokerHardware(
        tuple(LogDirHardware(f"/d{n}", capacity * MB, read * MB, write * MB) for n in range(log_dirs)),
        net * MB,
        net * MB,
    )


@dataclass(frozen=True)
class Given:
    """A partition as it is found; sizes in MB, rates in MB per second."""

    replicas: tuple[int, ...]
    size: float = 0
    rate: float = 0
    isr: tuple[int, ...] | None = None
    log_dir: int = 0
    retention: int | None = None

    @property
    def traffic(self) -> Traffic:
        """Traffic in bytes."""
        keeps = None if self.retention is None else self.retention * MB
        return Traffic(round(self.size * MB), self.rate * MB, retention_bytes=keeps)


class Box:
    """A cluster of brokers 0, 1, … with topic t, and nobody to answer events but the test."""

    def __init__(
        self,
        *partitions: Given,
        brokers: int = 4,
        hardware: Mapping[int, BrokerHardware] | None = None,
        settings: ReplicationSettings = AT_ONCE,
    ) -> None:
        chosen = {number: broker() for number in range(brokers)} | dict(hardware or {})
        self.metadata = metadata.ClusterMetadata()
        self.replication = Replication(chosen, settings)
        for number, machine in chosen.items():
            self.metadata.apply(_registration(number, machine))
            self.metadata.apply(metadata.BrokerUnfenced(number))
        self.metadata.apply(metadata.TopicCreated(TOPIC, "topic-t"))
        for number, given in enumerate(partitions):
            self.metadata.apply(_creation(number, given))
        self.replication.load(self.metadata, {tp(n): given.traffic for n, given in enumerate(partitions)})

    @property
    def now(self) -> int:
        """Virtual milliseconds."""
        return self.replication.now_ms

    def say(self, *records: metadata.Record) -> None:
        """Let the controller write records."""
        for record in records:
            self.metadata.apply(record)
            self.replication.apply(record, self.metadata)

    def state(self, partition: int) -> metadata.PartitionState:
        """State of a partition in the metadata."""
        found = self.metadata.partition(tp(partition))
        assert found is not None
        return found

    def change(
        self,
        partition: int,
        *,
        replicas: tuple[int, ...] | None = None,
        isr: tuple[int, ...] | None = None,
        leader: int | None = None,
    ) -> None:
        """Change a partition; directories of new replicas are for their brokers to choose."""
        directories = None
        if replicas is not None:
            old = self.state(partition)
            known = dict(zip(old.replicas, old.directories, strict=True))
            directories = tuple(known.get(replica, metadata.UNASSIGNED) for replica in replicas)
        self.say(
            metadata.PartitionChanged(tp(partition), replicas=replicas, isr=isr, leader=leader, directories=directories)
        )

    def add(self, partition: int, *brokers: int) -> None:
        """Begin to copy a partition to these brokers as well."""
        self.change(partition, replicas=(*self.state(partition).replicas, *brokers))

    def configure(self, resource: ConfigResource, name: str, value: str | None) -> None:
        """Set or take back a dynamic configuration."""
        self.say(metadata.ConfigChanged(resource, name, value))

    def throttle(self, rate: float, *, leaders: str | None = "*", followers: str | None = "*") -> None:
        """Limit all brokers to so many MB per second, for these replicas of the topic."""
        for number in self.metadata.brokers:
            for key in (LEADER_THROTTLED_RATE, FOLLOWER_THROTTLED_RATE):
                self.configure(ConfigResource.broker(number), key, str(round(rate * MB)))
        self.configure(ConfigResource.topic(TOPIC), LEADER_THROTTLED_REPLICAS, leaders)
        self.configure(ConfigResource.topic(TOPIC), FOLLOWER_THROTTLED_REPLICAS, followers)

    def run(self, seconds: float, *kinds: type[ReplicaEvent]) -> list[Told]:
        """Let time pass and answer nothing; what was told when, of these kinds only if any are named."""
        end, told = self.now + round(seconds * SECOND), []
        while True:
            events = self.replication.advance(end)
            told += [(self.now, event) for event in events if not kinds or isinstance(event, kinds)]
            if not events and self.now == end:
                return told

    def live(self, seconds: float) -> list[Told]:
        """Let time pass and the ISR be what its leaders want; what was told when."""
        end, told = self.now + round(seconds * SECOND), []
        while self.now < end or self.replication.next_event_ms() == self.now:
            for event in self.replication.advance(end):
                told.append((self.now, event))
                self._answer(event)
        return told

    def _answer(self, event: ReplicaEvent) -> None:
        match event:
            case ReplicaCaughtUp(topic_partition, replica):
                isr = self.state(topic_partition.partition).isr
                self.change(topic_partition.partition, isr=(*isr, replica))
            case ReplicaFellBehind(topic_partition, replica):
                isr = self.state(topic_partition.partition).isr
                self.change(topic_partition.partition, isr=tuple(member for member in isr if member != replica))
            case _:
                pass

    def size(self, partition: int, replica: int) -> float | None:
        """MB of a copy."""
        found = self.replication.readings.size_bytes(tp(partition), replica)
        return None if found is None else found / MB

    def caught_up(self, seconds: float = 1000) -> dict[tuple[int, int], int]:
        """Time at which each copy (partition, broker) catches up first, in ms from now; it then joins the ISR."""
        start, found = self.now, {}
        for time, event in self.live(seconds):
            if isinstance(event, ReplicaCaughtUp):
                found.setdefault((event.topic_partition.partition, event.broker), time - start)
        return found


def directory_id(number: int, path: str) -> str:
    """The id of a directory of a broker."""
    return f"{number}{path}"


def _registration(number: int, machine: BrokerHardware) -> metadata.BrokerRegistered:
    log_dirs = tuple(metadata.LogDirInfo(found.path, directory_id(number, found.path)) for found in machine.log_dirs)
    return metadata.BrokerRegistered(number, "host", 9092, None, log_dirs, 1)


def _creation(number: int, given: Given) -> metadata.PartitionCreated:
    directories = tuple(directory_id(replica, f"/d{given.log_dir}") for replica in given.replicas)
    isr = given.replicas if given.isr is None else given.isr
    return metadata.PartitionCreated(tp(number), given.replicas, isr, given.replicas[0], 0, 0, directories)
