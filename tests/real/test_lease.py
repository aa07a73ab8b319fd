"""One run per cluster across machines, on real Kafka: two state directories stand for two hosts."""

from __future__ import annotations

import json
import signal
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from kreassign.admin import AdminClient
from kreassign.clock import SystemClock
from kreassign.executor.events import LeaseLost, SubmissionIntended, ThrottleIntended
from kreassign.executor.journal import find_journals, read_events
from kreassign.executor.lease import GROUP_ID, SESSION_MS, ClusterLease, Held, LeaseHolder, LeasePolicy, Taken
from kreassign.executor.maintenance.record import Entered, MaintenanceRecord, Reordering
from kreassign.model import ConfigResource, TopicPartition
from kreassign.model.throttle import BROKER_THROTTLES, LEADER_THROTTLED_RATE
from kreassign.operations.broker_changes import GROUP_ID as MAINTENANCE_GROUP
from kreassign.operations.broker_changes import MaintenanceStore
from kreassign.operations.run import RunContext
from testbed import ClusterSpec, KafkaCluster
from testbed.waiting import wait_until
from tests.real.run_processes import free_lease, start_run
from tests.real.test_run import (
    HELD,
    HELD_RATE,
    MEGABYTE,
    assignments,
    client_of,
    end_of,
    invoke,
    let_go,
    loaded,
    plan_file,
    set_config,
    throttles,
    wait_for_copies,
)

pytestmark = pytest.mark.usefixtures("calm")

ALWAYS = ("--lease", "require")
PATIENCE_S = SESSION_MS / 1000 + 60
SOON_OVER, SLOW_RATE = 3 * MEGABYTE, "50kB/s"
"""Half a minute of copying: over before the session of a run that stops in its middle."""


def hosts(folder: Path) -> tuple[Path, Path]:
    """Folders of two hosts, each with its plans and journals."""
    for name in ("one", "two"):
        (folder / name).mkdir()
    return folder / "one", folder / "two"


def run_on(kafka: KafkaCluster, host: Path, plan: Path, *options: object) -> tuple[int, str]:
    """Exit code and what is said of a run of this host."""
    arguments = (plan, "--measure-for", 0, "--state-dir", host / "state", *ALWAYS, *options)
    result = invoke(kafka, "run", "--yes", *arguments)
    return result.exit_code, result.output + result.stderr


def events_of(host: Path) -> tuple[object, ...]:
    (journal,) = find_journals(host / "state")
    return read_events(journal)


def test_a_run_of_another_host_is_refused_and_told_who_holds_the_lease(
    kafka: KafkaCluster, topic_name: str, tmp_path: Path
) -> None:
    one, two = hosts(tmp_path)
    loaded(kafka, topic_name, [(0, 1), (1, 2)], HELD, MEGABYTE)
    first, second = plan_file(one, topic_name, {0: (2, 1)}), plan_file(two, topic_name, {1: (1, 3)})
    process = start_run(kafka, one, first, "--throttle", HELD_RATE, *ALWAYS)
    run_id = wait_for_copies(one)

    code, said = run_on(kafka, two, second)
    shown = json.loads(invoke(kafka, "doctor", "--state-dir", two / "state", "--format", "json").stdout)

    assert code == 2
    assert f"run {run_id} of " in said
    assert "holds the lease of the cluster; one run at a time may change a cluster" in said
    assert shown["lease"]["run_id"] == run_id
    assert not find_journals(two / "state")
    let_go(one)
    end_of(process)
    assert run_on(kafka, two, second)[0] == 0
    assert assignments(kafka, topic_name) == {0: (2, 1), 1: (1, 3)}
    assert throttles(kafka, topic_name) == {}


@pytest.mark.thorough
def test_what_a_killed_run_left_is_refused_until_its_host_restores_it(
    kafka: KafkaCluster, topic_name: str, tmp_path: Path
) -> None:
    one, two = hosts(tmp_path)
    loaded(kafka, topic_name, [(0, 1), (1, 2)], SOON_OVER)
    set_config(kafka, ConfigResource.broker(1), LEADER_THROTTLED_RATE, "12345678")
    before = throttles(kafka, topic_name)
    first, second = plan_file(one, topic_name, {0: (2, 1)}), plan_file(two, topic_name, {1: (1, 3)})
    try:
        process = start_run(kafka, one, first, "--throttle", SLOW_RATE, "--adopt", "restore", *ALWAYS)
        wait_for_copies(one)
        process.kill()
        process.communicate()
        left = throttles(kafka, topic_name)
        assert len(left) > len(before)
        code, said = run_on(kafka, two, second, "--throttle", "5MB/s")
        assert (code, "holds the lease of the cluster" in said) == (2, True), said

        def is_refused_for_the_throttle() -> bool:
            code, said = run_on(kafka, two, second, "--throttle", "5MB/s")
            assert code == 2, said
            return "run with --adopt remove" in said

        wait_until(is_refused_for_the_throttle, timeout_s=PATIENCE_S, what="the end of the session and of the move")
        (journal,) = find_journals(one / "state")
        end_of(start_run(kafka, one, "resume", journal.stem, *ALWAYS))
        assert throttles(kafka, topic_name) == before
        code, said = run_on(kafka, two, second, "--throttle", "5MB/s", "--adopt", "restore")
        assert (code, throttles(kafka, topic_name)) == (0, before), said
    finally:
        for name in BROKER_THROTTLES[:2]:
            for broker in kafka.brokers:
                set_config(kafka, ConfigResource.broker(broker), name, None)


@pytest.mark.thorough
def test_a_frozen_holder_finds_out_and_starts_nothing_more(
    kafka: KafkaCluster, topic_name: str, tmp_path: Path
) -> None:
    one, two = hosts(tmp_path)
    loaded(kafka, topic_name, [(0, 1), (0, 1), (1, 2)], SOON_OVER, SOON_OVER, HELD)
    first = plan_file(one, topic_name, {0: (2, 1), 1: (2, 1)})
    second = plan_file(two, topic_name, {2: (1, 3)})
    process = start_run(kafka, one, first, "--max-moves", "1", "--throttle", SLOW_RATE, *ALWAYS)
    wait_for_copies(one)
    process.send_signal(signal.SIGSTOP)

    def is_over() -> bool:
        with client_of(kafka) as client:
            return not client.describe_group(GROUP_ID).members

    wait_until(is_over, timeout_s=PATIENCE_S, what="the session of a frozen holder over")
    other = start_run(kafka, two, second, "--throttle", HELD_RATE, "--adopt", "remove", *ALWAYS)
    other_id = wait_for_copies(two)
    process.send_signal(signal.SIGCONT)

    def has_found_out() -> bool:
        return any(isinstance(event, LeaseLost) for event in events_of(one))

    wait_until(has_found_out, what="the former holder to find out")
    assert other.poll() is None, "the other run was to hold the lease still"
    found = events_of(one)
    lost = next(number for number, event in enumerate(found) if isinstance(event, LeaseLost))
    assert not [event for event in found[lost:] if isinstance(event, SubmissionIntended | ThrottleIntended)]
    let_go(two)
    end_of(other)
    end_of(process)
    assert assignments(kafka, topic_name) == {0: (2, 1), 1: (2, 1), 2: (1, 3)}
    assert any(other_id in str(event) for event in events_of(one))
    assert throttles(kafka, topic_name) == {}


def one_of_two_holds_the_lease(
    client: AdminClient, policy: LeasePolicy
) -> tuple[ClusterLease, ClusterLease, ClusterLease]:
    """A run holds it, another one is refused, and a second process of the first run takes the place of the first."""
    one, again, two = (
        ClusterLease(client, SystemClock(), LeaseHolder(name, "alice", "ops-1", 1), policy)
        for name in ("one", "one", "two")
    )
    one.policy = LeasePolicy.REQUIRE  # which has the cluster create the topic of groups
    assert isinstance(one.take(), Held)
    refused = two.take()
    assert isinstance(refused, Taken)
    assert "run one of alice@ops-1" in refused.reason
    assert isinstance(again.take(), Held)
    assert isinstance(one.confirm(), Taken)
    return one, again, two


def test_the_lease_is_the_same_in_zookeeper_mode(kafka_zookeeper: KafkaCluster) -> None:
    is_taken_and_passed_on(kafka_zookeeper)


def test_the_lease_is_the_same_in_kafka_2_8(start_cluster: Callable[[ClusterSpec], KafkaCluster]) -> None:
    """The oldest release whose brokers are here; what the lease needs came with Kafka 2.3 and 2.4."""
    is_taken_and_passed_on(start_cluster(ClusterSpec(version="2.8.2", brokers=1, mode="zookeeper")))


def is_taken_and_passed_on(cluster: KafkaCluster) -> None:
    """One run at a time has the lease; the next one gets it when the holder leaves."""
    with client_of(cluster) as client:
        _, again, two = one_of_two_holds_the_lease(client, LeasePolicy.REQUIRE)
        again.release()
        assert isinstance(two.take(), Held)
        free_lease(client)


def test_a_group_with_room_for_one_member_is_no_way_past_the_lease(
    start_cluster: Callable[[ClusterSpec], KafkaCluster],
) -> None:
    """Such a broker refuses a second member for its number (81), also a run that comes back."""
    cluster = start_cluster(ClusterSpec(brokers=1, broker_config={"group.max.size": "1"}))
    with client_of(cluster) as client:
        one_of_two_holds_the_lease(client, LeasePolicy.AUTO)


def test_maintenance_recorded_in_the_cluster_is_known_elsewhere(kafka: KafkaCluster, tmp_path: Path) -> None:
    lists = {TopicPartition("t", number): Reordering((3, 0, 1), (0, 1, 3)) for number in range(2_000)}
    record = MaintenanceRecord(1, {3: Entered(1, "ann@one", is_cordoned=True)}, lists)
    with client_of(kafka) as client:
        cluster_id = client.describe_cluster().cluster_id
        one, two = (
            MaintenanceStore(client, RunContext(host, lease=LeasePolicy.REQUIRE), cluster_id, f"writer-{host.name}")
            for host in hosts(tmp_path)
        )
        one.write(record)
        assert two.read().record == replace(record, cluster_ms=1)
        ended = two.read().record.left([3], 2)
        two.write(ended)
        assert one.read().record == replace(ended, cluster_ms=2), "the record of the cluster counts"
        assert client.describe_group(MAINTENANCE_GROUP).members == ()
