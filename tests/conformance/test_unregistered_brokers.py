"""UnregisterBroker, carried out: the same on a twin as on real brokers, on a cluster that nobody else needs."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from kreassign.wire import api
from testbed import ClusterSpec, KafkaCluster
from tests.conformance.clusters import Answered, Cluster, InProcess, RealKafka, small_twin

BROKERS = 3
GONE = 2
REFUSED = f"The manual partition assignment includes broker {GONE}, but no such broker is registered."


@pytest.fixture(params=["twin", pytest.param("kafka", marks=pytest.mark.kafka)])
def apart(request: pytest.FixtureRequest) -> Iterator[Cluster]:
    """A twin, or real brokers."""
    with ExitStack() as stack:
        if request.param == "twin":
            found = Cluster(InProcess("4.3", small_twin("4.3", BROKERS)), "orders")
        else:
            kafka = stack.enter_context(KafkaCluster.start(ClusterSpec(version="4.3.1", brokers=BROKERS)))
            found = Cluster(RealKafka(kafka), "orders")
        yield stack.enter_context(found)


def registered(cluster: Cluster) -> set[int]:
    """The brokers that the cluster lists, fenced ones too."""
    return {one.broker_id for one in cluster.ask(api.DESCRIBE_CLUSTER, 2, include_fenced_brokers=True).brokers}


def test_a_dead_broker_is_unregistered_and_registers_again_when_it_is_started(apart: Cluster) -> None:
    led, other = apart.create((GONE, 0), (0, 1))
    apart.backend.kill(GONE)
    apart.becomes(led, (GONE, 0), {0}, 0)
    assert registered(apart) == {0, 1, 2}
    answer = apart.ask(api.UNREGISTER_BROKER, broker_id=GONE)
    assert (answer.error_code, answer.error_message) == (0, "")
    apart.until(lambda: registered(apart) == {0, 1}, "two brokers registered")
    # Lists go on naming it, and no list can name it anew.
    apart.becomes(led, (GONE, 0), {0}, 0)
    assert apart.alter({other: (1, GONE)}) == {other: Answered(39, REFUSED)}
    again = apart.ask(api.UNREGISTER_BROKER, broker_id=GONE)
    assert (again.error_code, again.error_message) == (102, f"Broker ID {GONE} is not currently registered")
    apart.backend.start(GONE)
    apart.becomes(led, (GONE, 0), {0, GONE}, 0)
    assert registered(apart) == {0, 1, 2}
