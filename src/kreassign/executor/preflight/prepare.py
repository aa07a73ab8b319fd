"""From a plan to the first event of a run: reads the cluster, checks everything, changes nothing."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from kreassign.errors import IllegalPlan
from kreassign.executor.cluster import permissions
from kreassign.executor.cluster.log_dirs import ReplicaLocation, leader_sizes, replica_locations
from kreassign.executor.cluster.port import ClusterPort
from kreassign.executor.cluster.queries import is_unknown_topic, partitions_of, topic_ids_of
from kreassign.executor.events import LogDirTarget, PlannedMove, RunStarted
from kreassign.executor.guards import GuardSetting
from kreassign.executor.preflight.checks import UNKNOWN_ORIGIN, ClusterView, PlanOrigin, violations
from kreassign.executor.preflight.tails import tail_sizes
from kreassign.executor.scheduling import NO_LIMITS, Pace
from kreassign.executor.throttle.rates import NO_THROTTLE, ThrottleRates
from kreassign.model import NO_LEADER, LogDir, Partition, TopicPartition
from kreassign.model.plan import Plan
from kreassign.model.plan_facts import plan_id

NOTHING_EXPECTED: Mapping[TopicPartition, tuple[int, ...]] = {}


@dataclass(frozen=True, slots=True)
class RunSettings:
    """How to execute a run. The id is that of a new run; without guards nothing is inspected."""

    run_id: str
    at_ms: int
    rates: ThrottleRates = NO_THROTTLE
    guards: tuple[GuardSetting, ...] = ()
    pace: Pace = NO_LIMITS


def prepare(
    port: ClusterPort,
    plan: Plan,
    settings: RunSettings,
    *,
    expected: Mapping[TopicPartition, tuple[int, ...]] = NOTHING_EXPECTED,
    origin: PlanOrigin = UNKNOWN_ORIGIN,
) -> RunStarted:
    """What the run intends, ready for the journal.

    `expected` has the replica lists for which the plan was made, if someone wrote them down, `origin` the cluster and
    the topics. Raises IllegalPlan with
    everything that speaks against it, ClusterError when the cluster does not answer.
    """
    view = read_cluster(port, plan, expected)
    wrong = violations(plan, view, settings.rates, origin)
    wrong = wrong or _lacking(port, plan, view, settings.rates)
    if wrong:
        raise IllegalPlan(wrong)
    currents = {name: view.partitions[name].replicas for name in plan.replicas}
    log_dirs = _log_dir_targets(plan, view)
    moves = tuple(
        PlannedMove(
            name,
            currents[name],
            target,
            size_bytes=0,
            is_urgent=_is_urgent(view.partitions[name]),
            log_dirs=log_dirs.get(name, ()),
            topic_id=view.topic_ids.get(name.topic),
        )
        for name, target in plan.replicas.items()
    )
    sizes = _sizes(port, (view.partitions[move.topic_partition] for move in moves if move.receiving))
    sizes |= tail_sizes(port, moves, sizes)
    return RunStarted(
        at_ms=settings.at_ms,
        run_id=settings.run_id,
        cluster_id=view.cluster.cluster_id,
        moves=tuple(replace(move, size_bytes=sizes.get(move.topic_partition, 0)) for move in moves),
        rates=settings.rates,
        live_brokers=view.cluster.broker_ids,
        guards=settings.guards,
        pace=settings.pace,
        plan_id=plan_id(plan),
        rereads_throttle=True,
        guards_to_the_end=True,
        rereads_first=True,
    )


def _lacking(port: ClusterPort, plan: Plan, view: ClusterView, rates: ThrottleRates) -> tuple[str, ...]:
    """Permissions that the run lacks. Without a throttle it changes no configuration."""
    if not rates.is_limited:
        return permissions.lacking(port, (), ())
    return permissions.lacking(port, plan.topics, view.cluster.broker_ids)


def read_cluster(port: ClusterPort, plan: Plan, expected: Mapping[TopicPartition, tuple[int, ...]]) -> ClusterView:
    """What the checks before a run need to know."""
    cluster = port.describe_cluster()
    topics = port.describe_topics(plan.topics)
    for error in topics.failed.values():
        if not is_unknown_topic(error):
            raise error
    return ClusterView(
        cluster=cluster,
        partitions=partitions_of(topics),
        ongoing=port.list_partition_reassignments(plan.replicas) if len(plan) else {},
        expected=expected,
        log_dirs=_log_dirs(port, plan, cluster.broker_ids),
        topic_ids=topic_ids_of(topics),
    )


def _is_urgent(partition: Partition) -> bool:
    """Whether a replica of it is out of sync, or gone with its disk or broker: the next failure may cost data."""
    return bool(partition.offline) or partition.under_replicated


def _log_dirs(port: ClusterPort, plan: Plan, live: Iterable[int]) -> Mapping[int, tuple[LogDir, ...]]:
    """The directories of brokers for which the plan names any, with the copies of its partitions."""
    named = plan.log_dirs
    brokers = sorted({replica.broker for replica in named} & set(live))
    if not brokers:
        return {}
    return port.describe_log_dirs(brokers, partitions=sorted({replica.topic_partition for replica in named})).ok


def _log_dir_targets(plan: Plan, view: ClusterView) -> dict[TopicPartition, tuple[LogDirTarget, ...]]:
    """The directories that the plan names, beside those where copies are that stay on their broker."""
    found = replica_locations(view.log_dirs)
    targets: dict[TopicPartition, list[LogDirTarget]] = {}
    for replica, path in plan.log_dirs.items():
        place = found.get(replica, ReplicaLocation())
        targets.setdefault(replica.topic_partition, []).append(LogDirTarget(replica.broker, path, place.current))
    return {name: tuple(sorted(found, key=lambda target: target.broker)) for name, found in targets.items()}


def _sizes(port: ClusterPort, partitions: Iterable[Partition]) -> dict[TopicPartition, int]:
    """Size of the leader's copy of each of these; without those that are unknown."""
    leaders = {one.topic_partition: one.leader for one in partitions if one.leader != NO_LEADER}
    if not leaders:
        return {}
    answer = port.describe_log_dirs(sorted(set(leaders.values())), partitions=sorted(leaders))
    return leader_sizes(answer.ok, leaders)
