"""Moves and elections of a cluster in ZooKeeper mode, with its znodes looked at."""

from __future__ import annotations

import pytest

from kreassign.model import ConfigResource, ElectionType, TopicPartition
from kreassign.model.error_codes import ELECTION_NOT_NEEDED, NONE, PREFERRED_LEADER_NOT_AVAILABLE
from kreassign.model.znodes import paths
from kreassign.model.znodes.contents import format_change, format_config, format_election, parse_reassignments
from kreassign.twin.controller.leader_and_isr import ElectLeaders
from kreassign.twin.zookeeper.control_requests import PartitionMessage
from kreassign.wire import api
from tests.twin.asking import ask
from tests.twin.zookeeper.memory_tree import Candidate
from tests.twin.zookeeper.zookeeper_cluster import FOO, ZooKeeperCluster, left_by

NOT_ALIVE = "Replica assignment has brokers that are not alive."
BAR = TopicPartition("bar", 0)


@pytest.fixture
def cluster() -> ZooKeeperCluster:
    return ZooKeeperCluster([1, 2, 3]).begin()


def test_example_of_kip_455_from_1_2_3_to_4_3_2(cluster: ZooKeeperCluster) -> None:
    assert cluster.alter([4, 3, 2]) == (0, None)
    assert cluster.lists == ((4, 3, 2, 1), (4,), (1,))
    cluster.settle()
    assert cluster.lists == ((4, 3, 2), (), ())
    assert cluster.state[0] == 4
    assert cluster.state[2] == {4, 3, 2}


def test_example_of_kip_455_on_the_way_to_3_4_5_and_cancelled(cluster: ZooKeeperCluster) -> None:
    cluster.alter([3, 4, 5])
    assert cluster.lists == ((3, 4, 5, 1, 2), (4, 5), (1, 2))
    assert cluster.alter(None) == (0, None)
    assert set(cluster.lists[0]) == {1, 2, 3}
    assert cluster.lists[1:] == ((), ())
    assert cluster.state[2] == {1, 2, 3}


@pytest.mark.parametrize(
    ("down", "target", "moving", "restored"),
    [
        (2, [3, 4, 5], ((3, 4, 5, 1, 2), (4, 5), (1, 2)), (3, 1, 2)),
        (1, [3, 4, 5], ((3, 4, 5, 1, 2), (4, 5), (1, 2)), (3, 1, 2)),
        (2, [1, 2], ((1, 2, 3), (), (3,)), (1, 2, 3)),
        (3, [3], ((3, 1, 2), (), (1, 2)), (3, 1, 2)),
    ],
    ids=["a replica that goes is down", "the leader was down", "it only removes", "it removes all in sync"],
)
def test_a_cancel_with_an_original_down_ends_the_move_at_once(
    cluster: ZooKeeperCluster,
    down: int,
    target: list[int],
    moving: tuple[tuple[int, ...], ...],
    restored: tuple[int, ...],
) -> None:
    cluster.twin.crash(down)
    cluster.twin.advance(60_000)
    cluster.alter(target)
    assert cluster.lists == moving
    batches: list[tuple[PartitionMessage, ...]] = []
    cluster.controller.on_messages = batches.append
    assert cluster.alter(None) == (0, None)
    assert cluster.lists == (restored, (), ())
    assert cluster.state[2] == {1, 2, 3} - {down}
    last = batches[-1][-1]  # to brokers without a replica: they show the new list, too
    assert (last.replicas, last.adding, last.removing, last.recipients) == (restored, (), (), ())
    assert cluster.alter(None) == (85, "No partition reassignment is in progress.")
    cluster.twin.start(down)
    cluster.settle()
    assert (cluster.lists, cluster.state[2]) == ((restored, (), ()), {1, 2, 3})


def test_edge_case_of_kip_455_with_both_apis_and_a_failover() -> None:
    """As shipped: the request takes its partition out of the znode, so that the next controller goes on with it.

    The document leaves this case open: there the next controller moves the partition as the znode says.
    """
    first = ZooKeeperCluster([1, 2, 3], others={"bar": [[1, 2]]}).begin()
    first.submit({FOO: (4, 5, 6), BAR: (3, 4)})
    first.alter([0, 1, 2])
    assert parse_reassignments(first.tree.znodes[paths.REASSIGN_PARTITIONS].content) == {BAR: (3, 4)}
    second = ZooKeeperCluster(tree=left_by(first), others={"bar": [[1, 2]]}).begin()
    assert second.lists == ((0, 1, 2, 3), (0,), (3,))
    second.settle()
    assert second.lists == ((0, 1, 2), (), ())
    assert second.log.cache.lists(BAR).replicas == (3, 4)
    assert paths.REASSIGN_PARTITIONS not in second.tree.znodes


def test_the_last_submission_prevails_whichever_way_it_came(cluster: ZooKeeperCluster) -> None:
    cluster.submit({FOO: (4, 5, 6)})
    cluster.alter([3, 4, 5])
    assert paths.REASSIGN_PARTITIONS not in cluster.tree.znodes
    assert cluster.lists == ((3, 4, 5, 1, 2), (4, 5), (1, 2))
    cluster.submit({FOO: (4, 5, 6)})
    assert cluster.lists == ((4, 5, 6, 3, 1, 2), (4, 5, 6), (3, 1, 2))


def test_a_move_raises_the_leader_epoch_at_its_start_and_end(cluster: ZooKeeperCluster) -> None:
    cluster.alter([4, 5, 6])
    assert cluster.state[1] == 1
    cluster.settle()
    assert cluster.state == (4, 5, {4, 5, 6})


def test_the_topic_znode_shrinks_between_the_isr_and_the_entry() -> None:
    cluster = ZooKeeperCluster([1, 2]).begin()
    cluster.submit({FOO: (3, 2)})
    cluster.settle()
    written = [write.path for writes in cluster.tree.log[-3:] for write in writes]
    assert written == [paths.partition_state_path(FOO), paths.topic_path("foo"), paths.REASSIGN_PARTITIONS]


def test_brokers_are_told_what_the_table_of_the_phases_says(cluster: ZooKeeperCluster) -> None:
    batches: list[tuple[PartitionMessage, ...]] = []
    cluster.controller.on_messages = batches.append
    cluster.alter([4, 5, 6])
    cluster.settle()
    told = [[(one.leader, set(one.isr), one.recipients, one.stopped) for one in batch] for batch in batches]
    removed = (1, 2, 3)
    assert told == [
        [(1, {1, 2, 3}, (1, 2, 3), ()), (1, {1, 2, 3}, (4, 5, 6), ())],
        *([(1, {1, 2, 3}, (broker,), ())] for broker in (4, 5, 6)),
        [(1, {1, 2, 3, 4}, (), ())],
        [(1, {1, 2, 3, 4, 5}, (), ())],
        [(1, {1, 2, 3, 4, 5, 6}, (), ())],
        [(4, {1, 2, 3, 4, 5, 6}, (4, 5, 6), ())],
        [
            (4, {1, 2, 3, 4, 5, 6}, (), ((1, False),)),
            (4, {2, 3, 4, 5, 6}, (), ((2, False),)),
            (4, {3, 4, 5, 6}, (), ((3, False),)),
            (4, {4, 5, 6}, (4, 5, 6), ()),
        ],
        [(4, {4, 5, 6}, (), tuple((broker, True) for broker in removed))],
        [(4, {4, 5, 6}, (), ())],
    ]
    assert [{one.replicas for one in batch} for batch in batches[7:]] == [{(4, 5, 6)}] * 4


def test_an_override_starts_from_the_originals_and_drops_additions() -> None:
    cluster = ZooKeeperCluster([0]).begin()
    cluster.alter([1])
    cluster.alter([2])
    assert cluster.lists == ((2, 0), (2,), (0,))
    cluster.alter([0])
    assert cluster.lists == ((0,), (), ())


@pytest.mark.parametrize(("target", "text"), [
    ([], "Empty replica list specified in partition reassignment."),
    ([0, 0, 1], "Duplicate replica ids in partition reassignment replica list: ArrayBuffer(0, 0, 1)"),
    ([0, -1], "Invalid broker id in replica list: ArrayBuffer(0, -1)"),
    ([1, 9], f"{NOT_ALIVE} Replica list: ArrayBuffer(9), live broker list: HashSet(0, 1, 2, 3, 4, 5, 6)"),
])  # fmt: skip
def test_a_target_that_makes_no_sense_is_refused_in_kafkas_words(target: list[int], text: str) -> None:
    assert ZooKeeperCluster().begin().alter(target) == (39, text)


def test_unknown_partitions_and_idle_ones_are_refused() -> None:
    cluster = ZooKeeperCluster().begin()
    assert cluster.alter([1], "nope") == (3, "The partition does not exist.")
    assert cluster.alter(None, "nope") == (85, "No partition reassignment is in progress.")
    assert cluster.alter(None) == (85, "No partition reassignment is in progress.")


def test_entries_of_unknown_partitions_are_taken_out_of_the_znode() -> None:
    cluster = ZooKeeperCluster().begin()
    cluster.submit({BAR: (1, 2), FOO: (4, 5)})
    assert parse_reassignments(cluster.tree.znodes[paths.REASSIGN_PARTITIONS].content) == {FOO: (4, 5)}
    cluster.settle()
    assert paths.REASSIGN_PARTITIONS not in cluster.tree.znodes


def test_an_entry_that_is_so_already_is_done_at_once() -> None:
    cluster = ZooKeeperCluster().begin()
    cluster.submit({FOO: (1, 2, 3)})
    assert paths.REASSIGN_PARTITIONS not in cluster.tree.znodes


def test_an_entry_may_name_a_broker_that_is_not_there_and_waits_for_it() -> None:
    cluster = ZooKeeperCluster([0, 1]).begin()
    cluster.submit({FOO: (0, 9)})
    cluster.settle()
    assert cluster.lists == ((0, 9, 1), (9,), (1,))


def test_poison_in_the_znode_is_taken_out_and_told() -> None:
    cluster = ZooKeeperCluster().begin()
    cluster.tree.put(
        paths.REASSIGN_PARTITIONS, b'{"version":1,"partitions":[{"topic":"foo","partition":0,"replicas":[]}]}'
    )
    cluster.controller.process_changes()
    assert cluster.lists == ((1, 2, 3), (), ())
    assert paths.REASSIGN_PARTITIONS not in cluster.tree.znodes
    assert "no controller stays in office" in cluster.controller.notes[0]


def test_a_malformed_znode_stays_and_does_no_harm() -> None:
    cluster = ZooKeeperCluster().begin()
    cluster.tree.put(paths.REASSIGN_PARTITIONS, b"{bad")
    cluster.controller.process_changes()
    cluster.controller.process_changes()
    assert cluster.tree.znodes[paths.REASSIGN_PARTITIONS].content == b"{bad"
    assert len(cluster.controller.notes) == 1
    assert cluster.alter([4, 5, 6]) == (0, None)


def test_edits_of_a_znode_that_is_there_are_not_looked_at() -> None:
    cluster = ZooKeeperCluster().begin()
    cluster.submit({FOO: (1, 9)})
    cluster.submit({FOO: (1, 4)})
    assert cluster.lists == ((1, 9, 2, 3), (9,), (2, 3))


def test_an_election_znode_is_done_and_deleted_whatever_is_in_it(cluster: ZooKeeperCluster) -> None:
    cluster.alter([2, 1, 3])
    assert cluster.state[0] == 1
    cluster.tree.put(paths.PREFERRED_REPLICA_ELECTION, format_election([FOO, BAR]))
    cluster.controller.process_changes()
    assert cluster.state[0] == 2
    assert paths.PREFERRED_REPLICA_ELECTION not in cluster.tree.znodes
    cluster.tree.put(paths.PREFERRED_REPLICA_ELECTION, b"{bad")
    cluster.controller.process_changes()
    assert paths.PREFERRED_REPLICA_ELECTION not in cluster.tree.znodes


def test_the_election_znode_asks_for_preferred_leaders_only(cluster: ZooKeeperCluster) -> None:
    for broker in (1, 2, 3):
        cluster.twin.stop(broker)
    cluster.twin.start(1)
    cluster.settle()
    assert cluster.state == (-1, 3, {3})
    cluster.tree.put(paths.PREFERRED_REPLICA_ELECTION, format_election([FOO]))
    cluster.controller.process_changes()
    assert paths.PREFERRED_REPLICA_ELECTION not in cluster.tree.znodes
    assert cluster.state == (-1, 3, {3})
    assert cluster.elect(ElectionType.PREFERRED)[0] == PREFERRED_LEADER_NOT_AVAILABLE
    assert cluster.state == (-1, 3, {3})
    assert cluster.elect(ElectionType.UNCLEAN)[0] == NONE
    assert (cluster.state[0], cluster.state[2]) == (1, {1})
    assert cluster.elect(ElectionType.UNCLEAN)[0] == ELECTION_NOT_NEEDED


def test_elections_are_answered_in_the_words_of_this_mode(cluster: ZooKeeperCluster) -> None:
    answer = cluster.controller.elect_leaders(ElectLeaders(0, (("foo", (0,)), ("nope", (0,)))))
    assert [one.outcomes[0][1].code for one in answer.topics] == [84, 3]
    assert answer.topics[1].outcomes[0][1].message == "The partition does not exist."
    assert cluster.controller.elect_leaders(ElectLeaders(0, None)).topics == ()
    strange = cluster.controller.elect_leaders(ElectLeaders(2, (("foo", (0,)),)))
    assert (strange.outcome.code, strange.topics[0].outcomes[0][1].code) == (-1, -1)


@pytest.mark.parametrize("timeout_ms", [0, -1])
def test_an_election_without_time_is_held_and_answered_as_late(cluster: ZooKeeperCluster, timeout_ms: int) -> None:
    """The controller holds it whatever the time; its own broker does not show the new leader at once."""
    cluster.alter([2, 1, 3])
    asked = [{"topic": "foo", "partitions": [0]}, {"topic": "nope", "partitions": [0]}]
    answer = ask(
        cluster.twin, api.ELECT_LEADERS, 2, node=0, election_type=0, topic_partitions=asked, timeout_ms=timeout_ms
    )
    results = [one.partition_result[0] for one in answer.replica_election_results]
    assert (answer.error_code, [(one.error_code, one.error_message) for one in results]) == (
        0, [(7, None), (3, "The partition does not exist.")],
    )  # fmt: skip
    assert cluster.state[0] == 2


def test_an_election_asked_for_twice_is_answered_once(cluster: ZooKeeperCluster) -> None:
    cluster.alter([2, 1, 3])
    asked = [
        {"topic": topic, "partitions": numbers} for topic, numbers in (("foo", [0, 0]), ("nope", []), ("foo", [0]))
    ]
    answer = ask(cluster.twin, api.ELECT_LEADERS, 2, node=0, election_type=0, topic_partitions=asked, timeout_ms=1_000)
    ((topic, outcomes),) = [(one.topic, one.partition_result) for one in answer.replica_election_results]
    assert (topic, [(one.partition_id, one.error_code) for one in outcomes]) == ("foo", [(0, 0)])


def test_throttles_that_a_tool_writes_are_learnt_from_the_notification() -> None:
    cluster = ZooKeeperCluster().begin()
    owner = ConfigResource.broker(1)
    cluster.tree.put(paths.config_path(owner), format_config({"leader.replication.throttled.rate": "1000"}))
    cluster.controller.process_changes()
    assert cluster.twin.metadata.config(owner, "leader.replication.throttled.rate") is None
    cluster.tree.put(f"{paths.CONFIG_CHANGE_PREFIX}9000000000", format_change(owner))
    cluster.controller.process_changes()
    assert cluster.twin.metadata.config(owner, "leader.replication.throttled.rate") == "1000"


def test_throttles_set_through_any_broker_are_written_and_taken_back() -> None:
    cluster = ZooKeeperCluster().begin()
    path, key = paths.config_path(ConfigResource.broker(1)), "leader.replication.throttled.rate"

    def alter(operation: int, value: str | None) -> None:
        config = {"name": key, "config_operation": operation, "value": value}
        entry = {"resource_type": 4, "resource_name": "1", "configs": [config]}
        ask(cluster.twin, api.INCREMENTAL_ALTER_CONFIGS, 1, node=1, resources=[entry], validate_only=False)

    alter(0, "1000")
    assert cluster.tree.znodes[path].content == format_config({key: "1000"})
    alter(1, None)
    assert cluster.tree.znodes[path].content == b'{"version":1,"config":{}}'
    changes = [
        znode.content for name, znode in cluster.tree.znodes.items() if name.startswith(paths.CONFIG_CHANGE_PREFIX)
    ]
    assert changes == [b'{"version":2,"entity_path":"brokers/1"}'] * 2


def test_brokers_that_are_not_the_controller_refuse() -> None:
    cluster = ZooKeeperCluster().begin()
    refused = ask(cluster.twin, api.ALTER_PARTITION_REASSIGNMENTS, 0, node=1, timeout_ms=1, topics=[])
    assert (refused.error_code, refused.error_message) == (41, "This is not the correct controller for this cluster.")
    assert ask(cluster.twin, api.LIST_PARTITION_REASSIGNMENTS, 0, node=1, timeout_ms=1, topics=None).error_code == 41
    assert ask(cluster.twin, api.METADATA, 5, node=1, topics=[]).controller_id == 0


def test_the_api_shows_a_move_that_a_znode_started() -> None:
    cluster = ZooKeeperCluster([1, 2]).begin()
    cluster.submit({FOO: (3, 2)})
    listed = ask(cluster.twin, api.LIST_PARTITION_REASSIGNMENTS, 0, node=0, timeout_ms=1, topics=None)
    (found,) = listed.topics[0].partitions
    assert (found.replicas, found.adding_replicas, found.removing_replicas) == ([3, 2, 1], [3], [1])


def test_a_move_asked_for_twice_is_listed_once() -> None:
    cluster = ZooKeeperCluster([1, 2]).begin()
    cluster.alter([3, 2])
    asked = [{"name": "foo", "partition_indexes": [0, 0, 7]}] * 2
    (topic,) = ask(cluster.twin, api.LIST_PARTITION_REASSIGNMENTS, 0, node=0, timeout_ms=1, topics=asked).topics
    assert [one.partition_index for one in topic.partitions] == [0]


# Who is in office


def test_a_deposed_controller_writes_nothing(cluster: ZooKeeperCluster) -> None:
    cluster.candidate.resign()
    assert Candidate(cluster.tree).elect(5, 0) == 2
    before = dict(cluster.tree.znodes)
    assert cluster.alter([4, 5, 6]) == (41, "This is not the correct controller for this cluster.")
    cluster.settle()
    assert cluster.tree.znodes == before
    assert cluster.twin.controller_id == -1


def test_the_znode_prevails_over_the_api_when_another_takes_over() -> None:
    first = ZooKeeperCluster([1, 2, 3]).begin()
    first.alter([1, 4])
    second = ZooKeeperCluster([1, 2, 3], tree=left_by(first))
    second.tree.put(
        paths.REASSIGN_PARTITIONS, b'{"version":1,"partitions":[{"topic":"foo","partition":0,"replicas":[1,5]}]}'
    )
    assert second.begin().lists == ((1, 5, 2, 3), (5,), (2, 3))


def test_a_controller_goes_on_after_its_session_has_ended(cluster: ZooKeeperCluster) -> None:
    cluster.alter([4, 5, 6])
    left_by(cluster)
    cluster.candidate.session_ended = True
    cluster.controller.process_changes()
    assert cluster.tree.znodes[paths.CONTROLLER_EPOCH].content == b"2"
    assert set(cluster.candidate.children(paths.BROKER_IDS)) == set("0123456")
    assert cluster.settle().lists == ((4, 5, 6), (), ())


def test_the_next_broker_takes_over_when_the_controller_is_told_to(cluster: ZooKeeperCluster) -> None:
    cluster.alter([4, 5, 6])
    cluster.twin.fail_over()
    assert cluster.twin.controller_id == 1
    assert cluster.settle().lists == ((4, 5, 6), (), ())
