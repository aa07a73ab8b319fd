"""What is wrong with reassignments on a cluster, and what to do about it."""

from __future__ import annotations

from pathlib import Path

from kreassign.admin import AdminClient
from kreassign.executor.cluster import queries
from kreassign.executor.history.diagnosis import ClusterReadings, Issue, diagnose
from kreassign.executor.history.interrupted_runs import UnreadableJournal, left_behind
from kreassign.executor.history.run_history import RunHistory
from kreassign.executor.throttle.ledger import throttle_keys


def diagnose_cluster(client: AdminClient, state_dir: Path) -> tuple[Issue, ...]:
    """Everything that is wrong, with what to do; changes nothing. Raises ClusterError."""
    return diagnose(examine(client, state_dir))


def examine(client: AdminClient, state_dir: Path) -> ClusterReadings:
    """Ask the cluster for all that a diagnosis needs. Raises ClusterError."""
    cluster = client.describe_cluster()
    topics = client.describe_topics()
    settings, unread = queries.read_configs(client, throttle_keys(topics.ok, cluster.broker_ids))
    log_dirs = client.describe_log_dirs(cluster.broker_ids, partitions=())
    left = tuple(left_behind(state_dir, cluster.cluster_id))
    return ClusterReadings(
        live=cluster.broker_ids,
        partitions=tuple(queries.partitions_of(topics).values()),
        ongoing=client.list_partition_reassignments(),
        throttles=tuple(present for present in settings if present.value is not None),
        log_dirs=log_dirs.ok,
        interrupted_runs=tuple(found.run_id for found in left if isinstance(found, RunHistory)),
        unreadable_journals=tuple(found for found in left if isinstance(found, UnreadableJournal)),
        unread=(
            *(f"topic {name}: {error}" for name, error in topics.failed.items()),
            *(f"{resource} {problem}" for resource, problem in unread),
            *(f"log directories of broker {broker}: {error}" for broker, error in log_dirs.failed.items()),
        ),
    )
