"""Speed of copies, and the bytes that keep a broker busy, by it."""

from __future__ import annotations

import pytest

from kreassign.executor.events import CopyProgress, PartitionObservation, PlacementState, PlannedMove
from kreassign.executor.scheduling.limits import PacedMove, Saturation, SaturationThreshold
from kreassign.executor.state.move import MoveRecord
from kreassign.executor.state.run import FADING, LEAST_BYTES, MEASURED_OVER_MS, POLLS, CopySpeed
from kreassign.model import TopicPartition
from kreassign.model.run import MoveStatus
from tests.executor.run_events import A0


def copied(source: int, **done: int) -> MoveRecord:
    """A move from a broker to some, of which each (`b1`, `b2`, …) has received so much of 1,000 bytes."""
    received = {int(broker[1:]): size_bytes for broker, size_bytes in done.items()}
    name, whole = TopicPartition("a", source), (source, *received)
    found = MoveRecord(PlannedMove(name, (source,), whole, 1_000), MoveStatus.MOVING)
    copies = tuple(CopyProgress(broker, size_bytes, 1_000 - size_bytes) for broker, size_bytes in received.items())
    found.see(PartitionObservation(name, PlacementState.MOVING, whole, (source,), source, copies), 5)
    return found


T = MEASURED_OVER_MS


@pytest.mark.parametrize(("polls", "bytes_per_s"), [
    ([(0, 100), (T - 1, 900)], None),
    ([(0, 100), (T - 1, 900), (T, 600)], 100.0),
    ([(0, 100), (T, 600), (2 * T, 600)], 100.0),
    ([(0, 100), (T, 600), (2 * T, 700), (3 * T, 1_000)], 60.0),
    ([(1_000, 0), (6_000, 1)], 0.2),
    ([(1_000, 0), (7_000, 1)], 1 / 6),
    ([(1_000, 300), (6_000, None)], None),
])  # fmt: skip
def test_the_rate_is_measured_over_five_seconds_with_progress(
    polls: list[tuple[int, int | None]], bytes_per_s: float | None
) -> None:
    speed = CopySpeed()
    for at_ms, done in polls:
        speed.measure([] if done is None else [copied(0, b1=done)], at_ms)
    assert speed.fastest_bytes_per_s == bytes_per_s


def test_the_rate_is_that_of_the_fastest_broker_over_all_its_moves() -> None:
    speed = CopySpeed()
    speed.measure([copied(0, b1=100, b2=100), copied(9, b1=150, b3=40)], 1_000)
    speed.measure([copied(0, b1=400, b2=500), copied(9, b1=300, b3=440)], 6_000)
    assert speed.fastest_bytes_per_s == 90.0


Poll = tuple[tuple[tuple[MoveRecord, dict[int, int]], ...], bool]
"""Moves, what their brokers had received before, and whether the poll shows progress."""
WHOLE = ((copied(0, b1=600), {1: 100}),)
SHARED = ((copied(9, b1=300, b2=200), {1: 100}), (copied(9, b1=50), {1: 60}))
"""Broker 9 sends 400 bytes: 200 to each of two brokers. Of the second move less is there than before."""


@pytest.mark.parametrize(("polls", "most_bytes"), [
    ([((), True)], 0.0),
    ([(WHOLE, True)], 500.0),
    ([(WHOLE, True), ((), True)], FADING * 500),
    ([((), False), (WHOLE, True)], 250.0),
    ([(WHOLE, False)], 0.0),
    ([(WHOLE, True), ((), False), ((), False), ((), True)], FADING**3 * 500),
    ([(SHARED, True)], 400.0),
    ([(SHARED, False), (((copied(9, b1=20), {}),), True)], 210.0),
    ([(WHOLE, False), ((), True), ((), True)], FADING * 250),
], ids=["nothing copied", "first", "fades", "shared by silent polls", "silent", "fades for silent polls", "sent",
        "sent over two polls", "begins again"])  # fmt: skip
def test_the_busy_threshold_follows_the_best_poll(polls: list[Poll], most_bytes: float) -> None:
    speed = CopySpeed()
    for had, has_progress in polls:
        speed.note_poll(had, has_progress=has_progress)
    assert speed.most_done_bytes == most_bytes


@pytest.mark.parametrize(("most_done_bytes", "enough"), [
    (0.0, LEAST_BYTES),
    (LEAST_BYTES / POLLS, LEAST_BYTES),
    (LEAST_BYTES / POLLS + 0.25, LEAST_BYTES + 1),
])  # fmt: skip
def test_a_broker_is_busy_with_two_copies_and_data_for_four_polls(most_done_bytes: float, enough: int) -> None:
    moving = PacedMove(A0, 1_000, 0, (1,), left_bytes=600)
    busy = CopySpeed(most_done_bytes=most_done_bytes).saturation([moving])
    assert busy == Saturation.of(SaturationThreshold(2, enough), [moving])
    assert isinstance(busy.enough.left_bytes, int)
