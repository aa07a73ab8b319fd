"""Topics that are created, extended and deleted by writing znodes, and what brokers are told of all that is no move."""

from __future__ import annotations

import json

import pytest

from kreassign.errors import ProtocolViolation
from kreassign.model import ConfigResource, ElectionType, TopicPartition
from kreassign.model.znodes import paths
from kreassign.model.znodes.contents import format_config, parse_partition_state, parse_topic
from kreassign.twin.controller.reassignments import list_reassignments
from kreassign.twin.controller.topics import CreatePartitions, MorePartitions
from kreassign.twin.zookeeper.control_requests import PartitionMessage
from kreassign.wire import api
from tests.twin.asking import ask
from tests.twin.zookeeper.memory_tree import StoppedError
from tests.twin.zookeeper.zookeeper_cluster import FOO, ZooKeeperCluster, left_by

NEW = TopicPartition("new", 0)


def put_topic(cluster: ZooKeeperCluster, name: str, partitions: dict[str, list[int]]) -> None:
    """Write a topic as `kafka-topics --zookeeper` of Kafka before 2.4 does."""
    content = {"version": 1, "partitions": partitions}
    cluster.tree.put(paths.topic_path(name), json.dumps(content).encode())
    cluster.controller.process_changes()


def state(cluster: ZooKeeperCluster, key: TopicPartition) -> tuple[int, int, tuple[int, ...]]:
    """Leader, leader epoch and ISR in the state znode of a partition."""
    found = parse_partition_state(key, cluster.tree.znodes[paths.partition_state_path(key)].content)
    return found.leader, found.leader_epoch, tuple(found.isr)


def told_by(cluster: ZooKeeperCluster) -> list[tuple[PartitionMessage, ...]]:
    """Requests to brokers from now on, batch by batch."""
    batches: list[tuple[PartitionMessage, ...]] = []
    cluster.controller.on_messages = batches.append
    return batches


@pytest.fixture
def cluster() -> ZooKeeperCluster:
    return ZooKeeperCluster([1, 2]).begin()


def test_a_topic_that_a_tool_writes_gets_an_id_leaders_and_its_settings() -> None:
    cluster = ZooKeeperCluster().begin()
    batches = told_by(cluster)
    owner = ConfigResource.topic("new")
    cluster.tree.put(paths.config_path(owner), format_config({"retention.ms": "1000"}))
    put_topic(cluster, "new", {"0": [2, 3], "1": [4, 5]})
    assert state(cluster, NEW) == (2, 0, (2, 3))
    znode = parse_topic("new", cluster.tree.znodes[paths.topic_path("new")].content)
    assert (dict(znode.partitions), znode.topic_id is not None) == ({0: (2, 3), 1: (4, 5)}, True)
    assert cluster.twin.metadata.config(owner, "retention.ms") == "1000"
    ((first, second),) = batches
    assert (first.recipients, first.is_new, second.recipients, second.is_new) == ((2, 3), True, (4, 5), True)
    assert cluster.alter([5, 6], "new") == (0, None)


def test_a_topic_can_be_extended_by_writing_its_znode_even_in_a_move(cluster: ZooKeeperCluster) -> None:
    cluster.alter([3, 4])
    znode = json.loads(cluster.tree.znodes[paths.topic_path("foo")].content)
    znode["partitions"]["1"] = [5, 6]
    cluster.tree.put(paths.topic_path("foo"), json.dumps(znode).encode())
    cluster.controller.process_changes()
    assert state(cluster, TopicPartition("foo", 1)) == (5, 0, (5, 6))
    assert cluster.settle().lists == ((3, 4), (), ())


def test_partitions_of_dead_brokers_get_the_first_one_back_as_leader() -> None:
    cluster = ZooKeeperCluster().begin()
    cluster.twin.stop(5)
    put_topic(cluster, "new", {"0": [5], "1": [6, 5]})
    assert paths.partition_state_path(NEW) not in cluster.tree.znodes
    assert state(cluster, TopicPartition("new", 1)) == (6, 0, (6,))
    cluster.twin.start(5)
    cluster.settle()
    assert state(cluster, NEW) == (5, 0, (5,))


def test_a_topic_below_delete_topics_is_deleted_with_its_entry(cluster: ZooKeeperCluster) -> None:
    cluster.submit({FOO: (3, 4)})
    batches = told_by(cluster)
    cluster.tree.put(f"{paths.DELETE_TOPICS}/foo", b"")
    cluster.tree.put(f"{paths.DELETE_TOPICS}/nope", b"")
    cluster.controller.process_changes()
    assert not [path for path in cluster.tree.znodes if "foo" in path or "nope" in path]
    assert paths.REASSIGN_PARTITIONS not in cluster.tree.znodes
    assert "foo" not in cluster.twin.metadata.topics
    assert [(one.leader, one.stopped) for (one,) in batches] == [
        (-2, ()),
        (-2, ((3, False), (4, False), (1, False), (2, False))),
        (-2, ((3, True), (4, True), (1, True), (2, True))),
    ]
    cluster.settle()


def test_a_topic_being_deleted_is_not_moved_led_or_extended() -> None:
    cluster = ZooKeeperCluster([1, 2], others={"bar": [[1, 2]]}).begin()
    cluster.submit({FOO: (3, 4)})
    cluster.tree.put(f"{paths.DELETE_TOPICS}/foo", b"")
    cluster.candidate.writes_left = 2  # its znodes, and its entry in the reassignment znode; not yet the order itself
    with pytest.raises(StoppedError):
        cluster.controller.process_changes()
    cluster.candidate.writes_left = None
    assert f"{paths.DELETE_TOPICS}/foo" in cluster.tree.znodes
    not_there = (3, "The partition does not exist.")
    assert [cluster.alter(target) for target in ([1, 2], [4, 3, 2])] == [not_there, not_there]
    assert cluster.alter(None) == (85, "No partition reassignment is in progress.")
    assert cluster.elect(ElectionType.PREFERRED) == cluster.elect(ElectionType.UNCLEAN) == not_there
    growth = CreatePartitions((MorePartitions("foo", 5),))
    assert [outcome.code for _, outcome in cluster.controller.create_partitions(growth)] == [3]
    assert not list_reassignments(cluster.twin.metadata)
    cluster.controller.process_changes()
    assert not [path for path in cluster.tree.znodes if "foo" in path]
    assert cluster.alter([3, 4], "bar") == (0, None)


def test_a_topic_whose_znodes_are_deleted_is_forgotten(cluster: ZooKeeperCluster) -> None:
    for path in [one for one in cluster.tree.znodes if one.startswith(paths.topic_path("foo"))]:
        del cluster.tree.znodes[path]
    cluster.controller.process_changes()
    assert "foo" not in cluster.twin.metadata.topics
    put_topic(cluster, "foo", {"0": [4]})
    assert cluster.state == (4, 0, {4})


def test_a_topic_that_cannot_be_read_is_told_of_and_harms_no_other(cluster: ZooKeeperCluster) -> None:
    cluster.tree.put(paths.topic_path("bad"), b"{bad")
    put_topic(cluster, "new", {"0": [4]})
    assert state(cluster, NEW) == (4, 0, (4,))
    assert any("/brokers/topics/bad" in note for note in cluster.controller.notes)


def test_who_takes_over_makes_what_its_predecessor_was_about_to_make() -> None:
    first = ZooKeeperCluster().begin()
    first.tree.put(paths.topic_path("new"), b'{"version":1,"partitions":{"0":[2,3]}}')
    first.tree.put(f"{paths.DELETE_TOPICS}/foo", b"")
    second = ZooKeeperCluster(tree=left_by(first)).begin()
    assert state(second, NEW) == (2, 0, (2, 3))
    assert paths.topic_path("foo") not in second.tree.znodes


def put_move_of_kip_455(cluster: ZooKeeperCluster) -> None:
    """The znode that KIP-455 shows, of a topic that no controller has made partitions of."""
    content = {
        "version": 2,
        "partitions": {"0": [1, 4, 2, 3]},
        "addingReplicas": {"0": [4]},
        "removingReplicas": {"0": [1]},
    }
    cluster.tree.put(paths.topic_path("new"), json.dumps(content).encode())


def moving(cluster: ZooKeeperCluster) -> tuple[tuple[int, ...], bool]:
    """The replicas of new-0 in its topic's znode, and whether they are being changed."""
    znode = parse_topic("new", cluster.tree.znodes[paths.topic_path("new")].content)
    return tuple(znode.partitions[0]), znode.ongoing(0) is not None


def test_a_new_topic_in_a_move_is_made_and_moved_by_who_takes_over() -> None:
    first = ZooKeeperCluster().begin()
    put_move_of_kip_455(first)
    second = ZooKeeperCluster(tree=left_by(first)).begin()
    assert moving(second.settle()) == ((4, 2, 3), False)
    assert state(second, NEW)[0] in {4, 2, 3}


def test_a_new_topic_in_a_move_is_made_and_moved_when_it_is_seen() -> None:
    cluster = ZooKeeperCluster().begin()
    put_move_of_kip_455(cluster)
    cluster.controller.process_changes()
    assert moving(cluster.settle()) == ((4, 2, 3), False)


def test_a_new_topic_in_a_move_waits_for_a_broker_and_stops_no_controller() -> None:
    cluster = ZooKeeperCluster([5, 6]).begin()
    for broker in (1, 2, 3, 4):
        cluster.twin.stop(broker)
    put_move_of_kip_455(cluster)
    cluster.twin.fail_over()
    assert moving(cluster.settle()) == ((1, 4, 2, 3), True)
    for broker in (1, 2, 3, 4):
        cluster.twin.start(broker)
    assert moving(cluster.settle()) == ((4, 2, 3), False)


def test_topics_created_and_deleted_by_requests_leave_their_znodes() -> None:
    cluster = ZooKeeperCluster().begin()
    topic = {"name": "new", "num_partitions": -1, "replication_factor": -1, "configs": []}
    assigned = [{"partition_index": 0, "broker_ids": [2, 3]}]
    ask(cluster.twin, api.CREATE_TOPICS, 5, node=0, timeout_ms=1000, validate_only=False,
        topics=[{**topic, "assignments": assigned}])  # fmt: skip
    assert state(cluster, NEW) == (2, 0, (2, 3))
    ask(cluster.twin, api.DELETE_TOPICS, 4, node=0, timeout_ms=1000, topic_names=["new"])
    assert not [path for path in cluster.tree.znodes if "new" in path and "config_change" not in path]


# Brokers


def test_a_broker_that_goes_leaves_the_isr_and_hands_over_its_leads() -> None:
    cluster = ZooKeeperCluster([1, 2, 3]).begin()
    batches = told_by(cluster)
    cluster.twin.crash(3)
    cluster.settle()
    assert cluster.state == (1, 1, {1, 2})
    cluster.twin.crash(1)
    cluster.settle()
    assert cluster.state == (2, 2, {2})
    assert [(one.leader, one.recipients) for (one,) in batches] == [(1, (1, 2)), (2, (2,))]


def test_a_broker_that_is_back_joins_under_the_same_leader_epoch(cluster: ZooKeeperCluster) -> None:
    cluster.twin.crash(2)
    cluster.settle()
    batches = told_by(cluster)
    cluster.twin.start(2)
    cluster.settle()
    assert [(one.recipients, set(one.isr)) for (one,) in batches] == [((2,), {1}), ((), {1, 2})]
    assert cluster.state == (1, 1, {1, 2})


def test_a_preferred_election_is_told_to_all_replicas(cluster: ZooKeeperCluster) -> None:
    cluster.alter([2, 1])
    batches = told_by(cluster)
    cluster.tree.put(paths.PREFERRED_REPLICA_ELECTION, b'{"version":1,"partitions":[{"topic":"foo","partition":0}]}')
    cluster.controller.process_changes()
    assert [(one.leader, one.recipients) for (one,) in batches] == [(2, (2, 1))]


# Office


def test_a_controller_znode_deleted_by_hand_makes_for_another_election() -> None:
    cluster = ZooKeeperCluster([1, 2, 3]).begin()
    cluster.alter([4, 5, 6])
    del cluster.tree.znodes[paths.CONTROLLER]
    batches = told_by(cluster)
    cluster.controller.process_changes()
    assert cluster.tree.znodes[paths.CONTROLLER_EPOCH].content == b"2"
    # Everything is told anew, as the deposed controller wrote it; then the move goes on.
    assert [[one.controller_epoch for one in batch] for batch in batches] == [[], [1], [2, 2], [2], [2], [2]]
    assert cluster.settle().lists == ((4, 5, 6), (), ())


def test_a_controller_that_sees_another_in_office_leaves_its_own() -> None:
    cluster = ZooKeeperCluster([1, 2, 3]).begin()
    cluster.candidate.resign()
    stranger = type(cluster.candidate)(cluster.tree)
    assert stranger.elect(5, 0) == 2
    cluster.controller.process_changes()
    assert cluster.twin.controller_id == -1
    stranger.resign()
    cluster.controller.process_changes()
    assert (cluster.twin.controller_id, cluster.tree.znodes[paths.CONTROLLER_EPOCH].content) == (0, b"3")


def test_a_deposed_controller_refuses_every_request_to_write(cluster: ZooKeeperCluster) -> None:
    cluster.candidate.resign()
    stranger = type(cluster.candidate)(cluster.tree)
    assert stranger.elect(5, 0) == 2
    before = dict(cluster.tree.znodes)
    wanted = {"name": "foo", "count": 2, "assignments": None}
    (result,) = ask(cluster.twin, api.CREATE_PARTITIONS, 3, node=0, topics=[wanted], timeout_ms=1000).results
    assert result.error_code == 41
    config = {"name": "retention.ms", "config_operation": 0, "value": "1"}
    entry = {"resource_type": 2, "resource_name": "foo", "configs": [config]}
    with pytest.raises(ProtocolViolation):
        ask(cluster.twin, api.INCREMENTAL_ALTER_CONFIGS, 1, node=0, resources=[entry], validate_only=False)
    assert cluster.tree.znodes == before


def test_a_move_ends_although_an_operator_has_written_the_topic_meanwhile(cluster: ZooKeeperCluster) -> None:
    cluster.alter([3, 4])
    path = paths.topic_path("foo")
    cluster.tree.put(path, cluster.tree.znodes[path].content)
    assert cluster.settle().lists == ((3, 4), (), ())


def test_a_controller_is_elected_although_its_session_ends_meanwhile(cluster: ZooKeeperCluster) -> None:
    cluster.candidate.session_ended = True
    cluster.controller.process_changes()
    cluster.candidate.session_ended = True
    cluster.controller.process_changes()
    assert cluster.twin.controller_id == 0


def test_a_broker_that_is_down_is_not_elected() -> None:
    cluster = ZooKeeperCluster([1, 2, 3]).begin()
    cluster.twin.crash(0)
    del cluster.tree.znodes[paths.CONTROLLER]
    cluster.controller.process_changes()
    assert cluster.twin.controller_id == 1


@pytest.mark.parametrize(
    "names", [("adding_replicas", "removing_replicas"), ("addingReplicas", "removingReplicas")], ids=["snake", "camel"]
)
def test_a_move_in_a_znode_of_version_2_is_taken_over_and_ended(names: tuple[str, str]) -> None:
    first = ZooKeeperCluster([1, 2]).begin()
    first.alter([3, 4])
    tree = left_by(first)
    path = paths.topic_path("foo")
    znode = json.loads(tree.znodes[path].content)
    older = {"version": 2, "partitions": znode["partitions"]}
    older |= {names[0]: znode["adding_replicas"], names[1]: znode["removing_replicas"]}
    tree.put(path, json.dumps(older).encode())
    second = ZooKeeperCluster(tree=tree).begin()
    assert second.lists == ((3, 4, 1, 2), (3, 4), (1, 2))
    assert second.settle().lists == ((3, 4), (), ())
