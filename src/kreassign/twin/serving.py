"""Serve a scenario on ports of this machine.

`serving_scenario` runs in a thread of its own, for programs and tests; `serve_scenario` runs in this thread until it is
interrupted, for a process that does nothing else. While a twin is served, its control port accepts orders from this
machine alone, one line each: see `faults.schedule.obey`.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager, nullcontext, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from kreassign.certificates import listener_context
from kreassign.clock import SYSTEM_CLOCK
from kreassign.errors import InputError, Unreachable
from kreassign.twin.access import HostPort
from kreassign.twin.checkers import check_step
from kreassign.twin.cluster import Twin
from kreassign.twin.core import TwinSettings
from kreassign.twin.faults import PlannedFault, schedule_faults
from kreassign.twin.faults.schedule import obey
from kreassign.twin.scenario import Scenario, Security
from kreassign.twin.server import LOOPBACK, ListenerConfig, ServerThread, TwinServer, serve
from kreassign.twin.store import SESSION_TIMEOUT_S, FileLog, ZooKeeperTree, zookeeper_tree
from kreassign.twin.version import DEFAULT, KAFKA_3_9_ZOOKEEPER, KafkaVersion, kafka_version
from kreassign.twin.zookeeper.control_requests import ControlRequest, trace_line
from kreassign.twin.zookeeper.controller import Delivery, ZooKeeperController
from kreassign.twin.zookeeper.znodes import ZooKeeperLog

if TYPE_CHECKING:
    from ssl import SSLContext


# The control port. An order is a line that `obey` reads. The answer is one line too: `done` or `refused`, and a
# sentence. A client that sends anything else, such as a browser, has its connection closed.

_LONGEST_LINE = 4_096
_TIMEOUT_S = 60.0
_DONE, _REFUSED = "done", "refused"


def open_control_port(server: TwinServer, port: int) -> HostPort:
    """Open the control port of a server's twin; port 0 picks a free one. InputError if the port is taken.

    Call it in the server's event loop; the port is closed with the server.
    """
    try:
        listening = socket.create_server((LOOPBACK, port))
    except OSError as error:
        raise InputError(
            f"cannot take orders on {LOOPBACK}:{port}: the port is taken; specify --control-port"
        ) from error
    address = HostPort(LOOPBACK, listening.getsockname()[1])
    server.serve_beside(lambda: _Conversation(server), listening)
    server.control_address = address
    return address


class _Conversation(asyncio.Protocol):
    """A client of the control port."""

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


def send_order(address: HostPort, order: str) -> str:
    """Send an order to the control port at this address; return the sentence of its answer.

    InputError with the reason if the twin refuses, `Unreachable` if nothing listens.
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


# Serving a scenario.

LOG_FILE = "metadata.log"


@dataclass(frozen=True, slots=True)
class Serving:
    """Options for serving a scenario.

    The first broker gets `port`, the other nodes the ports after it; 0 picks free ones. `speed` is twin seconds per
    second; with None time leaps ahead while copies are in progress. `kafka_version` is a release, by default that of
    the scenario. The metadata is stored in the folder `data_dir` and continued from there, or in `zookeeper`, a connect
    string, as Kafka 3.9 does. `check` checks all invariants after every step. `trace` gets the requests of a controller
    in ZooKeeper mode as JSON lines. `faults` are added to those of the scenario. On `control_port` the twin accepts
    orders (`network.control`); 0 picks a free port. A taken port is an error if `needs_control_port`, else the twin
    runs without one.
    """

    port: int = 0
    speed: float | None = 1.0
    kafka_version: str | None = None
    data_dir: Path | None = None
    zookeeper: str | None = None
    controllers: int = 1
    kip_179: bool = False
    check: bool = False
    faults: tuple[PlannedFault, ...] = ()
    trace: TextIO | None = None
    control_port: int | None = None
    needs_control_port: bool = True


ON_FREE_PORTS = Serving()


@contextmanager
def serving_scenario(
    scenario: Scenario, options: Serving = ON_FREE_PORTS, folder: Path = Path()
) -> Iterator[ServerThread]:
    """Serve a scenario while the block runs, with paths relative to `folder`. Raises InputError."""
    with _assembled(scenario, options, folder) as parts, ServerThread(parts.server) as thread:
        thread.do(lambda _: parts.finish(thread.server))
        yield thread


def serve_scenario(
    scenario: Scenario,
    options: Serving = ON_FREE_PORTS,
    folder: Path = Path(),
    *,
    on_open: Callable[[TwinServer], None],
) -> None:
    """Serve a scenario in this thread until it is ended (`TwinServer.end`).

    `on_open` is called once clients can connect. Paths of the scenario are relative to `folder`. Raises InputError.
    """

    def opened(server: TwinServer) -> None:
        parts.finish(server)
        on_open(server)

    with _assembled(scenario, options, folder) as parts:
        serve(parts.server, opened)


@dataclass(frozen=True, slots=True)
class _Parts:
    """A twin with its listener and options, before it is served."""

    twin: Twin
    listener: ListenerConfig
    speed: float | None
    tree: ZooKeeperTree | None
    options: Serving

    def server(self) -> TwinServer:
        """Create the server; call it inside the loop that serves it."""
        return TwinServer(self.twin, (self.listener,), speed=self.speed)

    def finish(self, server: TwinServer) -> None:
        """Finish once the listeners are open. Call it in the server's loop."""
        self._start_controller(server)
        if self.options.control_port is not None:
            with nullcontext() if self.options.needs_control_port else suppress(InputError):
                open_control_port(server, self.options.control_port)

    def _start_controller(self, server: TwinServer) -> None:
        """Let a controller in ZooKeeper mode start, once the addresses of its brokers are known."""
        controller = self.twin.controller
        if isinstance(controller, ZooKeeperController) and self.tree is not None:
            controller.register_at(server.addresses())
            controller.take_over()
            self.tree.on_news = server.scheduler(lambda _: controller.process_changes())


@contextmanager
def _assembled(scenario: Scenario, options: Serving, folder: Path) -> Iterator[_Parts]:
    version = _version(scenario, options)
    settings = TwinSettings(
        version.with_kip_179() if options.kip_179 else version,
        scenario.seed,
        start_ms=SYSTEM_CLOCK.now_ms(),
        permissions=scenario.security.permissions,
        controller_count=options.controllers,
    )
    listener = ListenerConfig(
        first_port=options.port, users=scenario.security.users, tls=_tls(scenario.security, folder)
    )
    with ExitStack() as open_files:
        log: FileLog | ZooKeeperLog | None = None
        tree: ZooKeeperTree | None = None
        if options.data_dir is not None:
            log = open_files.enter_context(closing(FileLog(options.data_dir / LOG_FILE)))
        if options.zookeeper is not None:
            tree = open_files.enter_context(zookeeper_tree(options.zookeeper))
            tree.wait_for_resignation(2 * SESSION_TIMEOUT_S)
            log = ZooKeeperLog(tree, scenario.blueprint)
            log.become_controller(min(broker.id for broker in scenario.blueprint.brokers), settings.start_ms)
        twin = _twin(scenario, settings, log)
        if isinstance(twin.controller, ZooKeeperController):
            twin.controller.on_messages = Delivery(twin, twin.controller, _tracing(options.trace))
        if options.check:
            twin.watch(check_step)
        schedule_faults(twin, (*scenario.faults, *options.faults))
        yield _Parts(twin, listener, options.speed, tree, options)


def _twin(scenario: Scenario, settings: TwinSettings, log: FileLog | ZooKeeperLog | None) -> Twin:
    if isinstance(log, ZooKeeperLog):
        return Twin(scenario.blueprint, settings, log, partial(ZooKeeperController, log=log))
    return Twin(scenario.blueprint, settings, log)


def _version(scenario: Scenario, options: Serving) -> KafkaVersion:
    """The release to simulate; InputError if it cannot store its metadata in ZooKeeper."""
    asked = options.kafka_version or scenario.kafka_version
    if options.zookeeper is None:
        if options.trace is not None:
            raise InputError("only a controller in ZooKeeper mode has anything to trace; specify --zookeeper too")
        return kafka_version(asked or DEFAULT.name)
    if options.data_dir is not None:
        raise InputError("with --zookeeper the metadata is kept there; leave out --data-dir")
    if asked is not None and kafka_version(asked).name != KAFKA_3_9_ZOOKEEPER.name:
        raise InputError(f"with --zookeeper the twin stands for Kafka {KAFKA_3_9_ZOOKEEPER} only, not for {asked}")
    return KAFKA_3_9_ZOOKEEPER


def _tracing(file: TextIO | None) -> Callable[[int, ControlRequest], None]:
    """Return a function that writes each request of the controller to the file as a line, flushed at once."""

    def write(time_ms: int, request: ControlRequest) -> None:
        if file is not None:
            file.write(trace_line(time_ms, request) + "\n")
            file.flush()

    return write


def _tls(security: Security, folder: Path) -> SSLContext | None:
    if security.certificate is None or security.key is None:
        return None
    return listener_context(folder / security.certificate, folder / security.key)
