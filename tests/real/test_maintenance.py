"""A broker of a real cluster is in maintenance: commands are killed, and nodes restarted or upgraded."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from itertools import count
from pathlib import Path

import pytest

from kreassign.errors import Rejected
from kreassign.executor.brokers import BrokerReading, read_brokers
from kreassign.executor.maintenance.record import GROUP_ID, brokers_in_maintenance
from kreassign.model import ConfigChange, ConfigResource
from testbed import ClusterSpec, KafkaCluster
from testbed.producing import Producing
from testbed.records import verify_readable
from testbed.releases import DEFAULT, FORMER
from testbed.waiting import wait_until
from tests.real.run_processes import free_lease, start
from tests.real.test_run import MEGABYTE, assignments, client_of, end_of, leaders, loaded, shown

AWAY = 3
# The broker is never second: it would lead where the first replica is on a broker that is upgraded.
PLACES = [(AWAY, 0, 1), (0, 2, AWAY), (1, 2, AWAY), (AWAY, 2, 0)]
BEFORE = dict(enumerate(PLACES))
OFFSETS = "__consumer_offsets"
REORDERED, CORDONED, UNCORDONED = "put another replica first", "cordon the log directories", "uncordon broker"


def reading(cluster: KafkaCluster) -> BrokerReading:
    with client_of(cluster) as client:
        return read_brokers(client, [AWAY]).brokers[0]


def led(cluster: KafkaCluster, topic: str) -> set[int]:
    return {number for number, leader in leaders(cluster, topic).items() if leader == AWAY}


def forget_the_dead(cluster: KafkaCluster) -> None:
    """End the sessions of a killed command, which would last for a minute; what it sent last may do so, too."""
    with client_of(cluster) as client:
        free_lease(client)

        def nobody_writes() -> bool:
            members = client.describe_group(GROUP_ID).members
            for member in members:
                with suppress(Rejected):
                    client.leave_group(GROUP_ID, member.instance_id or "", member_id=member.member_id)
            return not members

        wait_until(nobody_writes, what="nobody who writes the record")


def given_until_it_ends(cluster: KafkaCluster, way: str, topic: str, folder: Path) -> Iterator[str]:
    """Give a command again and again, each killed at one step more, until one ends by itself; the steps told.

    Kafka 4.4 takes no list that names a cordoned broker, so nothing is cordoned that is not reordered, at no time.
    """
    options = ("--yes", "--lease", "require", "--poll-interval", "200ms", "--state-dir", str(folder))
    words = ("maintenance", way, str(AWAY), *options, "--bootstrap-server", cluster.bootstrap_servers)
    for steps in count(1):
        process = start(cluster, "kreassign.cli.commands.maintenance", *words)
        told = [line for _ in range(steps) if (line := process.stdout.readline())]
        yield from told
        if len(told) < steps:
            end_of(process)
            assert steps > 2, "some were killed"
            return
        process.kill()
        process.communicate()
        forget_the_dead(cluster)
        if reading(cluster).is_closed:
            assert all(replicas[0] != AWAY for replicas in assignments(cluster, topic).values())


def first_and_last(told: list[str], beginning: str) -> tuple[int, int]:
    numbers = [number for number, line in enumerate(told) if line.startswith(beginning)]
    return numbers[0], numbers[-1]


@pytest.mark.timeout(900)
@pytest.mark.parametrize(("release", "then"), [(DEFAULT, DEFAULT), (FORMER, FORMER), (FORMER, DEFAULT)])
def test_a_broker_is_restarted_or_all_upgraded_and_all_is_as_before(
    start_cluster: Callable[[ClusterSpec], KafkaCluster], topic_name: str, tmp_path: Path, release: str, then: str
) -> None:
    cluster = start_cluster(ClusterSpec(version=release, brokers=4))
    acknowledged = loaded(cluster, topic_name, PLACES, MEGABYTE)
    with client_of(cluster) as client:
        least = {ConfigResource.topic(topic_name): [ConfigChange.set("min.insync.replicas", "2")]}
        client.incremental_alter_configs(least).raise_if_any()
    with Producing(cluster.bootstrap_servers, topic_name, partitions=len(PLACES), records_per_s=10) as producing:
        told = list(given_until_it_ends(cluster, "enter", topic_name, tmp_path))
        assert first_and_last(told, REORDERED)[1] < first_and_last(told, CORDONED)[0]
        assert reading(cluster).is_closed
        assert (led(cluster, topic_name), led(cluster, OFFSETS)) == (set(), set())

        broker = cluster.brokers[AWAY]
        others = [*cluster.controllers.values(), *(one for one in cluster.brokers.values() if one is not broker)]
        for node in [broker, *(others if then != release else ())]:
            node.upgrade(then)
            wait_until(lambda: all(len(one.isr) == 3 for one in shown(cluster, topic_name)), what="all in sync")
            assert led(cluster, topic_name) == set()
        assert reading(cluster).is_closed

        told = list(given_until_it_ends(cluster, "exit", topic_name, tmp_path))
        assert first_and_last(told, UNCORDONED)[1] < first_and_last(told, REORDERED)[0]
    assert assignments(cluster, topic_name) == BEFORE
    assert led(cluster, topic_name) == {number for number, replicas in BEFORE.items() if replicas[0] == AWAY}
    with client_of(cluster) as client:
        assert not brokers_in_maintenance(client)
    found = reading(cluster)
    assert found.cordon is not None
    assert (found.cordon.value, found.is_closed) == (None, False)
    verify_readable(cluster.bootstrap_servers, acknowledged)
    verify_readable(cluster.bootstrap_servers, producing.ledger)
