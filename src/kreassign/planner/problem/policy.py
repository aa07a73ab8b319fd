"""What a user wants of every plan: goals in their order, limits, tenants. `goals_file.py` reads them from a file."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from kreassign.errors import InputError
from kreassign.model.rack_prices import NO_PRICES, RackPrices
from kreassign.planner.arrays import NOWHERE
from kreassign.planner.goals import COORDINATORS, CPU
from kreassign.planner.problem.cluster import Brokers, Partitions
from kreassign.planner.problem.consumers import with_consumer_racks
from kreassign.planner.problem.coordinators import NOBODY, Coordinated
from kreassign.planner.problem.problem import DEFAULT_BANDS, Band, Problem, RackRule
from kreassign.planner.problem.selection import TopicChoice, chosen_brokers, matching

CORES = "cores"
"""Beside the limits of goals: how many cores a broker has. `cpu` counts cores then, not parts of a broker's CPU."""


@dataclass(frozen=True, slots=True)
class BrokerSet:
    """Brokers that keep to themselves: partitions of topics that match stay on them. Patterns match whole names."""

    name: str
    brokers: tuple[int, ...]
    topics: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class PlanPolicy:
    """Bands in their order, the rack rule, limits and tenants.

    `capacity` limits every broker by goal name, `broker_capacity` single ones; both may have `CORES`. `shares` are
    relative. `disk_reserve` is the part of a disk to be kept free where disk limits come from the snapshot.
    `reads_per_write` is how many times consumers read what producers write. `broker_racks` names the racks of brokers
    that do not say theirs, by id. `rack_prices` is what copies between racks cost. `leader_racks` has by pattern of
    topics the racks that are preferred for leaders, the most preferred first; of several patterns that match, the first
    counts. `consumer_racks` has likewise, relative to each other, how much consumers in each rack read that may fetch
    from followers.
    `coordinated` names who has a coordinator.
    `topic_spread`, `topic_leaders` and `failover`: see `Rules`.
    """

    bands: tuple[Band, ...] = DEFAULT_BANDS
    racks: RackRule = RackRule.EVEN
    capacity: Mapping[str, float] = field(default_factory=dict)
    broker_capacity: Mapping[int, Mapping[str, float]] = field(default_factory=dict)
    shares: Mapping[int, float] = field(default_factory=dict)
    broker_sets: tuple[BrokerSet, ...] = ()
    least_topic_leaders: Mapping[str, int] = field(default_factory=dict)
    leader_racks: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    consumer_racks: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    topic_spread: float | None = None
    topic_leaders: float | None = None
    failover: float | None = None
    excluded_topics: tuple[str, ...] = ()
    excluded_brokers: tuple[int, ...] = ()
    disk_reserve: float = 0.1
    reads_per_write: float = 1.0
    broker_racks: Mapping[int, str] = field(default_factory=dict)
    rack_prices: RackPrices = NO_PRICES
    coordinated: Coordinated = NOBODY

    def cores_of(self, brokers: Iterable[int]) -> dict[int, float]:
        """How many cores these brokers have, without those of which nobody said it."""
        common = self.capacity.get(CORES)
        found = {broker: self.broker_capacity.get(broker, {}).get(CORES, common) for broker in brokers}
        return {broker: cores for broker, cores in found.items() if cores is not None}

    @property
    def limits_cpu(self) -> bool:
        """Whether any broker has a limit of CPU."""
        return any(CPU.name in limits for limits in (self.capacity, *self.broker_capacity.values()))


def tenant_of(policy: PlanPolicy, topic: str) -> int:
    """The number of the broker set that a topic which is not there yet would belong to, or NOWHERE."""
    found = [
        number
        for number, one in enumerate(policy.broker_sets)
        if any(re.compile(pattern).fullmatch(topic) for pattern in one.topics)
    ]
    return found[-1] if found else NOWHERE


def with_tolerance(bands: tuple[Band, ...], tolerance: float) -> tuple[Band, ...]:
    """The same bands with one width."""
    return tuple(replace(band, tolerance=tolerance) for band in bands)


def with_policy(problem: Problem, policy: PlanPolicy) -> Problem:
    """The problem with this policy. Raises InputError for brokers, racks and topics that are not there."""
    _refuse_unknown_coordinators(problem, policy.bands)
    problem = replace(
        problem,
        bands=known_bands(problem.partitions, policy.bands),
        rules=replace(
            problem.rules,
            racks=policy.racks,
            least_topic_leaders=dict(policy.least_topic_leaders),
            topic_spread=policy.topic_spread,
            topic_leaders=policy.topic_leaders,
            failover=policy.failover,
        ),
    )
    unknown = sorted(set(policy.least_topic_leaders) - set(problem.partitions.topic_names))
    if unknown:
        raise InputError(f"least-topic-leaders: there is no topic {unknown[0]!r} in this cluster")
    problem = _with_consumers(_with_racks(problem, policy.broker_racks), policy.consumer_racks)
    problem = with_leader_racks(problem, policy.leader_racks)
    refuse_unknown_racks("rack-prices", problem, (rack for pair in policy.rack_prices.pairs for rack in pair))
    return _without(_with_sets(_with_limits(problem, policy), policy.broker_sets), policy)


def _refuse_unknown_coordinators(problem: Problem, bands: tuple[Band, ...]) -> None:
    if any(band.goal is COORDINATORS for band in bands) and not problem.partitions.coordinated_count.any():
        raise InputError(
            f"goal {COORDINATORS.name}: nothing is known of what is coordinated; name it with --groups, "
            "--transactional-ids or --share-groups"
        )


def known_bands(partitions: Partitions, bands: tuple[Band, ...]) -> tuple[Band, ...]:
    """Without goals of which nothing is known: a load that is zero everywhere cannot be evened out."""
    return tuple(band for band in bands if band.goal.leader(partitions).any() or band.goal.follower(partitions).any())


def _with_consumers(problem: Problem, wanted: Mapping[str, Mapping[str, float]]) -> Problem:
    chosen: dict[str, Mapping[str, float]] = {}
    for pattern, weights in wanted.items():
        refuse_unknown_racks("consumer-racks", problem, weights)
        whole = sum(weights.values())
        parts = {rack: weight / whole for rack, weight in sorted(weights.items())}
        for topic in sorted(matching(pattern, problem.partitions.topic_names)):
            chosen.setdefault(topic, parts)
    return with_consumer_racks(problem, chosen)


def with_leader_racks(problem: Problem, wanted: Mapping[str, tuple[str, ...]]) -> Problem:
    """With preferred racks of leaders by topic. Raises InputError for a rack or a topic that is not there."""
    chosen: dict[str, tuple[str, ...]] = {}
    for pattern, racks in wanted.items():
        refuse_unknown_racks("leader-racks", problem, racks)
        for topic in sorted(matching(pattern, problem.partitions.topic_names)):
            chosen.setdefault(topic, racks)
    return replace(problem, rules=replace(problem.rules, leader_racks=chosen)) if chosen else problem


def refuse_unknown_racks(key: str, problem: Problem, racks: Iterable[str]) -> None:
    """Raise InputError for a rack that no broker is in."""
    known = problem.brokers.rack_names
    if unknown := sorted(set(racks) - set(known)):
        there = f"it has {', '.join(known)}" if known else "no broker says its rack; see broker-racks"
        raise InputError(f"{key}: there is no rack {unknown[0]!r} in this cluster; {there}")


def _with_racks(problem: Problem, given: Mapping[int, str]) -> Problem:
    """With these racks where brokers say none. Raises InputError for a broker that says another."""
    if not given:
        return problem
    brokers = problem.brokers
    chosen_brokers(brokers, given)
    said = {
        int(broker): None if rack == NOWHERE else brokers.rack_names[rack]
        for broker, rack in zip(brokers.ids, brokers.racks, strict=True)
    }
    for broker, rack in sorted(given.items()):
        if said[broker] not in {None, rack}:
            raise InputError(
                f"broker-racks: broker {broker} itself says that it is in rack {said[broker]}, not in {rack}; "
                "leave it out, or correct broker.rack"
            )
    racks = {**said, **given}
    names = tuple(sorted({rack for rack in racks.values() if rack is not None}))
    numbers = {None: NOWHERE, **{name: number for number, name in enumerate(names)}}
    indices = np.array([numbers[racks[broker]] for broker in brokers.ids.tolist()], np.int32)
    return replace(problem, brokers=replace(brokers, racks=indices, rack_names=names))


def _with_limits(problem: Problem, policy: PlanPolicy) -> Problem:
    brokers = problem.brokers
    if named := {*policy.broker_capacity, *policy.shares}:
        chosen_brokers(brokers, named)
    ids = brokers.ids.tolist()
    capacity = {name: limits.copy() for name, limits in brokers.capacity.items()}
    for name in {name for limits in (policy.capacity, *policy.broker_capacity.values()) for name in limits} - {CORES}:
        common = policy.capacity.get(name, np.inf)
        common_limits = (
            capacity.get(name, np.full(len(ids), np.inf)) if name not in policy.capacity else np.full(len(ids), common)
        )
        own = [policy.broker_capacity.get(broker, {}).get(name) for broker in ids]
        capacity[name] = np.array(
            [old if new is None else new for old, new in zip(common_limits.tolist(), own, strict=True)]
        )
    shares = np.array([policy.shares.get(broker, 1.0) for broker in ids])
    own_shares = dict.fromkeys((band.goal.name for band in problem.bands), shares) if policy.shares else brokers.shares
    limited = replace(brokers, capacity=dict(sorted(capacity.items())), shares=own_shares)
    return replace(problem, brokers=_with_cores(limited, policy))


def _with_cores(brokers: Brokers, policy: PlanPolicy) -> Brokers:
    """With limits of CPU in cores. Where not all have one, CPU is shared by cores, unless shares are given."""
    known = policy.cores_of(brokers.ids.tolist())
    if not known:
        return brokers
    if unknown := sorted(set(brokers.ids[brokers.staying].tolist()) - known.keys()):
        raise InputError(
            f"{CORES}: how many broker {unknown[0]} has is not known; name it under [broker-capacity.{unknown[0]}], or "
            "under [capacity] for all that have as many"
        )
    cores = np.array([known.get(broker, 1.0) for broker in brokers.ids.tolist()])
    capacity = dict(brokers.capacity)
    if CPU.name in capacity:
        capacity[CPU.name] = capacity[CPU.name] * cores
    is_shared = not policy.shares and not np.isfinite(brokers.capacity_of(CPU.name)[brokers.staying]).all()
    shares = {**brokers.shares, CPU.name: cores} if is_shared else brokers.shares
    return replace(brokers, capacity=capacity, shares=shares)


def _with_sets(problem: Problem, sets: tuple[BrokerSet, ...]) -> Problem:
    brokers, partitions = problem.brokers, problem.partitions
    of_brokers = np.full(len(brokers), NOWHERE, np.int32)
    of_topics = dict.fromkeys(partitions.topic_names, NOWHERE)
    for number, one in enumerate(sets):
        of_brokers[chosen_brokers(brokers, one.brokers)] = number
        for topic in {name for pattern in one.topics for name in matching(pattern, partitions.topic_names)}:
            of_topics[topic] = number
    if not sets:
        return problem
    numbers = np.array([of_topics[topic] for topic in partitions.topic_names], np.int32)[partitions.topics]
    return replace(
        problem,
        brokers=replace(brokers, broker_sets=of_brokers),
        partitions=replace(partitions, broker_sets=numbers),
    )


def _without(problem: Problem, policy: PlanPolicy) -> Problem:
    brokers, partitions = problem.brokers, problem.partitions
    if policy.excluded_topics:
        chosen = TopicChoice(excluded=policy.excluded_topics).of(partitions)
        partitions = replace(partitions, may_move=partitions.may_move & chosen)
    if policy.excluded_brokers:
        out = chosen_brokers(brokers, policy.excluded_brokers)
        brokers = replace(brokers, may_receive=brokers.may_receive & ~out)
    return replace(problem, brokers=brokers, partitions=partitions)
