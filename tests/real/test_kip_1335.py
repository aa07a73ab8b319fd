"""KIP-1335 on real Kafka: the paced tool as a user starts it."""

from __future__ import annotations

import pytest

from kreassign.model import TopicPartition
from testbed import KafkaCluster
from testbed.waiting import wait_until
from tests.real.admin_checks import client_of
from tests.real.pacing_checks import paced, partitions_started, started

COUNT = 5


@pytest.mark.parametrize("incremental", [False, True], ids=["batches", "incremental"])
@pytest.mark.parametrize(("size", "steps"), [(1, 5), (3, 2), (50, 1)])
def test_a_plan_is_started_in_steps(
    kafka: KafkaCluster, topic_name: str, size: int, steps: int, *, incremental: bool
) -> None:
    kafka.create_topic(topic_name, [[0, 1]] * COUNT)
    keys = [TopicPartition(topic_name, number) for number in range(COUNT)]
    options = ("--reassignment-batch-size", str(size), *(("--incremental",) if incremental else ()))
    done = paced(kafka, dict.fromkeys(keys, (2, 1)), *options)
    assert (done.exit_code, done.stderr) == (0, "")
    assert len(started(done)) >= steps if incremental else len(started(done)) == steps
    assert partitions_started(done) == [str(key) for key in keys]
    with client_of(kafka) as client:
        wait_until(lambda: not client.list_partition_reassignments(keys), what="all moves")
    wait_until(
        lambda: [one.replicas for one in kafka.describe_topic(topic_name)] == [(2, 1)] * COUNT, what="every target"
    )


def test_size_0_is_the_legacy_path(kafka: KafkaCluster, topic_name: str) -> None:
    kafka.create_topic(topic_name, [[0, 1]])
    targets = {TopicPartition(topic_name, 0): (2, 1)}
    done = paced(kafka, targets, "--reassignment-batch-size", "0", poll_ms=None)
    assert done.exit_code == 0
    assert "Started partition" not in done.stdout
    assert done.stdout.endswith(f"Successfully started partition reassignment for {topic_name}-0\n")
