"""`kreassign twin`: a simulated cluster that Kafka's tools and clients use as if it were a real one."""

from __future__ import annotations

import signal
from contextlib import ExitStack, suppress
from pathlib import Path

import click

from kreassign.clock import SystemClock
from kreassign.twin.blueprint import small_cluster
from kreassign.twin.cluster import Twin, TwinSettings
from kreassign.twin.endpoints import Address
from kreassign.twin.server import Door, TwinServer, serve
from kreassign.twin.store.file import FileLog
from kreassign.twin.version import DEFAULT, RELEASES, Endpoint, kafka_version

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


@click.group()
def twin() -> None:
    """Run a simulated cluster that speaks Kafka."""


@twin.command()
@click.option("--brokers", type=click.IntRange(1), default=3, show_default=True, help="How many brokers; ids from 0.")
@click.option("--racks", metavar="A,B,…", default="", help="Racks, dealt out to the brokers in turn; none by default.")
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=9092,
    show_default=True,
    help="Port of broker 0; those of the other brokers and of the controller follow. 0 takes any that are free.",
)
@click.option(
    "--speed",
    type=parse_speed,
    default="1",
    show_default=True,
    metavar=f"N|{LEAP}",
    help=f"Twin seconds per second; with {LEAP} the twin leaps ahead as long as copies are under way.",
)
@click.option(
    "--kafka-version",
    "release",
    default=DEFAULT.name,
    show_default=True,
    metavar="V",
    help=f"Release to stand for: {', '.join(release.name for release in RELEASES)}.",
)
@click.option(
    "--data-dir",
    type=click.Path(file_okay=False, path_type=Path),
    metavar="DIR",
    help="Keep the metadata there, and go on from it if it is there.",
)
def start(brokers: int, racks: str, port: int, speed: float | None, release: str, data_dir: Path | None) -> None:
    """Start a cluster on this machine and serve it until Ctrl-C.

    Prints the addresses once they can be used.
    """
    settings = TwinSettings(kafka_version(release), start_ms=SystemClock().now_ms())
    names = tuple(name for name in racks.split(",") if name)
    with ExitStack() as open_files:
        log = None if data_dir is None else FileLog(data_dir / LOG_FILE)
        if log is not None:
            open_files.callback(log.close)
        cluster = Twin(small_cluster(brokers, racks=names), settings, log)
        # A service manager ends it as Ctrl-C does.
        signal.signal(signal.SIGTERM, signal.default_int_handler)
        with suppress(KeyboardInterrupt):
            serve(lambda: TwinServer(cluster, (Door(first_port=port),), speed=speed), _announce)


def _announce(server: TwinServer) -> None:
    twin_served, addresses = server.twin, server.addresses()
    click.echo(f"Kafka {twin_served.version} twin with {len(addresses) - 1} brokers; Ctrl-C ends it")
    for name, endpoint in (("servers", Endpoint.BROKER), ("controllers", Endpoint.CONTROLLER)):
        found = (address for node, address in addresses.items() if twin_served.endpoint(node) is endpoint)
        click.echo(f"bootstrap {name}: {','.join(map(_shown, found))}")


def _shown(address: Address) -> str:
    return f"{address.host}:{address.port}"
