"""From the tables, or from a snapshot file, to the problem that the tasks begin with."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from kreassign.model.as_of import AsOf
from kreassign.model.load_basis import LoadBasis
from kreassign.model.snapshot import ClusterSnapshot, SnapshotLogDir
from kreassign.operations.snapshot_files import read_snapshot
from kreassign.pipeline.load.doubt import ReplicaLoads, heed
from kreassign.pipeline.load.plan_inputs import (
    PlanColumns,
    planned_clusters,
    read_forecast_basis,
    read_last_hour,
    read_plan_columns,
    read_topic_ids,
)
from kreassign.pipeline.tables.parquet import has_table, read_rows
from kreassign.pipeline.tables.published import tables_at
from kreassign.pipeline.tables.schemas import BROKERS, LOG_DIRS, Row
from kreassign.planner import BrokerFacts, LogDirFacts, Problem
from kreassign.planner.problem.from_columns import Ints, ReplicaColumns, ReplicaRow, columns_of, problem_from
from kreassign.planner.problem.policy import PlanPolicy, with_policy

__all__ = [
    "Inputs",
    "disk_bytes",
    "inputs_of_snapshot",
    "inputs_of_snapshot_file",
    "inputs_of_tables",
    "planned_clusters",
    "tables_at",
]


@dataclass(frozen=True, slots=True, eq=False)
class Inputs:
    """The present state of one cluster, with the policy in it, and where it comes from.

    `loads` is what the rates of the problem rest on: in place of doubtful ones it has priors. `topic_ids` is by name,
    without the topics of which it is not known.
    """

    problem: Problem
    cluster_id: str
    snapshot_id: str
    taken_ms: int
    loads: LoadBasis
    topic_ids: Mapping[str, str] = field(default_factory=dict)


def inputs_of_tables(
    data: Path | str, cluster: str | None, policy: PlanPolicy, by: str = "mean", *, as_of: AsOf | None = None
) -> Inputs:
    """What the planner needs, from the tables; `by` is `mean`, or another load that `plan --by` takes.

    All of it is of one load: the last, or the one that `as_of` says. Raises DataError or
    InputError.
    """
    where = tables_at(data, as_of)
    columns = read_plan_columns(where, cluster, by)
    snapshot = {"snapshot_id": columns.snapshot_id}
    rows = read_rows(where, BROKERS, only=snapshot)
    dirs = read_rows(where, LOG_DIRS, only=snapshot) if has_table(where, LOG_DIRS) else []
    hosts = [
        replace(
            _host(
                row["broker"], row["rack"], [_log_dir(one) for one in dirs if one["broker"] == row["broker"]], policy
            ),
            is_live=not row["is_fenced"],
        )
        for row in rows
    ]
    taken_ms = max((int(row["taken_ms"]) for row in rows), default=0)
    replicas, loads = _heeded(_replicas(columns), by, taken_ms, columns.reason_names, columns.reasons)
    loads = replace(
        loads,
        last_hour_ms=read_last_hour(where, columns.cluster_id),
        forecast=read_forecast_basis(where, columns.cluster_id) if by.startswith("forecast") else None,
    )
    problem = with_policy(problem_from(_limited(hosts), replicas, reads_per_write=policy.reads_per_write), policy)
    topic_ids = read_topic_ids(where, columns.snapshot_id)
    return Inputs(problem, columns.cluster_id, columns.snapshot_id, taken_ms, loads, topic_ids)


def inputs_of_snapshot_file(path: Path, policy: PlanPolicy) -> Inputs:
    """What the planner needs, from a snapshot file. Raises InputError, which names the file."""
    return inputs_of_snapshot(read_snapshot(path), policy, path.name)


def inputs_of_snapshot(found: ClusterSnapshot, policy: PlanPolicy, snapshot_id: str) -> Inputs:
    """What the planner needs, from a snapshot; the facts about a plan name it by this id."""
    hosts = [
        replace(_host(one.broker.id, one.broker.rack, one.log_dirs, policy), is_live=not one.broker.is_fenced)
        for one in found.brokers
    ]
    replicas, loads = _heeded(columns_of(_rows(found)), "snapshot", found.taken_ms)
    problem = with_policy(problem_from(_limited(hosts), replicas, reads_per_write=policy.reads_per_write), policy)
    topic_ids = {topic.name: topic.topic_id for topic in found.topics if topic.topic_id is not None}
    return Inputs(problem, found.cluster_id, snapshot_id, found.taken_ms, loads, topic_ids)


def disk_bytes(dirs: Iterable[SnapshotLogDir]) -> int | None:
    """What the file systems of a broker hold together, one per log directory that works; None unless all are known."""
    sizes = [one.total_bytes for one in dirs if not one.is_offline]
    known = [size for size in sizes if size is not None]
    return sum(known) if known and len(known) == len(sizes) else None


def _host(broker: int, rack: str | None, dirs: Sequence[SnapshotLogDir], policy: PlanPolicy) -> BrokerFacts:
    usable = 1 - policy.disk_reserve
    room = disk_bytes(dirs)
    log_dirs = tuple(
        LogDirFacts(
            one.path,
            None if one.total_bytes is None else int(one.total_bytes * usable),
            may_receive=not one.is_cordoned,
            is_offline=one.is_offline,
        )
        for one in dirs
    )
    return BrokerFacts(broker, rack, {} if room is None else {"disk": room * usable}, log_dirs=log_dirs)


def _log_dir(row: Row) -> SnapshotLogDir:
    sizes = row["total_bytes"], row["usable_bytes"]
    return SnapshotLogDir(
        row["path"], *sizes, is_offline=row["error"] is not None, is_cordoned=bool(row["is_cordoned"])
    )


def _limited(hosts: Sequence[BrokerFacts]) -> list[BrokerFacts]:
    """Disk limits also say how unequal brokers are; so either all have one, or they are not used."""
    known = all("disk" in host.capacity for host in hosts if host.is_live)
    return [host if known else replace(host, capacity={}) for host in hosts]


def _rows(snapshot: ClusterSnapshot) -> Iterable[ReplicaRow]:
    for (topic, partition), seen in snapshot.partitions:
        for position, (broker, path) in enumerate(zip(seen.replicas, seen.log_dirs, strict=True)):
            load = seen.is_moving, seen.size_bytes, seen.write_bytes_per_s
            yield ReplicaRow(topic, partition, broker, position, *load, path)


def _heeded(
    columns: ReplicaColumns, source: str, taken_ms: int, reason_names: Sequence[str] = (), reasons: Ints | None = None
) -> tuple[ReplicaColumns, LoadBasis]:
    """The columns with priors in place of doubtful rates, and what their rates rest on."""
    places = columns.topic_names, columns.topics, columns.partitions, columns.brokers
    given = ReplicaLoads(*places, columns.size_bytes, columns.write_bytes_per_s, reason_names, reasons)
    rates, loads = heed(given, source, taken_ms)
    return replace(columns, write_bytes_per_s=rates), loads


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
    )
