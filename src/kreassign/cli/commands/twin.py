"""`kreassign twin`: a simulated cluster that Kafka's tools and clients use as if it were a real one."""

from __future__ import annotations

import gc
import signal
from collections.abc import Callable
from contextlib import ExitStack, closing, suppress
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO, TypeVar

import click

from kreassign.cli.options.faults import fault_options
from kreassign.cli.options.group import Decorator, option_group
from kreassign.cli.output import examples, parse_quantity
from kreassign.clock import SystemClock
from kreassign.errors import InputError
from kreassign.operations.snapshot_files import read_snapshot
from kreassign.twin.access.endpoints import Address
from kreassign.twin.blueprint import small_cluster
from kreassign.twin.checkers import check_step
from kreassign.twin.cluster import Twin
from kreassign.twin.core import TwinSettings
from kreassign.twin.faults import PlannedFault, schedule_faults
from kreassign.twin.network.server import ListenerConfig, TwinServer, serve, tls_context
from kreassign.twin.setup.from_snapshot import Speeds, blueprint_of
from kreassign.twin.setup.scenario import Scenario, parse_scenario
from kreassign.twin.setup.security import Security
from kreassign.twin.store.file import FileLog
from kreassign.twin.store.zookeeper import SESSION_TIMEOUT_S, ZooKeeperTree, zookeeper_tree
from kreassign.twin.version import DEFAULT, KAFKA_3_9_ZOOKEEPER, RELEASES, Endpoint, KafkaVersion, kafka_version
from kreassign.twin.zookeeper.control_requests import ControlRequest, trace_line
from kreassign.twin.zookeeper.controller import ZooKeeperController
from kreassign.twin.zookeeper.delivery import Delivery
from kreassign.twin.zookeeper.log import ZooKeeperLog

if TYPE_CHECKING:
    from ssl import SSLContext

Command = TypeVar("Command", bound=Callable[..., Any])

DEFAULT_BROKERS = 3
SHOWN_ADDRESSES = 10
PLAINTEXT = "PLAINTEXT"
LOG_FILE = "metadata.log"
LEAP = "max"


def parse_speed(text: str) -> float | None:
    """Twin seconds per second: a number above 0, or None for `max`. For `click.option(type=…)`."""
    if text == LEAP:
        return None
    with suppress(ValueError):
        if 0 < (speed := float(text)) < float("inf"):
            return speed
    raise click.BadParameter(f"{text!r} is no speed; write a number above 0, or {LEAP}")


@dataclass(frozen=True, slots=True)
class Serving:
    """How a twin is served: the options that every command has that serves one. A port of 0 is any that is free."""

    port: int
    speed: float | None
    release: str | None
    data_dir: Path | None
    controllers: int
    kip_179: bool = False
    check: bool = False
    faults: tuple[PlannedFault, ...] = ()
    zookeeper: str | None = None
    trace: TextIO | None = None


_SERVING: tuple[Decorator, ...] = (
    click.option(
        "--port",
        type=click.IntRange(0, 65535),
        default=9092,
        show_default=True,
        help="Port of the first broker; the other nodes get the ports after it. 0 takes any that are free.",
    ),
    click.option(
        "--speed",
        type=parse_speed,
        default="1",
        show_default=True,
        metavar=f"N|{LEAP}",
        help=f"Twin seconds per second; with {LEAP} time leaps ahead while copies are under way.",
    ),
    click.option(
        "--kafka-version",
        "release",
        metavar="V",
        help=f"Kafka release: {', '.join(release.name for release in RELEASES)}.  [default: {DEFAULT.name}]",
    ),
    click.option(
        "--data-dir",
        type=click.Path(file_okay=False, path_type=Path),
        metavar="DIR",
        help="Keep the metadata in DIR, and continue from it.",
    ),
    click.option("--controllers", type=click.IntRange(1), default=1, show_default=True, help="Number of controllers."),
    click.option("--kip-179", is_flag=True, help="Serve the requests of KIP-179 too, which no Kafka release has."),
    click.option("--check", is_flag=True, help="Check all invariants after every step; slower."),
)


def serving_options(command: Command) -> Command:
    """Add the options of every command that serves a twin: keywords `serving: Serving` and `faults`."""
    decorated: Command = option_group("serving", _SERVING, Serving)(fault_options(command))
    return decorated


@click.group(
    epilog=examples(
        "kreassign twin start --brokers 6 --racks a,b,c",
        "kreassign twin from-snapshot cluster.json.gz",
    )
)
def twin() -> None:
    """Run a simulated cluster that speaks Kafka."""
    # A cluster is made of up to millions of objects that all stay: looking for garbage among them takes a fifth of
    # the time that it takes to build one. `run_twin` turns the search on again.
    gc.disable()


@twin.command(
    epilog=examples(
        "kreassign twin start",
        "kreassign twin start --scenario scenarios/skewed.toml --speed 60",
        "kreassign twin start --brokers 3 --fault crash:2@60s+30s",
    )
)
@click.option(
    "--scenario",
    "file",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Simulate the cluster described in a TOML file, instead of --brokers and --racks.",
)
@click.option("--brokers", type=click.IntRange(1), help="Number of equal brokers, with ids from 0.  [default: 3]")
@click.option("--racks", metavar="A,B,…", help="Racks to spread brokers over, in turn.  [default: none]")
@click.option(
    "--zookeeper",
    metavar="HOST:PORT[/CHROOT]",
    help="Keep the metadata in ZooKeeper, as Kafka 3.9 does in ZooKeeper mode.",
)
@click.option(
    "--trace",
    type=click.File("w", encoding="utf-8", lazy=False),
    metavar="FILE|-",
    help="With --zookeeper: write the requests of the controller to brokers as JSON lines.",
)
@serving_options
def start(
    file: Path | None,
    brokers: int | None,
    racks: str | None,
    zookeeper: str | None,
    trace: TextIO | None,
    serving: Serving,
    faults: tuple[PlannedFault, ...],
) -> None:
    """Start a cluster on this machine and serve it until Ctrl-C.

    Without --scenario it is one of equal brokers without topics. Prints the addresses once they can be used.
    """
    serving = replace(serving, faults=faults, zookeeper=zookeeper, trace=trace)
    if file is None:
        names = tuple(name for name in (racks or "").split(",") if name)
        run_twin(Scenario(small_cluster(brokers or DEFAULT_BROKERS, racks=names)), serving)
    elif brokers is not None or racks is not None:
        raise click.UsageError("a scenario says which brokers there are; leave out --brokers and --racks")
    else:
        run_twin(read_scenario(file), serving, file.parent)


@twin.command(
    "from-snapshot",
    epilog=examples(
        "kreassign twin from-snapshot cluster.json.gz --speed max",
    ),
)
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option(
    "--disk",
    type=parse_quantity,
    default="500MB/s",
    show_default=True,
    metavar="RATE",
    help="Read and write speed of each log directory; a snapshot does not have it.",
)
@click.option(
    "--network",
    type=parse_quantity,
    default="1.25GB/s",
    show_default=True,
    metavar="RATE",
    help="Network speed of each broker in each direction; a snapshot does not have it.",
)
@serving_options
def from_snapshot(file: Path, disk: int, network: int, serving: Serving, faults: tuple[PlannedFault, ...]) -> None:
    """Serve the twin of a real cluster until Ctrl-C, as FILE found it.

    FILE is written by `kreassign snapshot --out`. Brokers, racks, log directories, sizes, write rates, throttles and
    moves under way are those of the cluster. Prints the addresses once they can be used.
    """
    run_twin(Scenario(blueprint_of(read_snapshot(file), Speeds(disk, network))), replace(serving, faults=faults))


def read_scenario(file: Path) -> Scenario:
    """The scenario in a file. Raises InputError, which names the file."""
    try:
        return parse_scenario(file.read_text(encoding="utf-8"), str(file))
    except UnicodeDecodeError as error:
        raise InputError(f"{file}: not a text in UTF-8: {error}") from error


def run_twin(scenario: Scenario, serving: Serving, folder: Path = Path()) -> None:
    """Serve a twin until it is told to stop; paths of the scenario are relative to `folder`."""
    version = _version(scenario, serving)
    settings = TwinSettings(
        version.with_kip_179() if serving.kip_179 else version,
        scenario.seed,
        start_ms=SystemClock().now_ms(),
        permissions=scenario.security.permissions,
        controller_count=serving.controllers,
    )
    listener = ListenerConfig(
        first_port=serving.port, users=scenario.security.users, tls=_tls(scenario.security, folder)
    )
    with ExitStack() as open_files:
        log: FileLog | ZooKeeperLog | None = None
        tree: ZooKeeperTree | None = None
        if serving.data_dir is not None:
            log = open_files.enter_context(closing(FileLog(serving.data_dir / LOG_FILE)))
        if serving.zookeeper is not None:
            tree = open_files.enter_context(zookeeper_tree(serving.zookeeper))
            tree.wait_for_resignation(2 * SESSION_TIMEOUT_S)
            log = ZooKeeperLog(tree, scenario.blueprint)
            log.become_controller(min(broker.id for broker in scenario.blueprint.brokers), settings.start_ms)
        cluster = _cluster(scenario, settings, log)
        if isinstance(cluster.controller, ZooKeeperController):
            cluster.controller.on_messages = Delivery(cluster, cluster.controller, _tracing(serving.trace))
        if serving.check:
            cluster.watch(check_step)
        schedule_faults(cluster, (*scenario.faults, *serving.faults))
        gc.freeze()
        gc.enable()
        # A service manager ends it as Ctrl-C does.
        for number in (signal.SIGINT, signal.SIGTERM):  # a shell starts background jobs with SIGINT ignored
            signal.signal(number, signal.default_int_handler)
        with suppress(KeyboardInterrupt):
            serve(
                lambda: TwinServer(cluster, (listener,), speed=serving.speed),
                lambda server: _open(server, listener.security_protocol, tree),
            )


def _cluster(scenario: Scenario, settings: TwinSettings, log: FileLog | ZooKeeperLog | None) -> Twin:
    if isinstance(log, ZooKeeperLog):
        return Twin(scenario.blueprint, settings, log, partial(ZooKeeperController, log=log))
    return Twin(scenario.blueprint, settings, log)


def _version(scenario: Scenario, serving: Serving) -> KafkaVersion:
    """The release to stand for; InputError for one that cannot keep its metadata in ZooKeeper."""
    asked = serving.release or scenario.kafka_version
    if serving.zookeeper is None:
        if serving.trace is not None:
            raise InputError("only a controller in ZooKeeper mode has anything to trace; give --zookeeper too")
        return kafka_version(asked or DEFAULT.name)
    if serving.data_dir is not None:
        raise InputError("with --zookeeper the metadata is kept there; leave out --data-dir")
    if asked is not None and kafka_version(asked).name != KAFKA_3_9_ZOOKEEPER.name:
        raise InputError(f"with --zookeeper the twin stands for Kafka {KAFKA_3_9_ZOOKEEPER} only, not for {asked}")
    return KAFKA_3_9_ZOOKEEPER


def _tracing(file: TextIO | None) -> Callable[[int, ControlRequest], None]:
    """What to do with each request of the controller: a line in the file, to be read there at once."""

    def write(time_ms: int, request: ControlRequest) -> None:
        if file is not None:
            print(trace_line(time_ms, request), file=file, flush=True)

    return write


def _open(server: TwinServer, security_protocol: str, tree: ZooKeeperTree | None) -> None:
    """Let a controller in ZooKeeper mode start, once the addresses of its brokers are known."""
    controller = server.twin.controller
    if isinstance(controller, ZooKeeperController) and tree is not None:
        controller.register_at(server.addresses())
        controller.take_over()
        tree.on_news = server.scheduler(lambda _: controller.process_changes())
    _announce(server, security_protocol)


def _tls(security: Security, folder: Path) -> SSLContext | None:
    if security.certificate is None or security.key is None:
        return None
    return tls_context(folder / security.certificate, folder / security.key)


def _announce(server: TwinServer, security_protocol: str) -> None:
    twin_served, addresses = server.twin, server.addresses()
    click.echo(f"Kafka {twin_served.version} twin with {len(twin_served.processes.ids)} brokers; Ctrl-C ends it")
    for name, endpoint in (("servers", Endpoint.BROKER), ("controllers", Endpoint.CONTROLLER)):
        if endpoint is Endpoint.CONTROLLER and twin_served.version.uses_zookeeper:
            continue
        nodes = (node for node in addresses if twin_served.endpoint(node) is endpoint and twin_served.is_running(node))
        found = (addresses[node] for node in islice(nodes, SHOWN_ADDRESSES))
        click.echo(f"bootstrap {name}: {','.join(map(_shown, found))}")
    if security_protocol != PLAINTEXT:
        click.echo(f"clients need security.protocol={security_protocol}")


def _shown(address: Address) -> str:
    return f"{address.host}:{address.port}"
