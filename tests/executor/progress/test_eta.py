import pytest
from hypothesis import given
from hypothesis import strategies as st

from kreassign.executor.eta import Sample, estimate, recent, total
from kreassign.model.run import Estimate


def steady(rate: int, writes: int, size: int, seconds: int) -> list[Sample]:
    """A copy of `size` bytes at `rate` bytes/s while the leader grows by `writes` bytes/s, looked at every second."""
    return [
        Sample(second * 1000, rate * second, size + writes * second - rate * second) for second in range(seconds + 1)
    ]


def test_a_copy_without_writes_ends_when_its_rest_is_through() -> None:
    seen = estimate(steady(rate=100, writes=0, size=1_000, seconds=4))
    assert seen == Estimate(400, 600, 100.0, 0.0, 6.0)


def test_writes_slow_the_end_down_as_size_over_rate_minus_writes() -> None:
    seen = estimate(steady(rate=100, writes=80, size=1_000, seconds=4))
    assert (seen.rate_bytes_per_s, seen.write_bytes_per_s) == (100.0, 80.0)
    assert seen.eta_s == pytest.approx(920 / 20)


def test_a_copy_that_producers_outrun_has_no_end() -> None:
    seen = estimate(steady(rate=100, writes=100, size=1_000, seconds=4))
    assert (seen.left_bytes, seen.eta_s) == (1_000, None)


@given(st.integers(1, 10**9), st.integers(0, 10**9), st.integers(1, 10**12))
def test_the_eta_of_a_steady_copy_is_exact(rate: int, writes: int, size: int) -> None:
    span = min(5, size // rate)
    samples = steady(rate, writes, size + writes * span, max(3, span))
    left = samples[-1].left_bytes or 0
    seen = estimate(samples)
    if rate > writes and left > 0:
        assert seen.eta_s == pytest.approx(left / (rate - writes))
    elif left > 0:
        assert seen.eta_s is None


def test_one_sample_gives_no_rate() -> None:
    assert estimate([Sample(5_000, 10, 90)]) == Estimate(10, 90, None, None, None)
    assert estimate([Sample(5_000, 10, 90), Sample(5_100, 20, 80)]).eta_s is None


def test_when_nothing_is_left_the_end_is_now() -> None:
    assert estimate([Sample(0, 100, 0)]).eta_s == 0.0


def test_an_unknown_rest_gives_a_rate_but_no_end() -> None:
    seen = estimate([Sample(0, 0, None), Sample(4_000, 400, None)])
    assert (seen.rate_bytes_per_s, seen.eta_s, seen.fraction) == (100.0, None, None)


def test_retention_is_not_counted_as_negative_writing() -> None:
    seen = estimate([Sample(0, 0, 1_000), Sample(4_000, 400, 400)])
    assert (seen.write_bytes_per_s, seen.eta_s) == (0.0, 4.0)


def test_a_change_of_speed_shows_after_one_window() -> None:
    slow = steady(rate=10, writes=0, size=100_000, seconds=60)
    last = slow[-1]
    fast = [Sample(last.at_ms + s * 1000, last.done_bytes + 1000 * s, 100_000 - 600 - 1000 * s) for s in range(1, 17)]
    assert estimate(recent([*slow, *fast])).rate_bytes_per_s == 1000.0


def test_recent_keeps_a_full_window_and_no_more() -> None:
    samples = steady(rate=1, writes=0, size=100, seconds=60)
    kept = recent(samples)
    assert (kept[0].at_ms, kept[-1].at_ms) == (45_000, 60_000)
    assert recent(samples[:3]) == tuple(samples[:3])
    assert recent([]) == ()


def test_several_copies_add_up_and_one_unknown_rest_makes_the_sum_unknown() -> None:
    assert total([Sample(1, 10, 90), Sample(2, 20, 80)]) == Sample(2, 30, 170)
    assert total([Sample(1, 10, 90), Sample(2, 20, None)]) == Sample(2, 30, None)


def test_an_empty_copy_is_whole() -> None:
    assert Estimate(0, 0).fraction == 1.0
    assert Estimate(25, 75).fraction == 0.25


def test_no_samples_are_an_error() -> None:
    with pytest.raises(ValueError, match="never observed"):
        estimate([])
