from dataclasses import replace

import pytest

from kreassign.executor.events import (
    Event,
    MovesObserved,
    MovesSubmitted,
    PlacementState,
    PlannedMove,
    SubmissionIntended,
    TimePassed,
)
from kreassign.model import TopicPartition
from kreassign.model.run import Estimate, MoveStatus, Phase, RunHistory
from kreassign.model.throttle import ThrottleRates
from tests.executor.run_events import MOVES, SUBMITTED, look, measured, seen, started

A, B = MOVES


def estimate_of(run: RunHistory, place: int) -> Estimate:
    """The estimate of a move that copies data."""
    found = run.moves[place].estimate
    assert found is not None
    return found


def test_before_the_first_look_everything_is_still_to_do() -> None:
    run = measured([started()])
    assert (run.measured.done_bytes, run.measured.left_bytes) == (0, 1_500)
    assert (run.state, len(run.moves), run.moves_by_state[MoveStatus.COMPLETE]) == (Phase.PREPARING, 2, 0)


def test_moves_and_total_have_bytes_rate_and_end() -> None:
    looks = [look(10_000 + 1_000 * second, PlacementState.MOVING, done=50 * second) for second in range(6)]
    run = measured([*SUBMITTED, *looks])
    first = estimate_of(run, 0)
    assert (first.done_bytes, first.left_bytes, first.rate_bytes_per_s, first.eta_s) == (250, 750, 50.0, 15.0)
    assert (run.measured.done_bytes, run.measured.left_bytes) == (500, 1_000)
    assert run.measured.rate_bytes_per_s == 100.0


@pytest.mark.parametrize(("throttle", "eta_s"), [(50, 15.0), (10, 75.0)])
def test_a_move_is_not_told_to_end_sooner_than_its_throttle_lets_it(throttle: int, eta_s: float) -> None:
    """A throttle lets a burst through at its begin."""
    begun = replace(started(), rates=ThrottleRates(throttle))
    looks = [look(10_000 + 1_000 * second, PlacementState.MOVING, done=50 * second) for second in range(6)]
    first = estimate_of(measured([begun, *SUBMITTED[1:], *looks]), 0)
    assert (first.rate_bytes_per_s, first.left_bytes, first.eta_s) == (50.0, 750, eta_s)


@pytest.mark.parametrize(("rate", "eta_s", "why"), [
    (20, 95.0, None), (90, None, "what was measured so far allows anything from 10 s to 105 s")
])  # fmt: skip
def test_the_whole_ends_when_the_slowest_receiver_has_everything(rate: int, eta_s: float | None, why: str) -> None:
    """No end is predicted while brokers that could be as fast as others are not: too much is open."""
    events: list[Event] = [*SUBMITTED]
    for second in range(6):
        slow = seen(A, PlacementState.MOVING, done=10 * second)
        fast = seen(B, PlacementState.MOVING, done=rate * second)
        events.append(MovesObserved(10_000 + 1_000 * second, (slow, fast)))
    run = measured(events)
    assert estimate_of(run, 0).eta_s == 95.0
    assert (run.measured.eta_s, run.measured.why_no_end) == (eta_s, why)


def test_copies_waiting_at_one_broker_end_when_it_is_filled() -> None:
    """The throttle of a receiver may serve one copy first; what matters is what the broker still gets, at its rate."""
    waiting = PlannedMove(TopicPartition("a", 2), (0, 1), (2, 0), 1_000)
    events = [started(A, waiting, throttle=None), look(2_000, PlacementState.UNTOUCHED, A, waiting)]
    events += [SubmissionIntended(3_000, (A.topic_partition, waiting.topic_partition))]
    events += [MovesSubmitted(4_000, (A.topic_partition, waiting.topic_partition))]
    for second in range(6):
        observations = (
            seen(A, PlacementState.MOVING, done=100 * second),
            seen(waiting, PlacementState.MOVING, done=second),
        )
        events.append(MovesObserved(10_000 + 1_000 * second, observations))
    run = measured(events)
    assert estimate_of(run, 1).eta_s == 995.0
    assert run.measured.eta_s == pytest.approx(1_495 / 101)


def test_a_look_without_news_of_a_move_says_that_it_stands_still() -> None:
    events = [*SUBMITTED, look(10_000, PlacementState.MOVING, done=100)]
    for second in range(1, 21):
        events += [TimePassed(10_000 + 1_000 * second), MovesObserved(10_000 + 1_000 * second, ())]
    run = measured(events)
    assert estimate_of(run, 0).rate_bytes_per_s == 0.0
    assert estimate_of(run, 0).eta_s is None


def test_a_finished_move_counts_in_full() -> None:
    events = [*SUBMITTED, look(10_000, PlacementState.MOVING, done=100), TimePassed(10_500)]
    events.append(MovesObserved(11_000, (seen(A, PlacementState.ARRIVED),)))
    run = measured(events)
    assert run.moves[0].status is MoveStatus.COMPLETE
    assert (estimate_of(run, 0).done_bytes, estimate_of(run, 0).left_bytes) == (1_000, 0)
    assert (run.moves_by_state[MoveStatus.COMPLETE], run.measured.done_bytes) == (1, 1_100)


def test_a_new_leader_without_a_sample_does_not_hide_progress() -> None:
    looks = [look(10_000 + 1_000 * second, PlacementState.MOVING, done=50 * second) for second in range(6)]
    led_by_1 = replace(seen(A, PlacementState.MOVING, done=250), leader=1)
    unmeasured = MovesObserved(16_000, (led_by_1,), has_progress=False)
    run = measured([*SUBMITTED, *looks, TimePassed(16_000), unmeasured])
    assert run.measured.done_bytes == 500
    assert (run.measured.end is None) == (run.measured.why_no_end is not None)


def test_bytes_stay_with_the_leader_that_sent_them() -> None:
    """Else its rate falls below nothing, and the end of the run jumps from minutes to hours for a minute."""
    events = [*SUBMITTED, *(look(10_000 + 1_000 * one, PlacementState.MOVING, done=50 * one) for one in range(6))]
    others = seen(B, PlacementState.MOVING, done=300)
    led_by_1 = (replace(seen(A, PlacementState.MOVING, done=300), leader=1), others)
    arrived = (seen(A, PlacementState.ARRIVED, leader=2), others)
    for last in (led_by_1, arrived):
        run = measured([*events, TimePassed(16_000), MovesObserved(16_000, last)]).measured
        rates = {one.broker: one.read_bytes_per_s for one in run.brokers}
        assert rates[1] == 50.0
        assert (rates[0] or 0.0) >= 50.0


def test_a_copy_that_stands_still_ten_minutes_is_named() -> None:
    events = [*SUBMITTED, look(10_000, PlacementState.MOVING, done=100)]
    for at_ms in range(20_000, 640_000, 10_000):
        events += [TimePassed(at_ms), MovesObserved(at_ms, (seen(B, PlacementState.MOVING, done=at_ms // 10_000),))]
    told = measured(events).measured.why_no_end
    assert told == "a-0 has made no progress since 00:00:10 UTC"
