"""The twin over TCP: a socket per node and listener, in real time or faster.

Everything runs in one event loop: the twin needs no locks, and responses come in the order of requests. A client can
harm only itself: if it sends no frame, half a frame or garbage, only its own connection waits or closes; if it reads
slowly, the server stops reading from it until it has caught up; if it sends many requests at once, it takes turns with
the others. If the process is out of descriptors, the connection of a new client is closed at once and the log says why,
since in the queue it would wait forever.
"""

from __future__ import annotations

import asyncio
import errno
import logging
import resource
import socket
import ssl
import struct
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Self, TypeVar

from kreassign.clock import SYSTEM_CLOCK, Clock
from kreassign.errors import InputError, ProtocolViolation, machine_reason
from kreassign.model.text import LARGEST_PORT
from kreassign.twin.access import HostPort, Listener, Node, Users
from kreassign.twin.api.connection import Connection, Reply
from kreassign.twin.cluster import Twin
from kreassign.twin.version import Endpoint
from kreassign.wire.codec import PREFIX_BYTES

MAX_REQUEST_BYTES = 100 * 1024 * 1024
"""Kafka's default of `socket.request.max.bytes`; a client that announces more has its connection closed."""

FREE_DESCRIPTORS = 16
"""Descriptors reserved for files of the twin and for its control port; clients do not get them."""

LOOPBACK = "127.0.0.1"
log = logging.getLogger(__name__)
_TIMEOUT_S = 60.0
_NO_ROOM = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM)
_NO_ROOM_REST_S, _SAY_EVERY_S = 1.0, 60.0
_QUEUE = 1_024
"""Length of the queue of clients to accept; the packets of further clients are dropped until sent again."""
Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class ListenerConfig:
    """A listener opened on every node.

    The lowest node id gets `first_port`, the next ids the following ports; 0 picks free ones. With `users` the
    listener asks for SASL/PLAIN, with `tls` (a server-side context) for TLS.
    """

    name: str = "PLAINTEXT"
    first_port: int = 0
    users: Users | None = None
    tls: ssl.SSLContext | None = None

    @property
    def security_protocol(self) -> str:
        """Kafka's `security.protocol` for clients of this listener."""
        kind = "PLAINTEXT" if self.tls is None else "SSL"
        return kind if self.users is None else f"SASL_{kind}"


@dataclass(frozen=True, slots=True)
class TimeScale:
    """Speed of the twin's time: `speed` of its seconds pass per real second, counted from when both started."""

    speed: float
    real_start_s: float
    twin_start_ms: int

    def __post_init__(self) -> None:
        assert self.speed > 0, "time goes forward"

    def twin_ms(self, real_s: float) -> int:
        """The twin's time at a real time."""
        return self.twin_start_ms + int((real_s - self.real_start_s) * self.speed * 1000)

    def real_s_until(self, twin_ms: int, real_s: float) -> float:
        """Real seconds until this time of the twin; 0 if it has passed."""
        due_s = self.real_start_s + (twin_ms - self.twin_start_ms) / 1000 / self.speed
        return max(0.0, due_s - real_s)


class TwinServer:
    """The open listeners of a twin's nodes. Created and used inside one event loop."""

    def __init__(
        self,
        twin: Twin,
        configs: Sequence[ListenerConfig] = (ListenerConfig(),),
        *,
        speed: float | None = 1.0,
        clock: Clock | None = None,
    ) -> None:
        self.twin = twin
        self.failures: list[str] = []
        self._configs = configs
        self._clock = clock or SYSTEM_CLOCK
        self._skips_copying = speed is None
        self._speed = 1.0 if speed is None else speed
        self._time_scale = self._time_scale_from_now()
        # Clients keep their sessions by their own clocks.
        twin.groups.clients_ms = lambda _: self._clock.monotonic_s() * 1000
        # Clients on sockets know the date; a twin whose time begins at 0 would report times in 1970.
        if twin.settings.start_ms == 0 and twin.began_ms == 0:
            twin.began_ms = self._clock.now_ms() - twin.now_ms
        self._listeners: dict[str, Listener] = {}
        self._open: dict[tuple[str, int], socket.socket] = {}
        self._arrivals: set[asyncio.Task[None]] = set()
        self._beside: list[asyncio.Task[asyncio.Server]] = []
        self.control_address: HostPort | None = None
        self._connections: dict[_Connection, int] = {}
        self._frozen: set[int] = set()
        self._opened = 0
        self._said_full_s: float | None = None
        self.loop = asyncio.get_running_loop()
        self._wake_up = asyncio.Event()
        self._is_over = False
        self._next_ms: int | None = None

    def _time_scale_from_now(self) -> TimeScale:
        return TimeScale(self._speed, self._clock.monotonic_s(), self.twin.now_ms)

    def open_listeners(self) -> None:
        """Open every listener of every running node; InputError if a port is taken."""
        self.loop.set_exception_handler(self._note_failure)
        for config in self._configs:
            addresses: dict[int, HostPort] = {}
            self._listeners[config.name] = Listener(config.name, addresses, config.users, config.security_protocol)
            for offset, node_id in enumerate(sorted(self.twin.node_ids)):
                port = config.first_port + offset if config.first_port else 0
                addresses[node_id] = self._bind(config, node_id, port)
        self.reconcile()

    def addresses(self, config: str = "PLAINTEXT") -> Mapping[int, HostPort]:
        """Addresses of the nodes on a listener, by node id; includes nodes that are down."""
        return self._listeners[config].addresses

    @property
    def broker_addresses(self) -> Iterator[str]:
        """`host:port` of every running broker, by the first listener, in the order of their ids."""
        return self._running(Endpoint.BROKER)

    @property
    def controller_addresses(self) -> Iterator[str]:
        """`host:port` of every controller, by the first listener; none in ZooKeeper mode."""
        return self._running(Endpoint.CONTROLLER)

    @property
    def security_protocol(self) -> str:
        """`security.protocol` for clients of the first listener."""
        return self._configs[0].security_protocol

    def _running(self, endpoint: Endpoint) -> Iterator[str]:
        twin = self.twin
        for node, address in self.addresses(self._configs[0].name).items():
            if twin.endpoint(node) is endpoint and twin.is_running(node):
                yield f"{address.host}:{address.port}"

    @property
    def connection_count(self) -> int:
        """The number of connected clients."""
        return len(self._connections)

    async def run(self) -> None:
        """Let the twin's time pass until the server is ended."""
        while not self._is_over:
            self.catch_up()
            self.reconcile()
            self._wake_up.clear()
            next_ms = self._next_ms = self.twin.next_event_ms()
            if next_ms is not None and self._skips_copying and self.twin.is_copying:
                await asyncio.sleep(0)  # Let clients send requests between two events.
                self.twin.advance_to(next_ms)
                self._time_scale = self._time_scale_from_now()
                continue
            wait_s = None if next_ms is None else self._time_scale.real_s_until(next_ms, self._clock.monotonic_s())
            with suppress(TimeoutError):
                await asyncio.wait_for(self._wake_up.wait(), wait_s)

    def end(self) -> None:
        """Stop `run` after the present step. May be called by any thread and by a signal handler.

        A signal handler must not raise instead: libraries such as kazoo catch exceptions that are raised in them.
        """
        self._is_over = True
        with suppress(RuntimeError):  # the loop is closed: it has ended
            self.loop.call_soon_threadsafe(self._wake_up.set)

    def catch_up(self) -> None:
        """Advance the twin to the present, so that responses show it."""
        self.twin.advance_to(self._time_scale.twin_ms(self._clock.monotonic_s()))

    def wake_if_earlier(self) -> None:
        """Wake up earlier if a request scheduled an event before the next one."""
        if self.twin.next_event_ms() != self._next_ms:
            self._wake_up.set()

    def do(self, action: Callable[[Twin], Result]) -> Result:
        """Run an action on the twin between two requests. Call it in the server's own loop."""
        self.catch_up()
        result = action(self.twin)
        self.reconcile()
        self.wake_if_earlier()
        return result

    def serve_beside(self, protocol: Callable[[], asyncio.BaseProtocol], listening: socket.socket) -> None:
        """Serve another protocol on a socket, which is closed with the server."""
        self._beside.append(asyncio.ensure_future(self.loop.create_server(protocol, sock=listening)))

    def scheduler(self, action: Callable[[Twin], None]) -> Callable[[], None]:
        """Return a function that any thread can call to run an action between two requests."""

        def wake() -> None:
            if not self.loop.is_closed():
                self.loop.call_soon_threadsafe(self.do, action)

        return wake

    async def close(self) -> None:
        """Close every listener and every connection."""
        for opening in self._beside:
            (await opening).close()
        for key in list(self._open):
            self._close_listener(*key)
        await asyncio.sleep(0)  # A connection that was just accepted takes its socket, so that it is closed below.
        for arrival in self._arrivals:
            arrival.cancel()
        await asyncio.gather(*self._arrivals, return_exceptions=True)
        for connection in list(self._connections):
            connection.abort()
        await asyncio.sleep(0)  # Sockets are closed one turn of the loop later.

    # --- listeners -------------------------------------------------------------------------------------------

    def _bind(self, config: ListenerConfig, node_id: int, port: int) -> HostPort:
        where = f"cannot listen on {LOOPBACK}:{port} for node {node_id}"
        if port > LARGEST_PORT:
            raise InputError(f"{where}: there is no such port")
        try:
            listening = socket.create_server((LOOPBACK, port), backlog=_QUEUE)
        except OSError as error:
            advice = "Specify another --port, or 0 for any that is free"
            raise InputError(f"{where}: {machine_reason(error)}. {advice}") from error
        listening.settimeout(0)
        self._open[config.name, node_id] = listening
        self.loop.add_reader(listening, self._accept, listening, config, node_id)
        return HostPort(LOOPBACK, listening.getsockname()[1])

    def _accept(self, listening: socket.socket, config: ListenerConfig, node_id: int) -> None:
        """Accept all waiting clients: a turn of the loop is long while many others are answered."""
        for _ in range(_QUEUE):
            try:
                accepted, _ = listening.accept()
            except BlockingIOError:
                return
            except OSError as error:  # The client is gone again, or the machine is out of descriptors.
                if error.errno in _NO_ROOM:
                    self._rest(listening, config, node_id)
                    return
            else:
                self._take_in(accepted, config, node_id)

    def _take_in(self, accepted: socket.socket, config: ListenerConfig, node_id: int) -> None:
        # The lowest free descriptor is used first, so the number tells how many are open.
        if accepted.fileno() >= _most_descriptors() - FREE_DESCRIPTORS:
            accepted.close()
            self._say_full()
            return
        arrival = asyncio.ensure_future(self._admit(accepted, config, node_id))
        self._arrivals.add(arrival)
        arrival.add_done_callback(self._arrivals.discard)

    def _rest(self, listening: socket.socket, config: ListenerConfig, node_id: int) -> None:
        """Stop accepting for a while: a waiting client would wake the loop again and again."""
        self._say_full()
        self.loop.remove_reader(listening)

        def go_on() -> None:
            if self._open.get((config.name, node_id)) is listening:
                self.loop.add_reader(listening, self._accept, listening, config, node_id)

        self.loop.call_later(_NO_ROOM_REST_S, go_on)

    def _say_full(self) -> None:
        now_s = self._clock.monotonic_s()
        if self._said_full_s is None or now_s >= self._said_full_s + _SAY_EVERY_S:
            self._said_full_s = now_s
            log.warning(
                "the twin may have %d files and connections open (`ulimit -n`), and has nearly all of them: further "
                "clients are turned away until others have gone",
                _most_descriptors(),
            )

    async def _admit(self, accepted: socket.socket, config: ListenerConfig, node_id: int) -> None:
        node = Node(node_id, self.twin.endpoint(node_id), self._listeners[config.name])
        accepted.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        try:
            await self.loop.connect_accepted_socket(lambda: _Connection(self, node), accepted, ssl=config.tls)
        except (OSError, asyncio.CancelledError):
            accepted.close()  # A client that fails the TLS handshake only loses its connection.

    def reconcile(self) -> None:
        """Close the listeners of nodes that stopped; open those of nodes that came back."""
        for config in self._configs:
            for node_id, address in self.addresses(config.name).items():
                is_open = (config.name, node_id) in self._open
                if is_open and not self.twin.is_running(node_id):
                    self._close_listener(config.name, node_id)
                elif not is_open and self.twin.is_running(node_id):
                    self._bind(config, node_id, address.port)
        frozen = {node_id for node_id in self.twin.node_ids if self.twin.is_frozen(node_id)}
        unfrozen, self._frozen = self._frozen - frozen, frozen
        for connection in [connection for connection, owner in self._connections.items() if owner in unfrozen]:
            connection.resume()

    def _close_listener(self, config: str, node_id: int) -> None:
        listening = self._open.pop((config, node_id))
        self.loop.remove_reader(listening)
        listening.close()
        for connection in [connection for connection, owner in self._connections.items() if owner == node_id]:
            connection.abort()

    # --- connections -----------------------------------------------------------------------------------------

    def register_connection(self, connection: _Connection, node: Node, transport: asyncio.BaseTransport) -> Connection:
        """Register a new connection."""
        self._connections[connection] = node.id
        self._opened += 1
        # A client that closed at once has no peer name any more.
        local, peer = (transport.get_extra_info(name) or ("", 0) for name in ("sockname", "peername"))
        name = f"{local[0]}:{local[1]}-{peer[0]}:{peer[1]}-0-{self._opened}"
        return Connection(self.twin, self.twin.response_faults, node, name)

    def is_responsive(self, node: Node) -> bool:
        """Advance the twin to the present; return whether the node can answer now."""
        self.catch_up()
        if not self.twin.is_running(node.id):
            self.reconcile()
        return self.twin.is_running(node.id) and not self.twin.is_frozen(node.id)

    def after(self, wait_ms: int, action: Callable[[Reply], None], reply: Reply) -> None:
        """Send a response after `wait_ms` of the twin's time."""
        due_s = self._time_scale.real_s_until(self.twin.now_ms + wait_ms, self._clock.monotonic_s())
        self.loop.call_later(due_s, action, reply)

    def forget_connection(self, connection: _Connection) -> None:
        """Drop a closed connection."""
        self._connections.pop(connection, None)

    def _note_failure(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        error = context.get("exception")
        self.failures.append(f"{context['message']}: {error!r}")
        loop.default_exception_handler(context)


def _most_descriptors() -> int:
    """The limit on descriptors of this process."""
    most, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return sys.maxsize if most == resource.RLIM_INFINITY else most


class _Connection(asyncio.Protocol):
    """A client's socket: splits the received bytes into frames and answers them in order."""

    def __init__(self, server: TwinServer, node: Node) -> None:
        self._server = server
        self._node = node
        self._received = bytearray()
        self._is_read = True
        self._may_write = True
        self._is_waiting = False
        self._is_delayed = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._connection = self._server.register_connection(self, self._node, transport)
        if not self._server.twin.is_running(self._node.id):
            self.abort()  # The node stopped while the connection was being accepted.

    def data_received(self, data: bytes) -> None:
        self._received += data
        self.resume()

    def resume(self) -> None:
        """Answer the received frames, unless that is scheduled already."""
        if not self._is_waiting:
            self._answer_next()

    def eof_received(self) -> bool:
        """Close the connection: the client sends no more, and all that it sent before has been answered."""
        return False

    def pause_writing(self) -> None:
        self._may_write = False

    def resume_writing(self) -> None:
        self._may_write = True
        self.resume()

    def connection_lost(self, error: Exception | None) -> None:
        del error
        self._received.clear()
        self._server.forget_connection(self)

    def abort(self) -> None:
        """Close the connection at once."""
        self._transport.abort()

    def _answer_next(self) -> None:
        """Answer one frame; further ones wait for the next turn of the loop, and for the client to read."""
        self._is_waiting = False
        if self._transport.is_closing() or self._is_delayed:
            return
        if self._has_invalid_size():
            self._transport.close()
        elif self._may_write and self._has_frame() and self._server.is_responsive(self._node):
            self._answer(self._take_frame())
            if self._has_frame() or self._has_invalid_size():
                self._is_waiting = True
                self._server.loop.call_soon(self._answer_next)
        self._read_on(wanted=not self._has_frame())

    def _answer(self, payload: bytes) -> None:
        try:
            reply = self._connection.answer(payload)
        except ProtocolViolation:
            self._transport.close()
            return
        if reply.delay_ms:
            self._is_delayed = True
            self._server.after(reply.delay_ms, self._send, reply)
        else:
            self._send(reply)
        self._server.wake_if_earlier()

    def _send(self, reply: Reply) -> None:
        if self._transport.is_closing():
            return
        self._transport.write(reply.frame)
        if reply.is_last:
            self._transport.close()
        if self._is_delayed:
            self._is_delayed = False
            self.resume()

    def _read_on(self, *, wanted: bool) -> None:
        """Read from the socket, or stop while a frame waits for its answer."""
        if wanted == self._is_read or self._transport.is_closing():
            return
        self._is_read = wanted
        if wanted:
            self._transport.resume_reading()
        else:
            self._transport.pause_reading()

    def _announced_size(self) -> int | None:
        if len(self._received) < PREFIX_BYTES:
            return None
        size: int = struct.unpack_from(">i", self._received)[0]
        return size

    def _has_invalid_size(self) -> bool:
        size = self._announced_size()
        return size is not None and not 0 <= size <= MAX_REQUEST_BYTES

    def _has_frame(self) -> bool:
        size = self._announced_size()
        return size is not None and 0 <= size <= len(self._received) - PREFIX_BYTES

    def _take_frame(self) -> bytes:
        end = PREFIX_BYTES + (self._announced_size() or 0)
        payload = bytes(self._received[PREFIX_BYTES:end])
        del self._received[:end]
        return payload


# --- running a server -----------------------------------------------------------------------------------------


async def _serve(make: Callable[[], TwinServer], on_open: Callable[[TwinServer], None]) -> None:
    server = make()
    try:
        server.open_listeners()
        on_open(server)
        await server.run()
    finally:
        await server.close()


def serve(make: Callable[[], TwinServer], on_open: Callable[[TwinServer], None]) -> None:
    """Open a server and run it in this thread until it is ended."""
    asyncio.run(_serve(make, on_open))


class ServerThread:
    """A server whose loop runs in a thread of its own, for blocking callers, while a `with` block runs."""

    def __init__(self, make: Callable[[], TwinServer]) -> None:
        self._make = make
        self._opened: Future[TwinServer] = Future()
        self._threads = ThreadPoolExecutor(1, thread_name_prefix="twin-server")
        self._running: Future[None] | None = None

    @property
    def server(self) -> TwinServer:
        """The server; only its own loop may change it."""
        return self._opened.result()

    @property
    def bootstrap_servers(self) -> str:
        """Addresses of the brokers for `bootstrap.servers`."""
        return ",".join(self.server.broker_addresses)

    @property
    def bootstrap_controllers(self) -> str:
        """Addresses of the controllers for `bootstrap.controllers`."""
        return ",".join(self.server.controller_addresses)

    def __enter__(self) -> Self:
        """Wait until the listeners are open; raises the error that prevents it."""
        self._running = self._threads.submit(lambda: serve(self._make, self._opened.set_result))
        either: tuple[Future[Any], ...] = (self._running, self._opened)
        wait(either, _TIMEOUT_S, FIRST_COMPLETED)
        if not self._opened.done():
            self._running.result(0)
        return self

    def do(self, action: Callable[[Twin], Result]) -> Result:
        """Run an action on the twin between two requests, and return its result."""
        server = self.server

        async def act() -> Result:
            return server.do(action)

        return asyncio.run_coroutine_threadsafe(act(), server.loop).result(_TIMEOUT_S)

    def __exit__(self, *_: object) -> None:
        """Close the listeners and end the thread; raises the error of the server, if it failed."""
        if self._running is not None and not self._running.done():
            self.server.end()
        self._threads.shutdown()
        if self._running is not None:
            self._running.result(0)


def serving(
    twin: Twin,
    configs: Sequence[ListenerConfig] = (ListenerConfig(),),
    *,
    speed: float | None = 1.0,
    clock: Clock | None = None,
) -> ServerThread:
    """A server of a twin on ports of this machine, for a `with` block."""
    return ServerThread(lambda: TwinServer(twin, configs, speed=speed, clock=clock))
