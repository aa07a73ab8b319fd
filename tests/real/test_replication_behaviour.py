"""Assumptions of the twin about replication, seen on real brokers."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial

from kafka import KafkaProducer
from kafka.errors import NotEnoughReplicasError

from kreassign.admin import AdminClient
from kreassign.executor.preflight import read_outages
from kreassign.model import ConfigChange, ConfigResource, LogDir, LogDirReplica, TopicPartition, TopicPartitionReplica
from kreassign.model.throttle import (
    FOLLOWER_THROTTLED_REPLICAS,
    LEADER_THROTTLED_REPLICAS,
    ThrottleRates,
    clear_broker_changes,
    log_dir_rate_changes,
    rate_changes,
)
from kreassign.twin.replication.hardware import ReplicationSettings
from kreassign.twin.replication.replicas import thread_number
from testbed import KafkaCluster
from testbed.producing import Producing
from testbed.records import load_topic
from testbed.waiting import PATIENCE_S, wait_until
from tests.real.admin_checks import client_of

MB = 1_000_000
FETCH_BYTES = ReplicationSettings().fetch_bytes
WINDOW_S = ReplicationSettings().quota_window_ms / 1000


def dirs(client: AdminClient, broker: int) -> tuple[LogDir, ...]:
    return client.describe_log_dirs([broker])[broker]


def copies(client: AdminClient, broker: int, topic: str) -> list[tuple[str, LogDirReplica]]:
    """Every copy of a topic on a broker with the directory that it is in."""
    return [
        (log_dir.path, replica)
        for log_dir in dirs(client, broker)
        for replica in log_dir.replicas
        if replica.topic_partition.topic == topic
    ]


def size(client: AdminClient, broker: int, topic: str) -> int:
    return sum(replica.size_bytes for _, replica in copies(client, broker, topic))


def load(
    cluster: KafkaCluster, topic: str, replicas: list[list[int]], size_bytes: int, config: dict[str, str] | None = None
) -> None:
    """A topic with so many bytes in each partition, in batches that are small beside a fetch."""
    cluster.create_topic(topic, replicas, config=config)
    sizes = dict.fromkeys(range(len(replicas)), size_bytes)
    load_topic(cluster.bootstrap_servers, topic, sizes, value_bytes=(5_000, 20_000), batch_bytes=64_000)


def throttle(client: AdminClient, brokers: tuple[int, ...], rate: int, *topics: str) -> None:
    lists = tuple(ConfigChange.set(name, "*") for name in (LEADER_THROTTLED_REPLICAS, FOLLOWER_THROTTLED_REPLICAS))
    changes = {ConfigResource.topic(topic): lists for topic in topics}
    client.incremental_alter_configs(changes | rate_changes(brokers, rate)).raise_if_any()


@contextmanager
def throttled(client: AdminClient, brokers: tuple[int, ...], rate: int, *topics: str) -> Iterator[None]:
    """With a throttle that is gone afterwards, whatever comes: other tests share the cluster."""
    throttle(client, brokers, rate, *topics)
    try:
        yield
    finally:
        unthrottle(client, *brokers)


def unthrottle(client: AdminClient, *brokers: int) -> None:
    client.incremental_alter_configs(clear_broker_changes(brokers)).raise_if_any()


def wait_for_end(client: AdminClient, topic: str) -> None:
    key = [TopicPartition(topic, 0)]
    wait_until(lambda: not client.list_partition_reassignments(key), what=f"{topic} at rest")


def test_a_new_log_goes_to_the_directory_with_the_fewest_logs(undisturbed: KafkaCluster, topic_name: str) -> None:
    with client_of(undisturbed) as client:
        for number in range(4):
            counts = sorted(len(log_dir.replicas) for log_dir in dirs(client, 0))
            undisturbed.create_topic(f"{topic_name}-{number}", [[0]] * (number + 1))
            for _ in range(number + 1):
                counts = sorted([counts[0] + 1, *counts[1:]])
            wait_until(partial(_are, client, counts), what=f"{counts} logs")


def _are(client: AdminClient, counts: list[int]) -> bool:
    return sorted(len(log_dir.replicas) for log_dir in dirs(client, 0)) == counts


def test_each_thread_moves_one_log_at_a_time_between_directories(undisturbed: KafkaCluster, topic_name: str) -> None:
    load(undisturbed, topic_name, [[0]] * 8, 4 * MB)
    with client_of(undisturbed) as client:
        paths = [log_dir.path for log_dir in dirs(client, 0)]
        requested = {
            TopicPartitionReplica(0, topic_name, replica.topic_partition.partition): paths[1 - paths.index(path)]
            for path, replica in copies(client, 0, topic_name)
        }
        client.incremental_alter_configs(log_dir_rate_changes([0], 8 * MB)).raise_if_any()
        client.alter_replica_log_dirs(requested).raise_if_any()
        most: Counter[int] = Counter()

        def is_done() -> bool:
            futures = [replica for _, replica in copies(client, 0, topic_name) if replica.is_future]
            begun = [each.topic_partition for each in futures if each.size_bytes > 0 and each.offset_lag > 0]
            busy = Counter(thread_number(key, len(paths)) for key in begun)
            for thread, count in busy.items():
                most[thread] = max(most[thread], count)
            return not futures

        wait_until(is_done, what="all logs in their new directories")
        unthrottle(client, 0)
    assert set(most.values()) == {1}


def is_acknowledged(cluster: KafkaCluster, topic: str) -> bool:
    """Send one record with acks=all, once; False if too few replicas were in sync."""
    producer = KafkaProducer(
        bootstrap_servers=cluster.bootstrap_servers,
        acks="all",
        retries=0,
        enable_idempotence=False,
        metrics_enabled=False,
    )
    try:
        producer.send(topic, b"record", partition=0).get(timeout=PATIENCE_S)
    except NotEnoughReplicasError:
        return False
    finally:
        producer.close(timeout=PATIENCE_S)
    return True


def test_a_lone_replica_refuses_acks_all_only_while_it_is_moved(undisturbed: KafkaCluster, topic_name: str) -> None:
    """It counts as enough by itself; beside one that is being added `min.insync.replicas` of 2 wants both in sync."""
    load(undisturbed, topic_name, [[0]], MB, {"min.insync.replicas": "2"})
    moved = TopicPartition(topic_name, 0)
    with client_of(undisturbed) as client:
        assert is_acknowledged(undisturbed, topic_name)
        present = {one.topic_partition: one for one in client.describe_topics([topic_name])[topic_name].partitions}
        outages = read_outages(client, {moved: (1,)}, present, ThrottleRates(MB))
        undisturbed.brokers[1].stop()
        try:
            client.alter_partition_reassignments({moved: (1,)}).raise_if_any()
            wait_until(lambda: not is_acknowledged(undisturbed, topic_name), what="a refused record")
        finally:
            undisturbed.heal()
        wait_for_end(client, topic_name)
        wait_until(lambda: is_acknowledged(undisturbed, topic_name), what="an acknowledged record")
    assert [*outages.refused] == [topic_name]


def test_a_throttle_of_nothing_lets_an_answer_through_in_every_window(
    undisturbed: KafkaCluster, topic_name: str
) -> None:
    load(undisturbed, topic_name, [[0]], 20 * MB)
    with client_of(undisturbed) as client:
        with throttled(client, (0, 1), 0, topic_name):
            begun_s = time.monotonic()
            client.alter_partition_reassignments({TopicPartition(topic_name, 0): (1,)}).raise_if_any()
            wait_until(lambda: size(client, 1, topic_name) > 0, what="the first answer")
            assert 0.8 * FETCH_BYTES < size(client, 1, topic_name) <= FETCH_BYTES
            wait_until(lambda: size(client, 1, topic_name) > FETCH_BYTES, what="the second answer")
            assert time.monotonic() - begun_s >= WINDOW_S - 2
        wait_for_end(client, topic_name)


def test_what_followers_in_sync_fetch_of_listed_partitions_counts(undisturbed: KafkaCluster, topic_name: str) -> None:
    """Producers write more than the limit, so that next to nothing of the move beside them is copied."""
    limit, moved, written, key = MB, 20 * MB, f"{topic_name}-w", TopicPartition(topic_name, 0)
    load(undisturbed, topic_name, [[0]], moved)
    undisturbed.create_topic(written, [[0, 1]])
    with client_of(undisturbed) as client:

        def write(size_bytes: int) -> None:
            end = size(client, 1, written) + size_bytes
            wait_until(lambda: size(client, 1, written) >= end, what=f"{size_bytes} bytes written")

        with (
            Producing(undisturbed.bootstrap_servers, written, partitions=1, records_per_s=100, value_bytes=25_000),
            throttled(client, (0,), limit, topic_name, written),
        ):
            write(round(1.2 * limit * WINDOW_S))
            client.alter_partition_reassignments({key: (2,)}).raise_if_any()
            write(2 * moved)
            # By itself it would have ended: a broker copies ten seconds' worth of its limit at once.
            assert client.list_partition_reassignments([key])
        wait_for_end(client, topic_name)
