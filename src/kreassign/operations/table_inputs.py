"""Pose the planning problem with the loads of the tables.

Tables have loads, and the placement of the snapshot that the load read. A plan is for the placement that the cluster
has now, so that of the tables is used only where the caller selects a load for it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from kreassign.admin import AdminClient
from kreassign.executor.cluster.requests import min_isr_of
from kreassign.model import Broker
from kreassign.model.load import LAST_LOAD, AsOf, ForecastBasis, LoadBasis
from kreassign.model.plan_facts import is_another
from kreassign.model.replica_columns import Ints, ReplicaColumns
from kreassign.model.snapshot import SnapshotBroker, SnapshotLogDir
from kreassign.operations.connect import Warn, warn_program
from kreassign.operations.plan_inputs import (
    Inputs,
    Whence,
    heeded,
    host_facts,
    hosts_of,
    ids_of_topics,
    limited,
    min_isr_in,
    posed_inputs,
    read_placement,
)
from kreassign.pipeline.load.plan_inputs import (
    PlanColumns,
    planned_clusters,
    read_forecast_basis,
    read_last_hour,
    read_plan_columns,
    read_topic_ids,
    values_at,
)
from kreassign.pipeline.tables.parquet import has_table, read_rows, tables_at
from kreassign.pipeline.tables.schemas import BROKERS, LOG_DIRS, Row
from kreassign.pipeline.tables.snapshot_columns import SnapshotColumns, seen_replicas
from kreassign.planner.arrays import FloatArray
from kreassign.planner.problem.build import problem_from, with_cores
from kreassign.planner.problem.policy import PlanPolicy


@dataclass(frozen=True, slots=True)
class _Load:
    """Tables of one cluster as of one load; `replicas` are as placed then, with CPU in cores."""

    columns: PlanColumns
    replicas: ReplicaColumns
    by: str
    taken_ms: int
    last_hour_ms: int | None
    forecast: ForecastBasis | None
    topic_ids: Mapping[str, str]
    brokers: tuple[Row, ...]
    log_dirs: tuple[Row, ...]


def inputs_of_tables(
    data: Path | str, cluster: str | None, policy: PlanPolicy, by: str = "mean", *, as_of: AsOf = LAST_LOAD
) -> Inputs:
    """Planner inputs from the tables alone: loads and placement of one load, which `as_of` selects.

    `by` is `mean`, or another load that `plan --by` takes. The placement may be long past: `inputs_of_placement` has
    the present one. Raises DataError or InputError.
    """
    load = _read_load(data, cluster, policy, by, as_of)
    held = load.replicas.held_bytes
    hosts = [host_facts(broker_of_rows(row, load.log_dirs), held, policy) for row in load.brokers]
    columns = load.columns
    replicas, basis = _heeded(load.replicas, load, policy, columns.reason_names, columns.reasons)
    problem = problem_from(limited(hosts, policy), replicas, reads_per_write=policy.reads_per_write)
    whence = Whence(
        columns.cluster_id, columns.snapshot_id, load.taken_ms, is_cpu_measured=columns.replicas.is_cpu_measured
    )
    return posed_inputs(problem, whence, policy, basis, load.topic_ids)


def inputs_of_placement(
    placed: SnapshotColumns,
    snapshot_id: str,
    data: Path | str,
    policy: PlanPolicy,
    by: str = "mean",
    *,
    as_of: AsOf = LAST_LOAD,
) -> Inputs:
    """Planner inputs from the placement of a snapshot, with the loads that the tables have of its partitions.

    Sizes are those of the snapshot, unless `by` is a forecast. A partition that the tables do not know, or know of a
    topic that was deleted since, has an unknown load. Raises DataError or InputError.
    """
    head = placed.head
    load = _read_load(data, head.cluster_id, policy, by, as_of)
    topic_ids = ids_of_topics(head)
    replicas, names, reasons = _loaded(seen_replicas(placed), load, topic_ids)
    replicas, basis = _heeded(replicas, load, policy, names, reasons)
    known = (reasons < len(names) - 2) & (replicas.positions == 0)
    basis = replace(basis, placed_ms=head.taken_ms, gone=load.replicas.partition_count - int(known.sum()))
    problem = problem_from(hosts_of(head, replicas, policy), replicas, reads_per_write=policy.reads_per_write)
    is_cpu_measured = load.columns.replicas.is_cpu_measured
    whence = Whence(head.cluster_id, snapshot_id, head.taken_ms, is_cpu_measured=is_cpu_measured)
    return replace(posed_inputs(problem, whence, policy, basis, topic_ids), min_isr=min_isr_in(head))


def inputs_of_present(
    client: AdminClient, data: Path | str, policy: PlanPolicy, by: str = "mean", *, warn: Warn = warn_program
) -> Inputs:
    """Planner inputs from the placement that a cluster has now, with the loads of the last load of the tables.

    Raises DataError if the tables have no load of the cluster, before the cluster is read; InputError, ClusterError.
    """
    read_plan_columns(tables_at(data), client.describe_cluster().cluster_id, by)
    snapshot_id, placed = read_placement(client, warn=warn)
    found = inputs_of_placement(placed, snapshot_id, data, policy, by)
    return replace(found, min_isr=min_isr_of(client, (topic.name for topic in placed.head.topics)).known)


def _read_load(data: Path | str, cluster: str | None, policy: PlanPolicy, by: str, as_of: AsOf) -> _Load:
    where = tables_at(data, as_of)
    columns = read_plan_columns(where, cluster, by)
    snapshot = {"snapshot_id": columns.snapshot_id}
    brokers = tuple(read_rows(where, BROKERS, only=snapshot))
    return _Load(
        columns=columns,
        replicas=with_cores(columns.replicas, columns.is_leader, policy.cores_of),
        by=by,
        taken_ms=max((int(row["taken_ms"]) for row in brokers), default=0),
        last_hour_ms=read_last_hour(where, columns.cluster_id),
        forecast=read_forecast_basis(where, columns.cluster_id) if by.startswith("forecast") else None,
        topic_ids=read_topic_ids(where, columns.snapshot_id),
        brokers=brokers,
        log_dirs=tuple(read_rows(where, LOG_DIRS, only=snapshot)) if has_table(where, LOG_DIRS) else (),
    )


def _heeded(
    replicas: ReplicaColumns, load: _Load, policy: PlanPolicy, names: Sequence[str], reasons: Ints
) -> tuple[ReplicaColumns, LoadBasis]:
    settled, basis = heeded(replicas, load.by, load.taken_ms, policy.reads_per_write, names, reasons)
    return settled, replace(basis, last_hour_ms=load.last_hour_ms, forecast=load.forecast)


def _loaded(
    placed: ReplicaColumns, load: _Load, topic_ids: Mapping[str, str]
) -> tuple[ReplicaColumns, tuple[str, ...], Ints]:
    """Replicas where they are, with the loads of the tables, and the reasons why loads are doubtful."""
    others = [is_another(load.topic_ids.get(name), topic_ids.get(name)) for name in placed.topic_names]
    rows, names, reasons = load.columns.found(placed, others)

    def of(column: FloatArray | None) -> FloatArray:
        return values_at(column, rows)

    ahead = load.replicas.size_bytes if load.by.startswith("forecast") else None
    return (
        replace(
            placed,
            size_bytes=values_at(ahead, rows, placed.size_bytes),
            write_bytes_per_s=of(load.replicas.write_bytes_per_s),
            read_bytes_per_s=of(load.replicas.read_bytes_per_s),
            leader_cpu=of(load.replicas.leader_cpu),
            follower_cpu=of(load.replicas.follower_cpu),
        ),
        names,
        reasons,
    )


def clusters_of_tables(data: Path | str, as_of: AsOf) -> tuple[str, ...]:
    """Ids of the clusters in the load that `as_of` selects. Raises DataError."""
    return planned_clusters(tables_at(data, as_of))


def broker_of_rows(row: Row, log_dirs: Sequence[Row]) -> SnapshotBroker:
    """A broker of table `brokers`, with its rows among those of table `log_dirs`."""
    own = tuple(_log_dir(one) for one in log_dirs if one["broker"] == row["broker"])
    broker = Broker(row["broker"], row["host"], row["port"], row["rack"], row["is_fenced"])
    return SnapshotBroker(broker, own, {}, row["in_maintenance"], row["may_be_named"])


def _log_dir(row: Row) -> SnapshotLogDir:
    sizes = row["total_bytes"], row["usable_bytes"]
    return SnapshotLogDir(row["path"], *sizes, is_offline=row["error"] is not None, is_cordoned=row["is_cordoned"])
