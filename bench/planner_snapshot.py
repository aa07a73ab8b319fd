"""A planner's case as a snapshot file: sizes and write rates of the case; kreassign estimates reads and CPU."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from bench.planner import Case
from bench.planner_files import read_case
from kreassign.model import Broker
from kreassign.model.snapshot import ClusterSnapshot, SnapshotBroker, SnapshotLogDir, SnapshotTopic
from kreassign.operations.snapshot_files import write_snapshot
from kreassign.pipeline.tables.snapshot_columns import UNKNOWN, Lists, SnapshotColumns

TAKEN_MS = 1_767_225_600_000


def write_case_snapshot(source: Path, case: Case, file: Path) -> None:
    """Write the cluster in a file of `planner_cases/gen_cluster.py` as a snapshot file, in the form of its name."""
    problem = read_case(source, case.brokers, case.racks)
    lists, count = problem.partitions, len(problem.partitions)
    hosts = tuple(
        SnapshotBroker(Broker(one, f"b{one}", 9092, f"rack-{one % case.racks:03}"), (SnapshotLogDir("/d"),))
        for one in range(case.brokers)
    )
    none = Lists(np.zeros(count + 1, np.int32), np.zeros(0, np.int32))
    replicas = Lists(lists.offsets, lists.replicas)
    columns = SnapshotColumns(
        head=ClusterSnapshot(TAKEN_MS, case.name, hosts, tuple(SnapshotTopic(name, ()) for name in lists.topic_names)),
        counts=np.bincount(lists.topics, minlength=len(lists.topic_names)).astype(np.int32),
        leaders=lists.replicas[lists.offsets[:-1]],
        leader_epochs=np.zeros(count, np.int32),
        replicas=replicas,
        isr=replicas,
        adding=none,
        removing=none,
        paths=(),
        log_dirs=np.full(len(lists.replicas), UNKNOWN, np.int32),
        sizes_bytes=np.repeat(lists.size_bytes, lists.factors),
        future_brokers=none,
        future_log_dirs=np.zeros(0, np.int32),
        start_offsets=np.full(count, UNKNOWN, np.int64),
        end_offsets=np.full(count, UNKNOWN, np.int64),
        write_bytes_per_s=lists.write_bytes_per_s,
    )
    write_snapshot(file, columns)
