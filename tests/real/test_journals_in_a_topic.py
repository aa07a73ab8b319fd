"""A run whose journal is in a topic of its own cluster: the topic is moved, its leader and the run's host are lost."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from kreassign.executor.events import SubmissionIntended, ThrottleIntended
from kreassign.executor.journal import find_journals, read_events
from kreassign.model import ConfigChange, ConfigResource, NewTopic, TopicPartition
from kreassign.model.plan import PartitionAssignment, Plan
from kreassign.operations.plan_files import write_plan
from testbed import KafkaCluster
from testbed.waiting import wait_until
from tests.real.run_processes import free_lease, start_run
from tests.real.test_lease import ALWAYS, hosts
from tests.real.test_run import (
    HELD,
    HELD_RATE,
    assignments,
    client_of,
    end_of,
    invoke,
    let_go,
    loaded,
    shown,
    throttles,
    wait_for_copies,
)

pytestmark = [pytest.mark.usefixtures("calm"), pytest.mark.thorough]


def test_another_host_resumes_by_a_topic_that_lost_its_leader(
    kafka: KafkaCluster, topic_name: str, tmp_path: Path
) -> None:
    one, two = hosts(tmp_path)
    journals = f"{topic_name}-journals"
    there = ("--journal-to", f"topic:{journals}")
    loaded(kafka, topic_name, [(0, 1)], HELD)
    plan = one / "plan.json"
    moves = {topic_name: (2, 1), journals: (3, 2)}
    write_plan(plan, Plan(tuple(PartitionAssignment(TopicPartition(name, 0), to) for name, to in moves.items())), None)
    with client_of(kafka) as client:
        client.create_topics([NewTopic(journals, assignments=((1, 3),))]).raise_if_any()
        refused = invoke(kafka, "run", "--yes", plan, "--measure-for", 0, "--state-dir", one / "state", *there)
        assert "has cleanup.policy=delete, which deletes journals" in refused.stderr
        compacted = ConfigChange.set("cleanup.policy", "compact")
        client.incremental_alter_configs({ConfigResource.topic(journals): [compacted]}).raise_if_any()
    process = start_run(kafka, one, plan, "--throttle", HELD_RATE, *there, *ALWAYS)
    run_id = wait_for_copies(one)
    process.kill()
    process.communicate()

    kafka.brokers[3].kill()
    try:
        with client_of(kafka) as client:
            wait_until(lambda: 3 not in client.describe_cluster().broker_ids, what="broker 3 to be fenced")
        told = invoke(kafka, "status", "--journal-from", f"topic:{journals}", "--format", "json")
        assert json.loads(told.stdout)["run_id"] == run_id, told.stderr
        refused = invoke(kafka, "resume", "--journal-from", f"topic:{journals}", "--state-dir", two / "state")
        assert "holds the lease of the cluster: its process goes on" in refused.stderr
        with client_of(kafka) as client:
            free_lease(client)
        resumed = start_run(kafka, two, "resume", run_id, "--journal-from", f"topic:{journals}", *ALWAYS)
        wait_for_copies(two)
    finally:
        kafka.brokers[3].start()
    kafka.wait_ready()
    # It shall lead at the end, for which it has to be in sync.
    wait_until(lambda: 3 in shown(kafka, journals)[0].isr, what="broker 3 in sync")
    let_go(two)
    end_of(resumed)
    assert (assignments(kafka, topic_name), assignments(kafka, journals)) == ({0: (2, 1)}, {0: (3, 2)})
    assert throttles(kafka, topic_name) == {}
    (here,), (elsewhere,) = find_journals(one / "state"), find_journals(two / "state")
    intended = [one for one in read_events(here) if isinstance(one, SubmissionIntended | ThrottleIntended)]
    kept = [one for one in read_events(elsewhere) if one in intended]
    # Killed between the two places, it had written the last one here alone, and had sent nothing of it.
    assert kept in (intended, intended[:-1])
