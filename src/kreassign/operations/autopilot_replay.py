"""Play a policy over the snapshots of a data directory: what an autopilot would have repaired, and its cost.

A snapshot shows the cluster until the next one, for a day at most; what was between them is not known. Findings are
those of the snapshots, plans those of the planner for the snapshot of that time. What a repair would have changed is
not known either: a finding that later snapshots show still is taken to outlast it.
"""

from __future__ import annotations

import copy
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path

from kreassign.autopilot.core import PlanRepair, RunRepair, symptoms, tick
from kreassign.autopilot.events import Event, Name, NotPlanned, Planned, Rehearsed, Result, RunBegan, RunEnded
from kreassign.autopilot.gates import Case, closed_gates
from kreassign.autopilot.lifecycle import State
from kreassign.autopilot.memory import Memory, remember
from kreassign.autopilot.observation import Absent, Asked, Known, Observation, Unknown
from kreassign.autopilot.policy import Kind, Policy
from kreassign.autopilot.replay import Replayed, WouldAct, proposed
from kreassign.autopilot.symptoms import Look
from kreassign.errors import IllegalPlan, Infeasible, InputError
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
    played = _Play(policy)
    for row, after in pairwise([*taken, None]):
        assert row is not None, "only the last one is none"
        snapshot, taken_ms = _snapshot(where, row), int(row["taken_ms"])
        until_ms = taken_ms + 1 if after is None else min(int(after["taken_ms"]), taken_ms + SHOWN_MS)
        seen = observed(snapshot)
        for at_ms in range(taken_ms, until_ms, LOOK_MS):
            seen = _at(seen, at_ms)  # with what the last look computed
            played.look(snapshot, seen)
    return Replayed(int(taken[0]["taken_ms"]), int(taken[-1]["taken_ms"]), tuple(played.acts), played.closed)


def _at(seen: Observation, at_ms: int) -> Observation:
    """The cluster at another time; what was computed of it holds, for nothing else differs."""
    found = copy.copy(seen)
    object.__setattr__(found, "at_ms", at_ms)
    return found


class _Play:
    """A policy that is played, look by look."""

    def __init__(self, policy: Policy) -> None:
        self._policy, self._memory = policy, Memory()
        self.acts: list[WouldAct] = []
        self.closed: dict[Name, Mapping[str, str]] = {}

    def look(self, snapshot: ClusterSnapshot, now: Observation) -> None:
        """Decide on a look at a snapshot; runs are over when their bytes are copied at the throttle."""
        act, throttle = self._memory.running, self._policy.runs.throttle
        if act is not None and now.at_ms - act.begun_ms >= act.copied_bytes / throttle * 1000:
            self._note(RunEnded(now.at_ms, act.name, Result.DONE, act.copied_bytes))
        decision = tick(self._memory, now, self._policy)
        self._memory = decision.memory
        match decision.order:
            case PlanRepair(name):
                self._plan(snapshot, name, now)
            case RunRepair(name, _, at_any_time):
                self._begin(name, now.at_ms, at_any_time=at_any_time)
            case _:
                pass
        self._judge(now)

    def _note(self, event: Event) -> None:
        self._memory = remember(self._memory, event)

    def _plan(self, snapshot: ClusterSnapshot, name: Name, now: Observation) -> None:
        look = Look(now, self._memory, self._policy)
        try:
            planned = _planned(snapshot, name, look)
        except (InputError, Infeasible, IllegalPlan) as error:
            self._note(NotPlanned(now.at_ms, name, f"no plan repairs it: {error_text(error)}"))
        else:
            self._memory = proposed(self._memory, planned, self._policy)

    def _begin(self, name: Name, at_ms: int, *, at_any_time: bool) -> None:
        planned = self._memory.findings[name].proposal
        assert planned is not None, "only what is proposed runs"
        self._note(
            RunBegan(at_ms, name, "replayed", planned.copied_bytes, planned.moves, at_any_time, also=planned.also)
        )
        self.acts.append(WouldAct(at_ms, name, planned.copied_bytes))
        self.closed.pop(name, None)

    def _judge(self, now: Observation) -> None:
        """Remember which gates keep a proposal, as long as it was never repaired."""
        look = Look(now, self._memory, self._policy)
        waiting = [one for one in self._memory.open if one.state is State.PROPOSED]
        shown = symptoms(look) if waiting else {}
        for finding in (one for one in waiting if one.name in shown):
            gates = closed_gates(Case(finding, shown[finding.name], *look))
            self.closed[finding.name] = gates or {"age": "the snapshots end before"}


def _planned(snapshot: ClusterSnapshot, name: Name, look: Look) -> Planned:
    """A plan for the snapshot, whose rehearsal is taken to be good: what was written then is not known."""
    if name.kind is Kind.LEADERS:
        return election(name, look).planned
    closed = look.now.live.intersection(avoided(look.memory, name, look.now))
    policy = PlanPolicy(excluded_brokers=tuple(sorted(closed)))
    planned = plan_by(inputs_of_snapshot(snapshot, policy, "replayed"), name, look).planned
    good = Rehearsed(look.now.at_ms, "")
    return replace(planned, rehearsal=good, rehearsal_any_time=good)


# Snapshots of the tables, and what they show.


@dataclass(frozen=True, slots=True)
class _Copy:
    log_dir: str | None
    size_bytes: int | None


def _snapshot(where: TablesAt, row: Row) -> ClusterSnapshot:
    only = {"snapshot_id": row["snapshot_id"]}
    log_dirs = read_rows(where, LOG_DIRS, only=only)
    brokers = tuple(broker_of_rows(one, log_dirs) for one in read_rows(where, BROKERS, only=only))
    copies = {
        (TopicPartition(one["topic"], one["partition"]), int(one["broker"])): _Copy(one["log_dir"], one["size_bytes"])
        for one in read_rows(where, REPLICAS, only=only)
    }
    topics: dict[str, dict[int, SnapshotPartition]] = defaultdict(dict)
    for one in read_rows(where, PARTITIONS, only=only):
        topics[one["topic"]][one["partition"]] = _partition(one, copies)
    of_topics = (
        SnapshotTopic(topic, tuple(each[number] for number in sorted(each))) for topic, each in sorted(topics.items())
    )
    return ClusterSnapshot(int(row["taken_ms"]), str(row["cluster_id"]), brokers, tuple(of_topics))


def _partition(row: Row, copies: Mapping[tuple[TopicPartition, int], _Copy]) -> SnapshotPartition:
    name, replicas = TopicPartition(row["topic"], row["partition"]), tuple(row["replicas"])
    held = [copies.get((name, broker), _Copy(None, None)) for broker in replicas]
    return SnapshotPartition(
        replicas, tuple(row["isr"]), row["leader"], row["leader_epoch"], tuple(one.log_dir for one in held),
        tuple(one.size_bytes for one in held), tuple(row["adding"]), tuple(row["removing"]), write_bytes_per_s=0.0,
    )  # fmt: skip


def observed(snapshot: ClusterSnapshot) -> Observation:
    """A snapshot as a look at the cluster; who moved what it shows to be moving is not known, so it was others."""
    copies: dict[tuple[int, str], list[LogDirReplica]] = defaultdict(list)
    for name, one in snapshot.partitions:
        for broker, path, size_bytes in zip(one.replicas, one.log_dirs, one.sizes_bytes, strict=True):
            if path is not None and size_bytes is not None:
                copies[broker, path].append(LogDirReplica(name, size_bytes, 0, is_future=False))
    entered = {
        one.broker.id: Entered(snapshot.taken_ms, "people", is_cordoned=False)
        for one in snapshot.brokers
        if one.in_maintenance
    }
    return Observation(
        snapshot.taken_ms,
        snapshot.cluster_id,
        Known(tuple(one.broker for one in snapshot.brokers)),
        Known(tuple(Partition(name, one.replicas, one.isr, one.leader) for name, one in snapshot.partitions)),
        {one.broker.id: _directories(one, copies) for one in snapshot.brokers if not one.broker.is_fenced},
        Known(frozenset(name for name, one in snapshot.partitions if one.is_moving)),
        Known(()),
        Known(entered),
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
