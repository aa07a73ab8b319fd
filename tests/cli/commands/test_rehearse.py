"""A plan is rehearsed on the twin of a snapshot."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from kreassign.cli.main import kreassign
from kreassign.model import Broker, TopicPartition
from kreassign.model.plan import PartitionAssignment, Plan
from kreassign.model.snapshot import ClusterSnapshot, SnapshotBroker, SnapshotLogDir, SnapshotPartition, SnapshotTopic
from kreassign.operations.plan_files import write_plan
from kreassign.operations.snapshot_files import write_snapshot
from tests.approved import approve
from tests.report.test_html import Page

pytestmark = pytest.mark.thorough

GIGABYTE = 1_000_000_000
ROOM = SnapshotLogDir("/d", 100 * GIGABYTE, 90 * GIGABYTE)


def snapshot(*, writes: float = 0.0, room: SnapshotLogDir = ROOM) -> ClusterSnapshot:
    """Three brokers; a partition of ten gigabytes on the first two."""
    sizes = (10 * GIGABYTE, 10 * GIGABYTE)
    partition = SnapshotPartition(
        (0, 1), (0, 1), 0, 0, ("/d", "/d"), sizes, start_offset=0, end_offset=10_000_000, write_bytes_per_s=writes
    )
    brokers = tuple(
        SnapshotBroker(Broker(number, f"host-{number}", 9092), (room if number == 2 else ROOM,)) for number in range(3)
    )
    return ClusterSnapshot(1_000_000, "cluster-1", brokers, (SnapshotTopic("t", (partition,)),))


def single_copy() -> ClusterSnapshot:
    """A partition of one replica under min.insync.replicas 2."""
    whole = snapshot()
    (topic,) = whole.topics
    (partition,) = topic.partitions
    one = replace(partition, replicas=(0,), isr=(0,), log_dirs=("/d",), sizes_bytes=(10 * GIGABYTE,))
    return replace(whole, topics=(replace(topic, partitions=(one,), configs={"min.insync.replicas": "2"}),))


def rehearse(folder: Path, found: ClusterSnapshot, *options: str, to: tuple[int, ...] = (2, 1)) -> Result:
    write_snapshot(folder / "snapshot.json", found)
    write_plan(folder / "plan.json", Plan((PartitionAssignment(TopicPartition("t", 0), to),)), None)
    files = [str(folder / "plan.json"), "--snapshot", str(folder / "snapshot.json")]
    return CliRunner().invoke(kreassign, ["rehearse", *files, *options])


def test_a_rehearsal_says_how_long_the_run_takes_and_what_brokers_bear(tmp_path: Path) -> None:
    shown = rehearse(tmp_path, snapshot(), "--throttle", "10MB/s", "--format", "json")
    assert shown.exit_code == 0, shown.output
    found = json.loads(shown.stdout)
    # A thousand seconds at the full rate; throttled followers reach nine tenths of it.
    assert 1_000 < found["seconds"] < 1_200
    assert found["peak_moves"] == {"2": 1}
    assert found["peak_bytes"]["2"] == pytest.approx(10 * GIGABYTE, rel=0.02)
    assert found["history"]["throttle_residue"] == []
    text = rehearse(tmp_path, snapshot(), "--throttle", "10MB/s").output
    approve(text, "rehearse", DIR=tmp_path)


def test_a_rehearsal_shows_that_a_copy_never_catches_up(tmp_path: Path) -> None:
    never = rehearse(tmp_path, snapshot(writes=2_000_000), "--throttle", "1MB/s", "--guard", "rate=cancel")
    assert never.exit_code == 5
    approve(never.output, "rehearse-a-copy-that-never-ends", DIR=tmp_path)
    endless = rehearse(tmp_path, snapshot(writes=2_000_000), "--throttle", "1MB/s")
    assert (endless.exit_code, "t-0: at 1 MB/s it never ends" in endless.output) == (2, True)


def test_a_rehearsal_shows_that_a_disk_is_too_full(tmp_path: Path) -> None:
    full = SnapshotLogDir("/d", 100 * GIGABYTE, 6 * GIGABYTE)
    shown = rehearse(tmp_path, snapshot(room=full), "--throttle", "100MB/s", "--guard", "disk=cancel")
    assert shown.exit_code == 5
    approve(shown.output, "rehearse-with-a-full-disk", DIR=tmp_path)


def test_a_rehearsal_waits_for_its_window_in_virtual_time(tmp_path: Path) -> None:
    options = ("--throttle", "10MB/s", "--window", "03:00-04:00", "--format", "json")
    found = json.loads(rehearse(tmp_path, snapshot(), *options).stdout)
    # The snapshot is of 00:16:40 UTC; a copy takes 17 minutes.
    assert 3 * 3600 - 1000 < found["seconds"] < 3 * 3600 + 300
    assert found["history"]["state"] == "done"


def test_a_rehearsal_has_a_page_with_brokers_before_and_after(tmp_path: Path) -> None:
    out = tmp_path / "rehearsal.html"
    shown = rehearse(tmp_path, snapshot(), "--throttle", "10MB/s", "--report", str(out))
    assert shown.stdout.endswith(f"report of the rehearsal: {out}\n")
    words = Page(out.read_text(encoding="utf-8")).words
    for told in (
        "Rehearsal of plan.json",
        "Simulated: every move would complete, and the cluster would match the plan. Nothing was changed.",
        "Hottest broker: 3.00 × → 3.00 × the mean (leaders)",
        "10 GB → 0 B",
        "0 B → 10 GB",
        "The throttle was 10 MB/s.",
    ):
        assert told in words, told


def test_a_rehearsal_tells_where_a_run_would_lock_out_producers(tmp_path: Path) -> None:
    out, throttled = tmp_path / "rehearsal.html", ("--throttle", "10MB/s")
    shown = rehearse(tmp_path, single_copy(), *throttled, "--format", "json", "--report", str(out), to=(2,))
    found = json.loads(shown.stdout)
    (told,) = found["outages"]
    assert (found["history"]["state"], shown.exit_code) == ("done", 0)
    assert told.startswith("topic t: producers with acks=all would be refused (NOT_ENOUGH_REPLICAS) at 1 of its")
    assert told.endswith("or run with --allow-producer-outage")
    assert rehearse(tmp_path, single_copy(), *throttled, to=(2,)).stdout.startswith(told)
    assert told in Page(out.read_text(encoding="utf-8")).words


def test_a_rehearsal_tells_a_falling_factor_and_needs_consent(tmp_path: Path) -> None:
    falls = "replication factor of 1 partition falls from 2 to 1: t-0"
    refused = rehearse(tmp_path, snapshot(), to=(1,))
    assert (refused.exit_code, falls in refused.stderr, "--allow-factor-change" in refused.stderr) == (2, True, True)
    agreed = rehearse(tmp_path, snapshot(), "--allow-factor-change", "--format", "json", to=(1,))
    found = json.loads(agreed.stdout)
    assert (agreed.exit_code, found["history"]["state"], found["factors"]) == (0, "done", [falls])


def test_a_rehearsal_has_the_faults_that_are_wanted_at_their_time(tmp_path: Path) -> None:
    fault = ("--fault", "crash:2@100s+1h")
    crashed = rehearse(tmp_path, snapshot(), "--throttle", "10MB/s", "--format", "json", *fault)
    found = json.loads(crashed.stdout)
    assert (crashed.exit_code, found["history"]["state"]) == (5, "failed")
    assert 100 < found["seconds"] < 1_000, "the move was given up, long before the copy would have been there"
    (verdict,) = found["verdicts"]
    assert verdict.startswith("broker: broker 2, ")
    refused = rehearse(tmp_path, snapshot(), "--fault", "crash:7@100s")
    assert (refused.exit_code, "7" in refused.stderr) == (2, True)
