"""The metadata log of a cluster that keeps its metadata in ZooKeeper: there is no log, only what is so now."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator

from kreassign.errors import InputError, StaleZnode
from kreassign.model.znodes import parse_controller_epoch, paths
from kreassign.twin.blueprint import Blueprint, seeded
from kreassign.twin.records import BrokerRegistered, BrokerUnfenced, Record
from kreassign.twin.zookeeper.mirror import Mirror, first_znodes
from kreassign.twin.zookeeper.tree import Create, Write, Znodes


class ZooKeeperLog:
    """Records as znodes, written by the controller in office. Enter office before the twin is made."""

    def __init__(self, znodes: Znodes, blueprint: Blueprint) -> None:
        self.znodes = znodes
        self.mirror = Mirror()
        self.controller_id = -1
        self.controller_epoch = 0
        self._blueprint = blueprint

    def enter_office(self, broker_id: int, now_ms: int) -> bool:
        """Let a broker of this twin become the controller and read everything; False if another one is in office."""
        epoch = self.znodes.elect(broker_id, now_ms)
        if epoch is None:
            return False
        self.controller_id, self.controller_epoch = broker_id, epoch
        self._prepare()
        self.mirror.load(self.znodes)
        return True

    def holds_office(self) -> bool:
        """Whether the controller elected here last has neither been followed nor put out of office by hand."""
        epoch = self.znodes.get(paths.CONTROLLER_EPOCH)
        is_latest = epoch is not None and parse_controller_epoch(epoch.content) == self.controller_epoch
        return is_latest and self.znodes.get(paths.CONTROLLER) is not None

    def read(self) -> Iterator[Record]:
        """What makes the metadata as it is; nothing if ZooKeeper has no topics or settings yet.

        Brokers and their directories are those of the blueprint, which has them nowhere else.
        """
        if not self.controller_epoch:
            raise InputError("another controller is in office in this ZooKeeper; end that twin first")
        if self.mirror.topics or self.mirror.configs:
            for record in self._blueprint.records(seeded(self._blueprint.cluster_id)):
                if isinstance(record, BrokerRegistered | BrokerUnfenced):
                    yield record
            yield from self.mirror.records()

    def append(self, records: Iterable[Record]) -> None:
        """Keep the records of one decision, all of them or none. Raises `ControllerMoved`."""
        kept = tuple(records)
        try:
            self.write(self.mirror.writes(kept, self.controller_epoch))
        except StaleZnode:  # An operator or a tool wrote there, too; who writes last wins.
            self.mirror.load(self.znodes)
            self.write(self.mirror.writes(kept, self.controller_epoch))

    def write(self, writes: tuple[Write, ...]) -> None:
        """Write znodes, all or none. Raises `ControllerMoved` and `StaleZnode`."""
        if writes:
            self.znodes.write(writes)
            self.mirror.took(writes)

    def _prepare(self) -> None:
        """Create what every cluster has and this one has not yet."""
        cluster_id = json.dumps({"version": "1", "id": self._blueprint.cluster_id}, separators=(",", ":"))
        contents = {**dict.fromkeys(first_znodes(), b""), paths.CLUSTER_ID: cluster_id.encode()}
        missing = tuple(Create(path, content) for path, content in contents.items() if self.znodes.get(path) is None)
        if missing:
            self.znodes.write(missing)
