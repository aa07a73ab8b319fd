"""Free ports on 127.0.0.1 that stay ours, also while the node that uses them is down."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import contextmanager

HOST = "127.0.0.1"


class ReservedPorts:
    """Ports held by sockets that are bound and never listen.

    Linux lets a second socket bind to such a port if both allow address reuse, which Java's server sockets do. The
    option is set only after binding, so that nobody else's search for a free port, and no outgoing connection, lands
    here. Hence there is no moment between choosing a port and using it in which it could be lost.
    """

    def __init__(self) -> None:
        self._holders: list[socket.socket] = []

    def take(self) -> int:
        """Reserve one more port and return its number."""
        holder = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        self._holders.append(holder)
        holder.bind((HOST, 0))
        holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        port: int = holder.getsockname()[1]
        return port

    def release(self) -> None:
        """Give all ports back."""
        while self._holders:
            self._holders.pop().close()


@contextmanager
def reserved_ports() -> Iterator[ReservedPorts]:
    """Ports that are ours while the block runs; who connects to one where nobody listens is refused."""
    ports = ReservedPorts()
    try:
        yield ports
    finally:
        ports.release()
