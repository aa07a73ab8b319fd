"""Other destinations for moves of a run whose own are lost: what the planner says, checked like a plan.

What has to be known is asked of the cluster, for a run has no snapshot. Brokers that the plan empties take nothing, and
no replica goes back to a broker that the plan takes it from: what the plan was for is not known, but that it wanted.
Nor does a broker take any whose throttle somebody else has set since the run began: that is theirs.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import replace

from kreassign.admin import AdminClient
from kreassign.errors import IllegalPlan, InputError
from kreassign.executor.cluster import permissions
from kreassign.executor.cluster.log_dirs import replica_locations
from kreassign.executor.cluster.queries import is_unknown_topic, partitions_of, read_configs
from kreassign.executor.events import NewTarget, PlannedMove, Refusal, topic_ids_of_moves
from kreassign.executor.instructions import ReplanMoves
from kreassign.executor.preflight.checks import PlanOrigin, violations
from kreassign.executor.preflight.prepare import read_cluster
from kreassign.executor.preflight.starvation import starved
from kreassign.executor.replanner import Replanned
from kreassign.executor.throttle.ledger import throttle_keys
from kreassign.executor.throttle.rates import NO_THROTTLE
from kreassign.model import Cluster, LogDir, Partition, TopicPartition
from kreassign.model.plan import PartitionAssignment, Plan
from kreassign.planner import BrokerFacts, Problem
from kreassign.planner.problem.from_columns import ReplicaRow, columns_of, problem_from
from kreassign.planner.tasks import replace_lost

GONE = "it is not there any more"


def replanned(client: AdminClient, question: ReplanMoves) -> Replanned:
    """New targets for moves whose destinations are lost, or why there are none. Raises ClusterError."""
    try:
        targets, refused = _planned(client, question)
    except (IllegalPlan, InputError) as error:
        return Replanned(refused=tuple(Refusal(move.topic_partition, str(error)) for move in question.moves))
    refused |= _objections(client, question, targets)
    return Replanned(
        tuple(
            NewTarget(move.topic_partition, move.target, targets[move.topic_partition])
            for move in question.moves
            if move.topic_partition not in refused
        ),
        tuple(Refusal(name, reason) for name, reason in refused.items()),
    )


# --- planning ------------------------------------------------------------------------------------------------------


def _planned(
    client: AdminClient, question: ReplanMoves
) -> tuple[dict[TopicPartition, tuple[int, ...]], dict[TopicPartition, str]]:
    """New lists of the moves, and why some have none."""
    cluster = client.describe_cluster()
    theirs = _of_others(client, question, cluster)
    problem = _problem(client, question, cluster, theirs)
    moves = {move.topic_partition: move for move in question.moves}
    leaving = {name: set(question.lost).intersection(move.adding) for name, move in moves.items()}
    barred = {name: (*move.original, *question.lost) for name, move in moves.items()}
    targets, refused = replace_lost(problem, leaving, barred)
    if theirs:
        left_out = (
            f"brokers {sorted(theirs)} were left out, whose throttle is not this run's: {'; '.join(theirs.values())}"
        )
        refused = {name: f"{reason}; {left_out}" for name, reason in refused.items()}
    for name in moves.keys() - targets.keys() - refused.keys():
        refused[name] = "a copy that is there already was to go to another log directory" if not leaving[name] else GONE
    return targets, refused


def _of_others(client: AdminClient, question: ReplanMoves, cluster: Cluster) -> dict[int, str]:
    """Brokers with a throttle that is not for this run to change, or that do not tell, and what they have, or why."""
    keys = throttle_keys((), cluster.broker_ids) if question.rates.is_limited else ()
    values, unread = read_configs(client, (key for key in keys if key not in question.known))
    found = {int(resource.name): f"{resource} {problem}" for resource, problem in unread}
    return found | {int(one.key.resource.name): str(one) for one in values if one.value is not None}


def _problem(client: AdminClient, question: ReplanMoves, cluster: Cluster, barred: Collection[int]) -> Problem:
    """The cluster as it will be when the run is over, with the brokers that are lost still in its lists."""
    topics = client.describe_topics()
    concerned = {move.topic_partition.topic for move in question.moves}
    for topic, error in topics.failed.items():
        if topic in concerned and not is_unknown_topic(error):
            raise error
    found = partitions_of(topics)
    log_dirs = client.describe_log_dirs().ok
    wanted = {move.topic_partition: move.target for move in question.plan}
    known = {move.topic_partition: move.size_bytes for move in question.plan}
    sizes = Counter(known)
    for replica, place in replica_locations(log_dirs).items():
        name = TopicPartition(replica.topic, replica.partition)
        sizes[name] = max(sizes[name], place.current_bytes)
    rows = (
        ReplicaRow(
            *name, broker, position, is_reassigning=False, size_bytes=sizes[name], write_bytes_per_s=None, log_dir=None
        )
        for name, partition in found.items()
        for position, broker in enumerate(wanted.get(name, partition.replicas))
    )
    hosts = [*_live(cluster, log_dirs, question, barred), *_absent(cluster, question, found)]
    return problem_from(hosts, columns_of(rows))


def _live(
    cluster: Cluster, log_dirs: Mapping[int, tuple[LogDir, ...]], question: ReplanMoves, barred: Collection[int]
) -> Iterator[BrokerFacts]:
    closed = {*barred, *_emptied(question.plan)}
    rooms = {broker: _room(dirs, question.disk_reserve) for broker, dirs in log_dirs.items()}
    is_known = all(rooms.get(broker.id) is not None for broker in cluster.brokers)
    for broker in cluster.brokers:
        dirs, room = log_dirs.get(broker.id, ()), rooms.get(broker.id)
        takes = any(one.error is None and not one.is_cordoned for one in dirs) if log_dirs else True
        yield BrokerFacts(
            broker.id,
            broker.rack,
            {"disk": room} if is_known and room is not None else {},
            may_receive=takes and broker.id not in closed,
        )


def _absent(
    cluster: Cluster, question: ReplanMoves, partitions: Mapping[TopicPartition, Partition]
) -> Iterator[BrokerFacts]:
    """Those that are down, for however long. Nobody knows their racks, so they add none to those that there are."""
    named = {broker for one in partitions.values() for broker in one.replicas}
    named |= {broker for move in question.plan for broker in move.target}
    for absent in sorted(named.difference(cluster.broker_ids)):
        yield BrokerFacts(absent, may_receive=False, must_empty=True)


def _room(dirs: Iterable[LogDir], reserve: float) -> float | None:
    """Bytes that a broker may hold; None where its file systems are not known (before Kafka 3.3)."""
    totals = [one.total_bytes for one in dirs if one.error is None]
    known = [total for total in totals if total is not None]
    return sum(known) * (1 - reserve) if known and len(known) == len(totals) else None


def _emptied(plan: Iterable[PlannedMove]) -> frozenset[int]:
    """Brokers from which the plan takes and to which it gives nothing: drained, or too full."""
    moves = tuple(plan)
    taken = {broker for move in moves for broker in move.reassignment.removing}
    return frozenset(taken.difference(broker for move in moves for broker in move.adding))


# --- checks --------------------------------------------------------------------------------------------------------


def _objections(
    client: AdminClient, question: ReplanMoves, targets: Mapping[TopicPartition, tuple[int, ...]]
) -> dict[TopicPartition, str]:
    """What speaks against each of the new targets, as against a plan before a run: its first reason."""
    assignments = [PartitionAssignment(name, target) for name, target in targets.items()]
    if not assignments:
        return {}
    view = read_cluster(client, Plan(tuple(assignments)), {})
    # What this run has under way is cancelled before anything else is sent.
    ongoing = {name: one for name, one in view.ongoing.items() if name not in question.in_flight}
    view = replace(view, ongoing=ongoing)
    origin = PlanOrigin(view.cluster.cluster_id, topic_ids_of_moves(question.moves))
    found = {
        one.topic_partition: wrong[0].removeprefix(f"{one.topic_partition}: ")
        for one in assignments
        if (wrong := violations(Plan((one,)), view, NO_THROTTLE, origin))
    }
    return {**_of_permissions(client, question, targets), **_of_rates(question, targets), **found}


def _of_permissions(
    client: AdminClient, question: ReplanMoves, targets: Mapping[TopicPartition, tuple[int, ...]]
) -> dict[TopicPartition, str]:
    topics: set[str] = set()
    brokers: set[int] = set()
    if question.rates.is_limited:
        topics = {name.topic for name in targets}
        chosen = {broker for target in targets.values() for broker in target}
        brokers = chosen.intersection(client.describe_cluster().broker_ids)
    lacking = permissions.lacking(client, sorted(topics), sorted(brokers))
    return dict.fromkeys(targets, "; ".join(lacking)) if lacking else {}


def _of_rates(question: ReplanMoves, targets: Mapping[TopicPartition, tuple[int, ...]]) -> dict[TopicPartition, str]:
    """Copies that the throttle would never let end at their new brokers."""
    moves = [
        replace(move, target=targets[move.topic_partition])
        for move in question.moves
        if move.topic_partition in targets
    ]
    names = {str(name): name for name in targets}
    hopeless = (one for one in starved(moves, question.writes, question.rates) if one.is_certain)
    return {names[one.subject]: str(one) for one in hopeless if one.subject in names}
