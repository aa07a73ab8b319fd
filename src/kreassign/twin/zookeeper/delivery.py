"""From a controller to the brokers of its twin: each batch becomes requests, each taken by the broker it is for."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from kreassign.twin.core import TwinCore
from kreassign.twin.zookeeper.broker_cache import BrokerCache
from kreassign.twin.zookeeper.control_messages import PartitionMessage, message_of
from kreassign.twin.zookeeper.control_requests import ControlRequest, LiveBroker, build
from kreassign.twin.zookeeper.controller import ZooKeeperController


class Delivery:
    """Sends the messages of a controller. `caches` is what each broker knows since it registered.

    `on_request` gets each request with the time in milliseconds at which it is sent, before its broker does.
    """

    def __init__(
        self, core: TwinCore, controller: ZooKeeperController, on_request: Callable[[int, ControlRequest], None]
    ) -> None:
        self.caches: dict[int, BrokerCache] = {}
        self._core = core
        self._controller = controller
        self._on_request = on_request

    def __call__(self, steps: tuple[PartitionMessage, ...]) -> None:
        """Build and send the requests of one batch; brokers that have just registered get everything first."""
        alive = self._alive()
        newcomers = self._newcomers(alive)
        if newcomers and len(newcomers) < len(alive):
            register_connection = build(self._controller.sender, self._everything(), alive)
            others = build(self._controller.sender, (), alive)
            self._send(request for request in others if request.broker_id not in newcomers)
            self._send(request for request in register_connection if request.broker_id in newcomers)
        if steps or not newcomers or len(newcomers) == len(alive):
            self._send(build(self._controller.sender, steps, alive))

    def _send(self, requests: Iterable[ControlRequest]) -> None:
        for request in requests:
            self._on_request(self._core.now_ms, request)
            self.caches[request.broker_id].take(request)

    def _newcomers(self, alive: tuple[LiveBroker, ...]) -> frozenset[int]:
        """The brokers that have registered since the last batch; they know nothing yet."""
        found = set()
        for broker in alive:
            known = self.caches.get(broker.broker_id)
            if known is None or known.broker_epoch != broker.broker_epoch:
                self.caches[broker.broker_id] = BrokerCache(broker.broker_id, broker.broker_epoch)
                found.add(broker.broker_id)
        return frozenset(found)

    def _everything(self) -> Iterator[PartitionMessage]:
        for topic in self._core.metadata.topics.values():
            for partition in topic.partitions.values():
                yield message_of(self._core.metadata, partition, self._controller.sender.controller_epoch)

    def _alive(self) -> tuple[LiveBroker, ...]:
        return tuple(
            LiveBroker(one.broker_id, *self._controller.address_of(one.broker_id), one.rack, one.broker_epoch)
            for one in self._core.metadata.brokers.values()
            if not one.fenced
        )
