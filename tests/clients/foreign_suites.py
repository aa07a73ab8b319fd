"""`python -m tests.clients.foreign_suites`: the test suites of other clients, on a twin and on real Kafka.

The packages come from the registries, into `build/clients`; nothing of them is in this repository. Every test is run on
both. What passes on Kafka passes on the twin, or is left out for a reason in `known.py`; a reason that does not hold is
told as well. `--write` writes the list of the guide (`suite_table.py`).
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tarfile
import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.metadata import version as installed_version
from pathlib import Path
from xml.etree import ElementTree as ET

import click

from kreassign.twin.server import serving
from testbed import ClusterSpec, KafkaCluster
from testbed.proxy import Proxy
from testbed.releases import DEFAULT
from tests.campaigns.page import report
from tests.clients.programs import BUILD, HERE, Language
from tests.clients.suite_table import (
    GUIDE,
    SECTION,
    End,
    Ended,
    Results,
    Row,
    recorded,
    side_by_side,
    suite_table,
    surprises,
)
from tests.conformance.clusters import small_twin

KAFKA = DEFAULT
SUITE_TIMEOUT_S = 600
_FETCH_TIMEOUT_S, _BUILD_TIMEOUT_S, _TEST_TIMEOUT_S = 180, 1_200, 60


class UnavailableError(Exception):
    """A suite could not be fetched or built."""


@dataclass(frozen=True, slots=True)
class Suite:
    """A suite of another client: `name` as in `known.py`, and the brokers that it needs."""

    name: str
    language: Language
    brokers: int


KAFKA_PYTHON = Suite("kafka-python", Language.PYTHON, 1)
SARAMA = Suite("Sarama", Language.GO, 6)  # It asks brokers 1 to 5, and clusters of tests count from 0.
SUITES = (KAFKA_PYTHON, SARAMA)
_SARAMA_TESTS = "TestFunc(Admin|Client|OffsetManager)"
_LOOKED_INTO = {"confluent-kafka": Language.PYTHON, "kafkajs": Language.NODE, "@platformatic/kafka": Language.NODE}
"""Packages that hold no tests of an admin client, which is looked at here."""
_READ_BY_HAND = {"aiokafka": "0.14.0"}
"""Packages whose source pip fetches only where it can build it, and the version that was looked into by hand."""


# --- packages -------------------------------------------------------------------------------------------------------


def _command(*command: str | Path, folder: Path, timeout_s: float, **environment: str) -> str:
    """The output of a command; UnavailableError with its last line if it fails or takes too long."""
    try:
        ended = subprocess.run(
            [str(part) for part in command], cwd=folder, check=False, capture_output=True, text=True,
            timeout=timeout_s, env={**os.environ, **environment},
        )  # fmt: skip
    except subprocess.TimeoutExpired as late:
        raise UnavailableError(f"{command[0]} took more than {timeout_s:.0f} s") from late
    if ended.returncode:
        last = (ended.stderr or ended.stdout).strip().splitlines()[-1:]
        raise UnavailableError(f"{Path(command[0]).name} {command[1]}: {''.join(last)}")
    return ended.stdout


def _need(language: Language) -> None:
    if not language.is_here:
        raise UnavailableError(f"{language.value} is not on this machine")


# What the tests of the package import, and the package leaves out. A broker that runs already needs nothing else.
_SERVICE = """\
class ExternalService:
    def __init__(self, host, port):
        self.host, self.port = host, port

    def open(self):
        pass

    close = stop = open


SpawnedService = ExternalService
"""


def _fetch_from_pypi(name: str) -> Path:
    """The archive with the source of an installed package."""
    release = installed_version(name)
    archive = BUILD / f"{name.replace('-', '_')}-{release}.tar.gz"
    if not archive.exists():
        BUILD.mkdir(parents=True, exist_ok=True)
        _command(
            sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--no-build-isolation",
            "--no-binary", ":all:", "--dest", BUILD, f"{name}=={release}",
            folder=BUILD, timeout_s=_FETCH_TIMEOUT_S,
        )  # fmt: skip
    return archive


def _fetch_from_npm(name: str) -> Path:
    """The archive of a package, in the version of the walk."""
    release = json.loads((HERE / "node" / "package.json").read_text(encoding="utf-8"))["dependencies"][name]
    BUILD.mkdir(parents=True, exist_ok=True)
    told = _command(
        "npm", "pack", "--silent", "--pack-destination", BUILD, f"{name}@{release}",
        folder=BUILD, timeout_s=_FETCH_TIMEOUT_S,
    )  # fmt: skip
    return BUILD / told.split()[-1]


_TEST_FILE = re.compile(r"(?:/test_[^/]*|_test)\.py$|\.(?:test|spec)\.[cm]?[jt]sx?$")


def admin_tests(archive: Path) -> tuple[str, ...]:
    """Files with tests, in the archive of a package, that name an admin client."""
    with tarfile.open(archive) as files:
        tests = {one.name: files.extractfile(one) for one in files if _TEST_FILE.search(one.name)}
        return tuple(name for name, file in tests.items() if file is not None and b"admin" in file.read().lower())


def _tests_in_packages() -> Iterator[str]:
    """Sentences about packages that may have tests of their admin client now."""
    for client, language in _LOOKED_INTO.items():
        try:
            _need(language)
            found = admin_tests(_fetch_from_npm(client) if language is Language.NODE else _fetch_from_pypi(client))
        except UnavailableError as error:
            click.echo(f"{client}'s package was not looked at: {error}")
            continue
        if found:
            yield f"{client}'s package has tests of its admin client: {', '.join(found)}"
    for client, release in _READ_BY_HAND.items():
        if (installed := installed_version(client)) != release:
            yield f"{client} is {installed} now: look into its archive for tests, of which {release} had none"


def _fetch_kafka_python() -> Path:
    """The source of the installed kafka-python, unpacked."""
    folder = BUILD / f"kafka_python-{installed_version('kafka-python')}"
    if not (folder / "test" / "service.py").exists():
        with tarfile.open(_fetch_from_pypi("kafka-python")) as archive:
            archive.extractall(BUILD, filter="data")
        (folder / "test" / "__init__.py").touch()
        (folder / "test" / "service.py").write_text(_SERVICE, encoding="utf-8")
    return folder


def _fetch_sarama() -> Path:
    """The program with Sarama's functional tests, in the version of the walk."""
    (release,) = re.findall(r"IBM/sarama (\S+)", (HERE / "go" / "go.mod").read_text(encoding="utf-8"))
    program = BUILD / f"sarama-{release}.test"
    if not program.exists():
        BUILD.mkdir(parents=True, exist_ok=True)
        module = f"github.com/IBM/sarama@{release}"
        told = _command("go", "mod", "download", "-json", module, folder=HERE / "go", timeout_s=_FETCH_TIMEOUT_S)
        _command(
            "go", "test", "-c", "-vet=off", "-tags", "functional", "-o", program, ".",
            folder=Path(json.loads(told)["Dir"]), timeout_s=_BUILD_TIMEOUT_S, GOFLAGS="-mod=mod",
        )  # fmt: skip
    return program


# --- runs -----------------------------------------------------------------------------------------------------------


def _run(command: Sequence[str | Path], folder: Path, **environment: str) -> str:
    """Output of a suite; it may fail, and what it has not told after `SUITE_TIMEOUT_S` is not run."""
    whole = {**os.environ, "KAFKA_VERSION": KAFKA, **environment}
    try:
        ended = subprocess.run(
            [str(part) for part in command], cwd=folder, env=whole, check=False, capture_output=True, text=True,
            timeout=SUITE_TIMEOUT_S,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return ""
    return ended.stdout


def _run_kafka_python(folder: Path, addresses: Sequence[str]) -> Results:
    report = BUILD / "kafka-python.xml"
    report.unlink(missing_ok=True)
    _run(
        (
            sys.executable, "-m", "pytest", "test/integration/test_admin_integration.py", "-q",
            "-p", "no:cacheprovider", "--show-capture=no", f"--timeout={_TEST_TIMEOUT_S}", f"--junit-xml={report}",
        ),
        folder, PYTHONPATH=str(folder), KAFKA_URI=f"kafka://{addresses[0]}", KAFKA_ROOT=str(folder),
    )  # fmt: skip
    if not report.exists():
        return {}
    return ends_in_junit(ET.parse(report).getroot())


def ends_in_junit(report: ET.Element) -> Results:
    """The tests of a report of pytest's."""
    return {case.attrib["name"]: Ended(_end_of(case), float(case.attrib["time"])) for case in report.iter("testcase")}


def _end_of(case: ET.Element) -> End:
    if case.find("skipped") is not None:
        return End.NOT_RUN
    return End.FAILED if len(case) else End.PASSED


class _Toxiproxy(BaseHTTPRequestHandler):
    """Answers as a Toxiproxy whose proxies are there: brokers are reached as they are."""

    def do_GET(self) -> None:
        """Say that a proxy is there."""
        proxy = {"name": self.path.rsplit("/", 1)[1], "listen": "", "upstream": "", "enabled": True}
        self.send_response(200)
        self.end_headers()
        self.wfile.write(json.dumps(proxy).encode())

    def do_POST(self) -> None:
        """Reset nothing."""
        self.send_response(204)
        self.end_headers()

    def log_message(self, *args: object, **named: object) -> None:
        """Say nothing."""


@contextmanager
def _sarama_proxies(addresses: Sequence[str]) -> Iterator[str]:
    """Brokers 1 to 5 at the ports that Sarama's tests expect; the address of what stands for Toxiproxy."""
    proxy, server = Proxy(), ThreadingHTTPServer(("127.0.0.1", 0), _Toxiproxy)
    with ExitStack() as closing:
        closing.callback(proxy.close)
        closing.callback(server.server_close)
        try:
            for number, address in enumerate(addresses[1:], start=1):
                proxy.stand_before(int(address.rpartition(":")[2]), 29_090 + number)
        except OSError as error:
            raise UnavailableError(f"Sarama's tests need the ports 29091 to 29095: {error}") from error
        threading.Thread(target=server.serve_forever, daemon=True).start()
        closing.callback(server.shutdown)
        yield f"http://127.0.0.1:{server.server_port}"


def _run_sarama(program: Path, addresses: Sequence[str]) -> Results:
    with _sarama_proxies(addresses) as toxiproxy:
        shown = _run(
            (program, "-test.v", "-test.run", _SARAMA_TESTS, f"-test.timeout={SUITE_TIMEOUT_S - 10}s"),
            BUILD, TOXIPROXY_ADDR=toxiproxy,
        )  # fmt: skip
    return ends_in_go(shown)


_ENDS_IN_GO = {"PASS": End.PASSED, "FAIL": End.FAILED, "SKIP": End.NOT_RUN}


def ends_in_go(shown: str) -> Results:
    """The tests that a program of `go test` names when they have ended."""
    ended = re.findall(r"(?m)^--- (PASS|FAIL|SKIP): (\w+) \((\S+)s\)", shown)
    return {test: Ended(_ENDS_IN_GO[end], float(seconds)) for end, test, seconds in ended}


def run(suite: Suite, package: Path, bootstrap: str) -> Results:
    """Run a fetched suite on a cluster."""
    addresses = sorted(bootstrap.split(","), key=lambda address: int(address.rpartition(":")[2]))
    if suite is SARAMA:
        return _run_sarama(package, addresses)
    return _run_kafka_python(package, addresses)


def fetch(suite: Suite) -> Path:
    """The suite as its registry has it; UnavailableError if it, or its language, is not there."""
    _need(suite.language)
    return _fetch_sarama() if suite is SARAMA else _fetch_kafka_python()


@contextmanager
def _cluster(suite: Suite, *, on_kafka: bool) -> Iterator[str]:
    if on_kafka:
        with KafkaCluster.start(ClusterSpec(version=KAFKA, brokers=suite.brokers)) as kafka:
            yield kafka.bootstrap_servers
    else:
        with serving(small_twin(KAFKA, suite.brokers)) as twin:
            yield twin.bootstrap_servers


def compare(suite: Suite, tests: Iterable[str]) -> tuple[Row, ...]:
    """Run a suite on real Kafka and on a twin: these tests, and all others that it has."""
    package = fetch(suite)
    with _cluster(suite, on_kafka=True) as bootstrap:
        on_kafka = run(suite, package, bootstrap)
    with _cluster(suite, on_kafka=False) as bootstrap:
        on_twin = run(suite, package, bootstrap)
    return side_by_side(suite.name, tests, on_kafka, on_twin)


@click.command()
@click.option("--only", multiple=True, type=click.Choice([suite.name for suite in SUITES]), help="Run only these.")
@click.option("--write", "writes", is_flag=True, help="Write the list into the guide, if all suites could be run.")
def main(only: tuple[str, ...], *, writes: bool) -> None:
    """Run the suites of other clients. Exit code 1 if a test ends otherwise than the reasons in known.py explain."""
    before = recorded(GUIDE.read_text(encoding="utf-8"))
    rows: list[Row] = []
    for suite in (one for one in SUITES if not only or one.name in only):
        try:
            found = compare(suite, [row.test for row in before if row.suite == suite.name])
        except UnavailableError as error:
            click.echo(f"{suite.name}'s tests were not run: {error}")
            continue
        on_kafka, on_twin = _count(row.on_kafka for row in found), _count(row.on_twin.end for row in found)
        click.echo(f"{suite.name}: {on_kafka} on Kafka {KAFKA}, {on_twin} on the twin")
        rows += found
    sentences = [f"{row.suite}: {sentence}" for row in rows for sentence in surprises(row)]
    sentences += _tests_in_packages()
    for sentence in sentences:
        click.echo(f"! {sentence}")
    writes = writes and {row.suite for row in rows} == {suite.name for suite in SUITES}
    report(SECTION, "make test-clients", suite_table(rows), is_broken=bool(sentences), writes=writes, page=GUIDE)


def _count(ends: Iterable[End]) -> str:
    every = list(ends)
    return f"{every.count(End.PASSED)} of {len(every)} passed"


if __name__ == "__main__":
    main()
