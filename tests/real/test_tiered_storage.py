"""Tiered topics on real brokers: what moves and what is shown, what is measured, and what a doctor says."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from kreassign.admin import AdminClient
from kreassign.clock import SystemClock
from kreassign.executor.cluster.measurements import TrafficMeter, sample_offsets
from kreassign.executor.events import Event, MovesObserved, RunStarted
from kreassign.executor.journal import find_journals, read_events
from kreassign.model import ConfigResource, NewTopic, OffsetSpec, TopicPartition
from testbed import KafkaCluster
from testbed.producing import Producing
from testbed.records import Ledger, load_topic, verify_readable
from testbed.waiting import wait_until
from tests.real.test_run import client_of, invoke, plan_file, run_to_the_end, set_config

pytestmark = pytest.mark.usefixtures("calm")

SEGMENT = 1_048_576
RECORD_BYTES = 10_000
SKIPS = "follower.fetch.last.tiered.offset.enable"


def size(client: AdminClient, key: TopicPartition, broker: int) -> int:
    dirs = client.describe_log_dirs([broker], partitions=[key])[broker]
    return sum(copy.size_bytes for log_dir in dirs for copy in log_dir.replicas)


def offset(client: AdminClient, key: TopicPartition, spec: OffsetSpec) -> int:
    return client.list_offsets([key], spec)[key]


def tiered(cluster: KafkaCluster, topic: str, size_bytes: int, local_bytes: int) -> Ledger:
    """A topic on brokers 0 and 1 of which these keep the last segments; returns when the others are remote."""
    key = TopicPartition(topic, 0)
    settings = {
        "remote.storage.enable": "true",
        "segment.bytes": str(SEGMENT),
        "local.retention.bytes": str(local_bytes),
    }
    with client_of(cluster) as client:
        client.create_topics([NewTopic(topic, assignments=((0, 1),), configs=settings)]).raise_if_any()
        values = (RECORD_BYTES, RECORD_BYTES)
        ledger = load_topic(
            cluster.bootstrap_servers, topic, {0: size_bytes}, value_bytes=values, batch_bytes=4 * RECORD_BYTES
        )

        def is_settled() -> bool:
            statuses = client.replica_status([key])[key]
            starts = {status.log_start_offset for status in statuses}
            return len(starts) == 1 and all((one.size_bytes or 0) < local_bytes + SEGMENT for one in statuses)

        wait_until(is_settled, what=f"the older segments of {topic} in remote storage")
    return ledger


def journal_of(folder: Path) -> tuple[Event, ...]:
    """Journal of the only run."""
    (journal,) = find_journals(folder / "state")
    return tuple(read_events(journal))


def copied(folder: Path) -> Iterator[tuple[int, int]]:
    """Bytes done and left of the copy, each time that the only run looked."""
    for event in journal_of(folder):
        if isinstance(event, MovesObserved):
            for copy in (copy for seen in event.observations for copy in seen.copies):
                yield copy.done_bytes, copy.left_bytes or 0


def planned_bytes(folder: Path) -> int:
    (started,) = (event for event in journal_of(folder) if isinstance(event, RunStarted))
    return started.moves[0].size_bytes


def test_a_run_copies_the_leaders_local_log_and_loses_nothing(
    kafka_tiered: KafkaCluster, topic_name: str, tmp_path: Path
) -> None:
    key = TopicPartition(topic_name, 0)
    acknowledged = tiered(kafka_tiered, topic_name, 9 * SEGMENT, 2 * SEGMENT)
    with client_of(kafka_tiered) as client:
        local, whole = size(client, key, 0), acknowledged.size_bytes
        assert local < whole / 2
        plan = plan_file(tmp_path, topic_name, {0: (2, 1)})
        found = run_to_the_end(kafka_tiered, tmp_path, plan, "--throttle", "500KB/s", "--poll-interval", 0.25)
        assert found["state"] == "done"
        assert planned_bytes(tmp_path) == local
        shown = list(copied(tmp_path))
        assert shown
        assert all(done + left == pytest.approx(local, rel=0.05) for done, left in shown)
        assert size(client, key, 2) == local
    verify_readable(kafka_tiered.bootstrap_servers, acknowledged)


def test_what_is_written_is_measured_by_the_records_on_disk(kafka_tiered: KafkaCluster, topic_name: str) -> None:
    key, clock = TopicPartition(topic_name, 0), SystemClock()
    tiered(kafka_tiered, topic_name, 12 * SEGMENT, 2 * SEGMENT)
    with client_of(kafka_tiered) as client:
        meter, local, begun_ms = TrafficMeter(client), size(client, key, 0), clock.now_ms()
        meter.measure(begun_ms, [key])
        before = offset(client, key, OffsetSpec.LATEST)
        with Producing(
            kafka_tiered.bootstrap_servers, topic_name, partitions=1, records_per_s=40, value_bytes=RECORD_BYTES
        ):
            samples = sample_offsets(client, clock, [key], 2)
        ended_ms = clock.now_ms()
        _, (written,) = meter.measure(ended_ms, [key])
        records = offset(client, key, OffsetSpec.LATEST) - before
    # By all records it would be less than a third; a segment that is deleted meanwhile makes it half as much again.
    truth = (samples.later_ends[key] - samples.ends[key]) / samples.seconds * RECORD_BYTES
    assert truth / 2 < (samples.write_rate(key, local) or 0) < 2 * truth
    truth = records / ((ended_ms - begun_ms) / 1000) * RECORD_BYTES
    assert truth / 2 < written.bytes_per_s < 2 * truth


@pytest.mark.parametrize(("local_bytes", "skips"), [(3 * SEGMENT, True), (100 * SEGMENT, False)])
def test_a_run_counts_the_tail_where_replicas_skip_remote_segments(
    kafka_tiered: KafkaCluster, topic_name: str, tmp_path: Path, local_bytes: int, skips: bool
) -> None:
    key = TopicPartition(topic_name, 0)
    tiered(kafka_tiered, topic_name, 6 * SEGMENT, local_bytes)
    with client_of(kafka_tiered) as client:
        end = offset(client, key, OffsetSpec.LATEST)

        def is_uploaded() -> bool:
            return end - offset(client, key, OffsetSpec.EARLIEST_PENDING_UPLOAD) < SEGMENT / RECORD_BYTES

        wait_until(is_uploaded, what="all closed segments in remote storage")
        local, pending = (
            offset(client, key, spec) for spec in (OffsetSpec.EARLIEST_LOCAL, OffsetSpec.EARLIEST_PENDING_UPLOAD)
        )
        begins = pending if skips else local
        plan = plan_file(tmp_path, topic_name, {0: (2, 1)})
        set_config(kafka_tiered, ConfigResource.broker(2), SKIPS, "true")
        try:
            found = run_to_the_end(kafka_tiered, tmp_path, plan)
        finally:
            set_config(kafka_tiered, ConfigResource.broker(2), SKIPS, None)
        assert found["state"] == "done"
        assert planned_bytes(tmp_path) == pytest.approx((end - begins) * RECORD_BYTES, rel=0.1)
        statuses = {status.broker: status for status in client.replica_status([key])[key]}
        assert (local > 0, statuses[2].log_start_offset, statuses[2].log_end_offset) == (skips, begins, end)
        assert ((statuses[2].size_bytes or 0) < (statuses[1].size_bytes or 0) / 2) == skips
    checked = invoke(kafka_tiered, "verify", plan)
    assert checked.exit_code == 0, checked.output


def test_the_doctor_names_a_move_that_waits_for_remote_storage(
    kafka_tiered: KafkaCluster, topic_name: str, tmp_path: Path
) -> None:
    key = TopicPartition(topic_name, 0)
    tiered(kafka_tiered, topic_name, 3 * SEGMENT, 1)
    (remote,) = (kafka_tiered.folder / "remote").rglob(f"{topic_name}-0-*")
    hidden = tmp_path / "hidden"
    remote.rename(hidden)
    with client_of(kafka_tiered) as client:
        client.alter_partition_reassignments({key: (0, 2)}).raise_if_any()
        try:
            arguments = ("--measure-for", "3s", "--state-dir", tmp_path / "state")
            found: list[str] = []

            def is_named() -> bool:
                found[:] = [invoke(kafka_tiered, "doctor", *arguments).output]
                return "broker 2 begins by reading from remote storage" in found[0]

            wait_until(is_named, what="a diagnosis of the move that stands still")
            assert str(key) in found[0]
            assert "Error building remote log auxiliary state" in kafka_tiered.brokers[2].log_file.read_text()
        finally:
            hidden.rename(remote)
        wait_until(lambda: not client.list_partition_reassignments([key]), what=f"the end of {key}'s move")
        assert client.replica_status([key])[key][0].lag_records == 0
