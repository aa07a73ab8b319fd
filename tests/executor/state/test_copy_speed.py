"""How fast copies went, and what that makes of the bytes that keep a broker busy."""

from __future__ import annotations

from kreassign.executor.events import CopyProgress, PartitionObservation, PlacementState, PlannedMove
from kreassign.executor.state.copy_speed import FADING, MEASURED_OVER_MS, CopySpeed
from kreassign.executor.state.move import MoveRecord, MoveStatus
from tests.executor.run_events import A0

MOVE = PlannedMove(A0, (0,), (1,), 1_000)


def record(done_bytes: int) -> MoveRecord:
    """A move of which so much was copied."""
    found = MoveRecord(MOVE, MoveStatus.MOVING)
    copies = (CopyProgress(1, done_bytes, MOVE.size_bytes - done_bytes),)
    found.see(PartitionObservation(A0, PlacementState.MOVING, (1, 0), (0,), 0, copies), 5)
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
