"""Replication throttles: the replicas and brokers that a reassignment throttles, and the settings for that.

A throttle has two halves. Topics list the throttled replicas as `partition:broker` pairs: the sending side in one
key, the receiving side in another. Brokers have the rates. Directory moves within a broker have a separate rate.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from kreassign.errors import InputError
from kreassign.model.cluster import ConfigChange, ConfigResource, TopicPartition
from kreassign.model.reassignment import OngoingReassignment
from kreassign.model.text import LARGEST_AMOUNT, check_ids

LEADER_THROTTLED_REPLICAS = "leader.replication.throttled.replicas"
FOLLOWER_THROTTLED_REPLICAS = "follower.replication.throttled.replicas"
LEADER_THROTTLED_RATE = "leader.replication.throttled.rate"
FOLLOWER_THROTTLED_RATE = "follower.replication.throttled.rate"
LOG_DIR_RATE = "replica.alter.log.dirs.io.max.bytes.per.second"

TOPIC_THROTTLES = (LEADER_THROTTLED_REPLICAS, FOLLOWER_THROTTLED_REPLICAS)
BROKER_THROTTLES = (LEADER_THROTTLED_RATE, FOLLOWER_THROTTLED_RATE, LOG_DIR_RATE)


@dataclass(frozen=True, slots=True)
class ThrottledMove:
    """Sources and destinations of one partition's data; both ascending, and no broker in both."""

    sources: tuple[int, ...]
    destinations: tuple[int, ...]


def move_map(
    ongoing: Mapping[TopicPartition, OngoingReassignment],
    plan: Mapping[TopicPartition, tuple[int, ...]],
    current: Mapping[TopicPartition, tuple[int, ...]],
) -> dict[TopicPartition, ThrottledMove]:
    """Every flow to throttle when `plan` is submitted while `ongoing` runs, sorted by partition.

    It includes all ongoing moves of the cluster, as the lists of a topic are replaced as a whole. A planned partition
    flows from its replicas before its ongoing move; without a move, from its `current` replicas, which must
    be known. A partition that stays has sources and no destinations.
    """
    moves = {partition: _flow(move.sources, move.adding) for partition, move in ongoing.items()}
    for partition, target in plan.items():
        sources = moves[partition].sources if partition in moves else current[partition]
        moves[partition] = _flow(sources, target)
    return dict(sorted(moves.items()))


def _flow(sources: Iterable[int], wanted: Iterable[int]) -> ThrottledMove:
    origin = set(sources)
    return ThrottledMove(tuple(sorted(origin)), tuple(sorted(set(wanted) - origin)))


def leader_lists(moves: Mapping[TopicPartition, ThrottledMove]) -> dict[str, str]:
    """The value of `LEADER_THROTTLED_REPLICAS` by topic: every source of every moving partition."""
    return _lists({partition: move.sources for partition, move in moves.items()})


def follower_lists(moves: Mapping[TopicPartition, ThrottledMove]) -> dict[str, str]:
    """The value of `FOLLOWER_THROTTLED_REPLICAS` by topic: every destination; empty text without any."""
    return _lists({partition: move.destinations for partition, move in moves.items()})


def _lists(brokers: Mapping[TopicPartition, tuple[int, ...]]) -> dict[str, str]:
    pairs: dict[str, list[str]] = {}
    for partition, ids in brokers.items():
        pairs.setdefault(partition.topic, []).extend(f"{partition.partition}:{broker}" for broker in ids)
    # Kafka's tool sorts the pairs as text ("10:1" before "2:1"); scripts compare the values.
    return {topic: ",".join(sorted(items)) for topic, items in pairs.items()}


def involved_brokers(moves: Mapping[TopicPartition, ThrottledMove]) -> tuple[int, ...]:
    """Every broker that sends or receives, ascending."""
    return tuple(sorted({broker for move in moves.values() for broker in (*move.sources, *move.destinations)}))


def topic_changes(moves: Mapping[TopicPartition, ThrottledMove]) -> dict[ConfigResource, tuple[ConfigChange, ...]]:
    """Changes that set both lists on every topic with a flow."""
    followers = follower_lists(moves)
    return {
        ConfigResource.topic(topic): (
            ConfigChange.set(LEADER_THROTTLED_REPLICAS, leaders),
            ConfigChange.set(FOLLOWER_THROTTLED_REPLICAS, followers[topic]),
        )
        for topic, leaders in leader_lists(moves).items()
    }


def rate_changes(brokers: Iterable[int], bytes_per_s: int) -> dict[ConfigResource, tuple[ConfigChange, ...]]:
    """Changes that set the rate between brokers, the same for sending and receiving."""
    changes = tuple(ConfigChange.set(key, str(bytes_per_s)) for key in (LEADER_THROTTLED_RATE, FOLLOWER_THROTTLED_RATE))
    return {ConfigResource.broker(broker): changes for broker in brokers}


def log_dir_rate_changes(brokers: Iterable[int], bytes_per_s: int) -> dict[ConfigResource, tuple[ConfigChange, ...]]:
    """Changes that set the rate of moves between directories of a broker."""
    changes = (ConfigChange.set(LOG_DIR_RATE, str(bytes_per_s)),)
    return {ConfigResource.broker(broker): changes for broker in brokers}


def clear_broker_changes(brokers: Iterable[int]) -> dict[ConfigResource, tuple[ConfigChange, ...]]:
    """Changes that delete all rates of these brokers."""
    changes = tuple(map(ConfigChange.delete, BROKER_THROTTLES))
    return {ConfigResource.broker(broker): changes for broker in brokers}


def clear_topic_changes(topics: Iterable[str]) -> dict[ConfigResource, tuple[ConfigChange, ...]]:
    """Changes that delete both lists of these topics."""
    changes = tuple(map(ConfigChange.delete, TOPIC_THROTTLES))
    return {ConfigResource.topic(topic): changes for topic in topics}


# The throttle of a run: given rates, or what a broker can carry less what it carries already.

FLOOR_PART = 0.1
"""Default floor of a broker, as a share of its capacity."""


@dataclass(frozen=True, slots=True)
class BrokerCapacity:
    """Total rate that one broker can send, and receive, in bytes per second."""

    broker: int
    bytes_per_s: int

    def __post_init__(self) -> None:
        check_ids("capacity", (self.broker,))
        check_rate(self.bytes_per_s)


@dataclass(frozen=True, slots=True)
class AdaptiveThrottle:
    """Total rate that each broker can send, and receive.

    `per_broker` names brokers with another capacity; `floor_bytes_per_s` is the lowest rate for copies.
    """

    capacity_bytes_per_s: int
    per_broker: tuple[BrokerCapacity, ...] = ()
    floor_bytes_per_s: int | None = None

    def __post_init__(self) -> None:
        check_rate(self.capacity_bytes_per_s)
        check_rate(self.floor_bytes_per_s)

    def capacity_of(self, broker: int) -> int:
        """Capacity of this broker in each direction."""
        known = (one.bytes_per_s for one in self.per_broker if one.broker == broker)
        return next(known, self.capacity_bytes_per_s)

    def floor_of(self, broker: int) -> int:
        """Lowest rate for copies on this broker."""
        return self.floor_bytes_per_s or max(1, int(FLOOR_PART * self.capacity_of(broker)))


def check_rate(bytes_per_s: int | None) -> None:
    """Raise InputError for a rate that a setting of Kafka cannot hold; what is no rate at all the preflight tells."""
    if bytes_per_s is not None and bytes_per_s > LARGEST_AMOUNT:
        raise InputError(f"a throttle of {bytes_per_s} B/s is too large; the largest is {LARGEST_AMOUNT} B/s")


@dataclass(frozen=True, slots=True, order=True)
class BrokerRate:
    """Rate that one broker may send, and receive, in bytes per second; None for no limit."""

    broker: int
    bytes_per_s: int | None

    def __post_init__(self) -> None:
        check_ids("throttle", (self.broker,))
        check_rate(self.bytes_per_s)


WHOLE = 100
"""Percent of a rate."""


@dataclass(frozen=True, slots=True)
class ThrottleRates:
    """Throttle of a run: a rate for every broker, or None for no limit, except brokers with a rate of their own.

    With `adaptive` the others get the rate that their traffic leaves free, which is not known beforehand.
    """

    bytes_per_s: int | None = None
    per_broker: tuple[BrokerRate, ...] = ()
    adaptive: AdaptiveThrottle | None = None

    def __post_init__(self) -> None:
        check_rate(self.bytes_per_s)

    @property
    def is_limited(self) -> bool:
        """True if any broker is throttled."""
        return self.adaptive is not None or bool(self._known)

    @property
    def slowest_bytes_per_s(self) -> int | None:
        """Lowest rate of any broker; None if nothing is limited, or the rate is unknown."""
        return None if self.adaptive is not None else min(self._known, default=None)

    @property
    def fastest_bytes_per_s(self) -> int | None:
        """Highest rate of any broker; None if a broker has no limit."""
        return None if self.bytes_per_s is None or len(self._known) <= len(self.per_broker) else max(self._known)

    @property
    def _known(self) -> list[int]:
        rates = (self.bytes_per_s, *(one.bytes_per_s for one in self.per_broker))
        return [rate for rate in rates if rate is not None]

    def of(self, broker: int | None) -> int | None:
        """Rate of this broker in each direction; None for no limit."""
        return next((one.bytes_per_s for one in self.per_broker if one.broker == broker), self.bytes_per_s)

    def has_own_rate(self, broker: int | None) -> bool:
        """True if this broker has a rate, or no limit, of its own."""
        return any(one.broker == broker for one in self.per_broker)

    def slowed(self, percent: int) -> ThrottleRates:
        """Return a copy with this percentage of each rate; what follows the traffic, or has no limit, stays."""
        if percent == WHOLE:
            return self
        rates = (replace(one, bytes_per_s=_part(one.bytes_per_s, percent)) for one in self.per_broker)
        return replace(self, bytes_per_s=_part(self.bytes_per_s, percent), per_broker=tuple(rates))

    def changed(
        self, bytes_per_s: int | None, brokers: Iterable[int] = (), adaptive: AdaptiveThrottle | None = None
    ) -> ThrottleRates:
        """Return a copy with another rate for these brokers; without brokers, with one rate, or `adaptive`, for all."""
        others = tuple(BrokerRate(broker, bytes_per_s) for broker in sorted({*brokers}))
        if not others:
            return ThrottleRates(bytes_per_s, (), adaptive)
        names = {one.broker for one in others}
        kept = (one for one in self.per_broker if one.broker not in names)
        return ThrottleRates(
            self.bytes_per_s, tuple(sorted((*kept, *others), key=lambda one: one.broker)), self.adaptive
        )


def _part(bytes_per_s: int | None, percent: int) -> int | None:
    return None if bytes_per_s is None else max(1, bytes_per_s * percent // WHOLE)


NO_THROTTLE = ThrottleRates()
