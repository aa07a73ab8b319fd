"""A scenario on ports of this machine: everything between its description and a server that answers clients.

Two ways to run it: `serving_scenario` in a thread of its own, for programs and tests, and `serve_scenario` in this
thread until it is interrupted, for a process that does nothing else.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager, nullcontext, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from kreassign.clock import SystemClock
from kreassign.errors import InputError
from kreassign.twin.checkers import check_step
from kreassign.twin.cluster import Twin
from kreassign.twin.core import TwinSettings
from kreassign.twin.faults import PlannedFault, schedule_faults
from kreassign.twin.network.control import open_control_port
from kreassign.twin.network.server import ListenerConfig, ServerThread, TwinServer, serve, tls_context
from kreassign.twin.setup.scenario import Scenario
from kreassign.twin.setup.security import Security
from kreassign.twin.store.file import FileLog
from kreassign.twin.store.zookeeper import SESSION_TIMEOUT_S, ZooKeeperTree, zookeeper_tree
from kreassign.twin.version import DEFAULT, KAFKA_3_9_ZOOKEEPER, KafkaVersion, kafka_version
from kreassign.twin.zookeeper.control_requests import ControlRequest, trace_line
from kreassign.twin.zookeeper.controller import ZooKeeperController
from kreassign.twin.zookeeper.delivery import Delivery
from kreassign.twin.zookeeper.log import ZooKeeperLog

if TYPE_CHECKING:
    from ssl import SSLContext

LOG_FILE = "metadata.log"


@dataclass(frozen=True, slots=True)
class Serving:
    """How a scenario is served.

    The first broker gets `port`, the other nodes the ports after it; 0 takes any that are free. `speed` is twin seconds
    per second; with None time leaps ahead while copies are under way. `kafka_version` is a release, by default that of
    the scenario. The metadata is kept in the folder `data_dir` and continued from there, or in `zookeeper`, a
    connect string, as Kafka 3.9 does. `check` checks all invariants after every step. `trace` gets the requests of a
    controller in ZooKeeper mode as JSON lines. `faults` come on top of those of the scenario. On
    `control_port` the twin takes orders by hand (`network.control`), 0 being any that is free; where that is taken and
    it `needs_control_port`, it is not served, else it takes none.
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
    """A scenario on ports of this machine while the block runs, its paths relative to `folder`. Raises InputError."""
    with _assembled(scenario, options, folder) as parts:
        thread = ServerThread(parts.server)
        thread.start()
        try:
            thread.do(lambda _: parts.finish(thread.server))
            yield thread
        finally:
            thread.stop()


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
    """A twin that is not served yet."""

    twin: Twin
    listener: ListenerConfig
    speed: float | None
    tree: ZooKeeperTree | None
    options: Serving

    def server(self) -> TwinServer:
        """Made inside the loop that serves it."""
        return TwinServer(self.twin, (self.listener,), speed=self.speed)

    def finish(self, server: TwinServer) -> None:
        """What is left to do once the listeners are open. Called in the server's loop."""
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
        start_ms=SystemClock().now_ms(),
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
    """The release to stand for; InputError for one that cannot keep its metadata in ZooKeeper."""
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
    """What to do with each request of the controller: a line in the file, to be read there at once."""

    def write(time_ms: int, request: ControlRequest) -> None:
        if file is not None:
            file.write(trace_line(time_ms, request) + "\n")
            file.flush()

    return write


def _tls(security: Security, folder: Path) -> SSLContext | None:
    if security.certificate is None or security.key is None:
        return None
    return tls_context(folder / security.certificate, folder / security.key)
