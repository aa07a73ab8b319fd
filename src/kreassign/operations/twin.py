"""Serve a simulated cluster: from any description of it to ports of this machine."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import islice
from pathlib import Path

from kreassign.errors import InputError
from kreassign.model.documents import read_toml
from kreassign.model.snapshot import ClusterSnapshot
from kreassign.model.text import LARGEST_PORT, counted, did_you_mean, parse_whole, port_mistake, shortened
from kreassign.operations.text_files import naming, read_text
from kreassign.twin.access import HostPort
from kreassign.twin.blueprint import TYPICAL, Blueprint, Speeds, blueprint_of, small_cluster
from kreassign.twin.faults import PlannedFault, fault_by_hand, read_fault, read_faults
from kreassign.twin.scenario import Scenario, parse_scenario
from kreassign.twin.server import LOOPBACK, ServerThread, TwinServer
from kreassign.twin.serving import ON_FREE_PORTS, Serving, send_order, serve_scenario, serving_scenario
from kreassign.twin.version import DEFAULT, RELEASES, kafka_version

__all__ = ["TYPICAL", "PlannedFault", "Serving", "Speeds", "TwinServer", "fault_by_hand", "kafka_version"]

DEFAULT_BROKERS = 3
DEFAULT_RELEASE = DEFAULT.name
RELEASE_NAMES = tuple(release.name for release in RELEASES)
DEFAULT_CONTROL = f"{LOOPBACK}:9091"
"""Default control address of a twin whose first broker has the port 9092."""
SHOWN_ADDRESSES = 10
SCENARIOS = Path(__file__).parents[1] / "twin" / "scenarios"
"""Folder of the scenarios that come with kreassign."""

SUFFIX = ".toml"

Described = Scenario | Blueprint | ClusterSnapshot | Path | str | int
"""Cluster to simulate: a scenario, its file or the name of one that comes with kreassign, a blueprint, a snapshot, or
a number of equal brokers without topics.
"""


@contextmanager
def serve_twin(
    cluster: Described = DEFAULT_BROKERS,
    *,
    port: int = 0,
    speed: float | None = 1.0,
    kafka_version: str | None = None,
    controllers: int = 1,
    faults: Sequence[str] = (),
    data_dir: Path | None = None,
    speeds: Speeds = TYPICAL,
) -> Iterator[ServerThread]:
    """Serve a simulated cluster on this machine while the block runs; clients find it at its `bootstrap_servers`.

    `cluster` is a number of equal brokers, the file of a scenario or the name of one that comes with kreassign, a
    snapshot, a scenario or a blueprint. The first broker gets `port`, the other nodes the ports after it; 0 takes any
    that are free. `speed` is its seconds per second; with None time leaps ahead while copies are under way. `faults`
    are as for `kreassign twin start --fault`. `speeds` are those of disks and network for a snapshot, which does not
    have them. Raises InputError.
    """
    options = Serving(port, speed, kafka_version, data_dir, controllers=controllers, faults=faults_of(faults))
    with serving_scenario(scenario_of(cluster, speeds), options, _folder(cluster)) as served:
        yield served


def run_twin(
    cluster: Described,
    options: Serving = ON_FREE_PORTS,
    speeds: Speeds = TYPICAL,
    *,
    on_open: Callable[[TwinServer], None],
) -> None:
    """Serve a simulated cluster in this thread until it is ended (`TwinServer.end`). Raises InputError.

    `on_open` is called once clients can connect. `cluster` and `speeds` are as for `serve_twin`.
    """
    serve_scenario(scenario_of(cluster, speeds), options, _folder(cluster), on_open=on_open)


def scenario_of(cluster: Described, speeds: Speeds = TYPICAL) -> Scenario:
    """Build the scenario of a description. Raises InputError, which names the file."""
    match cluster:
        case Scenario():
            return cluster
        case Blueprint():
            return Scenario(cluster)
        case ClusterSnapshot():
            return Scenario(blueprint_of(cluster, speeds))
        case Path():
            return _read_scenario(cluster)
        case str():
            return _read_scenario(scenario_file(cluster))
        case _:
            return equal_brokers(cluster)


def scenario_names() -> tuple[str, ...]:
    """Scenarios that come with kreassign, sorted; a folder precedes the name."""
    files = SCENARIOS.glob(f"**/*{SUFFIX}")
    return tuple(sorted(file.relative_to(SCENARIOS).with_suffix("").as_posix() for file in files))


def scenario_file(name: str) -> Path:
    """Path of a scenario that comes with kreassign. Raises InputError, which names the existing ones."""
    names = scenario_names()
    if name not in names:
        question = did_you_mean(name, names)
        said = f"{shortened(name)!r} is neither a file nor one of the scenarios {', '.join(names)}"
        raise InputError(f"{said}; {question}" if question else said)
    return SCENARIOS / f"{name}{SUFFIX}"


def equal_brokers(count: int = DEFAULT_BROKERS, racks: Iterable[str] = ()) -> Scenario:
    """Equal brokers with ids from 0, spread over the racks in turn, and no topics."""
    return Scenario(small_cluster(count, racks=tuple(racks)))


def faults_of(texts: Iterable[str], fault_file: Path | None = None) -> tuple[PlannedFault, ...]:
    """Faults in the tables `[[faults]]` of a TOML file, and those given as text. Raises InputError."""
    found = _faults_in(fault_file) if fault_file is not None else ()
    return (*found, *map(read_fault, texts))


def announcement(server: TwinServer) -> Iterator[str]:
    """Lines about a served twin for people: its release, its addresses, and what clients need."""
    yield f"Kafka {server.twin.version} twin with {counted(len(server.twin.processes.ids), 'broker')}; Ctrl-C ends it"
    yield f"bootstrap servers: {','.join(islice(server.broker_addresses, SHOWN_ADDRESSES))}"
    if not server.twin.version.uses_zookeeper:
        yield f"bootstrap controllers: {','.join(islice(server.controller_addresses, SHOWN_ADDRESSES))}"
    if server.security_protocol != "PLAINTEXT":
        yield f"clients need security.protocol={server.security_protocol}"
    if server.control_address is not None:
        yield f"control port: {server.control_address.host}:{server.control_address.port}"


def give_order(control: str, *words: str | int | None) -> str:
    """Send an order to a running twin at its control port, `host:port`; return the result.

    `kill`, `stop`, `restart` and `isolate` take a broker and (not `restart`) how long it lasts, `inject` and `recover`
    a fault; None is left out. Raises InputError with the twin's reason for a refusal, Unreachable.
    """
    return send_order(control_address(control), " ".join(str(word) for word in words if word is not None))


def control_address(text: str) -> HostPort:
    """Parse a control address, `host:port`. Raises InputError."""
    host, _, port = text.rpartition(":")
    try:
        return HostPort(host, parse_whole(port if host.isprintable() else "", least=1, most=LARGEST_PORT))
    except ValueError:
        raise InputError(
            f"{shortened(text)!r} is no address of a control port{port_mistake(text)}; write for example "
            f"{DEFAULT_CONTROL}"
        ) from None


def _folder(cluster: Described) -> Path:
    """Base folder of paths in a scenario: that of its file."""
    return cluster.parent if isinstance(cluster, Path) else Path()


def _read_scenario(file: Path) -> Scenario:
    return parse_scenario(read_text(file), str(file))


def _faults_in(path: Path) -> tuple[PlannedFault, ...]:
    try:
        document = read_toml(read_text(path))
    except ValueError as reason:
        raise InputError(f"{path} is not TOML: {reason}") from None
    entries = document.get("faults")
    if not isinstance(entries, list) or not all(isinstance(entry, dict | str) for entry in entries):
        raise InputError(f"{path} has no tables [[faults]]")
    with naming(path):
        return read_faults(entries)
