"""Pose the problem that planning tasks begin with: from a snapshot, or from a live cluster in seconds.

A live cluster needs neither tables nor Spark. `table_inputs.py` does the same from the tables, which are slow to
load.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from pathlib import Path

from kreassign.admin import AdminClient
from kreassign.clock import SYSTEM_CLOCK, Clock
from kreassign.errors import InputError
from kreassign.executor.cluster.permissions import explained
from kreassign.executor.cluster.requests import MIN_ISR, min_isr_of
from kreassign.model import TopicPartition
from kreassign.model.closures import Closure
from kreassign.model.disks import sum_of_disks
from kreassign.model.load import MEASURED_S, LoadBasis
from kreassign.model.plan_facts import NO_PRICES, GoalLimit, RackPrices
from kreassign.model.replica_columns import Ints, ReplicaColumns
from kreassign.model.snapshot import ClusterSnapshot, SnapshotBroker
from kreassign.model.text import format_amount, name_pattern, signed_number
from kreassign.operations.connect import Warn, warn_program
from kreassign.operations.snapshot import observe, unmeasured_columns, whole_columns_of
from kreassign.operations.snapshot_files import read_snapshot_columns
from kreassign.pipeline.load.doubt import furthest_beyond, heed
from kreassign.pipeline.load.rules import LARGEST_LOG_BYTES, MOST_BYTES_PER_S
from kreassign.pipeline.tables.snapshot_columns import SnapshotColumns, columns_of, seen_replicas
from kreassign.planner import BrokerFacts, LogDirFacts, Problem
from kreassign.planner.goals import DISK
from kreassign.planner.problem.build import problem_from
from kreassign.planner.problem.policy import (
    CORES,
    PlanPolicy,
    matching,
    refuse_unknown_racks,
    with_coordinated,
    with_policy,
)

MOST_CORES = 10_000
NO_POLICY = PlanPolicy()
PART_OF_CPU = "of a CPU"
"""Unit of CPU measurements of brokers: 1 is the whole CPU of a broker."""


@dataclass(frozen=True, slots=True, eq=False)
class Inputs:
    """Present state of one cluster, with the policy in it, and its origin.

    `loads` is the basis of the rates in the problem, which has priors in place of doubtful ones. `topic_ids` is by
    name, without topics of unknown id. `rack_prices` are those of the policy. `limits` has the origin of the brokers'
    limits, and `unknown_goals` the goals of the policy that were left out because no load is known for them. `min_isr`
    is min.insync.replicas by topic, without those of which it is not known. `unmatched` has a sentence for each pattern
    of the policy that no topic matches, yet or any more.
    """

    problem: Problem
    cluster_id: str
    snapshot_id: str
    taken_ms: int
    loads: LoadBasis
    topic_ids: Mapping[str, str] = field(default_factory=dict)
    rack_prices: RackPrices = NO_PRICES
    limits: tuple[GoalLimit, ...] = ()
    unknown_goals: tuple[str, ...] = ()
    min_isr: Mapping[str, int] = field(default_factory=dict)
    unmatched: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Whence:
    """Origin of inputs: cluster, snapshot, the time of its start, and whether brokers measured their CPU."""

    cluster_id: str
    snapshot_id: str
    taken_ms: int
    is_cpu_measured: bool = False


def inputs_of_snapshot_file(path: Path, policy: PlanPolicy) -> Inputs:
    """Planner inputs from a snapshot file. Raises InputError, which names the file."""
    return inputs_of_columns(read_snapshot_columns(path), policy, path.name)


def inputs_of_snapshot(found: ClusterSnapshot, policy: PlanPolicy, snapshot_id: str) -> Inputs:
    """Planner inputs from a snapshot; the facts about a plan name it by this id."""
    return inputs_of_columns(columns_of(found), policy, snapshot_id)


def inputs_of_columns(found: SnapshotColumns, policy: PlanPolicy, snapshot_id: str) -> Inputs:
    """Planner inputs from snapshot columns."""
    head = found.head
    replicas, loads = heeded(seen_replicas(found), "snapshot", head.taken_ms, policy.reads_per_write)
    loads = replace(loads, measured_for_s=head.measured_for_s)
    problem = problem_from(hosts_of(head, replicas, policy), replicas, reads_per_write=policy.reads_per_write)
    whence = Whence(head.cluster_id, snapshot_id, head.taken_ms)
    inputs = posed_inputs(problem, whence, policy, loads, ids_of_topics(head))
    return replace(inputs, min_isr=min_isr_in(head))


def hosts_of(head: ClusterSnapshot, replicas: ReplicaColumns, policy: PlanPolicy) -> list[BrokerFacts]:
    """Brokers of a snapshot as the planner sees them."""
    held = replicas.held_bytes
    return limited([host_facts(one, held, policy) for one in head.brokers], policy)


def ids_of_topics(head: ClusterSnapshot) -> dict[str, str]:
    """Ids of a snapshot's topics by name, as far as they are known."""
    return {topic.name: topic.topic_id for topic in head.topics if topic.topic_id is not None}


def min_isr_in(head: ClusterSnapshot) -> dict[str, int]:
    """min.insync.replicas of topics, where it is set for them, or for all brokers and no single one.

    What server.properties sets is in no snapshot.
    """
    by_broker = any(MIN_ISR in broker.configs for broker in head.brokers)
    default = None if by_broker else head.broker_defaults.get(MIN_ISR)
    values = {topic.name: signed_number(topic.configs.get(MIN_ISR) or default or "") for topic in head.topics}
    return {topic: value for topic, value in values.items() if value is not None}


def posed_inputs(
    problem: Problem, whence: Whence, policy: PlanPolicy, loads: LoadBasis, topic_ids: Mapping[str, str]
) -> Inputs:
    """Apply the policy to the problem, and describe both. Raises InputError for a policy that does not fit."""
    if policy.limits_cpu and not whence.is_cpu_measured:
        raise InputError(
            "a limit for cpu needs what brokers measured of theirs, and none did: import cpu_share and run `kreassign "
            "load` (guide where-the-measures-come-from), or leave cpu out of [capacity] and [broker-capacity]"
        )
    present, unmatched = without_absent(policy, problem.partitions.topic_names)
    problem = with_policy(with_coordinated(problem, policy.coordinated, topic_ids), present)
    for key, by_pattern in (("leader-racks", policy.leader_racks), ("consumer-racks", policy.consumer_racks)):
        try:  # also those of topics to come
            refuse_unknown_racks(problem, chain.from_iterable(by_pattern.values()))
        except InputError as error:
            raise InputError(f"{_place(policy, key)}: {error}") from error
    if whence.is_cpu_measured:
        problem = replace(problem, cpu_unit=CORES if policy.cores_of(problem.brokers.ids.tolist()) else PART_OF_CPU)
    known = {band.goal.name for band in problem.bands}
    return Inputs(
        problem,
        whence.cluster_id,
        whence.snapshot_id,
        whence.taken_ms,
        loads,
        topic_ids,
        policy.rack_prices,
        tuple(_limits(problem, policy)),
        tuple(band.goal.name for band in policy.bands if band.goal.name not in known),
        unmatched=unmatched,
    )


def _place(policy: PlanPolicy, key: str) -> str:
    """The key, with the goals file that has it."""
    return f"{policy.source}: {key}" if policy.source else key


def without_absent(policy: PlanPolicy, topics: Collection[str]) -> tuple[PlanPolicy, tuple[str, ...]]:
    """The policy without patterns that no topic matches, and a sentence for each of them.

    They are for topics to come, or their last topic was deleted. Raises InputError for what is no pattern.
    """
    unmatched: list[str] = []

    def is_present(key: str, pattern: str) -> bool:
        name_pattern(pattern)
        try:
            matching(pattern, topics)
        except InputError as error:
            unmatched.append(f"{_place(policy, key)}: {error}")
            return False
        return True

    sets = tuple(
        replace(one, topics=tuple(pattern for pattern in one.topics if is_present("broker-sets", pattern)))
        for one in policy.broker_sets
    )
    leaders = {name: racks for name, racks in policy.leader_racks.items() if is_present("leader-racks", name)}
    readers = {name: racks for name, racks in policy.consumer_racks.items() if is_present("consumer-racks", name)}
    return replace(policy, broker_sets=sets, leader_racks=leaders, consumer_racks=readers), tuple(unmatched)


def _limits(problem: Problem, policy: PlanPolicy) -> Iterator[GoalLimit]:
    """Limits of the brokers that may hold replicas, by goal and by source."""
    brokers, units = problem.brokers, {band.goal.name: band.goal.unit for band in policy.bands}
    for goal, values in sorted(brokers.capacity.items()):
        by_source: dict[str, list[float]] = {}
        for broker, value in zip(brokers.ids[brokers.staying].tolist(), values[brokers.staying].tolist(), strict=True):
            if math.isfinite(value):
                by_source.setdefault(_source(goal, broker, policy), []).append(value)
        for source, found in by_source.items():
            yield GoalLimit(goal, units.get(goal) or problem.unit_of(goal), source, len(found), min(found), max(found))


def _source(goal: str, broker: int, policy: PlanPolicy) -> str:
    if goal in policy.broker_capacity.get(broker, {}):
        return "the goals file, for single brokers"
    if goal in policy.capacity:
        return "the goals file, for all brokers"
    default = ", the default" if policy.disk_reserve == NO_POLICY.disk_reserve else ""
    return f"measured: their file systems, {policy.disk_reserve:.0%} of them kept free{default}"


def host_facts(seen: SnapshotBroker, held: Mapping[tuple[int, str], float], policy: PlanPolicy) -> BrokerFacts:
    """A broker as the planner sees it; the reserve is subtracted from its disks. `held`: as of `ReplicaColumns`."""
    usable = 1 - policy.disk_reserve
    working = (one for one in seen.log_dirs if not one.is_offline)
    room = sum_of_disks(working, lambda one: held.get((seen.broker.id, one.path), 0.0))[0]
    log_dirs = tuple(
        LogDirFacts(
            one.path,
            None if one.total_bytes is None else int(one.total_bytes * usable),
            may_receive=one.is_cordoned is False,
            is_offline=one.is_offline,
        )
        for one in seen.log_dirs
    )
    return BrokerFacts(
        seen.broker.id,
        seen.broker.rack,
        {} if room is None else {DISK.name: room * usable},
        is_live=not seen.broker.is_fenced,
        closure=seen.closure,
        log_dirs=log_dirs,
    )


def limited(hosts: Sequence[BrokerFacts], policy: PlanPolicy = NO_POLICY) -> list[BrokerFacts]:
    """Close live brokers of unknown size where others report theirs, unless the policy has a limit for their disks.

    Before Kafka 3.3 no broker reports it: then none has a limit, and all are open.
    """
    if not any(DISK.name in host.capacity for host in hosts if host.is_live):
        return list(hosts)

    def is_unsized(host: BrokerFacts) -> bool:
        given = policy.capacity.keys() | policy.broker_capacity.get(host.id, {}).keys()
        is_told = host.is_live and Closure.UNREAD not in host.closure
        return is_told and DISK.name not in host.capacity.keys() | given

    return [replace(host, closure=host.closure | Closure.UNSIZED) if is_unsized(host) else host for host in hosts]


def heeded(
    columns: ReplicaColumns,
    source: str,
    taken_ms: int,
    reads_per_write: float,
    reason_names: Sequence[str] = (),
    reasons: Ints | None = None,
) -> tuple[ReplicaColumns, LoadBasis]:
    """Replace doubtful rates by priors; return the columns, and the basis of their rates and reads."""
    rates, loads = heed(columns, source, taken_ms, reason_names, reasons)
    loads = replace(loads, assumed_reads=columns.assumed_reads, reads_per_write=reads_per_write)
    settled = replace(columns, write_bytes_per_s=rates)
    _refuse_impossible(settled, source)
    return settled, loads


def _refuse_impossible(columns: ReplicaColumns, source: str) -> None:
    """Raise InputError for a load that no broker can have, naming its partition; NaN is unknown."""
    for name, values, most, unit in (
        ("size", columns.size_bytes, LARGEST_LOG_BYTES, "B"),
        ("write rate", columns.write_bytes_per_s, MOST_BYTES_PER_S, "B/s"),
        ("read rate", columns.read_bytes_per_s, MOST_BYTES_PER_S, "B/s"),
        ("CPU as leader", columns.leader_cpu, MOST_CORES, "cores"),
        ("CPU as follower", columns.follower_cpu, MOST_CORES, "cores"),
    ):
        if values is not None and (place := furthest_beyond(values, most)) is not None:
            partition = TopicPartition(columns.topic_names[columns.topics[place]], int(columns.partitions[place]))
            given, limit = (format_amount(each, unit) for each in (float(values[place]), most))
            raise InputError(
                f"the {name} of {partition} ({source}) is {given}, and no broker has less than 0 or more than {limit}: "
                "plan by another statistic (--by), or make the loads again from good samples with `kreassign load "
                "--full`"
            )


# From the present cluster, without tables and without Spark.


def inputs_of_cluster(
    client: AdminClient,
    policy: PlanPolicy,
    *,
    measure_for_s: float = MEASURED_S,
    clock: Clock = SYSTEM_CLOCK,
    warn: Warn = warn_program,
    judge: Callable[[Inputs], object] | None = None,
) -> Inputs:
    """Planner inputs from a cluster; its write rates are measured for `measure_for_s`. Raises ClusterError.

    The policy, and what `judge` refuses, is judged by the placement first: a misspelt topic is refused before the wait.
    """
    with explained(client):
        seen = observe(client, clock.now_ms(), warn)
    if judge is not None and measure_for_s:
        judge(inputs_of_columns(unmeasured_columns(seen), policy, seen.snapshot_id))
    columns = whole_columns_of(client, seen, clock, measure_for_s, warn)
    found = inputs_of_columns(columns, policy, seen.snapshot_id)
    return replace(
        found,
        loads=replace(found.loads, source="cluster"),
        min_isr=min_isr_of(client, (topic.name for topic in columns.head.topics)).known,
    )


def read_placement(
    client: AdminClient, clock: Clock = SYSTEM_CLOCK, warn: Warn = warn_program
) -> tuple[str, SnapshotColumns]:
    """The id of a snapshot of the present cluster, and its columns without rates. Raises ClusterError."""
    with explained(client):
        seen = observe(client, clock.now_ms(), warn)
    return seen.snapshot_id, whole_columns_of(client, seen, clock, 0.0, warn)
