"""Runs on real Kafka: to their end, refused, interrupted, killed, resumed, and disturbed by others."""

from __future__ import annotations

import json
import signal
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from kreassign.admin import AdminClient
from kreassign.cli.main import kreassign
from kreassign.executor.events import MovesSubmitted, SubmissionIntended, ThrottleIntended
from kreassign.executor.journal import find_journals, read_events
from kreassign.model import ConfigChange, ConfigResource, ConfigSource, NewTopic, TopicPartition
from kreassign.model.plan import PartitionAssignment, Plan
from kreassign.model.throttle import FOLLOWER_THROTTLED_RATE, LEADER_THROTTLED_RATE, LEADER_THROTTLED_REPLICAS
from kreassign.operations.connect import connect
from kreassign.operations.plan_files import write_plan
from testbed import KafkaCluster, Refused, probe
from testbed.fork_server import Forked
from testbed.producing import Producing
from testbed.records import Ledger, load_topic, verify_readable
from testbed.waiting import PATIENCE_S, wait_until
from tests.real import run_processes
from tests.real.run_processes import start_run, words_of_run

pytestmark = pytest.mark.usefixtures("calm")

MEGABYTE = 1_000_000
HELD, HELD_RATE = 20 * MEGABYTE, "100kB/s"
"""Three minutes of copying: at once a broker copies ten seconds' worth of a rate, and one fetch of a megabyte more.

A test that wants the end lets the copies go when it has seen what it wanted.
"""


def client_of(cluster: KafkaCluster) -> AdminClient:
    return connect(cluster.bootstrap_servers)


def loaded(cluster: KafkaCluster, topic: str, replicas: Sequence[Sequence[int]], *sizes_bytes: int) -> Ledger:
    """A topic with real records: so many bytes in its first partitions, and in others as in the last of them."""
    with client_of(cluster) as client:
        client.create_topics([NewTopic(topic, assignments=tuple(map(tuple, replicas)))]).raise_if_any()
    sizes = {number: sizes_bytes[min(number, len(sizes_bytes) - 1)] for number in range(len(replicas))}
    return load_topic(cluster.bootstrap_servers, topic, sizes)


def plan_file(folder: Path, topic: str, targets: Mapping[int, tuple[int, ...]]) -> Path:
    path = folder / "plan.json"
    moves = (PartitionAssignment(TopicPartition(topic, number), target) for number, target in targets.items())
    write_plan(path, Plan(tuple(moves)), None)
    return path


def invoke(cluster: KafkaCluster, command: str, *arguments: object) -> Result:
    options = [command, *map(str, arguments), "--bootstrap-server", cluster.bootstrap_servers]
    return CliRunner().invoke(kreassign, options)


def run_to_the_end(cluster: KafkaCluster, folder: Path, *arguments: object) -> dict[str, Any]:
    """Output of a run at its end."""
    result = invoke(cluster, *words_of_run(*arguments), "--state-dir", folder / "state", "--format", "json")
    assert result.exit_code in {0, 5}, result.output
    assert result.stdout, result.stderr
    found: dict[str, Any] = json.loads(result.stdout)
    return found


def status(folder: Path) -> dict[str, Any] | None:
    """Status from the journal of the only run; None before there is one."""
    result = CliRunner().invoke(
        kreassign, ["status", "--all", "--state-dir", str(folder / "state"), "--format", "json"]
    )
    runs = json.loads(result.stdout)["runs"] if result.exit_code == 0 else []
    return runs[0] if runs else None


def wait_for_copies(folder: Path) -> str:
    """Wait until the run has copied something of what is `HELD`; its id."""

    def is_copying() -> bool:
        found = status(folder)
        return found is not None and found["state"] == "moving" and found["bytes_copied"] > 0

    try:
        wait_until(is_copying, what="the run to copy something")
    except TimeoutError as error:
        error.add_note(f"{status(folder)}\n{run_processes.what_started_said()}")
        raise
    found = status(folder)
    assert found is not None
    return str(found["run_id"])


def steer(folder: Path, command: str, *arguments: object) -> None:
    """`kreassign COMMAND` about the only run, from another terminal."""
    found = status(folder)
    assert found is not None
    words = [command, found["run_id"], *map(str, arguments), "--state-dir", str(folder / "state")]
    result = CliRunner().invoke(kreassign, words)
    assert result.exit_code == 0, result.output


def is_executed(folder: Path) -> bool:
    found = status(folder)
    return found is not None and found["is_active"] is True


def let_go(folder: Path) -> None:
    """Let the copies of the only run go, once a process executes it."""
    wait_until(lambda: is_executed(folder), what="a process that executes the run")
    steer(folder, "throttle", "50MB/s")


def end_of(process: Forked, exit_code: int = 0) -> str:
    """Wait for the end of a run; what it printed."""
    stdout, stderr = process.communicate(PATIENCE_S)
    assert process.returncode == exit_code, stdout + stderr
    return stdout


def throttles(cluster: KafkaCluster, topic: str) -> dict[str, str]:
    """Every throttle that is set on the topic or on a broker, as `resource key` → value."""
    with client_of(cluster) as client:
        return run_processes.throttles(client, [topic], cluster.brokers)


def shown(cluster: KafkaCluster, topic: str) -> tuple[probe.SeenPartition, ...]:
    """The partitions as all brokers show them: each hears of changes by itself, some later than others."""
    views: set[tuple[probe.SeenPartition, ...]] = set()

    def are_alike() -> bool:
        views.clear()
        with suppress(Refused):  # by a broker that has not heard of the topic
            for node in cluster.brokers.values():
                if node.is_running and not node.is_frozen:
                    views.add(probe.metadata(node.place.ports["PLAINTEXT"], (topic,)).topics[topic])
            return len(views) == 1
        return False

    wait_until(are_alike, what=f"brokers that show the same of {topic}")
    return views.pop()


def assignments(cluster: KafkaCluster, topic: str) -> dict[int, tuple[int, ...]]:
    return {number: partition.replicas for number, partition in enumerate(shown(cluster, topic))}


def leaders(cluster: KafkaCluster, topic: str) -> dict[int, int]:
    return {number: partition.leader for number, partition in enumerate(shown(cluster, topic))}


def set_config(cluster: KafkaCluster, resource: ConfigResource, name: str, value: str | None) -> None:
    """Set a configuration, or delete it, and wait until a broker that is asked for it shows that."""
    change = ConfigChange.delete(name) if value is None else ConfigChange.set(name, value)
    own = {ConfigSource.DYNAMIC_TOPIC, ConfigSource.DYNAMIC_BROKER}
    with client_of(cluster) as client:
        client.incremental_alter_configs({resource: [change]}).raise_if_any()

        def is_shown() -> bool:
            entry = client.describe_configs([resource], names=[name]).raise_if_any()[resource].get(name)
            return (entry.value if entry is not None and entry.source in own else None) == value

        wait_until(is_shown, what=f"{name} of {resource} at {value}")


def test_a_run_moves_elects_and_restores_every_throttle_exactly(
    kafka: KafkaCluster, topic_name: str, tmp_path: Path
) -> None:
    acknowledged = loaded(kafka, topic_name, [(0, 1), (0, 1), (0, 1)], 4 * MEGABYTE)
    set_config(kafka, ConfigResource.topic(topic_name), LEADER_THROTTLED_REPLICAS, "99:0")
    set_config(kafka, ConfigResource.broker(1), LEADER_THROTTLED_RATE, "12345678")
    before = throttles(kafka, topic_name)
    assert len(before) == 2
    plan = plan_file(tmp_path, topic_name, {0: (2, 3), 1: (1, 2), 2: (1, 0)})

    found = run_to_the_end(kafka, tmp_path, plan, "--throttle", "2MB/s", "--max-moves", 1, "--adopt", "restore")

    assert (found["state"], found["problems"], found["throttle_residue"]) == ("done", [], [])
    assert [move["status"] for move in found["moves"]] == ["complete"] * 3
    # How long that takes says little: an idle broker copies ten seconds' worth of its throttle at once.
    (journal,) = find_journals(tmp_path / "state")
    events = read_events(journal)
    sent = next(number for number, event in enumerate(events) if isinstance(event, SubmissionIntended))
    intended = [one for event in events[:sent] if isinstance(event, ThrottleIntended) for one in event.overrides]
    rates = {one.key.broker: one.value for one in intended if one.key.name == FOLLOWER_THROTTLED_RATE}
    assert rates[2] == "2000000"
    submitted = [set(event.accepted) for event in events if isinstance(event, MovesSubmitted)]
    # No more copy at a time than --max-moves allows. The third copies nothing, and goes with whichever is first.
    copying = {TopicPartition(topic_name, number) for number in (0, 1)}
    assert {frozenset(copying & step) for step in submitted} == {frozenset({key}) for key in copying}
    assert 12 * MEGABYTE <= found["bytes_copied"] <= 13 * MEGABYTE
    assert assignments(kafka, topic_name) == {0: (2, 3), 1: (1, 2), 2: (1, 0)}
    assert leaders(kafka, topic_name) == {0: 2, 1: 1, 2: 1}
    assert throttles(kafka, topic_name) == before
    verify_readable(kafka.bootstrap_servers, acknowledged)

    set_config(kafka, ConfigResource.broker(1), LEADER_THROTTLED_RATE, None)
    verified = invoke(kafka, "verify", plan, "--ignore-throttles")
    assert (verified.exit_code, verified.stdout[-17:]) == (0, ": all as planned\n")
    minding = invoke(kafka, "verify", plan, "--format", "json")
    assert minding.exit_code == 1
    (finding,) = json.loads(minding.stdout)["findings"]
    assert (finding["subject"], finding["kind"]) == (f"topic {topic_name}", "throttle")
    set_config(kafka, ConfigResource.topic(topic_name), LEADER_THROTTLED_REPLICAS, None)


def test_an_illegal_plan_is_refused_whole_and_nothing_changes(
    kafka: KafkaCluster, topic_name: str, tmp_path: Path
) -> None:
    loaded(kafka, topic_name, [(0, 1), (0, 1)], 1000)
    before = assignments(kafka, topic_name), throttles(kafka, topic_name)
    plan = plan_file(tmp_path, topic_name, {0: (2, 3), 1: (9, 9), 7: (1,)})

    result = invoke(kafka, "run", "--yes", plan, "--throttle", "1MB/s", "--state-dir", tmp_path / "state")

    assert result.exit_code == 2
    for sentence in ("-1: broker 9 is named more than once", "-1: broker 9 is not live", "-7: there is no such part"):
        assert f"{topic_name}{sentence}" in result.stderr
    assert "Traceback" not in result.output
    assert (assignments(kafka, topic_name), throttles(kafka, topic_name)) == before
    assert find_journals(tmp_path / "state") == ()


def test_a_killed_run_is_resumed_without_moving_anything_twice(
    kafka: KafkaCluster, topic_name: str, tmp_path: Path
) -> None:
    acknowledged = loaded(kafka, topic_name, [(0, 1)], HELD)
    plan = plan_file(tmp_path, topic_name, {0: (2, 1)})
    with Producing(kafka.bootstrap_servers, topic_name, partitions=1, records_per_s=5) as producing:
        process = start_run(kafka, tmp_path, plan, "--throttle", HELD_RATE)
        run_id = wait_for_copies(tmp_path)
        process.kill()
        process.communicate()

        left = status(tmp_path)
        assert left is not None
        assert (left["state"], left["is_active"]) == ("moving", False)
        assert throttles(kafka, topic_name)

        resumed = start_run(kafka, tmp_path, "resume", run_id, "--format", "json")
        let_go(tmp_path)
        found = json.loads(end_of(resumed))

    assert (found["run_id"], found["state"], found["throttle_residue"]) == (run_id, "done", [])
    assert assignments(kafka, topic_name) == {0: (2, 1)}
    assert throttles(kafka, topic_name) == {}
    (journal,) = find_journals(tmp_path / "state")
    sent = [event for event in read_events(journal) if isinstance(event, SubmissionIntended)]
    assert len(sent) == 1
    again = invoke(kafka, "resume", run_id, "--state-dir", tmp_path / "state")
    assert again.exit_code == 2
    assert "there is nothing to resume" in again.stderr
    verify_readable(kafka.bootstrap_servers, acknowledged)
    verify_readable(kafka.bootstrap_servers, producing.ledger)


def test_an_interrupted_run_pauses_says_what_it_leaves_and_goes_on_later(
    kafka: KafkaCluster, topic_name: str, tmp_path: Path
) -> None:
    loaded(kafka, topic_name, [(0, 1)], HELD)
    plan = plan_file(tmp_path, topic_name, {0: (2, 1)})
    process = start_run(kafka, tmp_path, plan, "--throttle", HELD_RATE)
    run_id = wait_for_copies(tmp_path)

    other = invoke(kafka, "run", "--yes", plan, "--state-dir", tmp_path / "state")
    assert other.exit_code == 2
    assert f"run {run_id} is active on this cluster" in other.stderr
    elsewhere = plan_file(tmp_path, topic_name + "-other", {0: (2, 1)})
    loaded(kafka, topic_name + "-other", [(0, 1)], 1000)
    second = invoke(kafka, "run", "--yes", elsewhere, "--state-dir", tmp_path / "state")
    assert second.exit_code == 2
    assert f"run {run_id} is active on this cluster" in second.stderr

    process.send_signal(signal.SIGINT)
    stdout = end_of(process, exit_code=130)
    assert "throttle in force: 100 kB/s per broker" in stdout
    assert f"kreassign resume {run_id}" in stdout
    assert "moving" in stdout.splitlines()
    resumed = start_run(kafka, tmp_path, "resume", run_id)
    let_go(tmp_path)
    end_of(resumed)
    assert throttles(kafka, topic_name) == {}


def test_a_deleted_topic_ends_its_move_and_leaves_nothing_to_restore(
    kafka: KafkaCluster, topic_name: str, tmp_path: Path
) -> None:
    loaded(kafka, topic_name, [(0, 1)], HELD)
    process = start_run(kafka, tmp_path, plan_file(tmp_path, topic_name, {0: (2, 1)}), "--throttle", HELD_RATE)
    wait_for_copies(tmp_path)
    with client_of(kafka) as client:
        client.delete_topics([topic_name]).raise_if_any()
    stdout = end_of(process, exit_code=5)
    assert "its partition was deleted" in stdout
    assert "throttle left behind" not in stdout


def test_an_old_replica_on_a_dead_broker_does_not_block_the_run(
    kafka: KafkaCluster, topic_name: str, tmp_path: Path
) -> None:
    loaded(kafka, topic_name, [(0, 3)], 2 * MEGABYTE)
    kafka.brokers[3].kill()
    with client_of(kafka) as client:
        wait_until(lambda: 3 not in client.describe_cluster().broker_ids, what="broker 3 to be fenced")
    plan = plan_file(tmp_path, topic_name, {0: (0, 2)})
    found = run_to_the_end(kafka, tmp_path, plan, "--throttle", "5MB/s")
    assert (found["state"], found["problems"]) == ("done", [])
    kafka.brokers[3].start()
    kafka.wait_ready()
    assert throttles(kafka, topic_name) == {}


def test_a_run_works_the_same_with_zookeeper(kafka_zookeeper: KafkaCluster, topic_name: str, tmp_path: Path) -> None:
    loaded(kafka_zookeeper, topic_name, [(0, 1), (1, 0)], 2 * MEGABYTE)
    plan = plan_file(tmp_path, topic_name, {0: (2, 1), 1: (0, 1)})
    found = run_to_the_end(kafka_zookeeper, tmp_path, plan, "--throttle", "2MB/s")
    assert (found["state"], found["problems"]) == ("done", [])
    assert leaders(kafka_zookeeper, topic_name) == {0: 2, 1: 0}
    assert throttles(kafka_zookeeper, topic_name) == {}
