"""Real Kafka clusters, shared by the tests that ask for the same one and ended after the last of them.

A test asks by the name of a fixture below, or by the mark `uses_cluster(name)`. Before each test the nodes of its
clusters are brought back, unless it is marked `keeps_broken` because tests in a row share a broken cluster.
"""

from __future__ import annotations

import itertools
import os
import re
from collections.abc import Callable, Iterator

import pytest

from testbed import ClusterSpec, JarsMissing, JavaMissing, KafkaCluster, Security

REQUIRE_VARIABLE = "KREASSIGN_REQUIRE_KAFKA"
SHARED = {
    "kafka": ClusterSpec(version="4.3.1", brokers=4),
    "kafka_391": ClusterSpec(version="3.9.1", brokers=3),
    "kafka_zookeeper": ClusterSpec(version="3.9.1", brokers=3, mode="zookeeper"),
    "kafka_secure": ClusterSpec(version="4.3.1", brokers=2, security=Security.SECURE),
    # How replication behaves under a throttle depends on what was throttled before.
    "undisturbed": ClusterSpec(version="4.3.1", brokers=4),
    # The conformance tests leave open moves and broken leaders behind, which others must not find.
    "conformance_431": ClusterSpec(version="4.3.1", brokers=4),
    "conformance_391": ClusterSpec(version="3.9.1", brokers=3),
}


class SharedClusters:
    """The shared clusters that run, and the tests that still need them."""

    def __init__(self) -> None:
        self._running: dict[str, KafkaCluster] = {}
        self._failures_before: dict[str, int] = {}
        self._last_user: dict[str, pytest.Item] = {}

    def plan(self, items: list[pytest.Item]) -> None:
        """Note, for each cluster, the last test in the order of running that asks for it."""
        self._last_user = {name: item for item in items for name in _clusters_of(item)}

    def start(self, name: str, session: pytest.Session) -> KafkaCluster:
        """Start a cluster."""
        self._failures_before[name] = session.testsfailed
        self._running[name] = _start(SHARED[name])
        return self._running[name]

    def heal(self, item: pytest.Item) -> None:
        """Bring back what earlier tests left stopped or frozen in the clusters that a test uses."""
        if item.get_closest_marker("keeps_broken") is None:
            for name in _clusters_of(item):
                if name in self._running:
                    self._running[name].heal()

    def end_after(self, item: pytest.Item) -> None:
        """End the clusters for which this was the last test."""
        for name in tuple(self._running):
            if self._last_user.get(name) is item:
                self.end(name, item.session)

    def end(self, name: str, session: pytest.Session) -> None:
        """End a cluster if it still runs; keep its logs if a test failed meanwhile."""
        cluster = self._running.pop(name, None)
        if cluster is not None:
            cluster.close(keep_logs=session.testsfailed > self._failures_before[name])


_shared = SharedClusters()


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put the tests on real brokers at the end: those that share a cluster together, those with their own last."""
    items.sort(key=lambda item: (_clusters_of(item) or ("none",)) if item.get_closest_marker("kafka") else ())
    _shared.plan(items)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Every test finds all nodes of its shared clusters running."""
    _shared.heal(item)


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown(item: pytest.Item) -> None:
    """After a test and the fixtures that end with it: end the clusters that nobody needs any more."""
    _shared.end_after(item)


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


def _shared_cluster(name: str) -> Callable[[pytest.FixtureRequest], Iterator[KafkaCluster]]:
    @pytest.fixture(scope="session", name=name)
    def cluster(request: pytest.FixtureRequest) -> Iterator[KafkaCluster]:
        yield _shared.start(name, request.session)
        _shared.end(name, request.session)

    return cluster


kafka = _shared_cluster("kafka")
kafka_391 = _shared_cluster("kafka_391")
kafka_zookeeper = _shared_cluster("kafka_zookeeper")
kafka_secure = _shared_cluster("kafka_secure")
undisturbed = _shared_cluster("undisturbed")
conformance_431 = _shared_cluster("conformance_431")
conformance_391 = _shared_cluster("conformance_391")


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
