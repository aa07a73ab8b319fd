"""The ZooKeeper of a twin in memory: what the tools call, and a clock by which the controller acts on it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from kazoo.exceptions import NodeExistsError, NoNodeError

from kreassign.kafka_tools.zookeeper import ZooKeeper
from kreassign.twin.zookeeper.znodes import Create
from tests.twin.zookeeper.memory_tree import Tree
from tests.twin.zookeeper.zookeeper_cluster import ZooKeeperCluster

Result = TypeVar("Result")


@dataclass
class Answer:
    """An answer that is there already."""

    get: Callable[[], tuple[bytes, None]]


class KazooOnTree:
    """The calls of kazoo's client that the tools make."""

    def __init__(self, tree: Tree) -> None:
        self._tree = tree

    def retry(self, call: Callable[..., Result], *words: object, **options: object) -> Result:
        return call(*words, **options)

    def get(self, path: str) -> tuple[bytes, None]:
        if path not in self._tree.znodes:
            raise NoNodeError
        return self._tree.znodes[path].content, None

    def get_async(self, path: str) -> Answer:
        return Answer(lambda: self.get(path))

    def get_children(self, path: str) -> list[str]:
        below = (one.removeprefix(f"{path}/") for one in self._tree.znodes if one.startswith(f"{path}/"))
        return [one for one in below if "/" not in one]

    def ensure_path(self, path: str) -> None:
        parent = path.rpartition("/")[0]
        if path and path not in self._tree.znodes:
            self.ensure_path(parent)
            self._tree.put(path, b"")

    def create(self, path: str, content: bytes, *, sequence: bool = False, makepath: bool = False) -> None:
        if path in self._tree.znodes:
            raise NodeExistsError
        if makepath:
            self.ensure_path(path.rpartition("/")[0])
        self._tree.commit((Create(path, content, is_sequential=sequence),))

    def set(self, path: str, content: bytes) -> None:
        self._tree.put(path, content)


def znodes_of(cluster: ZooKeeperCluster) -> ZooKeeper:
    """Open the tools on the ZooKeeper of this twin."""
    return ZooKeeper(KazooOnTree(cluster.tree))


class ControllerClock:
    """The twin's time; while the tool waits, its controller acts on what is in ZooKeeper."""

    def __init__(self, cluster: ZooKeeperCluster) -> None:
        self._cluster = cluster

    def now_ms(self) -> int:
        return self._cluster.twin.now_ms

    def monotonic_s(self) -> float:
        return self._cluster.twin.now_ms / 1000

    def sleep(self, seconds: float) -> None:
        self._cluster.twin.advance(round(seconds * 1000))
        self._cluster.controller.process_changes()
