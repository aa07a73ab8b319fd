"""`kreassign twin`: a simulated cluster for Kafka's tools and clients."""

from __future__ import annotations

import gc
import signal
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from types import FrameType
from typing import Any, TextIO, TypeVar

import click

from kreassign.cli.options import values
from kreassign.cli.options.values import parse_speed as parse_bytes_per_s
from kreassign.cli.output import examples
from kreassign.errors import InputError
from kreassign.model.text import LARGEST_PORT, shortened
from kreassign.operations.snapshot_files import read_snapshot
from kreassign.operations.twin import (
    DEFAULT_BROKERS,
    DEFAULT_CONTROL,
    DEFAULT_RELEASE,
    RELEASE_NAMES,
    TYPICAL,
    Described,
    PlannedFault,
    Serving,
    Speeds,
    TwinServer,
    announcement,
    control_address,
    equal_brokers,
    fault_by_hand,
    faults_of,
    give_order,
    kafka_version,
    run_twin,
    scenario_file,
    scenario_names,
)

# Options for the faults that a twin injects.

_OPTIONS = (
    click.option(
        "--fault",
        "texts",
        type=values.ReadBy("fault", values.checked(lambda text: faults_of((text,)))),
        multiple=True,
        metavar="KIND:…@AT[+LASTS]",
        help="Inject a fault, for example crash:2@60s+30s; may be repeated.  [default: none]",
    ),
    click.option(
        "--faults", "fault_file", type=values.INPUT_FILE, help="Load faults from a TOML file.  [default: none]"
    ),
)

fault_options = values.option_group("faults", _OPTIONS, faults_of)
"""Add `--fault` and `--faults`: keyword `faults: tuple[PlannedFault, ...]`."""


Command = TypeVar("Command", bound=Callable[..., Any])

LEAP = "max"
FASTEST = 1_000_000
MOST_BROKERS, MOST_CONTROLLERS = 10_000, 100


def parse_speed(text: str) -> float | None:
    """Twin seconds per second: a number above 0, or None for `max`. For `click.option(type=…)`."""
    if text == LEAP:
        return None
    with suppress(ValueError):
        if 0 < (speed := float(text)) <= FASTEST:
            return speed
    raise click.BadParameter(
        f"{shortened(text)!r} is not a speed; write a number above 0 and up to {FASTEST:,}, or {LEAP}"
    )


class ScenarioPath(values.InputPath):
    """A scenario file, or the name of a scenario that comes with kreassign; an existing file wins."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """The path. Raises click.BadParameter, which lists the scenarios."""
        try:
            is_name = isinstance(value, str) and not Path(value).exists() and value == value.removesuffix(".toml")
        except OSError as error:
            self.fail(f"{shortened(str(value))!r} cannot be a path: {error.strerror}", param, ctx)
        if is_name:
            try:
                return scenario_file(value)
            except InputError as error:
                self.fail(str(error), param, ctx)
        return super().convert(value, param, ctx)


def zookeeper_address(text: str) -> None:
    """Check `HOST:PORT[,HOST:PORT…][/CHROOT]`. Raises InputError."""
    from kreassign.cli.options.connections import checked_addresses

    checked_addresses(text.partition("/")[0] or text)


_SERVING: tuple[values.Decorator, ...] = (
    click.option(
        "--port",
        type=values.WholeRange(0, LARGEST_PORT),
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
        type=values.ReadBy("release", values.checked(kafka_version)),
        metavar="V",
        help=f"Kafka release: {', '.join(RELEASE_NAMES)}.  [default: {DEFAULT_RELEASE}]",
    ),
    click.option(
        "--data-dir",
        type=values.DIRECTORY,
        metavar="DIR",
        help="Keep the metadata in DIR, and continue from it.  [default: in memory]",
    ),
    click.option(
        "--controllers",
        type=values.WholeRange(1, MOST_CONTROLLERS),
        default=1,
        show_default=True,
        help="Number of controllers.",
    ),
    click.option("--kip-179", is_flag=True, help="Serve the requests of KIP-179 too, which no Kafka release has."),
    click.option("--check", is_flag=True, help="Check all invariants after every step; slower."),
    click.option(
        "--control-port",
        type=values.WholeRange(0, LARGEST_PORT),
        metavar="P",
        help="Port on this machine that takes orders such as `kreassign twin kill 4`.  [default: that before --port]",
    ),
)


def _serving(port: int, control_port: int | None, **options: Any) -> Serving:
    """A busy default control port is skipped, as with several twins; a busy explicit one is an error."""
    if control_port is not None:
        return Serving(port, control_port=control_port, **options)
    return Serving(port, control_port=port - 1 if port > 1 else 0, needs_control_port=False, **options)


def serving_options(command: Command) -> Command:
    """Add the options of every command that serves a twin: keywords `serving: Serving` and `faults`."""
    decorated: Command = values.option_group("serving", _SERVING, _serving)(fault_options(command))
    return decorated


@examples(
    "kreassign twin start --brokers 6 --racks a,b,c",
    "kreassign twin from-snapshot cluster.json.gz",
)
@click.group()
def twin() -> None:
    """Run a simulated cluster that speaks Kafka."""
    # A cluster has up to millions of objects that all stay: collecting garbage among them takes a fifth of
    # the time to build one. `_serve` enables the collector again.
    gc.disable()


_PLAIN_SCENARIOS = [name for name in scenario_names() if "/" not in name]


@examples(
    "kreassign twin start",
    "kreassign twin start --scenario skewed --speed 60",
    "kreassign twin start --brokers 3 --fault crash:2@60s+30s",
)
@twin.command()
@click.option(
    "--scenario",
    "file",
    type=ScenarioPath(),
    metavar="NAME|FILE",
    help=f"Simulate a cluster that comes with kreassign ({', '.join(_PLAIN_SCENARIOS)}), or one described in a "
    "TOML file, instead of --brokers and --racks.  [default: none]",
)
@click.option(
    "--brokers", type=values.WholeRange(1, MOST_BROKERS), help="Number of equal brokers, with ids from 0.  [default: 3]"
)
@click.option("--racks", metavar="A,B,…", help="Racks to spread brokers over, in turn.  [default: none]")
@click.option(
    "--zookeeper",
    type=values.ReadBy("address", values.checked(zookeeper_address)),
    metavar="HOST:PORT[/CHROOT]",
    help="Keep the metadata in ZooKeeper, as Kafka 3.9 does in ZooKeeper mode.  [default: in a KRaft log]",
)
@click.option(
    "--trace",
    type=click.File("w", encoding="utf-8", lazy=False),
    metavar="FILE|-",
    help="With --zookeeper: write the requests of the controller to brokers as JSON lines.  [default: nowhere]",
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
        names = (name for name in (racks or "").split(",") if name)
        _serve(equal_brokers(brokers or DEFAULT_BROKERS, names), serving)
    elif brokers is not None or racks is not None:
        raise click.UsageError("a scenario says which brokers there are; leave out --brokers and --racks")
    else:
        _serve(file, serving)


@examples("kreassign twin from-snapshot cluster.json.gz --speed max")
@twin.command("from-snapshot")
@click.argument("file", type=values.INPUT_FILE)
@click.option(
    "--disk",
    type=parse_bytes_per_s,
    default="500MB/s",
    show_default=True,
    metavar="RATE",
    help="Read and write speed of each log directory; a snapshot does not have it.",
)
@click.option(
    "--network",
    type=parse_bytes_per_s,
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
    _serve(read_snapshot(file), replace(serving, faults=faults), Speeds(disk, network))


# --- steer a running twin -----------------------------------------------------------------------------------------

_control_option = click.option(
    "--control",
    type=values.ReadBy("address", values.checked(control_address)),
    default=DEFAULT_CONTROL,
    show_default=True,
    metavar="HOST:PORT",
    help="Control port of the twin; it prints it when it starts.",
)
_lasts_option = click.option(
    "--lasts",
    type=values.ReadBy("time", values.checked(values.parse_duration)),
    metavar="T",
    help="Repair it after so long.  [default: never]",
)


_BROKER = click.argument("broker", type=values.BROKER_ID)
_FAULT = click.argument("fault", type=values.ReadBy("fault", values.checked(fault_by_hand)))


def _order(name: str, subject: values.Decorator, text: str, *lines: str, may_end: bool = True) -> None:
    """Add the command of this name, which gives the twin that order about a broker or a fault."""

    def give(control: str, lasts: str | None = None, **words: str | int) -> None:
        click.echo(give_order(control, name, *words.values(), lasts))

    for option in (_control_option, *([_lasts_option] if may_end else []), subject):
        option(give)
    examples(*(f"kreassign twin {name} {line}" for line in lines))(twin.command(name, help=text)(give))


_order("kill", _BROKER, "Kill BROKER of a twin that runs.", "4", "4 --lasts 30s")
_order("stop", _BROKER, "Shut down BROKER of a running twin cleanly.", "4")
_order("restart", _BROKER, "Restart BROKER of a twin that runs, or start it if it is down.", "4", may_end=False)
_order("isolate", _BROKER, "Cut off BROKER of a running twin from all others and from clients.", "4 --lasts 1m")
_order(
    "inject",
    _FAULT,
    "Inject FAULT into a twin that runs: KIND[:PARAMETER…] now, KIND…@AT[+LASTS] so much later.",
    "clear-throttles",
    "lose:Metadata@0+30s",
    may_end=False,
)
_order("recover", _FAULT, "Repair what FAULT broke in a twin that runs.", "isolate:4", may_end=False)


def _serve(cluster: Described, serving: Serving, speeds: Speeds = TYPICAL) -> None:
    """Serve a twin until it is stopped."""
    _on_signals(signal.default_int_handler)
    with suppress(KeyboardInterrupt):
        run_twin(cluster, serving, speeds, on_open=_opened)


def _opened(server: TwinServer) -> None:
    def end(_: int, __: FrameType | None) -> None:
        _on_signals(signal.default_int_handler)  # a second signal ends it in the middle of a step
        server.end()

    _on_signals(end)
    gc.freeze()
    gc.enable()
    for line in announcement(server):
        click.echo(line)


def _on_signals(handler: Callable[[int, FrameType | None], object]) -> None:
    """Handle SIGTERM (service managers) like SIGINT, also in background jobs of a shell, which ignore SIGINT."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, handler)
