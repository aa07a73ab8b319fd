"""Everything that speaks against executing a plan, found before anything is sent. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from kreassign.executor.cluster.log_dirs import ReplicaLocation, replica_locations
from kreassign.executor.cluster.observations import is_another
from kreassign.executor.throttle.rates import ThrottleRates
from kreassign.model import (
    NO_LEADER,
    Cluster,
    LogDir,
    OngoingReassignment,
    Partition,
    TopicPartition,
    TopicPartitionReplica,
)
from kreassign.model.plan import PartitionAssignment, Plan


@dataclass(frozen=True, slots=True)
class PlanOrigin:
    """For which cluster and which topics a plan was made, by their ids, as far as somebody wrote them down."""

    cluster_id: str | None = None
    topic_ids: Mapping[str, str] = field(default_factory=dict)


UNKNOWN_ORIGIN = PlanOrigin()


@dataclass(frozen=True, slots=True)
class ClusterView:
    """What the cluster is like now.

    `partitions` has every partition of the plan's topics, but those of topics that are not there; `expected` the
    replica lists from which the plan was made, where its author wrote them down. `log_dirs` are those of the brokers
    for which the plan names any, with the copies of its partitions. `topic_ids` is by name, as far as known.
    """

    cluster: Cluster
    partitions: Mapping[TopicPartition, Partition]
    ongoing: Mapping[TopicPartition, OngoingReassignment] = field(default_factory=dict)
    expected: Mapping[TopicPartition, tuple[int, ...]] = field(default_factory=dict)
    log_dirs: Mapping[int, tuple[LogDir, ...]] = field(default_factory=dict)
    topic_ids: Mapping[str, str] = field(default_factory=dict)


def violations(
    plan: Plan, view: ClusterView, rates: ThrottleRates, origin: PlanOrigin = UNKNOWN_ORIGIN
) -> tuple[str, ...]:
    """A sentence for each thing that is wrong, all of them; empty when the plan can be executed."""
    if origin.cluster_id not in {None, view.cluster.cluster_id}:
        here = view.cluster.cluster_id
        text = f"it was made for cluster {origin.cluster_id}, and this is cluster {here}"
        return (f"{text}: check --bootstrap-server, or make a plan for this cluster",)
    found = [] if len(plan) else ["it names no partition"]
    found += _of_topics(plan, view, origin)
    found += _of_rates(rates, view.cluster)
    found += [f"{partition} is named more than once" for partition in plan.duplicate_partitions]
    found += [f"{partition}: {text}" for partition, text in hindrances(plan, view)]
    return tuple(dict.fromkeys(found))


def hindrances(plan: Plan, view: ClusterView) -> Iterator[tuple[TopicPartition, str]]:
    """What speaks against moving single partitions; without them the others could be moved."""
    for assignment in plan.assignments:
        for text in (*_of_assignment(assignment, view.cluster), *_of_partition(assignment, view)):
            yield assignment.topic_partition, text
    for replica, text in _of_log_dirs(plan, view):
        yield replica.topic_partition, text


def _of_rates(rates: ThrottleRates, cluster: Cluster) -> Iterator[str]:
    slowest = rates.slowest_bytes_per_s
    if slowest is not None and slowest <= 0:
        yield f"a throttle of {slowest} B/s would never let it end"
    for one in rates.per_broker:
        if one.broker not in cluster.broker_ids:
            yield f"broker {one.broker} is given a rate, but is not there; live brokers are {list(cluster.broker_ids)}"


def _of_topics(plan: Plan, view: ClusterView, origin: PlanOrigin) -> Iterator[str]:
    for topic in plan.topics:
        before, now = origin.topic_ids.get(topic), view.topic_ids.get(topic)
        if is_another(before, now):
            yield (
                f"topic {topic} is not the one that the plan was made for: that was deleted, and another one created "
                f"under its name (id {before} then, {now} now); replan"
            )


def _of_assignment(assignment: PartitionAssignment, cluster: Cluster) -> Iterator[str]:
    if not assignment.replicas:
        yield "the list of replicas is empty"
    for broker in assignment.duplicate_replicas:
        yield f"broker {broker} is named more than once"
    for broker in sorted(set(assignment.replicas) - set(cluster.broker_ids)):
        yield f"broker {broker} is not there, or not up; live brokers are {list(cluster.broker_ids)}"


def _of_log_dirs(plan: Plan, view: ClusterView) -> Iterator[tuple[TopicPartitionReplica, str]]:
    found = replica_locations(view.log_dirs)
    for replica, path in plan.log_dirs.items():
        if replica.broker not in view.cluster.broker_ids:
            continue
        known = view.log_dirs.get(replica.broker)
        place = found.get(replica, ReplicaLocation())
        log_dir = next((one for one in known or () if one.path == path), None)
        where = f"log directory {path} of broker {replica.broker}"
        if known is None:
            yield replica, f"broker {replica.broker} did not report its log directories, of which {path} is named"
        elif log_dir is None:
            yield replica, f"there is no {where}; it has {', '.join(one.path for one in known)}"
        elif log_dir.error:
            yield replica, f"{where} is offline ({log_dir.error})"
        elif log_dir.is_cordoned and place.current != path:
            yield replica, f"{where} is cordoned (KIP-1066) and takes no copies"
        elif place.future is not None:
            yield (
                replica,
                f"its copy on broker {replica.broker} is being moved to {place.future} already; wait for that",
            )


def _of_partition(assignment: PartitionAssignment, view: ClusterView) -> Iterator[str]:
    name = assignment.topic_partition
    partition, ongoing = view.partitions.get(name), view.ongoing.get(name)
    if partition is None:
        topics = {known.topic for known in view.partitions}
        yield "there is no such partition" if name.topic in topics else f"there is no topic {name.topic}"
        return
    if ongoing is not None:
        yield f"it is being reassigned already ({ongoing}); {_way_out(ongoing)}"
        return
    added = sorted(set(assignment.replicas) - set(partition.replicas))
    if partition.leader == NO_LEADER and added:
        yield (
            f"it has no leader, so nothing can be copied to {added}: bring back one of its replicas "
            f"{list(partition.replicas)}, or plan without it"
        )
    expected = view.expected.get(name)
    # Not their order: Kafka does not restore that when a reassignment is cancelled, and what is copied is the same.
    if expected is not None and sorted(expected) != sorted(partition.replicas):
        yield f"its replicas are {list(partition.replicas)}, but the plan was made for {list(expected)}; replan"


def _way_out(ongoing: OngoingReassignment) -> str:
    if ongoing.can_never_complete:
        return "that can never complete, because it was overridden by a target that adds nothing: cancel it, then start"
    return "wait for that to end, or cancel it; a run overrides nothing, for some overrides can never complete"
