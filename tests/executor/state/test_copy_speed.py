"""How fast copies went, and what that makes of the bytes that keep a broker busy."""

from __future__ import annotations

from collections import Counter

import pytest

from kreassign.executor.events import CopyProgress, PartitionObservation, PlacementState, PlannedMove
from kreassign.executor.scheduling import Candidate, Saturation, SaturationThreshold
from kreassign.executor.state.copy_speed import FADING, LEAST_BYTES, MEASURED_OVER_MS, POLLS, CopySpeed
from kreassign.executor.state.move import MoveRecord, MoveStatus
from kreassign.model import TopicPartition
from tests.executor.run_events import A0

MOVE = PlannedMove(A0, (0,), (1,), 1_000)


def record(done_bytes: int) -> MoveRecord:
    """A move of which so much was copied."""
    found = MoveRecord(MOVE, MoveStatus.MOVING)
    copies = (CopyProgress(1, done_bytes, MOVE.size_bytes - done_bytes),)
    found.see(PartitionObservation(A0, PlacementState.MOVING, (1, 0), (0,), 0, copies), 5)
    return found


def copied(number: int, source: int, **done: int) -> MoveRecord:
    """A move from a broker to some, of which each (`b1`, `b2`, …) has received so much of 1,000 bytes."""
    received = {int(broker[1:]): size_bytes for broker, size_bytes in done.items()}
    name = TopicPartition("a", number)
    found = MoveRecord(PlannedMove(name, (source,), (source, *received), 1_000), MoveStatus.MOVING)
    copies = tuple(CopyProgress(broker, size_bytes, 1_000 - size_bytes) for broker, size_bytes in received.items())
    found.see(PartitionObservation(name, PlacementState.MOVING, (source, *received), (source,), source, copies), 5)
    return found


def measured(*polls: tuple[int, int]) -> float | None:
    """The rate after polls that showed so many bytes at such times."""
    speed = CopySpeed()
    for at_ms, done_bytes in polls:
        speed.measure([record(done_bytes)], at_ms)
    return speed.fastest_bytes_per_s


def test_the_rate_is_what_the_fastest_broker_received_over_five_seconds() -> None:
    early = ((0, 100), (MEASURED_OVER_MS - 1, 900))
    assert measured(*early) is None
    assert measured(*early, (MEASURED_OVER_MS, 600)) == 100.0
    assert measured(*early, (MEASURED_OVER_MS, 600), (2 * MEASURED_OVER_MS, 600)) == 100.0


def test_where_nothing_is_copied_nothing_was_done() -> None:
    speed = CopySpeed()
    speed.note_poll([])
    assert speed.most_done_bytes == 0.0


def test_the_most_that_was_done_fades_with_every_poll() -> None:
    speed = CopySpeed()
    speed.note_poll([(record(600), {1: 100})])
    assert speed.most_done_bytes == 500.0
    speed.note_poll([(record(600), {1: 600})])
    assert speed.most_done_bytes == FADING * 500.0


def test_what_was_done_in_polls_without_progress_is_shared_among_them() -> None:
    speed = CopySpeed()
    speed.note_poll([], has_progress=False)
    assert speed.most_done_bytes == 0.0
    speed.note_poll([(record(600), {1: 100})])
    assert speed.most_done_bytes == 250.0


def test_the_fastest_broker_is_the_one_that_received_most_of_all_its_moves() -> None:
    speed = CopySpeed()
    speed.measure([copied(0, 0, b1=100, b2=50), copied(1, 0, b1=200)], 1_000)
    assert speed == CopySpeed(None, 0.0, 1_000, {1: 300, 2: 50})
    # Broker 3 had nothing before; broker 1 got 400 of two moves, broker 2 got 450 of one.
    speed.measure([copied(0, 0, b1=300, b2=500), copied(1, 0, b1=400), copied(2, 0, b3=440)], 6_000)
    assert speed == CopySpeed(90.0, 0.0, 6_000, {1: 700, 2: 500, 3: 440})


@pytest.mark.parametrize(("at_ms", "rate"), [(6_000, 0.2), (7_000, 1 / 6)])
def test_a_single_byte_is_a_rate_and_over_the_time_that_it_took(at_ms: int, rate: float) -> None:
    speed = CopySpeed()
    speed.measure([], 1_000)
    speed.measure([copied(0, 0, b1=1)], at_ms)
    assert speed.fastest_bytes_per_s == rate


def test_where_no_move_is_left_the_rate_stays() -> None:
    speed = CopySpeed(7.0, 0.0, 1_000, {1: 300})
    speed.measure([], 6_000)
    assert speed == CopySpeed(7.0, 0.0, 6_000, {})


def test_what_one_broker_sends_is_the_sum_of_what_others_receive_from_it() -> None:
    speed = CopySpeed()
    had = [(copied(0, 9, b1=300, b2=200), {1: 100}), (copied(1, 9, b1=50), {1: 60})]
    speed.note_poll(had, has_progress=False)
    done = {("source", 9): 400, ("destination", 1): 200, ("destination", 2): 200}
    assert speed == CopySpeed(_done=Counter(done), _polls=1)
    speed.note_poll([(copied(2, 9, b1=20), {})])
    assert speed == CopySpeed(most_done_bytes=210.0)


def test_the_most_fades_once_for_each_poll_that_showed_no_progress() -> None:
    speed = CopySpeed(most_done_bytes=1_000.0)
    for _ in range(2):
        speed.note_poll([], has_progress=False)
    speed.note_poll([])
    assert speed.most_done_bytes == FADING**3 * 1_000.0


@pytest.mark.parametrize(("most_done_bytes", "enough"), [
    (0.0, LEAST_BYTES),
    (LEAST_BYTES / POLLS, LEAST_BYTES),
    (LEAST_BYTES / POLLS + 0.25, LEAST_BYTES + 1),
])  # fmt: skip
def test_enough_are_two_copies_and_what_lasts_for_four_polls(most_done_bytes: float, enough: int) -> None:
    moving = Candidate(A0, 1_000, 0, (1,), left_bytes=600)
    busy = CopySpeed(most_done_bytes=most_done_bytes).saturation([moving])
    assert busy == Saturation.of(SaturationThreshold(2, enough), [moving])
    assert isinstance(busy.enough.left_bytes, int)
