"""Write rates by sampling: the one computation that plans, throttles and snapshots share."""

from __future__ import annotations

from pathlib import Path

import pytest

from kreassign.executor.cluster.measurements import OffsetSamples, mean_record_bytes, sample_offsets, write_rate
from kreassign.model import TopicPartition
from tests.executor.twin_runs import TwinRig, tp

PARTITION = TopicPartition("t", 0)


@pytest.mark.parametrize(("start", "end", "later", "seconds", "rate"), [
    (0, 100, 150, 5.0, 100.0), (0, 100, 100, 5.0, 0.0), (50, 100, 150, 5.0, 200.0), (0, 100, 90, 5.0, 0.0),
    (0, 0, 50, 5.0, None), (0, 0, 0, 5.0, 0.0), (0, 100, 150, 0.0, None), (0, 100, None, 5.0, None),
])  # fmt: skip
def test_a_rate_is_records_times_their_mean_size(
    start: int, end: int, later: int | None, seconds: float, rate: float | None
) -> None:
    laters = {} if later is None else {PARTITION: later}
    assert OffsetSamples({PARTITION: start}, {PARTITION: end}, laters, seconds).write_rate(PARTITION, 1000) == rate


def test_without_a_size_only_a_rate_of_nothing_is_known() -> None:
    samples = OffsetSamples({PARTITION: 0}, {PARTITION: 10}, {PARTITION: 12}, 2.0)
    assert samples.write_rate(PARTITION, None) is None
    assert (write_rate(0, 2.0, None), write_rate(2, 2.0, None)) == (0.0, None)
    assert (mean_record_bytes(900, 10, 100), mean_record_bytes(900, 100, 100)) == (10.0, None)


def test_offsets_are_asked_for_twice_and_what_did_not_answer_is_named(tmp_path: Path) -> None:
    rig = TwinRig(tmp_path, [[0, 1]], write_bytes_per_s=50_000)
    begun_ms = rig.transport.now_ms()
    found = sample_offsets(rig.client, rig.transport, [tp(0), tp(7)], 20)
    assert rig.transport.now_ms() - begun_ms == pytest.approx(20_000, abs=100)
    assert found.seconds == pytest.approx(20, abs=0.1)
    assert list(found.failed) == [tp(7)]
    size_bytes = 10_000_000
    assert found.write_rate(tp(0), size_bytes) == pytest.approx(50_000, rel=0.1)
    assert found.write_rate(tp(7), size_bytes) is None
