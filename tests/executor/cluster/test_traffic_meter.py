"""Measuring traffic between two readings."""

from __future__ import annotations

from pathlib import Path

import pytest

from kreassign.executor.cluster.measurements import EndOffsets, TrafficMeter, record_bytes, written
from kreassign.model import ElectionType, LogDir, LogDirReplica
from tests.executor.twin_runs import TwinRig, tp


def test_what_is_written_is_records_times_their_size_over_the_time() -> None:
    before, now = EndOffsets(0, {tp(0): 100, tp(1): 5}), EndOffsets(2_000, {tp(0): 140, tp(1): 5, tp(2): 9})
    assert written(before, now, {tp(0): 10.0}) == {tp(0): 200.0, tp(1): 0.0}


def test_a_written_partition_without_record_sizes_is_left_out() -> None:
    assert written(EndOffsets(0, {tp(0): 1}), EndOffsets(1_000, {tp(0): 2}), {}) == {}


def test_the_size_of_records_is_that_of_the_copy_of_the_leader() -> None:
    def log_dir(copy: LogDirReplica) -> tuple[LogDir, ...]:
        return (LogDir("/d", None, None, None, False, (copy,)),)

    found = {0: log_dir(LogDirReplica(tp(0), 900, 0, is_future=False)), 1: log_dir(LogDirReplica(tp(0), 5, 0, False))}
    assert record_bytes({tp(0): 0}, found, {tp(0): 10}, {tp(0): 100}) == {tp(0): 10.0}
    assert record_bytes({tp(0): 0}, found, {tp(0): 100}, {tp(0): 100}) == {}


def test_the_second_reading_tells_the_traffic_of_brokers(tmp_path: Path) -> None:
    rig = TwinRig(tmp_path, [[0, 1]], write_bytes_per_s=50_000)
    meter = TrafficMeter(rig.client)
    assert meter.measure(rig.transport.now_ms(), [tp(0)]) == ((), ())
    rig.transport.sleep(10)
    brokers, ((name, bytes_per_s),) = _plain(meter, rig)
    assert name == tp(0)
    assert bytes_per_s == pytest.approx(50_000, rel=0.02)
    assert brokers[0] == pytest.approx((bytes_per_s, bytes_per_s))
    assert brokers[1] == pytest.approx((0, bytes_per_s))
    assert brokers[4] == (0, 0)


@pytest.mark.parametrize("behind", [0, 2])
def test_traffic_is_that_of_leaders_which_two_brokers_show(tmp_path: Path, behind: int) -> None:
    rig = TwinRig(tmp_path, [[0, 1]], write_bytes_per_s=50_000)
    change_leader(rig, behind)
    meter = TrafficMeter(rig.client)
    meter.measure(rig.transport.now_ms(), [tp(0)])
    rig.transport.sleep(10)
    brokers, _ = _plain(meter, rig)
    assert [brokers[0][0], brokers[1][0]] == pytest.approx([0, 50_000], rel=0.02)


def test_traffic_is_unknown_where_two_brokers_differ(tmp_path: Path) -> None:
    rig = TwinRig(tmp_path, [[0, 1]], write_bytes_per_s=50_000, brokers=2)
    change_leader(rig, 0)
    meter = TrafficMeter(rig.client)
    meter.measure(rig.transport.now_ms(), [tp(0)])
    rig.transport.sleep(10)
    assert _plain(meter, rig) == ({}, [])


def test_traffic_is_known_though_a_broker_missed_a_fall_out_of_sync(tmp_path: Path) -> None:
    rig = TwinRig(tmp_path, [[0, 1]], write_bytes_per_s=50_000, brokers=3)
    rig.twin.views.hold_back(2)
    rig.twin.crash(1)
    rig.transport.sleep(60)
    meter = TrafficMeter(rig.client)
    meter.measure(rig.transport.now_ms(), [tp(0)])
    rig.transport.sleep(10)
    brokers, _ = _plain(meter, rig)
    assert brokers[0] == pytest.approx((0, 50_000), rel=0.02)


def change_leader(rig: TwinRig, behind: int) -> None:
    """Let broker 1 lead instead of broker 0, unseen by one broker."""
    rig.twin.views.hold_back(behind)
    rig.client.alter_partition_reassignments({tp(0): (1, 0)}).raise_if_any()
    rig.client.elect_leaders([tp(0)], ElectionType.PREFERRED).raise_if_any()
    rig.transport.sleep(10)


def _plain(meter: TrafficMeter, rig: TwinRig) -> tuple[dict[int, tuple[float, float]], list[tuple[object, float]]]:
    brokers, writes = meter.measure(rig.transport.now_ms(), [tp(0)])
    return (
        {one.broker: (one.sent_bytes_per_s, one.received_bytes_per_s) for one in brokers},
        [(one.topic_partition, one.bytes_per_s) for one in writes],
    )
