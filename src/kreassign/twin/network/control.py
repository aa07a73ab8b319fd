"""The control port of a twin that is served: orders by hand while it runs, one line each, on this machine alone.

A line is what `faults.by_hand.obey` reads. The answer is one line too: `done` or `refused`, and a sentence.
Whoever says something else, such as a browser, has its connection closed.
"""

from __future__ import annotations

import asyncio
import socket

from kreassign.errors import InputError, Unreachable
from kreassign.twin.access.endpoints import Address
from kreassign.twin.faults.by_hand import obey
from kreassign.twin.network.server import TwinServer

LOOPBACK = "127.0.0.1"
_LONGEST_LINE = 4_096
_TIMEOUT_S = 60.0
_DONE, _REFUSED = "done", "refused"


def open_control_port(server: TwinServer, port: int) -> Address:
    """Take orders for a server's twin; a port of 0 is any that is free. InputError if the port is taken.

    Called in the server's event loop; the port is closed with the server.
    """
    try:
        listening = socket.create_server((LOOPBACK, port))
    except OSError as error:
        raise InputError(
            f"cannot take orders on {LOOPBACK}:{port}: the port is taken; specify --control-port"
        ) from error
    address = Address(LOOPBACK, listening.getsockname()[1])
    server.serve_beside(lambda: _Conversation(server), listening)
    server.control_address = address
    return address


class _Conversation(asyncio.Protocol):
    """One client of the control port."""

    def __init__(self, server: TwinServer) -> None:
        self._server = server
        self._received = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        self._received += data
        while b"\n" in self._received and not self._transport.is_closing():
            line, _, self._received = self._received.partition(b"\n")
            self._obey(line.decode(errors="replace").strip())
        if len(self._received) > _LONGEST_LINE:
            self._transport.close()

    def _obey(self, order: str) -> None:
        try:
            answer = f"{_DONE} {self._server.do(lambda twin: obey(twin, order))}"
        except InputError as error:
            answer = f"{_REFUSED} {error}"
        self._transport.write(answer.replace("\n", " ").encode() + b"\n")
        if answer.startswith(_REFUSED):
            self._transport.close()


def send_order(address: Address, order: str) -> str:
    """Give an order to the twin whose control port this is; what it says about it.

    InputError with its reason where it refuses, `Unreachable` where nobody listens.
    """
    try:
        with socket.create_connection(address, _TIMEOUT_S) as connection:
            connection.sendall(order.encode() + b"\n")
            with connection.makefile("r", encoding="utf-8") as answers:
                verdict, _, text = answers.readline().strip().partition(" ")
    except OSError as error:
        raise Unreachable(
            f"no twin takes orders at {address.host}:{address.port}; it says on which port it does when it starts"
        ) from error
    if verdict not in (_DONE, _REFUSED):
        raise Unreachable(f"what listens at {address.host}:{address.port} is no twin; specify --control HOST:PORT")
    if verdict == _REFUSED:
        raise InputError(text)
    return text
