"""The brokers of a twin in ZooKeeper: each has a znode that lasts as long as its session."""

from __future__ import annotations

from collections.abc import Mapping

from kreassign.model.znodes import BrokerZnode, format_broker, paths
from kreassign.twin.access.endpoints import Address
from kreassign.twin.core import TwinCore
from kreassign.twin.zookeeper.log import ZooKeeperLog
from kreassign.twin.zookeeper.tree import Create, Delete


class Registrations:
    """`/brokers/ids`: brokers in service, with the address that clients can use."""

    def __init__(self, core: TwinCore, log: ZooKeeperLog) -> None:
        self._core = core
        self._log = log
        self._addresses: Mapping[int, Address] = {}

    def renew(self, addresses: Mapping[int, Address] | None = None) -> None:
        """Register all brokers in service again, at other addresses if any are given."""
        self._addresses = self._addresses if addresses is None else dict(addresses)
        for broker_id in sorted(self._core.metadata.brokers):
            self.unregister(broker_id)
            if self._core.metadata.is_active(broker_id):
                self.register(broker_id)

    def address_of(self, broker_id: int) -> Address:
        """Where a broker is, or will be, registered to be reached."""
        known = self._core.metadata.brokers[broker_id]
        return self._addresses.get(broker_id) or Address(known.host, known.port)

    def register(self, broker_id: int) -> None:
        """A broker came into service."""
        known = self._core.metadata.brokers[broker_id]
        host, port = self.address_of(broker_id)
        content = format_broker(BrokerZnode(broker_id, host, port, known.rack), self._core.now_ms)
        path = paths.broker_path(broker_id)
        if self._log.znodes.get(path) is None:
            self._log.znodes.write((Create(path, content, is_ephemeral=True),))

    def unregister(self, broker_id: int) -> None:
        """A broker went out of service."""
        path = paths.broker_path(broker_id)
        if self._log.znodes.get(path) is not None:
            self._log.znodes.write((Delete(path),))
