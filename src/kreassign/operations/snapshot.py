"""Read the present state of a cluster: rows for the tables, a whole snapshot, or a few figures.

A whole snapshot also has configuration, offsets and write rates.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from kreassign.admin import AdminClient
from kreassign.clock import SYSTEM_CLOCK, Clock
from kreassign.errors import ClusterError, Unsupported, requires
from kreassign.executor.cluster.measurements import sample_offsets
from kreassign.executor.cluster.permissions import unseen_topics
from kreassign.executor.cluster.readings import (
    Confirmed,
    Reading,
    ask_by_name,
    every_topic_confirmed,
    partitions_of,
    read_log_dirs,
    with_moves,
)
from kreassign.executor.cluster.receivers import nameable_brokers
from kreassign.executor.history.findings import FULL
from kreassign.executor.maintenance.record import brokers_in_maintenance
from kreassign.model import NO_LEADER, Batch, Broker, Cluster, ConfigEntry, ConfigResource, ConfigSource, LogDir, Topic
from kreassign.model.authorization import error_text, missing_permission
from kreassign.model.cluster import CLEANUP_POLICY, ResourceType
from kreassign.model.disks import unsized
from kreassign.model.load import MEASURED_S
from kreassign.model.snapshot import ClusterSnapshot, SnapshotBroker, SnapshotLogDir, SnapshotTopic
from kreassign.model.text import check_wait, some_of
from kreassign.operations.connect import SHOWN_FAILURES, Warn, warn_of_failures, warn_program
from kreassign.operations.snapshot_files import write_snapshot
from kreassign.pipeline.ingest.snapshots import ObservedOffsets, SnapshotAnswers, snapshot_tables, whole_columns
from kreassign.pipeline.tables.snapshot_columns import SnapshotColumns, snapshot_of

__all__ = ["SnapshotAnswers"]

OWN = frozenset({ConfigSource.DYNAMIC_TOPIC, ConfigSource.DYNAMIC_BROKER})
DEFAULTS = frozenset({ConfigSource.DYNAMIC_DEFAULT_BROKER})
_Configs = Mapping[ConfigResource, Mapping[str, ConfigEntry]]
TOPICS_AT_ONCE = 1_000
"""Topics per request for configuration."""


@dataclass(frozen=True, slots=True)
class SnapshotOutputs:
    """Places to write a snapshot to: a directory of tables, a file of the whole, or both.

    `measure_for_s` is how long offsets are watched for the write rates in the file; 0 leaves them out.
    """

    data: Path | str | None = None
    file: Path | None = None
    measure_for_s: float = MEASURED_S


def store_snapshot(
    client: AdminClient, outputs: SnapshotOutputs, clock: Clock = SYSTEM_CLOCK, warn: Warn = warn_program
) -> SnapshotAnswers:
    """Read the cluster and write what was read; nothing is written unless all of it could be read."""
    seen = observe(client, clock.now_ms(), warn)
    if outputs.file is not None:
        whole = whole_columns_of(client, seen, clock, outputs.measure_for_s, warn)
    if outputs.data is not None:
        topics = [ConfigResource.topic(topic.name) for topic in seen.topics]
        configs = client.describe_configs(topics, names=(CLEANUP_POLICY,))
        warn_of_failures(warn, "cleanup policies", configs.failed)
        seen = replace(seen, cleanup_policies=cleanup_policies(configs.ok))
        with requires("a snapshot in tables", "pyarrow", "tables"):
            from kreassign.pipeline.tables.parquet import write_rows

        for table, rows in snapshot_tables(seen):
            write_rows(outputs.data, table, rows, file_stem=seen.snapshot_id)
    if outputs.file is not None:
        write_snapshot(outputs.file, whole)
    return seen


def observe(client: AdminClient, taken_ms: int, warn: Warn = warn_program) -> SnapshotAnswers:
    """Read everything that the tables hold, brokers and topics as two brokers show them.

    Warns about single brokers or topics that did not answer, or on which they do not agree.
    """
    (cluster, seen, alone), moves = with_moves(client, lambda: brokers_and_topics(client))
    topics = Batch(seen.topics.known, seen.topics.unknown)
    live = sorted(broker.id for broker in cluster.brokers if not broker.is_fenced)
    log_dirs = read_log_dirs(client, live)
    if alone is not None:
        warn(f"{SECOND_LOOK} could not be read ({error_text(alone)}): if the other one lags, this is how they were")
    warn_of_unread(client, topics, log_dirs, warn)
    # Their lists are known: without them a plan would fill disks that they fill already.
    warn_of_failures(warn, "known replicas in sync, so that those count that two brokers show so", seen.unsure)
    return SnapshotAnswers(
        taken_ms,
        cluster,
        tuple(topics.ok.values()),
        log_dirs,
        moves,
        _in_maintenance(client, warn),
        nameable_brokers(client, live, log_dirs.ok),
    )


def cleanup_policies(configs: _Configs) -> dict[str, str]:
    """Cleanup policy of each topic whose configuration has it."""
    policies = {
        resource.name: entries[CLEANUP_POLICY].value
        for resource, entries in configs.items()
        if resource.type is ResourceType.TOPIC and CLEANUP_POLICY in entries
    }
    return {topic: policy for topic, policy in policies.items() if policy is not None}


def _in_maintenance(client: AdminClient, warn: Warn) -> frozenset[int] | None:
    """Brokers in maintenance by the record of the cluster; warns where it cannot be read."""
    try:
        return frozenset(brokers_in_maintenance(client))
    except ClusterError as error:
        warn(
            f"which brokers are in maintenance could not be read ({error_text(error)}), so that a plan may move "
            "replicas to them; a run asks again"
        )
        return None


def warn_of_unread(
    client: AdminClient, topics: Batch[str, Topic], log_dirs: Batch[int, tuple[LogDir, ...]], warn: Warn
) -> None:
    """Warn about brokers and topics that did not answer, failed directories, and topics that a listing leaves out."""
    warn_of_failures(warn, "topic metadata", topics.failed)
    warn_of_failures(warn, "log directories", {f"broker {broker}": error for broker, error in log_dirs.failed.items()})
    failed = [f"{one} of broker {broker}" for broker, dirs in log_dirs.ok.items() for one in dirs if one.error]
    if failed:
        warn(f"what is in failed log directories is not known, and not counted: {some_of(failed, SHOWN_FAILURES)}")
    unseen = unseen_topics(client, topics.ok, (one for dirs in log_dirs.ok.values() for one in dirs))
    if unseen:
        warn(
            "topics that this client may not see are left out, and what they hold is not counted, though brokers have "
            f"replicas of {len(unseen)}: {missing_permission('Describe', unseen, client.principal)}"
        )


def described_cluster(client: AdminClient, broker: int | None = None) -> Cluster:
    """Brokers and controller, from this broker, or any; fenced ones, too, where the cluster names them (Kafka 4.0)."""
    try:
        return client.describe_cluster(include_fenced=True, broker=broker)
    except Unsupported:
        return client.describe_cluster(broker=broker)


def cluster_as_two_show(client: AdminClient) -> Cluster:
    """As `described_cluster`; a broker is live if either of two shows it so: one that lags knows no restart."""
    looks = ask_by_name(client, lambda broker: described_cluster(client, broker))
    live = {one.id for look in looks for one in look.brokers if not one.is_fenced}
    brokers = {one.id: replace(one, is_fenced=one.id not in live) for look in looks for one in look.brokers}
    return replace(looks[0], brokers=tuple(brokers[broker] for broker in sorted(brokers)))


SECOND_LOOK = "what a second broker shows of brokers and topics"


def brokers_and_topics(client: AdminClient) -> tuple[Cluster, Confirmed, ClusterError | None]:
    """Brokers and topics as two brokers show them; or as one does, with the error, where no two answer."""
    try:
        return cluster_as_two_show(client), every_topic_confirmed(client), None
    except ClusterError as error:
        seen = client.describe_topics()
        return described_cluster(client), Confirmed(Reading(seen.ok, frozenset(), seen.failed), {}), error


def whole_snapshot(
    client: AdminClient, seen: SnapshotAnswers, clock: Clock, seconds: float, warn: Warn = warn_program
) -> ClusterSnapshot:
    """Read what the tables do not hold, and the offsets of each partition twice, `seconds` apart."""
    return snapshot_of(whole_columns_of(client, seen, clock, seconds, warn))


def whole_columns_of(
    client: AdminClient, seen: SnapshotAnswers, clock: Clock, seconds: float, warn: Warn
) -> SnapshotColumns:
    """Return `whole_snapshot` as columns."""
    check_wait("measure_for_s", seconds)
    known = {partition.topic_partition: partition for topic in seen.topics for partition in topic.partitions}
    offsets = sample_offsets(client, clock, known.keys(), seconds, known)
    warn_of_failures(warn, "offsets", offsets.failed)
    head = replace(_head(seen, _configs(client, seen, warn)), measured_for_s=seconds)
    return whole_columns(head, seen, ObservedOffsets(offsets.starts, offsets.ends, offsets.write_rate))


def unmeasured_columns(seen: SnapshotAnswers) -> SnapshotColumns:
    """The placement before anything is measured, with some rate everywhere; for judging names, not for loads."""
    return whole_columns(_head(seen, {}), seen, ObservedOffsets({}, {}, lambda *_: 1.0))


def _head(seen: SnapshotAnswers, configs: _Configs) -> ClusterSnapshot:
    return ClusterSnapshot(
        seen.taken_ms,
        seen.cluster.cluster_id,
        tuple(_broker(broker, seen, configs) for broker in seen.cluster.brokers),
        tuple(_topic(topic, configs) for topic in seen.topics),
        _broker_defaults(configs),
    )


def _configs(client: AdminClient, seen: SnapshotAnswers, warn: Warn) -> _Configs:
    """Configs set for topics and brokers, read in parts: each answer also has all the defaults."""
    topics = [ConfigResource.topic(topic.name) for topic in seen.topics]
    brokers = [ConfigResource.broker(broker.id) for broker in seen.cluster.brokers if not broker.is_fenced]
    found: dict[ConfigResource, Mapping[str, ConfigEntry]] = {}
    failed: dict[ConfigResource, ClusterError] = {}
    for asked in (
        brokers,
        *(topics[start : start + TOPICS_AT_ONCE] for start in range(0, len(topics), TOPICS_AT_ONCE)),
    ):
        answer = client.describe_configs(asked)
        failed |= answer.failed
        found |= {
            resource: {name: entry for name, entry in entries.items() if entry.source in OWN | DEFAULTS}
            for resource, entries in answer.ok.items()
        }
    warn_of_failures(warn, "configuration", failed)
    return found


def _set_values(entries: Mapping[str, ConfigEntry], sources: frozenset[ConfigSource] = OWN) -> dict[str, str]:
    """Values set while the cluster ran; secrets have no value and are left out."""
    return {name: entry.value for name, entry in entries.items() if entry.source in sources and entry.value is not None}


def _broker_defaults(configs: _Configs) -> dict[str, str]:
    """Values set for all brokers, as the brokers show them."""
    brokers = (entries for resource, entries in configs.items() if resource.type is ResourceType.BROKER)
    return {name: value for entries in brokers for name, value in _set_values(entries, DEFAULTS).items()}


def _broker(broker: Broker, seen: SnapshotAnswers, configs: _Configs) -> SnapshotBroker:
    log_dirs = tuple(
        SnapshotLogDir(each.path, each.total_bytes, each.usable_bytes, each.error is not None, each.is_cordoned)
        for each in seen.log_dirs.ok.get(broker.id, ())
    )
    return SnapshotBroker(
        broker,
        log_dirs,
        _set_values(configs.get(ConfigResource.broker(broker.id), {})),
        None if seen.in_maintenance is None else broker.id in seen.in_maintenance,
        seen.nameable.get(broker.id),
    )


def _topic(topic: Topic, configs: _Configs) -> SnapshotTopic:
    set_values = _set_values(configs.get(ConfigResource.topic(topic.name), {}))
    return SnapshotTopic(topic.name, (), set_values, topic.topic_id)


# A few figures of the cluster, for a quick look by an operator.


@dataclass(frozen=True, slots=True)
class Overview:
    """A cluster: live and fenced brokers (where the cluster names them), and its partitions by state.

    `fullest_dir` is the used share of the fullest log directory; None if no broker reports it. `unread` counts topics
    and brokers that did not answer, or did not tell the size of a directory, of which the figures tell nothing. `alone`
    is why no second broker was asked.
    """

    cluster_id: str
    brokers: int
    fenced: tuple[int, ...]
    topics: int
    partitions: int
    offline: int
    under_replicated: int
    reassigned: int
    fullest_dir: float | None = None
    unread: int = 0
    alone: str | None = None

    @property
    def is_troubled(self) -> bool:
        """True if `doctor` should have a look."""
        return bool(
            self.fenced or self.offline or self.unread or self.under_replicated or (self.fullest_dir or 0.0) >= FULL
        )


def overview(client: AdminClient) -> Overview:
    """Present figures of the cluster. Raises ClusterError."""
    (cluster, seen, alone), ongoing = with_moves(client, lambda: brokers_and_topics(client))
    topics = seen.whole
    partitions = partitions_of(topics.ok).values()
    lagging = sum(
        one.under_replicated and one.leader != NO_LEADER and one.topic_partition not in ongoing for one in partitions
    )
    live = [broker.id for broker in cluster.brokers if not broker.is_fenced]
    log_dirs = read_log_dirs(client, live, copies_of=())
    dirs = (one for found in log_dirs.ok.values() for one in found if not one.error)
    used = (1 - one.usable_bytes / one.total_bytes for one in dirs if one.total_bytes and one.usable_bytes is not None)
    return Overview(
        fullest_dir=max(used, default=None),
        cluster_id=cluster.cluster_id,
        brokers=sum(not broker.is_fenced for broker in cluster.brokers),
        fenced=tuple(broker.id for broker in cluster.brokers if broker.is_fenced),
        topics=len(topics.ok),
        partitions=len(partitions),
        offline=sum(one.leader == NO_LEADER for one in partitions),
        under_replicated=lagging,
        reassigned=len(ongoing),
        unread=len(topics.failed) + len(log_dirs.failed) + len(unsized(log_dirs.ok)),
        alone=None if alone is None else error_text(alone),
    )
