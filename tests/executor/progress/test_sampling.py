"""Progress is written down as the journal's budget allows; every other change at once."""

from __future__ import annotations

from kreassign.executor.events import CopyProgress, PartitionObservation, PlacementState
from kreassign.executor.runner import BURST_BYTES, BYTES_PER_S, ProgressSampling
from kreassign.model import TopicPartition

COUNT = 100
NAMES = tuple(TopicPartition("t", number) for number in range(COUNT))


def seen(name: TopicPartition, done: int, placement: PlacementState = PlacementState.MOVING) -> PartitionObservation:
    return PartitionObservation(name, placement, (0, 1, 2), (0, 1), 0, (CopyProgress(2, done, 10**9 - done),))


def test_progress_is_journaled_per_poll_and_later_per_minute() -> None:
    sampling = ProgressSampling(left_bytes=100_000)
    known, written = {name: seen(name, 0) for name in NAMES}, []
    for second in range(1_200):
        chosen, has_progress = sampling.chosen(known, tuple(seen(name, second + 1) for name in NAMES), float(second))
        assert bool(chosen) == has_progress
        if has_progress:
            written.append(second)
    assert written[:40] == list(range(40))
    assert 2 * 10 <= sum(second >= 600 for second in written) <= 4 * 10


def test_what_is_no_progress_is_written_at_once() -> None:
    sampling = ProgressSampling(left_bytes=-1, bytes_per_s=0)
    moving, arrived = seen(NAMES[0], 5), seen(NAMES[1], 5, PlacementState.ARRIVED)
    known = {NAMES[0]: seen(NAMES[0], 4), NAMES[1]: seen(NAMES[1], 4), NAMES[2]: None}
    new = seen(NAMES[2], 0)
    assert sampling.chosen(known, (moving, arrived, new), 1.0) == ((arrived, new), False)


def test_an_idle_run_saves_up_no_more_than_the_burst() -> None:
    sampling = ProgressSampling(left_bytes=0)
    sampling.chosen({}, (), 0.0)
    sampling.chosen({}, (), 100 * BURST_BYTES / BYTES_PER_S)
    assert sampling.left_bytes == BURST_BYTES


def test_a_clock_that_stands_still_or_goes_back_gives_nothing() -> None:
    sampling = ProgressSampling(left_bytes=0)
    for now_s in (10.0, 10.0, 3.0):
        sampling.chosen({}, (), now_s)
    assert sampling.left_bytes == 0
