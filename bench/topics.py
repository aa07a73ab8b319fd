"""Topics with many small partitions, for measuring what tools cost."""

from __future__ import annotations

from functools import partial

from kreassign.admin import AdminClient
from kreassign.model import NewTopic, TopicPartition
from testbed.records import load_topic
from testbed.waiting import wait_until

PARTITIONS_PER_TOPIC = 500


def create(admin: AdminClient, partitions: int, brokers: int, replication_factor: int) -> list[TopicPartition]:
    """Create empty topics over brokers 0…brokers-1 and wait until every partition has its leader."""
    created: list[TopicPartition] = []
    for number in range(-(-partitions // PARTITIONS_PER_TOPIC)):
        name = f"bench-{number:03d}"
        count = min(PARTITIONS_PER_TOPIC, partitions - number * PARTITIONS_PER_TOPIC)
        assignments = tuple(
            tuple((partition + place) % brokers for place in range(replication_factor)) for partition in range(count)
        )
        admin.create_topics([NewTopic(name, assignments=assignments)]).raise_if_any()
        created += [TopicPartition(name, partition) for partition in range(count)]
        wait_until(partial(_is_ready, admin, name, count), timeout_s=120, what=f"topic {name}")
    return created


def write_one_record_each(bootstrap_servers: str, partitions: list[TopicPartition]) -> None:
    """Put a record into each partition, so that a new replica has something to wait for."""
    by_topic: dict[str, dict[int, int]] = {}
    for topic, partition in partitions:
        by_topic.setdefault(topic, {})[partition] = 1
    for topic, bytes_per_partition in by_topic.items():
        load_topic(bootstrap_servers, topic, bytes_per_partition)


def _is_ready(admin: AdminClient, name: str, count: int) -> bool:
    topic = admin.describe_topics([name]).ok.get(name)
    return (
        topic is not None
        and len(topic.partitions) == count
        and all(
            partition.leader >= 0 and len(partition.isr) == len(partition.replicas) for partition in topic.partitions
        )
    )
