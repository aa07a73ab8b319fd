"""`python -m tests.clients.foreign_suites`: the test suites of other clients, from their packages, on a twin.

The packages come from the registries, into `build/clients`; nothing of them is in this repository. `--kafka` runs them
on real Kafka too. A test passes, or is left out for a reason below; one that passes all the same is told as well, so
that no reason outlives its cause. The table is in `docs/design/conformance.md`.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tarfile
import threading
from collections.abc import Iterator, Mapping, Sequence
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
from tests.clients.programs import BUILD, HERE, Language
from tests.conformance.clusters import small_twin

KAFKA = DEFAULT
SUITE_TIMEOUT_S = 300
_FETCH_TIMEOUT_S, _BUILD_TIMEOUT_S, _TEST_TIMEOUT_S = 180, 1_200, 60
_RECORDS = "produces records"
_TWO_MEMBERS = "needs a group of two members"
Results = Mapping[str, bool]
"""Whether each test passed."""


class UnavailableError(Exception):
    """A suite could not be fetched or built."""


@dataclass(frozen=True, slots=True)
class Suite:
    """A suite of another client: `brokers` it needs, and why each test that does not pass is left out."""

    name: str
    language: Language
    brokers: int
    passes: tuple[str, ...]
    left_out: Mapping[str, str]


KAFKA_PYTHON = Suite(
    "kafka-python", Language.PYTHON, 1,
    (
        "test_alter_partition_reassignments", "test_alter_replica_log_dirs", "test_create_delete_topics",
        "test_create_partitions", "test_describe_configs_broker_resource_returns_configs",
        "test_describe_configs_invalid_broker_id_raises", "test_describe_configs_mixed_resources_returns_configs",
        "test_describe_configs_topic_resource_returns_configs", "test_describe_log_dirs",
        "test_describe_metadata_quorum", "test_describe_topic_partitions", "test_describe_topic_partitions_pagination",
        "test_elect_leaders", "test_list_config_resources", "test_list_partition_offsets",
        "test_list_partition_reassignments",
    ),
    {
        "test_create_describe_delete_acls": "needs an authorizer; without one it fails on Kafka too",
        "test_delete_groups": _RECORDS,
        "test_delete_groups_with_errors": _RECORDS,
        "test_delete_records": _RECORDS,
        "test_delete_records_with_errors": _RECORDS,
        "test_describe_group_exists": _TWO_MEMBERS,
    },
)  # fmt: skip
SARAMA = Suite(
    "Sarama", Language.GO, 6,  # It asks brokers 1 to 5, and clusters of tests count from 0.
    (
        "TestFuncAdminAlterConfig", "TestFuncAdminAlterConsumerGroupOffsets",
        "TestFuncAdminAlterPartitionReassignments", "TestFuncAdminDeleteGroup",
        "TestFuncAdminDeleteTopic", "TestFuncAdminDescribeConfig", "TestFuncAdminDescribeGroups",
        "TestFuncAdminDescribeLogDirs", "TestFuncAdminElectLeadersV1", "TestFuncAdminIncrementalAlterConfigs",
        "TestFuncAdminListConsumerGroupOffsetsBatch", "TestFuncAdminListConsumerGroups", "TestFuncAdminUpdateFeatures",
    ),
    {
        "TestFuncAdminDeleteRecords": _RECORDS,
        "TestFuncAdminListConsumerGroupOffsets": "stops a broker with docker",
        "TestFuncAdminListOffsets": _RECORDS,
        "TestFuncAdminNetworkErrorClosesControllerConnection": "breaks connections with Toxiproxy",
        "TestFuncAdminQuotas": "sets quotas",
    },
)  # fmt: skip
SUITES = (KAFKA_PYTHON, SARAMA)
WITHOUT_TESTS = {"confluent-kafka": Language.PYTHON, "kafkajs": Language.NODE, "@platformatic/kafka": Language.NODE}
"""Clients whose packages hold no tests of their admin client, which is looked at: they are walked (`walks.py`)."""


def suite_table() -> str:
    """The table of the guide: what passes, and what is left out why."""
    lines = ["| Suite | Test | On a twin |", "|---|---|---|"]
    for suite in SUITES:
        lines += [f"| {suite.name} | `{test}` | passes |" for test in suite.passes]
        lines += [f"| {suite.name} | `{test}` | left out: {reason} |" for test, reason in suite.left_out.items()]
    return "\n".join(lines)


def surprises(suite: Suite, results: Results) -> tuple[str, ...]:
    """Sentences about tests that end otherwise than the table says, are new, or are gone."""
    expected = dict.fromkeys(suite.passes, True) | dict.fromkeys(suite.left_out, False)
    failed = (f"{test} fails" for test in expected if expected[test] and results.get(test) is False)
    passed = (f"{test} passes, though it is left out" for test in suite.left_out if results.get(test))
    gone = (f"{test} was not run" for test in expected if test not in results)
    new = (f"{test} is not in the table" for test in results if test not in expected)
    return (*failed, *passed, *gone, *new)


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


def _check_that_there_are_no_tests(client: str) -> bool:
    """Tell what the package of a client has: False if that is tests of its admin client."""
    language = WITHOUT_TESTS[client]
    try:
        _need(language)
        found = admin_tests(_fetch_from_npm(client) if language is Language.NODE else _fetch_from_pypi(client))
    except UnavailableError as error:
        click.echo(f"{client}'s package was not looked at: {error}")
        return True
    click.echo(
        f"  ! {client}'s package has tests of its admin client now: {', '.join(found)}"
        if found
        else f"{client}: its package has no tests of its admin client, which is walked"
    )
    return not found


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
    """Output of a suite; it may fail, and lines after `SUITE_TIMEOUT_S` count as not run."""
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
    cases = ET.parse(report).iter("testcase")
    return {case.attrib["name"]: len(list(case)) == 0 for case in cases}


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
            (program, "-test.v", "-test.run", "TestFuncAdmin", f"-test.timeout={SUITE_TIMEOUT_S - 10}s"),
            BUILD, TOXIPROXY_ADDR=toxiproxy,
        )  # fmt: skip
    return {test: end == "PASS" for end, test in re.findall(r"(?m)^--- (PASS|FAIL|SKIP): (\w+)", shown)}


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


@click.command()
@click.option("--only", multiple=True, type=click.Choice([suite.name for suite in SUITES]), help="Run only these.")
@click.option("--kafka", "on_kafka", is_flag=True, help="Run on real Kafka, and not on a twin.")
def main(*, only: tuple[str, ...], on_kafka: bool) -> None:
    """Run the suites of other clients. Exit code 1 if a test ends otherwise than the table says."""
    is_as_told = True
    for suite in (one for one in SUITES if not only or one.name in only):
        try:
            package = fetch(suite)
            with _cluster(suite, on_kafka=on_kafka) as bootstrap:
                results = run(suite, package, bootstrap)
        except UnavailableError as error:
            click.echo(f"{suite.name}'s tests were not run: {error}")
            continue
        click.echo(
            f"{suite.name}: {len(results)} tests, {sum(results.values())} passed, {len(suite.left_out)} left out"
        )
        if on_kafka:
            for test, has_passed in results.items():
                click.echo(f"    {test}: {'passes' if has_passed else 'fails'}")
            continue
        for sentence in surprises(suite, results):
            click.echo(f"  ! {sentence}")
            is_as_told = False
    for client in () if on_kafka else WITHOUT_TESTS:
        is_as_told = _check_that_there_are_no_tests(client) and is_as_told
    if not is_as_told:
        raise SystemExit(1)


if __name__ == "__main__":
    main()
