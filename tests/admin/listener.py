"""A node on this machine that reads requests as a broker does and answers them as a test tells it to."""

from __future__ import annotations

import socket
import ssl
import threading
from collections.abc import Callable, Mapping
from enum import Enum, auto

from kreassign.admin import Address
from kreassign.model import Broker, Cluster, TopicPartition
from kreassign.wire import api
from kreassign.wire.api import Api, Message
from kreassign.wire.codec import PREFIX_BYTES
from testbed.ports import HOST
from testbed.waiting import PATIENCE_S
from tests.admin import answers
from tests.wire.peer import APIS, Asked, read_request, write_response

EVERYTHING = {key: (entry.min_version, entry.max_version) for key, entry in APIS.items()}


class Deed(Enum):
    """Deeds of a node in place of an answer."""

    STAY_SILENT = auto()
    HANG_UP = auto()


Reply = Message | bytes | Deed
"""A response, raw bytes, or no answer."""
Answer = Reply | Callable[[Asked], Reply]


class Listener:
    """A node with its own port. Requests that it has no answer for hang up; `asked` holds all that it got."""

    def __init__(self, tls: ssl.SSLContext | None = None, port: int = 0) -> None:
        self.asked: list[Asked] = []
        self.answers: dict[Api, Answer] = {api.API_VERSIONS: answers.api_versions(EVERYTHING)}
        self._tls = tls
        self._server = socket.create_server((HOST, port))
        self.address = Address(*self._server.getsockname())
        self.connections: list[socket.socket] = []
        self._threads = [threading.Thread(target=self._accept)]
        self._threads[0].start()

    def offer(self, changes: Mapping[Api, tuple[int, int] | None]) -> None:
        """Offer other versions of some APIs, or (None) not the API at all."""
        missing = {entry.key for entry, versions in changes.items() if versions is None}
        others = {entry.key: versions for entry, versions in changes.items() if versions is not None}
        offered = {key: versions for key, versions in (EVERYTHING | others).items() if key not in missing}
        self.answers[api.API_VERSIONS] = answers.api_versions(offered)

    def times_asked(self, wanted: Api) -> int:
        """Number of requests of this API that have arrived."""
        return sum(asked.api is wanted for asked in self.asked)

    def messages(self, wanted: Api) -> list[Message]:
        """The requests of this API that have arrived."""
        return [asked.message for asked in self.asked if asked.api is wanted]

    def close_connections(self) -> None:
        """Close every connection that stands, as a broker does with idle ones."""
        for connection in self.connections:
            _shut(connection)

    def wait_until_left(self) -> None:
        """Until the other side has closed every connection."""
        for thread in self._threads[1:]:
            thread.join(PATIENCE_S)
            assert not thread.is_alive(), "a connection was left open"

    def go_away(self) -> None:
        """Stop listening and break all connections, as a process that is killed."""
        _shut(self._server)
        self.close_connections()

    def close(self) -> None:
        """Stop listening and leave no thread behind."""
        _shut(self._server)
        self._server.close()
        self.close_connections()
        for thread in self._threads:
            thread.join(PATIENCE_S)
            assert not thread.is_alive(), "a thread of a listener did not end"

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._server.accept()
            except OSError:
                return
            self.connections.append(connection)
            thread = threading.Thread(target=self._serve, args=(connection,))
            self._threads.append(thread)
            thread.start()

    def _serve(self, connection: socket.socket) -> None:
        try:
            with connection, self._secured(connection) as secured:
                while (asked := _receive(secured)) is not None and self._reply(secured, asked):
                    pass
        except OSError:
            return

    def _secured(self, connection: socket.socket) -> socket.socket:
        if self._tls is None:
            return connection
        try:
            return self._tls.wrap_socket(connection, server_side=True)
        except ssl.SSLError:
            # The alert is on its way; hanging up with bytes unread would take it back.
            while connection.recv(1 << 16):
                pass
            raise

    def _reply(self, connection: socket.socket, asked: Asked) -> bool:
        self.asked.append(asked)
        answer = self.answers.get(asked.api, Deed.HANG_UP)
        reply = answer(asked) if callable(answer) else answer
        if isinstance(reply, bytes):
            connection.sendall(reply)
        elif not isinstance(reply, Deed):
            connection.sendall(write_response(asked, reply))
        return reply is not Deed.HANG_UP


def join(*nodes: Listener, controller: int = 0) -> Cluster:
    """Make listeners one cluster, with ids 0, 1, 2 …: each tells of all in its metadata."""
    cluster = Cluster("id", controller, tuple(Broker(number, *node.address) for number, node in enumerate(nodes)))
    for node in nodes:
        node.answers[api.METADATA] = answers.metadata(cluster)
        node.answers[api.DESCRIBE_CLUSTER] = answers.cluster_nodes(cluster)
    return cluster


def joined(listen: Callable[[], Listener], controller: int = 0) -> tuple[Listener, Listener]:
    """Start two nodes of one cluster."""
    nodes = listen(), listen()
    join(*nodes, controller=controller)
    return nodes


def partitions_of(asked: Asked) -> list[TopicPartition]:
    """The partitions that a request is about, for those APIs that call topics and partitions so."""
    entries = asked.message.topics
    return [TopicPartition(entry.name, part.partition_index) for entry in entries for part in entry.partitions]


def in_turn(*replies: Answer) -> Callable[[Asked], Reply]:
    """Each reply once, the last one for ever after."""
    waiting = list(replies)

    def reply(asked: Asked) -> Reply:
        following = waiting.pop(0) if len(waiting) > 1 else waiting[0]
        return following(asked) if callable(following) else following

    return reply


def _receive(connection: socket.socket) -> Asked | None:
    prefix = _read(connection, PREFIX_BYTES)
    payload = _read(connection, int.from_bytes(prefix, "big")) if prefix else b""
    return read_request(payload) if payload else None


def _read(connection: socket.socket, size: int) -> bytes:
    received = bytearray()
    while len(received) < size:
        chunk = connection.recv(size - len(received))
        if not chunk:
            return b""
        received += chunk
    return bytes(received)


def _shut(connection: socket.socket) -> None:
    try:
        connection.shutdown(socket.SHUT_RDWR)
    except OSError:
        return  # It is closed already.
