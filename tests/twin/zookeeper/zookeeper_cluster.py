"""Small clusters in ZooKeeper mode, and what is asked of them."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from kreassign.model import ElectionType, TopicPartition
from kreassign.model.znodes import paths
from kreassign.model.znodes.contents import format_reassignments, parse_partition_state, parse_topic
from kreassign.twin.blueprint import Blueprint
from kreassign.twin.cluster import Twin
from kreassign.twin.controller.leader_and_isr import ElectLeaders
from kreassign.twin.controller.reassignments import AlterReassignments, Target, TopicTargets
from kreassign.twin.core import TwinSettings
from kreassign.twin.version import KAFKA_3_9_ZOOKEEPER, KafkaVersion
from kreassign.twin.zookeeper.controller import ZooKeeperController
from kreassign.twin.zookeeper.znodes import ZooKeeperLog
from tests.twin.asking import cluster
from tests.twin.zookeeper.memory_tree import Candidate, Tree

FOO = TopicPartition("foo", 0)


def zookeeper_twin(blueprint: Blueprint) -> Twin:
    """A twin of this cluster in ZooKeeper mode, with its metadata in a tree of its own."""
    log = ZooKeeperLog(Candidate(Tree()), blueprint)
    assert log.become_controller(0, 0)
    return Twin(
        blueprint, TwinSettings(KAFKA_3_9_ZOOKEEPER), log, make_controller=partial(ZooKeeperController, log=log)
    )


class ZooKeeperCluster:
    """A twin with its metadata in a tree, which may be one that another twin left."""

    def __init__(
        self,
        replicas: list[int] | None = None,
        *,
        tree: Tree | None = None,
        others: Mapping[str, list[list[int]]] | None = None,
        version: KafkaVersion = KAFKA_3_9_ZOOKEEPER,
    ) -> None:
        self.tree = tree or Tree()
        self.candidate = Candidate(self.tree)
        blueprint = cluster({"foo": [replicas or [1, 2, 3]], **(others or {})}, brokers=7)
        self.log = ZooKeeperLog(self.candidate, blueprint)
        assert self.log.become_controller(0, 0)
        self.twin = Twin(
            blueprint, TwinSettings(version), self.log, make_controller=partial(ZooKeeperController, log=self.log)
        )
        assert isinstance(self.twin.controller, ZooKeeperController)
        self.controller = self.twin.controller

    def begin(self) -> ZooKeeperCluster:
        """Take over whatever is in the tree."""
        self.controller.take_over()
        return self

    def alter(self, target: list[int] | None, topic: str = "foo", partition: int = 0) -> tuple[int, str | None]:
        """Ask for one move; the code and text of its answer."""
        request = Target(partition, None if target is None else tuple(target))
        answer = self.controller.alter_reassignments(AlterReassignments((TopicTargets(topic, (request,)),)))
        if not answer.topics:
            return answer.outcome.code, answer.outcome.message
        outcome = answer.topics[0].outcomes[0][1]
        return outcome.code, outcome.message

    def elect(self, election_type: ElectionType, key: TopicPartition = FOO) -> tuple[int, str | None]:
        """Ask for the election of one partition; the code and text of its answer."""
        answer = self.controller.elect_leaders(ElectLeaders(election_type, ((key.topic, (key.partition,)),)))
        outcome = answer.topics[0].outcomes[0][1]
        return outcome.code, outcome.message

    def submit(self, targets: Mapping[TopicPartition, tuple[int, ...]]) -> None:
        """Leave targets in the reassignment znode."""
        self.tree.put(paths.REASSIGN_PARTITIONS, format_reassignments(targets))
        self.controller.process_changes()

    def settle(self) -> ZooKeeperCluster:
        """Let time pass until nothing is being copied any more."""
        self.twin.advance(60_000)
        return self

    @property
    def lists(self) -> tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]:
        """Replicas, adding and removing of foo-0 as its topic's znode has them."""
        znode = parse_topic("foo", self.tree.znodes[paths.topic_path("foo")].content)
        return znode.partitions[0], tuple(znode.adding.get(0, ())), tuple(znode.removing.get(0, ()))

    @property
    def state(self) -> tuple[int, int, set[int]]:
        """Leader, leader epoch and ISR of foo-0 as its state znode has them."""
        found = parse_partition_state(FOO, self.tree.znodes[paths.partition_state_path(FOO)].content)
        return found.leader, found.leader_epoch, set(found.isr)


def left_by(ended: ZooKeeperCluster) -> Tree:
    """The tree of a cluster whose session has ended."""
    for path in [one for one in ended.tree.znodes if one == paths.CONTROLLER or one.startswith(paths.BROKER_IDS + "/")]:
        del ended.tree.znodes[path]
    return ended.tree
