"""Nodes that the client asks about brokers, copies and offsets, and its reading of their answers."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from kreassign.admin import AdminClient
from kreassign.errors import InputError, OutcomeUnknown, Rejected, Unreachable, Unsupported
from kreassign.model import (
    Broker,
    Cluster,
    ConfigChange,
    ConfigEntry,
    ConfigResource,
    ConfigSource,
    LogDir,
    LogDirReplica,
    NewPartitions,
    NewTopic,
    OffsetSpec,
    OngoingReassignment,
    Partition,
    ReplicaStatus,
    ResourceType,
    Topic,
    TopicPartition,
    TopicPartitionReplica,
)
from kreassign.model.error_codes import NOT_LEADER_OR_FOLLOWER, OFFSET_NOT_AVAILABLE
from kreassign.wire import api
from kreassign.wire.api import Message
from tests.admin import answers
from tests.admin.answers import some_topic
from tests.admin.conftest import SILENCE_MS
from tests.admin.listener import Deed, Listener, Reply, in_turn, join, joined, partitions_of
from tests.wire.peer import Asked

ALTER, PAGE = api.ALTER_PARTITION_REASSIGNMENTS, api.DESCRIBE_TOPIC_PARTITIONS
T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)
Connect = Callable[..., AdminClient]
Listen = Callable[..., Listener]


def accept_all(asked: Asked) -> Reply:
    """Accept every reassignment that a request asks for."""
    return answers.altered(dict.fromkeys(partitions_of(asked), answers.FINE))


# The right nodes


def test_every_broker_is_found_by_its_id_whichever_was_asked_first(listen: Listen, connect: Connect) -> None:
    nodes = [listen() for _ in range(3)]
    join(*nodes)
    for number, node in enumerate(nodes):
        node.answers[api.DESCRIBE_LOG_DIRS] = answers.log_dirs([LogDir(f"/{number}", None, None, None, False, ())])
    for first in nodes:
        batch = connect(first).describe_log_dirs([0, 1, 2])
        assert {broker: found[0].path for broker, found in batch.ok.items()} == {0: "/0", 1: "/1", 2: "/2"}


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


def test_a_broker_gets_its_own_changes_and_topics_go_together(listen: Listen, connect: Connect) -> None:
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


def test_what_holds_for_all_brokers_any_node_takes_and_tells(listen: Listen, connect: Connect) -> None:
    node, topic, everybody = listen(), ConfigResource.topic("a"), ConfigResource.all_brokers()
    join(node)
    entry = ConfigEntry("k", "v", ConfigSource.DYNAMIC_DEFAULT_BROKER)
    node.answers[api.INCREMENTAL_ALTER_CONFIGS] = answers.configs_altered(
        dict.fromkeys([topic, everybody], answers.FINE)
    )
    node.answers[api.DESCRIBE_CONFIGS] = answers.configs({everybody: [entry]}, {})
    client = connect(node)
    change = [ConfigChange.set("k", "v")]
    assert list(client.incremental_alter_configs(dict.fromkeys([topic, everybody], change)).ok) == [topic, everybody]
    assert client.describe_configs([everybody])[everybody] == {"k": entry}
    (message,) = node.messages(api.INCREMENTAL_ALTER_CONFIGS)
    assert [resource.resource_name for resource in message.resources] == ["a", ""]


@pytest.mark.parametrize("name", ["one", "-1", "1.5", "99999999999"])
def test_a_name_that_is_no_broker_is_refused_before_anything_is_sent(
    name: str, listen: Listen, connect: Connect
) -> None:
    node = listen()
    client, wrong = connect(node), ConfigResource(ResourceType.BROKER, name)
    words = "is no broker to configure; name it by its id in digits"
    with pytest.raises(InputError, match=words):
        client.incremental_alter_configs({wrong: [ConfigChange.set("k", "v")], ConfigResource.topic("a"): []})
    with pytest.raises(InputError, match=words):
        client.describe_configs([wrong, ConfigResource.topic("a")])
    assert not node.messages(api.INCREMENTAL_ALTER_CONFIGS)
    assert not node.messages(api.DESCRIBE_CONFIGS)


def test_a_broker_that_does_not_answer_fails_only_its_own_resources(listen: Listen, connect: Connect) -> None:
    alive, dead = joined(listen)
    mine, other = ConfigResource.broker(0), ConfigResource.broker(1)
    alive.answers[api.DESCRIBE_CONFIGS] = answers.configs({mine: []}, {})
    alive.answers[api.INCREMENTAL_ALTER_CONFIGS] = answers.configs_altered({mine: answers.FINE})
    dead.close()
    client = connect(alive)
    found = client.describe_configs([mine, other])
    changed = client.incremental_alter_configs(dict.fromkeys([mine, other], ()))
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
    batch = connect(*nodes).alter_replica_log_dirs(targets)
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
        wanted = [key for key in partitions_of(asked) if key in found]
        refused = {key: code for key, code in codes.items() if key in partitions_of(asked)}
        return answers.offsets({key: found[key][0 if timestamp in (-2, -4) else 1] for key in wanted}, refused)

    return reply


def test_offsets_are_asked_of_the_leaders(listen: Listen, connect: Connect) -> None:
    first, second = joined(listen)
    partitions = (*some_topic("t", 0, leader=0).partitions, *some_topic("t", 1, leader=1).partitions)
    leaderless = some_topic("u", 0, leader=-1)
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
    assert dict(client.list_offsets([T0, T1], OffsetSpec.EARLIEST).ok) == {T0: 3, T1: 4}
    assert {message.replica_id for message in first.messages(api.LIST_OFFSETS)} == {-1}


def test_offsets_of_a_leader_that_does_not_answer_fail_alone(listen: Listen, connect: Connect) -> None:
    first, dead = joined(listen)
    partitions = (*some_topic("t", 0, leader=0).partitions, *some_topic("t", 1, leader=1).partitions)
    first.answers[PAGE] = answers.topic_page([Topic("t", None, False, partitions)])
    first.answers[api.LIST_OFFSETS] = offsets_of({T0: (3, 10)}, {})
    dead.close()
    batch = connect(first).list_offsets([T0, T1])
    assert dict(batch.ok) == {T0: 10}
    assert isinstance(batch.failed[T1], Unreachable)


def test_offsets_of_a_partition_whose_leader_just_changed_are_asked_again(listen: Listen, connect: Connect) -> None:
    first, second = joined(listen)
    stays = some_topic("t", 0, leader=0).partitions
    before, after = (
        [Topic("t", None, False, (*stays, *some_topic("t", 1, leader=leader).partitions))] for leader in (0, 1)
    )
    first.answers[PAGE] = in_turn(answers.topic_page(before), answers.topic_page(before), answers.topic_page(after))
    first.answers[api.LIST_OFFSETS] = offsets_of({T0: (3, 10)}, {T1: NOT_LEADER_OR_FOLLOWER})
    ready = offsets_of({T1: (4, 20)}, {})
    second.answers[api.LIST_OFFSETS] = in_turn(offsets_of({}, {T1: OFFSET_NOT_AVAILABLE}), ready)
    assert dict(connect(first, second).list_offsets([T0, T1]).ok) == {T0: 10, T1: 20}
    asked = [
        [partitions_of(asked) for asked in node.asked if asked.api is api.LIST_OFFSETS] for node in (first, second)
    ]
    assert asked == [[[T0, T1], [T1]], [[T1], [T1]]]


def test_known_partitions_are_described_again_for_a_new_leader_only(listen: Listen, connect: Connect) -> None:
    first, second = joined(listen)
    both = (*some_topic("t", 0, leader=0).partitions, *some_topic("t", 1, leader=0).partitions)
    known = {partition.topic_partition: partition for partition in both}
    first.answers[PAGE] = answers.topic_page(
        [Topic("t", None, False, (both[0], *some_topic("t", 1, leader=1).partitions))]
    )
    first.answers[api.LIST_OFFSETS] = offsets_of({T0: (3, 10)}, {T1: NOT_LEADER_OR_FOLLOWER})
    second.answers[api.LIST_OFFSETS] = offsets_of({T1: (4, 20)}, {})
    client = connect(first, second)
    assert dict(client.list_offsets([T0], known=known).ok) == {T0: 10}
    assert not [asked for node in (first, second) for asked in node.asked if asked.api is PAGE]
    assert dict(client.list_offsets([T0, T1], known=known).ok) == {T0: 10, T1: 20}
    assert [partitions_of(asked) for asked in second.asked if asked.api is api.LIST_OFFSETS] == [[T1]]


def test_a_leader_that_is_never_told_of_is_given_up_in_time(node: Listener, connect: Connect) -> None:
    node.answers[PAGE] = answers.topic_page([some_topic("t", 0, leader=0)])
    node.answers[api.LIST_OFFSETS] = offsets_of({}, {T0: NOT_LEADER_OR_FOLLOWER})
    error = connect(node).list_offsets([T0]).failed[T0]
    assert isinstance(error, Rejected)
    assert error.code == NOT_LEADER_OR_FOLLOWER
    assert node.times_asked(api.LIST_OFFSETS) > 1


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
    client = connect(*nodes, request_timeout_ms=SILENCE_MS)
    assert [status.broker for status in client.replica_status([T0])[T0]] == [0]
    assert nodes[1].times_asked(api.LIST_OFFSETS) == 1


def test_a_replica_that_is_offline_is_left_out_without_asking(listen: Listen, connect: Connect) -> None:
    nodes = moving(listen, 2, Partition(T0, (0, 1), (0,), 0, offline=(1,)))
    assert [status.broker for status in connect(*nodes).replica_status([T0])[T0]] == [0]
    assert not nodes[1].asked


def test_a_partition_whose_leader_is_silent_fails(listen: Listen, connect: Connect) -> None:
    nodes = moving(listen, 2, Partition(T0, (0, 1), (0,), 0))
    nodes[0].answers[api.LIST_OFFSETS] = Deed.STAY_SILENT
    nodes[1].answers |= {api.LIST_OFFSETS: offsets_of({T0: (0, 1)}, {}), api.DESCRIBE_LOG_DIRS: dirs_with(1)}
    batch = connect(*nodes, request_timeout_ms=SILENCE_MS).replica_status([T0, T1])
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
        ALTER: accept_all,
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
    for node in controllers:
        assert {message.endpoint_type for message in node.messages(api.DESCRIBE_CLUSTER)} == {2}


def quorum_as_seen(nodes: list[Listener], *, active: int) -> Message:
    """The answer to DescribeCluster of a controller that takes node `active` for the active one."""
    brokers = tuple(Broker(number, *node.address) for number, node in enumerate(nodes))
    return answers.cluster_nodes(Cluster("id", active, brokers), endpoint_type=2)


def test_a_client_of_controllers_lists_at_the_one_that_is_active_now(
    controllers: list[Listener], connect: Connect
) -> None:
    """An inactive controller answers a listing without an error, from what it has read: here, nothing."""
    first, second = controllers
    ongoing = {T0: OngoingReassignment((1, 2), (1,), ())}
    second.answers[api.LIST_PARTITION_REASSIGNMENTS] = answers.listed({})
    first.answers[api.LIST_PARTITION_REASSIGNMENTS] = answers.listed(ongoing)
    client = connect_controllers(connect, *controllers)
    assert client.list_partition_reassignments() == {}
    for node in controllers:
        node.answers[api.DESCRIBE_CLUSTER] = quorum_as_seen(controllers, active=0)
    assert client.list_partition_reassignments() == ongoing
    assert second.times_asked(api.LIST_PARTITION_REASSIGNMENTS) == 2, "an empty list is asked for once more"


def test_a_listing_is_asked_of_no_controller_that_only_others_call_active(
    controllers: list[Listener], connect: Connect
) -> None:
    stale, active = controllers
    stale.answers[api.DESCRIBE_CLUSTER] = in_turn(
        quorum_as_seen(controllers, active=0), quorum_as_seen(controllers, active=1)
    )
    active.answers[api.LIST_PARTITION_REASSIGNMENTS] = answers.listed({})
    assert connect_controllers(connect, stale).list_partition_reassignments() == {}
    assert not stale.times_asked(api.LIST_PARTITION_REASSIGNMENTS)


def test_a_listing_fails_while_no_controller_is_active(controllers: list[Listener], connect: Connect) -> None:
    for node in controllers:
        node.answers |= {
            api.DESCRIBE_CLUSTER: quorum_as_seen(controllers, active=-1),
            api.LIST_PARTITION_REASSIGNMENTS: answers.listed({}),
        }
    client = connect_controllers(connect, *controllers)
    with pytest.raises(Unreachable, match="no controller of the quorum is active"):
        client.list_partition_reassignments(timeout_ms=SILENCE_MS)
    assert not any(node.times_asked(api.LIST_PARTITION_REASSIGNMENTS) for node in controllers)


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
