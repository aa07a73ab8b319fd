"""Scenarios: a cluster described in a few lines of TOML.

docs/reference/scenarios.md explains the language key by key. Partitions are placed at random and have random sizes:
equal seeds give equal clusters. The table `[security]` names users and permissions. Pure.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from kreassign.errors import InputError
from kreassign.model import ConfigChange, ConfigResource, striped
from kreassign.model.cluster import listed_ids, named_brokers
from kreassign.model.documents import KeyedTable
from kreassign.model.text import LARGEST_ID, MOST_REPLICAS, agreeing, counted
from kreassign.model.throttle import involved_brokers, log_dir_rate_changes, move_map, rate_changes, topic_changes
from kreassign.twin.access import CLUSTER_OPERATIONS, TOPIC_OPERATIONS, Allow, Operation, Permissions, Users
from kreassign.twin.blueprint import Blueprint, BrokerPlan, PartitionPlan, TopicPlan, seeded_random
from kreassign.twin.faults import PlannedFault, read_faults
from kreassign.twin.replication.hardware import FAST_DISK, TEN_GIGABIT, TWO_TERABYTES, BrokerHardware, LogDirHardware
from kreassign.twin.replication.partition_logs import Traffic

# Random placement and sizes of the partitions of a topic; equal seeds give equal results.


@dataclass(frozen=True, slots=True)
class Place:
    """Brokers that may hold replicas, in order, and the rack of each (None where it has none).

    Without `skew` Kafka's own placement is used. With it the broker at place k (from 0) is chosen (k + 1)^-skew times
    as often as the first: 1 means half as often for the second, a third as often for the third.
    """

    racks: Mapping[int, str | None]
    skew: float = 0.0

    def draw(self, partitions: int, replication_factor: int, rng: random.Random) -> Sequence[tuple[int, ...]]:
        """Replica lists for this many partitions of one topic, on different racks first if all brokers have a rack."""
        if len(self.racks) < replication_factor:
            need = f"{counted(replication_factor, 'replica')} {agreeing(replication_factor, 'need')}"
            raise InputError(f"{need} as many brokers; there are {listed_ids(sorted(self.racks))}")
        if not self.skew:
            brokers = [striped.UsableBroker(*each) for each in self._known_racks.items()]
            return striped.place(brokers, partitions, replication_factor, rng)
        return [self._draw_skewed(replication_factor, rng) for _ in range(partitions)]

    @property
    def _known_racks(self) -> Mapping[int, str | None]:
        """The racks if every broker has one; Kafka ignores racks too if any broker has none."""
        return dict.fromkeys(self.racks) if None in self.racks.values() else self.racks

    def _draw_skewed(self, replication_factor: int, rng: random.Random) -> tuple[int, ...]:
        racks, chosen = self._known_racks, list[int]()
        while len(chosen) < replication_factor:
            taken = {racks[broker] for broker in chosen}
            free = [broker for broker in racks if broker not in chosen]
            # A rack gets a second replica only when every other rack has one.
            apart = [broker for broker in free if racks[broker] not in taken] or free
            places = {broker: place for place, broker in enumerate(racks)}
            chosen += rng.choices(apart, [(places[broker] + 1) ** -self.skew for broker in apart])
        return tuple(chosen)


def shares(count: int, spread: float, rng: random.Random) -> Iterator[float]:
    """Relative sizes of so many partitions, with mean 1: log-normal; the logarithm has the standard deviation `spread`.

    0 makes all equal; with 1 the largest of a hundred partitions is usually about seven times the mean.
    """
    # The mean of a log-normal distribution is exp(mu + sigma²/2).
    return (rng.lognormvariate(-(spread**2) / 2, spread) if spread else 1.0 for _ in range(count))


# Users and permissions of a twin, from the table `[security]`.


@dataclass(frozen=True, slots=True)
class Security:
    """Client access. Without `users` clients need not authenticate; without a certificate there is no TLS.

    `certificate` and `key` are paths of PEM files, relative to the scenario. Without `permissions` every client may do
    everything.
    """

    users: Users | None = None
    certificate: str | None = None
    key: str | None = None
    permissions: Permissions | None = None


OPEN = Security()
"""Every client may connect and do everything."""


def read_security(table: KeyedTable) -> Security:
    """Read the table `[security]`; an empty one allows everything."""
    with table.taken_whole():
        passwords = table.text_map("users")
        certificate, key = table.text("certificate", ""), table.text("key", "")
        if bool(certificate) != bool(key):
            raise InputError("'certificate' and 'key' belong together; give both or none")
        super_users = frozenset(table.texts("super_users"))
        rules = frozenset(_read_rule(rule) for rule in table.tables("allow"))
        return Security(
            Users(passwords) if passwords else None,
            certificate or None,
            key or None,
            Permissions(rules, super_users) if rules or super_users else None,
        )


def _read_rule(table: KeyedTable) -> Allow:
    with table.taken_whole():
        principal, name = table.text("principal"), table.text("operation")
        topic = table.text("topic") if table.has("topic") else None
        possible = CLUSTER_OPERATIONS if topic is None else TOPIC_OPERATIONS
        operation = next((operation for operation in possible if operation.name == name.upper()), None)
        if operation is None:
            names = ", ".join(operation.name for operation in sorted(possible))
            whom = "the cluster" if topic is None else "a topic"
            raise InputError(f"{name!r} is no operation on {whom}; there are {names}")
        if not principal.startswith("User:"):
            raise InputError(f"{principal!r} is no principal; write User:name")
        return Allow(principal, Operation(operation), topic)


# The scenario itself: brokers, topics, moves in progress, throttles, and faults.

STEEPEST = 100.0
MOST = 10_000_000
"""The largest count of anything: more would keep a machine busy for hours before its memory is full."""


@dataclass(frozen=True, slots=True)
class Scenario:
    """The contents of a scenario file. `kafka_version` is None if it leaves the release open."""

    blueprint: Blueprint
    seed: int = 0
    kafka_version: str | None = None
    security: Security = OPEN
    faults: tuple[PlannedFault, ...] = ()


@dataclass(frozen=True, slots=True)
class _Group:
    """Equal brokers; topics that name no brokers skip a group that `is_empty`."""

    brokers: tuple[BrokerPlan, ...]
    configs: Mapping[str, str]
    is_empty: bool


def parse_scenario(text: str, name: str) -> Scenario:
    """Parse a scenario; `name` is the name of the file in errors. Raises InputError."""
    with KeyedTable.from_toml(text, name).taken_whole() as top:
        seed = top.whole("seed", 0)
        cluster_id = top.text("cluster_id", "twin")
        kafka_version = top.text("kafka_version") if top.has("kafka_version") else None
        groups = _read_groups(top.tables("brokers"))
        topics = [topic for table in top.tables("topics") for topic in _read_topics(table, groups, seed)]
        brokers = tuple(broker for group in groups for broker in group.brokers)
        configs: dict[int | None, Mapping[str, str]] = {
            broker.id: group.configs for group in groups if group.configs for broker in group.brokers
        }
        blueprint = Blueprint(brokers, _named_once(topics), configs, cluster_id)
        for table in top.tables("moves"):
            blueprint = _read_move(table, blueprint)
        return Scenario(
            _read_throttle(top.table("throttle"), blueprint),
            seed,
            kafka_version,
            read_security(top.table("security")),
            read_faults(top.raw_tables("faults")),
        )


# --- brokers --------------------------------------------------------------------------------------------------------


def _read_groups(tables: tuple[KeyedTable, ...]) -> list[_Group]:
    groups: list[_Group] = []
    applier = 0
    for table in tables:
        groups.append(_read_group(table, applier))
        applier = groups[-1].brokers[-1].id + 1
    return groups


def _read_group(table: KeyedTable, applier: int) -> _Group:
    with table.taken_whole():
        first = table.whole("first_id", applier, most=LARGEST_ID)
        count = table.whole("count", 1, least=1, most=min(MOST, LARGEST_ID - first + 1))
        racks, is_down = table.texts("racks"), table.flag("down", default=False)
        network = table.amount("network", TEN_GIGABIT)
        hardware = BrokerHardware(_read_log_dirs(table.tables("log_dirs")), network, network)
        brokers = tuple(
            BrokerPlan(first + place, hardware, racks[place % len(racks)] if racks else None, is_down=is_down)
            for place in range(count)
        )
        return _Group(brokers, table.text_map("configs"), table.flag("empty", default=False))


def _read_log_dirs(tables: tuple[KeyedTable, ...]) -> tuple[LogDirHardware, ...]:
    found: list[LogDirHardware] = []
    for table in tables:
        with table.taken_whole():
            count, path = table.whole("count", 1, least=1, most=MOST), table.text("path", "")
            if path and count > 1:
                raise InputError("a 'path' is one directory; write a table for each of them, without 'count'")
            sizes = (
                table.amount("capacity", TWO_TERABYTES),
                table.amount("read", FAST_DISK),
                table.amount("write", FAST_DISK),
            )
            found += [LogDirHardware(path or f"/data/d{len(found) + place}", *sizes) for place in range(count)]
    return tuple(found) or (LogDirHardware("/data/d0"),)


# --- topics ---------------------------------------------------------------------------------------------------------


def _read_topics(table: KeyedTable, groups: list[_Group], seed: int) -> Iterator[TopicPlan]:
    with table.taken_whole():
        name, count = table.text("name"), table.whole("count", 1, least=1, most=MOST)
        partitions = table.whole("partitions", 1, least=1, most=MOST)
        factor = table.whole("replication_factor", 3, least=1, most=MOST_REPLICAS)
        place = Place(_racks(table.wholes("brokers"), groups), table.number("skew", 0, most=STEEPEST))
        spread, path = table.number("spread", 0, most=STEEPEST), table.text("log_dir", "")
        paths = (path,) * factor if path else ()
        mean = Traffic(
            table.amount("size", 0),
            float(table.amount("write_rate", 0)),
            float(table.amount("record_size", 1000, least=1)),
        )
        configs = table.text_map("configs")
        for number in range(count):
            topic = name if count == 1 else f"{name}-{number:0{len(str(count - 1))}}"
            rng = seeded_random(f"{seed}:{topic}")
            lists = place.draw(partitions, factor, rng)
            parts = shares(partitions, spread, rng)
            plans = (
                PartitionPlan(replicas, _part(mean, part), paths=paths)
                for replicas, part in zip(lists, parts, strict=True)
            )
            yield TopicPlan(topic, tuple(plans), configs)


def _part(mean: Traffic, part: float) -> Traffic:
    """The traffic of a partition of this size: larger partitions get more writes, too."""
    return replace(mean, size_bytes=round(mean.size_bytes * part), write_bytes_per_s=mean.write_bytes_per_s * part)


def _racks(named: tuple[int, ...], groups: list[_Group]) -> dict[int, str | None]:
    known = {broker.id: broker.rack for group in groups for broker in group.brokers}
    if unknown := [broker for broker in named if broker not in known]:
        raise InputError(f"'brokers' names {named_brokers(unknown)}, not among the brokers {listed_ids(sorted(known))}")
    usual = [broker.id for group in groups if not group.is_empty for broker in group.brokers]
    return {broker: known[broker] for broker in named or usual}


def _named_once(topics: list[TopicPlan]) -> tuple[TopicPlan, ...]:
    by_name = {topic.name: topic for topic in topics}
    if len(by_name) < len(topics):
        raise InputError("two topics have the same name; give each [[topics]] another")
    return tuple(topics)


# --- moves in progress, and their throttle --------------------------------------------------------------------------


def _read_move(table: KeyedTable, blueprint: Blueprint) -> Blueprint:
    with table.taken_whole():
        name, numbers = table.text("topic"), table.wholes("partitions")
        origin, target = table.whole("from", most=LARGEST_ID), table.whole("to", most=LARGEST_ID)
        copied = table.number("copied", 0, most=1)
        topic = next((topic for topic in blueprint.topics if topic.name == name), None)
        if topic is None:
            raise InputError(f"there is no topic {name!r}; there are {[topic.name for topic in blueprint.topics]}")
        if target not in blueprint.hardware:
            raise InputError(
                f"'to' is {target}; it must be one of the brokers {listed_ids(sorted(blueprint.hardware))}"
            )
        partitions = list(topic.partitions)
        for number in _chosen(topic, numbers, origin, target):
            partitions[number] = _moving(partitions[number], origin, target, copied, blueprint.down)
        moved = replace(topic, partitions=tuple(partitions))
        return replace(blueprint, topics=tuple(moved if other is topic else other for other in blueprint.topics))


def _chosen(topic: TopicPlan, numbers: tuple[int, ...], origin: int, target: int) -> list[int]:
    """The partitions to move: the named ones, or all that can move."""
    able = [
        number
        for number, plan in enumerate(topic.partitions)
        if origin in plan.replicas and target not in plan.replicas and not plan.adding
    ]
    unable = sorted(set(numbers) - set(able))
    if unable or not able:
        raise InputError(
            f"partitions {unable or 'of ' + topic.name} have no replica to move from broker {origin} to {target}; "
            f"{'those that have one are ' + str(able) if able else 'none has one'}"
        )
    return list(numbers) or able


def _moving(plan: PartitionPlan, origin: int, target: int, copied: float, down: frozenset[int]) -> PartitionPlan:
    requested = tuple(target if broker == origin else broker for broker in plan.replicas)
    return replace(
        plan,
        replicas=(*requested, origin),
        paths=(*plan.paths, plan.paths[0]) if plan.paths else (),
        leader=plan.first_leader(down),
        adding=(target,),
        removing=(origin,),
        held_bytes={target: round(plan.traffic.size_bytes * copied)},
    )


def _read_throttle(table: KeyedTable, blueprint: Blueprint) -> Blueprint:
    """Throttle the moves in progress as Kafka's tool would, and directory moves on all brokers."""
    with table.taken_whole():
        rate, log_dir_rate = table.amount("rate", 0), table.amount("log_dir_rate", 0)
        moves = move_map(blueprint.ongoing, {}, {})
        if rate and not moves:
            raise InputError(
                "'rate' limits moves that are under way, and there are none; add [[moves]] or leave it out"
            )
        if rate:
            changes = topic_changes(moves) | rate_changes(involved_brokers(moves), rate)
            blueprint = _configured(blueprint, changes)
        if log_dir_rate:
            blueprint = _configured(blueprint, log_dir_rate_changes(blueprint.hardware, log_dir_rate))
        return blueprint


def _configured(blueprint: Blueprint, changes: Mapping[ConfigResource, tuple[ConfigChange, ...]]) -> Blueprint:
    values = {owner: {step.name: step.value or "" for step in steps} for owner, steps in changes.items()}
    topics = tuple(
        replace(topic, configs={**topic.configs, **values.get(ConfigResource.topic(topic.name), {})})
        for topic in blueprint.topics
    )
    brokers: dict[int | None, Mapping[str, str]] = {
        broker: {**blueprint.broker_configs.get(broker, {}), **values.get(ConfigResource.broker(broker), {})}
        for broker in blueprint.hardware
    }
    return replace(blueprint, topics=topics, broker_configs={**blueprint.broker_configs, **brokers})
