"""Replication factors that change: what is told, what needs consent, and which replicas may go. Pure.

- **A replica in sync never goes while one that lags stays.** A reassignment that only removes completes at once on
  KRaft up to 3.7, whatever is in sync (KAFKA-15665); later versions wait until all that stay are. So after a change at
  least as many replicas are in sync as before, or all that the factor leaves; new copies count: Kafka waits for them.
- **A falling factor needs consent**, and so does a changed one below `min.insync.replicas`, or one of which that could
  not be read (KIP-860). A rising one is told.
- **Brokers cap `min.insync.replicas` by the number of replicas** since Kafka 3.7 (KAFKA-15583). A lower factor refuses
  no producer by itself: it lowers what acks=all means. Before, a factor below it refuses acks=all for good. The release
  of a cluster is not asked for: both are told.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import IntEnum

from kreassign.model.cluster import NO_LEADER, Partition, TopicPartition, listed_ids
from kreassign.model.plan import partition_order
from kreassign.model.text import counted, some_of

# Replicas in sync, and which replica goes.


class Claim(IntEnum):
    """Claim of a replica to stay when the factor falls: the lowest goes first."""

    LAGGING = 0
    IN_SYNC = 1
    LEADER = 2


def known_in_sync(partition: Partition) -> frozenset[int]:
    """Replicas known to have every acknowledged record; empty if none is known.

    Without any in the ISR, eligible leaders count (KIP-966).
    """
    leader = () if partition.leader == NO_LEADER else (partition.leader,)
    return frozenset((*partition.isr, *leader) or partition.eligible_leaders or ())


def claim(partition: Partition, broker: int) -> Claim:
    """Claim of one replica to stay."""
    if broker == partition.leader:
        return Claim.LEADER
    return Claim.IN_SYNC if broker in known_in_sync(partition) else Claim.LAGGING


def dispensable(partition: Partition, replicas: Sequence[int]) -> tuple[int, ...]:
    """Replicas of which one goes first: all with the least claim to stay."""
    least = min(claim(partition, broker) for broker in replicas)
    return tuple(broker for broker in replicas if claim(partition, broker) is least)


def lost_in_sync(partition: Partition, target: Sequence[int]) -> str | None:
    """Why this target would leave fewer replicas in sync than it could; None if it does not."""
    removed, in_sync = set(partition.replicas).difference(target), known_in_sync(partition)
    if not removed:
        return None
    if not in_sync:
        return (
            f"none of its replicas {listed_ids(partition.replicas)} is known to be in sync, and {listed_ids(removed)} "
            "would go: bring back the broker that led it last"
        )
    kept = in_sync.intersection(target)
    arriving = set(target).difference(partition.replicas)
    if len(kept) + len(arriving) >= min(len(in_sync), len(set(target))):
        return None
    return keeps_lagging(in_sync & removed, set(target).difference(kept, arriving))


def keeps_lagging(going: Iterable[int], staying: Iterable[int]) -> str:
    """The sentence about replicas in sync that would go while these stay, which are not."""
    return (
        f"broker {listed_ids(sorted(going))}, in sync, would go, and broker {listed_ids(sorted(staying))}, which is "
        "not, would stay: wait until it is in sync, or remove that one"
    )


# The factor against min.insync.replicas.


def required_in_sync(least: int, replicas: int) -> int:
    """Number of replicas that must be in sync for acks=all: `min.insync.replicas`, since Kafka 3.7 at most all."""
    return max(1, min(least, replicas))


def locks_out(least: int, replicas: int, growing: int, in_sync: int) -> bool:
    """True if producers with acks=all are refused once the list has grown to so many replicas, and are not now.

    Brokers cap min.insync.replicas by the number of replicas, and a reassignment counts those that it adds before any
    of them is in sync: [1] → [2] under 2 has two replicas, and one in sync. Before Kafka 3.7 such producers are refused
    already: there this says too much.
    """
    return required_in_sync(least, replicas) <= in_sync < required_in_sync(least, growing)


def undercut(factor: int, least: int) -> str | None:
    """The consequence of a factor below `min.insync.replicas`; None if it is not below."""
    if factor >= least:
        return None
    have = f"min.insync.replicas {least} is more than the replication factor {factor}"
    if factor == 1:
        means, before = "a single copy acknowledges acks=all", "they refuse acks=all"
    else:
        means, before = "acks=all is refused while one is out of sync", "it is always refused"
    return f"{have}: brokers ask for {counted(factor, 'replica')} then, so {means}; before Kafka 3.7 {before}"


# Factors that a plan changes.

NAMED = 5
CONSENT = "if that is meant, say so with --allow-factor-change"


@dataclass(frozen=True, slots=True)
class FactorChange:
    """A partition whose number of replicas changes."""

    topic_partition: TopicPartition
    before: int
    after: int


@dataclass(frozen=True, slots=True)
class FactorChanges:
    """Changed factors, in the order of partitions; `min_isr` is by topic where known, `unread` why it is not."""

    changes: tuple[FactorChange, ...] = ()
    min_isr: Mapping[str, int] = field(default_factory=dict)
    unread: Mapping[str, str] = field(default_factory=dict)

    @property
    def topics(self) -> tuple[str, ...]:
        """Topics of the partitions, each once, sorted."""
        return tuple(sorted({one.topic_partition.topic for one in self.changes}))

    @property
    def falls(self) -> bool:
        """True if any factor falls."""
        return any(one.after < one.before for one in self.changes)

    @property
    def is_undercut(self) -> bool:
        """True if any changed factor is below `min.insync.replicas`."""
        return any(True for _ in self._undercuts())

    @property
    def needs_consent(self) -> bool:
        """True if a factor falls, or is not known to reach `min.insync.replicas`."""
        return self.falls or self.is_undercut or any(topic not in self.min_isr for topic in self.topics)

    @property
    def objections(self) -> tuple[str, ...]:
        """The sentences and what to do if the change is meant; empty if no consent is needed."""
        return (*self.sentences, CONSENT) if self.needs_consent else ()

    @property
    def sentences(self) -> tuple[str, ...]:
        """Factors that change: those that fall, those below `min.insync.replicas` or unknown, those that rise."""
        groups: dict[tuple[int, int], list[TopicPartition]] = defaultdict(list)
        for one in self.changes:
            groups[one.before, one.after].append(one.topic_partition)
        ordered = sorted(groups.items())
        return (
            *(_group("falls", *pair, names) for pair, names in ordered if pair[1] < pair[0]),
            *self._undercuts(),
            *(
                f"topic {topic}: whether the factor is below min.insync.replicas is not known: "
                f"{self.unread.get(topic, 'it was not read')}"
                for topic in self.topics
                if topic not in self.min_isr
            ),
            *(_group("rises", *pair, names) for pair, names in ordered if pair[1] > pair[0]),
        )

    def _undercuts(self) -> Iterator[str]:
        lowest: dict[str, int] = {}
        for one in self.changes:
            topic = one.topic_partition.topic
            lowest[topic] = min(one.after, lowest.get(topic, one.after))
        for topic, factor in sorted(lowest.items()):
            if (why := undercut(factor, self.min_isr.get(topic, 1))) is not None:
                yield f"topic {topic}: {why}"


def factor_changes(
    targets: Mapping[TopicPartition, Sequence[int]], present: Mapping[TopicPartition, Sequence[int]]
) -> tuple[FactorChange, ...]:
    """Partitions of `targets` with another number of replicas than at present; unknown ones are left out."""
    return tuple(
        FactorChange(name, len(present[name]), len(targets[name]))
        for name in sorted(targets, key=partition_order)
        if name in present and len(present[name]) != len(targets[name])
    )


def _group(way: str, before: int, after: int, names: Sequence[TopicPartition]) -> str:
    what = counted(len(names), "partition")
    return f"replication factor of {what} {way} from {before} to {after}: {some_of(names, NAMED)}"
