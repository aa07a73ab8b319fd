"""Play a policy over the snapshots of a data directory: what an autopilot would have repaired, and its cost.

A snapshot shows the cluster until the next one, for a day at most; what was between them is not known. Findings are
those of the snapshots, plans those of the planner for the snapshot of that time. What a repair would have changed is
not known either: a finding that later snapshots show still is taken to outlast it.
"""

from __future__ import annotations

import copy
from collections import defaultdict
from collections.abc import Mapping
from functools import partial
from itertools import pairwise
from pathlib import Path

from kreassign.autopilot.events import Event, Name, NotPlanned
from kreassign.autopilot.observation import Absent, Asked, Known, Observation, Unknown
from kreassign.autopilot.policy import Kind, Policy
from kreassign.autopilot.replay import Play, Replayed
from kreassign.autopilot.symptoms import Look
from kreassign.errors import Infeasible, InputError
from kreassign.executor.maintenance.record import Entered
from kreassign.model import LogDir, LogDirReplica, Partition, TopicPartition
from kreassign.model.authorization import error_text
from kreassign.model.snapshot import ClusterSnapshot, SnapshotBroker, SnapshotLogDir, SnapshotPartition, SnapshotTopic
from kreassign.model.text import DAY_MS, HOUR_MS
from kreassign.operations.autopilot_plans import avoided, election, plan_by
from kreassign.operations.plan_inputs import inputs_of_snapshot
from kreassign.operations.table_inputs import broker_of_rows
from kreassign.pipeline.tables.parquet import TablesAt, read_rows, tables_at
from kreassign.pipeline.tables.schemas import BROKERS, CLUSTERS, LOG_DIRS, PARTITIONS, REPLICAS, Row
from kreassign.planner.problem.policy import PlanPolicy

LOOK_MS = 300_000
"""Looks are so far apart, also where snapshots are hours apart."""

SHOWN_MS = DAY_MS + HOUR_MS
"""A snapshot shows the cluster for so long at most, so that one a day shows it without a break."""


def replayed_by_tables(data: Path | str, policy: Policy, cluster_id: str | None = None) -> Replayed:
    """Play a policy over all snapshots of a cluster. Raises DataError, and InputError unless one cluster is meant."""
    where = tables_at(data)
    rows = sorted(read_rows(where, CLUSTERS), key=lambda row: int(row["taken_ms"]))
    clusters = sorted({str(row["cluster_id"]) for row in rows})
    if cluster_id not in clusters and (cluster_id is not None or len(clusters) > 1):
        raise InputError(f"choose with --of one of the clusters in {data}: {', '.join(clusters)}")
    taken = [row for row in rows if row["cluster_id"] == (cluster_id or clusters[0])]
    play = Play(policy, "the snapshots end before")
    for row, after in pairwise([*taken, None]):
        assert row is not None, "only the last one is none"
        snapshot, taken_ms = _snapshot(where, row), int(row["taken_ms"])
        until_ms = taken_ms + 1 if after is None else min(int(after["taken_ms"]), taken_ms + SHOWN_MS)
        seen = observed(snapshot)
        for at_ms in range(taken_ms, until_ms, LOOK_MS):
            seen = _at(seen, at_ms)  # with what the last look computed
            play.look(seen, partial(_planned, play, policy, snapshot, seen))
    return play.played(int(taken[0]["taken_ms"]), int(taken[-1]["taken_ms"]))


def _at(seen: Observation, at_ms: int) -> Observation:
    """The cluster at another time; what was computed of it holds, for nothing else differs."""
    found = copy.copy(seen)
    object.__setattr__(found, "at_ms", at_ms)
    return found


def _planned(play: Play, policy: Policy, snapshot: ClusterSnapshot, now: Observation, name: Name) -> Event:
    """A plan for the snapshot, or its failure."""
    look = Look(now, play.memory, policy)
    if name.kind is Kind.LEADERS:
        return election(name, look).planned
    closed = tuple(sorted(now.live.intersection(avoided(look.memory, name, now))))
    try:
        inputs = inputs_of_snapshot(snapshot, PlanPolicy(excluded_brokers=closed), "replayed")
        return plan_by(inputs, name, look).planned
    except (InputError, Infeasible) as error:
        return NotPlanned(now.at_ms, name, f"no plan repairs it: {error_text(error)}")


# Snapshots of the tables, and what they show.


def _snapshot(where: TablesAt, row: Row) -> ClusterSnapshot:
    only = {"snapshot_id": row["snapshot_id"]}
    log_dirs = read_rows(where, LOG_DIRS, only=only)
    brokers = tuple(broker_of_rows(one, log_dirs) for one in read_rows(where, BROKERS, only=only))
    replicas = read_rows(where, REPLICAS, only=only)
    copies = {(TopicPartition(one["topic"], one["partition"]), int(one["broker"])): one for one in replicas}
    topics: dict[str, dict[int, SnapshotPartition]] = defaultdict(dict)
    for one in read_rows(where, PARTITIONS, only=only):
        topics[one["topic"]][one["partition"]] = _partition(one, copies)
    of_topics = (
        SnapshotTopic(topic, tuple(each[number] for number in sorted(each))) for topic, each in sorted(topics.items())
    )
    return ClusterSnapshot(int(row["taken_ms"]), str(row["cluster_id"]), brokers, tuple(of_topics))


def _partition(row: Row, copies: Mapping[tuple[TopicPartition, int], Row]) -> SnapshotPartition:
    name, replicas = TopicPartition(row["topic"], row["partition"]), tuple(row["replicas"])
    held = [copies.get((name, broker), {}) for broker in replicas]
    sizes = tuple(one.get("size_bytes") for one in held)
    return SnapshotPartition(
        replicas, tuple(row["isr"]), row["leader"], row["leader_epoch"], tuple(one.get("log_dir") for one in held),
        sizes, tuple(row["adding"]), tuple(row["removing"]), write_bytes_per_s=0.0,
    )  # fmt: skip


def observed(snapshot: ClusterSnapshot) -> Observation:
    """A snapshot as a look at the cluster; who moved what it shows to be moving is not known, so it was others."""
    copies: dict[tuple[int, str], list[LogDirReplica]] = defaultdict(list)
    for name, one in snapshot.partitions:
        for broker, path, size_bytes in zip(one.replicas, one.log_dirs, one.sizes_bytes, strict=True):
            if path is not None and size_bytes is not None:
                copies[broker, path].append(LogDirReplica(name, size_bytes, 0, is_future=False))
    entered = Entered(snapshot.taken_ms, "people", is_cordoned=False)
    return Observation(
        snapshot.taken_ms,
        snapshot.cluster_id,
        Known(tuple(one.broker for one in snapshot.brokers)),
        Known(tuple(Partition(name, one.replicas, one.isr, one.leader) for name, one in snapshot.partitions)),
        {one.broker.id: _directories(one, copies) for one in snapshot.brokers if not one.broker.is_fenced},
        Known(frozenset(name for name, one in snapshot.partitions if one.is_moving)),
        Known(()),
        Known({one.broker.id: entered for one in snapshot.brokers if one.in_maintenance}),
        Absent(),
        Absent(),
    )


def _directories(
    one: SnapshotBroker, copies: Mapping[tuple[int, str], list[LogDirReplica]]
) -> Asked[tuple[LogDir, ...]]:
    if not one.log_dirs:
        return Unknown("its log directories are not in the snapshot")
    return Known(tuple(_directory(one.broker.id, each, copies) for each in one.log_dirs))


def _directory(broker: int, one: SnapshotLogDir, copies: Mapping[tuple[int, str], list[LogDirReplica]]) -> LogDir:
    error = "offline in the snapshot" if one.is_offline else None
    held = tuple(copies.get((broker, one.path), ()))
    return LogDir(one.path, error, one.total_bytes, one.usable_bytes, bool(one.is_cordoned), held)
