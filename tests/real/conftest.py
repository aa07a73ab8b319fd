"""Every test of this folder needs real brokers."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from kreassign.operations.connect import connect
from testbed import ClusterSpec, KafkaCluster
from tests.clusters import SHARED
from tests.real.run_processes import end_started, end_throttles_and_moves, expel_holder


def pytest_itemcollected(item: pytest.Item) -> None:
    """Mark the tests as they are found, before any are chosen by marker."""
    item.add_marker(pytest.mark.kafka)


@pytest.fixture(autouse=True)
def started_runs(start_cluster: object) -> Iterator[None]:
    """Ensure that no run outlives its test. Clusters of the test's own are there until all runs are ended."""
    del start_cluster
    yield
    end_started()


@pytest.fixture
def calm(request: pytest.FixtureRequest) -> None:
    """Leave no throttle, no reassignment and no lease in the clusters of a test.

    A run refuses to begin on top of what other tests left.
    """
    for name in {*SHARED, "zookeeper_mode"}.intersection(request.fixturenames):
        with connect(request.getfixturevalue(name).bootstrap_servers) as client:
            expel_holder(client)
            end_throttles_and_moves(client)


@pytest.fixture(scope="module")
def zookeeper_mode() -> Iterator[KafkaCluster]:
    """Kafka 3.9.1 with ZooKeeper, and four brokers, as the scenarios of the tools need them; one for each file.

    Scenarios that race with a throttle, of which brokers learn late here, need brokers that nothing else has kept busy.
    """
    with KafkaCluster.start(ClusterSpec(version="3.9.1", brokers=4, mode="zookeeper")) as started:
        yield started
