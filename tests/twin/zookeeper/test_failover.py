"""A controller stops after any write of any task, and the next one brings it to the same end."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import pytest

from kreassign.model.znodes import paths
from kreassign.model.znodes.contents import format_election
from tests.twin.zookeeper.memory_tree import StoppedError
from tests.twin.zookeeper.zookeeper_cluster import FOO, ZooKeeperCluster, left_by

MOST_WRITES = 12
OTHERS = {"bar": [[1, 2]]}


class Case(NamedTuple):
    """State before, the controller's task, and the conditions at the end."""

    before: Callable[[ZooKeeperCluster], object]
    deed: Callable[[ZooKeeperCluster], object]
    is_done: Callable[[ZooKeeperCluster], bool]


def _do_nothing(cluster: ZooKeeperCluster) -> None:
    del cluster


def _rests_on(cluster: ZooKeeperCluster, *targets: set[int]) -> bool:
    replicas, adding, removing = cluster.lists
    return not adding and not removing and set(replicas) in targets and cluster.state[2] == set(replicas)


def _elect(cluster: ZooKeeperCluster) -> None:
    cluster.tree.put(paths.PREFERRED_REPLICA_ELECTION, format_election([FOO]))
    cluster.controller.process_changes()


def _put(cluster: ZooKeeperCluster, path: str, content: bytes) -> None:
    cluster.tree.put(path, content)
    cluster.controller.process_changes()


def _is_new_topic_led(cluster: ZooKeeperCluster) -> bool:
    states = [f"{paths.topic_path('new')}/partitions/{number}/state" for number in (0, 1)]
    return all(path in cluster.tree.znodes for path in states) and cluster.alter([5, 6], "new") == (0, None)


# What a request asked for may be lost with its controller, as the client then got no answer.
CASES = {
    "a move that a znode asks for": Case(
        _do_nothing,
        lambda cluster: cluster.submit({FOO: (4, 3, 2)}),
        lambda cluster: _rests_on(cluster, {4, 3, 2}) and paths.REASSIGN_PARTITIONS not in cluster.tree.znodes,
    ),
    "a move that a request asks for": Case(
        _do_nothing, lambda cluster: cluster.alter([4, 5, 6]), lambda cluster: _rests_on(cluster, {4, 5, 6}, {1, 2, 3})
    ),
    "an override by a request": Case(
        lambda cluster: cluster.submit({FOO: (4, 5, 6)}),
        lambda cluster: cluster.alter([3, 4]),
        lambda cluster: _rests_on(cluster, {3, 4}, {4, 5, 6}) and paths.REASSIGN_PARTITIONS not in cluster.tree.znodes,
    ),
    "a cancellation": Case(
        lambda cluster: cluster.alter([4, 5, 6]),
        lambda cluster: cluster.alter(None),
        lambda cluster: _rests_on(cluster, {1, 2, 3}, {4, 5, 6}),
    ),
    "a preferred election": Case(
        lambda cluster: cluster.alter([2, 1, 3]),
        _elect,
        lambda cluster: cluster.state[0] == 2 and paths.PREFERRED_REPLICA_ELECTION not in cluster.tree.znodes,
    ),
    "a topic that a znode creates": Case(
        _do_nothing,
        lambda cluster: _put(cluster, paths.topic_path("new"), b'{"version":1,"partitions":{"0":[2,3],"1":[4]}}'),
        _is_new_topic_led,
    ),
    "a deletion that a znode asks for": Case(
        lambda cluster: cluster.submit({FOO: (4, 5, 6)}),
        lambda cluster: _put(cluster, f"{paths.DELETE_TOPICS}/foo", b""),
        lambda cluster: (
            not [path for path in cluster.tree.znodes if "foo" in path or path == paths.REASSIGN_PARTITIONS]
        ),
    ),
}


def _stop_after(case: Case, writes: int) -> tuple[ZooKeeperCluster, bool]:
    """The cluster of the controller that takes over, and whether there was anything left to do for it."""
    first = ZooKeeperCluster([1, 2, 3], others=OTHERS).begin()
    case.before(first)
    first.candidate.writes_left = writes
    was_stopped = False
    try:
        case.deed(first)
        first.settle()
    except StoppedError:
        was_stopped = True
    return ZooKeeperCluster([1, 2, 3], tree=left_by(first), others=OTHERS).begin().settle(), was_stopped


@pytest.mark.parametrize("name", CASES)
def test_the_next_controller_ends_the_work_after_any_write(name: str) -> None:
    for writes in range(MOST_WRITES):
        cluster, was_stopped = _stop_after(CASES[name], writes)
        assert CASES[name].is_done(cluster), f"stopped after {writes} writes"
        if not was_stopped:
            assert writes
            return
    pytest.fail(f"more than {MOST_WRITES} writes")


@pytest.mark.parametrize("name", CASES)
def test_a_controller_deposed_at_any_write_goes_on_when_elected_again(name: str) -> None:
    """It remembers what it had not written yet, and has written what it does not remember."""
    for writes in range(MOST_WRITES):
        cluster = ZooKeeperCluster([1, 2, 3], others=OTHERS).begin()
        CASES[name].before(cluster)
        cluster.candidate.writes_until_deposed = writes
        CASES[name].deed(cluster)
        cluster.settle()
        was_deposed, cluster.candidate.writes_until_deposed = cluster.candidate.writes_until_deposed is None, None
        cluster.controller.process_changes()
        assert CASES[name].is_done(cluster.settle()), f"deposed after {writes} writes"
        for topic in cluster.twin.metadata.topics.values():
            for one in topic.partitions.values():
                lists = cluster.log.cache.lists(one.topic_partition)
                assert (one.replicas, one.adding, one.removing) == (lists.replicas, lists.adding, lists.removing)
        if not was_deposed:
            assert writes
            return
    pytest.fail(f"more than {MOST_WRITES} writes")
