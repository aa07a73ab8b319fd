"""Steps of maintenance, the facts that decide them, and the replica lists that change on the way in and out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from kreassign.executor.brokers import (
    Await,
    Blocked,
    Cordon,
    Finished,
    Readings,
    is_our_cordon,
    listed_brokers,
    some_partitions,
)
from kreassign.executor.maintenance.record import MaintenanceRecord, Reordering
from kreassign.model import Partition, TopicPartition
from kreassign.model.plan_facts import is_another
from kreassign.model.replication_factor import required_in_sync

Lists = Mapping[TopicPartition, tuple[int, ...]]
SHOWN = 20
NO_MAINTENANCE = MaintenanceRecord()


@dataclass(frozen=True, slots=True)
class Reorder:
    """Reorder the replicas of these partitions, which copies nothing; `present` are their present lists."""

    targets: Lists
    present: Lists

    def __str__(self) -> str:
        return f"put another replica first in the lists of {some_partitions(sorted(self.targets))}"


@dataclass(frozen=True, slots=True)
class Elect:
    """Elect the preferred leaders of these partitions."""

    partitions: tuple[TopicPartition, ...]

    def __str__(self) -> str:
        return f"elect the preferred leaders of {some_partitions(self.partitions)}"


@dataclass(frozen=True, slots=True)
class Uncordon:
    """Open the log directories of these brokers again."""

    brokers: tuple[int, ...]

    def __str__(self) -> str:
        return f"uncordon {listed_brokers(self.brokers)}"


@dataclass(frozen=True, slots=True)
class Forget:
    """Record that the maintenance of these brokers is over; `left_alone` names lists that stay as they are.

    Those of `later` partitions go back with the end of another broker's maintenance.
    """

    brokers: tuple[int, ...]
    left_alone: tuple[str, ...] = ()
    later: tuple[TopicPartition, ...] = ()

    def __str__(self) -> str:
        said = "".join(f"; {sentence}" for sentence in self.left_alone[:SHOWN])
        return f"end the maintenance of {listed_brokers(self.brokers)}{said}"


@dataclass(frozen=True, slots=True)
class Remember:
    """Record that these brokers are in maintenance, and which of them are about to be cordoned for it."""

    brokers: tuple[int, ...]
    cordoned: tuple[int, ...] = ()

    def __str__(self) -> str:
        if self.cordoned:
            return f"write down that the cordon of {listed_brokers(self.cordoned)} is for the maintenance"
        return f"begin the maintenance of {listed_brokers(self.brokers)}"


Step = Remember | Cordon | Await | Reorder | Elect | Uncordon | Forget | Blocked | Finished


@dataclass(frozen=True, slots=True)
class MaintenanceFacts:
    """Input of a decision: the cluster, min.insync.replicas by topic, and the record.

    `busy` are partitions that a run of this machine is still to move, with the brokers to which it copies them.
    `uncordoned` are brokers whose cordon Kafka refuses, with its reason. `unread` has the reason for topics without a
    known min.insync.replicas. `refused` are brokers that no changed list may name now, with the reason.
    """

    found: Readings
    min_isr: Mapping[str, int] = field(default_factory=dict)
    record: MaintenanceRecord = NO_MAINTENANCE
    busy: Lists = field(default_factory=dict)
    uncordoned: Mapping[int, str] = field(default_factory=dict)
    unread: Mapping[str, str] = field(default_factory=dict)
    refused: Mapping[int, str] = field(default_factory=dict)

    @property
    def brokers(self) -> tuple[int, ...]:
        """Ids of the brokers in question."""
        return tuple(one.broker for one in self.found.brokers)

    @property
    def away(self) -> frozenset[int]:
        """Brokers that do not count as available: those in question, and others in maintenance."""
        return frozenset(self.brokers).union(self.record.brokers)

    @property
    def concerned(self) -> tuple[Partition, ...]:
        """Partitions with a replica on the brokers in question."""
        ids = frozenset(self.brokers)
        return tuple(one for one in self.found.partitions if not ids.isdisjoint(one.replicas))

    @property
    def free(self) -> tuple[Partition, ...]:
        """Partitions concerned whose order may be changed."""
        kept = self.found.moving.union(self.busy)
        return tuple(one for one in self.concerned if one.topic_partition not in kept)

    @property
    def others_away(self) -> frozenset[int]:
        """Brokers in maintenance that are not in question."""
        return self.away.difference(self.brokers)

    @property
    def our_cordons(self) -> tuple[int, ...]:
        """Brokers in question with the cordon of their maintenance."""
        return tuple(
            one.broker
            for one in self.found.brokers
            if one.cordon is not None and is_our_cordon(one.cordon.value)
            if one.broker in self.record.brokers and self.record.brokers[one.broker].is_cordoned
        )

    def needed(self, partition: Partition) -> int:
        """Number of replicas that must be in sync."""
        return required_in_sync(self.min_isr[partition.topic_partition.topic], len(partition.replicas))

    def naming(self, lists: Lists) -> dict[int, list[TopicPartition]]:
        """The partitions of these lists by each broker in them that no changed list may name."""
        found: dict[int, list[TopicPartition]] = {}
        for name, replicas in sorted(lists.items()):
            for broker in self.refused.keys() & set(replicas):
                found.setdefault(broker, []).append(name)
        return found


# The replica lists that change: demoted on the way in, restored on the way out.


def demoted(facts: MaintenanceFacts) -> Reorder | None:
    """Put an available replica that is in sync first where a broker in question is, and those that are away last."""
    led = Counter(one.leader for one in facts.found.partitions)
    targets, present = {}, {}
    for one in facts.free:
        stays = one.replicas[0] in facts.away or one.replicas[0] not in one.isr
        if one.replicas[0] not in facts.brokers and not (one.leader in facts.brokers and stays):
            continue
        others = [broker for broker in one.replicas if broker in one.isr and broker not in facts.away]
        if others:
            # Leaders go to the broker that leads the fewest, so that no single broker gets them all.
            first = min(others, key=lambda broker: (led[broker], one.replicas.index(broker)))
            led[first] += 1
            rest = [broker for broker in one.replicas if broker != first]
            last = [broker for broker in rest if broker in facts.away]
            order = (first, *(broker for broker in rest if broker not in facts.away), *last)
            targets[one.topic_partition], present[one.topic_partition] = order, one.replicas
    return Reorder(targets, present) if targets else None


def restored(facts: MaintenanceFacts) -> Reorder | None:
    """Restore all lists but those that name a broker which no list may name, once our own cordons are gone."""
    held = {name for names in held_back(facts).values() for name in names}
    return _restoring({name: order for name, order in due_back(facts) if name not in held}, facts)


def held_back(facts: MaintenanceFacts) -> dict[int, list[TopicPartition]]:
    """Lists that are due back and cannot go, by the brokers in them that no list may name."""
    due = _restoring(dict(due_back(facts)), facts)
    held = {} if due is None else facts.naming(due.targets)
    return {broker: names for broker, names in held.items() if broker not in facts.our_cordons}


def _restoring(orders: Mapping[TopicPartition, Reordering], facts: MaintenanceFacts) -> Reorder | None:
    """The change that restores these orders, as far as their lists are as the maintenance left them."""
    present = {
        one.topic_partition: one.replicas
        for one in facts.free
        if (order := orders.get(one.topic_partition)) is not None and order.is_changed(one.replicas)
    }
    return Reorder({name: orders[name].original for name in present}, present) if present else None


def due_back(facts: MaintenanceFacts) -> Iterator[tuple[TopicPartition, Reordering]]:
    """Replica orders that can be restored now."""
    return ((name, order) for name, order in over(facts) if not is_recreated(facts, name, order))


def over(facts: MaintenanceFacts) -> Iterator[tuple[TopicPartition, Reordering]]:
    """Replica orders that no other maintenance keeps."""
    remaining = facts.others_away
    return ((name, order) for name, order in facts.record.orders.items() if order.original[0] not in remaining)


def is_recreated(facts: MaintenanceFacts, name: TopicPartition, order: Reordering) -> bool:
    """True if the topic is not the one whose list the maintenance changed: that was deleted."""
    return is_another(order.topic_id, facts.found.topic_ids.get(name.topic))


def to_be_named(facts: MaintenanceFacts) -> frozenset[int]:
    """Brokers in the lists that either way would change now."""
    changes = (demoted(facts), _restoring(dict(due_back(facts)), facts))
    lists = (replicas for change in changes if change is not None for replicas in change.targets.values())
    return frozenset(broker for replicas in lists for broker in replicas)
