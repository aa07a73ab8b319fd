"""Real Kafka clusters, shared by the tests that ask for the same one and ended after the last of them.

A test asks by the name of a fixture below, or by the mark `uses_cluster(name)`. Before each test the nodes of its
clusters are brought back, unless it is marked `keeps_broken` because tests in a row share a broken cluster.

Tests that share what takes long to start form a group: a cluster, a Spark session, a browser, the compiled loops of the
search, the process that forks commands of pages.
They run in a row, and with `--dist loadgroup` on one worker of pytest-xdist, while other groups run on the others. A
worker has at most the clusters of one group at a time.
"""

from __future__ import annotations

import itertools
import os
import re
from collections.abc import Callable, Iterator

import pytest

from testbed import ClusterSpec, JarsMissing, JavaMissing, KafkaCluster, Security
from testbed.releases import FORMER
from tests.browser import uses_browser

REQUIRE_VARIABLE = "KREASSIGN_REQUIRE_KAFKA"
# Who comes in this way has to log in again before so many milliseconds have passed (KIP-368).
SHORT_LOGINS = {
    "listener.name.sasl_plaintext.scram-sha-256.connections.max.reauth.ms": "2000",
    # Or before its token ends.
    "listener.name.sasl_ssl.oauthbearer.connections.max.reauth.ms": "20000",
}
# Ten times less than usual: descriptions come in pages without the thousands of partitions that keep all brokers busy.
SMALL_PAGES = {"max.request.partition.size.limit": "200"}
SHARED = {
    "kafka": ClusterSpec(brokers=4, broker_config=SMALL_PAGES),
    "kafka_391": ClusterSpec(version="3.9.1", brokers=3),
    "kafka_zookeeper": ClusterSpec(version="3.9.1", brokers=3, mode="zookeeper"),
    "kafka_secure": ClusterSpec(brokers=2, security=Security.SECURE, broker_config=SHORT_LOGINS),
    "three_controllers": ClusterSpec(brokers=2, controllers=3),
    # How replication behaves under a throttle depends on what was throttled before.
    "undisturbed": ClusterSpec(brokers=4),
    # Kafka's stand-in for remote storage is not in the registry for 4.4.
    "kafka_tiered": ClusterSpec(version=FORMER, brokers=3, is_tiered=True),
    # The conformance tests leave open moves and broken leaders behind, which others must not find: they come after the
    # walks of both tools.
    "conformance": ClusterSpec(brokers=4),
    "conformance_431": ClusterSpec(version=FORMER, brokers=4),
}


# Groups that take longest, in the order in which they are handed to the workers; all others follow. Programs that plan
# on Spark come after the search, which has compiled the loops by then: each of their processes would do so by itself.
LONGEST = (
    "kafka",
    "search",
    "spark",
    "conformance",
    "kafka_zookeeper",
    "pages",
    "browser",
    "spark processes",
    "test_differential.py",
    "test_kip_455.py",
    "test_tools_in_zookeeper_mode.py",
    "test_zookeeper_twin.py",
    "test_kips_in_zookeeper_mode.py",
)
# Where most tests plan. Each process that does loads compiled code for two seconds, or compiles it for twenty.
SEARCHING = (
    "tests/planner/",
    "tests/cli/planning/",
    "tests/cli/test_permissions.py",
    "tests/cli/test_plan",
    "tests/cli/commands/test_twin.py",
    "tests/test_public_api.py",
)
# Tests by themselves that start whole programs, up to three quarters of a minute each: before the thousands of short
# ones, so that at the end no worker waits for another.
PROGRAMS = ("tests/pages/", "tests/scripts/", "tests/test_", "tests/torture/")


class SharedClusters:
    """The shared clusters that run in this process."""

    def __init__(self) -> None:
        self._running: dict[str, KafkaCluster] = {}
        self._failures_before: dict[str, int] = {}

    def get(self, name: str, session: pytest.Session) -> KafkaCluster:
        """A cluster, started if it does not run."""
        if name not in self._running:
            self._failures_before[name] = session.testsfailed
            self._running[name] = _start(SHARED[name])
        return self._running[name]

    def heal(self, item: pytest.Item) -> None:
        """Bring back what earlier tests left stopped or frozen in the clusters that a test uses."""
        if item.get_closest_marker("keeps_broken") is None:
            for name in _clusters_of(item):
                if name in self._running:
                    self._running[name].heal()

    def end_unless_used(self, item: pytest.Item | None, session: pytest.Session) -> None:
        """End the clusters that a test does not use; keep the logs of those in whose time a test failed."""
        used = _clusters_of(item) if item else ()
        for name in self._running.keys() - set(used):
            failed = session.testsfailed > self._failures_before[name]
            self._running.pop(name).close(keep_logs=failed)


_shared = SharedClusters()


@pytest.hookimpl(wrapper=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> Iterator[None]:
    """Name the group of each test; once the tests are chosen, put those of a group together, the others at the end."""
    for item in items:
        if uses_browser(item):
            item.add_marker("browser")
        if group := _group_of(item):
            item.add_marker(pytest.mark.xdist_group(group))
    yield
    items.sort(key=_turn)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Every test finds all nodes of its shared clusters running."""
    _shared.heal(item)


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> None:
    """After a test and the fixtures that end with it: end the clusters that the next one does not need."""
    _shared.end_unless_used(nextitem, item.session)


def _group_of(item: pytest.Item) -> str | None:
    """The tests with which a test shares what takes long to start; None if it runs longer than anything starts.

    Tests that start programs which start Spark share nothing with those that share a session, but their cluster.
    """
    file = item.path.name
    if names := ", ".join(_clusters_of(item)):
        return names
    if item.get_closest_marker("spark"):
        return "spark" if "spark" in getattr(item, "fixturenames", ()) else "spark processes"
    if uses_browser(item):
        return "browser"
    if item.nodeid.startswith("tests/pages/test_commands.py"):
        return "pages"
    if item.get_closest_marker("kafka"):
        return file
    return "search" if item.nodeid.startswith(SEARCHING) else None


def _turn(item: pytest.Item) -> tuple[int, str, bool]:
    """Sort key of a test: its group, and True if it comes late among others of its kind."""
    group = _group_of(item)
    if group is None:
        return len(LONGEST) + 1, "", not item.nodeid.startswith(PROGRAMS)
    leaves_moves = item.nodeid.startswith("tests/conformance/")
    return (LONGEST.index(group), "", leaves_moves) if group in LONGEST else (len(LONGEST), group, leaves_moves)


def _clusters_of(item: pytest.Item) -> tuple[str, ...]:
    asked = {*getattr(item, "fixturenames", ()), *(mark.args[0] for mark in item.iter_markers("uses_cluster"))}
    return tuple(name for name in SHARED if name in asked)


def _start(spec: ClusterSpec) -> KafkaCluster:
    try:
        return KafkaCluster.start(spec)
    except (JarsMissing, JavaMissing) as missing:
        if os.environ.get(REQUIRE_VARIABLE) == "1":
            raise
        pytest.skip(str(missing))


def _shared_cluster(name: str) -> Callable[[pytest.FixtureRequest], KafkaCluster]:
    @pytest.fixture(name=name)
    def cluster(request: pytest.FixtureRequest) -> KafkaCluster:
        return _shared.get(name, request.session)

    return cluster


kafka = _shared_cluster("kafka")
kafka_391 = _shared_cluster("kafka_391")
kafka_zookeeper = _shared_cluster("kafka_zookeeper")
kafka_secure = _shared_cluster("kafka_secure")
three_controllers = _shared_cluster("three_controllers")
undisturbed = _shared_cluster("undisturbed")
kafka_tiered = _shared_cluster("kafka_tiered")
conformance = _shared_cluster("conformance")
conformance_431 = _shared_cluster("conformance_431")


@pytest.fixture
def start_cluster(request: pytest.FixtureRequest) -> Iterator[Callable[[ClusterSpec], KafkaCluster]]:
    """Start clusters of a test's own, for tests that add brokers or need other settings; they end with the test."""
    clusters: list[KafkaCluster] = []

    def start(spec: ClusterSpec) -> KafkaCluster:
        clusters.append(_start(spec))
        return clusters[-1]

    failures_before = request.session.testsfailed
    yield start
    for cluster in clusters:
        cluster.close(keep_logs=request.session.testsfailed > failures_before)


_numbers = itertools.count(1)


@pytest.fixture
def topic_name(request: pytest.FixtureRequest) -> str:
    """A topic name that no other test uses and that says which test it belongs to."""
    return f"t{next(_numbers)}-{re.sub('[^a-zA-Z0-9-]', '-', request.node.name)[:80]}"
