"""Enter and exit maintenance of brokers: decide the next step, and record the brokers in maintenance.

Two tables decide the next step from what the cluster says and what was written down. The record is kept beside
offsets that the group `kreassign-maintenance` commits, so that runs of any machine are held off a broker that cannot
be cordoned (before Kafka 4.3). Only `read_maintenance_record` and `InMaintenance` ask the cluster.
"""

from __future__ import annotations

import base64
import json
import zlib
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sized
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Protocol

from kreassign.errors import ClusterError, InputError
from kreassign.executor.brokers import (
    Await,
    Blocked,
    BrokerReading,
    Cordon,
    Finished,
    Readings,
    cordon_open,
    is_our_cordon,
    listed_brokers,
    some_partitions,
    unseen_on,
)
from kreassign.executor.cluster.port import TopicsPort
from kreassign.executor.cluster.readings import LOOKS, seen_in_two_looks
from kreassign.executor.lease.lease import CALL_TIMEOUT_MS, offsets_topic
from kreassign.model import Batch, Partition, TopicPartition
from kreassign.model.error_codes import GROUP_AUTHORIZATION_FAILED, TOPIC_AUTHORIZATION_FAILED, has_code
from kreassign.model.replication_factor import required_in_sync
from kreassign.model.requests import CommittedOffset

# The record of maintenance: brokers, and the original order of the replica lists that they led.
#
# The cluster shows neither: a changed order looks like any other. So the order is recorded before it is changed, with
# the order that it is changed to. A list with neither of the two was changed by others, and is left alone.

Lists = Mapping[TopicPartition, tuple[int, ...]]
_FORM = 2


@dataclass(frozen=True, slots=True)
class Entered:
    """Start of a broker's maintenance, its operator, and whether it cordoned the broker."""

    since_ms: int
    by: str
    is_cordoned: bool

    def __str__(self) -> str:
        return f"since {datetime.fromtimestamp(self.since_ms / 1000, tz=UTC):%Y-%m-%d %H:%M} UTC, by {self.by}"


@dataclass(frozen=True, slots=True)
class Order:
    """A replica list before the maintenance, and as the maintenance changes it: the same brokers."""

    original: tuple[int, ...]
    ours: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class MaintenanceRecord:
    """Record at this time: brokers in maintenance, and changed lists by partition.

    `is_here_only` if the cluster could not keep it when it was written, so that only one machine has it.
    """

    at_ms: int = 0
    brokers: Mapping[int, Entered] = field(default_factory=dict)
    orders: Mapping[TopicPartition, Order] = field(default_factory=dict)
    is_here_only: bool = False

    def entered(self, brokers: Collection[int], at_ms: int, by: str, cordoned: Collection[int]) -> MaintenanceRecord:
        """Add these brokers, some of which are cordoned now. Start and operator of earlier entries stay."""
        begun = {broker: self.brokers.get(broker, Entered(at_ms, by, is_cordoned=False)) for broker in brokers}
        new = {broker: replace(one, is_cordoned=one.is_cordoned or broker in cordoned) for broker, one in begun.items()}
        return replace(self, at_ms=self._after(at_ms), brokers={**self.brokers, **new})

    def reordered(
        self,
        present: Mapping[TopicPartition, tuple[int, ...]],
        ours: Mapping[TopicPartition, tuple[int, ...]],
        at_ms: int,
    ) -> MaintenanceRecord:
        """Add the lists that are about to be changed. A list changed by an earlier step keeps its first original."""
        orders = dict(self.orders)
        for name, target in ours.items():
            known = orders.get(name)
            is_known = known is not None and present[name] in {known.ours, known.original}
            orders[name] = Order(known.original if known is not None and is_known else present[name], target)
        return replace(self, at_ms=self._after(at_ms), orders=orders)

    def left(self, brokers: Collection[int], at_ms: int, later: Collection[TopicPartition] = ()) -> MaintenanceRecord:
        """Remove these brokers, and the lists that were changed only for them, but not those that go back `later`."""
        remaining = {broker: one for broker, one in self.brokers.items() if broker not in brokers}
        orders = {name: order for name, order in self.orders.items() if order.original[0] in remaining or name in later}
        return MaintenanceRecord(self._after(at_ms), remaining, orders)

    def only(self, brokers: Collection[int]) -> MaintenanceRecord:
        """The part about these brokers."""
        later = [name for name, order in self.orders.items() if not set(brokers).isdisjoint(order.original)]
        return self.left(self.brokers.keys() - set(brokers), self.at_ms, later)

    def beside(self, other: MaintenanceRecord) -> MaintenanceRecord:
        """Add what another record has besides."""
        return replace(self, brokers={**other.brokers, **self.brokers}, orders={**other.orders, **self.orders})

    def _after(self, at_ms: int) -> int:
        """A time later than this record, whatever the clock of the machine says."""
        return max(at_ms, self.at_ms + 1)


def format_record(record: MaintenanceRecord) -> str:
    """A record as JSON."""
    brokers = [[broker, one.since_ms, one.by, one.is_cordoned] for broker, one in sorted(record.brokers.items())]
    orders: dict[str, list[list[object]]] = {}
    for (topic, partition), order in sorted(record.orders.items()):
        orders.setdefault(topic, []).append([partition, order.original, order.ours])
    return json.dumps([_FORM, record.at_ms, brokers, orders, record.is_here_only], separators=(",", ":"))


def parse_record(text: str) -> MaintenanceRecord:
    """Parse a record. Raises ValueError if the text is none."""
    try:
        form, at_ms, brokers, orders, is_here_only = json.loads(text)
        if form != _FORM or type(is_here_only) is not bool:
            raise ValueError("it is not in the form that this version of kreassign writes")
        return MaintenanceRecord(
            int(at_ms),
            {int(broker): Entered(int(since), str(by), bool(cordoned)) for broker, since, by, cordoned in brokers},
            {
                TopicPartition(topic, int(number)): Order(tuple(map(int, original)), tuple(map(int, ours)))
                for topic, lists in orders.items()
                for number, original, ours in lists
            },
            is_here_only,
        )
    except (TypeError, AttributeError) as error:
        raise ValueError(str(error)) from error


# One truth: which of two records counts, that of the cluster or that of this machine.
#
#     the cluster has   this machine has              what counts                 doubtful
#     a record          one that the cluster kept     the cluster's               nothing
#     a record          a later one, here only        this machine's              nothing
#     a record          an older one, here only       the cluster's               brokers that only this machine names
#     none              one here only                 this machine's              nothing
#     none              one that the cluster kept     nothing                     all brokers of this machine's record
#
# A cluster forgets its record some time after the last write (`offsets.retention.minutes`, 7 days by default): what a
# machine still has may have been ended elsewhere since. Doubtful maintenance is decided by the operator, who names
# the broker, and is never written back unasked.


@dataclass(frozen=True, slots=True)
class KnownMaintenance:
    """The record that counts, and what this machine wrote down besides, which may be over."""

    record: MaintenanceRecord = field(default_factory=MaintenanceRecord)
    doubtful: MaintenanceRecord = field(default_factory=MaintenanceRecord)

    def decided(self, brokers: Collection[int]) -> MaintenanceRecord:
        """The record for a command about these brokers, which decides what is doubtful of them.

        Raises InputError if that of others stays doubtful.
        """
        if not self.doubtful.brokers.keys() <= set(brokers):
            ids = ",".join(map(str, sorted(self.doubtful.brokers)))
            raise InputError(
                f"{self.doubt}. Say first what holds: `kreassign maintenance exit {ids}` ends it and puts back what is "
                f"still as the maintenance left it, `kreassign maintenance enter {ids}` goes on"
            )
        return self.record.beside(self.doubtful.only(brokers))

    @property
    def doubt(self) -> str:
        """A sentence about doubtful maintenance; "" without any."""
        if not self.doubtful.brokers:
            return ""
        known = "; ".join(f"broker {broker} {one}" for broker, one in sorted(self.doubtful.brokers.items()))
        return (
            f"this machine wrote down maintenance ({known}) of which the cluster has no record any more, so that it "
            "may have been ended elsewhere"
        )


def known_maintenance(here: MaintenanceRecord | None, cluster: MaintenanceRecord | None) -> KnownMaintenance:
    """Decide by the table above."""
    if here is None:
        return KnownMaintenance(cluster or MaintenanceRecord())
    if cluster is None:
        return KnownMaintenance(here) if here.is_here_only else KnownMaintenance(doubtful=here)
    if not here.is_here_only:
        return KnownMaintenance(cluster)
    if here.at_ms > cluster.at_ms:
        return KnownMaintenance(here)
    return KnownMaintenance(cluster, here.left(cluster.brokers, here.at_ms))


# Two tables of maintenance: the next step, from the state of the cluster and the record.
#
# Enter: the first row that holds decides.
#
#     a broker is not live                                       →  `Blocked`; `Finished` if it was entered before
#     topics on it cannot be seen                                →  `Blocked`
#     min.insync.replicas of a topic cannot be read              →  `Blocked`
#     a partition can never keep min.insync.replicas without it  →  `Blocked`, with the partitions
#     a part of its directories is cordoned                      →  `Blocked`: closing the others could not be undone
#     it cannot be cordoned, and a run here will move to it      →  `Blocked` until that run is paused
#     a list to be reordered names a broker that no list may
#     name, and its cordon is not that of this maintenance       →  `Blocked`, with the broker and the partitions
#     it is not recorded                                         →  `Remember`
#     as above, and the cordon is that of this maintenance       →  `Uncordon`, until the lists are reordered
#     it is first in a list, and another replica is in sync      →  `Reorder`: that one comes first, it comes last
#     it leads, and the first of the list is in sync             →  `Elect`
#     a partition has too few in sync besides it                 →  `Await` them
#     it can be cordoned, is not, and that is not recorded       →  `Remember`: the cordon is ours
#     it can be cordoned, and is not                             →  `Cordon`: runs start no moves to it then
#     something is being reassigned to it                        →  `Await` the end of that
#     otherwise                                                  →  `Finished`: it may be stopped
#
# Exit:
#
#     a broker is not registered any more                        →  `Forget`
#     a broker is not live                                       →  `Blocked` until it is started
#     topics on it cannot be seen                                →  `Blocked`: their lists would stay as they are
#     it has the cordon of the maintenance                       →  `Uncordon`
#     it is out of sync with a partition                         →  `Await`
#     a list is as the maintenance left it, and may be changed   →  `Reorder`, to what it was
#     it is first in a list, in sync, and does not lead          →  `Elect`
#     a list names a broker that others have cordoned            →  `Blocked` until that is uncordoned
#     it is recorded                                             →  `Forget`; lists that name a broker still in
#                                                                   maintenance go back with the end of that
#     otherwise                                                  →  `Finished`
#
# Kafka 4.4 takes no list that names a broker all of whose directories are cordoned. So lists are changed before the
# cordon and after its end, on every version: what was entered under one is left under the next. Which brokers no list
# may name, the cluster is asked (`executor/cluster/receivers.py`).
#
# A partition that is being reassigned is left alone, because another order would override its move. So are partitions
# that a run of this machine is still to move. Their leaders move in the controlled shutdown of the broker.

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
    def to_be_named(self) -> frozenset[int]:
        """Brokers in the lists that either way would change now."""
        changes = (_demote(self), _restored(dict(_due_back(self)), self))
        lists = (replicas for change in changes if change is not None for replicas in change.targets.values())
        return frozenset(broker for replicas in lists for broker in replicas)

    def needed(self, partition: Partition) -> int:
        """Number of replicas that must be in sync."""
        return required_in_sync(self.min_isr[partition.topic_partition.topic], len(partition.replicas))


# --- enter ----------------------------------------------------------------------------------------------------------


def next_to_enter(facts: MaintenanceFacts) -> Step:
    """Return the next step until the brokers may be stopped."""
    demoted = _demote(facts)
    opened = _opened(facts, demoted)
    return (
        _not_live(facts)
        or unseen_on(facts.found)
        or _unknown(facts)
        or _lost(facts)
        or _only_blocked(cordon_open(facts.found, facts.uncordoned))
        or _not_held(facts)
        or _only_blocked(opened)
        or _remember(facts)
        or opened
        or demoted
        or _elect_others(facts)
        or _await_others(facts)
        or _cordon(facts)
        or _await_arriving(facts)
        or Finished(tuple(_may_stop(facts, one) for one in facts.found.brokers))
    )


def due_to_enter(facts: MaintenanceFacts) -> tuple[Step, ...]:
    """All steps until the brokers may be stopped, as far as foreseeable; empty if blocked or finished."""
    first = next_to_enter(facts)
    if isinstance(first, Blocked | Finished):
        return ()
    demoted, elected = _demote(facts), _elect_others(facts)
    names = {*(demoted.targets if demoted else ()), *(elected.partitions if elected else ())}
    opened = _opened(facts, demoted)
    again = Cordon(opened.brokers) if isinstance(opened, Uncordon) else None
    later = (
        opened,
        demoted,
        Elect(tuple(sorted(names))) if names else None,
        cordon_open(facts.found, facts.uncordoned) or again,
        _await_arriving(facts),
    )
    return (first, *(step for step in later if step is not None and step != first))


def _not_live(facts: MaintenanceFacts) -> Step | None:
    down = [one.broker for one in facts.found.brokers if not one.is_live]
    if not down:
        return _silent(facts.found.brokers)
    if all(broker in facts.record.brokers for broker in down) and len(down) == len(facts.found.brokers):
        return Finished(tuple(f"broker {broker} is in maintenance, and not live" for broker in down))
    return Blocked(f"{listed_brokers(down)} {_is(down)} not live; only a live broker enters maintenance")


def _silent(brokers: Iterable[BrokerReading]) -> Blocked | None:
    said = [f"broker {one.broker} cannot be read: {one.unread}" for one in brokers if one.cordon is None]
    return Blocked(f"{'; '.join(said)}. Try again") if said else None


def _unknown(facts: MaintenanceFacts) -> Blocked | None:
    topics = sorted({one.topic_partition.topic for one in facts.concerned}.difference(facts.min_isr))
    if not topics:
        return None
    more = f" and {len(topics) - SHOWN} more" if len(topics) > SHOWN else ""
    return Blocked(
        f"min.insync.replicas of {', '.join(topics[:SHOWN])}{more} cannot be read: "
        f"{facts.unread.get(topics[0], 'nobody answered')}. Without it nobody can tell what the partitions keep"
    )


def _lost(facts: MaintenanceFacts) -> Blocked | None:
    lost = []
    for one in facts.concerned:
        left = [broker for broker in one.replicas if broker not in facts.away]
        if len(left) < facts.needed(one):
            lost.append(
                f"{one.topic_partition} has replicas {list(one.replicas)} and would be left with {len(left)}, and "
                f"min.insync.replicas is {facts.min_isr[one.topic_partition.topic]}"
            )
    if not lost:
        return None
    others = sorted(facts.away.difference(facts.brokers))
    beside = f" (with {listed_brokers(others)} in maintenance, too)" if others else ""
    more = f"; and {len(lost) - SHOWN} more" if len(lost) > SHOWN else ""
    return Blocked(
        f"without {listed_brokers(facts.brokers)}{beside} {len(lost)} partition{'s' if len(lost) > 1 else ''} "
        "would lose "
        f"min.insync.replicas: {'; '.join(lost[:SHOWN])}{more}. Give them more replicas (`kreassign plan "
        "replication-factor`), then give the command again"
    )


def _only_blocked(step: Step | None) -> Blocked | None:
    return step if isinstance(step, Blocked) else None


def _remember(facts: MaintenanceFacts) -> Remember | None:
    new = tuple(broker for broker in facts.brokers if broker not in facts.record.brokers)
    return Remember(new) if new else None


def _cordon(facts: MaintenanceFacts) -> Step | None:
    """Record the owner of a cordon right before setting it: others may cordon the broker until then."""
    due = cordon_open(facts.found, facts.uncordoned)
    if not isinstance(due, Cordon):
        return due
    new = tuple(broker for broker in due.brokers if not facts.record.brokers[broker].is_cordoned)
    return Remember(new, new) if new else due


def _opened(facts: MaintenanceFacts, change: Reorder | None) -> Uncordon | Blocked | None:
    """Uncordon brokers that a changed list could not name otherwise, if the cordon is ours."""
    due = {} if change is None else _naming(facts, change.targets)
    ours = due.keys() & set(_our_cordons(facts))
    if others := {broker: names for broker, names in due.items() if broker not in ours}:
        return Blocked(f"another replica cannot be put first in {_why_not(facts, others)}. Then give the command again")
    return Uncordon(tuple(sorted(ours))) if ours else None


def _naming(facts: MaintenanceFacts, lists: Lists) -> dict[int, list[TopicPartition]]:
    """The partitions of these lists by each broker in them that no changed list may name."""
    found: dict[int, list[TopicPartition]] = {}
    for name, replicas in sorted(lists.items()):
        for broker in facts.refused.keys() & set(replicas):
            found.setdefault(broker, []).append(name)
    return found


def _why_not(facts: MaintenanceFacts, brokers: Mapping[int, Collection[TopicPartition]]) -> str:
    """For each broker that no list may name: its partitions, the reason, and what to do."""
    return "; ".join(
        f"{some_partitions(names)}: Kafka takes no changed list that names broker {broker}, because "
        f"{facts.refused[broker]}; {_way_to_open(facts, broker)}"
        for broker, names in sorted(brokers.items())
    )


def _way_to_open(facts: MaintenanceFacts, broker: int) -> str:
    if broker in _others_away(facts):
        both = ",".join(map(str, sorted({broker, *facts.brokers})))
        return (
            f"end its maintenance (`kreassign maintenance exit {broker}`), or have both in maintenance at once after "
            f"that (`kreassign maintenance enter {both}`)"
        )
    return f"uncordon it (`kreassign decommission {broker} --cancel`, or kafka-configs where others have cordoned it)"


def _others_away(facts: MaintenanceFacts) -> frozenset[int]:
    """Brokers in maintenance that are not in question."""
    return facts.away.difference(facts.brokers)


def _our_cordons(facts: MaintenanceFacts) -> tuple[int, ...]:
    """Brokers in question with the cordon of their maintenance."""
    return tuple(
        one.broker
        for one in facts.found.brokers
        if one.cordon is not None and is_our_cordon(one.cordon.value)
        if one.broker in facts.record.brokers and facts.record.brokers[one.broker].is_cordoned
    )


def _not_held(facts: MaintenanceFacts) -> Blocked | None:
    """Runs avoid cordoned brokers; for a broker that cannot be cordoned the operator has to pause them."""
    open_ones = {
        one.broker
        for one in facts.found.brokers
        if one.cordon is not None and not one.is_closed
        if not one.cordon.is_known or one.broker in facts.uncordoned
    }
    names = sorted(name for name, brokers in facts.busy.items() if open_ones.intersection(brokers))
    if not names:
        return None
    return Blocked(
        f"a run of this state directory is still to move {some_partitions(names)} to {listed_brokers(open_ones)}, "
        "which cannot be "
        "cordoned: pause it until the maintenance is over (`kreassign pause`), or cancel it, then give the command "
        "again"
    )


def _await_arriving(facts: MaintenanceFacts) -> Await | None:
    names = sorted({name for one in facts.found.brokers for name in one.arriving})
    return (
        Await(f"{some_partitions(names)} {_is(names)} being reassigned to {listed_brokers(facts.brokers)}")
        if names
        else None
    )


def _demote(facts: MaintenanceFacts) -> Reorder | None:
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


def _elect_others(facts: MaintenanceFacts) -> Elect | None:
    names = [
        one.topic_partition
        for one in facts.free
        if one.leader in facts.brokers and one.replicas[0] not in facts.away and one.replicas[0] in one.isr
    ]
    return Elect(tuple(sorted(names))) if names else None


def _await_others(facts: MaintenanceFacts) -> Await | None:
    short = [
        f"{one.topic_partition} has {sorted(in_sync)} in sync besides, and needs {facts.needed(one)}"
        for one in facts.concerned
        if len(in_sync := set(one.isr) - facts.away) < facts.needed(one)
    ]
    led = [one.topic_partition for one in facts.free if one.leader in facts.brokers]
    if short:
        more = f"; and {len(short) - SHOWN} more" if len(short) > SHOWN else ""
        return Await(f"{'; '.join(short[:SHOWN])}{more}")
    return Await(f"no other replica of {some_partitions(sorted(led))} can lead yet") if led else None


def _may_stop(facts: MaintenanceFacts, one: BrokerReading) -> str:
    held = [each for each in facts.concerned if one.broker in each.replicas]
    led = sorted(each.topic_partition for each in held if each.leader == one.broker)
    leads = (
        f"leads only {some_partitions(led)}, which a reassignment keeps until it shuts down" if led else "leads nothing"
    )
    keep = "1 partition keeps" if len(held) == 1 else f"{len(held)} partitions keep"
    closed = "it is cordoned" if one.is_closed else "it is not cordoned"
    return f"broker {one.broker} may be stopped: it {leads}, {keep} min.insync.replicas without it, {closed}"


# --- exit -----------------------------------------------------------------------------------------------------------


def next_to_exit(facts: MaintenanceFacts) -> Step:
    """Return the next step until the brokers are as before the maintenance."""
    gone = tuple(one.broker for one in facts.found.brokers if one.is_registered is False)
    if forgotten := tuple(broker for broker in gone if broker in facts.record.brokers):
        return Forget(forgotten)
    if gone and len(gone) == len(facts.found.brokers):
        return Finished(tuple(f"broker {broker} is not registered" for broker in gone))
    down = [one.broker for one in facts.found.brokers if not one.is_live]
    if down:
        return Blocked(f"{listed_brokers(down)} {_is(down)} not live: start {_it(down)}, then give the command again")
    return (
        _silent(facts.found.brokers)
        or unseen_on(facts.found)
        or _uncordon(facts)
        or _await_sync(facts)
        or _restore(facts)
        or _elect_back(facts)
        or _not_back(facts)
        or _forget(facts)
        or Finished(tuple(map(_in_service, facts.found.brokers)))
    )


def due_to_exit(facts: MaintenanceFacts) -> tuple[Step, ...]:
    """All steps until the brokers are as before, as far as foreseeable; empty if blocked or finished."""
    first = next_to_exit(facts)
    if isinstance(first, Blocked | Finished | Forget):
        return () if isinstance(first, Blocked | Finished) else (first,)
    restored, elected = _restore(facts), _elect_back(facts)
    names = {*(restored.targets if restored else ()), *(elected.partitions if elected else ())}
    # Lists left alone are reported when the others are restored.
    ended = None if _forget(facts) is None else Forget(facts.brokers)
    later = (_uncordon(facts), restored, Elect(tuple(sorted(names))) if names else None, ended)
    return (first, *(step for step in later if step is not None and step != first))


def _in_service(one: BrokerReading) -> str:
    if not one.is_closed:
        return f"broker {one.broker} is in service"
    return (
        f"broker {one.broker} is in service, and cordoned by somebody else than its maintenance; to take that back: "
        f"kreassign decommission {one.broker} --cancel"
    )


def _await_sync(facts: MaintenanceFacts) -> Await | None:
    behind = {
        broker: sorted(
            one.topic_partition
            for one in facts.concerned
            if broker in one.replicas and broker not in one.isr and one.topic_partition not in facts.found.moving
        )
        for broker in facts.brokers
    }
    said = [
        f"broker {broker} is not in sync with {some_partitions(names)} yet" for broker, names in behind.items() if names
    ]
    return Await("; ".join(said)) if said else None


def _restore(facts: MaintenanceFacts) -> Reorder | None:
    """Restore all lists but those that name a broker which no list may name, once our own cordons are gone."""
    held = {name for names in _held_back(facts).values() for name in names}
    return _restored({name: order for name, order in _due_back(facts) if name not in held}, facts)


def _held_back(facts: MaintenanceFacts) -> dict[int, list[TopicPartition]]:
    """Lists that are due back and cannot go, by the brokers in them that no list may name."""
    due = _restored(dict(_due_back(facts)), facts)
    held = {} if due is None else _naming(facts, due.targets)
    return {broker: names for broker, names in held.items() if broker not in _our_cordons(facts)}


def _not_back(facts: MaintenanceFacts) -> Blocked | None:
    """Others have cordoned brokers that are not in maintenance: their operator has to open them."""
    others = {broker: names for broker, names in _held_back(facts).items() if broker not in _others_away(facts)}
    if not others:
        return None
    return Blocked(
        "all else is as it was before the maintenance; the former order cannot be restored in "
        f"{_why_not(facts, others)}. Then give the command again"
    )


def _restored(orders: Mapping[TopicPartition, Order], facts: MaintenanceFacts) -> Reorder | None:
    """The change that restores these orders, as far as their lists are as the maintenance left them."""
    present = {one.topic_partition: one.replicas for one in facts.free}
    due = {
        name: order
        for name, order in orders.items()
        if present.get(name) == order.ours and order.ours != order.original
    }
    return (
        Reorder({name: one.original for name, one in due.items()}, {name: one.ours for name, one in due.items()})
        if due
        else None
    )


def _due_back(facts: MaintenanceFacts) -> Iterator[tuple[TopicPartition, Order]]:
    """Replica orders that can be restored now."""
    remaining = _others_away(facts)
    return ((name, order) for name, order in facts.record.orders.items() if order.original[0] not in remaining)


def _elect_back(facts: MaintenanceFacts) -> Elect | None:
    restored = {name: order.original for name, order in _due_back(facts)}
    names = [
        one.topic_partition
        for one in facts.free
        if one.replicas[0] in facts.brokers or restored.get(one.topic_partition) == one.replicas
        if one.replicas[0] in one.isr and one.leader != one.replicas[0]
    ]
    return Elect(tuple(sorted(names))) if names else None


def _uncordon(facts: MaintenanceFacts) -> Uncordon | None:
    closed = _our_cordons(facts)
    return Uncordon(closed) if closed else None


def _forget(facts: MaintenanceFacts) -> Forget | None:
    if facts.record.brokers.keys().isdisjoint(facts.brokers):
        return None
    present = {one.topic_partition: one.replicas for one in facts.found.partitions}
    later = {name: broker for broker, names in _held_back(facts).items() for name in names}
    left = (
        f"{name} keeps {list(present[name])}"
        + (
            f" until broker {later[name]}, which is cordoned, leaves its maintenance, too"
            if name in later
            else ", for somebody else has changed or moves it"
        )
        for name, order in _due_back(facts)
        if name in present and present[name] != order.original
    )
    return Forget(facts.brokers, tuple(left), tuple(sorted(later)))


def _is(names: Sized) -> str:
    return "is" if len(names) == 1 else "are"


def _it(names: Sized) -> str:
    return "it" if len(names) == 1 else "them"


# Store the record as texts beside committed offsets. Pure.
#
# A broker keeps up to `offset.metadata.max.bytes` (4,096) characters with each offset that a group commits, so a text
# is compressed and cut into pieces, one per partition of `__consumer_offsets`, each with its number, the count, and the
# whole's CRC.

PIECE_CHARACTERS = 4_000
"""Size of a piece beside one offset, with room for the head of the piece."""

MOST_BYTES = 1 << 26
"""Largest record; a million replica lists take less. Anyone who may commit offsets can commit anything."""

NO_PIECE = ""
"""Text of a partition without a piece."""

_MARK = "kreassign-1"
_WORDS = 5
"""Words of a piece: mark, number, count, CRC, text."""


def cut_into_pieces(text: str) -> tuple[str, ...]:
    """Cut a text into pieces of at most `PIECE_CHARACTERS` plus a head each."""
    data = zlib.compress(text.encode(), 9)
    packed = base64.b64encode(data).decode()
    parts = [packed[at : at + PIECE_CHARACTERS] for at in range(0, len(packed), PIECE_CHARACTERS)]
    return tuple(f"{_MARK} {number} {len(parts)} {zlib.crc32(data):08x} {part}" for number, part in enumerate(parts))


def text_of_pieces(pieces: Mapping[int, str]) -> str | None:
    """Join these pieces by partition; None if there is none. Raises ValueError if the text is incomplete."""
    if not pieces.get(0):
        return None
    head = pieces[0].split(" ")
    if head[0] != _MARK or len(head) != _WORDS:
        raise ValueError("it is not in the form that this version of kreassign writes")
    count, crc = int(head[2]), head[3]
    packed = []
    for number in range(count):
        *words, text = pieces.get(number, NO_PIECE).split(" ")
        if words != [_MARK, str(number), str(count), crc]:
            raise ValueError(f"piece {number + 1} of {count} is missing")
        packed.append(text)
    return _unpacked(base64.b64decode("".join(packed), validate=True), crc)


def _unpacked(data: bytes, crc: str) -> str:
    if f"{zlib.crc32(data):08x}" != crc:
        raise ValueError("its checksum is another one")
    unpacking = zlib.decompressobj()
    try:
        content = unpacking.decompress(data, MOST_BYTES)
    except zlib.error as error:
        raise ValueError(str(error)) from error
    if unpacking.unconsumed_tail:
        raise ValueError(f"it has more than {MOST_BYTES} bytes")
    if not unpacking.eof:
        raise ValueError("it is cut off")
    return content.decode()


# Read the record from the cluster. Without a topic `__consumer_offsets` there is none.

GROUP_ID = "kreassign-maintenance"


class OffsetsPort(TopicsPort, Protocol):
    """Calls that read the record. `AdminClient` fits them by its shape."""

    def fetch_offsets(
        self, group_id: str, partitions: Iterable[TopicPartition], *, timeout_ms: int | None
    ) -> Batch[TopicPartition, CommittedOffset]:
        """Committed offsets of a group."""
        ...


def record_places(port: OffsetsPort) -> list[TopicPartition]:
    """Partitions beside whose offsets a record is kept; empty without a topic `__consumer_offsets`.

    Raises ClusterError where it is not known whether there is one: there may be a record then.
    """
    topic = offsets_topic(port)
    return [] if topic is None else sorted(partition.topic_partition for partition in topic.partitions)


def read_maintenance_record(port: OffsetsPort) -> MaintenanceRecord | None:
    """Read the record; None if there is none. Raises ClusterError, and ValueError if it is unreadable."""
    places = record_places(port)
    if not places:
        return None

    def record() -> str | None:
        offsets = port.fetch_offsets(GROUP_ID, places, timeout_ms=CALL_TIMEOUT_MS).raise_if_any()
        return text_of_pieces({place.partition: offset.metadata for place, offset in offsets.items()})

    text = seen_in_two_looks(record)
    return None if text is None else parse_record(text)


def brokers_in_maintenance(port: OffsetsPort) -> frozenset[int]:
    """Brokers that the record of the cluster names. Raises ClusterError, also where the record is unreadable."""
    try:
        record = read_maintenance_record(port)
    except ValueError as error:
        raise ClusterError(f"the record of maintenance in group {GROUP_ID} is unreadable: {error}") from error
    return frozenset() if record is None else frozenset(record.brokers)


class InMaintenance:
    """Brokers in maintenance, queried repeatedly by a run."""

    def __init__(self, port: OffsetsPort) -> None:
        self._port = port

    def __call__(self) -> frozenset[int]:
        """Ids of the brokers in maintenance. Raises ClusterError if they are unknown.

        None for a principal that may not read the group, by two answers: it can keep no lease either, and its run says
        so.
        """
        for _ in range(LOOKS):
            try:
                return brokers_in_maintenance(self._port)
            except ClusterError as error:
                if not has_code(error, GROUP_AUTHORIZATION_FAILED, TOPIC_AUTHORIZATION_FAILED):
                    raise
        return frozenset()


def none_in_maintenance() -> frozenset[int]:
    """For runs that do not query the cluster."""
    return frozenset()
