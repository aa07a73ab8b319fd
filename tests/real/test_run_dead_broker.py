"""A run on real Kafka one of whose brokers dies."""

from __future__ import annotations

import json
from collections.abc import Callable
from itertools import groupby
from pathlib import Path

import pytest

from kreassign.executor.events import CancelIntended, MovesReplanned, SubmissionIntended, ThrottleIntended
from kreassign.executor.journal import find_journals, read_events
from kreassign.model import ConfigResource
from testbed import ClusterSpec, KafkaCluster
from testbed.records import verify_readable
from tests.real.run_processes import start_run
from tests.real.test_run import MEGABYTE, assignments, loaded, plan_file, throttles, wait_for_copies

pytestmark = pytest.mark.usefixtures("calm")

STEPS = (CancelIntended, MovesReplanned, SubmissionIntended, ThrottleIntended)


def test_replan_replaces_a_lost_destination_under_the_throttle(
    start_cluster: Callable[[ClusterSpec], KafkaCluster], topic_name: str, tmp_path: Path
) -> None:
    cluster = start_cluster(ClusterSpec(brokers=4))
    acknowledged = loaded(cluster, topic_name, [(0, 1)], 4 * MEGABYTE)
    plan = plan_file(tmp_path, topic_name, {0: (3, 1)})
    reach = ("--bootstrap-controller", cluster.bootstrap_controllers, "--format", "json")
    process = start_run(cluster, tmp_path, plan, "--throttle", "100kB/s", "--replan", *reach)
    wait_for_copies(tmp_path)
    cluster.brokers[3].kill()

    stdout, stderr = process.communicate(timeout=600)

    assert process.returncode == 0, stdout + stderr
    found = json.loads(stdout)
    assert (found["state"], found["throttle_residue"]) == ("done", [])
    (move,) = found["moves"]
    assert (move["status"], move["target"], move["former_targets"]) == ("complete", [2, 1], [[3, 1]])
    assert assignments(cluster, topic_name) == {0: (2, 1)}
    verify_readable(cluster.bootstrap_servers, acknowledged)
    (journal,) = find_journals(tmp_path / "state")
    steps = [event for event in read_events(journal) if isinstance(event, STEPS)]
    about_2 = [
        type(event)
        for event in steps
        if not isinstance(event, ThrottleIntended)
        or ConfigResource.broker(2) in {one.key.resource for one in event.overrides}
    ]
    # What has no effect at once is asked for again.
    assert [kind for kind, _ in groupby(about_2)] == [
        SubmissionIntended,
        MovesReplanned,
        ThrottleIntended,
        CancelIntended,
        SubmissionIntended,
    ]
    # What the controller took back for the broker that is gone shows when it is there again.
    cluster.brokers[3].start()
    cluster.wait_ready()
    assert throttles(cluster, topic_name) == {}
