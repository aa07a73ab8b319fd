"""Invariants that hold for every twin after every step, and their checks.

Each invariant is a function of the twin and the step, which yields a sentence for each violation; `CHECKERS` lists
them. Most look only at what a step changed. Three look at the whole cluster, `bytes_add_up`, `throttles_are_kept` and
`list_is_progress`: on clusters of more than `LARGE` partitions they do so only once in `SAMPLED` records.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import NamedTuple

from kreassign.errors import InvariantBroken
from kreassign.model import ConfigResource, OngoingReassignment, TopicPartition, throttle
from kreassign.model.cluster import without
from kreassign.model.text import counted
from kreassign.twin.controller.reassignments import ReassignmentsAltered, list_reassignments
from kreassign.twin.core import Step, TwinCore
from kreassign.twin.metadata import BrokerRegistered, ClusterMetadata, PartitionState
from kreassign.twin.replication.hardware import ThrottledReplicas, parse_rate
from kreassign.twin.replication.readings import Flow

# Partitions changed by a step.


class Transition(NamedTuple):
    """A partition after a step, and before it (None if it is new)."""

    after: PartitionState
    before: PartitionState | None

    def __str__(self) -> str:
        return f"{self.after.topic_partition} was {self.before} and is {self.after}"


def changes(twin: TwinCore, step: Step) -> Iterator[Transition]:
    """Return the partitions that a step changed and that still exist."""
    for topic_partition, before in step.before.items():
        after = twin.metadata.partition(topic_partition)
        if after is not None:
            yield Transition(after, before)


# The ISR is part of the replicas, and neither list names a broker twice.
#
# Kafka's controller refuses any other ISR (AlterPartition, INVALID_REQUEST). Eligible leaders are left out on purpose:
# on real clusters an eligible leader may no longer be a replica, after a move that ended below min.insync.replicas.


def isr_is_within_replicas(twin: TwinCore, step: Step) -> Iterator[str]:
    """Partitions whose ISR is not part of the replicas, or that name a broker twice."""
    for partition, _ in changes(twin, step):
        replicas, isr = set(partition.replicas), set(partition.isr)
        if not isr <= replicas or (len(replicas), len(isr)) != (len(partition.replicas), len(partition.isr)):
            yield f"{partition.topic_partition} has ISR {partition.isr} of replicas {partition.replicas}"


# The leader of a partition is in its ISR, or the partition has no leader.
#
# An unclean leader is no exception: it becomes the whole ISR in the same record (KIP-101, KIP-966).


def leader_is_in_sync(twin: TwinCore, step: Step) -> Iterator[str]:
    """Partitions whose leader is not in the ISR."""
    for partition, _ in changes(twin, step):
        if partition.has_leader and partition.leader not in partition.isr:
            yield f"{partition.topic_partition} is led by {partition.leader}, and its ISR is {partition.isr}"


# No partition loses its last in-sync copy to a reassignment (KIP-455: data is never left without an in-sync replica).
#
# Wherever a step changes what is being moved, a broker that was or has just come in sync remains, and the ISR still has
# every record that all of its members had before. A topic that allows unclean elections has given that up.


def last_copy_is_kept(twin: TwinCore, step: Step) -> Iterator[str]:
    """Partitions that lost their last in-sync copy, or records."""
    for after, before in changes(twin, step):
        if before is None or not before.isr or _move_lists(after) == _move_lists(before):
            continue
        key = after.topic_partition
        if twin.context.allows_unclean_election(key.topic):
            continue
        held, had = twin.replication.readings.held_offset(key), step.was_held.get(key, 0)
        if not after.isr:
            yield f"{key} had ISR {before.isr} before its move changed, and has none now"
        elif held is None or held < had:
            yield f"{key} had {counted(had, 'record')} in sync on {before.isr}, and has {held} on {after.isr}"


def _move_lists(partition: PartitionState) -> tuple[tuple[int, ...], ...]:
    return partition.replicas, partition.adding, partition.removing


# The lists of a move are consistent: adding and removing brokers are replicas, and a target remains (KIP-455).
#
# The same broker may be in both lists: real controllers write that when an unfinished move is overridden by its former
# list, and such a move never ends.


def adding_is_part_of_target(twin: TwinCore, step: Step) -> Iterator[str]:
    """Partitions whose lists of a move are inconsistent."""
    for partition, _ in changes(twin, step):
        lists = f"replicas {partition.replicas}, adding {partition.adding}, removing {partition.removing}"
        if not {*partition.adding, *partition.removing} <= set(partition.replicas):
            yield f"{partition.topic_partition} moves what is no replica: {lists}"
        if not without(partition.replicas, partition.removing):
            yield f"{partition.topic_partition} has no target: {lists}"
        if len(partition.directories) != len(partition.replicas):
            directories = counted(len(partition.directories), "directory", "directories")
            yield f"{partition.topic_partition} has {directories}: {lists}"


# Epochs never go back, and every change raises one, so that brokers and clients recognise outdated requests.
#
# Every change of a partition raises its partition epoch. A change of the leader raises the leader epoch, and so does a
# replica that leaves, so that it is informed. A broker registers under a higher epoch than any that the cluster knows
# (KIP-320, KIP-497, KIP-631).


def epochs_never_go_back(twin: TwinCore, step: Step) -> Iterator[str]:
    """Partitions and brokers whose epochs went back or did not rise."""
    for change in changes(twin, step):
        if change.before is not None and not _epochs_rise(change):
            yield str(change)
    for record in step.records:
        if isinstance(record, BrokerRegistered):
            others = (one.broker_epoch for one in twin.metadata.brokers.values() if one.broker_id != record.broker_id)
            if record.broker_epoch <= max(others, default=-1):
                yield f"broker {record.broker_id} registered under epoch {record.broker_epoch}, not the highest"


def _epochs_rise(change: Transition) -> bool:
    after, before = change
    assert before is not None
    leads_newly = after.leader != before.leader or not set(before.replicas) <= set(after.replicas)
    return (
        after.partition_epoch >= before.partition_epoch + (after != before)
        and after.leader_epoch >= before.leader_epoch + leads_newly
    )


# A move that completes ends with exactly its target, in its order (KIP-455).
#
# A move ended by a client goes back to the former replicas, or forward to another list that is there already.


def completed_moves_have_their_target(twin: TwinCore, step: Step) -> Iterator[str]:
    """Partitions whose completed moves did not end with their target."""
    by_a_client = isinstance(step.answer, ReassignmentsAltered)
    for after, before in changes(twin, step):
        if before is None or not before.is_reassigning or after.is_reassigning:
            continue
        is_within = set(after.replicas) <= set(before.replicas)
        if not (is_within if by_a_client else after.replicas == _target_of(before)):
            yield (
                f"{after.topic_partition} was to go to {_target_of(before)} (replicas {before.replicas}, "
                f"adding {before.adding}, removing {before.removing}) and ended with {after.replicas}"
            )


def _target_of(partition: PartitionState) -> tuple[int, ...]:
    return without(partition.replicas, partition.removing)


# Brokers have exactly the copies that the metadata assigns to them: replication follows records.


def copies_follow_replicas(twin: TwinCore, step: Step) -> Iterator[str]:
    """Partitions whose copies are not on their replicas."""
    for key in step.before:
        partition = twin.metadata.partition(key)
        # A broker that was unregistered keeps its copies. In ZooKeeper mode a replica can be on one that never was.
        wanted = set() if partition is None else set(twin.processes.ids) & set(partition.replicas)
        if (present := twin.replication.readings.brokers_with(key)) != wanted:
            yield f"{key} has copies on brokers {sorted(present)}, and should have them on {sorted(wanted)}"


# Bytes on disk add up: the reported bytes of a directory are the sum of the copies in it.
#
# Replication keeps sums that it changes with every copy, so that idle copies cost nothing; here they are recomputed.

# Sums of millions of numbers up to 10^13 may differ by rounding.
_ROUNDING_OF_SUMS = 1e-9
_LEAST_BYTES = 1.0


def bytes_add_up(twin: TwinCore, step: Step) -> Iterator[str]:
    """Directories whose reported bytes differ from the sum of their copies."""
    del step
    for usage in twin.replication.readings.usages():
        allowed = max(_LEAST_BYTES, _ROUNDING_OF_SUMS * usage.added_up_bytes)
        where = f"{usage.path} of broker {usage.broker}"
        if abs(usage.counted_bytes - usage.added_up_bytes) > allowed:
            yield f"{where} is said to hold {usage.counted_bytes} bytes, and its copies have {usage.added_up_bytes}"
        if usage.to_be_deleted_bytes < -allowed:
            yield f"{where} waits for the deletion of {usage.to_be_deleted_bytes} bytes"
        if usage.counted_logs != usage.present_logs:
            yield f"{where} is said to hold {usage.counted_logs} logs, and has {usage.present_logs}"


# Throttles are never exceeded: all copies that a throttle slows stay within its rate together (KIP-73).
#
# The throttled copies are read from the configuration again: listed partitions sent by a leader to followers out of
# sync, listed partitions received by a follower, and copies that move between the directories of a broker (KIP-113).
# However low a rate is, one answer to each fetcher passes in every window of the quota.

_ROUNDING_OF_RATES = 1.0 + 1e-6
_listed_replicas = lru_cache(maxsize=64)(ThrottledReplicas.parse)


class _Throttle(NamedTuple):
    """A configured throttle rate: its broker and its key."""

    broker: int
    key: str


def throttles_are_kept(twin: TwinCore, step: Step) -> Iterator[str]:
    """Throttle rates that are exceeded. Between a change and the next moment nothing flows at any rate yet."""
    del step
    flows: defaultdict[_Throttle, list[Flow]] = defaultdict(list)
    for flow in twin.replication.readings.flows():
        for limit in _throttles_of(twin.metadata, flow):
            flows[limit].append(flow)
    for (broker, key), slowed in flows.items():
        configured = parse_rate(twin.metadata.config(ConfigResource.broker(broker), key))
        rate = sum(flow.bytes_per_s for flow in slowed)
        allowed = max(configured, 0.0 if key == throttle.LOG_DIR_RATE else _answers_per_s(twin, slowed))
        if rate > allowed * _ROUNDING_OF_RATES:
            yield f"{key} of broker {broker} is {configured} bytes per second, and {rate} flow"


def _answers_per_s(twin: TwinCore, flows: list[Flow]) -> float:
    """Answers per second if every follower gets one from each of its leaders, with one fetch of each partition."""
    settings = twin.settings.replication
    partitions = [(twin.metadata.partition(flow.topic_partition), flow.broker) for flow in flows]
    fetchers = Counter((found.leader, follower) for found, follower in partitions if found is not None)
    answers = (min(count * settings.fetch_bytes, settings.response_bytes) for count in fetchers.values())
    return sum(answers) * 1000 / settings.quota_window_ms


def _throttles_of(metadata: ClusterMetadata, flow: Flow) -> Iterator[_Throttle]:
    """The throttles that a flow shares with other flows."""
    if flow.is_future:
        yield _Throttle(flow.broker, throttle.LOG_DIR_RATE)
        return
    topic, number = flow.topic_partition
    partition = metadata.partition(flow.topic_partition)
    if partition is None:
        return
    of_topic = ConfigResource.topic(topic)
    leaders = _listed_replicas(metadata.config(of_topic, throttle.LEADER_THROTTLED_REPLICAS))
    if flow.broker not in partition.isr and leaders.holds(number, partition.leader):
        yield _Throttle(partition.leader, throttle.LEADER_THROTTLED_RATE)
    if _listed_replicas(metadata.config(of_topic, throttle.FOLLOWER_THROTTLED_REPLICAS)).holds(number, flow.broker):
        yield _Throttle(flow.broker, throttle.FOLLOWER_THROTTLED_RATE)


# ListPartitionReassignments lists exactly the moves in progress, with the lists as they are.


def list_is_progress(twin: TwinCore, step: Step) -> Iterator[str]:
    """Partitions whose listed and actual moves differ."""
    del step
    listed = {
        TopicPartition(topic.topic, number): move
        for topic in list_reassignments(twin.metadata)
        for number, move in topic.partitions
    }
    moving = {
        one.topic_partition: OngoingReassignment(one.replicas, one.adding, one.removing)
        for topic in twin.metadata.topics.values()
        for one in topic.partitions.values()
        if one.is_reassigning
    }
    for key in sorted(listed.keys() | moving.keys()):
        if listed.get(key) != moving.get(key):
            yield f"{key} is listed as {listed.get(key)}, and is {moving.get(key)}"


# The table of all checkers, and functions that run them.

LARGE = 5_000
SAMPLED = 256


class Checker(NamedTuple):
    """An invariant: a sentence, and the function that yields its violations."""

    sentence: str
    check: Callable[[TwinCore, Step], Iterator[str]]
    sees_everything: bool = False


CHECKERS = (
    Checker("the ISR is part of the replicas", isr_is_within_replicas),
    Checker("the leader is in the ISR, or there is none", leader_is_in_sync),
    Checker("no partition loses its last in-sync copy to a reassignment", last_copy_is_kept),
    Checker("what is being added is part of a target", adding_is_part_of_target),
    Checker("epochs never go back", epochs_never_go_back),
    Checker("a completed move has exactly its target", completed_moves_have_their_target),
    Checker("brokers have the copies that the metadata says", copies_follow_replicas),
    Checker("bytes on disk add up", bytes_add_up, sees_everything=True),
    Checker("throttles are never exceeded", throttles_are_kept, sees_everything=True),
    Checker("the list of reassignments is what is in progress", list_is_progress, sees_everything=True),
)
"""Every invariant, with its checker."""


def look(twin: TwinCore, step: Step) -> Iterator[str]:
    """Yield the violations after a step. Large clusters are checked in part, see above."""
    partitions = sum(len(topic.partitions) for topic in twin.metadata.topics.values())
    is_whole = partitions <= LARGE or twin.metadata.offset % SAMPLED == 0
    for checker in CHECKERS:
        if is_whole or not checker.sees_everything:
            yield from _findings(checker, twin, step)


def check_step(twin: TwinCore, step: Step) -> None:
    """Check a step as an observer (`Twin.watch`); raises `InvariantBroken` on any violation."""
    _refuse(twin, list(look(twin, step)))


def check_all(twin: TwinCore) -> None:
    """Check the whole cluster as it is now, as if all of it had just been created."""
    everything = {one.topic_partition: None for topic in twin.metadata.topics.values()
                  for one in topic.partitions.values()}  # fmt: skip
    step = Step(before=everything)
    _refuse(twin, [finding for checker in CHECKERS for finding in _findings(checker, twin, step)])


def _findings(checker: Checker, twin: TwinCore, step: Step) -> Iterator[str]:
    return (f"{checker.sentence}: {finding}" for finding in checker.check(twin, step))


def _refuse(twin: TwinCore, findings: list[str]) -> None:
    if findings:
        raise InvariantBroken(f"at {twin.now_ms} ms, record {twin.metadata.offset}: " + "; ".join(findings))
