"""A second operator on real Kafka: removes the throttle of a run, begins beside it, and adds to its lists."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kreassign.executor.events import SubmissionIntended, ThrottleChecked
from kreassign.executor.journal import find_journals, read_events
from kreassign.model import ConfigChange, ConfigResource, ConfigSource, NewTopic
from kreassign.model.throttle import (
    BROKER_THROTTLES,
    FOLLOWER_THROTTLED_RATE,
    FOLLOWER_THROTTLED_REPLICAS,
    LEADER_THROTTLED_RATE,
    LEADER_THROTTLED_REPLICAS,
)
from testbed import ClusterSpec, KafkaCluster
from testbed.fork_server import Forked
from testbed.releases import config_tool
from testbed.waiting import wait_until
from tests.real.run_processes import start_run
from tests.real.test_run import (
    HELD,
    HELD_RATE,
    MEGABYTE,
    client_of,
    end_of,
    invoke,
    let_go,
    loaded,
    plan_file,
    run_to_the_end,
    set_config,
    status,
    steer,
    throttles,
    wait_for_copies,
)

pytestmark = pytest.mark.usefixtures("calm")

REASSIGN = "org.apache.kafka.tools.reassign.ReassignPartitionsCommand"
AWAY = dict.fromkeys(range(5), (2, 3))
MANY = 6_000
DEFAULT = 90 * MEGABYTE
THEIR_RATE = 100_000
OUR_RATE = 10 * MEGABYTE


def verdicts(folder: Path) -> list[str]:
    found = status(folder)
    return list(found["verdicts"]) if found else []


def cancel_another_plan(cluster: KafkaCluster, folder: Path, topic: str) -> None:
    """Kafka's own tool, about a topic that nobody moves: it clears the rates of all brokers."""
    other = folder / "other"
    other.mkdir()
    loaded(cluster, topic, [(0, 1)], 1_000)
    plan = plan_file(other, topic, {0: (0, 1)})
    words = ("--cancel", "--reassignment-json-file", str(plan))
    done = cluster.java_tool(REASSIGN, "--bootstrap-server", cluster.bootstrap_servers, *words)
    assert done.exit_code == 0, done


def configs(cluster: KafkaCluster, kind: str, name: str | None, *change: str) -> None:
    """`kafka-configs --alter`, by hand; without a name for all of this kind."""
    entity = ("--entity-default",) if name is None else ("--entity-name", name)
    words = ("--alter", "--entity-type", kind, *entity, *change)
    done = cluster.java_tool(config_tool(cluster.version), "--bootstrap-server", cluster.bootstrap_servers, *words)
    assert done.exit_code == 0, done


def shown_everywhere(cluster: KafkaCluster, rate: str | None) -> None:
    """Wait until every broker shows this rate, and that it is the one of all brokers; None: until none shows any."""
    resources = [ConfigResource.broker(broker) for broker in cluster.brokers]

    def is_shown() -> bool:
        found = client.describe_configs(resources, names=BROKER_THROTTLES[:2]).raise_if_any()
        of_all = [
            {one.value for one in entries.values() if one.source is ConfigSource.DYNAMIC_DEFAULT_BROKER}
            for entries in found.values()
        ]
        return all(values == ({rate} if rate else set()) for values in of_all)

    with client_of(cluster) as client:
        wait_until(is_shown, what=f"rate {rate} of all brokers on every broker")


def sent_in_doubt(folder: Path) -> list[str]:
    """Moves that were sent after a reading that showed another throttle, and before one that showed none."""
    (journal,) = find_journals(folder / "state")
    is_doubtful, sent = False, []
    for event in read_events(journal):
        if isinstance(event, ThrottleChecked):
            is_doubtful = bool(event.differ)
        if isinstance(event, SubmissionIntended) and is_doubtful:
            sent += list(map(str, event.partitions))
    return sent


def begun(folder: Path) -> list[dict[str, Any]]:
    """Moves of the only run that were sent."""
    found = status(folder)
    return [move for move in (found or {"moves": []})["moves"] if move["submitted_ms"] is not None]


def one_by_one(cluster: KafkaCluster, folder: Path, topic: str) -> Forked:
    """A run that makes one move at a time, and has copied some of the first."""
    loaded(cluster, topic, [(0, 1)] * len(AWAY), HELD, MEGABYTE)
    plan = plan_file(folder, topic, AWAY)
    process = start_run(cluster, folder, plan, "--throttle", HELD_RATE, "--max-moves", 1)
    wait_for_copies(folder)
    return process


def test_a_run_whose_throttle_others_remove_does_not_end_well(
    kafka: KafkaCluster, topic_name: str, tmp_path: Path
) -> None:
    process = one_by_one(kafka, tmp_path, topic_name)
    cancel_another_plan(kafka, tmp_path, topic_name + "-other")
    wait_until(lambda: bool(verdicts(tmp_path)), what="the run to tell of its throttle")
    (told,) = verdicts(tmp_path)
    assert "leader.replication.throttled.rate of broker 0 is not set, and the run had set it to '100000'" in told
    # What was in flight went on without its throttle; that is all.
    assert len(begun(tmp_path)) == 1
    steer(tmp_path, "cancel", "--drain")
    stdout = end_of(process, exit_code=5)
    assert "throttled to 100 kB/s per broker, but not all the time" in stdout
    assert (len(begun(tmp_path)), sent_in_doubt(tmp_path)) == (1, [])
    assert sum(move["bytes_copied"] for move in begun(tmp_path)) <= len(AWAY[0]) * HELD * 1.1
    assert throttles(kafka, topic_name) == {}


def verified(cluster: KafkaCluster, folder: Path) -> dict[str, Any]:
    """Output of `kreassign verify` about the only run."""
    found = status(folder)
    assert found is not None
    result = invoke(cluster, "verify", found["run_id"], "--state-dir", folder / "state", "--format", "json")
    document: dict[str, Any] = json.loads(result.stdout)
    return document


def test_a_run_from_another_state_directory_is_refused_cleanly(
    kafka: KafkaCluster, topic_name: str, tmp_path: Path
) -> None:
    loaded(kafka, topic_name, [(0, 1), (1, 0)], HELD, MEGABYTE)
    first, second = tmp_path / "first", tmp_path / "second"
    for folder in (first, second):
        folder.mkdir()
    process = start_run(
        kafka, first, plan_file(first, topic_name, {0: (2, 1)}), "--throttle", HELD_RATE, "--lease", "off"
    )
    wait_for_copies(first)
    words = ("--state-dir", second / "state", "--measure-for", 0, "--throttle", "2MB/s", "--lease", "off")
    refused = invoke(kafka, "run", "--yes", plan_file(second, topic_name, {1: (3, 0)}), *words)
    assert refused.exit_code == 2, refused.output
    for sentence in (f"{topic_name}-0 (", "leader.replication.throttled.rate of broker 0 is '100000'", "--alongside"):
        assert sentence in refused.stderr
    assert find_journals(second / "state") == ()
    let_go(first)
    end_of(process)
    assert throttles(kafka, topic_name) == {}
    found = run_to_the_end(kafka, second, second / "plan.json", "--throttle", "2MB/s")
    assert (found["state"], found["problems"], throttles(kafka, topic_name)) == ("done", [], {})


def test_a_rate_for_all_brokers_stays_and_is_nobodys_foreign_setting(
    kafka: KafkaCluster, topic_name: str, tmp_path: Path
) -> None:
    """A broker without a rate of its own shows that of all brokers, and for a moment after it got its own, too."""
    rates = ",".join(f"{name}={DEFAULT}" for name in BROKER_THROTTLES[:2])
    configs(kafka, "brokers", None, "--add-config", rates)
    try:
        shown_everywhere(kafka, str(DEFAULT))
        loaded(kafka, topic_name, [(0, 1)] * 3, HELD, MEGABYTE)
        plan = plan_file(tmp_path, topic_name, {0: (2, 3), 1: (2, 1), 2: (1, 3)})
        process = start_run(kafka, tmp_path, plan, "--throttle", HELD_RATE, "--max-moves", 1)
        wait_for_copies(tmp_path)
        for rate in ("150kB/s", "20MB/s"):
            steer(tmp_path, "throttle", rate)
        stdout = end_of(process)
        found = status(tmp_path)
        assert found is not None
        assert (found["problems"], found["throttle_residue"]) == ([], [])
        assert "throttled to 20 MB/s per broker" in stdout
        assert "but not all the time" not in stdout
        shown_everywhere(kafka, str(DEFAULT))
        assert verified(kafka, tmp_path)["findings"] == []
    finally:
        configs(kafka, "brokers", None, "--delete-config", ",".join(BROKER_THROTTLES[:2]))
        shown_everywhere(kafka, None)


def test_beside_foreign_moves_one_rate_and_leftovers_go_on_request(
    kafka: KafkaCluster, topic_name: str, tmp_path: Path
) -> None:
    loaded(kafka, topic_name, [(0, 1), (0, 1)], HELD)
    theirs, ours = tmp_path / "theirs", tmp_path / "ours"
    for folder in (theirs, ours):
        folder.mkdir()
    plan = plan_file(theirs, topic_name, {1: (3, 1)})
    words = ("--execute", "--reassignment-json-file", str(plan), "--throttle", str(THEIR_RATE))
    done = kafka.java_tool(REASSIGN, "--bootstrap-server", kafka.bootstrap_servers, *words)
    assert done.exit_code == 0, done
    before = throttles(kafka, topic_name)
    plan = plan_file(ours, topic_name, {0: (2, 1)})
    words = ("--state-dir", str(ours / "state"), "--measure-for", "0")
    for options in (("--throttle", "10MB/s"), ("--throttle", "10MB/s", "--adopt", "remove"), ("--alongside",)):
        refused = invoke(kafka, "run", "--yes", plan, *words, *options)
        assert (refused.exit_code, throttles(kafka, topic_name)) == (2, before), refused.output
    assert "alongside moves of others shares the rate of each broker with them" in refused.stderr

    found = run_to_the_end(kafka, ours, plan, "--throttle", f"{OUR_RATE}B/s", "--alongside")

    with client_of(kafka) as client:
        assert client.list_partition_reassignments(), "the move of others was to go on"
    # Theirs goes on at the one rate where the senders are also ours, and at its own rate where they are not.
    shared = [f"{LEADER_THROTTLED_RATE} of broker {broker} was '{OUR_RATE}'" for broker in (0, 1)]
    left = [f"moves of others went on, so that a throttle was left that they had before: {one}" for one in shared]
    assert (found["state"], found["problems"], found["throttle_residue"]) == ("done", left, [])
    assert throttles(kafka, topic_name) == before | {
        f"broker {broker} {LEADER_THROTTLED_RATE}": str(OUR_RATE) for broker in (0, 1)
    }
    set_config(kafka, ConfigResource.broker(3), FOLLOWER_THROTTLED_RATE, str(DEFAULT))
    with client_of(kafka) as client:
        wait_until(lambda: not client.list_partition_reassignments(), what="the end of their move")

    # They never run `--verify`, which would remove their throttle.
    back = plan_file(ours, topic_name, {0: (0, 1)})
    before = throttles(kafka, topic_name)
    refused = invoke(kafka, "run", "--yes", back, *words, "--throttle", "50MB/s")
    assert (refused.exit_code, throttles(kafka, topic_name)) == (2, before), refused.output
    assert "--adopt remove" in refused.stderr
    second = tmp_path / "second"
    found = run_to_the_end(kafka, second, back, "--throttle", "50MB/s", "--adopt", "remove")
    assert (found["state"], found["problems"], throttles(kafka, topic_name)) == ("done", [], {})


@pytest.mark.thorough
def test_more_topics_than_one_request_takes_are_throttled(
    start_cluster: Callable[[ClusterSpec], KafkaCluster],
) -> None:
    """Two lists a topic are two records each, and a request of more than 10,000 is refused as a whole.

    On a cluster of its own: brokers are busy with so many topics long after they are deleted.
    """
    kafka = start_cluster(ClusterSpec(brokers=1))
    names = [f"many-{number}" for number in range(MANY)]
    resources = [ConfigResource.topic(name) for name in names]
    entry = {LEADER_THROTTLED_REPLICAS: "0:0", FOLLOWER_THROTTLED_REPLICAS: "0:1"}
    with client_of(kafka) as client:
        for start in range(0, MANY, 2_000):
            made = [NewTopic(name, assignments=((0,),)) for name in names[start : start + 2_000]]
            client.create_topics(made, timeout_ms=180_000).raise_if_any()
        for change in (ConfigChange.append, ConfigChange.subtract):
            steps = [change(name, pair) for name, pair in entry.items()]
            outcome = client.incremental_alter_configs(dict.fromkeys(resources, steps), timeout_ms=60_000)
            assert (len(outcome.ok), len(outcome.failed)) == (MANY, 0)
