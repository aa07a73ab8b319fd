"""Duties of an admin client on every cluster, whatever its release and its mode."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import pairwise

import pytest

from kreassign.admin import AdminClient, ClientSettings, Transport, client_settings
from kreassign.clock import SystemClock
from kreassign.errors import ClusterError, Rejected
from kreassign.model import (
    Batch,
    ConfigChange,
    ConfigResource,
    ConfigSource,
    ElectionType,
    NewPartitions,
    NewTopic,
    OffsetSpec,
    Partition,
    TopicPartition,
    TopicPartitionReplica,
)
from testbed import KafkaCluster
from testbed.records import load_topic
from testbed.waiting import wait_until

RECORDS_BYTES = 200_000
HELD_BYTES = 8_000_000
"""Under any throttle a megabyte is copied in eleven seconds."""
MOVED_BYTES = 14_000_000
RATE_BYTES_PER_S = 250_000


def settings_of(cluster: KafkaCluster, **properties: str) -> ClientSettings:
    """Client properties of a cluster; an underscore in a property stands for a dot."""
    dotted = {key.replace("_", "."): value for key, value in properties.items()}
    return client_settings(dotted, bootstrap_servers=cluster.bootstrap_servers)


def client_of(cluster: KafkaCluster, transport: Transport | None = None, **properties: str) -> AdminClient:
    return AdminClient.connect(settings_of(cluster, **properties), transport=transport)


def wait_everywhere(
    client: AdminClient, topic: str, is_so: Callable[[tuple[Partition, ...]], bool], *, what: str
) -> None:
    """Wait until every broker shows the partitions of a topic so: any may be asked next. No partitions: no topic."""

    def shows(broker: int) -> bool:
        try:
            return is_so(partitions_of(client, topic, broker))
        except ClusterError:  # it is going down, or coming up
            return False

    wait_until(lambda: all(map(shows, client.describe_cluster().broker_ids)), what=what)


def created(client: AdminClient, topic: str, *replicas: tuple[int, ...]) -> tuple[TopicPartition, ...]:
    """A new topic, once all its leaders are elected."""
    client.create_topics([NewTopic(topic, assignments=replicas)]).raise_if_any()
    expected = list(replicas)
    wait_everywhere(
        client, topic, lambda found: [one.isr for one in found] == expected, what=f"replicas of {topic} in sync"
    )
    return tuple(TopicPartition(topic, number) for number in range(len(replicas)))


def partitions_of(client: AdminClient, topic: str, broker: int | None = None) -> tuple[Partition, ...]:
    described = client.describe_topics([topic], broker=broker)
    return described.ok[topic].partitions if topic in described.ok else ()


def refusal(batch: Batch[object, object], key: object) -> tuple[int, str]:
    """Kafka's code and words for an item."""
    error = batch.failed[key]
    assert isinstance(error, Rejected)
    return error.code, error.message


def wait_idle(client: AdminClient, *partitions: TopicPartition) -> None:
    wait_until(lambda: not client.list_partition_reassignments(partitions), what="moves at their end")


def wait_undisturbed(client: AdminClient) -> None:
    """Wait until nothing moves on a shared cluster: the tool warns of moves that a test before this one left."""
    wait_until(lambda: not client.list_partition_reassignments(), what="the end of moves of earlier tests")


def wait_replicas(client: AdminClient, partition: TopicPartition, replicas: tuple[int, ...]) -> None:
    """Wait until every broker shows the partition on these, all in sync: until then, some next changes are refused."""
    number = partition.partition
    expected = [(replicas, set(replicas))]
    wait_everywhere(
        client,
        partition.topic,
        lambda found: [(one.replicas, set(one.isr)) for one in found[number : number + 1]] == expected,
        what=f"{partition} on {replicas}, all in sync",
    )


# The checks


def the_cluster_tells_its_brokers(cluster: KafkaCluster, client: AdminClient, _topic: str) -> None:
    told = client.describe_cluster()
    assert told.broker_ids == tuple(sorted(cluster.brokers))
    assert told.cluster_id
    assert told.controller_id in told.broker_ids
    for broker in told.brokers:
        assert f"{broker.host}:{broker.port}" == cluster.brokers[broker.id].address("PLAINTEXT")
        assert broker.rack == cluster.spec.rack(broker.id)
        assert not broker.is_fenced


def topics_are_created_told_and_deleted(_cluster: KafkaCluster, client: AdminClient, topic: str) -> None:
    other = f"{topic}-other"
    outcome = client.create_topics(
        [
            NewTopic(topic, assignments=((0, 1), (2, 0)), configs={"retention.ms": "1234567"}),
            NewTopic(other, 2, 2),
            NewTopic("not a name", 1, 1),
            NewTopic(f"{topic}-wide", 1, 9),
        ]
    )
    assert set(outcome.ok) == {topic, other}
    assert refusal(outcome, "not a name")[0] == 17
    assert refusal(outcome, f"{topic}-wide")[0] == 38
    assert refusal(client.create_topics([NewTopic(topic, 1, 1)]), topic) == (36, f"Topic '{topic}' already exists.")

    names = {topic, other}
    wait_everywhere(client, topic, lambda found: len(found) == 2, what="the new topic")
    wait_everywhere(client, other, lambda found: len(found) == 2, what="the other new topic")
    assert names <= set(client.list_topics())
    assert names <= set(client.list_topics(include_internal=True))
    assert names <= set(client.describe_topics().ok)
    described = client.describe_topics([topic, other, "no-such-topic"])
    assert [part.replicas for part in described[topic].partitions] == [(0, 1), (2, 0)]
    assert [part.topic_partition for part in described[topic].partitions] == [
        TopicPartition(topic, 0),
        TopicPartition(topic, 1),
    ]
    assert len(described[other].partitions) == 2
    assert len({described[name].topic_id for name in names} - {None}) == 2
    assert refusal(described, "no-such-topic") == (3, "This server does not host this topic-partition.")

    deleted = client.delete_topics([topic, other, "no-such-topic"])
    assert set(deleted.ok) == names
    assert refusal(deleted, "no-such-topic")[0] == 3
    for name in names:
        wait_everywhere(client, name, lambda found: not found, what=f"{name} gone")
    assert not names & set(client.list_topics())


def trying_out_creates_nothing(_cluster: KafkaCluster, client: AdminClient, topic: str) -> None:
    assert dict(client.create_topics([NewTopic(topic, 1, 1)], validate_only=True).ok) == {topic: None}
    assert refusal(client.describe_topics([topic]), topic)[0] == 3
    created(client, topic, (0,))
    assert dict(client.create_partitions({topic: NewPartitions(3)}, validate_only=True).ok) == {topic: None}
    assert len(partitions_of(client, topic)) == 1


def topics_grow(_cluster: KafkaCluster, client: AdminClient, topic: str) -> None:
    created(client, topic, (0, 1))
    outcome = client.create_partitions({topic: NewPartitions(3, ((1, 2), (2, 0))), "no-such-topic": NewPartitions(2)})
    assert dict(outcome.ok) == {topic: None}
    # On the wire KRaft's text is null: the default is shown.
    assert refusal(outcome, "no-such-topic")[0] == 3
    wait_everywhere(client, topic, lambda found: len(found) == 3, what="three partitions")
    assert [part.replicas for part in partitions_of(client, topic)] == [(0, 1), (1, 2), (2, 0)]
    code, text = refusal(client.create_partitions({topic: NewPartitions(3)}), topic)
    assert (code, "3 partition" in text) == (37, True)


def a_move_is_started_listed_and_completed(cluster: KafkaCluster, client: AdminClient, topic: str) -> None:
    first, second = created(client, topic, (0, 1), (1, 2))
    load_topic(cluster.bootstrap_servers, topic, {0: RECORDS_BYTES})
    unknown = TopicPartition("no-such-topic", 0)
    batch = client.alter_partition_reassignments({first: (2, 1), second: None, unknown: (0,)})
    assert dict(batch.ok) == {first: None}
    assert refusal(batch, second) == (85, "No partition reassignment is in progress.")
    assert refusal(batch, unknown)[0] == 3
    wait_idle(client, first)
    wait_replicas(client, first, (2, 1))
    assert client.list_partition_reassignments([second, unknown]) == {}
    assert all(status.lag_records == 0 for status in client.replica_status([first])[first])


def a_held_move_is_listed_overridden_and_cancelled(cluster: KafkaCluster, client: AdminClient, topic: str) -> None:
    (partition,) = created(client, topic, (0,))
    load_topic(cluster.bootstrap_servers, topic, {0: HELD_BYTES})
    with held(client, cluster, topic):
        client.alter_partition_reassignments({partition: (1,)}).raise_if_any()
        (ongoing,) = client.list_partition_reassignments([partition]).values()
        assert (ongoing.replicas, ongoing.adding, ongoing.removing) == ((1, 0), (1,), (0,))
        assert partition in client.list_partition_reassignments()

        # With a quorum the copy on 1 would stay after a cancel; with ZooKeeper it is deleted at once.
        assert bool(client.risky_overrides({partition: (2,)})) == (cluster.spec.mode == "kraft")
        client.alter_partition_reassignments({partition: (2,)}, warns_of_overrides=False).raise_if_any()
        (overridden,) = client.list_partition_reassignments([partition]).values()
        assert overridden.target == (2,)
        assert 2 in overridden.adding

        assert dict(client.alter_partition_reassignments({partition: None}).ok) == {partition: None}
        wait_idle(client, partition)
    assert refusal(client.alter_partition_reassignments({partition: None}), partition)[0] == 85


@contextmanager
def held(client: AdminClient, cluster: KafkaCluster, topic: str, bytes_per_s: int = 1) -> Iterator[None]:
    """Copying of a topic at next to nothing while the block runs."""
    lists = ("leader.replication.throttled.replicas", "follower.replication.throttled.replicas")
    rates = ("leader.replication.throttled.rate", "follower.replication.throttled.rate")
    listed = {ConfigResource.topic(topic): dict.fromkeys(lists, "*")}
    rated = {ConfigResource.broker(broker): dict.fromkeys(rates, str(bytes_per_s)) for broker in cluster.brokers}
    for requested in (listed, rated):
        client.incremental_alter_configs(
            {owner: [ConfigChange.set(*pair) for pair in values.items()] for owner, values in requested.items()}
        ).raise_if_any()
    # Brokers learn of changes one after the other: what knows its rate knows of the lists.
    with client_of(cluster) as asking:
        wait_until(lambda: _set(asking, rated, rates), what="brokers that know of their throttle")
    try:
        yield
    finally:
        client.incremental_alter_configs(
            {owner: [ConfigChange.delete(name) for name in values] for owner, values in (listed | rated).items()}
        ).raise_if_any()


def _set(client: AdminClient, requested: Mapping[ConfigResource, Mapping[str, str]], names: Sequence[str]) -> bool:
    found = client.describe_configs(requested, names=names).raise_if_any()
    return {
        owner: {name: entry.value for name, entry in entries.items()} for owner, entries in found.items()
    } == requested


def leaders_are_elected(_cluster: KafkaCluster, client: AdminClient, topic: str) -> None:
    first, second = created(client, topic, (0, 1), (1, 2))
    client.alter_partition_reassignments({first: (1, 0)}).raise_if_any()
    wait_idle(client, first)
    wait_replicas(client, first, (1, 0))
    unknown = TopicPartition(topic, 9)
    batch = client.elect_leaders([first, second, unknown])
    assert dict(batch.ok) == {first: None}
    assert refusal(batch, second) == (84, "Leader election not needed for topic partition.")
    assert refusal(batch, unknown)[0] == 3
    wait_everywhere(client, topic, lambda found: found[0].leader == 1, what="leader 1")
    assert refusal(client.elect_leaders([first], ElectionType.UNCLEAN), first)[0] == 84
    assert not client.elect_leaders(None).failed


def configurations_are_told_and_changed(cluster: KafkaCluster, client: AdminClient, topic: str) -> None:
    created(client, topic, (0,))
    of_topic, of_broker, absent = ConfigResource.topic(topic), ConfigResource.broker(1), ConfigResource.topic("absent")
    rate, lists = "leader.replication.throttled.rate", "leader.replication.throttled.replicas"
    changed = client.incremental_alter_configs(
        {
            of_topic: [ConfigChange.set(lists, "0:0"), ConfigChange.set("retention.ms", "7654321")],
            of_broker: [ConfigChange.set(rate, "1000")],
            ConfigResource.broker(2): [ConfigChange.set(rate, "-1")],
            absent: [ConfigChange.delete(lists)],
        }
    )
    assert set(changed.ok) == {of_topic, of_broker}
    code, text = refusal(changed, ConfigResource.broker(2))
    assert (code, "Invalid value -1 for configuration leader.replication.throttled.rate" in text) == (42, True)
    assert refusal(changed, absent)[0] == 3

    append = {of_topic: [ConfigChange.append(lists, "0:1"), ConfigChange.delete("retention.ms")]}
    client.incremental_alter_configs(append).raise_if_any()

    def told() -> dict[str, tuple[str | None, ConfigSource]]:
        described = client.describe_configs([of_topic, of_broker], names=[lists, rate, "retention.ms"])
        return {entry.name: (entry.value, entry.source) for found in described.ok.values() for entry in found.values()}

    expected = {lists: ("0:0,0:1", ConfigSource.DYNAMIC_TOPIC), rate: ("1000", ConfigSource.DYNAMIC_BROKER)}
    wait_until(
        lambda: (
            {name: found for name, found in told().items() if name != "retention.ms"} == expected
            and told()["retention.ms"][1] in {ConfigSource.DEFAULT, ConfigSource.STATIC_BROKER}
        ),
        what="changed configurations told",
    )

    undo = {of_broker: [ConfigChange.delete(rate)], of_topic: [ConfigChange.subtract(lists, "0:0")]}
    assert not client.incremental_alter_configs(undo, validate_only=True).failed
    assert client.describe_configs([of_broker], names=[rate])[of_broker][rate].value == "1000"
    client.incremental_alter_configs(undo).raise_if_any()
    wait_until(
        lambda: (
            rate not in client.describe_configs([of_broker], names=[rate])[of_broker]
            and client.describe_configs([of_topic], names=[lists])[of_topic][lists].value == "0:1"
        ),
        what="configurations as before",
    )
    assert len(client.describe_configs([of_broker])[of_broker]) > 100


def a_setting_of_all_brokers_holds_where_a_broker_has_none(
    cluster: KafkaCluster, client: AdminClient, _topic: str
) -> None:
    everybody, one, name = ConfigResource.all_brokers(), ConfigResource.broker(1), "log.cleaner.backoff.ms"
    brokers = [ConfigResource.broker(broker) for broker in cluster.brokers]

    def told() -> dict[ConfigResource, tuple[str | None, ConfigSource]]:
        found = client.describe_configs([everybody, *brokers], names=[name])
        return {
            key: (entries[name].value, entries[name].source) for key, entries in found.ok.items() if name in entries
        }

    before = told()
    client.incremental_alter_configs(
        {everybody: [ConfigChange.set(name, "14000")], one: [ConfigChange.set(name, "13000")]}
    ).raise_if_any()
    expected = dict.fromkeys([everybody, *brokers], ("14000", ConfigSource.DYNAMIC_DEFAULT_BROKER))
    expected[one] = ("13000", ConfigSource.DYNAMIC_BROKER)
    wait_until(lambda: told() == expected, what="both settings told")
    client.incremental_alter_configs({key: [ConfigChange.delete(name)] for key in (everybody, one)}).raise_if_any()
    wait_until(lambda: told() == before, what="configurations as before")


def every_brokers_configuration_comes_from_itself(cluster: KafkaCluster, client: AdminClient, _topic: str) -> None:
    resources = [ConfigResource.broker(broker) for broker in cluster.brokers]
    told = client.describe_configs(resources, names=["broker.id", "node.id"])
    for resource in resources:
        ids = {entry.value for entry in told[resource].values() if entry.value != "-1"}
        assert ids == {resource.name}


def log_dirs_are_told(cluster: KafkaCluster, client: AdminClient, topic: str) -> None:
    first, second = created(client, topic, (0, 1), (1, 2))
    load_topic(cluster.bootstrap_servers, topic, {0: RECORDS_BYTES})
    told = client.describe_log_dirs()
    assert set(told.ok) == set(cluster.brokers)
    for broker, log_dirs in told.ok.items():
        assert {log_dir.path for log_dir in log_dirs} == set(map(str, cluster.brokers[broker].log_dirs))
        assert all(log_dir.error is None and not log_dir.is_cordoned for log_dir in log_dirs)
        assert all(0 < (log_dir.usable_bytes or 0) <= (log_dir.total_bytes or 0) for log_dir in log_dirs)
    some = client.describe_log_dirs([0, 2], partitions=[first, second])
    copies = {broker: [copy for log_dir in dirs for copy in log_dir.replicas] for broker, dirs in some.ok.items()}
    assert {broker: [copy.topic_partition for copy in found] for broker, found in copies.items()} == {
        0: [first],
        2: [second],
    }
    assert copies[0][0].size_bytes >= RECORDS_BYTES
    assert not copies[0][0].is_future


def copies_move_between_directories(cluster: KafkaCluster, client: AdminClient, topic: str) -> None:
    (partition,) = created(client, topic, (0, 1))
    load_topic(cluster.bootstrap_servers, topic, {0: RECORDS_BYTES})

    def log_dirs(broker: int) -> set[str]:
        """One directory, but for the moment in which the broker swaps the copies: then both."""
        dirs = client.describe_log_dirs([broker], partitions=[partition])[broker]
        return {log_dir.path for log_dir in dirs for copy in log_dir.replicas if not copy.is_future}

    (target,) = set(map(str, cluster.brokers[0].log_dirs)) - log_dirs(0)
    here, nowhere, elsewhere = (TopicPartitionReplica(broker, topic, 0) for broker in (0, 1, 2))
    batch = client.alter_replica_log_dirs(
        {here: target, nowhere: "/no/such/directory", elsewhere: str(cluster.brokers[2].log_dirs[0])}
    )
    assert dict(batch.ok) == {here: None}
    assert refusal(batch, nowhere) == (57, "The user-specified log directory is not found in the broker config.")
    assert refusal(batch, elsewhere)[0] == 9
    wait_until(lambda: log_dirs(0) == {target}, what=f"{here} in its new directory")


def offsets_are_those_of_the_log(cluster: KafkaCluster, client: AdminClient, topic: str) -> None:
    first, second = created(client, topic, (0, 1), (1, 2))
    count = len(load_topic(cluster.bootstrap_servers, topic, {0: RECORDS_BYTES}).partitions[0])
    unknown = TopicPartition(topic, 9)
    wait_until(lambda: client.list_offsets([first])[first] == count, what="the high watermark")
    batch = client.list_offsets([first, second, unknown])
    assert dict(batch.ok) == {first: count, second: 0}
    assert refusal(batch, unknown)[0] == 3
    assert dict(client.list_offsets([first, second], OffsetSpec.EARLIEST).ok) == {first: 0, second: 0}


def every_replica_in_sync_is_at_the_leaders_end(cluster: KafkaCluster, client: AdminClient, topic: str) -> None:
    (partition,) = created(client, topic, (1, 0, 2))
    count = len(load_topic(cluster.bootstrap_servers, topic, {0: RECORDS_BYTES}).partitions[0])
    before_ms = SystemClock().now_ms()
    found = client.replica_status([partition])[partition]
    assert [(status.broker, status.is_leader) for status in found] == [(1, True), (0, False), (2, False)]
    for status in found:
        assert before_ms <= status.status_time_ms <= SystemClock().now_ms()
        assert (status.log_start_offset, status.log_end_offset) == (0, count)
        assert (status.lag_records, status.lag_bytes) == (0, 0)
        assert (status.size_bytes or 0) >= RECORDS_BYTES
    unknown = TopicPartition("no-such-topic", 0)
    assert refusal(client.replica_status([unknown]), unknown)[0] == 17


def progress_is_true_while_a_move_is_throttled(cluster: KafkaCluster, client: AdminClient, topic: str) -> None:
    (partition,) = created(client, topic, (0,))
    count = len(
        load_topic(cluster.bootstrap_servers, topic, {0: MOVED_BYTES}, value_bytes=(5_000, 10_000)).partitions[0]
    )
    seen: list[tuple[int, int, int]] = []

    def is_done() -> bool:
        outcome = client.replica_status([partition])
        statuses = {status.broker: status for status in outcome.ok.get(partition, ())}
        if 2 in statuses and 0 in statuses:
            assert statuses[2].lag_records == count - max(0, statuses[2].log_end_offset)
            seen.append((statuses[2].log_end_offset, statuses[2].lag_records, statuses[2].lag_bytes or 0))
        return not client.list_partition_reassignments([partition])

    def steps() -> int:
        return len({end for end, _, _ in seen if 0 < end < count})

    # What eleven seconds allow may come at once, 2.8 MB, and one fetch of up to 1 MB more; then nothing for that time.
    # So there are three steps on the way, each to be seen for seconds.
    with held(client, cluster, topic, bytes_per_s=RATE_BYTES_PER_S):
        client.alter_partition_reassignments({partition: (2,)}).raise_if_any()
        wait_until(lambda: is_done() or steps() >= 3, what="three steps of the throttled move")
    wait_until(is_done, what="the move at its end")
    assert all(
        later[0] >= earlier[0] and later[1] <= earlier[1] and later[2] <= earlier[2]
        for earlier, later in pairwise(seen)
    )
    assert steps() >= 3, f"no growth was seen: {seen}"
    wait_replicas(client, partition, (2,))
    (last,) = client.replica_status([partition])[partition]
    assert (last.broker, last.is_leader, last.log_end_offset, last.lag_records) == (2, True, count, 0)


def a_call_that_takes_no_time_fails_as_one_that_has_none(
    _cluster: KafkaCluster, client: AdminClient, _topic: str
) -> None:
    with pytest.raises(ClusterError):
        client.list_topics(timeout_ms=0)
    assert client.list_topics() is not None


Check = Callable[[KafkaCluster, AdminClient, str], None]
CHECKS: tuple[Check, ...] = (
    the_cluster_tells_its_brokers,
    topics_are_created_told_and_deleted,
    trying_out_creates_nothing,
    topics_grow,
    a_move_is_started_listed_and_completed,
    a_held_move_is_listed_overridden_and_cancelled,
    leaders_are_elected,
    configurations_are_told_and_changed,
    a_setting_of_all_brokers_holds_where_a_broker_has_none,
    every_brokers_configuration_comes_from_itself,
    log_dirs_are_told,
    copies_move_between_directories,
    offsets_are_those_of_the_log,
    every_replica_in_sync_is_at_the_leaders_end,
    progress_is_true_while_a_move_is_throttled,
    a_call_that_takes_no_time_fails_as_one_that_has_none,
)
