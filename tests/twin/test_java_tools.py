"""Kafka 4.3.1's own tools against a twin over TCP: they must not notice that it is one."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from kreassign.model import TopicPartition
from kreassign.model.throttle import (
    FOLLOWER_THROTTLED_RATE,
    FOLLOWER_THROTTLED_REPLICAS,
    LEADER_THROTTLED_RATE,
    LEADER_THROTTLED_REPLICAS,
    LOG_DIR_RATE,
)
from kreassign.twin.cluster import Twin
from kreassign.twin.server import serving
from kreassign.twin.version import DEFAULT, Endpoint, kafka_version
from testbed.releases import DEFAULT as KAFKA
from testbed.waiting import wait_until
from tests.twin.asking import partition, twin
from tests.twin.java_tools import ELECT, REASSIGN, TOPICS, JavaTools, failure, success

pytestmark = pytest.mark.kafka

ORDERS = {"orders": [[0, 1], [1, 2], [2, 3]]}
SLOW = ("--throttle", "1000")


@pytest.fixture
def box(tmp_path: Path) -> Iterator[JavaTools]:
    with serving(twin(ORDERS)) as server:
        yield JavaTools(server, tmp_path)
        assert not server.server.failures


def of(box: JavaTools, topic: str = "orders", number: int = 0) -> tuple[tuple[int, ...], set[int], int]:
    return box.server.do(lambda asked: partition(asked, topic, number))


def settle(box: JavaTools) -> None:
    """Wait until nothing moves."""
    wait_until(lambda: box.server.do(lambda asked: not asked.metadata.reassigning), what="no moves")


def configs(box: JavaTools) -> dict[str, dict[str, str]]:
    """All dynamic settings but those of the cluster as a whole."""
    return box.server.do(
        lambda asked: {str(owner): dict(values) for owner, values in asked.metadata.configs.items() if owner.name}
    )


# kafka-reassign-partitions


@pytest.mark.parametrize("via", Endpoint)
def test_list_of_nothing(box: JavaTools, via: Endpoint) -> None:
    assert success(box.reassign("--list", via=via)) == "No partition reassignments found."


def test_a_move_from_its_start_to_its_end(box: JavaTools) -> None:
    plan = {"orders-0": [2, 3], "orders-2": [3, 2]}
    before = ["/data/0/d0", "/data/1/d0"]
    started = success(box.reassign("--execute", plan))
    assert started.startswith("Current partition replica assignment\n\n{")
    assert f'"partition":0,"replicas":[0,1],"log_dirs":{json.dumps(before, separators=(",", ":"))}' in started
    assert started.endswith("Successfully started partition reassignments for orders-0,orders-2")
    settle(box)
    assert of(box) == ((2, 3), {2, 3}, 2)
    assert success(box.reassign("--verify", plan)).splitlines() == [
        "Status of partition reassignment:",
        "Reassignment of partition orders-0 is completed.",
        "Reassignment of partition orders-2 is completed.",
        "",
        "Clearing broker-level throttles on brokers 0,1,2,3",
        "Clearing topic-level throttles on topic orders",
    ]


def test_a_throttled_move_is_listed_and_cancelled(box: JavaTools) -> None:
    plan = {"orders-0": [2, 3]}
    started = success(box.reassign("--execute", plan, *SLOW))
    assert "The inter-broker throttle limit was set to 1000 B/s" in started
    assert configs(box) == {
        "topic orders": {LEADER_THROTTLED_REPLICAS: "0:0,0:1", FOLLOWER_THROTTLED_REPLICAS: "0:2,0:3"},
        **{f"broker {one}": {LEADER_THROTTLED_RATE: "1000", FOLLOWER_THROTTLED_RATE: "1000"} for one in range(4)},
    }
    listed = "Current partition reassignments:\norders-0: replicas: 2,3,0,1. adding: 2,3. removing: 0,1."
    assert success(box.reassign("--list")) == listed
    assert success(box.reassign("--list", via=Endpoint.CONTROLLER)) == listed
    assert success(box.reassign("--verify", plan)).splitlines() == [
        "Status of partition reassignment:",
        "Reassignment of partition orders-0 is still in progress.",
    ]
    assert success(box.reassign("--cancel", plan)).splitlines() == [
        "Successfully cancelled partition reassignment for: orders-0",
        "None of the specified partition moves are active.Clearing broker-level throttles on brokers 0,1,2,3",
        "Clearing topic-level throttles on topic orders",
    ]
    assert configs(box) == {}
    assert of(box) == ((0, 1), {0, 1}, 0)
    assert "None of the specified partition reassignments are active." in success(box.reassign("--cancel", plan))


def test_cancelling_through_the_controller(box: JavaTools) -> None:
    plan = {"orders-0": [2, 3]}
    success(box.reassign("--execute", plan, *SLOW))
    cancelled = success(box.reassign("--cancel", plan, via=Endpoint.CONTROLLER))
    assert "Successfully cancelled partition reassignment for: orders-0" in cancelled
    assert "Clearing broker-level throttles on brokers 2,3,100" in cancelled
    # The brokers that the file does not name keep their rates, as on a real cluster.
    assert configs(box).keys() == {"broker 0", "broker 1"}


def test_what_is_under_way_forbids_another_plan_unless_it_is_additional(box: JavaTools) -> None:
    success(box.reassign("--execute", {"orders-0": [2, 3]}, *SLOW))
    refused = box.reassign("--execute", {"orders-1": [3, 0]})
    assert failure(refused).startswith("Cannot execute because there is an existing partition assignment.")
    success(box.reassign("--execute", {"orders-1": [3, 0]}, "--additional", "--throttle", "100000000"))
    settle(box)
    assert of(box, number=1) == ((3, 0), {0, 3}, 3)


def test_moves_between_log_directories(box: JavaTools) -> None:
    file = box.plan({"orders-0": [0, 1]}, {"orders-0": ["/data/0/d1", "any"]})
    arguments = ("--reassignment-json-file", file)
    started = success(box.run(REASSIGN, "--execute", *arguments, "--replica-alter-log-dirs-throttle", "1000"))
    assert "The replica-alter-dir throttle limit was set to 1000 B/s" in started
    assert "Successfully started moving log directory to /data/0/d1 for replica orders-0 with broker 0" in started
    assert configs(box) == {"broker 0": {LOG_DIR_RATE: "1000"}}
    assert "Reassignment of replica orders-0-0 is still in progress." in success(
        box.run(REASSIGN, "--verify", *arguments)
    )
    cancelled = success(box.run(REASSIGN, "--cancel", *arguments))
    assert "Successfully started moving log directory to /data/0/d0 for replica orders-0 with broker 0" in cancelled
    assert "is not being moved from log dir /data/0/d0 to /data/0/d1." in success(
        box.run(REASSIGN, "--verify", *arguments)
    )
    success(box.run(REASSIGN, "--execute", *arguments))
    settle_directories(box, "/data/0/d1")
    assert "Reassignment of replica orders-0-0 completed successfully." in success(
        box.run(REASSIGN, "--verify", *arguments)
    )


def settle_directories(box: JavaTools, path: str) -> None:
    def is_there(asked: Twin) -> bool:
        return asked.replication.readings.log_dir(TopicPartition("orders", 0), 0) == path

    wait_until(lambda: box.server.do(is_there), what=f"the copy in {path}")


# kafka-leader-election


def test_preferred_leaders_are_elected_where_they_can_be(box: JavaTools) -> None:
    success(box.reassign("--execute", {"orders-0": [1, 0], "orders-1": [2, 1]}))
    assert of(box, number=0) == ((1, 0), {0, 1}, 0)
    elected = box.run(ELECT, "--election-type", "preferred", "--all-topic-partitions")
    assert success(elected).startswith("Successfully completed leader election (PREFERRED) for partitions ")
    assert {of(box, number=number)[2] for number in (0, 1)} == {1, 2}
    again = box.run(ELECT, "--election-type", "preferred", "--topic", "orders", "--partition", "0")
    assert success(again) == "Valid replica already elected for partitions orders-0"


# kafka-topics


def test_topics_are_created_listed_grown_described_and_deleted(box: JavaTools) -> None:
    create = ("--create", "--topic", "payments", "--partitions", "3", "--replication-factor", "2")
    assert success(box.run(TOPICS, *create, "--config", "retention.ms=1000")) == "Created topic payments."
    assert success(box.run(TOPICS, "--list")).splitlines() == ["orders", "payments"]
    success(box.run(TOPICS, "--alter", "--topic", "payments", "--partitions", "5"))
    head, *rows = success(box.run(TOPICS, "--describe", "--topic", "payments")).splitlines()
    assert "PartitionCount: 5\tReplicationFactor: 2\tConfigs: min.insync.replicas=1,retention.ms=1000" in head
    assert len(rows) == 5
    assert all("\tElr: \tLastKnownElr:" in row for row in rows)
    success(box.run(TOPICS, "--delete", "--topic", "payments"))
    assert success(box.run(TOPICS, "--list")) == "orders"


def test_a_move_shows_in_the_description_of_its_topic(box: JavaTools) -> None:
    success(box.reassign("--execute", {"orders-0": [2, 0]}, *SLOW))
    described = success(box.run(TOPICS, "--describe", "--topic", "orders"))
    assert "ReplicationFactor: 2" in described
    moving = "Partition: 0\tLeader: 0\tReplicas: 2,0,1\tIsr: 0,1\tAdding Replicas: 2\tRemoving Replicas: 1\t"
    assert moving in described
    assert success(box.run(TOPICS, "--describe", "--under-replicated-partitions")) == ""


# Another release of the tools, and older releases of the twin


@pytest.mark.parametrize(("tools", "release"), [("3.9.1", "4.4"), (KAFKA, "3.7"), (KAFKA, "3.9"), (KAFKA, "4.2")])
def test_tools_and_twins_of_other_releases_work_together(tmp_path: Path, tools: str, release: str) -> None:
    with serving(twin(ORDERS, version=kafka_version(release))) as server:
        box = JavaTools(server, tmp_path, tools)
        plan = {"orders-0": [2, 3]}
        assert "Successfully started partition reassignment for orders-0" in success(box.reassign("--execute", plan))
        settle(box)
        assert "Reassignment of partition orders-0 is completed." in success(box.reassign("--verify", plan))
        assert "Leader: 2\tReplicas: 2,3" in success(box.run(TOPICS, "--describe", "--topic", "orders"))
        assert not server.server.failures


def test_an_older_release_cannot_forbid_changes_of_the_replication_factor(tmp_path: Path) -> None:
    with serving(twin(ORDERS, version=kafka_version("3.9"))) as server:
        box = JavaTools(server, tmp_path)
        refused = box.reassign("--execute", {"orders-0": [2]}, "--disallow-replication-factor-change")
        assert "The broker does not support the AllowReplicationFactorChange option" in refused.stdout
        assert refused.exit_code == 1


def test_a_twin_with_the_requests_of_kip_179_works_with_the_tools(tmp_path: Path) -> None:
    with serving(twin(ORDERS, version=DEFAULT.with_kip_179())) as server:
        tools = JavaTools(server, tmp_path)
        assert success(tools.run(TOPICS, "--list")) == "orders"
        assert not server.server.failures
