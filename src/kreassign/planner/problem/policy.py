"""The user's policy for all plans (goals, limits, broker sets, racks), and its application to a problem.

`goals_file.py` reads a policy from a file. Larger parts of the policy are here too: choice of brokers and topics by
name or pattern, reads from followers (KIP-392), and load of coordinators.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import TypeVar

import numpy as np

from kreassign.errors import InputError
from kreassign.model.cluster import listed_ids
from kreassign.model.load import CPU_PER_READ
from kreassign.model.plan_facts import NO_PRICES, RackPrices
from kreassign.model.text import likely, name_pattern, share_of, shortened, string_hash
from kreassign.planner.arrays import NOWHERE, BoolArray, FloatArray
from kreassign.planner.goals import COORDINATORS, CPU
from kreassign.planner.problem.build import leader_cost
from kreassign.planner.problem.holds import Hold
from kreassign.planner.problem.problem import DEFAULT_BANDS, Band, Brokers, Partitions, Problem, RackRule

# Choice of brokers and topics.

INTERNAL = "__"
"""Prefix of Kafka's internal topics."""


def chosen_brokers(brokers: Brokers, ids: Iterable[int]) -> BoolArray:
    """Mask of the named brokers, shape (N,). Raises InputError for an unknown broker, or if none is named."""
    wanted, known = set(ids), brokers.ids.tolist()
    if not wanted:
        raise InputError("specify at least one broker")
    if unknown := sorted(wanted - set(known)):
        raise InputError(f"there is no broker {listed_ids(unknown)} in this cluster; it has {listed_ids(known)}")
    return np.isin(brokers.ids, sorted(wanted))


@dataclass(frozen=True, slots=True)
class TopicChoice:
    """All topics, or those named or matching a pattern; without those excluded. Patterns match the whole name."""

    names: tuple[str, ...] = ()
    patterns: tuple[str, ...] = ()
    excluded: tuple[str, ...] = ()

    def of(self, partitions: Partitions) -> BoolArray:
        """Mask of the chosen partitions, shape (P,).

        Raises InputError for an unknown topic or a pattern without a match.
        """
        known = partitions.topic_names
        wanted = set(known) if not (self.names or self.patterns) else set()
        for name in sorted(set(self.names)):
            known_topic(name, known)
        wanted |= set(self.names)
        for pattern in self.patterns:
            wanted |= matching(pattern, known)
        for pattern in self.excluded:
            wanted -= _excluded(pattern, known)
        return np.array([name in wanted for name in known], bool)[partitions.topics]


def _excluded(pattern: str, known: Collection[str]) -> set[str]:
    """Topics that a pattern excludes. It must match some, unless it is for internal topics, which may not exist yet."""
    if pattern.startswith(INTERNAL):
        return {name for name in known if name_pattern(pattern).fullmatch(name)}
    return matching(pattern, known)


def matching(pattern: str, names: Iterable[str]) -> set[str]:
    """Names that a pattern matches as a whole. Raises InputError if it is not a pattern, or matches none."""
    compiled, known = name_pattern(pattern), list(names)
    found = {name for name in known if compiled.fullmatch(name)}
    if not found:
        nearest = f"{similar_names(pattern, known)}; a pattern must match the whole name, as in 'orders.*'"
        listed = "; this is not a list with commas: give the option once for each"
        raise InputError(f"no topic matches {pattern!r}{listed if ',' in pattern else nearest}")
    return found


def known_topic(name: str, known: Collection[str]) -> str:
    """The name of a topic. Raises InputError, with the nearest names, if there is none of this name."""
    if name not in known:
        listed = "; a name has no comma: give each topic by itself" if "," in name else similar_names(name, known)
        raise InputError(f"there is no topic {shortened(name)!r} in this cluster{listed}")
    return name


def similar_names(name: str, known: Iterable[str]) -> str:
    """The end of a message that asks about the names that were probably meant; "" if there are none."""
    near = [one for one in known if name.lower() in one.lower() or one.lower() in name.lower()] or likely(name, known)
    return f"; did you mean {', '.join(map(repr, near[:3]))}?" if near else ""


# Consumers that fetch from followers (KIP-392): where the reads of a partition go, as loads of leaders and followers.
#
# With replica.selector.class=RackAwareReplicaSelector on the brokers, and client.rack on a consumer in rack k, the
# consumer reads from the leader if that is in k, else from a follower in k if there is one, else from the leader. With
# w(k) as the part of a partition's reads that consumers in rack k do,
#
#     followers send  F = sum of w(k) over the racks that have a follower but not the leader
#     the leader      1 - F, besides what it sends to followers
#
# The search knows replicas only by role: each follower counts with F / (factor - 1), as replicas are spread now.
# `planner/check/evaluate.py` counts every replica in its actual place.


def with_consumer_racks(problem: Problem, parts: Mapping[str, Mapping[str, float]]) -> Problem:
    """Let reads go to followers. `parts` has by topic the part of reads from each rack, by name."""
    if not parts:
        return problem
    partitions = problem.partitions
    consumed = np.maximum(partitions.read_bytes_per_s - partitions.write_bytes_per_s * (partitions.factors - 1), 0.0)
    moved = consumed * _followers_part(problem, parts)
    followers = partitions.factors - 1
    cost = leader_cost(partitions.write_bytes_per_s, partitions.read_bytes_per_s)
    # In the unit of the leader's CPU: these reads' part of the cost of leading.
    moved_cpu = partitions.leader_cpu * np.divide(CPU_PER_READ * moved, cost, out=np.zeros(len(moved)), where=cost > 0)
    each, each_cpu = (
        np.divide(one, followers, out=np.zeros(len(moved)), where=followers > 0) for one in (moved, moved_cpu)
    )
    return replace(
        problem,
        rules=replace(problem.rules, consumer_racks=parts),
        partitions=replace(
            partitions,
            read_bytes_per_s=partitions.read_bytes_per_s - moved,
            follower_reads=each,
            leader_cpu=np.maximum(partitions.leader_cpu - moved_cpu, 0.0),
            follower_cpu=partitions.follower_cpu + each_cpu,
        ),
    )


def _followers_part(problem: Problem, parts: Mapping[str, Mapping[str, float]]) -> FloatArray:
    """Part of the reads of each partition that its followers serve, (P,)."""
    partitions, brokers = problem.partitions, problem.brokers
    racks = brokers.racks[partitions.replicas]
    leaders = racks[partitions.offsets[:-1]][partitions.owners]
    weights = np.array([[parts.get(topic, {}).get(rack, 0.0) for rack in brokers.rack_names]
                        for topic in partitions.topic_names]).reshape(len(partitions.topic_names), -1)  # fmt: skip
    away = (racks != NOWHERE) & (racks != leaders)
    width = len(brokers.rack_names)
    served = np.unique(partitions.owners[away].astype(np.int64) * width + racks[away])
    owners = served // width
    found = np.bincount(owners, weights[partitions.topics[owners], served % width], len(partitions))
    return found.astype(np.float64)


# Load of coordinators: groups, transactional ids and share groups, by the partition whose leader coordinates them.
#
# Kafka maps each of them to a partition of an internal topic by Java's hash of its name; the leader of the partition
# is the coordinator:
#
#     __consumer_offsets    the group id
#     __transaction_state   the transactional id
#     __share_group_state   group id, topic id and partition, joined by colons; one for every partition read
#
# `Utils.abs(name.hashCode()) % partitions`. Bytes are no measure of it: offsets are compacted, and one group may be as
# busy as a hundred that have stopped.

GROUPS, TRANSACTIONS, SHARE_GROUPS = "__consumer_offsets", "__transaction_state", "__share_group_state"


@dataclass(frozen=True, slots=True)
class Coordinated:
    """Everything with a coordinator: group ids, transactional ids, and share groups with a topic that they read."""

    groups: tuple[str, ...] = ()
    transactional_ids: tuple[str, ...] = ()
    share_groups: tuple[tuple[str, str], ...] = ()


NOBODY = Coordinated()


def with_coordinated(problem: Problem, coordinated: Coordinated, topic_ids: Mapping[str, str]) -> Problem:
    """Count what the leader of each partition coordinates; topic ids are by name.

    Raises InputError if the internal topic, or a topic that a share group reads or its id, is missing.
    """
    if coordinated == NOBODY:
        return problem
    names = {
        GROUPS: coordinated.groups,
        TRANSACTIONS: coordinated.transactional_ids,
        SHARE_GROUPS: tuple(_share_keys(problem, coordinated.share_groups, topic_ids)),
    }
    partitions = problem.partitions
    counts = np.zeros(len(partitions))
    for topic, keys in names.items():
        if not keys:
            continue
        if topic not in partitions.topic_names:
            raise InputError(f"there is no topic {topic} in this cluster, so that nothing coordinates {keys[0]!r}")
        its = np.flatnonzero(partitions.topics == partitions.topic_names.index(topic))
        chosen = [share_of(string_hash(key), len(its)) for key in dict.fromkeys(keys)]
        counts[its] = np.bincount(chosen, minlength=len(its))[partitions.numbers[its]]
    return replace(problem, partitions=replace(partitions, coordinated=counts))


def _share_keys(problem: Problem, groups: Iterable[tuple[str, str]], topic_ids: Mapping[str, str]) -> Iterable[str]:
    partitions = problem.partitions
    for group, topic in groups:
        try:
            known_topic(topic, partitions.topic_names)
        except InputError as error:
            raise InputError(f"share group {group}: {error}") from error
        if topic not in topic_ids:
            raise InputError(f"share group {group}: the id of topic {topic} is not known; take a new snapshot")
        count = int((partitions.topics == partitions.topic_names.index(topic)).sum())
        yield from (f"{group}:{topic_ids[topic]}:{number}" for number in range(count))


def parse_names(text: str) -> tuple[str, ...]:
    """Parse group or transactional ids, one a line, as `kafka-consumer-groups --list` prints them; skip empty lines.

    Raises InputError for binary data, which names the line.
    """
    return tuple(dict.fromkeys(line for _, line in _filled_lines(text)))


def parse_share_groups(text: str) -> tuple[tuple[str, str], ...]:
    """Parse share groups with a topic that they read, `GROUP:TOPIC` a line. Raises InputError, which names the line."""
    found: dict[tuple[str, str], None] = {}
    for number, line in _filled_lines(text):
        group, _, topic = line.rpartition(":")
        if not (group and topic):
            raise InputError(f"line {number}: {line[:80]!r} names no share group and topic; write GROUP:TOPIC")
        found[group, topic] = None
    return tuple(found)


def _filled_lines(text: str) -> Iterator[tuple[int, str]]:
    """Lines that are not empty, with their numbers from 1. Raises InputError for binary data."""
    for number, line in enumerate(text.split("\n"), start=1):
        if "\0" in line:
            raise InputError(f"line {number}: no text, but zero bytes; write one id a line")
        if line.strip():
            yield number, line.rstrip("\r")


# The policy, and its application to a problem.

_Racks = TypeVar("_Racks", bound=Collection[str])

CORES = "cores"
"""Key beside the goals' limits: cores of a broker. With it, `cpu` counts cores instead of parts of a broker's CPU."""


@dataclass(frozen=True, slots=True)
class BrokerSet:
    """Brokers reserved for some topics: partitions of matching topics stay on them. Patterns match whole names."""

    name: str
    brokers: tuple[int, ...]
    topics: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class PlanPolicy:
    """Bands in order, rack rule, limits and broker sets.

    `capacity` limits every broker by goal name, `broker_capacity` single ones; both may have `CORES`. `shares` are
    relative. `disk_reserve` is the part of a disk to keep free if disk limits come from the snapshot.
    `reads_per_write` is how many times consumers read what producers write. `broker_racks` has by id the racks of
    brokers that report none. `rack_prices` are the prices of copies between racks. `leader_racks` has by topic pattern
    the preferred racks of leaders, most preferred first; the first matching pattern counts. `consumer_racks` likewise
    has the relative reads by consumers of each rack that may fetch from followers. `coordinated` are the groups and
    transactional ids with a coordinator. `topic_spread`, `topic_leaders` and `failover`: see `Rules`. `source` is the
    goals file, which errors name.
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
    source: str | None = None

    def cores_of(self, brokers: Iterable[int]) -> dict[int, float]:
        """Cores of these brokers, without brokers whose cores are unknown."""
        common = self.capacity.get(CORES)
        found = {broker: self.broker_capacity.get(broker, {}).get(CORES, common) for broker in brokers}
        return {broker: cores for broker, cores in found.items() if cores is not None}

    @property
    def limits_cpu(self) -> bool:
        """True if any broker has a CPU limit."""
        return any(CPU.name in limits for limits in (self.capacity, *self.broker_capacity.values()))


def tenant_of(policy: PlanPolicy, topic: str) -> int:
    """Number of the broker set that a future topic of this name would belong to, or NOWHERE.

    Raises InputError for a topic of two sets.
    """
    found = NOWHERE
    with _named(policy, "broker-sets"):
        for number, one in enumerate(policy.broker_sets):
            if any(name_pattern(pattern).fullmatch(topic) for pattern in one.topics):
                found = _only_set(policy.broker_sets, topic, found, number)
    return found


def _only_set(sets: Sequence[BrokerSet], topic: str, before: int, number: int) -> int:
    """The number of this set. Raises InputError if the topic was in another one before."""
    if before not in {NOWHERE, number}:
        raise InputError(
            f"topic {topic} is in the broker sets {sets[before].name} and {sets[number].name}; put it into one"
        )
    return number


def with_tolerance(bands: tuple[Band, ...], tolerance: float) -> tuple[Band, ...]:
    """Give all bands this tolerance."""
    return tuple(replace(band, tolerance=tolerance) for band in bands)


def with_policy(problem: Problem, policy: PlanPolicy) -> Problem:
    """Apply the policy to the problem. Raises InputError for unknown brokers, racks and topics."""
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
    with _named(policy, "least-topic-leaders"):
        for topic in sorted(policy.least_topic_leaders):
            known_topic(topic, problem.partitions.topic_names)
    with _named(policy, "broker-racks"):
        problem = _with_racks(problem, policy.broker_racks)
    with _named(policy, "consumer-racks"):
        problem = _with_consumers(problem, policy.consumer_racks)
    with _named(policy, "leader-racks"):
        problem = with_leader_racks(problem, policy.leader_racks)
    with _named(policy, "rack-prices or --rack-price"):
        refuse_unknown_racks(problem, (rack for pair in policy.rack_prices.pairs for rack in pair))
    with _named(policy, "broker-capacity, capacity or shares"):
        problem = _with_limits(problem, policy)
    with _named(policy, "broker-sets"):
        problem = _with_sets(problem, policy.broker_sets)
    with _named(policy, "excluded-topics or --exclude-topics"):
        if policy.excluded_topics:
            chosen = TopicChoice(excluded=policy.excluded_topics).of(problem.partitions)
            problem = replace(problem, partitions=problem.partitions.held(~chosen, Hold.EXCLUDED))
    with _named(policy, "excluded-brokers or --exclude-brokers"):
        if policy.excluded_brokers:
            brokers, out = problem.brokers, chosen_brokers(problem.brokers, policy.excluded_brokers)
            problem = replace(problem, brokers=replace(brokers, may_receive=brokers.may_receive & ~out))
    return problem


@contextmanager
def _named(policy: PlanPolicy, key: str) -> Iterator[None]:
    """Name the goals file and its key in errors, and the option that says the same."""
    try:
        yield
    except InputError as error:
        where = f"{policy.source}: {key}" if policy.source else key
        raise InputError(f"{where}: {error}") from error


def _refuse_unknown_coordinators(problem: Problem, bands: tuple[Band, ...]) -> None:
    if any(band.goal is COORDINATORS for band in bands) and not problem.partitions.coordinated_count.any():
        raise InputError(
            f"goal {COORDINATORS.name}: nothing is known of what is coordinated; name it with --groups, "
            "--transactional-ids or --share-groups"
        )


def known_bands(partitions: Partitions, bands: tuple[Band, ...]) -> tuple[Band, ...]:
    """Drop goals without data: a load that is zero everywhere cannot be evened out."""
    return tuple(band for band in bands if band.goal.leader(partitions).any() or band.goal.follower(partitions).any())


def _with_consumers(problem: Problem, wanted: Mapping[str, Mapping[str, float]]) -> Problem:
    parts = {
        topic: {rack: weight / sum(weights.values()) for rack, weight in sorted(weights.items())}
        for topic, weights in _racks_by_topic(problem, wanted).items()
    }
    return with_consumer_racks(problem, parts)


def with_leader_racks(problem: Problem, wanted: Mapping[str, tuple[str, ...]]) -> Problem:
    """Set preferred racks of leaders by topic. Raises InputError for an unknown rack or topic."""
    chosen = _racks_by_topic(problem, wanted)
    return replace(problem, rules=replace(problem.rules, leader_racks=chosen)) if chosen else problem


def _racks_by_topic(problem: Problem, wanted: Mapping[str, _Racks]) -> dict[str, _Racks]:
    """Racks by topic instead of pattern: the first matching pattern counts."""
    chosen: dict[str, _Racks] = {}
    for pattern, racks in wanted.items():
        refuse_unknown_racks(problem, racks)
        for topic in sorted(matching(pattern, problem.partitions.topic_names)):
            chosen.setdefault(topic, racks)
    return chosen


def refuse_unknown_racks(problem: Problem, racks: Iterable[str]) -> None:
    """Raise InputError for a rack without brokers."""
    known = problem.brokers.rack_names
    if unknown := sorted(set(racks) - set(known)):
        there = f"it has {', '.join(known)}" if known else "no broker says its rack; see broker-racks"
        raise InputError(f"there is no rack {unknown[0]!r} in this cluster; {there}")


def _with_racks(problem: Problem, given: Mapping[int, str]) -> Problem:
    """Set the racks of brokers that report none. Raises InputError for a broker that reports a different one."""
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
                f"broker {broker} itself says that it is in rack {said[broker]}, not in {rack}; "
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
        known = np.full(len(ids), policy.capacity[name]) if name in policy.capacity else brokers.capacity_of(name)
        limits = zip(ids, known.tolist(), strict=True)
        capacity[name] = np.array([policy.broker_capacity.get(one, {}).get(name, limit) for one, limit in limits])
    shares = np.array([policy.shares.get(broker, 1.0) for broker in ids])
    if policy.shares and brokers.is_live.any() and not 0 < (total := sum(shares[brokers.is_live].tolist())) < np.inf:
        raise InputError(f"the shares of all live brokers add up to {total:g}: give some a share that counts")
    own_shares = dict.fromkeys((band.goal.name for band in problem.bands), shares) if policy.shares else brokers.shares
    limited = replace(brokers, capacity=dict(sorted(capacity.items())), shares=own_shares)
    return replace(problem, brokers=_with_cores(limited, policy))


def _with_cores(brokers: Brokers, policy: PlanPolicy) -> Brokers:
    """Set CPU limits in cores. If only some brokers have one, CPU is shared by cores, unless shares are given."""
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
            of_topics[topic] = _only_set(sets, topic, of_topics[topic], number)
    if not sets:
        return problem
    numbers = np.array([of_topics[topic] for topic in partitions.topic_names], np.int32)[partitions.topics]
    return replace(
        problem,
        brokers=replace(brokers, broker_sets=of_brokers),
        partitions=replace(partitions, broker_sets=numbers),
    )
