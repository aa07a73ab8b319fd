"""What the client makes of its calls: splitting, paging, falling back, asking the right nodes. Over real sockets."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from kreassign.admin import AdminClient
from kreassign.errors import OutcomeUnknown, ProtocolViolation, Rejected, Unreachable, Unsupported
from kreassign.model import (
    Batch,
    ConfigChange,
    ConfigEntry,
    ConfigResource,
    ConfigSource,
    LogDir,
    LogDirReplica,
    NewPartitions,
    NewTopic,
    OngoingReassignment,
    Partition,
    ReplicaStatus,
    ResourceType,
    Topic,
    TopicPartition,
    TopicPartitionReplica,
)
from kreassign.wire import api
from kreassign.wire.api import Api, Message
from tests.admin import answers
from tests.admin.listener import EVERYTHING, Deed, Listener, Reply, in_turn, join
from tests.wire.peer import Asked

ALTER, PAGE = api.ALTER_PARTITION_REASSIGNMENTS, api.DESCRIBE_TOPIC_PARTITIONS
T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)
KIP_860_TEXT = (
    "The broker does not support the AllowReplicationFactorChange option for the AlterPartitionReassignments API. "
    "Consider re-sending the request without the option or updating the server version"
)
Connect = Callable[..., AdminClient]
Listen = Callable[..., Listener]


def offer(node: Listener, entry: Api, versions: tuple[int, int] | None) -> None:
    """Let a node offer these versions of an API, or (None) not the API at all."""
    others = {key: offered for key, offered in EVERYTHING.items() if key != entry.key}
    node.answers[api.API_VERSIONS] = answers.api_versions(
        others if versions is None else {**others, entry.key: versions}
    )


def topic(name: str, *numbers: int, replicas: tuple[int, ...] = (0, 1), leader: int = 0) -> Topic:
    partitions = tuple(Partition(TopicPartition(name, number), replicas, (leader,), leader, 0) for number in numbers)
    return Topic(name, None, False, partitions)


def all_fine(asked: Asked) -> Reply:
    """Accept every reassignment that a request asks for."""
    return answers.altered(dict.fromkeys(partitions_of(asked.message), answers.FINE))


def partitions_of(message: Message) -> list[TopicPartition]:
    return [TopicPartition(entry.name, part.partition_index) for entry in message.topics for part in entry.partitions]


# Many reassignments


def many(count: int) -> dict[TopicPartition, tuple[int, ...] | None]:
    return {TopicPartition(f"t{number % 7}", number): (1, 2) for number in range(count)}


def test_a_call_of_more_than_5000_partitions_goes_in_several_requests(node: Listener, connect: Connect) -> None:
    join(node)
    node.answers[ALTER] = all_fine
    targets = many(12_001)
    batch = connect(node, request_timeout_ms=30_000).alter_partition_reassignments(targets)
    assert batch.ok.keys() == targets.keys()
    assert not batch.failed
    sent = [partitions_of(message) for message in node.messages(ALTER)]
    assert [len(part) for part in sent] == [5_000, 5_000, 2_001]
    assert [key for part in sent for key in part] == sorted(targets)


def test_exactly_5000_partitions_go_in_one_request(node: Listener, connect: Connect) -> None:
    join(node)
    node.answers[ALTER] = all_fine
    assert len(connect(node, request_timeout_ms=30_000).alter_partition_reassignments(many(5_000)).ok) == 5_000
    assert node.times_asked(ALTER) == 1


def test_partitions_refused_in_any_part_are_told_with_the_others(node: Listener, connect: Connect) -> None:
    def refuse_last(asked: Asked) -> Reply:
        *good, last = partitions_of(asked.message)
        return answers.altered(dict.fromkeys(good, answers.FINE) | {last: (39, f"broken {last}")})

    join(node)
    node.answers[ALTER] = refuse_last
    batch = connect(node, request_timeout_ms=30_000).alter_partition_reassignments(many(5_002))
    ordered = sorted(many(5_002))
    assert {key: str(error) for key, error in batch.failed.items()} == {
        ordered[4_999]: f"broken {ordered[4_999]}",
        ordered[5_001]: f"broken {ordered[5_001]}",
    }
    assert len(batch.ok) == 5_000


def test_a_later_part_that_fails_is_told_for_its_partitions_and_nothing_follows_it(
    node: Listener, connect: Connect
) -> None:
    join(node)
    node.answers[ALTER] = in_turn(all_fine, Deed.HANG_UP, all_fine)
    batch = connect(node, request_timeout_ms=30_000).alter_partition_reassignments(many(15_000))
    ordered = sorted(many(15_000))
    assert list(batch.ok) == ordered[:5_000]
    assert all(isinstance(batch.failed[key], OutcomeUnknown) for key in ordered[5_000:10_000])
    assert all(isinstance(batch.failed[key], Unreachable) for key in ordered[10_000:])
    assert "not sent, because an earlier part of the call failed" in str(batch.failed[ordered[-1]])
    assert node.times_asked(ALTER) == 2


def test_a_first_part_that_fails_fails_the_call(node: Listener, connect: Connect) -> None:
    join(node)
    node.answers[ALTER] = answers.altered({}, top=(31, None))
    with pytest.raises(Rejected):
        connect(node, request_timeout_ms=30_000).alter_partition_reassignments(many(5_001))
    assert node.times_asked(ALTER) == 1


# KIP-860


def test_the_guard_of_the_factor_is_refused_to_a_broker_that_lacks_it_and_nothing_is_sent(
    node: Listener, connect: Connect
) -> None:
    join(node)
    offer(node, ALTER, (0, 0))
    with pytest.raises(Unsupported) as refused:
        connect(node).alter_partition_reassignments({T0: (1,)}, allow_replication_factor_change=False)
    assert str(refused.value) == KIP_860_TEXT
    assert node.times_asked(ALTER) == 0


def test_without_the_guard_an_old_broker_gets_version_0_silently(
    node: Listener, connect: Connect, caplog: pytest.LogCaptureFixture
) -> None:
    join(node)
    offer(node, ALTER, (0, 0))
    node.answers[ALTER] = all_fine
    assert connect(node).alter_partition_reassignments({T0: (1,)}) == Batch({T0: None})
    assert [asked.version for asked in node.asked if asked.api is ALTER] == [0]
    assert not caplog.records


@pytest.mark.parametrize("allowed", [True, False])
def test_a_broker_that_has_the_guard_is_told(allowed: bool, node: Listener, connect: Connect) -> None:
    join(node)
    node.answers[ALTER] = all_fine
    connect(node).alter_partition_reassignments({T0: (1,)}, allow_replication_factor_change=allowed)
    assert [message.allow_replication_factor_change for message in node.messages(ALTER)] == [allowed]


# Pages of topics


def test_pages_are_joined_also_where_they_cut_a_topic(node: Listener, connect: Connect) -> None:
    join(node)
    node.answers[PAGE] = in_turn(
        answers.topic_page([topic("a", 0), topic("b", 0, 1)], {"gone": 3}, cursor=("b", 2)),
        answers.topic_page([topic("b", 2, 3)], cursor=("b", 4)),
        answers.topic_page([topic("b", 4), topic("c", 0)]),
    )
    batch = connect(node).describe_topics(["a", "b", "c", "gone"])
    assert dict(batch.ok) == {"a": topic("a", 0), "b": topic("b", 0, 1, 2, 3, 4), "c": topic("c", 0)}
    assert [*batch.failed] == ["gone"]
    asked = [([entry.name for entry in page.topics], page.cursor) for page in node.messages(PAGE)]
    assert [names for names, _ in asked] == [["a", "b", "c", "gone"], ["b", "c", "gone"], ["b", "c", "gone"]]
    assert [(page.topic_name, page.partition_index) for _, page in asked[1:]] == [("b", 2), ("b", 4)]


def test_pages_of_all_topics_ask_for_all_each_time(node: Listener, connect: Connect) -> None:
    join(node)
    node.answers[PAGE] = in_turn(
        answers.topic_page([topic("a", 0)], cursor=("b", 0)), answers.topic_page([topic("b", 0)])
    )
    assert list(connect(node).describe_topics()) == ["a", "b"]
    assert [list(page.topics) for page in node.messages(PAGE)] == [[], []]


def test_a_broker_without_pages_is_asked_by_metadata(node: Listener, connect: Connect) -> None:
    cluster = join(node)
    offer(node, PAGE, None)
    node.answers[api.METADATA] = answers.metadata(cluster, [topic("a", 0, 1)], {"gone": 3})
    batch = connect(node).describe_topics(["a", "gone"])
    assert dict(batch.ok) == {"a": topic("a", 0, 1)}
    assert [*batch.failed] == ["gone"]
    assert node.times_asked(PAGE) == 0
    assert [entry.name for entry in node.messages(api.METADATA)[-1].topics] == ["a", "gone"]


def test_a_broker_without_describe_cluster_is_asked_by_metadata(node: Listener, connect: Connect) -> None:
    cluster = join(node)
    offer(node, api.DESCRIBE_CLUSTER, None)
    assert connect(node).describe_cluster() == cluster
    with pytest.raises(Unsupported, match=r"does not offer DescribeCluster \(API 60\)"):
        connect(node).describe_cluster(include_fenced=True)


def test_internal_topics_are_listed_on_demand(node: Listener, connect: Connect) -> None:
    cluster = join(node)
    internal = Topic("__consumer_offsets", None, True, ())
    node.answers[api.METADATA] = answers.metadata(cluster, [topic("b"), internal, topic("a")])
    client = connect(node)
    assert client.list_topics() == ("a", "b")
    assert client.list_topics(include_internal=True) == ("__consumer_offsets", "a", "b")


# Nothing to ask


NOTHING: list[Callable[[AdminClient], object]] = [
    lambda client: client.describe_topics([]),
    lambda client: client.create_topics([]),
    lambda client: client.delete_topics([]),
    lambda client: client.create_partitions({}),
    lambda client: client.alter_partition_reassignments({}),
    lambda client: client.list_partition_reassignments([]),
    lambda client: client.elect_leaders([]),
    lambda client: client.describe_configs([]),
    lambda client: client.incremental_alter_configs({}),
    lambda client: client.describe_log_dirs([]),
    lambda client: client.alter_replica_log_dirs({}),
    lambda client: client.list_offsets([]),
    lambda client: client.replica_status([]),
]


@pytest.mark.parametrize("call", NOTHING)
def test_nothing_is_asked_about_nothing(
    call: Callable[[AdminClient], object], node: Listener, connect: Connect
) -> None:
    assert not call(connect(node))
    assert not node.asked


# The right nodes


def test_each_brokers_configuration_is_asked_of_that_very_broker(listen: Listen, connect: Connect) -> None:
    nodes = [listen() for _ in range(3)]
    join(*nodes)
    entry = ConfigEntry("k", "v", ConfigSource.DYNAMIC_BROKER)
    for number, node in enumerate(nodes):
        node.answers[api.DESCRIBE_CONFIGS] = answers.configs({ConfigResource.broker(number): [entry]}, {})
    wanted = [ConfigResource.broker(number) for number in range(3)]
    batch = connect(*nodes).describe_configs(wanted, names=["k"])
    assert dict(batch.ok) == {resource: {"k": entry} for resource in wanted}
    for number, node in enumerate(nodes):
        (message,) = node.messages(api.DESCRIBE_CONFIGS)
        assert [resource.resource_name for resource in message.resources] == [str(number)]


def test_a_change_of_a_broker_goes_to_that_broker_and_all_topics_go_together(listen: Listen, connect: Connect) -> None:
    def accept(asked: Asked) -> Reply:
        asked_for = [(ResourceType(entry.resource_type), entry.resource_name) for entry in asked.message.resources]
        return answers.configs_altered({ConfigResource(*resource): answers.FINE for resource in asked_for})

    nodes = [listen() for _ in range(2)]
    join(*nodes)
    for node in nodes:
        node.answers[api.INCREMENTAL_ALTER_CONFIGS] = accept
    change = [ConfigChange.set("k", "v")]
    changed = [ConfigResource.broker(0), ConfigResource.broker(1), ConfigResource.topic("a"), ConfigResource.topic("b")]
    batch = connect(*nodes).incremental_alter_configs(dict.fromkeys(changed, change))
    assert batch.ok.keys() == set(changed)
    asked = sorted(
        (number, sorted(resource.resource_name for resource in message.resources))
        for number, node in enumerate(nodes)
        for message in node.messages(api.INCREMENTAL_ALTER_CONFIGS)
    )
    assert [names for _, names in asked if "a" in names] == [["a", "b"]]
    assert [(number, names) for number, names in asked if "a" not in names] == [(0, ["0"]), (1, ["1"])]


def test_a_broker_that_does_not_answer_fails_only_its_own_resources(listen: Listen, connect: Connect) -> None:
    alive, dead = listen(), listen()
    join(alive, dead)
    mine, other = ConfigResource.broker(0), ConfigResource.broker(1)
    alive.answers[api.DESCRIBE_CONFIGS] = answers.configs({mine: []}, {})
    alive.answers[api.INCREMENTAL_ALTER_CONFIGS] = answers.configs_altered({mine: answers.FINE})
    dead.close()
    client = connect(alive)
    found = client.describe_configs([mine, other], timeout_ms=300)
    changed = client.incremental_alter_configs(dict.fromkeys([mine, other], ()), timeout_ms=300)
    for batch in (found, changed):
        assert list(batch.ok) == [mine]
        assert isinstance(batch.failed[other], Unreachable)


def test_copies_are_moved_by_the_brokers_that_hold_them(listen: Listen, connect: Connect) -> None:
    nodes = [listen() for _ in range(3)]
    join(*nodes)
    nodes[0].answers[api.ALTER_REPLICA_LOG_DIRS] = answers.log_dirs_altered({T0: 0, T1: 57})
    nodes[1].answers[api.ALTER_REPLICA_LOG_DIRS] = answers.log_dirs_altered({T0: 9})
    nodes[2].close()
    on = TopicPartitionReplica
    targets = {on(0, "t", 0): "/a", on(0, "t", 1): "/b", on(1, "t", 0): "/c", on(2, "t", 0): "/d"}
    batch = connect(*nodes).alter_replica_log_dirs(targets, timeout_ms=300)
    assert list(batch.ok) == [on(0, "t", 0)]
    codes = {key: error.code for key, error in batch.failed.items() if isinstance(error, Rejected)}
    assert codes == {on(0, "t", 1): 57, on(1, "t", 0): 9}
    assert isinstance(batch.failed[on(2, "t", 0)], Unreachable)
    (message,) = nodes[0].messages(api.ALTER_REPLICA_LOG_DIRS)
    assert {entry.path: [part for each in entry.topics for part in each.partitions] for entry in message.dirs} == {
        "/a": [0],
        "/b": [1],
    }


# Offsets and progress


def offsets_of(found: dict[TopicPartition, tuple[int, int]], codes: dict[TopicPartition, int]) -> Callable[..., Reply]:
    """A node's start and end offsets, told by the question's timestamp."""

    def reply(asked: Asked) -> Reply:
        (timestamp,) = {part.timestamp for entry in asked.message.topics for part in entry.partitions}
        wanted = [key for key in partitions_of(asked.message) if key in found]
        refused = {key: code for key, code in codes.items() if key in partitions_of(asked.message)}
        return answers.offsets({key: found[key][0 if timestamp == -2 else 1] for key in wanted}, refused)

    return reply


def test_offsets_are_asked_of_the_leaders(listen: Listen, connect: Connect) -> None:
    first, second = listen(), listen()
    join(first, second)
    partitions = (*topic("t", 0, leader=0).partitions, *topic("t", 1, leader=1).partitions)
    leaderless = topic("u", 0, leader=-1)
    first.answers[PAGE] = answers.topic_page([Topic("t", None, False, partitions), leaderless], {"gone": 3})
    first.answers[api.LIST_OFFSETS] = offsets_of({T0: (3, 10)}, {})
    second.answers[api.LIST_OFFSETS] = offsets_of({T1: (4, 20)}, {})
    client = connect(first)
    wanted = [T0, T1, TopicPartition("t", 9), TopicPartition("u", 0), TopicPartition("gone", 0)]
    batch = client.list_offsets(wanted)
    assert dict(batch.ok) == {T0: 10, T1: 20}
    assert "topic t has no partition 9" in str(batch.failed[wanted[2]])
    assert "u-0 has no leader" in str(batch.failed[wanted[3]])
    assert "This server does not host this topic-partition" in str(batch.failed[wanted[4]])
    assert dict(client.list_offsets([T0, T1], earliest=True).ok) == {T0: 3, T1: 4}
    assert {message.replica_id for message in first.messages(api.LIST_OFFSETS)} == {-1}


def test_offsets_of_a_leader_that_does_not_answer_fail_alone(listen: Listen, connect: Connect) -> None:
    first, dead = listen(), listen()
    join(first, dead)
    partitions = (*topic("t", 0, leader=0).partitions, *topic("t", 1, leader=1).partitions)
    first.answers[PAGE] = answers.topic_page([Topic("t", None, False, partitions)])
    first.answers[api.LIST_OFFSETS] = offsets_of({T0: (3, 10)}, {})
    dead.close()
    batch = connect(first).list_offsets([T0, T1], timeout_ms=300)
    assert dict(batch.ok) == {T0: 10}
    assert isinstance(batch.failed[T1], Unreachable)


def dirs_with(size_bytes: int) -> Message:
    copy = LogDirReplica(T0, size_bytes, 0, False)
    return answers.log_dirs([LogDir("/a", None, None, None, False, (copy,))])


def moving(listen: Listen, count: int, partition: Partition) -> list[Listener]:
    """Brokers 0, 1 … of which 0 leads the partition with offsets 100 to 1100 and 5,000 bytes."""
    nodes = [listen() for _ in range(count)]
    join(*nodes)
    nodes[0].answers |= {
        PAGE: answers.topic_page([Topic("t", None, False, (partition,))]),
        api.LIST_OFFSETS: offsets_of({T0: (100, 1100)}, {}),
        api.DESCRIBE_LOG_DIRS: dirs_with(5_000),
    }
    return nodes


def test_every_replica_is_asked_at_its_own_broker(listen: Listen, connect: Connect) -> None:
    nodes = moving(listen, 3, Partition(T0, (0, 1, 2), (0,), 0))
    nodes[1].answers |= {api.LIST_OFFSETS: offsets_of({T0: (100, 850)}, {}), api.DESCRIBE_LOG_DIRS: dirs_with(3_700)}
    nodes[2].answers |= {api.LIST_OFFSETS: offsets_of({}, {T0: 6}), api.DESCRIBE_LOG_DIRS: answers.log_dirs([])}
    found = connect(*nodes).replica_status([T0])[T0]
    taken = [status.status_time_ms for status in found]
    assert list(found) == [
        ReplicaStatus(T0, 0, True, taken[0], 100, 1100, 0, 0, 5_000),
        ReplicaStatus(T0, 1, False, taken[1], 100, 850, 250, 1_250, 3_700),
        ReplicaStatus(T0, 2, False, taken[2], -1, -1, 1_000, 5_000, 0),
    ]
    assert {message.replica_id for node in nodes for message in node.messages(api.LIST_OFFSETS)} == {-2}
    assert all([entry.topic for entry in node.messages(api.DESCRIBE_LOG_DIRS)[0].topics] == ["t"] for node in nodes)


def test_a_replica_whose_broker_hangs_is_left_out_after_one_timeout(listen: Listen, connect: Connect) -> None:
    nodes = moving(listen, 2, Partition(T0, (0, 1), (0,), 0))
    nodes[1].answers[api.LIST_OFFSETS] = Deed.STAY_SILENT
    assert [status.broker for status in connect(*nodes).replica_status([T0])[T0]] == [0]
    assert nodes[1].times_asked(api.LIST_OFFSETS) == 1


def test_a_replica_that_is_offline_is_left_out_without_asking(listen: Listen, connect: Connect) -> None:
    nodes = moving(listen, 2, Partition(T0, (0, 1), (0,), 0, offline=(1,)))
    assert [status.broker for status in connect(*nodes).replica_status([T0])[T0]] == [0]
    assert not nodes[1].asked


def test_a_partition_whose_leader_is_silent_fails(listen: Listen, connect: Connect) -> None:
    nodes = moving(listen, 2, Partition(T0, (0, 1), (0,), 0))
    nodes[0].answers[api.LIST_OFFSETS] = Deed.STAY_SILENT
    nodes[1].answers |= {api.LIST_OFFSETS: offsets_of({T0: (0, 1)}, {}), api.DESCRIBE_LOG_DIRS: dirs_with(1)}
    batch = connect(*nodes).replica_status([T0, T1])
    assert isinstance(batch.failed[T0], OutcomeUnknown)
    assert isinstance(batch.failed[T1], Rejected)


# Controllers instead of brokers


@pytest.fixture
def controllers(listen: Listen) -> list[Listener]:
    """Two controllers, of which the second is active; neither offers what only brokers have."""
    nodes = [listen() for _ in range(2)]
    quorum = join(*nodes, controller=1)
    for node in nodes:
        node.answers[api.DESCRIBE_CLUSTER] = answers.cluster_nodes(quorum, endpoint_type=2)
        del node.answers[api.METADATA]
    return nodes


def connect_controllers(connect: Connect, *nodes: Listener) -> AdminClient:
    return connect(bootstrap_controllers=tuple(node.address for node in nodes))


def test_a_client_of_controllers_sends_everything_to_the_active_one(
    controllers: list[Listener], connect: Connect
) -> None:
    idle, active = controllers
    ongoing = {T0: OngoingReassignment((1, 2), (1,), ())}
    broker = ConfigResource.broker(7)
    active.answers |= {
        ALTER: all_fine,
        api.LIST_PARTITION_REASSIGNMENTS: answers.listed(ongoing),
        api.ELECT_LEADERS: answers.elected({T0: answers.FINE}),
        api.INCREMENTAL_ALTER_CONFIGS: answers.configs_altered({broker: answers.FINE}),
        api.DESCRIBE_CONFIGS: answers.configs({broker: []}, {}),
        api.CREATE_TOPICS: answers.named(api.CREATE_TOPICS, {"t": answers.FINE}),
        api.CREATE_PARTITIONS: answers.named(api.CREATE_PARTITIONS, {"t": answers.FINE}),
        api.DELETE_TOPICS: answers.named(api.DELETE_TOPICS, {"t": answers.FINE}),
    }
    client = connect_controllers(connect, idle)
    assert client.describe_cluster().controller_id == 1
    assert client.list_partition_reassignments() == ongoing
    for batch in (
        client.alter_partition_reassignments({T0: None}),
        client.elect_leaders([T0]),
        client.incremental_alter_configs({broker: [ConfigChange.delete("k")]}),
        client.describe_configs([broker]),
        client.create_topics([NewTopic("t")]),
        client.create_partitions({"t": NewPartitions(2)}),
        client.delete_topics(["t"]),
    ):
        assert len(batch.ok) == 1
    assert {asked.api for asked in idle.asked} == {api.API_VERSIONS, api.DESCRIBE_CLUSTER}
    assert {message.endpoint_type for message in idle.messages(api.DESCRIBE_CLUSTER)} == {2}


NEED_BROKERS: dict[str, Callable[[AdminClient], object]] = {
    "list_topics": lambda client: client.list_topics(),
    "describe_topics": lambda client: client.describe_topics(["t"]),
    "describe_log_dirs": lambda client: client.describe_log_dirs(),
    "alter_replica_log_dirs": lambda client: client.alter_replica_log_dirs({TopicPartitionReplica(0, "t", 0): "/a"}),
    "list_offsets": lambda client: client.list_offsets([T0]),
    "replica_status": lambda client: client.replica_status([T0]),
}


@pytest.mark.parametrize("method", NEED_BROKERS)
def test_what_needs_brokers_is_refused_by_a_client_of_controllers(
    method: str, controllers: list[Listener], connect: Connect
) -> None:
    with pytest.raises(Unsupported, match=r"needs brokers; this client was given controllers"):
        NEED_BROKERS[method](connect_controllers(connect, *controllers))
    assert not any(node.asked for node in controllers)


def test_a_partition_that_the_answer_forgets_is_not_taken_for_done(node: Listener, connect: Connect) -> None:
    join(node)
    node.answers[ALTER] = answers.altered({T0: answers.FINE})
    batch = connect(node).alter_partition_reassignments({T0: (1,), T1: (1,)})
    assert isinstance(batch.failed[T1], ProtocolViolation)
