"""The deprecated `--zookeeper` of the tools, on a twin whose controller acts on znodes in memory."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from kazoo.exceptions import ConnectionLoss

from kreassign.kafka_tools import zookeeper
from kreassign.kafka_tools.command_line import PlainError, TerseError
from kreassign.kafka_tools.preferred_replica_election import elect_through_znode
from kreassign.kafka_tools.reassign.requests import ExecuteRequest, GenerateRequest, VerifyRequest
from kreassign.kafka_tools.zookeeper import ZooKeeper
from kreassign.model import ElectionType, TopicPartition
from kreassign.model.plan import PartitionAssignment, Plan
from kreassign.model.znodes import paths
from kreassign.model.znodes.contents import format_election, format_reassignments, parse_partition_state
from kreassign.twin.controller.leader_and_isr import ElectLeaders
from kreassign.twin.zookeeper.znodes import Delete
from tests.kafka_tools.znodes import ControllerClock, KazooOnTree, Result, znodes_of
from tests.twin.zookeeper.zookeeper_cluster import FOO, ZooKeeperCluster

BAR, BAZ = TopicPartition("bar", 0), TopicPartition("baz", 0)


def plan(replicas: tuple[int, ...], key: TopicPartition = FOO) -> Plan:
    return Plan((PartitionAssignment(key, replicas),))


def request(asked: Plan, throttle: int = -1) -> ExecuteRequest:
    return ExecuteRequest(
        asked,
        is_additional=False,
        throttle=throttle,
        log_dir_throttle=-1,
        timeout_ms=10_000,
        allows_replication_factor_change=True,
    )


def execute(
    cluster: ZooKeeperCluster, replicas: tuple[int, ...], key: TopicPartition = FOO, *, throttle: int = -1
) -> None:
    zookeeper.execute(znodes_of(cluster), request(plan(replicas, key), throttle), ControllerClock(cluster))


def verify(cluster: ZooKeeperCluster, replicas: tuple[int, ...]) -> None:
    zookeeper.verify(znodes_of(cluster), VerifyRequest(plan(replicas), preserves_throttles=False))


def lines(capsys: pytest.CaptureFixture[str]) -> list[str]:
    said = capsys.readouterr()
    assert said.err == ""
    return said.out.splitlines()


def test_a_plan_is_accepted_and_verified(capsys: pytest.CaptureFixture[str]) -> None:
    cluster = ZooKeeperCluster([1, 2]).begin()
    execute(cluster, (3, 4))
    assert lines(capsys)[-1] == "Successfully started partition reassignment for foo-0"
    assert cluster.lists == ((3, 4, 1, 2), (3, 4), (1, 2))
    cluster.settle()
    verify(cluster, (3, 4))
    assert "Reassignment of partition foo-0 is completed." in lines(capsys)


def test_a_plan_for_a_topic_that_is_being_deleted_starts_no_move(capsys: pytest.CaptureFixture[str]) -> None:
    """`/admin/delete_topics` names the topic; its own znode is still there, so that the tool finds the partition."""
    cluster = ZooKeeperCluster([1, 2], others={"bar": [[5, 6]]}).begin()
    cluster.tree.put(f"{paths.DELETE_TOPICS}/foo", b"")
    began = len(cluster.tree.log)
    execute(cluster, (3, 4))
    assert lines(capsys)[-1] == "Successfully started partition reassignment for foo-0"
    assert paths.REASSIGN_PARTITIONS not in cluster.tree.znodes
    written = [write.content for writes in cluster.tree.log[began:] for write in writes if hasattr(write, "content")]
    assert not [content for content in written if b"adding_replicas" in content and b"[3,4]" in content]
    verify(cluster, (3, 4))
    assert "There is no active reassignment of partition foo-0, but replica set is  rather than 3,4." in lines(capsys)
    execute(cluster, (6, 4), BAR)
    assert lines(capsys)[-1] == "Successfully started partition reassignment for bar-0"


def test_a_list_printed_during_a_move_is_warned_of(capsys: pytest.CaptureFixture[str]) -> None:
    """The move was asked for through the API, so that no znode of a reassignment is in the way."""
    cluster = ZooKeeperCluster([1, 2], others={"bar": [[5, 6]]}).begin()
    cluster.alter([3, 4])
    zookeeper.generate(znodes_of(cluster), GenerateRequest(("foo",), (1, 2, 3, 4, 5), is_rack_aware=False))
    listed, proposed = capsys.readouterr().err.splitlines()
    assert listed.endswith("To go back to before the move, put 1,2 in its place")
    assert proposed.startswith("Warning: the proposal gives each partition of foo 4 replicas")
    execute(cluster, (5, 6))
    assert capsys.readouterr().err.splitlines() == [listed]


@pytest.mark.parametrize("target", [(3, 4), (5, 6)], ids=["the same", "another"])
def test_beside_a_reassignment_znode_nothing_is_started(target: tuple[int, ...]) -> None:
    cluster = ZooKeeperCluster([1, 2]).begin()
    waiting = format_reassignments({FOO: (3, 4)})
    cluster.tree.put(paths.REASSIGN_PARTITIONS, waiting)
    with pytest.raises(TerseError, match="there is an existing partition assignment"):
        execute(cluster, target, throttle=1_000)
    assert cluster.tree.znodes[paths.REASSIGN_PARTITIONS].content == waiting
    assert not [path for path in cluster.tree.znodes if path.startswith(paths.CONFIG_CHANGE_PREFIX)]


class LostAnswer(KazooOnTree):
    """The answer to the creation of this znode is lost; before each later look at it, the controller acts."""

    def __init__(self, cluster: ZooKeeperCluster, path: str, acts: Callable[[], object]) -> None:
        super().__init__(cluster.tree)
        self._path, self._acts, self._is_lost = path, acts, False

    def retry(self, call: Callable[..., Result], *words: object, **options: object) -> Result:
        try:
            return super().retry(call, *words, **options)
        except ConnectionLoss:
            return super().retry(call, *words, **options)

    def create(self, path: str, content: bytes, *, sequence: bool = False, makepath: bool = False) -> None:
        super().create(path, content, sequence=sequence, makepath=makepath)
        if path == self._path and not self._is_lost:
            self._is_lost = True
            raise ConnectionLoss

    def get(self, path: str) -> tuple[bytes, None]:
        if path == self._path and self._is_lost and path in self._tree.znodes:
            self._acts()
        return super().get(path)


@pytest.mark.parametrize("done", ["one of two moves", "both"])
def test_a_lost_answer_is_not_taken_for_the_znode_of_others(done: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Before the tool looks at what is there, the controller has ended moves, and with the last one the znode."""
    cluster = ZooKeeperCluster([1, 2], others={"bar": [[3, 4]]}).begin()

    def act() -> None:
        if done == "both":
            cluster.tree.commit((Delete(paths.REASSIGN_PARTITIONS),))
        else:
            cluster.controller.process_changes()
            cluster.settle()  # its moves are made
            cluster.tree.put(paths.REASSIGN_PARTITIONS, format_reassignments({BAR: (3, 5)}))

    moves = Plan((*plan((3, 4)).assignments, *plan((3, 5), BAR).assignments))
    tools = ZooKeeper(LostAnswer(cluster, paths.REASSIGN_PARTITIONS, act))
    zookeeper.execute(tools, request(moves), ControllerClock(cluster))
    assert lines(capsys)[-1].startswith("Successfully started partition reassignment")


@pytest.mark.parametrize("theirs", [{BAR: (3, 5)}, {FOO: (3, 4)}, {}], ids=["another", "one of two moves", "nothing"])
def test_a_lost_request_leaves_the_znode_of_others_alone(theirs: dict[TopicPartition, tuple[int, ...]]) -> None:
    """It never arrived, and meanwhile others have asked for something else, or for a part of it that is not made."""
    cluster = ZooKeeperCluster([1, 2], others={"bar": [[3, 4]]}).begin()
    content = format_reassignments(theirs)
    tools = LostAnswer(cluster, paths.REASSIGN_PARTITIONS, lambda: cluster.tree.put(paths.REASSIGN_PARTITIONS, content))
    moves = Plan((*plan((3, 4)).assignments, *plan((4, 5), BAR).assignments))
    with pytest.raises(TerseError, match="there is an existing partition assignment"):
        zookeeper.execute(ZooKeeper(tools), request(moves), ControllerClock(cluster))
    assert cluster.tree.znodes[paths.REASSIGN_PARTITIONS].content == content


# --- elections -----------------------------------------------------------------------------------------------------


def leaders(cluster: ZooKeeperCluster) -> dict[TopicPartition, int]:
    return {
        key: parse_partition_state(key, cluster.tree.znodes[paths.partition_state_path(key)].content).leader
        for key in (FOO, BAR, BAZ)
    }


def cluster_to_elect_in() -> ZooKeeperCluster:
    """Cluster where foo needs an unclean election, the preferred replica of bar could lead, and baz's is down."""
    cluster = ZooKeeperCluster([1, 2], others={"bar": [[3, 4]], "baz": [[5, 6]]}).begin()
    for broker in (1, 3, 5):
        cluster.twin.crash(broker)
    cluster.settle()
    cluster.twin.crash(2)
    for broker in (1, 3):
        cluster.twin.start(broker)
    cluster.settle()
    assert leaders(cluster) == {FOO: -1, BAR: 4, BAZ: 6}
    return cluster


@pytest.mark.parametrize("keys", [(FOO, BAR, BAZ), None], ids=["partitions by name", "all"])
def test_the_election_znode_is_a_request_for_preferred_leaders(
    keys: tuple[TopicPartition, ...] | None, capsys: pytest.CaptureFixture[str]
) -> None:
    by_znode, by_request, unclean = cluster_to_elect_in(), cluster_to_elect_in(), cluster_to_elect_in()
    topics = (("foo", (0,)), ("bar", (0,)), ("baz", (0,)))
    by_request.controller.elect_leaders(ElectLeaders(ElectionType.PREFERRED, topics))
    unclean.controller.elect_leaders(ElectLeaders(ElectionType.UNCLEAN, topics))
    elect_through_znode(znodes_of(by_znode), keys)
    assert lines(capsys) == [
        "Created preferred replica election path with bar-0,baz-0,foo-0",
        "Successfully started preferred replica election for partitions Set(bar-0, baz-0, foo-0)",
    ]
    by_znode.controller.process_changes()
    assert leaders(by_znode) == leaders(by_request) == {FOO: -1, BAR: 3, BAZ: 6}
    assert leaders(unclean)[FOO] == 1  # the other flag would make a difference
    assert paths.PREFERRED_REPLICA_ELECTION not in by_znode.tree.znodes


@pytest.mark.parametrize("waiting", [(FOO, BAR), (BAR,), (BAZ,), ()], ids=["the same", "fewer", "others", "none"])
def test_beside_an_election_znode_nothing_is_requested(
    waiting: tuple[TopicPartition, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    cluster = ZooKeeperCluster([1, 2], others={"bar": [[3, 4]], "baz": [[5, 6]]}).begin()
    content = format_election(waiting)
    cluster.tree.put(paths.PREFERRED_REPLICA_ELECTION, content)
    with pytest.raises(PlainError) as caught:
        elect_through_znode(znodes_of(cluster), (FOO, BAR))
    pending = ",".join(map(str, waiting))
    assert (caught.value.message, caught.value.reason) == (
        "Admin command failed",
        f"Preferred replica leader election currently in progress for {pending}. Aborting operation",
    )
    assert lines(capsys) == []
    assert cluster.tree.znodes[paths.PREFERRED_REPLICA_ELECTION].content == content


def test_partitions_that_do_not_exist_are_left_out_of_the_znode(capsys: pytest.CaptureFixture[str]) -> None:
    cluster = ZooKeeperCluster([1, 2]).begin()
    elect_through_znode(znodes_of(cluster), (FOO, BAR))
    assert cluster.tree.znodes[paths.PREFERRED_REPLICA_ELECTION].content == format_election([FOO])
    assert lines(capsys)[-1] == "Skipping preferred replica leader election for partition bar-0 since it doesn't exist."
