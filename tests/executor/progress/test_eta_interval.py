"""End of a run: the busiest broker decides, at its own rate."""

from __future__ import annotations

import pytest

from kreassign.executor.eta import UNCERTAIN, ProgressSample, Side, interval
from kreassign.model.run import Interval


def _side(
    rate: int, left: int, *, written: int = 0, waiting: float = 0.0, grown: float = 0.0, seconds: int = 10
) -> Side:
    """Ten looks, the last of which leaves so much."""
    looks = range(seconds + 1)
    samples = [
        ProgressSample(1000 * at, rate * at, left + (rate - written) * (seconds - at), written * at) for at in looks
    ]
    return Side(samples, waiting, grown)


def _found(*sides: Side, best: float, together: Side | None = None) -> Interval:
    found = interval(sides, together or _side(10**9, 1), best)
    assert found is not None
    return found


def test_the_busiest_broker_decides_and_not_the_slowest() -> None:
    busiest, shares = _side(50, 5_000), _side(1, 1_000)
    assert _found(busiest, shares, best=50).expected_s == pytest.approx(100 + (1_000 - 100) / 50)
    assert _found(busiest, best=50).expected_s == pytest.approx(100)


def test_what_is_written_meanwhile_has_to_be_copied_too() -> None:
    assert _found(_side(50, 3_000, written=20), best=50).expected_s == pytest.approx(100)
    assert _found(_side(50, 3_000, waiting=40), best=50).expected_s == pytest.approx(100)
    assert _found(_side(50, 1_000, waiting=40, grown=2_000), best=50).expected_s == pytest.approx(100)


def test_the_earliest_end_is_that_at_the_best_rate() -> None:
    found = _found(_side(25, 5_000), best=50)
    assert found.earliest_s == pytest.approx(100 * (1 - UNCERTAIN))
    assert found.expected_s == pytest.approx(200)
    assert found.latest_s == pytest.approx(200 * (1 + UNCERTAIN))


def test_the_latest_end_is_that_at_the_slowest_lately() -> None:
    begin = [ProgressSample(1000 * at, 100 * at, 10_000 - 100 * at, 0) for at in range(31)]
    slower = [ProgressSample(1000 * at, 3_000 + 20 * (at - 30), 7_000 - 20 * (at - 30), 0) for at in range(31, 41)]
    found = _found(Side([*begin, *slower]), best=100)
    assert found.latest_s == pytest.approx(6_800 / 20 * (1 + UNCERTAIN))


def test_where_limits_hold_the_run_back_the_whole_of_it_decides() -> None:
    assert _found(_side(50, 1_000), together=_side(50, 6_000), best=50).expected_s == pytest.approx(120)


def test_bytes_past_a_throttle_are_made_up_for_first() -> None:
    """The first answers of a leader pass before anything is counted: 600 bytes in two seconds of 50 a second."""
    burst = [ProgressSample(1000 * at, 600, 1_000, 0) for at in range(3)]
    side = Side(burst, limit_bytes_per_s=50)
    assert side.ahead_bytes == 500
    assert side.takes_s(50) == pytest.approx((1_000 + 500) / 50)
    fast = Side([ProgressSample(1000 * at, 300 * at, 1_000 - 300 * at, 0) for at in range(3)], limit_bytes_per_s=50)
    assert fast.rate_bytes_per_s == 50


def test_what_passed_longer_ago_than_a_throttle_remembers_is_made_up_for() -> None:
    steady = [ProgressSample(1000 * at, 600 + 50 * at, 5_000 - 50 * at, 0) for at in range(31)]
    assert Side(steady, limit_bytes_per_s=50).ahead_bytes == 0


def test_without_a_throttle_nothing_is_made_up_for() -> None:
    assert Side([ProgressSample(1000 * at, 600, 1_000, 0) for at in range(3)]).ahead_bytes == 0


def test_a_broker_that_had_nothing_to_do_until_lately_is_not_slow() -> None:
    idle = [ProgressSample(1000 * at, 0, 1_000, 0) for at in range(30)]
    begun = [ProgressSample(1000 * (29 + at), 100 * at, 1_000 - 100 * at, 0) for at in range(1, 6)]
    side = Side([*idle, *begun])
    assert (side.rate_bytes_per_s, side.slowest_bytes_per_s) == (100, 100)
    assert Side([*idle, *begun[:1]]).rate_bytes_per_s is None


def test_a_broker_that_waits_for_others_is_not_slow() -> None:
    busy = [ProgressSample(1000 * at, 100 * at, 10_000 - 100 * at, 0, at < 10) for at in range(11)]
    idle = [ProgressSample(1000 * at, 1_000, 9_000, 0, is_busy=False) for at in range(11, 60)]
    side = Side([*busy, *idle])
    assert (side.rate_bytes_per_s, side.slowest_bytes_per_s) == (100, 100)
    assert side.present_bytes_per_s == pytest.approx(1_000 / 59)


@pytest.mark.parametrize("written", [50, 80])
def test_what_does_not_shrink_has_no_end(written: int) -> None:
    assert _side(50, 3_000, written=written).takes_s(50.0) is None
    assert interval([_side(50, 3_000, written=written)], _side(50, 3_000), 50.0) is None


def test_when_nothing_is_left_the_end_is_now() -> None:
    assert interval([_side(50, 0)], _side(50, 0), 50.0) == Interval(0.0, 0.0, 0.0)
