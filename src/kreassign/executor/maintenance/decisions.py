"""Maintenance of brokers: its steps, the facts that decide them, and the two tables of the next step in and out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sized
from dataclasses import dataclass, field, replace

from kreassign.executor.brokers import (
    NAMED,
    Await,
    Blocked,
    BrokerReading,
    Cordon,
    Finished,
    Readings,
    cordon_open,
    is_our_cordon,
    listed_brokers,
    only_blocked,
    some_partitions,
    unseen_on,
)
from kreassign.executor.maintenance.record import MaintenanceRecord, Reordering
from kreassign.model import Partition, TopicPartition
from kreassign.model.plan_facts import is_another
from kreassign.model.replication_factor import required_in_sync
from kreassign.model.text import counted, some_of

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
class BeginEnd:
    """Record that the maintenance of these brokers is about to end, so that other commands see it before its end."""

    brokers: tuple[int, ...]

    def __str__(self) -> str:
        return f"begin to end the maintenance of {listed_brokers(self.brokers)}"


@dataclass(frozen=True, slots=True)
class Forget:
    """Record that the maintenance of these brokers is over; `left_alone` names lists that stay as they are.

    Lists that are `restored` are not to be restored again, for another broker: a later change is that of others.
    """

    brokers: tuple[int, ...]
    left_alone: tuple[str, ...] = ()
    restored: frozenset[TopicPartition] = frozenset()

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


Step = Remember | Cordon | Await | Reorder | Elect | BeginEnd | Uncordon | Forget | Blocked | Finished


@dataclass(frozen=True, slots=True)
class MaintenanceFacts:
    """Input of a decision: the cluster, min.insync.replicas by topic, and the record.

    `busy` are partitions that a run of this machine is still to move; `coming` has those that it may begin to move
    during the maintenance, with the brokers to which it copies them.
    `uncordoned` are brokers whose cordon Kafka refuses, with its reason. `unread` has the reason for topics without a
    known min.insync.replicas. `refused` are brokers that no changed list may name now, with the reason.
    """

    found: Readings
    min_isr: Mapping[str, int] = field(default_factory=dict)
    record: MaintenanceRecord = NO_MAINTENANCE
    busy: Collection[TopicPartition] = frozenset()
    uncordoned: Mapping[int, str] = field(default_factory=dict)
    unread: Mapping[str, str] = field(default_factory=dict)
    refused: Mapping[int, str] = field(default_factory=dict)
    coming: Mapping[TopicPartition, Collection[int]] = field(default_factory=dict)

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
    def recorded_cordons(self) -> tuple[BrokerReading, ...]:
        """Live brokers in question that the record calls cordoned by their maintenance, whatever they show."""
        entered = self.record.brokers
        live = (one for one in self.found.brokers if one.cordon is not None)
        return tuple(one for one in live if one.broker in entered and entered[one.broker].is_cordoned)

    @property
    def our_cordons(self) -> tuple[int, ...]:
        """Brokers in question with the cordon of their maintenance."""
        return tuple(one.broker for one in self.recorded_cordons if one.cordon and is_our_cordon(one.cordon.value))

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


# Enter: the first row that holds decides.
#
#     a broker is not live                                       →  `Blocked`; `Finished` if it was entered before
#     topics on it cannot be seen                                →  `Blocked`
#     min.insync.replicas of a topic cannot be read              →  `Blocked`
#     a partition can never keep min.insync.replicas without it  →  `Blocked`, with the partitions
#     a part of its directories is cordoned                      →  `Blocked`: closing the others could not be undone
#     it cannot be cordoned, and a run here will move to it      →  `Blocked` until that is paused or cancelled
#     a list to be reordered names a broker that no list may
#     name, and its cordon is not that of this maintenance       →  `Blocked`, with the broker and the partitions
#     it is not recorded, or the record says that its end has
#     begun                                                      →  `Remember`: the later command counts
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
#     a broker is not registered any more, or where that is not
#     known is down, and no list names it                        →  `Forget`, and go on with the others
#     a broker is not live                                       →  `Blocked` until it is started
#     topics on it cannot be seen                                →  `Blocked`: their lists would stay as they are
#     it is recorded, and not that its end has begun             →  `BeginEnd`
#     it has the cordon of the maintenance, or shows none, and
#     the record calls it cordoned                               →  `Uncordon`, which is recorded: a later cordon is
#                                                                   that of others
#     it is out of sync with a partition                         →  `Await`
#     a list is as the maintenance left it, and may be changed   →  `Reorder`, to what it was; not that of a topic that
#                                                                   was created again since
#     it is first in a list, in sync, and does not lead          →  `Elect`
#     a list names a broker that others have cordoned            →  `Blocked` until that is uncordoned
#     it is recorded                                             →  `Forget`; lists that name a broker still in
#                                                                   maintenance may go back with the end of that
#     otherwise                                                  →  `Finished`
#
# Kafka 4.4 takes no list that names a broker all of whose directories are cordoned. So lists are changed before the
# cordon and after its end, on every version: what was entered under one is left under the next. Which brokers no list
# may name, the cluster is asked (`executor/cluster/receivers.py`).
#
# A partition that is being reassigned is left alone, because another order would override its move. So are partitions
# that a run of this machine is still to move. Their leaders move in the controlled shutdown of the broker.


# --- enter ----------------------------------------------------------------------------------------------------------


def next_to_enter(facts: MaintenanceFacts) -> Step:
    """Return the next step until the brokers may be stopped."""
    change = demoted(facts)
    opened = _opened(facts, change)
    return (
        _not_live(facts)
        or unseen_on(facts.found)
        or _unknown(facts)
        or _lost(facts)
        or only_blocked(cordon_open(facts.found, facts.uncordoned))
        or _not_held(facts)
        or only_blocked(opened)
        or _remember(facts)
        or opened
        or change
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
    change = demoted(facts)
    opened = _opened(facts, change)
    again = Cordon(opened.brokers) if isinstance(opened, Uncordon) else None
    closed = cordon_open(facts.found, facts.uncordoned) or again
    return _due(first, opened, change, _with_change(change, _elect_others(facts)), closed, _await_arriving(facts))


def _due(first: Step, *later: Step | None) -> tuple[Step, ...]:
    return (first, *(step for step in later if step is not None and step != first))


def _with_change(change: Reorder | None, elected: Elect | None) -> Elect | None:
    """The election of what is due now, and of what the change makes due."""
    names = {*(change.targets if change else ()), *(elected.partitions if elected else ())}
    return Elect(tuple(sorted(names))) if names else None


def _not_live(facts: MaintenanceFacts) -> Step | None:
    down = [one.broker for one in facts.found.brokers if not one.is_live]
    if not down:
        return None
    if all(broker in facts.record.brokers for broker in down) and len(down) == len(facts.found.brokers):
        return _remember(facts) or Finished(
            tuple(f"broker {broker} is in maintenance, and not live" for broker in down)
        )
    there = ", ".join(map(str, sorted(facts.found.live)))
    return Blocked(
        f"{listed_brokers(down)} {_is(down)} not live (live: {there}); only a live broker enters maintenance"
    )


def _unknown(facts: MaintenanceFacts) -> Blocked | None:
    topics = sorted({one.topic_partition.topic for one in facts.concerned}.difference(facts.min_isr))
    if not topics:
        return None
    return Blocked(
        f"min.insync.replicas of {some_of(topics, SHOWN)} cannot be read: "
        f"{facts.unread.get(topics[0], 'no broker answered')}. It says how many replicas must stay in sync"
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
    return Blocked(
        f"without {listed_brokers(facts.brokers)}{beside}, {counted(len(lost), 'partition')} would lose "
        f"min.insync.replicas: {some_of(lost, NAMED, by=';')}. Give them more replicas (`kreassign plan "
        "replication-factor`), then give the command again"
    )


def _remember(facts: MaintenanceFacts) -> Remember | None:
    new = tuple(broker for broker in facts.brokers if broker not in facts.record.staying)
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
    due = {} if change is None else facts.naming(change.targets)
    ours = due.keys() & set(facts.our_cordons)
    if others := {broker: names for broker, names in due.items() if broker not in ours}:
        return Blocked(f"another replica cannot be put first in {_why_not(facts, others)}. Then give the command again")
    return Uncordon(tuple(sorted(ours))) if ours else None


def _why_not(facts: MaintenanceFacts, brokers: Mapping[int, Collection[TopicPartition]]) -> str:
    """For each broker that no list may name: its partitions, the reason, and what to do."""
    return "; ".join(
        f"{some_partitions(names)}: Kafka takes no changed list that names broker {broker}, because "
        f"{facts.refused[broker]}; {_way_to_open(facts, broker)}"
        for broker, names in sorted(brokers.items())
    )


def _way_to_open(facts: MaintenanceFacts, broker: int) -> str:
    if broker in facts.others_away:
        both = ",".join(map(str, sorted({broker, *facts.brokers})))
        return (
            f"end its maintenance (`kreassign maintenance exit {broker}`), or have both in maintenance at once after "
            f"that (`kreassign maintenance enter {both}`)"
        )
    if broker not in facts.found.live:
        return f"it is not live: start it, or move its replicas away (`kreassign decommission {broker}`)"
    return f"uncordon it (`kreassign decommission {broker} --cancel`, or kafka-configs where others have cordoned it)"


def _not_held(facts: MaintenanceFacts) -> Blocked | None:
    """Runs avoid cordoned brokers; for a broker that cannot be cordoned the operator has to pause them."""
    open_ones = {
        one.broker
        for one in facts.found.brokers
        if one.cordon is not None and not one.is_closed
        if not one.cordon.is_known or one.broker in facts.uncordoned
    }
    names = sorted(name for name, brokers in facts.coming.items() if open_ones.intersection(brokers))
    if not names:
        return None
    return Blocked(
        f"a run of this state directory is still to move {some_partitions(names)} to {listed_brokers(open_ones)}, "
        "which cannot be cordoned: cancel it (`kreassign cancel`), or while a process executes it, pause it until the "
        "maintenance is over (`kreassign pause`). Then give the command again"
    )


def _await_arriving(facts: MaintenanceFacts) -> Await | None:
    names = sorted({name for one in facts.found.brokers for name in one.arriving})
    return (
        Await(f"{some_partitions(names)} {_is(names)} being reassigned to {listed_brokers(facts.brokers)}")
        if names
        else None
    )


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
        return Await(some_of(short, SHOWN, by=";"))
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
    gone = _gone(facts.found)
    if forgotten := tuple(one.broker for one in gone if one.broker in facts.record.brokers):
        return Forget(forgotten)
    if gone and len(gone) == len(facts.found.brokers):
        return Finished(tuple(map(_is_gone, gone)))
    facts = _without(facts, gone)
    return (
        _down(facts.found.brokers)
        or unseen_on(facts.found)
        or _begin_end(facts)
        or _uncordon(facts)
        or _await_sync(facts)
        or restored(facts)
        or _elect_back(facts)
        or _not_back(facts)
        or _forget(facts)
        or Finished(tuple(map(_in_service, facts.found.brokers)))
    )


def due_to_exit(facts: MaintenanceFacts) -> tuple[Step, ...]:
    """All steps until the brokers are as before, as far as foreseeable; empty if blocked or finished."""
    first = next_to_exit(facts)
    if isinstance(first, Blocked | Finished):
        return ()
    gone = _gone(facts.found)
    if isinstance(first, Forget):
        record = facts.record.left(first.brokers, facts.record.at_ms)
        return (first, *due_to_exit(replace(_without(facts, gone), record=record)))
    facts = _without(facts, gone)
    change = restored(facts)
    # Lists left alone are reported when the others are restored.
    ended = None if _forget(facts) is None else Forget(facts.brokers)
    return _due(first, _uncordon(facts), change, _with_change(change, _elect_back(facts)), ended)


def _gone(found: Readings) -> tuple[BrokerReading, ...]:
    """Brokers that will not come back as they were, so that nothing of theirs is to be restored."""
    is_whole = not (found.unseen or found.unread)
    return tuple(
        one
        for one in found.brokers
        if one.is_registered is False or (one.is_registered is None and is_whole and not one.replicas)
    )


def _is_gone(one: BrokerReading) -> str:
    is_known = one.is_registered is not None
    return f"broker {one.broker} is not {'registered' if is_known else 'live, and no replica list names it'}"


def _without(facts: MaintenanceFacts, gone: Collection[BrokerReading]) -> MaintenanceFacts:
    here = tuple(one for one in facts.found.brokers if one not in gone)
    return replace(facts, found=replace(facts.found, brokers=here))


def _down(brokers: Iterable[BrokerReading]) -> Blocked | None:
    down = [one for one in brokers if not one.is_live]
    if not down:
        return None
    them, ids = "it" if len(down) == 1 else "them", ",".join(str(one.broker) for one in down)
    unregister = "" if any(one.is_registered is None for one in down) else " --unregister"
    return Blocked(
        f"{listed_brokers(one.broker for one in down)} {_is(down)} not live: start {them}, or take {them} out "
        f"(`kreassign decommission {ids}{unregister}`), then give the command again"
    )


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


def _not_back(facts: MaintenanceFacts) -> Blocked | None:
    """Others have cordoned brokers that are not in maintenance: their operator has to open them."""
    others = {broker: names for broker, names in held_back(facts).items() if broker not in facts.others_away}
    if not others:
        return None
    return Blocked(
        "all else is as it was before the maintenance; the former order cannot be restored in "
        f"{_why_not(facts, others)}. Then give the command again"
    )


def _elect_back(facts: MaintenanceFacts) -> Elect | None:
    originals = {name: order.original for name, order in due_back(facts)}
    names = [
        one.topic_partition
        for one in facts.free
        if one.replicas[0] in facts.brokers or originals.get(one.topic_partition) == one.replicas
        if one.replicas[0] in one.isr and one.leader != one.replicas[0]
    ]
    return Elect(tuple(sorted(names))) if names else None


def _begin_end(facts: MaintenanceFacts) -> BeginEnd | None:
    due = tuple(broker for broker in facts.brokers if broker in facts.record.staying)
    return BeginEnd(due) if due else None


def _uncordon(facts: MaintenanceFacts) -> Uncordon | None:
    """End the cordon of the maintenance, also where the broker shows none: it may lag, or that was not recorded."""
    ours = tuple(
        one.broker
        for one in facts.recorded_cordons
        if one.cordon and one.cordon.is_known and (not one.cordon.value or is_our_cordon(one.cordon.value))
    )
    return Uncordon(ours) if ours else None


def _forget(facts: MaintenanceFacts) -> Forget | None:
    if facts.record.brokers.keys().isdisjoint(facts.brokers):
        return None
    present = {one.topic_partition: one.replicas for one in facts.found.partitions}
    later = {name: broker for broker, names in held_back(facts).items() for name in names}
    left = (
        f"{name} keeps {list(present[name])}"
        + (
            f" until broker {later[name]}, which is cordoned, leaves its maintenance, too"
            if name in later
            else ", for its topic was deleted and created again"
            if is_recreated(facts, name, order)
            else ", for somebody else has changed or moves it"
        )
        for name, order in over(facts)
        if name in present and present[name] != order.original and not set(facts.brokers).isdisjoint(order.original)
    )
    back = frozenset(name for name, order in over(facts) if present.get(name) == order.original)
    return Forget(facts.brokers, tuple(left), back)


def _is(names: Sized) -> str:
    return "is" if len(names) == 1 else "are"
