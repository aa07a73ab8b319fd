"""KIP-860's second example: what moves is listed by the controller, and described by a real broker that lags.

A proxy that falls silent stands on the one way by which that broker learns of changes: in KRaft mode its own to the
controller, with ZooKeeper that of the controller to it. Clients reach the broker past it.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from typing import Literal

import pytest

from kreassign.admin import AdminClient
from kreassign.errors import OutcomeUnknown, Unsupported
from kreassign.model import Batch, TopicPartition
from testbed import ClusterSpec, KafkaCluster, probe
from testbed.ports import HOST, ReservedPorts, reserved_ports
from testbed.proxy import Deed, Interference, Proxy
from testbed.waiting import PATIENCE_S, wait_until
from tests.real.admin_checks import client_of, created, refusal, wait_idle, wait_replicas

LAGGING = 3
CLUSTERS = {
    # Nobody shall be fenced meanwhile.
    "kraft": ClusterSpec(brokers=4, broker_config={"broker.session.timeout.ms": "60000"}),
    "zookeeper": ClusterSpec(version="3.9.1", brokers=4, mode="zookeeper"),
}


@contextmanager
def standing_before(cluster: KafkaCluster, ports: ReservedPorts) -> Iterator[Proxy]:
    """The proxy, once the broker that shall lag is started again behind it."""
    broker = cluster.brokers[LAGGING]
    broker.stop()
    at, file = ports.take(), broker.place.config_file
    if cluster.controllers:
        (controller,) = cluster.controllers.values()
        before = controller.place.ports["CONTROLLER"]
        old, new = f"@{HOST}:{before}", f"@{HOST}:{at}"
    else:
        before = broker.place.ports["PLAINTEXT"]
        old, new = f"advertised.listeners=PLAINTEXT://{HOST}:{before}", f"advertised.listeners=PLAINTEXT://{HOST}:{at}"
    text = file.read_text()
    assert text.count(old) == 1
    file.write_text(text.replace(old, new))
    with closing(Proxy()) as proxy:
        proxy.stand_before(before, at)
        broker.start()
        cluster.wait_ready()
        try:
            yield proxy
        finally:
            broker.kill()


def submitted(
    client: AdminClient,
    targets: Mapping[TopicPartition, tuple[int, ...]],
    *,
    allow_replication_factor_change: bool = True,
) -> Batch[TopicPartition, None]:
    """Submit like an operator when the hanging broker was named as the controller: KRaft's brokers name any."""
    deadline = time.monotonic() + PATIENCE_S
    while True:
        try:
            answers = client.alter_partition_reassignments(
                targets, allow_replication_factor_change=allow_replication_factor_change
            )
        except OutcomeUnknown:  # the hanging broker answered nothing, not even that its controller does not
            if time.monotonic() > deadline:
                raise
            continue
        if time.monotonic() > deadline or not any(isinstance(e, OutcomeUnknown) for e in answers.failed.values()):
            return answers


def described(cluster: KafkaCluster, broker: int, topic: str) -> tuple[int, ...]:
    """The replicas that this very broker tells."""
    (partition,) = probe.metadata(cluster.brokers[broker].place.ports["PLAINTEXT"], (topic,)).topics[topic]
    return tuple(partition.replicas)


@pytest.mark.parametrize("mode", ["kraft", "zookeeper"])
def test_a_lagging_description_passes_for_a_factor_unless_guarded(
    mode: Literal["kraft", "zookeeper"], topic_name: str
) -> None:
    with (
        KafkaCluster.start(CLUSTERS[mode]) as cluster,
        reserved_ports() as ports,
        standing_before(cluster, ports) as proxy,
        client_of(cluster, request_timeout_ms="10000") as client,
    ):
        # With ZooKeeper one of them is the controller, which must not be frozen.
        here = cluster.seen().controller if cluster.zookeeper else 0
        there, other = (broker for broker in cluster.brokers if broker not in (here, LAGGING))
        (partition,) = created(client, topic_name, (here,))
        cluster.brokers[there].freeze()
        submitted(client, {partition: (there,)}).raise_if_any()
        wait_until(
            lambda: set(described(cluster, LAGGING, topic_name)) == {here, there},
            what=f"broker {LAGGING} told of the move",
        )
        proxy.interfere(Interference(Deed.SILENCE))
        cluster.brokers[there].thaw()
        wait_idle(client, partition)
        wait_until(lambda: described(cluster, other, topic_name) == (there,), what="another broker told of the end")
        seen = described(cluster, LAGGING, topic_name)
        assert set(seen) == {here, there}
        target = {partition: (other, here)[: len(seen)]}
        if mode == "kraft":
            guarded = submitted(client, target, allow_replication_factor_change=False)
            code, text = refusal(guarded, partition)
            assert (code, "changed from 1 to 2" in text) == (38, True)
        else:
            with pytest.raises(Unsupported):
                submitted(client, target, allow_replication_factor_change=False)
        submitted(client, target).raise_if_any()
        wait_idle(client, partition)
        wait_until(lambda: described(cluster, other, topic_name) == (other, here), what="twice as many replicas")
        proxy.interfere(None)
        wait_until(lambda: described(cluster, LAGGING, topic_name) == (other, here), what="the same of them all")
        wait_replicas(client, partition, (other, here))
