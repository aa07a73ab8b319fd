"""Declared placement of partitions, and its differences from the cluster, partition by partition."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TypeVar

from kreassign.model.cluster import TopicPartition, listed_ids, named_brokers, without
from kreassign.model.plan import ANY_LOG_DIR, PLAN_VERSION, PartitionAssignment, Plan, partition_order

_ENTRY = json.JSONEncoder(ensure_ascii=False)

Topic = TypeVar("Topic", str, int)


def usual_factors(counts: Mapping[tuple[Topic, int, int], int]) -> dict[Topic, int]:
    """Usual replication factor of each topic, from its partitions by factor and whether they are moving (0 or 1).

    It is the most frequent one, and of equally frequent ones the smallest. A partition in the middle of a reassignment
    shows the replicas that it gets beside those that it gives up: it is no norm, and a topic of only such has none.
    """
    by_topic: dict[Topic, dict[int, int]] = {}
    for (topic, factor, is_moving), count in counts.items():
        if not is_moving:
            by_topic.setdefault(topic, {})[factor] = count
    return {topic: max(found, key=lambda factor: (found[factor], -factor)) for topic, found in by_topic.items()}


class DriftKind(StrEnum):
    """Kinds of differences, the gravest first."""

    MISSING = "missing"
    UNDECLARED = "undeclared"
    REPLICAS = "replicas"
    ORDER = "order"
    MOVING = "moving"
    LOG_DIR = "log_dir"


@dataclass(frozen=True, slots=True)
class Placed:
    """Placement of a partition in the cluster: during a reassignment its target, and the replicas `leaving`.

    `log_dirs` is by broker, as far as known.
    """

    replicas: tuple[int, ...]
    is_moving: bool = False
    leaving: tuple[int, ...] = ()
    log_dirs: Mapping[int, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Drift:
    """A partition that differs from its declaration. `declared` or `found` is None if it exists on one side only."""

    topic_partition: TopicPartition
    kind: DriftKind
    declared: tuple[int, ...] | None
    found: tuple[int, ...] | None
    how: str

    def __str__(self) -> str:
        return f"{self.topic_partition}: {self.how}"


def drifts(declared: Plan, placed: Mapping[TopicPartition, Placed]) -> tuple[Drift, ...]:
    """Declared partitions that the cluster has elsewhere or not at all, and undeclared partitions of the same topics.

    Topics without any declaration do not count. Sorted by topic and number.
    """
    entries = {entry.topic_partition: entry for entry in declared.assignments}
    found = [drift for name, entry in entries.items() if (drift := _drift(entry, placed.get(name))) is not None]
    topics = set(declared.topics)
    for name, here in placed.items():
        if name.topic in topics and name not in entries:
            how = f"is in the cluster on {listed_ids(here.replicas)}, but not declared"
            found.append(Drift(name, DriftKind.UNDECLARED, None, here.replicas, how))
    return tuple(sorted(found, key=lambda one: partition_order(one.topic_partition)))


def undeclared_topics(declared: Plan, topics: Iterable[str]) -> tuple[str, ...]:
    """Topics of a cluster without any declaration, sorted."""
    return tuple(sorted(set(topics) - set(declared.topics)))


def format_placement(
    placed: Mapping[TopicPartition, Placed], before: Plan | None = None, cluster_id: str | None = None
) -> str:
    """Format Kafka's reassignment JSON with one partition per line, so that each change shows as one changed line.

    Names the log directories of partitions of which the declaration `before` names some, and the cluster, if given.
    """
    named = {one.topic_partition: one for one in (before or Plan()).assignments if set(one.log_dirs) - {ANY_LOG_DIR}}
    entries = ",\n".join(
        _ENTRY.encode(
            {
                "topic": name.topic,
                "partition": name.partition,
                "replicas": placed[name].replicas,
                **({"log_dirs": _paths(named[name], placed[name])} if name in named else {}),
            }
        )
        for name in sorted(placed, key=partition_order)
    )
    of = "" if cluster_id is None else f'"cluster_id": {_ENTRY.encode(cluster_id)}, '
    return f'{{"version": {PLAN_VERSION}, {of}"partitions": [' + (f"\n{entries}\n" if entries else "") + "]}"


def _paths(before: PartitionAssignment, here: Placed) -> tuple[str, ...]:
    """Log directory of each replica: the present one, as declared where that is not known, or any."""
    named = zip(before.replicas, before.log_dirs, strict=True)
    kept = {broker: here.log_dirs.get(broker, path) for broker, path in named if path != ANY_LOG_DIR}
    return tuple(kept.get(broker, ANY_LOG_DIR) for broker in here.replicas)


def _drift(entry: PartitionAssignment, here: Placed | None) -> Drift | None:
    name, wanted = entry.topic_partition, entry.replicas
    if here is None:
        how = f"is declared on {listed_ids(wanted)}, but not in the cluster"
        return Drift(name, DriftKind.MISSING, wanted, None, how)
    leaving = f", {named_brokers(here.leaving)} still to leave" if here.leaving else ""
    end = f"; it is being reassigned{leaving}" if here.is_moving else ""
    seen = f"is on {listed_ids(here.replicas)}, declared on {listed_ids(wanted)}: "
    if set(here.replicas) != set(wanted):
        return Drift(name, DriftKind.REPLICAS, wanted, here.replicas, seen + _difference(wanted, here.replicas) + end)
    if here.replicas != wanted:
        return Drift(name, DriftKind.ORDER, wanted, here.replicas, seen + _order(wanted, here.replicas) + end)
    if here.is_moving:
        how = f"is being reassigned to {listed_ids(wanted)}, as declared{leaving}"
        return Drift(name, DriftKind.MOVING, wanted, here.replicas, how)
    if elsewhere := tuple(_log_dirs(entry, here)):
        return Drift(name, DriftKind.LOG_DIR, wanted, here.replicas, "; ".join(elsewhere))
    return None


def _difference(wanted: tuple[int, ...], found: tuple[int, ...]) -> str:
    missing, more = (without(wanted, found), without(found, wanted))
    return ", ".join((
        *((f"{named_brokers(missing)} missing",) if missing else ()),
        *((f"{named_brokers(more)} not declared",) if more else ()),
        *((f"replication factor {len(found)}, declared {len(wanted)}",) if len(found) != len(wanted) else ()),
    ))  # fmt: skip


def _order(wanted: tuple[int, ...], found: tuple[int, ...]) -> str:
    if wanted[0] != found[0]:
        return f"broker {found[0]} is its preferred leader, not {wanted[0]}"
    return "only the order of followers differs"


def _log_dirs(entry: PartitionAssignment, here: Placed) -> Iterator[str]:
    for broker, path in zip(entry.replicas, entry.log_dirs, strict=True):
        if path != ANY_LOG_DIR and (seen := here.log_dirs.get(broker)) != path:
            yield f"on broker {broker} it is in {seen or 'a log directory that is not known'}, declared in {path}"
