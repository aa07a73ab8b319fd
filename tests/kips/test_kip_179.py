"""KIP-179 on twins: with its requests, and put together from those that Kafka has, the same comes out."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from kreassign.admin import AdminClient, client_settings
from kreassign.errors import Rejected
from kreassign.model import ConfigChange, ConfigResource, TopicPartition
from kreassign.model.throttle import move_map, rate_changes, topic_changes
from kreassign.twin.access import ALL_TOPICS, ANONYMOUS, Allow, Operation, Permissions
from kreassign.twin.cluster import Twin
from kreassign.twin.faults.schedule import read_fault, schedule_faults
from kreassign.twin.transport import TwinTransport
from kreassign.twin.version import DEFAULT, KAFKA_3_9_ZOOKEEPER, Endpoint, KafkaVersion, kafka_version
from kreassign.wire import api
from kreassign.wire.api import Api
from tests.kips.topic_change_checks import CHECKS, Check
from tests.twin.asking import ask, partition, twin
from tests.twin.zookeeper.zookeeper_cluster import ZooKeeperCluster

WITH = DEFAULT.with_kip_179()
WITH_ZOOKEEPER = KAFKA_3_9_ZOOKEEPER.with_kip_179()


def client_of(asked: Twin) -> AdminClient:
    transport = TwinTransport(asked)
    address = asked.address(0, asked.listener)
    settings = client_settings(bootstrap_servers=f"{address.host}:{address.port}")
    return AdminClient.connect(settings, transport=transport, clock=transport)


@pytest.fixture(params=[WITH, DEFAULT, kafka_version("3.9")], ids=["with its requests", "4.3", "3.9"])
def client(request: pytest.FixtureRequest) -> Iterator[AdminClient]:
    with client_of(twin({}, version=request.param)) as made:
        yield made


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_on_a_twin(check: Check, client: AdminClient) -> None:
    check(client, "orders")


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
@pytest.mark.parametrize("version", [WITH_ZOOKEEPER, KAFKA_3_9_ZOOKEEPER], ids=["with its requests", "without"])
def test_in_zookeeper_mode(check: Check, version: KafkaVersion) -> None:
    with client_of(ZooKeeperCluster(version=version).begin().twin) as client:
        check(client, "orders")


FOO = TopicPartition("foo", 0)
ON_TOPICS = [Allow(ANONYMOUS, operation, ALL_TOPICS) for operation in (Operation.DESCRIBE, Operation.DESCRIBE_CONFIGS)]


def test_a_move_stays_in_the_znode_of_its_topic_until_it_ends() -> None:
    cluster = ZooKeeperCluster([1, 2, 3], version=WITH_ZOOKEEPER).begin()
    with client_of(cluster.twin) as client:
        client.reassign_partitions({FOO: (4, 3, 2)}).raise_if_any()
        assert cluster.lists == ((4, 3, 2, 1), (4,), (1,))
        cluster.settle()
        assert cluster.lists == ((4, 3, 2), (), ())
        client.alter_replication_factors({"foo": 2}).raise_if_any()
        assert len(cluster.settle().lists[0]) == 2
        assert not client.list_partition_reassignments()


def test_new_partitions_in_zookeeper_mode_go_to_live_brokers_only() -> None:
    cluster = ZooKeeperCluster([1, 2, 3], version=WITH_ZOOKEEPER).begin()
    with client_of(cluster.twin) as client:
        for broker in (4, 5, 6):
            cluster.twin.stop(broker)
        client.alter_partition_counts({"foo": 40}).raise_if_any()
        assert {replica for one in client.describe_topics(["foo"])["foo"].partitions for replica in one.replicas} == {
            0, 1, 2, 3,
        }  # fmt: skip


def test_new_partitions_in_zookeeper_mode_are_refused_in_its_own_words() -> None:
    cluster = ZooKeeperCluster([1, 2, 3], version=WITH_ZOOKEEPER).begin()
    with client_of(cluster.twin) as client:
        for broker in (2, 3, 4, 5, 6):
            cluster.twin.stop(broker)
        refused = client.alter_partition_counts({"foo": 4}).failed["foo"]
        assert isinstance(refused, Rejected)
        assert (refused.code, refused.message) == (38, "Replication factor: 3 larger than available brokers: 2.")


def test_nodes_that_are_not_the_active_controller_refuse_the_requests() -> None:
    quorum = twin({"foo": [[0, 1]]}, version=WITH, controllers=3)
    passive = next(node for node in quorum.node_ids if node > 4 and node != quorum.controller_id)
    for known in api.KIP_179_APIS[:3]:
        assert ask(quorum, known, 0, node=passive, topics=[]).error_code == 41
        assert ask(ZooKeeperCluster(version=WITH_ZOOKEEPER).begin().twin, known, 0, node=1, topics=[]).error_code == 41


def test_counts_beyond_what_one_request_creates_are_reached() -> None:
    """A controller creates the first 10,000 partitions of a request, and calls a topic that got a part a failure."""
    asked = twin({"a": [[0]], "b": [[1]]})
    with client_of(asked) as client:
        assert client.alter_partition_counts({"a": 5_002, "b": 5_002}).ok.keys() == {"a", "b"}
    assert [len(asked.metadata.topics[name].partitions) for name in "ab"] == [5_002, 5_002]


def test_a_min_isr_that_is_no_number_permits_no_smaller_factor() -> None:
    asked = twin({"foo": [[0, 1]]})
    asked.metadata.configs[ConfigResource.topic("foo")] = {"min.insync.replicas": "1_0"}
    with client_of(asked) as client:
        refused = client.alter_replication_factors({"foo": 1}).failed["foo"]
    assert "is below min.insync.replicas of topic foo could not be read" in str(refused)


def held(asked: Twin) -> AdminClient:
    """A client of a twin in which foo-0 is on its way from 0, 1 to 2, 1, and held by a throttle."""
    client = client_of(asked)
    moves = move_map({}, {FOO: (2, 1)}, {FOO: (0, 1)})
    client.incremental_alter_configs(topic_changes(moves)).raise_if_any()
    client.incremental_alter_configs(rate_changes([0, 1, 2], 1000)).raise_if_any()
    client.reassign_partitions({FOO: (2, 1)}).raise_if_any()
    return client


@pytest.mark.parametrize("version", [WITH, DEFAULT], ids=["with its requests", "without"])
def test_a_moving_partition_is_refused_and_its_progress_told(version: KafkaVersion) -> None:
    with held(twin({"foo": [[0, 1]]}, version=version)) as client:
        again = client.reassign_partitions({FOO: (3, 1)}).failed[FOO]
        factor = client.alter_replication_factors({"foo": 3}).failed["foo"]
        assert isinstance(again, Rejected)
        assert isinstance(factor, Rejected)
        assert (again.code, again.message) == (60, "A partition reassignment is in progress.")
        assert (factor.code, factor.message) == (60, "A partition reassignment is in progress: foo-0.")
        status = {one.broker: one for one in client.replica_status([FOO])[FOO]}
        assert status[2].lag_records > 0
        assert status[2].lag_bytes
        assert status[0].lag_records == status[1].lag_records == 0
        assert status[0].size_bytes == 10_000_000


def _cordon_broker_1(asked: Twin) -> None:
    cordon = [ConfigChange.set("cordoned.log.dirs", "*")]
    client_of(asked).incremental_alter_configs({ConfigResource.broker(1): cordon}).raise_if_any()


def test_a_dry_run_refuses_what_a_cordon_makes_the_controller_refuse() -> None:
    """From Kafka 4.4 no list may name a cordoned broker, not even one that has the replica."""
    asked = twin({"foo": [[0, 1]]}, version=WITH)
    _cordon_broker_1(asked)
    with client_of(asked) as client:
        for is_dry in (True, False):
            moved = client.reassign_partitions({FOO: (2, 1)}, validate_only=is_dry).failed[FOO]
            grown = client.alter_replication_factors({"foo": 3}, validate_only=is_dry).failed["foo"]
            for refused in (moved, grown):
                assert isinstance(refused, Rejected)
                assert (refused.code, refused.message) == (
                    39,
                    "The manual partition assignment includes broker 1, but all its log directories are cordoned.",
                )
    assert partition(asked, "foo")[0] == (0, 1)


@pytest.mark.parametrize("version", [WITH_ZOOKEEPER, KAFKA_3_9_ZOOKEEPER], ids=["with its requests", "without"])
def test_in_zookeeper_mode_a_broker_that_is_down_is_unknown(version: KafkaVersion) -> None:
    cluster = ZooKeeperCluster([1, 2, 3], version=version).begin()
    cluster.twin.stop(5)
    with client_of(cluster.twin) as client:
        for is_dry in (True, False):
            refused = client.reassign_partitions({FOO: (1, 2, 5)}, validate_only=is_dry).failed[FOO]
            assert isinstance(refused, Rejected)
            assert refused.code == 25
    assert cluster.lists == ((1, 2, 3), (), ())


def test_both_ways_come_to_the_same_status() -> None:
    found = [held(twin({"foo": [[0, 1]]}, version=version)).replica_status([FOO])[FOO] for version in (WITH, DEFAULT)]
    assert [(one.broker, one.lag_records, one.lag_bytes, one.is_leader) for one in found[0]] == [
        (one.broker, one.lag_records, one.lag_bytes, one.is_leader) for one in found[1]
    ]


@pytest.mark.parametrize("version", [WITH, DEFAULT], ids=["with its requests", "without"])
def test_the_status_leaves_out_a_copy_in_an_offline_directory(version: KafkaVersion) -> None:
    asked = twin({"foo": [[0, 1]]}, version=version)
    with client_of(asked) as client:
        (path,) = [one.path for one in client.describe_log_dirs([1])[1] if one.replicas]
        asked.fail_log_dir(1, path)
        asked.advance(5_000)
        assert [one.broker for one in client.replica_status([FOO])[FOO]] == [0]


def test_a_copy_that_cannot_be_read_is_not_taken_for_a_missing_one() -> None:
    asked = twin({"foo": [[0, 1]], "bar": [[1, 0]]})
    schedule_faults(asked, [read_fault("refuse:KAFKA_STORAGE_ERROR:ListOffsets:1@1s+1h")])
    asked.advance(2_000)
    with client_of(asked) as client:
        found = client.replica_status([FOO, TopicPartition("bar", 0)])
    assert [one.broker for one in found[FOO]] == [0]
    refused = found.failed[TopicPartition("bar", 0)]
    assert isinstance(refused, Rejected)
    assert refused.name == "KAFKA_STORAGE_ERROR"


def test_no_release_of_kafka_offers_the_requests() -> None:
    for endpoint in Endpoint:
        assert all(DEFAULT.versions(known.key, endpoint) is None for known in api.KIP_179_APIS)
        offered = [known.name for known in api.KIP_179_APIS if WITH.versions(known.key, endpoint) is not None]
        assert ("ReplicaStatus" in offered) == (endpoint is Endpoint.BROKER)


@pytest.mark.parametrize(("known", "wanted"), [
    (api.ALTER_PARTITION_COUNTS, {"partition_count": 3}),
    (api.ALTER_REPLICATION_FACTORS, {"replication_factor": 1}),
    (api.REASSIGN_PARTITIONS, {"partitions": [{"partition_index": 0, "replicas": [1]}]}),
], ids=str)  # fmt: skip
def test_a_topic_that_comes_twice_is_an_invalid_request(known: Api, wanted: dict[str, object]) -> None:
    asked = twin({"foo": [[0, 1]]}, version=WITH)
    (topic,) = ask(asked, known, 0, topics=[{"name": "foo", **wanted}] * 2, timeout_ms=1000).topics
    refused = topic.partitions if known is api.REASSIGN_PARTITIONS else [topic]
    assert [entry.error_code for entry in refused] == [42]


def test_who_may_not_alter_the_cluster_is_refused_as_a_whole() -> None:
    asked = twin({"foo": [[0, 1]]}, version=WITH, permissions=Permissions({}))
    for known in api.KIP_179_APIS:
        assert ask(asked, known, 0, topics=[]).error_code == 31


@pytest.mark.parametrize("version", [WITH, DEFAULT], ids=["with its requests", "without"])
def test_who_may_only_describe_sees_the_status_and_changes_nothing(version: KafkaVersion) -> None:
    """Reads need DESCRIBE on the cluster, changes ALTER, which who may only look has not."""
    may_look = Permissions(frozenset({Allow(ANONYMOUS, Operation.DESCRIBE), *ON_TOPICS}))
    asked = twin({"foo": [[0, 1]]}, version=version, permissions=may_look)
    with client_of(asked) as client:
        offset = asked.metadata.offset
        calls: tuple[Callable[[], object], ...] = (
            lambda: client.alter_partition_counts({"foo": 2}).raise_if_any(),
            lambda: client.alter_replication_factors({"foo": 3}).raise_if_any(),
            lambda: client.reassign_partitions({FOO: (2, 1)}).raise_if_any(),
        )
        for call in calls:
            with pytest.raises(Rejected) as refused:
                call()
            assert refused.value.code in ({31} if version is WITH else {29, 31})
        assert asked.metadata.offset == offset
        assert [one.broker for one in client.replica_status([FOO])[FOO]] == [0, 1]


def test_who_may_not_describe_sees_no_status() -> None:
    asked = twin({"foo": [[0, 1]]}, version=WITH, permissions=Permissions(frozenset(ON_TOPICS)))
    with client_of(asked) as client, pytest.raises(Rejected) as refused:
        client.replica_status([FOO]).raise_if_any()
    assert refused.value.code == 31


def test_a_time_out_of_nothing_is_over_at_once() -> None:
    asked = twin({"foo": [[0, 1]]}, version=WITH)
    for known in api.KIP_179_APIS[:3]:
        assert ask(asked, known, 0, topics=[], timeout_ms=0).error_code == 7


def test_the_status_names_what_it_cannot_tell_of() -> None:
    asked = twin({"foo": [[0, 1]]}, version=WITH)
    known = api.REPLICA_STATUS

    def code(topic: str, number: int, node: int) -> int:
        partitions = [{"partition_index": number}]
        answer = ask(asked, known, 0, node=node, topics=[{"name": topic, "partitions": partitions}])
        return int(answer.topics[0].partitions[0].error_code)

    assert [code("nope", 0, 0), code("foo", 7, 0), code("foo", 0, 1), code("foo", 0, 0)] == [17, 37, 6, 0]
    partitions = [{"partition_index": 0, "brokers": [0, 3, 77]}]
    answer = ask(asked, known, 0, topics=[{"name": "foo", "partitions": partitions}])
    told = answer.topics[0].partitions[0].replicas
    assert [(one.broker_id, one.error_code) for one in told] == [(0, 0), (3, 3), (77, 25)]


@pytest.mark.parametrize("version", [WITH, DEFAULT], ids=["with its requests", "without"])
def test_a_new_replica_goes_to_the_emptiest_broker_of_its_rack(version: KafkaVersion) -> None:
    # 1 and 3 are on the other rack; the partitions of `large` lie on 1.
    with client_of(twin({"foo": [[0]], "large": [[1], [1]], "more": [[3]]}, version=version)) as client:
        client.alter_replication_factors({"foo": 2}).raise_if_any()
        assert client.list_partition_reassignments([FOO])[FOO].target == (0, 3)


@pytest.mark.parametrize("version", [WITH, DEFAULT], ids=["with its requests", "without"])
def test_a_replica_out_of_sync_goes_before_one_of_a_shared_rack(version: KafkaVersion) -> None:
    asked = twin({"foo": [[0, 1, 2]], "bar": [[0, 1, 2]]}, version=version)
    with client_of(asked) as client:
        client.alter_replication_factors({"foo": 2}).raise_if_any()
        assert partition(asked, "foo")[0] == (0, 1)
        asked.crash(1)
        asked.advance(60_000)
        client.alter_replication_factors({"bar": 2}).raise_if_any()
        assert partition(asked, "bar")[0] == (0, 2)


def test_a_broker_that_does_not_tell_what_it_holds_gets_no_replica() -> None:
    """Broker 3 is the emptiest, by silence; it may be the fullest, or cordoned."""
    asked = twin({"foo": [[0]], "large": [[1], [1]]})
    schedule_faults(asked, [read_fault("refuse:CLUSTER_AUTHORIZATION_FAILED:DescribeLogDirs:3@1s+1h")])
    asked.advance(2_000)
    with client_of(asked) as client:
        client.alter_replication_factors({"foo": 2}).raise_if_any()
        assert client.list_partition_reassignments([FOO])[FOO].target == (0, 1)
        refused = client.alter_replication_factors({"large": 4}).failed["large"]
    assert "Brokers whose log directories could not be read get no replica: 3." in str(refused)


def test_a_broker_that_lags_lets_no_replica_in_sync_go() -> None:
    asked = twin({"bar": [[0, 1, 2]]})
    asked.views.hold_back(0)
    asked.crash(1)
    asked.advance(60_000)
    with client_of(asked) as client:
        client.alter_replication_factors({"bar": 2}).raise_if_any()
    assert partition(asked, "bar")[0] == (0, 2)


def test_a_minimum_that_a_lagging_broker_does_not_know_is_kept() -> None:
    asked = twin({"bar": [[0, 1, 2]]})
    with client_of(asked) as client:
        client.describe_topics(["bar"]).raise_if_any()
        asked.views.hold_back(0)
        client.incremental_alter_configs({
            ConfigResource.topic("bar"): [ConfigChange.set("min.insync.replicas", "3")]
        }).raise_if_any()  # fmt: skip
        refused = client.alter_replication_factors({"bar": 2}).failed
    assert "min.insync.replicas" in str(refused["bar"])


@pytest.mark.parametrize("version", [WITH, DEFAULT], ids=["with its requests", "without"])
def test_a_status_has_the_time_at_which_it_was_taken(version: KafkaVersion) -> None:
    asked = twin({"foo": [[0, 1]]}, version=version)
    with client_of(asked) as client:
        first = client.replica_status([FOO], timeout_ms=5_000)[FOO]
        asked.advance(60_000)
        later = client.replica_status([FOO], timeout_ms=5_000)[FOO]
    assert all(
        after.status_time_ms - before.status_time_ms >= 60_000 for before, after in zip(first, later, strict=True)
    )
