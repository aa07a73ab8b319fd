"""Pose the planning problem from the tables."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from kreassign.model.load import AsOf
from kreassign.model.snapshot import SnapshotLogDir
from kreassign.operations.plan_inputs import Inputs, Whence, heeded, host_facts, limited, posed_inputs
from kreassign.pipeline.load.plan_inputs import (
    PlanColumns,
    planned_clusters,
    read_forecast_basis,
    read_last_hour,
    read_plan_columns,
    read_topic_ids,
)
from kreassign.pipeline.tables.parquet import has_table, read_rows, tables_at
from kreassign.pipeline.tables.schemas import BROKERS, LOG_DIRS, Row
from kreassign.planner.problem.build import ReplicaColumns, problem_from, with_cores
from kreassign.planner.problem.policy import PlanPolicy


def inputs_of_tables(
    data: Path | str, cluster: str | None, policy: PlanPolicy, by: str = "mean", *, as_of: AsOf | None = None
) -> Inputs:
    """Planner inputs from the tables; `by` is `mean`, or another load that `plan --by` takes.

    All of it is from one load: the last, or the one that `as_of` selects. Raises DataError or
    InputError.
    """
    where = tables_at(data, as_of)
    columns = read_plan_columns(where, cluster, by)
    snapshot = {"snapshot_id": columns.snapshot_id}
    rows = read_rows(where, BROKERS, only=snapshot)
    dirs = read_rows(where, LOG_DIRS, only=snapshot) if has_table(where, LOG_DIRS) else []
    hosts = [
        replace(
            host_facts(
                row["broker"], row["rack"], [_log_dir(one) for one in dirs if one["broker"] == row["broker"]], policy
            ),
            is_live=not row["is_fenced"],
        )
        for row in rows
    ]
    taken_ms = max((int(row["taken_ms"]) for row in rows), default=0)
    given = _replicas(columns)
    replicas, loads = heeded(given, by, taken_ms, policy.reads_per_write, columns.reason_names, columns.reasons)
    loads = replace(
        loads,
        last_hour_ms=read_last_hour(where, columns.cluster_id),
        forecast=read_forecast_basis(where, columns.cluster_id) if by.startswith("forecast") else None,
    )
    topic_ids = read_topic_ids(where, columns.snapshot_id)
    replicas = with_cores(replicas, columns.is_leader, policy.cores_of)
    problem = problem_from(limited(hosts), replicas, reads_per_write=policy.reads_per_write)
    whence = Whence(columns.cluster_id, columns.snapshot_id, taken_ms, is_cpu_measured=columns.is_cpu_measured)
    return posed_inputs(problem, whence, policy, loads, topic_ids)


def clusters_of_tables(data: Path | str, as_of: AsOf | None) -> tuple[str, ...]:
    """Ids of the clusters in a load: the last load, or that of `as_of`. Raises DataError."""
    return planned_clusters(tables_at(data, as_of))


def _log_dir(row: Row) -> SnapshotLogDir:
    sizes = row["total_bytes"], row["usable_bytes"]
    return SnapshotLogDir(
        row["path"], *sizes, is_offline=row["error"] is not None, is_cordoned=bool(row["is_cordoned"])
    )


def _replicas(columns: PlanColumns) -> ReplicaColumns:
    return ReplicaColumns(
        topic_names=columns.topic_names,
        topics=columns.topics,
        partitions=columns.partitions,
        brokers=columns.brokers,
        positions=columns.positions,
        is_reassigning=columns.is_reassigning,
        size_bytes=columns.size_bytes,
        write_bytes_per_s=columns.write_bytes_per_s,
        paths=columns.paths,
        log_dirs=columns.log_dirs,
        read_bytes_per_s=columns.read_bytes_per_s,
        leader_cpu=columns.leader_cpu,
        follower_cpu=columns.follower_cpu,
        in_sync=columns.in_sync,
    )
