"""Brokers in time: bytes are copied, fall behind, catch up and are deleted, in virtual milliseconds.

A fluid model that goes from event to event. Copies in sync cost nothing: their sizes are straight lines. Copies that
are behind are flows, each with its fair share of the disks, networks and throttles that it runs through.

Not modelled: producers are never slowed down and wait for nobody (acks=1); consumers read nothing; records have one
size; logs have no segments, so that sizes are smooth. Bytes flow where real brokers hand out whole answers in turn:
when all copies of a plan are there comes out right, which of several like ones is first does not.
"""

from __future__ import annotations

from collections.abc import Mapping

from kreassign.errors import InputError
from kreassign.model import TopicPartition
from kreassign.twin.metadata.records import Record
from kreassign.twin.metadata.state import ClusterMetadata
from kreassign.twin.replication.apply_records import RecordApplier
from kreassign.twin.replication.bulk_load import load
from kreassign.twin.replication.directory_moves import DirectoryMoves
from kreassign.twin.replication.events import ReplicaEvent
from kreassign.twin.replication.hardware import BrokerHardware
from kreassign.twin.replication.partition_logs import NOWHERE, Traffic
from kreassign.twin.replication.readings import ReplicaReadings
from kreassign.twin.replication.replicas import Replicas
from kreassign.twin.replication.settings import ReplicationSettings
from kreassign.twin.replication.stepper import Progress

DEFAULT_SETTINGS = ReplicationSettings()


class Replication:
    """The copies of a cluster and everything that happens to them.

    Use: `load` once, `apply` every record after the metadata has applied it, `advance` time and answer the events
    that it reports. `readings` has what brokers would answer about their copies.
    """

    def __init__(
        self,
        hardware: Mapping[int, BrokerHardware],
        settings: ReplicationSettings = DEFAULT_SETTINGS,
        now_ms: int = 0,
    ) -> None:
        self._replicas = Replicas(settings, now_ms)
        self._moves = DirectoryMoves(self._replicas)
        self._applier = RecordApplier(self._replicas, self._moves)
        self._progress = Progress(self._replicas, self._moves)
        self.readings = ReplicaReadings(self._replicas)
        for broker in sorted(hardware):
            self._replicas.state.fleet.install(broker, hardware[broker])
        self._replicas.grow()

    @property
    def now_ms(self) -> int:
        """The virtual time."""
        return self._replicas.state.now_ms

    @property
    def is_copying(self) -> bool:
        """Whether any copy is catching up, or soon will: whether waiting for copies makes sense."""
        self._progress.resolve()
        live = self._replicas.state.copies.live
        begins = ~live["started"] & ~live["is_future"]
        return bool(self._replicas.isr.joining) or bool((begins | (live["rate"] > 0)).any())

    def install(self, broker: int, hardware: BrokerHardware) -> None:
        """Give a broker its hardware, before it appears in the metadata."""
        self._replicas.state.fleet.install(broker, hardware)
        self._replicas.grow()

    def load(
        self,
        metadata: ClusterMetadata,
        traffic: Mapping[TopicPartition, Traffic],
        held_bytes: Mapping[tuple[TopicPartition, int], int] | None = None,
    ) -> None:
        """Take over a cluster as it is found: all of its brokers, which must have hardware, and their copies.

        Members of the ISR have everything. The others have the first `held_bytes`, by partition and broker, of what
        the leader has; where that is not said, adding replicas have nothing and all others everything. A partition
        without `traffic` is empty. All brokers are taken to be up; `crash` those that are not.
        """
        load(self._applier, metadata, traffic, held_bytes or {})

    def apply(self, record: Record, metadata: ClusterMetadata) -> None:
        """Act on a record that `metadata` has just applied."""
        self._applier.apply(record, metadata)

    # Time

    def next_event_ms(self) -> int | None:
        """When something happens next if nothing is changed until then; None for never.

        Not everything that happens is reported: the first fetch of a copy is not, for example.
        """
        return self._progress.next_ms

    def advance(self, to_ms: int) -> tuple[ReplicaEvent, ...]:
        """Let time pass until something happens that is reported, or until `to_ms`; `now_ms` says which.

        The events of one millisecond come together, sorted by their kind and replica. Answer them (with records, or
        not at all) before time goes on.
        """
        if to_ms < self.now_ms:
            raise InputError(f"time cannot go back from {self.now_ms} ms to {to_ms} ms")
        while (next_ms := self._progress.next_ms) is not None and next_ms <= to_ms:
            if not self._replicas.state.events:
                self._progress.move_on(next_ms)
            if self._replicas.state.events:
                return self._take_events()
        self._replicas.state.now_ms = to_ms
        return ()

    def _take_events(self) -> tuple[ReplicaEvent, ...]:
        events = sorted(self._replicas.state.events, key=lambda event: (type(event).__name__, event))
        self._replicas.state.events.clear()
        return tuple(events)

    # What operators and producers do

    def alter_log_dir(self, topic_partition: TopicPartition, broker: int, path: str) -> bool:
        """Move a copy to another log directory of its broker; False if the broker has no such copy.

        Then it remembers the directory for when it gets one. The directory it is in gives up a running move. Raises
        InputError for a directory that the broker does not have.
        """
        replicas, log_dir = self._replicas, self._replicas.state.fleet.log_dir(broker, path)
        row, index = replicas.state.logs.row(topic_partition), replicas.state.fleet.broker(broker)
        if row is None or replicas.state.dir_of(row, index) == NOWHERE:
            replicas.log_dirs.wanted[topic_partition, index] = log_dir
            return False
        self._moves.alter(row, index, log_dir)
        return True

    def set_write_rate(self, topic_partition: TopicPartition, bytes_per_s: float) -> None:
        """Let producers write to a partition at another rate from now on."""
        row = self._replicas.state.logs.row(topic_partition)
        if row is None or bytes_per_s < 0:
            raise InputError(f"cannot write {bytes_per_s} bytes per second to {topic_partition}")
        with self._replicas.changing(row):
            self._replicas.state.logs.table["write_rate"][row] = bytes_per_s

    # What breaks

    def crash(self, broker: int) -> None:
        """Stop a broker, or freeze it: it neither writes nor sends nor fetches. The controller is not informed."""
        self._set_up(broker, is_up=False)

    def restore(self, broker: int) -> None:
        """Bring a broker back with what it had. It must then be unfenced to join ISRs."""
        self._set_up(broker, is_up=True)

    def _set_up(self, broker: int, *, is_up: bool) -> None:
        replicas, index = self._replicas, self._replicas.state.fleet.broker(broker)
        if bool(replicas.state.fleet.up[index]) == is_up:
            return
        replicas.positions.settle()
        replicas.state.fleet.up[index] = is_up
        replicas.reconsider(index)
        if is_up:
            replicas.start_again(index)

    def cut_link(self, one: int, other: int) -> None:
        """Let no traffic pass between two brokers, either way."""
        self._set_link(one, other, is_cut=True)

    def restore_link(self, one: int, other: int) -> None:
        """Let traffic pass again between two brokers."""
        self._set_link(one, other, is_cut=False)

    def _set_link(self, one: int, other: int, *, is_cut: bool) -> None:
        replicas = self._replicas
        first, second = replicas.state.fleet.broker(one), replicas.state.fleet.broker(other)
        replicas.positions.settle()
        replicas.state.fleet.cut[first, second] = replicas.state.fleet.cut[second, first] = is_cut
        replicas.reconsider(first)

    def cut_remote(self, broker: int) -> None:
        """Let a broker no longer reach remote storage: new copies of tiered topics do not begin there."""
        self._replicas.state.fleet.has_remote[self._replicas.state.fleet.broker(broker)] = False

    def restore_remote(self, broker: int) -> None:
        """Let a broker reach remote storage again."""
        self._replicas.state.fleet.has_remote[self._replicas.state.fleet.broker(broker)] = True

    def slow_dir(self, broker: int, path: str, factor: float) -> None:
        """Let a log directory run at a part of its speed; 1.0 restores it."""
        self._replicas.positions.settle()
        self._replicas.state.fleet.slow(self._replicas.state.fleet.log_dir(broker, path), factor)
        self._replicas.state.must_share = True

    def fill_dir(self, broker: int, path: str) -> None:
        """Let something that is not Kafka's take all the room of a log directory. `LogDirFull` is reported at once."""
        self._occupy(broker, path, is_occupied=True)

    def clear_dir(self, broker: int, path: str) -> None:
        """Take away what `fill_dir` put there."""
        self._occupy(broker, path, is_occupied=False)

    def _occupy(self, broker: int, path: str, *, is_occupied: bool) -> None:
        self._replicas.positions.settle()
        self._replicas.state.fleet.occupy(self._replicas.state.fleet.log_dir(broker, path), is_occupied=is_occupied)
        self._replicas.state.must_share = True

    def fail_dir(self, broker: int, path: str) -> None:
        """Take a log directory offline with all copies in it. The controller is not informed."""
        log_dir = self._replicas.state.fleet.log_dir(broker, path)
        self._moves.fail(log_dir)
        self._set_failed(log_dir, has_failed=True)

    def restore_dir(self, broker: int, path: str) -> None:
        """Bring a failed log directory back with what was in it."""
        self._set_failed(self._replicas.state.fleet.log_dir(broker, path), has_failed=False)

    def _set_failed(self, log_dir: int, *, has_failed: bool) -> None:
        self._replicas.positions.settle()
        self._replicas.state.fleet.failed[log_dir] = has_failed
        self._replicas.reconsider_dir(log_dir)
