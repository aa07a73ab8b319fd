"""Topics whose older segments are in remote storage (KIP-405): what is on brokers' disks counts, told on a twin."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from kreassign.executor.cluster.measurements import TrafficMeter, sample_offsets
from kreassign.executor.events import MovesObserved
from kreassign.executor.preview import measure_writes
from kreassign.model import OffsetSpec
from kreassign.operations.doctor import diagnose_cluster
from kreassign.operations.ingest import take_round
from kreassign.operations.snapshot import observe, whole_snapshot
from kreassign.pipeline.ingest.snapshots import sample_rows
from kreassign.twin.blueprint import TYPICAL, Blueprint, blueprint_of
from kreassign.twin.cluster import Twin
from kreassign.twin.faults import inject, recover
from tests.executor.twin_runs import RATE, TwinRig, tp
from tests.twin.asking import MEGABYTES

WRITTEN, LOCAL, SEGMENT = 102 * MEGABYTES, 10 * MEGABYTES, 4 * MEGABYTES
TAIL = WRITTEN % SEGMENT
SETTINGS = {"remote.storage.enable": "true", "local.retention.bytes": str(LOCAL), "segment.bytes": str(SEGMENT)}
SKIPS = {"follower.fetch.last.tiered.offset.enable": "true"}


def tiered(blueprint: Blueprint, **settings: str) -> Twin:
    named = SETTINGS | {name.replace("_", "."): value for name, value in settings.items()}
    topics = tuple(replace(topic, configs=named) for topic in blueprint.topics)
    return Twin(replace(blueprint, topics=topics))


def skipping(blueprint: Blueprint, **settings: str) -> Twin:
    """Cluster with KIP-1023 on."""
    return tiered(replace(blueprint, broker_configs={None: SKIPS}), **settings)


def rig_of(state_dir: Path, *, write_bytes_per_s: float = 0.0, is_skipping: bool = False) -> TwinRig:
    make = skipping if is_skipping else tiered
    return TwinRig(state_dir, [[0, 1]], size_bytes=WRITTEN, write_bytes_per_s=write_bytes_per_s, make_twin=make)


def copied(rig: TwinRig) -> Iterator[tuple[int, int]]:
    """Bytes that were done and left, each time that somebody looked."""
    for event in rig.seen:
        if isinstance(event, MovesObserved):
            for copy in (copy for seen in event.observations for copy in seen.copies):
                yield copy.done_bytes, copy.left_bytes or 0


@pytest.mark.parametrize(("is_skipping", "size"), [(False, LOCAL), (True, TAIL)])
def test_a_run_copies_what_its_leader_has_itself_and_shows_just_that(
    tmp_path: Path, is_skipping: bool, size: int
) -> None:
    rig = rig_of(tmp_path, is_skipping=is_skipping)
    started = rig.prepared({0: (2, 1)})
    assert started.moves[0].size_bytes == size
    found = rig.run(started)
    assert found.state == "done"
    (move,) = found.moves
    assert ((move.completed_ms or 0) - found.started_ms) / 1000 == pytest.approx(size / RATE, abs=4)
    # Not nine tenths of the log at once, and then the rest in ten seconds.
    assert all(done + left == pytest.approx(size, rel=0.01) for done, left in copied(rig))
    assert min(done for done, _ in copied(rig)) < size / 2


def test_what_its_leader_has_from_offset_0_on_no_replica_skips(tmp_path: Path) -> None:
    keeping = partial(skipping, local_retention_bytes="-2")
    rig = TwinRig(tmp_path, [[0, 1]], size_bytes=WRITTEN, make_twin=keeping)
    started = rig.prepared({0: (2, 1)}, throttle=10 * RATE)
    assert started.moves[0].size_bytes == WRITTEN
    assert rig.run(started).state == "done"
    assert max(left for _, left in copied(rig)) == pytest.approx(WRITTEN, rel=0.05)


def test_what_is_written_is_measured_by_the_records_on_disk(tmp_path: Path) -> None:
    rig = rig_of(tmp_path, write_bytes_per_s=50_000)
    samples = sample_offsets(rig.client, rig.transport, [tp(0)], 20)
    assert samples.write_rate(tp(0), LOCAL) == pytest.approx(50_000, rel=0.02)
    # What the check for starvation goes by, and the throttle that adapts itself.
    rates = measure_writes(rig.client, rig.transport, rig.prepared({0: (2, 1)}).moves, 20)
    assert rates.known == pytest.approx({tp(0): 50_000}, rel=0.02)
    meter = TrafficMeter(rig.client)
    meter.measure(rig.transport.now_ms(), [tp(0)])
    rig.transport.sleep(20)
    _, (written,) = meter.measure(rig.transport.now_ms(), [tp(0)])
    assert written.bytes_per_s == pytest.approx(50_000, rel=0.02)


def test_samples_and_snapshots_begin_with_the_records_on_disk(tmp_path: Path) -> None:
    rig = rig_of(tmp_path)
    local, end = (
        rig.client.list_offsets([tp(0)], spec)[tp(0)] for spec in (OffsetSpec.EARLIEST_LOCAL, OffsetSpec.LATEST)
    )
    assert (rig.client.list_offsets([tp(0)], OffsetSpec.EARLIEST)[tp(0)], local, end) == (0, 92_000, 102_000)
    (sample,) = sample_rows(take_round(rig.client, rig.transport).samples)
    assert (sample["start_offset"], sample["end_offset"], sample["size_bytes"]) == (local, end, LOCAL)
    seen = observe(rig.client, rig.transport.now_ms())
    (partition,) = whole_snapshot(rig.client, seen, rig.transport, 1).topics[0].partitions
    assert (partition.start_offset, partition.end_offset, partition.size_bytes) == (local, end, LOCAL)


def test_the_twin_of_a_snapshot_is_tiered_too(tmp_path: Path) -> None:
    rig = rig_of(tmp_path)
    snapshot = whole_snapshot(rig.client, observe(rig.client, rig.transport.now_ms()), rig.transport, 1)
    readings = Twin(blueprint_of(snapshot, TYPICAL)).replication.readings
    assert readings.size_bytes(tp(0), 0) == LOCAL
    assert (readings.log_start_offset(tp(0), 0), readings.local_log_start_offset(tp(0), 0)) == (0, 92_000)


def test_the_doctor_names_only_moves_stuck_on_remote_storage(tmp_path: Path) -> None:
    rig = rig_of(tmp_path)
    inject(rig.twin, "cut-remote:2")
    rig.client.alter_partition_reassignments({tp(0): (0, 2)}).raise_if_any()
    rig.transport.sleep(600)
    (issue,) = diagnose_cluster(rig.client, tmp_path, measure_for_s=5, clock=rig.transport).issues
    assert (issue.kind, issue.subject) == ("stuck", "t-0")
    assert "broker 2 begins by reading from remote storage" in issue.seen
    assert "Error building remote log auxiliary state' in the log" in issue.remedy
    recover(rig.twin, "cut-remote:2")
    rig.transport.sleep(60)
    assert rig.replicas == {0: (0, 2)}
    rig.client.alter_partition_reassignments({tp(0): (0, 3)}).raise_if_any()
    assert diagnose_cluster(rig.client, tmp_path, measure_for_s=5, clock=rig.transport).issues == ()


def test_an_ordinary_move_waits_for_no_remote_storage(tmp_path: Path) -> None:
    rig = TwinRig(tmp_path, [[0, 1]])
    inject(rig.twin, "cut-remote:2")
    rig.client.alter_partition_reassignments({tp(0): (0, 2)}).raise_if_any()
    rig.transport.sleep(60)
    assert rig.replicas == {0: (0, 2)}
