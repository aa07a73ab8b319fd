"""What is wrong with where replicas are: brokers and racks down, too few in sync, odd factors and racks. Pure."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from kreassign.executor.guards.health import under_min_isr
from kreassign.executor.history.issue import Issue, of_many, plan
from kreassign.model import NO_LEADER, Broker, OngoingReassignment, Partition, TopicPartition


@dataclass(frozen=True, slots=True)
class PlacementReadings:
    """Brokers, those that are down too as far as the cluster names them, partitions, and min.insync.replicas."""

    brokers: tuple[Broker, ...]
    partitions: tuple[Partition, ...]
    ongoing: Mapping[TopicPartition, OngoingReassignment] = field(default_factory=dict)
    min_isr: Mapping[str, int] = field(default_factory=dict)

    @property
    def live(self) -> frozenset[int]:
        """Ids of the brokers that answer."""
        return frozenset(broker.id for broker in self.brokers if not broker.is_fenced)

    @property
    def down(self) -> tuple[int, ...]:
        """Ids of brokers that have replicas, or are registered, and do not answer."""
        holders = {replica for one in self.partitions for replica in one.replicas}
        return tuple(sorted((holders | {broker.id for broker in self.brokers}) - self.live))


def placement_issues(readings: PlacementReadings) -> Iterator[Issue]:
    """What is wrong, the worst first."""
    yield from _brokers(readings)
    yield from _under_min_isr(readings)
    yield from _unwritable(readings)
    yield from _factors(readings)
    yield from _racks(readings)


def _brokers(readings: PlacementReadings) -> Iterator[Issue]:
    """Brokers that are down: rack by rack where a whole rack is, else one by one."""
    known = {broker.id: broker for broker in readings.brokers}
    down = set(readings.down)
    by_rack: dict[str, set[int]] = defaultdict(set)
    for broker in readings.brokers:
        if broker.rack is not None:
            by_rack[broker.rack].add(broker.id)
    for rack, members in sorted(by_rack.items()):
        if len(members) > 1 and members <= down:
            yield _down(readings, f"rack {rack}", sorted(members), f"all its brokers {sorted(members)} are down")
            down -= members
    for broker_id in sorted(down):
        name = str(known[broker_id]) if broker_id in known else f"broker {broker_id}"
        yield _down(readings, name, [broker_id], "it is down")


def _down(readings: PlacementReadings, subject: str, brokers: list[int], seen: str) -> Issue:
    touched = [one for one in readings.partitions if set(one.replicas).intersection(brokers)]
    offline = sum(one.leader == NO_LEADER for one in touched)
    last = sum(one.leader != NO_LEADER and len(one.isr) == 1 for one in touched)
    risk = f"{len(touched)} partitions have a replica there: {offline} without leader, {last} with one replica in sync"
    gone = ",".join(map(str, brokers))
    remedy = "Start it; if it is lost for good, plan without it" if touched else "Start it, or unregister it"
    commands = (plan("drain-brokers", gone),) if touched else (("kreassign", "decommission", gone, "--dry-run"),)
    return Issue("broker", subject, f"{seen}; {risk}", remedy, commands)


def _under_min_isr(readings: PlacementReadings) -> Iterator[Issue]:
    names = under_min_isr(readings.partitions, readings.min_isr)
    seen = "have fewer replicas in sync than min.insync.replicas: producers with acks=all cannot write"
    remedy = "Bring the brokers of their replicas back, or replace replicas that are lost"
    yield from of_many("min-isr", names, seen, remedy, (plan("repair"),))


def _unwritable(readings: PlacementReadings) -> Iterator[Issue]:
    factors = _usual_factors(readings.partitions)
    for topic, least in sorted(readings.min_isr.items()):
        if topic in factors and least > factors[topic]:
            yield Issue(
                "min-isr",
                f"topic {topic}",
                f"min.insync.replicas is {least}, and its partitions have {factors[topic]} replicas: producers with "
                "acks=all can never write",
                "Give it more replicas",
                (plan("replication-factor", str(least), "--topic", topic),),
            )


def _factors(readings: PlacementReadings) -> Iterator[Issue]:
    """Partitions with another number of replicas than most of their topic."""
    factors = _usual_factors(readings.partitions)
    odd = [one.topic_partition for one in _at_rest(readings) if len(one.replicas) < factors[one.topic_partition.topic]]
    yield from of_many(
        "factor", odd, "have fewer replicas than the rest of their topics", "Add them", (plan("repair"),)
    )


def _racks(readings: PlacementReadings) -> Iterator[Issue]:
    """Partitions with two replicas in one rack although there are racks without any."""
    racks = {broker.id: broker.rack for broker in readings.brokers if broker.rack is not None}
    usable = {racks[broker] for broker in readings.live if broker in racks}
    if len(usable) < 2 or not readings.live <= racks.keys():
        return
    crowded = [
        one.topic_partition
        for one in _at_rest(readings)
        if len({racks.get(broker, str(broker)) for broker in one.replicas}) < min(len(one.replicas), len(usable))
    ]
    seen = f"have more replicas in one rack than they need, of {len(usable)} racks"
    yield from of_many("racks", crowded, seen, "Spread them", (plan("repair"),))


def _at_rest(readings: PlacementReadings) -> Iterable[Partition]:
    return (one for one in readings.partitions if one.topic_partition not in readings.ongoing)


def _usual_factors(partitions: Iterable[Partition]) -> dict[str, int]:
    counts: dict[str, Counter[int]] = defaultdict(Counter)
    for one in partitions:
        counts[one.topic_partition.topic][len(one.replicas)] += 1
    return {topic: max(found, key=lambda factor: (found[factor], factor)) for topic, found in counts.items()}
