"""Replication throttles as brokers read them from the configuration (KIP-73)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

NO_LIMIT = float("inf")


@dataclass(frozen=True, slots=True)
class ThrottledReplicas:
    """The replicas that a topic's list is about: pairs of partition and broker, or all of the topic."""

    pairs: frozenset[tuple[int, int]] = frozenset()
    everything: bool = False

    @classmethod
    def parse(cls, text: str | None) -> Self:
        """Read `partition:broker` pairs or `*`; None is a list that is not set. The controller checked the form."""
        if text is None or text.strip() != "*":
            items = (item.partition(":") for item in (text or "").split(",") if item.strip())
            return cls(frozenset((int(partition), int(broker)) for partition, _, broker in items))
        return cls(everything=True)

    def holds(self, partition: int, broker: int) -> bool:
        """Whether the list is about this replica."""
        return self.everything or (partition, broker) in self.pairs

    def differs(self, other: ThrottledReplicas) -> frozenset[int] | None:
        """Partitions for which the two lists may say different things; None for any partition."""
        if self.everything or other.everything:
            return frozenset() if self == other else None
        return frozenset(partition for partition, _ in self.pairs ^ other.pairs)


NOBODY = ThrottledReplicas()


@dataclass(frozen=True, slots=True)
class TopicThrottle:
    """The two lists of one topic: whose sending and whose receiving is limited."""

    leaders: ThrottledReplicas = NOBODY
    followers: ThrottledReplicas = NOBODY


UNTHROTTLED = TopicThrottle()


def parse_rate(text: str | None) -> float:
    """A rate of a broker in bytes per second; infinite where it is not set."""
    return NO_LIMIT if text is None else float(int(text))
