"""Checkers of the sequences on a twin: every change of the cluster, who made it, and whether he may.

- A setting that an operator set by hand is changed by nobody else, unless that is agreed to (`Owners`); settings that
  are no throttles, and no cordons, by no run at all.
- A move that an operator began is neither overridden nor cancelled.
- A copy of a run goes only where its directory has room for all copies of runs there beside its reserve, by the
  directory that the cluster took, whatever else is written.
- No partition loses min.insync.replicas by the end of a move of a run without consent.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Protocol

from kreassign.executor.state.admission import FRESH_MS
from kreassign.executor.throttle_ledger import ConfigKey
from kreassign.model import ConfigOperation, ConfigResource, TopicPartition
from kreassign.model.pace import RESERVE
from kreassign.model.plan import Plan
from kreassign.model.throttle import BROKER_THROTTLES, TOPIC_THROTTLES
from kreassign.twin import Twin
from kreassign.twin.controller.configs import AlterConfigs, KeyChange, ResourceChanges
from kreassign.twin.controller.reassignments import ReassignmentsAltered
from kreassign.twin.controller.topics import CreatePartitions, MorePartitions
from kreassign.twin.core import Step, TwinCore
from kreassign.twin.faults import read_fault
from kreassign.twin.metadata import ConfigChanged, PartitionState, TopicDeleted
from tests.campaigns.owners import HAND, Owners

CORDON = "cordoned.log.dirs"
MIN_ISR = "min.insync.replicas"
RACE_MS = 15_000
"""While answers are late, a request may be under way for so long."""
SLACK = 0.02
"""Share of a directory that others may fill between the look of a run and its request."""


class Hand(Protocol):
    """Changes by hand of an operator."""

    def inject(self, twin: Twin) -> None:
        """Do it."""
        ...


@dataclass(frozen=True, slots=True)
class Configure:
    """`kafka-configs --alter` of a setting."""

    resource: ConfigResource
    name: str
    value: str | None
    operation: ConfigOperation = ConfigOperation.SET

    def inject(self, twin: Twin) -> None:
        change = KeyChange(self.operation, self.name, self.value)
        twin.controller.alter_configs(
            AlterConfigs((ResourceChanges(int(self.resource.type), self.resource.name, (change,)),))
        )


@dataclass(frozen=True, slots=True)
class OtherTool:
    """Change by the tool of another operator, written as a fault of the twin."""

    fault: str

    @property
    def kind(self) -> str:
        return self.fault.partition(":")[0]

    def inject(self, twin: Twin) -> None:
        read_fault(f"{self.fault}@0").inject(twin)


@dataclass(frozen=True, slots=True)
class AddPartition:
    """`kafka-topics --alter --partitions`."""

    topic: str

    def inject(self, twin: Twin) -> None:
        if (topic := twin.metadata.topics.get(self.topic)) is not None:
            more = MorePartitions(self.topic, len(topic.partitions) + 1)
            twin.controller.create_partitions(CreatePartitions((more,)))


@dataclass(frozen=True, slots=True)
class Produce:
    """Producers that write at another rate from now on."""

    topic_partition: TopicPartition
    bytes_per_s: float

    def inject(self, twin: Twin) -> None:
        if twin.metadata.partition(self.topic_partition) is not None:
            twin.replication.set_write_rate(self.topic_partition, self.bytes_per_s)


class Watch:
    """Sees every step of a twin; `writer` is who acts now. `broken` has a sentence per broken promise."""

    def __init__(self, twin: Twin) -> None:
        self.owners = Owners()
        self.writer = HAND
        self.movers: dict[TopicPartition, str] = {}
        self.moved_ms: dict[TopicPartition, dict[str, int]] = {}
        self.trouble_until_ms = -1
        self._by_hand_at: dict[ConfigKey, int] = {}
        self._asked_ms: dict[str, int] = {}
        self.twin = twin
        self._is_allowed = False
        self._of_a_run = True
        self._broken: list[str] = []
        twin.watch(self._look)

    @property
    def broken(self) -> tuple[str, ...]:
        return (*self._broken, *self.owners.broken)

    @contextmanager
    def by_hand(self) -> Iterator[None]:
        """Count changes within the block as the operator's."""
        before, self.writer = self.writer, HAND
        try:
            yield
        finally:
            self.writer = before

    def begin(self, host: str, *, is_allowed: bool, of_a_run: bool = True) -> None:
        """A command of this host begins; `is_allowed` if it may cost min.insync.replicas."""
        self.writer, self._is_allowed, self._of_a_run = host, is_allowed, of_a_run
        self._asked_ms.pop(host, None)

    def ask_for_throttle(self, host: str) -> None:
        """Ask the run of this host for another throttle."""
        self._asked_ms[host] = self.twin.now_ms
        self.owners.agree_to_rates(host)

    def end(self) -> None:
        """The command is over: what follows is done by nobody's request."""
        self.writer = "nobody"

    def not_refused(self, host: str, plan: Plan) -> Iterator[str]:
        """Reasons to refuse a run that may not touch foreign changes."""
        live = {str(broker) for broker in self.twin.processes.ids if self.twin.metadata.is_active(broker)}
        for key, of in sorted(self.owners.of().items()):
            if of - self.owners.of(host).get(key, frozenset()) and (key.broker is None or key.resource.name in live):
                yield f"began, though {key} is {','.join(sorted(of))} and not its own"
        if moving := self.twin.metadata.reassigning - set(plan.replicas):
            yield f"began, though others move {sorted(moving)}"

    def moved_by_others(self, names: Iterable[TopicPartition], host: str, since_ms: int) -> set[TopicPartition]:
        """Partitions of these that an operator or a run of another host has moved or deleted since then."""
        return {
            name
            for name in names
            if any(at_ms >= since_ms for writer, at_ms in self.moved_ms.get(name, {}).items() if writer != host)
        }

    def _note_move(self, name: TopicPartition, writer: str) -> None:
        self.moved_ms.setdefault(name, {})[writer] = self.twin.now_ms

    # --- every step -----------------------------------------------------------------------------------------------

    def _look(self, twin: TwinCore, step: Step) -> None:
        for record in step.records:
            if isinstance(record, ConfigChanged):
                self._set(ConfigKey(record.resource, record.name), record.value)
            elif isinstance(record, TopicDeleted):
                self.owners.forget(record.name)
                for name in (each for each in step.before if each.topic == record.name):
                    self._note_move(name, HAND)
        is_request = isinstance(step.answer, ReassignmentsAltered)
        for name, before in step.before.items():
            after = twin.metadata.partition(name)
            if before is None or after is None or before == after:
                continue
            if is_request:
                self._request(name, before, after)
            if self.movers.get(name, HAND) != HAND and not self._is_allowed:
                self._keep_in_sync(before, after)

    def _set(self, key: ConfigKey, value: str | None) -> None:
        now_ms = self.twin.now_ms
        if key.name in (*TOPIC_THROTTLES, *BROKER_THROTTLES):
            # Kafka cannot set a value only if it is another one still: a request that was under way goes through.
            if self.writer != HAND and now_ms < min(
                self.trouble_until_ms, self._by_hand_at.get(key, -RACE_MS) + RACE_MS
            ):
                self.owners.agreements[self.writer].taken[key] = self.owners.of().get(key, frozenset())
            if self._is_under_way(key):
                self.owners.agree_to_rate(self.writer, key)
            if self.writer == HAND:
                self._by_hand_at[key] = now_ms
            self.owners.take_in(key, value, self.writer)
        elif self.writer != HAND and key.name != CORDON:
            self._broken.append(f"{self.writer} set {key} to {value}")

    def _is_under_way(self, key: ConfigKey) -> bool:
        """While brokers have trouble, a requested throttle takes until its end, and holds for what is set meanwhile."""
        asked_ms, by_hand_ms = self._asked_ms.get(self.writer), self._by_hand_at.get(key, -1)
        is_late = asked_ms is not None and asked_ms <= by_hand_ms
        return is_late and key.broker is not None and self.twin.now_ms < self.trouble_until_ms

    def _request(self, name: TopicPartition, before: PartitionState, after: PartitionState) -> None:
        # The runs of a host do not answer for what its maintenance reorders.
        self._note_move(name, self.writer if self._of_a_run else f"a maintenance of {self.writer}")
        if before.is_reassigning and self.movers.get(name) == HAND and self.writer not in (HAND, "the campaign"):
            self._broken.append(f"{self.writer} changed a move of an operator: {name} was {before}, is {after}")
        self.movers[name] = self.writer
        if self.writer != HAND:
            for broker in set(after.replicas) - set(before.replicas):
                self.twin.schedule(self.twin.now_ms, partial(self._find_room, name, broker))

    def _keep_in_sync(self, before: PartitionState, after: PartitionState) -> None:
        if set(before.replicas) <= set(after.replicas):
            return
        least = self.twin.metadata.config(ConfigResource.topic(before.topic_partition.topic), MIN_ISR) or "1"
        needed = min(int(least), len(before.replicas) - len(before.adding))
        if len(before.isr) >= needed > len(after.isr):
            self._broken.append(f"{MIN_ISR} {least} is lost without consent: {before} became {after}")

    def _find_room(self, name: TopicPartition, broker: int) -> None:
        """The directory of a new copy has room for all copies that runs still make there."""
        readings, metadata = self.twin.replication.readings, self.twin.metadata
        path, state = readings.log_dir(name, broker), metadata.partition(name)
        if path is None or state is None or broker not in state.adding:
            return
        log_dir = next(each for each in readings.log_dirs(broker) if each.path == path)
        missing = 0
        for replica in log_dir.replicas:
            of = metadata.partition(replica.topic_partition)
            if of is not None and broker in of.adding and self.movers.get(replica.topic_partition) != HAND:
                size = readings.size_bytes(replica.topic_partition, of.leader) or 0
                missing += max(0, size - replica.size_bytes)
        if log_dir.usable_bytes is None or log_dir.total_bytes is None:
            return
        # A run starts moves by what it read at most so long ago.
        unseen = sum(
            replica.size_bytes
            for replica in log_dir.replicas
            if self.moved_ms.get(replica.topic_partition, {}).get(HAND, -FRESH_MS) > self.twin.now_ms - FRESH_MS
            and (of := metadata.partition(replica.topic_partition)) is not None
            and broker in of.adding
        )
        left, least = log_dir.usable_bytes + unseen - missing, (RESERVE - SLACK) * log_dir.total_bytes
        if missing and left < least:
            self._broken.append(
                f"{name} was sent to {path} of broker {broker}, which will have {left} of {log_dir.total_bytes} bytes"
            )
