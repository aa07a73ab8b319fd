"""The metadata log of a cluster that keeps its metadata in ZooKeeper: there is no log, only the current state."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator

from kreassign.errors import ControllerMoved, InputError, StaleZnode
from kreassign.model import OngoingReassignment, TopicPartition
from kreassign.model.znodes import parse_controller_epoch, paths
from kreassign.twin.blueprint import Blueprint, seeded_random
from kreassign.twin.metadata.records import BrokerRegistered, BrokerUnfenced, Record
from kreassign.twin.zookeeper.tree import Create, Write, Znodes
from kreassign.twin.zookeeper.znode_cache import ZnodeCache, first_znodes


class ZooKeeperLog:
    """Records as znodes, written by the active controller. Call `become_controller` before the twin is made."""

    def __init__(self, znodes: Znodes, blueprint: Blueprint) -> None:
        self.znodes = znodes
        self.cache = ZnodeCache()
        self.controller_id = -1
        self.controller_epoch = 0
        self.is_active_controller = False
        self._blueprint = blueprint

    def become_controller(self, broker_id: int, now_ms: int) -> bool:
        """Let a broker of this twin become the controller and read everything; False if there is another controller."""
        self.znodes.has_new_session()  # Whatever session there was, this one counts from now on.
        self.znodes.resign()
        epoch = self.znodes.elect(broker_id, now_ms)
        self.is_active_controller = epoch is not None
        if epoch is None:
            return False
        self.controller_id, self.controller_epoch = broker_id, epoch
        self._prepare()
        self.cache.load(self.znodes)
        return True

    def check_epoch(self) -> None:
        """Notice if another controller has been elected, or the znode of this one was deleted by hand."""
        has_new_session, epoch = self.znodes.has_new_session(), self.znodes.get(paths.CONTROLLER_EPOCH)
        is_latest = epoch is not None and parse_controller_epoch(epoch.content) == self.controller_epoch
        if has_new_session or not is_latest or self.znodes.get(paths.CONTROLLER) is None:
            self.is_active_controller = False

    def read(self) -> Iterator[Record]:
        """What makes the metadata as it is; nothing if ZooKeeper has no topics or settings yet.

        Brokers and their directories are those of the blueprint, which has them nowhere else.
        """
        if not self.controller_epoch:
            raise InputError("this ZooKeeper has another active controller; end that twin first")
        if self.cache.topics or self.cache.configs:
            for record in self._blueprint.records(seeded_random(self._blueprint.cluster_id)):
                if isinstance(record, BrokerRegistered | BrokerUnfenced):
                    yield record
            yield from self.cache.records()

    def append(self, records: Iterable[Record]) -> None:
        """Keep the records of one decision, all of them or none. Raises `ControllerMoved`."""
        kept = tuple(records)
        try:
            self.write(self.cache.writes(kept, self.controller_epoch))
        except StaleZnode:  # An operator or a tool wrote there, too; who writes last wins.
            self.cache.load(self.znodes)
            self.write(self.cache.writes(kept, self.controller_epoch))

    def write(self, writes: tuple[Write, ...]) -> None:
        """Write znodes, all or none. Raises `ControllerMoved` and `StaleZnode`."""
        if not self.is_active_controller:
            raise ControllerMoved("this controller has resigned; nothing was written")
        if not writes:
            return
        try:
            self.znodes.write(writes)
        except ControllerMoved:
            self.is_active_controller = False
            raise
        self.cache.note_written(writes)

    def write_lists(self, key: TopicPartition, lists: OngoingReassignment) -> None:
        """Write other lists of a partition, if they are others. Raises `ControllerMoved`."""
        if lists == self.cache.lists(key):
            return
        try:
            self.write(self.cache.lists_written(key, lists))
        except StaleZnode:  # As above.
            self.cache.read(self.znodes, paths.topic_path(key.topic))
            self.write(self.cache.lists_written(key, lists))

    def resign_controller(self) -> None:
        """Resign, so that another can be elected."""
        self.is_active_controller = False
        self.znodes.resign()

    def _prepare(self) -> None:
        """Create what every cluster has and this one has not yet."""
        cluster_id = json.dumps({"version": "1", "id": self._blueprint.cluster_id}, separators=(",", ":"))
        contents = {**dict.fromkeys(first_znodes(), b""), paths.CLUSTER_ID: cluster_id.encode()}
        missing = tuple(Create(path, content) for path, content in contents.items() if self.znodes.get(path) is None)
        if missing:
            self.znodes.write(missing)
