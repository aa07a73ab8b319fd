"""A twin in its own time, checked after every step, and its clients, which ask one node after the other.

Clients ask several nodes at the same time, in threads. In a twin's own time threads take turns anyway, in an order that
the machine chooses, and wait for each other longer than they work. In turn, a seed is the same trial each time, and
takes half as long.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from typing import Self, TypeVar

from kreassign.admin import AdminClient, client_settings, session
from kreassign.errors import ClusterError
from kreassign.twin import Twin, TwinTransport
from kreassign.twin.checkers import check_all, check_step
from kreassign.twin.core import Step
from kreassign.twin.metadata import ClusterMetadata, PartitionState
from tests.campaigns.campaign import BrokenError
from tests.twin.memory_log import MemoryLog

Answer = TypeVar("Answer")


class _InTurn:
    """Takes the place of a pool of threads: what is submitted is done at once."""

    def __init__(self, count: int) -> None:
        del count

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        return None

    def submit(self, ask: Callable[..., Answer], *words: object) -> Future[Answer]:
        """Do it, and keep the answer or the error of the cluster; anything else is raised at once."""
        future: Future[Answer] = Future()
        try:
            future.set_result(ask(*words))
        except ClusterError as error:
            future.set_exception(error)
        return future


@contextmanager
def asked_in_turn() -> Iterator[None]:
    """Let clients of this process ask one node after the other."""
    names = vars(session)
    pool, names["ThreadPoolExecutor"] = names["ThreadPoolExecutor"], _InTurn
    try:
        yield
    finally:
        names["ThreadPoolExecutor"] = pool


def partitions_of(twin: Twin) -> list[PartitionState]:
    return [state for topic in twin.metadata.topics.values() for state in topic.partitions.values()]


class Scene:
    """A twin and its metadata log, which must tell the same whenever a controller takes over, and in the end."""

    def __init__(self, twin: Twin, log: MemoryLog) -> None:
        self.twin = twin
        self.world = TwinTransport(twin)
        self._log = log
        self._epoch = twin.controller.epoch
        twin.watch(check_step)
        twin.watch(self._compare_after_failover)

    def client(self, brokers: Collection[int] = (), **properties: str) -> AdminClient:
        """A client that knows these brokers, or all, and waits for five seconds if nothing else is asked for."""
        servers = ",".join(f"broker-{broker}:9092" for broker in brokers or self.twin.processes.ids)
        settings = client_settings({"request.timeout.ms": "5000"} | properties, bootstrap_servers=servers)
        return AdminClient.connect(settings, clock=self.world, transport=self.world)

    def controllers(self) -> AdminClient:
        servers = ",".join(f"controller-{node}:9093" for node in self.twin.controller.node_ids)
        settings = client_settings({"request.timeout.ms": "5000"}, bootstrap_controllers=servers)
        return AdminClient.connect(settings, clock=self.world, transport=self.world)

    def check(self) -> None:
        """Compare the log with the cluster, and ask every checker of the twin."""
        metadata = ClusterMetadata()
        for record in self._log.read():
            metadata.apply(record)
        if metadata != self.twin.metadata:
            raise BrokenError(f"the metadata log that controller {self.twin.controller_id} has tells of another state")
        check_all(self.twin)

    def _compare_after_failover(self, twin: Twin, _step: Step) -> None:
        if twin.controller.epoch != self._epoch:
            self._epoch = twin.controller.epoch
            self.check()
