"""Does the cluster match the plan? Compares values that were read. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from kreassign.executor.cluster.observations import OTHER_TOPIC, is_another
from kreassign.executor.throttle.ledger import ConfigKey, ConfigOverride, ConfigValue
from kreassign.model import NO_LEADER, OngoingReassignment, Partition, TopicPartition, TopicPartitionReplica

SMALL = 0.5
"""A copy of which so much is there is not much smaller: segments are deleted and compacted by each broker alone."""

SMALL_BYTES = 1 << 20
"""Nor is one that lacks no more than this."""


class FindingKind(StrEnum):
    """What is not as it shall be."""

    MISSING = "missing"
    RECREATED = "recreated"
    MOVING = "moving"
    REPLICAS = "replicas"
    ISR = "isr"
    LEADER = "leader"
    LOG_DIR = "log_dir"
    THROTTLE = "throttle"
    SIZE = "size"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True, order=True)
class Finding:
    """One thing that is not as it shall be: of what, of which kind, and a sentence with what was seen."""

    subject: str
    kind: FindingKind
    sentence: str

    def __str__(self) -> str:
        return f"{self.subject}: {self.sentence}"


@dataclass(frozen=True, slots=True)
class Expectations:
    """What shall be: replicas per partition in order, directories per replica, and the value of settings.

    Of `overrides` of a run nothing shall be left; entries that others have added to lists are theirs. With
    `checks_sizes`, also that no copy is much smaller than that of the leader. `topic_ids` is by name, as far as known:
    what became of a topic's partitions does not show in another one of its name.
    """

    replicas: Mapping[TopicPartition, tuple[int, ...]]
    log_dirs: Mapping[TopicPartitionReplica, str] = field(default_factory=dict)
    configs: tuple[ConfigValue, ...] = ()
    overrides: tuple[ConfigOverride, ...] = ()
    checks_sizes: bool = False
    topic_ids: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Facts:
    """What is: answers of the cluster. `unread` has a sentence for each thing that could not be asked.

    `sizes` are bytes on disk, where somebody asked for them.
    """

    partitions: Mapping[TopicPartition, Partition]
    ongoing: Mapping[TopicPartition, OngoingReassignment] = field(default_factory=dict)
    log_dirs: Mapping[TopicPartitionReplica, str] = field(default_factory=dict)
    configs: Mapping[ConfigKey, str | None] = field(default_factory=dict)
    sizes: Mapping[TopicPartitionReplica, int] = field(default_factory=dict)
    unread: tuple[tuple[str, str], ...] = ()
    topic_ids: Mapping[str, str] = field(default_factory=dict)


def verify(expected: Expectations, facts: Facts) -> tuple[Finding, ...]:
    """Everything that differs, sorted; empty when all is well."""
    found = [Finding(subject, FindingKind.UNKNOWN, sentence) for subject, sentence in facts.unread]
    others = {topic for topic, one in expected.topic_ids.items() if is_another(one, facts.topic_ids.get(topic))}
    for partition, target in expected.replicas.items():
        if partition.topic in others:
            found.append(Finding(str(partition), FindingKind.RECREATED, OTHER_TOPIC))
            continue
        found += _of_partition(partition, target, facts)
        found += _of_sizes(partition, facts)
    log_dirs = {replica: path for replica, path in expected.log_dirs.items() if replica.topic not in others}
    found += _of_log_dirs(log_dirs, facts.log_dirs)
    found += _of_configs(expected.configs, facts.configs)
    found += _of_overrides(expected.overrides, facts.configs)
    return tuple(sorted(found))


def _of_partition(name: TopicPartition, target: tuple[int, ...], facts: Facts) -> Iterator[Finding]:
    partition, ongoing = facts.partitions.get(name), facts.ongoing.get(name)
    if partition is None:
        if str(name) not in dict(facts.unread):
            yield Finding(str(name), FindingKind.MISSING, "there is no such partition")
        return
    if ongoing is not None:
        yield Finding(str(name), FindingKind.MOVING, f"a reassignment is still under way: {ongoing}")
        return
    if partition.replicas != target:
        sentence = f"replicas are {list(partition.replicas)} and not {list(target)}"
        yield Finding(str(name), FindingKind.REPLICAS, sentence)
        return
    lagging = sorted(set(target) - set(partition.isr))
    if lagging:
        yield Finding(str(name), FindingKind.ISR, f"not in sync: {lagging}; the ISR is {list(partition.isr)}")
    if partition.leader != target[0]:
        leader = "nobody" if partition.leader == NO_LEADER else partition.leader
        yield Finding(str(name), FindingKind.LEADER, f"led by {leader} and not by the preferred leader {target[0]}")


def _of_sizes(name: TopicPartition, facts: Facts) -> Iterator[Finding]:
    """Copies in sync of which less than half is there: of no partition that is at rest can that be explained well."""
    partition = facts.partitions.get(name)
    leader = None if partition is None else facts.sizes.get(TopicPartitionReplica(partition.leader, *name))
    if partition is None or leader is None or name in facts.ongoing:
        return
    for broker in partition.isr:
        size = facts.sizes.get(TopicPartitionReplica(broker, *name), leader)
        if size < leader * SMALL and leader - size > SMALL_BYTES:
            sentence = (
                f"the copy on broker {broker} has {size} bytes, that of the leader {leader}; compare their offsets"
            )
            yield Finding(str(name), FindingKind.SIZE, sentence)


def _of_log_dirs(
    wanted: Mapping[TopicPartitionReplica, str], found: Mapping[TopicPartitionReplica, str]
) -> Iterator[Finding]:
    for replica, log_dir in wanted.items():
        present = found.get(replica)
        if present != log_dir:
            where = "in no directory that its broker reports" if present is None else f"in {present}"
            subject = f"{replica.topic_partition} on broker {replica.broker}"
            yield Finding(subject, FindingKind.LOG_DIR, f"{where} and not in {log_dir}")


def _of_configs(wanted: Iterable[ConfigValue], found: Mapping[ConfigKey, str | None]) -> Iterator[Finding]:
    for config in wanted:
        if config.key in found and found[config.key] != config.value:
            yield _misconfigured(config.key, found[config.key], _value_wanted(config.value))


def _of_overrides(overrides: Iterable[ConfigOverride], found: Mapping[ConfigKey, str | None]) -> Iterator[Finding]:
    for override in overrides:
        if override.key in found and not override.is_restored(found[override.key]):
            is_shared = override.is_list and override.before is not None
            entries = f"should not have {','.join(sorted(override.our_items))}, which the run added"
            shall_be = entries if is_shared and override.our_items else _value_wanted(override.before)
            yield _misconfigured(override.key, found[override.key], shall_be)


def _misconfigured(key: ConfigKey, present: str | None, shall_be: str) -> Finding:
    is_now = "is not set" if present is None else f"is {present!r}"
    return Finding(str(key.resource), FindingKind.THROTTLE, f"{key.name} {is_now} and {shall_be}")


def _value_wanted(value: str | None) -> str:
    return "should not be set" if value is None else f"should be {value!r}"
