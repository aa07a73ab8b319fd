"""How a cluster is, in a few figures: what somebody wants to know who comes back to it."""

from __future__ import annotations

from dataclasses import dataclass

from kreassign.admin import AdminClient
from kreassign.executor.cluster.queries import partitions_of
from kreassign.executor.history.disk_findings import FULL
from kreassign.model import NO_LEADER
from kreassign.operations.snapshot import described_cluster


@dataclass(frozen=True, slots=True)
class Overview:
    """A cluster: who answers, who does not (as far as the cluster names them), and its partitions by their state.

    `fullest_dir` is the used part of the fullest log directory; None where no broker tells.
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

    @property
    def is_troubled(self) -> bool:
        """Whether anything is worth a look by `doctor`."""
        return bool(self.fenced or self.offline or self.under_replicated or (self.fullest_dir or 0.0) >= FULL)


def overview(client: AdminClient) -> Overview:
    """The cluster as it is now. Raises ClusterError."""
    cluster = described_cluster(client)
    topics = client.describe_topics()
    partitions = partitions_of(topics).values()
    ongoing = client.list_partition_reassignments()
    lagging = sum(
        one.under_replicated and one.leader != NO_LEADER and one.topic_partition not in ongoing for one in partitions
    )
    dirs = (one for found in client.describe_log_dirs(partitions=()).ok.values() for one in found if not one.error)
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
    )
