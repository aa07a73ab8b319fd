"""Runs on real Kafka whose plans name log directories: copies between brokers and within one, in one run."""

from __future__ import annotations

from pathlib import Path

import pytest

from kreassign.executor.cluster.observations import replica_locations
from kreassign.executor.events import ThrottleIntended
from kreassign.executor.journal import find_journals, read_events
from kreassign.model import TopicPartition
from kreassign.model.plan import PartitionAssignment, Plan
from kreassign.model.throttle import LOG_DIR_RATE
from kreassign.operations.plan_files import write_plan
from testbed import KafkaCluster
from testbed.records import verify_readable
from tests.real.test_run import MEGABYTE, assignments, client_of, invoke, loaded, run_to_the_end, throttles

pytestmark = pytest.mark.usefixtures("calm")


def locations(cluster: KafkaCluster, topic: str) -> dict[tuple[int, int], str | None]:
    """In which directory each copy is, by partition and broker."""
    with client_of(cluster) as client:
        found = replica_locations(
            client.describe_log_dirs(partitions=[TopicPartition(topic, number) for number in range(3)]).ok
        )
    return {(replica.partition, replica.broker): place.current for replica, place in found.items()}


def other(cluster: KafkaCluster, broker: int, path: str | None) -> str:
    """A directory of a broker besides this one."""
    return next(str(one) for one in cluster.brokers[broker].log_dirs if str(one) != path)


def test_broker_and_directory_copies_are_throttled_and_undone(
    kafka: KafkaCluster, topic_name: str, tmp_path: Path
) -> None:
    acknowledged = loaded(kafka, topic_name, [(0, 1), (0, 1), (0, 1)], 4 * MEGABYTE)
    before, at_home = locations(kafka, topic_name), throttles(kafka, topic_name)
    there, here = other(kafka, 2, None), other(kafka, 0, before[1, 0])
    both = other(kafka, 1, before[2, 1])
    rows = ((2, 1), (there, "any")), ((0, 1), (here, "any")), ((3, 1), ("any", both))
    plan = tmp_path / "plan.json"
    named = (PartitionAssignment(TopicPartition(topic_name, number), *row) for number, row in enumerate(rows))
    write_plan(plan, Plan(tuple(named)), None)

    found = run_to_the_end(kafka, tmp_path, plan, "--throttle", "2MB/s")

    assert (found["state"], found["problems"], found["throttle_residue"]) == ("done", [], [])
    assert assignments(kafka, topic_name) == {0: (2, 1), 1: (0, 1), 2: (3, 1)}
    after = locations(kafka, topic_name)
    assert (after[0, 2], after[1, 0], after[2, 1]) == (there, here, both)
    (journal,) = find_journals(tmp_path / "state")
    intended = [one for event in read_events(journal) if isinstance(event, ThrottleIntended) for one in event.overrides]
    # Copies within a broker have a rate of their own.
    assert {one.key.broker: one.value for one in intended if one.key.name == LOG_DIR_RATE} == dict.fromkeys(
        (0, 1), "2000000"
    )
    assert throttles(kafka, topic_name) == at_home

    undone = invoke(kafka, "rollback", "--yes", found["run_id"], "--state-dir", tmp_path / "state")

    assert undone.exit_code == 0, undone.output
    assert assignments(kafka, topic_name) == dict.fromkeys(range(3), (0, 1))
    back = locations(kafka, topic_name)
    assert (back[1, 0], back[2, 1]) == (before[1, 0], before[2, 1])
    assert throttles(kafka, topic_name) == at_home
    verify_readable(kafka.bootstrap_servers, acknowledged)
