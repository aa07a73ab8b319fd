"""A client of ZooKeeper whose calls outlast a lost connection.

kazoo leaves a server that is silent for a few seconds, as any is on a busy machine, and fails each call in flight then.
Kafka's own client asks again, and so does this one.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count

from kazoo.client import KazooClient
from kazoo.exceptions import NodeExistsError, NoNodeError
from kazoo.protocol.states import ZnodeStat
from kazoo.retry import KazooRetry

from testbed.waiting import PATIENCE_S

SESSION_TIMEOUT_S = 20.0
"""The longest that a server of the testbed grants: twenty ticks."""


class ZooKeeper:
    """Reads and writes of one session."""

    def __init__(self, client: KazooClient) -> None:
        self._client = client

    def get(self, path: str) -> bytes:
        """The content of a znode; NoNodeError without one."""
        return bytes(self._client.retry(self._client.get, path)[0])

    def exists(self, path: str) -> ZnodeStat | None:
        """The state of a znode; None without one."""
        return self._client.retry(self._client.exists, path)

    def children(self, path: str) -> list[str]:
        """The sorted names of a znode's children; NoNodeError without one."""
        return sorted(self._client.retry(self._client.get_children, path))

    def create(self, path: str, content: bytes) -> None:
        """Create a znode; NodeExistsError if another has."""
        attempts = count()

        def attempt() -> None:
            is_first = not next(attempts)
            try:
                self._client.create(path, content)
            except NodeExistsError:
                if is_first or self.get(path) != content:
                    raise

        self._client.retry(attempt)

    def delete(self, path: str) -> None:
        """Delete a znode without children; NoNodeError without one."""
        attempts = count()

        def attempt() -> None:
            is_first = not next(attempts)
            try:
                self._client.delete(path)
            except NoNodeError:
                if is_first:
                    raise

        self._client.retry(attempt)


@contextmanager
def zookeeper_client(address: str) -> Iterator[ZooKeeper]:
    """A client, connected while the block runs, of `host:port[/chroot]`."""
    patience = KazooRetry(max_tries=-1, delay=0.05, max_delay=1.0, deadline=PATIENCE_S)
    client = KazooClient(hosts=address, timeout=SESSION_TIMEOUT_S, command_retry=patience)
    try:
        client.start(timeout=PATIENCE_S)
        yield ZooKeeper(client)
    finally:
        client.stop()
        client.close()
