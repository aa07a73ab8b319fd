"""What is wrong with reassignments on a cluster, and what to do about it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from kreassign.admin import AdminClient
from kreassign.errors import ClusterError, InputError
from kreassign.executor.cluster import queries
from kreassign.executor.history.diagnosis import ClusterReadings, Issue, diagnose
from kreassign.executor.history.interrupted_runs import UnreadableJournal, left_behind
from kreassign.executor.history.run_history import RunHistory
from kreassign.executor.lease import LeaseHolder, OriginalValues, present_holder
from kreassign.executor.lease.lease import OFFSETS_TOPIC
from kreassign.executor.lease.originals import read_record
from kreassign.executor.throttle.ledger import throttle_keys


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """Everything that is wrong, with what to do; and which run holds the lease of the cluster."""

    issues: tuple[Issue, ...]
    lease: LeaseHolder | None


def diagnose_cluster(client: AdminClient, state_dir: Path) -> Diagnosis:
    """What is wrong; changes nothing. Raises ClusterError."""
    readings = examine(client, state_dir)
    return Diagnosis(diagnose(readings), readings.lease)


def examine(client: AdminClient, state_dir: Path) -> ClusterReadings:
    """Ask the cluster for all that a diagnosis needs. Raises ClusterError."""
    cluster = client.describe_cluster()
    topics = client.describe_topics()
    settings, unread = queries.read_configs(client, throttle_keys(topics.ok, cluster.broker_ids))
    log_dirs = client.describe_log_dirs(cluster.broker_ids, partitions=())
    left = tuple(left_behind(state_dir, cluster.cluster_id))
    holder, record, lease_problems = _lease(client)
    return ClusterReadings(
        live=cluster.broker_ids,
        partitions=tuple(queries.partitions_of(topics).values()),
        ongoing=client.list_partition_reassignments(),
        throttles=tuple(present for present in settings if present.value is not None),
        log_dirs=log_dirs.ok,
        interrupted_runs=tuple(found.run_id for found in left if isinstance(found, RunHistory)),
        unreadable_journals=tuple(found for found in left if isinstance(found, UnreadableJournal)),
        lease=holder,
        record=record,
        unread=(
            *lease_problems,
            *(f"topic {name}: {error}" for name, error in topics.failed.items()),
            *(f"{resource} {problem}" for resource, problem in unread),
            *(f"log directories of broker {broker}: {error}" for broker, error in log_dirs.failed.items()),
        ),
    )


def _lease(client: AdminClient) -> tuple[LeaseHolder | None, OriginalValues | None, tuple[str, ...]]:
    """Who holds the lease, what was recorded, and why that could not be told."""
    if OFFSETS_TOPIC not in client.describe_topics([OFFSETS_TOPIC]).ok:
        return None, None, ()
    try:
        return present_holder(client), read_record(client), ()
    except (ClusterError, InputError) as error:
        return None, None, (f"lease of the cluster: {error}",)
