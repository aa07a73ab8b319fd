"""`--zookeeper`: a preferred election without brokers, as the tools up to Kafka 2.8 did (KIP-183).

The controller finds the order in the znode `/admin/preferred_replica_election` and answers nothing.
"""

from __future__ import annotations

from kreassign.kafka_tools.failures import PlainError
from kreassign.kafka_tools.zookeeper import ZooKeeper, zookeeper
from kreassign.model import TopicPartition


def elect(address: str, partitions: tuple[TopicPartition, ...] | None) -> None:
    """Leave the order for these partitions, or (None) for all, in the ZooKeeper at `host:port[,…][/chroot]`."""
    with zookeeper(address) as cluster:
        known = _known(cluster, None if partitions is None else {key.topic for key in partitions})
        wanted = sorted(known if partitions is None else known.intersection(partitions))
        _start(cluster, wanted)
        for key in sorted(set(partitions or ()) - known):
            print(f"Skipping preferred replica leader election for partition {key} since it doesn't exist.")


def _known(cluster: ZooKeeper, names: set[str] | None) -> set[TopicPartition]:
    topics = cluster.topics(sorted(names) if names is not None else cluster.topic_names()).values()
    return {partition.topic_partition for topic in topics if topic is not None for partition in topic.partitions}


def _start(cluster: ZooKeeper, wanted: list[TopicPartition]) -> None:
    listed = ",".join(map(str, wanted))
    if not cluster.start_election(wanted):
        pending = ",".join(map(str, cluster.elections()))
        raise PlainError(
            "Admin command failed",
            reason=f"Preferred replica leader election currently in progress for {pending}. Aborting operation",
        )
    print(f"Created preferred replica election path with {listed}")
    print(f"Successfully started preferred replica election for partitions Set({', '.join(map(str, wanted))})")
